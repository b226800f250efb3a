package labreport

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/healthlab-dev/healthlab/internal/fold"
	"github.com/healthlab-dev/healthlab/internal/ucum"
	"github.com/healthlab-dev/healthlab/labreport/refrange"
)

// wordUnits are units that also occur as words of names: "ANA Titer", "INR".
var wordUnits = map[string]bool{"titer": true, "titre": true, "inr": true, "ratio": true, "index": true, "calc": true, "units": true, "unit": true, "quotient": true, "percent": true}

var (
	reLabCode = regexp.MustCompile(`^(?:[A-Z]{1,4}\d{0,2}|\d{1,3}|\[?[A-Z0-9]{1,4}\]?|\d{3,5}-\d)$`)
	reUnitish = regexp.MustCompile(`^[A-Za-zµμ%\[{][A-Za-z0-9µμ%.*^\[\]{}'()]{0,14}/[A-Za-zµμ0-9][A-Za-z0-9µμ.,*^\[\]{}'()²³/]{0,14}$`)
)

// contentScore scores how well the text of n tokens from i on fits role r; higher is better, impossible excludes the
// role.
func (s *search) contentScore(r role, i, n int) float64 {
	tokens := s.l.tokens[i : i+n]
	for _, t := range tokens {
		if (t.text == "|" || t.text == ";") && r != rNote {
			return impossible
		}
	}
	if r == rFlag && s.isNoFlag(i, n) {
		return impossible
	}
	key := stretch{r, n, s.hasCol, textOf(tokens)}
	v, ok := s.g.fits[key]
	if !ok {
		v = s.textScore(r, tokens, key.text)
		s.g.fits[key] = v
	}
	if v <= impossible/2 {
		return s.ambiguousScore(r, tokens, key.text)
	}
	return v
}

// isNoFlag reports whether the n tokens from i on look like a flag and are none: they are a comparator before a number
// or a titer, a single small letter that is no cell of a flag column (a footnote, an hour), the start of a value in
// words ("A positive"), the start of a name ("Normal forms") or the middle of one ("CRP, high sens.").
func (s *search) isNoFlag(i, n int) bool {
	text := textOf(s.l.tokens[i : i+n])
	var next string
	end := s.cellEnd(i + n)
	if i+n < len(s.l.tokens) && !s.l.tokens[i+n].gap {
		next = s.l.tokens[i+n].text
	}
	switch {
	case strings.Trim(text, "<>=") == "":
		sh := valueShape(next, s.g.decimals)
		return sh == number1 || sh == titerShape
	case len(text) == 1 && unicode.IsLower(rune(text[0])) && (!s.hasCol.has(rFlag) || !s.l.tokens[i].gap):
		return true
	case next == "":
		return false
	}
	for k := i + n + 1; k <= min(end, i+4) && unicode.IsLetter(rune(text[0])); k++ {
		if _, ok := valueClass(textOf(s.l.tokens[i:k])); ok {
			return true
		}
	}
	start := i
	for start > 0 && !s.l.tokens[start].gap {
		start--
	}
	if len(text) > 2 && withoutDigits(s.l.tokens[start:i]) {
		_, unit := ucum.Parse(next)
		return !unit && strings.IndexFunc(next, fold.IsDigit) < 0 && strings.IndexFunc(next, unicode.IsLetter) >= 0 && s.g.known(next) < 0.8
	}
	return false
}

func withoutDigits(tokens []token) bool {
	return !slices.ContainsFunc(tokens, func(t token) bool { return strings.IndexFunc(t.text, fold.IsDigit) >= 0 })
}

// ambiguousScore scores a text that fits no role by itself, by its column: in a value column any short text can be a
// value, in a range column a range. It returns impossible for other roles and columns.
func (s *search) ambiguousScore(r role, tokens []token, text string) float64 {
	n := len(tokens)
	if r != rValue && r != rRange || !s.hasCol.has(r) {
		return impossible
	}
	if c, off := columnOf(s.cols, tokens[0].x0, tokens[n-1].x1, s.l.height); s.cols[c].role != r || off >= 2 {
		return impossible
	}
	if r == rRange {
		if n > 6 || looksLikeDate(strings.Trim(text, "()[]")) || strings.IndexFunc(text, fold.IsDigit) >= 0 && strings.Count(text, "(") != strings.Count(text, ")") {
			return impossible
		}
		return -0.6
	}
	t := strings.TrimRight(strings.TrimSpace(text), ";,")
	if n > 4 || strings.IndexFunc(t, unicode.IsLetter) < 0 || strings.HasPrefix(t, "(") && strings.HasSuffix(t, ")") || looksLikeDate(t) {
		return impossible
	}
	if _, unit := ucum.Parse(t); unit {
		return impossible
	}
	if _, flag := flagMeaning(t); flag {
		return impossible
	}
	return 0.2 + 0.2*float64(n)
}

// textScore scores how well a text fits role r, whatever its position; higher is better, impossible excludes the role.
func (s *search) textScore(r role, tokens []token, text string) float64 {
	n := len(tokens)
	switch r {
	case rName:
		return s.nameContent(tokens, text)
	case rValue:
		return s.valueContent(text, n)
	case rRange:
		return s.rangeContent(text, n)
	case rUnit:
		return s.unitContent(text, n)
	case rFlag:
		return s.flagContent(text)
	case rLow, rHigh:
		if n == 1 && reNum.MatchString(strings.TrimLeft(toPoint(text, s.g.decimals), "<>=")) {
			return 2.5
		}
		if strings.Trim(text, "-*") == "" {
			return 0.5
		}
		return impossible
	case rPrev:
		switch valueShape(text, s.g.decimals) {
		case noValue:
			if s.hasCol.has(rPrev) && n == 1 && (looksLikeDate(text) || isMark(text)) {
				return 0.2
			}
			return impossible
		case number1, titerShape, spanShape:
			if s.hasCol.has(rPrev) {
				return 1.5
			}
			return -1.2
		default:
			if s.hasCol.has(rPrev) {
				return 1.2
			}
			return -1.5
		}
	case rCode:
		if !reLabCode.MatchString(text) || n > 1 {
			return impossible
		}
		if s.hasCol.has(rCode) {
			return 0.5
		}
		return -0.5
	case rDate:
		if looksLikeDate(text) || n > 1 && looksLikeDate(tokens[0].text) && reClock.MatchString(tokens[n-1].text) {
			return 0.1
		}
		return impossible
	case rNote:
		return s.noteContent(tokens, text)
	}
	return impossible
}

func (s *search) unitContent(text string, n int) float64 {
	t := strings.TrimSpace(strings.TrimRight(text, ",;:"))
	if _, ok := ucum.Parse(t); ok {
		if wordUnits[strings.ToLower(t)] {
			return 2
		}
		if strings.HasPrefix(t, "(") && strings.HasSuffix(t, ")") {
			return 6 // "Glucose (mg/dL)": a unit in any position
		}
		if n > 1 || len(t) > 2 || t == "%" || t == "pg" || t == "fL" || t == "fl" {
			return 3.5 + 0.2*float64(n-1)
		}
		return 2.5
	}
	if n == 1 && reUnitish.MatchString(t) && !looksLikeDate(t) {
		return 1.2
	}
	if s.g.image && n == 1 && strings.IndexFunc(t, unicode.IsLetter) >= 0 {
		if ucum.Misread(t) {
			return 2
		}
	}
	return impossible
}

func (s *search) flagContent(text string) float64 {
	m, ok := flagMeaning(text)
	if !ok {
		return impossible
	}
	letters := len([]rune(strings.Trim(text, "()[]*")))
	switch {
	case letters <= 1 && strings.IndexFunc(text, unicode.IsLetter) >= 0 && !strings.ContainsAny(strings.ToUpper(text), "HL"):
		return 1
	case strings.Trim(text, "+-=<>") == "":
		return 0.9
	case m == Normal && !s.hasCol.has(rFlag):
		return 1.2
	}
	return 2
}

func (s *search) noteContent(tokens []token, text string) float64 {
	if fieldLabel(tokens) {
		return 0.4
	}
	if len(tokens) > 1 {
		return impossible
	}
	if text == "|" || text == ";" {
		return 0
	}
	if strings.Trim(text, ".,-•*:()[]=") == "" {
		return -0.1
	}
	if isComparator(text) {
		return impossible
	}
	if isFactor(text) {
		return -3
	}
	if s.hasCol.has(rNote) {
		return -0.35
	}
	return -0.8
}

func isFactor(text string) bool {
	_, power := withExponent("1x" + strings.TrimLeft(text, "xX×*·"))
	return power || factorWords[fold.String(text)]
}

// fieldLabel reports whether the tokens are a label of a part of a result, with its colon: "Result:", "Reference
// range:".
func fieldLabel(tokens []token) bool {
	if !strings.HasSuffix(tokens[len(tokens)-1].text, ":") {
		return false
	}
	r, n := headPhrase(tokens)
	return n == len(tokens) && (r == rValue || r == rUnit || r == rRange || r == rFlag || r == rName)
}

func (s *search) nameContent(tokens []token, text string) float64 {
	name := cleanName(text)
	letters := 0
	for _, r := range name {
		if unicode.IsLetter(r) {
			letters++
		}
	}
	if letters == 0 && name != "%" || isComparator(tokens[len(tokens)-1].text) {
		return impossible
	}
	first := tokens[0].text
	if _, flag := flagMeaning(first); flag && len(tokens) > 1 && len(first) <= 2 {
		return impossible
	}
	k := s.g.known(name)
	var v float64
	if k > 0.6 {
		v = 4.2*k + 0.35*float64(len(tokens))
	} else {
		if letters < 2 {
			return impossible
		}
		if _, flag := flagMeaning(name); flag {
			return impossible
		}
		if _, unit := ucum.Parse(name); unit {
			return impossible
		}
		v = 1 - 0.2*float64(max(0, len(tokens)-4))
		for i, t := range tokens {
			c := strings.TrimRight(t.text, ":,;")
			if i > 0 {
				if reNum.MatchString(toPoint(c, s.g.decimals)) {
					v -= 0.9
				}
				if _, ok := ucum.Parse(c); ok && len(c) > 1 {
					v -= 2.5
				}
			}
			if _, ok := valueClass(c); ok && len(c) > 1 {
				v -= 1.2
			}
			if reCmp.MatchString(c) || looksLikeDate(c) {
				v -= 2.5
			}
			if strings.HasSuffix(t.text, ":") && i < len(tokens)-1 {
				v -= 1.5
			}
		}
		if notAnalyte(name) {
			v -= 4
		}
	}
	return v
}

// factoredScore is the score of a value with its factor. It is lower than that of a number, so that a power of ten
// before /uL belongs to the unit.
const factoredScore = 2

func isComparator(text string) bool {
	return strings.ContainsAny(text, "<>") && strings.Trim(text, "<>=") == ""
}

func (s *search) valueContent(text string, n int) float64 {
	t := strings.TrimRight(strings.TrimSpace(text), ";,")
	if strings.HasPrefix(t, "(") && strings.HasSuffix(t, ")") && !reGrade.MatchString(t) {
		return impossible
	}
	switch valueShape(t, s.g.decimals) {
	case factorShape:
		return factoredScore
	case number1:
		if _, power := withExponent(toPoint(t, s.g.decimals)); power {
			return factoredScore
		}
		if looksLikeDate(t) {
			return impossible
		}
		if n > 2 && !strings.ContainsAny(t, "<>") {
			return impossible
		}
		v := 3.0
		if reReadable.MatchString(t) {
			v += 0.3
		}
		return v
	case wordShape:
		return 2.8 + 0.3*float64(n)
	case titerShape:
		return 3.4
	case gradeShape:
		if strings.Trim(t, "+-") == "" && !s.hasCol.has(rValue) {
			return 1
		}
		return 2.4
	case spanShape:
		return 1.4
	case noteShape:
		return 2 + 0.3*float64(n)
	}
	if n == 1 && s.g.decimals == Point && reOtherMark.MatchString(t) {
		return 2.4 // the value is kept as printed and is not sure
	}
	if s.g.image && n == 1 {
		if _, ok := repairNumber(t, s.g.decimals); ok {
			return 1.6
		}
	}
	return impossible
}

// reOtherMark matches a number that can only have a decimal comma: one, two or more than three digits follow the
// comma.
var reOtherMark = regexp.MustCompile(`^[<>]?\d+,(?:\d{1,2}|\d{4,})$`)

var reReadable = regexp.MustCompile(`^\d+[.,]\d+$`)

func (s *search) rangeContent(text string, n int) float64 {
	t := strings.TrimRight(strings.TrimSpace(toPointAll(text, s.g.decimals)), ";,")
	if looksLikeDate(strings.Trim(text, "()[]")) {
		return impossible
	}
	if strings.IndexFunc(t, fold.IsDigit) >= 0 {
		if bracket := strings.Count(t, "(") != strings.Count(t, ")"); bracket {
			return impossible
		}
	}
	if b, ok := s.g.bounds(t); ok {
		v := 3.6 + 0.05*float64(n)
		if b.Low == nil || b.High == nil {
			v -= 0.9
		}
		if strings.HasPrefix(t, "(") || strings.HasPrefix(t, "[") || refrange.WithoutLabel(t) != t {
			v++
		}
		if !b.any() {
			v -= 1.5
		}
		return v
	}
	inner := refrange.WithoutLabel(strings.Trim(t, "()[] "))
	switch valueShape(inner, s.g.decimals) {
	case wordShape:
		if n <= 5 {
			v := 1.5 + 0.3*float64(min(n, 3))
			if inner != t {
				v++
			}
			return v
		}
	case titerShape:
		return 1.9
	case gradeShape:
		if s.hasCol.has(rRange) {
			return 0.8
		}
	}
	return impossible
}
