package rules

import (
	"slices"
	"strconv"
)

// zipStates maps the first three digits of postal codes to states. Each entry is the range from the end of the previous
// entry to last, with the name of its state, district, territory or military area; empty for an unused range.
var zipStates = []struct {
	last int
	name string
}{
	{4, ""}, {5, "NY"}, {7, "PR"}, {8, "VI"}, {9, "PR"}, {27, "MA"}, {29, "RI"}, {38, "NH"}, {49, "ME"}, {54, "VT"}, {55, "MA"},
	{59, "VT"}, {69, "CT"}, {89, "NJ"}, {98, "AE"}, {99, ""}, {149, "NY"}, {196, "PA"}, {199, "DE"}, {200, "DC"}, {201, "VA"},
	{205, "DC"}, {219, "MD"}, {246, "VA"}, {268, "WV"}, {269, ""}, {289, "NC"}, {299, "SC"}, {319, "GA"}, {339, "FL"}, {340, "AA"},
	{349, "FL"}, {369, "AL"}, {385, "TN"}, {397, "MS"}, {399, "GA"}, {427, "KY"}, {429, ""}, {459, "OH"}, {479, "IN"}, {499, "MI"},
	{528, "IA"}, {529, ""}, {549, "WI"}, {567, "MN"}, {568, ""}, {569, "DC"}, {577, "SD"}, {579, ""}, {588, "ND"}, {589, ""},
	{599, "MT"}, {629, "IL"}, {658, "MO"}, {659, ""}, {679, "KS"}, {693, "NE"}, {699, ""}, {714, "LA"}, {715, ""}, {729, "AR"},
	{732, "OK"}, {733, "TX"}, {749, "OK"}, {799, "TX"}, {816, "CO"}, {819, ""}, {831, "WY"}, {838, "ID"}, {839, ""}, {847, "UT"},
	{849, ""}, {865, "AZ"}, {869, ""}, {884, "NM"}, {885, "TX"}, {888, ""}, {898, "NV"}, {899, ""}, {961, "CA"}, {966, "AP"},
	{968, "HI"}, {969, "GU"}, {979, "OR"}, {994, "WA"}, {999, "AK"},
}

// zipExceptions are codes of one state within the range of another.
var zipExceptions = map[string]string{"06390": "NY", "96799": "AS"}

// StateOfZip returns the two-letter state (or DC, territory or military area) of a five-digit code; empty if it
// belongs to none. It uses the first three digits, except for islands with codes of their own. A code whose
// area crosses a state border counts as in the state of its sorting center.
func StateOfZip(code string) string {
	if len(code) != 5 || !ZipForm.MatchString(code) {
		return ""
	}
	if state, ok := zipExceptions[code]; ok {
		return state
	}
	prefix, _ := strconv.Atoi(code[:3])
	i, _ := slices.BinarySearchFunc(zipStates, prefix, func(row struct {
		last int
		name string
	}, prefix int) int {
		return row.last - prefix
	})
	return zipStates[i].name
}
