package labreport

import (
	_ "embed"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/healthlab-dev/healthlab/internal/fold"
	"github.com/healthlab-dev/healthlab/internal/ucum"
	"github.com/healthlab-dev/healthlab/labreport/loinc"
)

//go:embed data/usual_ranges.csv
var usualText string

// usualRange is the reference range of healthy adults from the embedded table, for a unit. It only decides whether
// numbers on a picture have lost or moved their decimal points. A nil end is open.
type usualRange struct {
	unit ucum.Unit
	Bounds
}

// usualKey returns the key that terms share if they differ only in the method.
func usualKey(t *loinc.Term) string {
	specimen := t.Specimen()
	if specimen == loinc.CapillaryBlood {
		specimen = loinc.Blood
	}
	return strings.Join([]string{t.Component, t.Property, t.Scale, string(specimen)}, "|")
}

var usualRanges = sync.OnceValue(func() map[string][]usualRange {
	out, err := readUsual(strings.NewReader(usualText))
	if err != nil {
		panic("labreport: embedded usual ranges: " + err.Error())
	}
	return out
})

// readUsual parses the embedded table of usual ranges. The keys of the result are those of usualKey.
func readUsual(r io.Reader) (map[string][]usualRange, error) {
	out := map[string][]usualRange{}
	var wrong error
	err := fold.ReadCSV(r, []string{"loinc_num", "unit", "low", "high", "source"}, func(column func(string) string) {
		code := column("loinc_num")
		term, err := loinc.Embedded().Term(code)
		unit, unitErr := ucum.FromCode(column("unit"))
		if err != nil || unitErr != nil || column("source") == "" {
			wrong = fmt.Errorf("row of %s: loinc_num must be in the embedded catalogue, unit must be a UCUM code, and source must not be empty", code)
			return
		}
		end := func(text string) *float64 {
			v, ok := number(text)
			if !ok {
				return nil
			}
			return &v
		}
		key := usualKey(term)
		out[key] = append(out[key], usualRange{unit, Bounds{Low: end(column("low")), High: end(column("high"))}})
	})
	if err == nil {
		err = wrong
	}
	return out, err
}

// usualBounds returns the usual range of the first possible term of a row that has one, converted to the unit of the
// row. It returns false if the row has no unit, or if no term has a range that can be converted.
func (d *document) usualBounds(r *row) (Bounds, bool) {
	if r.unit.UCUM == "" {
		return Bounds{}, false
	}
	for _, term := range d.termsOf(r) {
		for _, u := range usualRanges()[usualKey(term)] {
			factor, ok := u.unit.Factor(r.unit)
			if !ok && ucum.Same(u.unit.UCUM, r.unit.UCUM) {
				factor, ok = 1, true
			}
			if !ok {
				continue
			}
			scaled := func(end *float64) *float64 {
				if end == nil {
					return nil
				}
				return ptr(*end * factor)
			}
			return Bounds{Low: scaled(u.Low), High: scaled(u.High)}, true
		}
	}
	return Bounds{}, false
}

// rangeOf returns the printed range of a row and its text with decimal points. If no range was read, it returns the
// usual range of the analyte.
func (d *document) rangeOf(r *row) (b Bounds, text string) {
	if r.bounds.any() {
		return r.bounds, toPointAll(r.reference, d.g.decimals)
	}
	b, _ = d.usualBounds(r)
	for _, end := range []*float64{b.Low, b.High} {
		if end != nil {
			text += " " + strconv.FormatFloat(*end, 'f', -1, 64)
		}
	}
	return b, text
}

// rangeSize is how the size of a printed range compares with that of the usual range of the analyte.
type rangeSize int

const (
	usualSize    rangeSize = iota
	otherPlaces            // larger or smaller by a power of ten: decimal points were lost or moved
	farFromUsual           // larger or smaller, and not by a power of ten
)

// sizeOf compares a printed range with the usual range of the analyte, and returns by how many digits the decimal
// points must move to the left (negative: to the right). Ranges of laboratories differ by less than a factor of two
// and a half; a range with one end may differ more.
func sizeOf(printed, usual Bounds) (rangeSize, int) {
	var ratios []float64
	for _, end := range [][2]*float64{{printed.Low, usual.Low}, {printed.High, usual.High}} {
		if end[0] != nil && end[1] != nil && *end[1] > 0 {
			ratios = append(ratios, *end[0] / *end[1])
		}
	}
	within := func(low, high float64) bool {
		for _, r := range ratios {
			if r < low || r > high {
				return false
			}
		}
		return len(ratios) > 0
	}
	both := len(ratios) == 2
	switch {
	case within(0.4, 2.5) || len(ratios) == 0:
		return usualSize, 0
	case within(6, 18):
		return otherPlaces, 1
	case within(60, 180):
		return otherPlaces, 2
	case both && within(0.06, 0.18):
		return otherPlaces, -1
	case both && within(0.006, 0.018):
		return otherPlaces, -2
	case both && (within(0, 0.2) || within(5, 1e9)):
		return farFromUsual, 0
	}
	return usualSize, 0
}

// compareWithUsual compares the printed range of a row on a picture with the usual range of the analyte, as sizeOf
// does. Rows of other pages, and rows without a range or without a number as value, have the usualSize.
func (d *document) compareWithUsual(r *row) (rangeSize, int) {
	if !d.pages[r.p.line.page].Image || !r.bounds.any() || valueShape(r.value, d.g.decimals) != number1 {
		return usualSize, 0
	}
	usual, ok := d.usualBounds(r)
	if !ok {
		return usualSize, 0
	}
	return sizeOf(r.bounds, usual)
}

func (d *document) shiftedSheets() map[int]bool {
	return d.sheetsWithMany(func(r *row) bool { size, _ := d.compareWithUsual(r); return size != usualSize },
		func(r *row) bool { return valueShape(r.value, d.g.decimals) == number1 })
}

func (d *document) crossedSheets() map[int]bool {
	// An analyte beside a unit in which it is not measured: on a slanted picture, names stand beside other lines.
	return d.sheetsWithMany(func(r *row) bool { return r.foreignUnit }, func(r *row) bool { return d.pages[r.p.line.page].Image })
}

// sheetsWithMany returns the pages on which at least two rows, and at least a quarter of the rows for which counts is
// true, are suspect.
func (d *document) sheetsWithMany(suspect, counts func(r *row) bool) map[int]bool {
	rows, found, out := map[int]int{}, map[int]int{}, map[int]bool{}
	for i := range d.rows {
		r := &d.rows[i]
		if !counts(r) {
			continue
		}
		rows[r.p.line.page]++
		if suspect(r) {
			found[r.p.line.page]++
		}
	}
	for page, n := range found {
		out[page] = n >= 2 && n*4 >= rows[page]
	}
	return out
}

// movePoints moves the decimal point of each number to the left, or to the right if places is
// negative.
func movePoints(s string, places int) string {
	return reDecimal.ReplaceAllStringFunc(s, func(n string) string {
		whole, part, _ := strings.Cut(n, ".")
		if places > 0 {
			whole = strings.Repeat("0", max(0, places+1-len(whole))) + whole
			cut := len(whole) - places
			return whole[:cut] + "." + whole[cut:] + part
		}
		for range -places {
			if part == "" {
				part = "0"
			}
			whole, part = whole+part[:1], part[1:]
		}
		if whole = strings.TrimLeft(whole, "0"); whole == "" {
			whole = "0"
		}
		if part != "" {
			whole += "." + part
		}
		return whole
	})
}

// lowerShiftedConfidence lowers the confidence of the range and the value of a row if the printed range is far from the
// usual range of the analyte, and adds the numbers with a moved decimal point as alternatives. The value is not changed
// if only the range has lost its point. On a page with many such rows the confidence of every number is lowered.
func (d *document) lowerShiftedConfidence(r *row, e Evidence) {
	size, places := d.compareWithUsual(r)
	sheet := d.shifted[r.p.line.page] && valueShape(r.value, d.g.decimals) == number1
	if size == usualSize && !sheet {
		return
	}
	value := toPointAll(r.value, d.g.decimals)
	// A value that has the point that the range has lost is read correctly.
	kept := !sheet && size == otherPlaces && (places > 0) == strings.Contains(value, ".") && d.nearUsual(r, value)
	for field, text := range map[string]string{fieldValue: value, fieldRange: toPointAll(r.reference, d.g.decimals)} {
		got, ok := e[field]
		if !ok || field == fieldValue && kept {
			continue
		}
		got.Confidence = min(got.Confidence, 0.4)
		if size == otherPlaces && len(got.Alternatives) == 0 {
			got.Alternatives = []string{movePoints(text, places)}
		}
		e[field] = got
	}
}

func (d *document) nearUsual(r *row, value string) bool {
	v, ok := number(strings.TrimLeft(value, "<>= "))
	usual, known := d.usualBounds(r)
	const room = 4
	return ok && known && (usual.Low == nil || v*room >= *usual.Low) && (usual.High == nil || v <= *usual.High*room)
}
