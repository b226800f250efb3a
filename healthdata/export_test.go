package healthdata

import "strings"

// UnitTexts returns the texts of the units that can be turned into a unit, in the order of their table.
func UnitTexts(to string) (groups []string) {
	for _, s := range unitSpellings[to] {
		groups = append(groups, "`"+strings.Join(strings.Fields(s.texts), "` `")+"`")
	}
	return groups
}
