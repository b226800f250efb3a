package labreport

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/healthlab-dev/healthlab/internal/fold"
	"github.com/healthlab-dev/healthlab/internal/ucum"
	"github.com/healthlab-dev/healthlab/labreport/loinc"
)

// add makes a row from parsed line number at in section in, and appends it to the rows of the document.
func (d *document) add(p *parsed, at int, in section, cols []column) {
	r := row{p: p, at: at, panel: in.name, panelLine: in.line, known: p.known, specimen: d.specimenFor(p, in)}
	d.nameAndUnit(&r)
	r.value = strings.TrimSpace(strings.TrimRight(strings.TrimSpace(p.text(rValue)), ";,"))
	if len(r.value) > 1 {
		if t := strings.TrimSpace(strings.Trim(r.value, "*!")); t != "" {
			r.value = t
		}
	}
	r.flag = strings.TrimSpace(p.text(rFlag))
	if m, ok := flagMeaning(r.flag); ok && m == Unclear {
		r.flag = ""
	}
	r.unit, _ = ucum.Parse(r.unitText)
	d.chooseUnit(&r)
	if d.g.image {
		r.name = withDigits(r.name, d.termsOf(&r))
	}
	if d.g.image && valueShape(r.value, d.g.decimals) == noValue {
		if v, ok := repairNumber(r.value, d.g.decimals); ok {
			r.value, r.doubt = v, 0.25
		}
	}
	r.refToks = p.withGroup(rRange)
	r.reference = strings.TrimSpace(textOf(r.refToks))
	r.bounds, _ = parseBounds(toPointAll(r.reference, d.g.decimals))
	if len(r.refToks) > len(p.find(rRange)) {
		r.bounds = Bounds{} // the range is of one sex or age
	}
	d.labelRange(&r)
	d.readLimitColumns(&r)
	r.inTable = len(cols) > 0
	// A value in the column for results outside of the range is flagged by its column.
	if v := p.find(rValue); len(v) > 0 && len(p.cols) > 0 && r.flag == "" {
		if c, _ := columnOf(p.cols, v[0].x0, v[len(v)-1].x1, p.line.height); p.cols[c].role == rOut {
			r.flag = "out"
		}
	}
	// The value is under the heading of older results, and the column of results has an unreadable heading.
	if v := p.find(rValue); len(v) > 0 && len(p.cols) > 0 {
		c, _ := columnOf(p.cols, v[0].x0, v[len(v)-1].x1, p.line.height)
		switch role := p.cols[c].role; {
		case role == rPrev:
			r.doubt += 0.5
		case role != rValue && role != rOut && hasRole(p.cols, rValue):
			r.doubt += 0.15
		case p.cols[c].unsure:
			r.doubt += 0.3
		}
	}
	if _, power := withExponent(toPoint(r.value, d.g.decimals)); power && strings.HasPrefix(r.unit.UCUM, "10*") {
		r.doubt += 0.5 // the power of the unit may be that of the range
	}
	if p.twoValues(d.g.decimals) {
		r.twoValues = true
		r.doubt += 0.25
	}
	// Two numbers without a heading: one may be an older result.
	for _, s := range p.pieces {
		if s.role == rPrev && !hasRole(cols, rPrev) {
			r.doubt += 0.25
		}
	}
	d.rows = append(d.rows, r)
}

// labelRange adds the words before a range to it: "Critical > 6.5". They are no flag, and only under a word such as
// normal are the ends of the range those of the reference range. A heading such as "Expected:" is not added.
func (d *document) labelRange(r *row) {
	label := r.p.rangeLabel()
	if len(label) == 0 {
		return
	}
	if flag := r.p.find(rFlag); len(flag) > 0 && flag[0].x0 >= label[0].x0 {
		r.flag = ""
	}
	usual := usualWord(label)
	if !usual {
		if head, n := headPhrase(label); head == rRange && n == len(label) {
			return
		}
		r.bounds = Bounds{}
	} else if !r.bounds.any() {
		return
	}
	r.refToks = append(slices.Clone(label), r.p.find(rRange)...)
	r.reference = textOf(r.refToks)
}

// usualWords are words of ranges without a finding: normal, desirable.
var usualWords = words("usual")

func usualWord(label []token) bool {
	return slices.ContainsFunc(fold.Words(textOf(label)), func(w string) bool { return usualWords[w] })
}

// nameAndUnit sets the name and the unit of a row.
func (d *document) nameAndUnit(r *row) {
	r.nameToks, r.unitToks = r.p.find(rName), r.p.find(rUnit)
	if first := r.nameToks[0].text; len(r.nameToks) > 1 && strings.IndexByte("([", first[0]) >= 0 {
		if b, ok := d.g.bounds(toPointAll(first, d.g.decimals)); ok && b.any() {
			r.nameToks = r.nameToks[1:] // the first token is the range of the row beside this one
		}
	}
	if whole := r.p.nameWithIndex(); whole != nil {
		r.nameToks, r.unitToks = whole, nil
		r.known = d.g.known(textOf(whole))
	}
	r.name = cleanName(textOf(r.nameToks))
	r.unitText = strings.TrimRight(strings.TrimSpace(textOf(r.unitToks)), ",;:")
	if n := len(r.unitText); n > 2 && (r.unitText[0] == '[' && r.unitText[n-1] == ']' || r.unitText[0] == '(' && r.unitText[n-1] == ')') {
		if low := strings.ToLower(r.unitText); !strings.Contains(low, "calc") && !strings.Contains(low, "ratio") {
			r.unitText = r.unitText[1 : n-1]
		}
	}
}

// chooseUnit corrects, on a picture, a unit with letters that OCR confuses to a unit of the analyte. A unit that the
// analyte does not have stays, and sets foreignUnit if the name is known.
func (d *document) chooseUnit(r *row) {
	if r.unitText == "" {
		d.unitInName(r)
	}
	if r.unitText == "" {
		return
	}
	terms := d.termsOf(r)
	fits := func() bool { return r.unit.UCUM != "" && (len(terms) == 0 || loinc.Belong(terms, r.unit)) }
	take := func(better string) {
		r.unitText, r.repaired = better, true
		r.unit, _ = ucum.Parse(better)
	}
	if d.g.image {
		// The letters of mcg are often misread so; mEq has a q.
		r.unitText = strings.NewReplacer("meg/", "mcg/", "mceg/", "mcg/", "mog/", "mcg/").Replace(r.unitText)
		if !fits() || !ucum.IsAmong(r.unit.UCUM, loinc.UnitsOf(terms)) && ucum.Ambiguous(r.unitText) {
			if better, ok := ucum.RepairAmong(r.unitText, loinc.UnitsOf(terms)); ok {
				take(better)
			}
		}
		if r.unit.UCUM == "" {
			unit, better, ok := ucum.Repair(r.unitText)
			if ok && (len(terms) == 0 || loinc.Belong(terms, unit)) {
				take(better)
			}
		}
	}
	r.foreignUnit = !fits() && r.known > 0.8
	if _, inside := fold.Parentheses(r.name); inside != "" && r.unit.UCUM != "" {
		if u, ok := ucum.Parse(inside); ok && !ucum.Same(u.UCUM, r.unit.UCUM) {
			r.doubt += 0.3 // the name has another unit: a part of the row belongs to its neighbour
		}
	}
}

// withDigits corrects a name from a picture: a letter that looks like a digit becomes the digit if the name of a term
// has the word with the digit and none has the word with the letter ("HbAic" becomes "HbA1c").
func withDigits(name string, terms []*loinc.Term) string {
	words := map[string]bool{}
	for _, t := range terms {
		for _, n := range t.Names {
			for w := range strings.FieldsSeq(strings.ToLower(n)) {
				words[w] = true
			}
		}
	}
	printed := strings.Fields(name)
	for i, p := range printed {
		low := strings.ToLower(p)
		if words[low] || strings.IndexFunc(low, unicode.IsLetter) < 0 {
			continue
		}
		for _, w := range slices.Sorted(maps.Keys(words)) {
			if len(w) == len(p) && strings.IndexFunc(w, fold.IsDigit) >= 0 && fold.Shape(w) == fold.Shape(low) {
				printed[i] = digitsOf(w, p)
				break
			}
		}
	}
	return strings.Join(printed, " ")
}

// digitsOf returns word with the digits that from, which is of equal length, has at the same positions.
func digitsOf(from, word string) string {
	out := []byte(word)
	for i := range from {
		if '0' <= from[i] && from[i] <= '9' && out[i] < utf8.RuneSelf {
			out[i] = from[i]
		}
	}
	return string(out)
}

// unitInName moves a unit in parentheses from the end of a name to the unit of the row. It does so only on a picture,
// where the unit may be misread, so that the parser did not recognize it.
func (d *document) unitInName(r *row) {
	last := len(r.nameToks) - 1
	if !d.g.image || last < 1 {
		return
	}
	text := r.nameToks[last].text
	if !strings.HasPrefix(text, "(") || !strings.HasSuffix(text, ")") || d.g.known(strings.Trim(text, "()")) > 0.8 {
		return
	}
	bare := cleanName(textOf(r.nameToks[:last]))
	inside := strings.Trim(text, "()")
	var terms []*loinc.Term
	for _, f := range d.g.find(bare) {
		terms = append(terms, f.Term)
	}
	if _, ok := ucum.RepairAmong(inside, loinc.UnitsOf(terms)); !ok {
		return
	}
	r.name, r.known, r.unitText = bare, max(r.known, d.g.known(bare)), inside
	r.unitToks, r.nameToks = r.nameToks[last:], r.nameToks[:last]
}

// termsOf returns the possible terms of a row: those of its specimen, or all if no term has its specimen.
func (d *document) termsOf(r *row) []*loinc.Term {
	specimen := loinc.NamedSpecimen(r.name)
	if specimen == loinc.NoSpecimen {
		specimen = r.specimen
	}
	var all, own []*loinc.Term
	for _, f := range d.g.find(r.name) {
		all = append(all, f.Term)
		if specimen.Compatible(f.Term.Specimen()) {
			own = append(own, f.Term)
		}
	}
	if len(own) > 0 {
		return own
	}
	return all
}

// readLimitColumns sets the bounds of a row from the columns of lower and upper limits, if the row has no other range.
func (d *document) readLimitColumns(r *row) {
	low, high := r.p.find(rLow), r.p.find(rHigh)
	if len(low)+len(high) == 0 || r.bounds.any() {
		return
	}
	read := func(t []token) *float64 {
		if len(t) == 0 {
			return nil
		}
		v, ok := number(strings.TrimLeft(toPoint(textOf(t), d.g.decimals), "<>="))
		if !ok {
			return nil
		}
		return &v
	}
	b := Bounds{Low: read(low), High: read(high)}
	if b.Low != nil && b.High != nil && *b.Low > *b.High {
		return
	}
	r.bounds = b
	r.refToks = append(append([]token{}, low...), high...)
	switch {
	case b.Low != nil && b.High != nil:
		r.reference = textOf(low) + " - " + textOf(high)
	case b.Low != nil:
		r.reference = ">= " + textOf(low)
	case b.High != nil:
		r.reference = "<= " + textOf(high)
	}
}

var (
	reNotReport = regexp.MustCompile(`(?i)\b(?:drinking water|tap water|trinkwasser|agua potable|eau potable|wasseranalyse|water quality|nutrition facts|per serving|nährwerte|información nutricional|valeurs nutritionnelles|invoice|rechnung|factura|facture|soil analysis|bodenanalyse|price list|preisliste|purchase order|receipt|quittung|waste ?water|quality control|qualitätskontrolle|control de calidad|contrôle de qualité)\b`)
)

// refusal returns why the document is not read as a lab report; empty if it is one.
func (d *document) refusal() FailureReason {
	if d.words == 0 {
		if d.g.image {
			return LowQuality
		}
		return InvalidInput
	}
	if d.letters > 40 && d.foreign*2 > d.letters {
		return NotEnglish
	}
	strong, full, spans := 0, 0, 0
	for i := range d.rows {
		r := &d.rows[i]
		sh := valueShape(r.value, d.g.decimals)
		if sh == spanShape {
			spans++
		}
		if r.known > 0.8 && (r.unit.UCUM == "" || d.measuredIn(r)) && (r.unit.UCUM != "" || r.bounds.any() || sh == wordShape || sh == titerShape || sh == gradeShape) {
			strong++
			if r.unit.UCUM != "" && r.bounds.any() {
				full++
			}
		}
	}
	var text strings.Builder
	for i := range d.lines {
		text.WriteString(d.lines[i].text())
		text.WriteByte('\n')
	}
	frame := d.countReportLabels()
	poor := d.g.image && d.words > 0 && d.wordConf/float64(d.words) < 0.55
	switch {
	case len(d.rows) == 0 && (poor || d.g.image && d.words < 12):
		return LowQuality
	case len(d.rows) == 0:
		return InvalidInput
	case spans > 2 && spans*2 > len(d.rows):
		return InvalidInput // the document is a list of reference values
	case reNotReport.MatchString(text.String()) && frame < 3:
		return InvalidInput
	case strong >= 3 && (frame > 0 || strong*3 >= len(d.rows)*2):
		return ""
	case full >= 2 && full == len(d.rows):
		return "" // a report without a letterhead
	case strong >= 1 && frame >= 2:
		return ""
	case strong >= 1 && frame >= 1 && d.columns:
		return ""
	case poor:
		return LowQuality
	}
	return InvalidInput
}

func (d *document) measuredIn(r *row) bool {
	// The percentage in a list of copper prices is not a unit of copper in blood.
	found := d.g.find(r.name)
	return slices.ContainsFunc(found[:min(len(found), 12)], func(f loinc.Found) bool {
		return loinc.MeasuredIn(f.Term, r.unit)
	})
}

// countReportLabels counts the kinds of labels, such as birth date and collection date, that lab reports have and other
// documents do not.
func (d *document) countReportLabels() int {
	kinds := map[metaField]bool{}
	for i := range d.lines {
		if d.isRow[i] {
			continue
		}
		tokens := d.lines[i].tokens
		for k := range tokens {
			if f, n := label(tokens, k); n > 0 && (f == fDOB || f == fCollected || f == fSpecimen || f == fSex || f == fReported) {
				kinds[f] = true
			}
		}
	}
	n := 0
	for f := range kinds {
		if f != fReported {
			n++
		}
	}
	return n
}

// data returns the extracted results and metadata.
func (d *document) data() Data {
	out := Data{Results: make([]Result, 0, len(d.rows))}
	out.Metadata, d.severalPatients = readMeta(d.lines, d.pages, func(i int) bool { return d.isRow[i] }, d.language)
	raw := make([]*RawRow, len(d.rows))
	for i := range d.rows {
		r := &d.rows[i]
		raw[i] = &RawRow{Name: r.name, Value: r.value, Unit: r.unitText, Range: r.reference, Panel: r.panel, Specimen: r.specimen, Flag: r.flag}
	}
	inferSpecimens(d.catalogue, raw)
	d.shifted, d.crossed = d.shiftedSheets(), d.crossedSheets()
	for i := range d.rows {
		if res, ok := d.result(&d.rows[i], *raw[i]); ok {
			out.Results = append(out.Results, res)
		}
	}
	reviewDuplicateCodes(out.Results)
	return out
}

var reAmbiguous = regexp.MustCompile(`^[<>=]*[1-9]\d{0,2}[.,]\d{3}$`)

// result converts row r, of which raw is the text as printed, to a Result. It returns false if the row has no name or
// no value.
func (d *document) result(r *row, raw RawRow) (Result, bool) {
	res, best, ok := newResult(d.catalogue, raw, r.bounds, r.unit, d.g.decimals)
	if ok {
		res.Evidence = d.evidence(r, &res, best)
		least := textSure
		if d.pages[r.p.line.page].Image {
			least = pictureSure
		}
		res.review(least)
		res.withoutDoubtfulFlags(raw.Flag)
	}
	return res, ok
}

// withoutDoubtfulFlags removes the flags that follow from the value, the unit and the range, unless all three were
// read with high confidence. The printed flag alone then decides the interpretation.
func (res *Result) withoutDoubtfulFlags(printed string) {
	if res.Evidence.allSure(flagSure, "value", "units", "reference_range") {
		return
	}
	res.IsAboveMaxRange, res.IsBelowMinRange = nil, nil
	res.Interpretation = ptr(Interpret(*res.Type, res.Value, printed, "", Bounds{}))
}

// The least confidence of a field for a match without review. The letters of a picture have more than
// pictureSure only if its readings agree.
const (
	textSure    = 0.9
	pictureSure = 0.82
)

// flagSure is the least confidence of the fields from which a flag is computed.
const flagSure = 0.9

func (e Evidence) sure(least float64) bool {
	// A field without a reading counts as certain.
	return e.allSure(least, "value", "units", "test_name")
}

// allSure reports whether each of the fields has at least this confidence and no alternatives. A field that is not in
// the Evidence counts as sure.
func (e Evidence) allSure(least float64, fields ...string) bool {
	for _, field := range fields {
		got, ok := e[field]
		if ok && (got.Confidence < least || len(got.Alternatives) > 0) {
			return false
		}
	}
	return true
}

func (res *Result) review(least float64) {
	if res.LoincMatchStatus != nil && *res.LoincMatchStatus == AutoMatch && !res.Evidence.sure(least) {
		res.LoincMatchStatus = ptr(NeedsReview)
	}
}

// nameConfidence returns the confidence of a row's name. picture reports whether the page was read by OCR; broken
// reports whether the text in the value field may be a part of the name.
func (r *row) nameConfidence(picture, broken bool) float64 {
	switch {
	case r.nameTruncated() || broken:
		return 0.75 // a part of the name is in the place of the value
	case r.known > 0.95:
		return 0.97
	case r.known > 0.8 && picture:
		return 0.92 // a letter may be misread: "HbAic"
	case r.known > 0.8:
		return 0.95
	}
	return 0.82
}

// evidence returns the position and confidence of each field. match is the score of the best LOINC candidate, 0 to 1.
func (d *document) evidence(r *row, res *Result, match float64) Evidence {
	page := d.pages[r.p.line.page]
	e := Evidence{}
	put := func(field string, tokens []token, c float64) {
		if len(tokens) == 0 {
			return
		}
		seen := confOf(tokens)
		if page.Image {
			// A single reading of a picture overestimates its confidence. Readings that agree are nearly as sure
			// as a text layer.
			most := 0.89
			if agreed(tokens) {
				most = 0.95
			}
			c = min(most, c*0.96*(0.25+0.75*seen))
		}
		e[field] = Reading{Page: page.Number, Box: boxOf(tokens, page), Confidence: round2(max(0.05, min(0.99, c)))}
	}
	known := r.known > 0.85
	broken := valueShape(r.value, d.g.decimals) == noValue && strings.IndexFunc(r.value, unicode.IsLetter) >= 0 && r.unitText != ""
	put("test_name", r.nameToks, r.nameConfidence(page.Image, broken))

	put("value", r.p.find(rValue), d.valueConfidence(r, res, known))
	if got, ok := e["value"]; ok {
		if got.Alternatives = d.otherReadings(r, res.Value); len(got.Alternatives) > 0 {
			got.Confidence = min(got.Confidence, 0.4)
			e["value"] = got
		}
	}

	unit := 0.97
	switch {
	case r.foreignUnit, broken:
		unit = 0.5
	case r.twoValues:
		unit = 0.7 // it may be the unit of the other value
	case r.repaired:
		unit = 0.8
	case r.unit.UCUM == "":
		unit = 0.75
	case match >= 0.5 && match < 0.62 && known:
		unit = 0.85 // the analyte is not measured in the unit
	}
	if !known {
		unit = min(unit, 0.88) // the row may not be a result
	}
	put("units", r.unitToks, unit)

	put("reference_range", r.refToks, rangeConfidence(r, res, known))
	d.lowerShiftedConfidence(r, e)
	if r.flag != "" {
		put("interpretation", r.p.find(rFlag), 0.95)
	}
	if d.valueAmongRanges(r) || d.crossed[r.p.line.page] {
		for field, got := range e {
			got.Confidence = min(got.Confidence, 0.4)
			e[field] = got
		}
	}
	if r.panelLine >= 0 && r.panel != "" {
		l := &d.lines[r.panelLine]
		p := d.pages[l.page]
		e["source_panel_name"] = Reading{Page: p.Number, Box: boxOf(l.cells()[0], p), Confidence: round2(0.9 * confOf(l.cells()[0]))}
	}
	return e
}

func agreed(tokens []token) bool {
	return !slices.ContainsFunc(tokens, func(t token) bool { return t.votes < 2 })
}

// valueConfidence returns the confidence of a row's value, at most 1. It is negative if the row is very doubtful. known
// reports whether the catalogue knows the analyte.
func (d *document) valueConfidence(r *row, res *Result, known bool) float64 {
	value := 0.98
	switch valueShape(r.value, d.g.decimals) {
	case number1, titerShape:
	case wordShape, gradeShape:
		value = 0.96
	case noteShape:
		value = 0.92
	case spanShape:
		value = 0.88
		if r.unit.UCUM != "" && r.unit.Kind() == "field" {
			value = 0.93
		}
	default:
		value = 0.7
	}
	if sh := valueShape(r.value, d.g.decimals); d.pages[r.p.line.page].Image && r.bounds.any() && sh != number1 && sh != spanShape {
		value = 0.3 // a word in place of a number is a misreading
	}
	if reAmbiguous.MatchString(strings.ReplaceAll(r.value, " ", "")) && (d.g.decimals == Undecided || d.bothMarks) {
		value = 0.5
	}
	if !known {
		value -= 0.1
	}
	if r.unit.UCUM == "" && !r.bounds.any() && *res.Type == Numeric && !d.unitless(r.name) {
		value = min(value, 0.85)
	}
	if r.unit.UCUM == "" && !r.bounds.any() && r.reference == "" && !r.inTable {
		value -= 0.1
	}
	value -= r.doubt
	if contradicts(r, res) {
		value = min(value, 0.8)
	}
	return min(value, d.highestConfidence(r, res))
}

// rangeConfidence returns the confidence of a range. known reports whether the row certainly is a result.
func rangeConfidence(r *row, res *Result, known bool) float64 {
	ref := 0.96
	if !r.bounds.any() {
		ref = 0.9
		if _, ok := wordKind(r.reference); !ok {
			ref = 0.75
		}
	}
	if contradicts(r, res) {
		ref = 0.7
	}
	if !known {
		ref = min(ref, 0.88)
	}
	return ref
}

// contradicts reports whether the printed flag contradicts the range, so that one of value, flag and range is
// misread.
func contradicts(r *row, res *Result) bool {
	m, ok := flagMeaning(r.flag)
	if !ok || !r.bounds.any() {
		return false
	}
	above, below := res.IsAboveMaxRange, res.IsBelowMinRange
	out := above != nil && *above || below != nil && *below
	in := (r.bounds.High == nil || above != nil) && (r.bounds.Low == nil || below != nil) && !out
	return (m == Abnormal || m == Critical) && in || m == Normal && out
}

// highestConfidence returns the highest confidence that a value can have: 0.6 for a number from a picture that is more
// than six times outside of its range, otherwise 1. Without a printed range the usual range of the analyte is used (see
// usualRange).
func (d *document) highestConfidence(r *row, res *Result) float64 {
	if !d.pages[r.p.line.page].Image || *res.Type != Numeric {
		return 1
	}
	b, _ := d.rangeOf(r)
	v, ok := number(res.Value)
	if ok && v > 0 && (b.High != nil && v > 6**b.High || b.Low != nil && v*6 < *b.Low) {
		return 0.6
	}
	return 1
}

func round2(v float64) float64 { return math.Round(v*100) / 100 }
