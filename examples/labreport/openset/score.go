package openset

import (
	"fmt"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab/labreport"
)

var plainLetters = strings.NewReplacer("á", "a", "à", "a", "â", "a", "ä", "a", "é", "e", "è", "e", "ê", "e", "ë", "e", "í", "i", "î", "i", "ï", "i",
	"ó", "o", "ô", "o", "ö", "o", "ú", "u", "û", "u", "ü", "u", "ñ", "n", "ç", "c", "ß", "ss", "µ", "u", "μ", "u", "²", "2")

// sameName reports whether two names of tests are equal in their letters, with at most one misread letter in six.
func sameName(a, b string) bool {
	only := func(s string) []rune {
		return []rune(strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '%' {
				return r
			}
			return -1
		}, plainLetters.Replace(strings.ToLower(s))))
	}
	x, y := only(a), only(b)
	row := make([]int, len(y)+1)
	for k := range row {
		row[k] = k
	}
	for i := range x {
		last := row[0]
		row[0] = i + 1
		for k := range y {
			cost := last
			if x[i] != y[k] {
				cost++
			}
			last = row[k+1]
			row[k+1] = min(cost, row[k]+1, last+1)
		}
	}
	return row[len(y)]*6 <= len(x)
}

// unitForms maps spellings of a unit that a reader may return to the spelling in the set.
var unitForms = func() map[string]string {
	out := map[string]string{}
	for unit, forms := range map[string]string{
		"10*3/ul": "10^3/ul x10^3/ul x10e3/ul k/ul thousand/ul 10*9/l 10^9/l x10^9/l tsd./ul tsd/ul miles/mm3 103/ul x103/ul",
		"10*6/ul": "10^6/ul x10^6/ul x10e6/ul m/ul million/ul 10*12/l 10^12/l x10^12/l mio./ul 106/ul x106/ul",
		"/ul":     "cells/ul cells/mcl /mcl /mm3 cells/mm3", "ug/dl": "mcg/dl", "ug/l": "mcg/l", "miu/l": "uiu/ml m[iu]/l u[iu]/ml mui/l uui/ml mu/l", "u/l": "iu/l ui/l e/l [iu]/l",
		"ml/min/1.73m2": "ml/min/1,73m2 ml/min/1.73 ml/min/{1.73_m2} ml/min/1.73m*2", "mm/h": "mm/hr mm/1h", "iu/ml": "[iu]/ml ui/ml",
	} {
		for _, form := range strings.Fields(forms) {
			out[form] = unit
		}
	}
	return out
}()

// sameUnit reports whether two units mean the same, even if they are spelled differently.
func sameUnit(a, b string) bool {
	key := func(s string) string {
		s = plainLetters.Replace(strings.ToLower(strings.ReplaceAll(s, " ", "")))
		s = strings.NewReplacer("³", "^3", "⁶", "^6").Replace(s)
		if unit, ok := unitForms[s]; ok {
			return unit
		}
		return s
	}
	return key(a) == key(b)
}

// sureFrom is the confidence from which a field is accepted without a check by a person.
const sureFrom = 0.9

// Score counts the pages, rows and fields that a reader has read, and how many are right.
type Score struct {
	// Pages is the number of scored pages, Want the number of rows on their sheets, Got the number of rows that the
	// reader returned, and Right the number of those whose name, value and unit are right.
	Pages, Want, Got, Right int
	// Sure is the number of fields (names, values and units) with a confidence of 0.9 or more. SureWrong is the
	// number of those that differ from the sheet.
	Sure, SureWrong int
	// SureValues and SureValuesWrong are Sure and SureWrong for values alone.
	SureValues, SureValuesWrong int
	bins                        [20]bin
}

// bin counts the fields whose confidence is in one interval, which is 0.05 wide.
type bin struct {
	n, right int
	sum      float64
}

// Join adds the counts of another score to c.
func (c *Score) Join(o Score) {
	c.Pages, c.Want, c.Got, c.Right = c.Pages+o.Pages, c.Want+o.Want, c.Got+o.Got, c.Right+o.Right
	c.Sure, c.SureWrong = c.Sure+o.Sure, c.SureWrong+o.SureWrong
	c.SureValues, c.SureValuesWrong = c.SureValues+o.SureValues, c.SureValuesWrong+o.SureValuesWrong
	for i, b := range o.bins {
		c.bins[i].n, c.bins[i].right, c.bins[i].sum = c.bins[i].n+b.n, c.bins[i].right+b.right, c.bins[i].sum+b.sum
	}
}

// F1 returns the harmonic mean of recall (the share of rows on the sheets that were read right) and precision (the
// share of read rows that are right).
func (c *Score) F1() float64 { return 2 * float64(c.Right) / float64(max(1, c.Want+c.Got)) }

// Add compares the data that a reader has read from a sheet with the sheet, and adds the counts to c. It returns a
// description of each row that was not found, and of each wrong field with a confidence of 0.9 or more.
func (c *Score) Add(s Sheet, d labreport.Data) (faults []string) {
	c.Pages, c.Want, c.Got = c.Pages+1, c.Want+len(s.Rows), c.Got+len(d.Results)
	used := make([]bool, len(d.Results))
	for _, w := range s.Rows {
		i := slices.IndexFunc(d.Results, func(g labreport.Result) bool {
			return g.Value == w.Value && sameName(w.Name, g.TestName) && sameUnit(unitOf(g), w.Unit)
		})
		for i >= 0 && used[i] {
			rest := slices.IndexFunc(d.Results[i+1:], func(g labreport.Result) bool {
				return g.Value == w.Value && sameName(w.Name, g.TestName) && sameUnit(unitOf(g), w.Unit)
			})
			if rest < 0 {
				i = -1
			} else {
				i += 1 + rest
			}
		}
		if i < 0 {
			faults = append(faults, "not found: "+strings.Join([]string{w.Name, w.Value, w.Unit}, " | "))
			continue
		}
		used[i] = true
		c.Right++
	}
	for _, f := range fields(s, d) {
		b := &c.bins[min(len(c.bins)-1, int(f.confidence*float64(len(c.bins))+1e-9))]
		b.n++
		b.sum += f.confidence
		if f.right {
			b.right++
		}
		if f.confidence < sureFrom {
			continue
		}
		c.Sure++
		if !f.right {
			c.SureWrong++
			faults = append(faults, fmt.Sprintf("wrong at %.2f: %s %s", f.confidence, f.name, f.text))
		}
		if f.name == "value" {
			c.SureValues++
			if !f.right {
				c.SureValuesWrong++
			}
		}
	}
	return faults
}

// Calibration returns a Markdown table with the share of right fields for each interval of confidence.
func (c *Score) Calibration() string {
	var b strings.Builder
	b.WriteString("| Confidence | Fields | Mean confidence | Right |\n|---|---|---|---|\n")
	for i, bin := range c.bins {
		if bin.n > 0 {
			steps := float64(len(c.bins))
			fmt.Fprintf(&b, "| %.2f to %.2f | %d | %.3f | %.3f |\n", float64(i)/steps, float64(i+1)/steps, bin.n, bin.sum/float64(bin.n), float64(bin.right)/float64(bin.n))
		}
	}
	return b.String()
}

func unitOf(g labreport.Result) string {
	if g.Units == nil {
		return ""
	}
	return *g.Units
}

// field is one field that a reader returned, and whether it agrees with the sheet.
type field struct {
	name, text string
	confidence float64
	right      bool
}

// fields returns the names, values and units that a reader returned. All fields of a row that is not on the sheet
// are wrong.
func fields(s Sheet, d labreport.Data) []field {
	var out []field
	for _, g := range d.Results {
		best, most := [3]bool{}, -1
		for _, w := range s.Rows {
			same := [3]bool{sameName(w.Name, g.TestName), w.Value == g.Value, sameUnit(unitOf(g), w.Unit)}
			n := 0
			for i, points := range []int{4, 2, 1} {
				if same[i] {
					n += points
				}
			}
			if n > most {
				best, most = same, n
			}
		}
		for i, name := range []string{"test_name", "value", "units"} {
			if at, ok := g.Evidence[name]; ok {
				out = append(out, field{name, []string{g.TestName, g.Value, unitOf(g)}[i], at.Confidence, best[i]})
			}
		}
	}
	return out
}
