package labreport

import (
	"regexp"
	"strings"

	"github.com/healthlab-dev/healthlab/internal/fold"
)

var (
	reLeadingZero = regexp.MustCompile(`^[<>=]*0\d+$`)
	reWithPoint   = regexp.MustCompile(`\d\.\d`)
)

// withPoint returns the value with a decimal point if a value on a picture probably lost it: with the point the number
// fits the printed range, and without it the number does not. The value must be at least twice the upper end of a range
// that prints no decimals. A range with only a lower end is used only if it prints decimals, because nearly every
// number is above it. reference must have a decimal point.
func withPoint(value string, b Bounds, reference string) (string, bool) {
	digits := strings.TrimLeft(value, "<>= ")
	mark := value[:len(value)-len(digits)]
	if digits == "" || len(digits) > 8 || strings.IndexFunc(digits, func(r rune) bool { return !fold.IsDigit(r) }) >= 0 {
		return "", false
	}
	if reLeadingZero.MatchString(digits) {
		return mark + "0." + digits[1:], true
	}
	v, ok := number(digits)
	if !ok || v == 0 || !b.any() || len(digits) < 2 {
		return "", false
	}
	above := b.High != nil && v > *b.High
	below := b.Low != nil && v < *b.Low
	decimals := reWithPoint.MatchString(reference)
	if b.Low != nil && b.High != nil && !above && !below || below || b.Low == nil && !above {
		return "", false
	}
	if !above && !(decimals && b.High == nil) { // only a range such as "> 5.4" remains
		return "", false
	}
	if above && !decimals && v < 2**b.High {
		return "", false
	}
	best, found := "", false
	for cut := len(digits) - 1; cut > 0 && cut >= len(digits)-3; cut-- {
		text := digits[:cut] + "." + digits[cut:]
		w, _ := number(text)
		room := 3.0
		if !decimals {
			room = 1 // "45" against 4 - 10 may be 4.5; 120 against 70 - 99 is 120
		}
		if (b.High == nil || w <= *b.High*room) && (b.Low == nil || w*room >= *b.Low) {
			best, found = text, true
			break
		}
	}
	return mark + best, found
}

// DoubtfulNumbers returns the boxes of numbers on a picture that may have lost their decimal point, for an extractor
// that runs OCR a second time on these areas at a higher resolution. The boxes are those of the page's words, not
// those of the uploaded page.
func (r *Reader) DoubtfulNumbers(p Page) []Box {
	p.Original = nil
	d := r.document([]Page{p})
	var out []Box
	for i := range d.rows {
		row := &d.rows[i]
		value := row.p.find(rValue)
		if _, ok := withPoint(toPointAll(row.value, d.g.decimals), row.bounds, toPointAll(row.reference, d.g.decimals)); ok && len(value) > 0 {
			out = append(out, boxOf(value, p))
		}
	}
	return out
}

// otherReadings returns alternative texts of a value on a picture: what a second OCR of the same area gave, otherwise
// the digits with the decimal point that the range suggests.
func (d *document) otherReadings(r *row, value string) []string {
	if !d.pages[r.p.line.page].Image {
		return nil
	}
	var out []string
	for _, t := range r.p.find(rValue) {
		if t.alt != "" {
			out = append(out, toPointAll(t.alt, d.g.decimals))
		}
	}
	b, printed := d.rangeOf(r)
	if other, ok := withPoint(value, b, printed); ok && len(out) == 0 {
		out = append(out, other)
	}
	return out
}
