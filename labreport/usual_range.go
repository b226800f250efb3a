package labreport

import (
	"strings"

	"github.com/healthlab-dev/healthlab/internal/ucum"
)

// usualRange is a range that laboratories print for adults, of a code in a unit.
type usualRange struct {
	code, unit string
	low, high  float64
}

// usualRanges are of analytes that most reports have. They are typical adult reference
// intervals, rounded, written for this project from general knowledge; they decide only whether
// a printed range is ten times too large.
var usualRanges = []usualRange{
	{"2160-0", "mg/dL", 0.6, 1.3}, {"14682-9", "umol/L", 50, 110}, {"2823-3", "mmol/L", 3.5, 5.1}, {"2951-2", "mmol/L", 135, 146},
	{"2075-0", "mmol/L", 98, 107}, {"2028-9", "mmol/L", 20, 31}, {"17861-6", "mg/dL", 8.6, 10.3}, {"1751-7", "g/dL", 3.5, 5.1},
	{"2885-2", "g/dL", 6, 8.3}, {"1975-2", "mg/dL", 0.2, 1.2}, {"3084-1", "mg/dL", 3.5, 7.2}, {"2777-1", "mg/dL", 2.5, 4.5},
	{"19123-9", "mg/dL", 1.6, 2.6}, {"3094-0", "mg/dL", 7, 25}, {"2345-7", "mg/dL", 70, 99}, {"14749-6", "mmol/L", 3.9, 5.6},
	{"718-7", "g/dL", 12, 17}, {"4544-3", "%", 36, 50}, {"789-8", "10*6/uL", 4, 5.8}, {"6690-2", "10*3/uL", 4, 11},
	{"787-2", "fL", 80, 100}, {"785-6", "pg", 27, 33}, {"786-4", "g/dL", 32, 36}, {"788-0", "%", 11.5, 15}, {"777-3", "10*3/uL", 150, 400},
	{"3016-3", "m[IU]/L", 0.4, 4.5}, {"3024-7", "ng/dL", 0.8, 1.8}, {"3051-0", "pg/mL", 2, 4.4}, {"4548-4", "%", 4, 5.6},
}

// tenfold reports whether the printed range of a row is about ten times what is usual for the
// analyte, while neither the range nor the value has a decimal point: the reader of a picture
// lost the points of both, so that the value fits the range.
func (d *document) tenfold(r *row) bool {
	value, reference := toPointAll(r.value, d.g.decimals), toPointAll(r.reference, d.g.decimals)
	if !d.pages[r.p.line.page].Image || !r.bounds.Any() || valueShape(r.value, d.g.decimals) != number1 || strings.Contains(value+reference, ".") {
		return false
	}
	shifted := func(end *float64, usual float64) bool { return end == nil || *end >= 6*usual && *end <= 18*usual }
	for _, term := range d.termsOf(r) {
		for _, u := range usualRanges {
			if u.code == term.Code && ucum.Same(u.unit, r.unit.UCUM) {
				return shifted(r.bounds.Low, u.low) && shifted(r.bounds.High, u.high)
			}
		}
	}
	return false
}

// shiftedSheets returns the pages on which the points of at least two rows, and of a quarter of
// the rows with numbers, are lost.
func (d *document) shiftedSheets() map[int]bool {
	numbers, shifted, out := map[int]int{}, map[int]int{}, map[int]bool{}
	for i := range d.rows {
		r := &d.rows[i]
		page := r.p.line.page
		if valueShape(r.value, d.g.decimals) == number1 {
			numbers[page]++
		}
		if d.tenfold(r) {
			shifted[page]++
		}
	}
	for page, n := range shifted {
		out[page] = n >= 2 && n*4 >= numbers[page]
	}
	return out
}

// tenth writes the point that is lost before the last digit of each number.
func tenth(s string) string {
	return reDecimal.ReplaceAllStringFunc(s, func(n string) string {
		if strings.Contains(n, ".") {
			return n
		}
		if len(n) == 1 {
			return "0." + n
		}
		return n[:len(n)-1] + "." + n[len(n)-1:]
	})
}

// doubtShifted lowers the confidence of a value and a range that may have lost their points, and
// offers the readings with a point. On a sheet of such rows no number is sure.
func (d *document) doubtShifted(r *row, e Evidence) {
	tenfold := d.tenfold(r)
	if !tenfold && !(d.shifted[r.p.line.page] && valueShape(r.value, d.g.decimals) == number1) {
		return
	}
	for field, text := range map[string]string{"value": r.value, "reference_range": r.reference} {
		got, ok := e[field]
		if !ok {
			continue
		}
		got.Confidence = min(got.Confidence, 0.4)
		if tenfold && len(got.Alternatives) == 0 {
			got.Alternatives = []string{tenth(toPointAll(text, d.g.decimals))}
		}
		e[field] = got
	}
}
