package labreport

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

// ValueType is the class of a value, as published.
type ValueType string

// Value types. The first that fits is taken, in this order.
const (
	Numeric    ValueType = "numeric"
	Percentage ValueType = "percentage"
	RangeValue ValueType = "range"
	Ratio      ValueType = "ratio"
	Boolean    ValueType = "boolean"
	Duration   ValueType = "duration"
	Comment    ValueType = "comment"
)

// Decimals is how a document writes its numbers. It is decided once for the whole
// document.
type Decimals uint8

const (
	// Undecided means that no number shows it; numbers are read with a point.
	Undecided Decimals = iota
	// Point writes 1,234.5.
	Point
	// Comma writes 1.234,5.
	Comma
)

const (
	numPattern     = `[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?`
	groupedPattern = `[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?`
	cmpPattern     = `(?:<=|>=|=<|=>|≤|≥|[<>]\s*[oO][rR]\s*=|<|>|~|≈)`
)

var (
	reNum      = regexp.MustCompile(`^` + numPattern + `$`)
	reGrouped  = regexp.MustCompile(`^` + groupedPattern + `$`)
	reCmp      = regexp.MustCompile(`^(` + cmpPattern + `)\s*(` + numPattern + `|` + groupedPattern + `)$`)
	reSpan     = regexp.MustCompile(`^(` + numPattern + `|` + groupedPattern + `)\s*(?:-|–| to )\s*(` + numPattern + `|` + groupedPattern + `)$`)
	reRatio    = regexp.MustCompile(`^` + numPattern + `\s*/\s*` + numPattern + `$`)
	reDuration = regexp.MustCompile(`(?i)^` + numPattern + `\s*(?:h|hrs?|hours?|mins?|minutes?|s|secs?|seconds?)$`)
	reClock    = regexp.MustCompile(`^\d{1,2}:\d{2}(?::\d{2})?$`)
	reTiter    = regexp.MustCompile(`^(?:[<>]=?|≤|≥)?\s*1\s*:\s*\d{1,6}$`)
	reGrade    = regexp.MustCompile(`^(?:[1-4]\s?\+|\+{1,4}|\(\+\)|\+/-|\+\s?/\s?-|\+[1-4]|[-–]{1,3}|\(-\))$`)
)

// TypeOf returns the type of a value and the value as it is published: commas that
// only group digits are removed from numbers. unit is the printed unit, which decides
// whether 12:30 is a duration.
func TypeOf(value, unit string) (ValueType, string) {
	v := strings.Join(strings.Fields(value), " ")
	switch {
	case reNum.MatchString(v):
		return Numeric, v
	case reGrouped.MatchString(v):
		return Numeric, strings.ReplaceAll(v, ",", "")
	case strings.Contains(v, "%") && strings.IndexFunc(v, isDigit) >= 0:
		return Percentage, v
	case reCmp.MatchString(v), reSpan.MatchString(v):
		return RangeValue, v
	case reRatio.MatchString(v):
		return Ratio, v
	case isBoolean(v):
		return Boolean, v
	case reDuration.MatchString(v), reClock.MatchString(v) && timeUnit(unit):
		return Duration, v
	}
	return Comment, v
}

func isBoolean(v string) bool {
	switch strings.ToLower(v) {
	case "true", "false", "yes", "no", "positive", "negative":
		return true
	}
	return false
}

func timeUnit(unit string) bool {
	switch strings.ToLower(strings.Trim(unit, ". ")) {
	case "h", "hr", "hrs", "hour", "hours", "min", "mins", "minute", "minutes", "s", "sec", "secs", "second", "seconds", "h:min", "min:s", "hh:mm":
		return true
	}
	return false
}

var (
	reCommaDecimal = regexp.MustCompile(`^[<>≤≥=~(\[]*[+-]?\d+,\d{1,2}[)\]]?$|^[<>≤≥=~]*0,\d+$|^[<>≤≥=~]*\d{4,},\d+$`)
	rePointDecimal = regexp.MustCompile(`^[<>≤≥=~(\[]*[+-]?\d+\.\d{1,2}[)\]]?$|^[<>≤≥=~]*0\.\d+$|^[<>≤≥=~]*\d{4,}\.\d+$`)
	reAnyNumber    = regexp.MustCompile(`\d[\d.,]*\d|\d`)
)

// decimalsOf decides how the numbers among the texts are written: by the majority of
// numbers that can be read in one way only.
func decimalsOf(texts []string) Decimals {
	comma, point := 0, 0
	for _, t := range texts {
		if looksLikeDate(t) {
			continue
		}
		for _, part := range reAnyNumber.FindAllString(t, -1) {
			switch {
			case strings.Count(part, ".")+strings.Count(part, ",") > 1:
				if i, j := strings.LastIndexByte(part, ','), strings.LastIndexByte(part, '.'); i > j && j >= 0 {
					comma++
				} else if j > i && i >= 0 {
					point++
				}
			case reCommaDecimal.MatchString(part):
				comma++
			case rePointDecimal.MatchString(part):
				point++
			}
		}
	}
	switch {
	case comma == 0 && point == 0:
		return Undecided
	case comma > point:
		return Comma
	}
	return Point
}

var (
	reCommaNumber = regexp.MustCompile(`\d{1,3}(?:\.\d{3})+(?:,\d+)?|\d+,\d+`)
	reApostrophe  = regexp.MustCompile(`(\d)['’](\d{3})`)
	reSpaceGroup  = regexp.MustCompile(`^([<>≤≥=~]*\s*[+-]?\d{1,3})((?: \d{3})+)((?:[.,]\d+)?)$`)
)

// toPoint rewrites the numbers of s with a decimal point and without group marks.
func toPoint(s string, d Decimals) string {
	if strings.ContainsAny(s, "'’") {
		s = reApostrophe.ReplaceAllString(s, "$1$2")
	}
	if strings.IndexByte(s, ' ') > 0 {
		if m := reSpaceGroup.FindStringSubmatch(s); m != nil {
			s = m[1] + strings.ReplaceAll(m[2], " ", "") + m[3]
		}
	}
	if d != Comma || !strings.ContainsAny(s, ".,") {
		return s
	}
	return reCommaNumber.ReplaceAllStringFunc(s, func(n string) string {
		return strings.Replace(strings.ReplaceAll(n, ".", ""), ",", ".", 1)
	})
}

// number reads one number that is written with a point.
func number(s string) (float64, bool) {
	v, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimSpace(s), ",", ""), 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// words that stand for a value. Keys are folded; the value is the class that two
// words must share to mean the same.
var valueWords = lists(map[string]string{
	"negative": "negative|neg|nonreactive|non reactive|not detected|none detected|none seen|not seen|none|absent|undetected|not present|non detected|nil|no growth|negativ|nicht nachweisbar|nicht nachgewiesen|nicht reaktiv|" +
		"nichtreaktiv|keine|nicht detektiert|unauffallig|n n|nn|o b|negativo|negativa|no reactivo|no reactiva|no detectado|no detectada|ausente|ausentes|ausencia|no se observan|no se observa|no contiene|no presenta|negatif|negative ou inf seuil|negatifs|non reactif|non detecte|" +
		"non detectee|absence|absent|absente|absents|neant|nulle|not isolated|no se detecta|indetectable|undetectable|non reactive ab|nonreactive ab|neg",
	"positive": "positive|pos|reactive|detected|present|positiv|reaktiv|nachweisbar|nachgewiesen|positivo|positiva|reactivo|reactiva|detectado|detectada|presente|presentes|presencia|positif|reactif|detecte|" +
		"detectee|presence|presents|presente|seen|schwach positiv|weakly positive|weak positive|debil positivo|strongly positive|positif faible",
	"trace":     "trace|traces|spur|spuren|trazas|indicios|tr|vestigios",
	"clear":     "clear|klar|transparente|limpido|limpide|transparent|limpio",
	"yellow":    "yellow|gelb|amarillo|jaune|light yellow|pale yellow|straw|strohgelb|hellgelb|bernsteinfarben|amarillo claro|amarillo palido|jaune pale|jaune clair|amarilla|amarillo pajizo|amarillo ambar",
	"colour":    "amber|dark yellow|dunkelgelb|orange|red|rot|brown|braun|colorless|farblos|incoloro|incolore|pink|rojo|rouge|dark|ambar|ambre",
	"cloudy":    "cloudy|turbid|hazy|slightly cloudy|trub|leicht trub|turbio|ligeramente turbio|trouble|legerement trouble|slightly hazy|sl cloudy|opalescent",
	"amount":    "few|moderate|many|rare|occasional|some|abundant|scant|massig|vereinzelt|wenige|massenhaft|zahlreich|reichlich|escasos|escasas|escasa|algunas|algunos|moderados|moderadas|moderada|abundantes|rares|quelques|nombreux|nombreuses|large|small|moderate amount|moderes|assez nombreux",
	"normal":    "normal|normale|normales|unremarkable|wnl|norm|within normal limits",
	"abnormal":  "abnormal|auffallig|anormal",
	"between":   "indeterminate|equivocal|borderline|inconclusive|grenzwertig|fraglich|indeterminado|dudoso|douteux|grauzone|indetermine|limite|inconcluyente|zweifelhaft",
	"immune":    "immune|inmune|immun",
	"notimmune": "non immune|not immune|no inmune|nicht immun",
	"type":      "a positive|b positive|o positive|ab positive|a negative|b negative|o negative|ab negative|a pos|b pos|o pos|ab pos|a neg|b neg|o neg|ab neg|rh positive|rh negative|a rh positive|o rh positive|b rh positive",
	"none":      "see note|see below|see comment|tnp|qns|pending|duplicate|cancelled|canceled|not performed|test not performed|hemolyzed|haemolysed|folgt|siehe unten|siehe text|pendiente|en curso|en cours|ver nota|voir note|not applicable|n a|na|not reported|not calculated|not done|specimen rejected|ausstehend|s text|material fehlt|muestra insuficiente|unsatisfactory|clotted|siehe kommentar|nicht berechenbar|no calculable|nicht durchgefuhrt|anulado|cancelado|unable to calculate|to follow|in progress|see report|ver informe",
})

// valueClass returns the class of a value in words, and whether it is one.
func valueClass(s string) (string, bool) {
	t := strings.Trim(strings.TrimSpace(s), "*!.()[]")
	c, ok := valueWords[fold(t)]
	return c, ok
}

// shape says what a text can be as a value.
type shape uint8

const (
	noValue   shape = iota
	number1         // a number, perhaps with a comparator
	spanShape       // 0-5
	titerShape
	gradeShape
	wordShape // a known word
	noteShape // known words that say why there is no value
)

// valueShape classifies a text that may stand in a value column. The number is
// written as in the document.
func valueShape(s string, d Decimals) shape {
	s = strings.TrimSpace(strings.Trim(strings.TrimSpace(plainMarks(s)), "*!"))
	if s == "" || len(s) > 60 {
		return noValue
	}
	if strings.IndexByte(s, ':') > 0 && reTiter.MatchString(s) {
		return titerShape
	}
	if strings.ContainsAny(s, "+-") && reGrade.MatchString(s) {
		return gradeShape
	}
	if c, ok := valueClass(s); ok {
		if c == "none" {
			return noteShape
		}
		return wordShape
	}
	if strings.IndexFunc(s, isDigit) < 0 {
		return noValue
	}
	p := toPoint(s, d)
	switch {
	case reNum.MatchString(p), reGrouped.MatchString(p), reCmp.MatchString(p):
		return number1
	case reSpan.MatchString(p):
		return spanShape
	}
	return noValue
}

// plainMarks writes comparators and dashes in ASCII.
func plainMarks(s string) string { return marks.Replace(s) }

var marks = strings.NewReplacer("≤", "<=", "≥", ">=", "⩽", "<=", "⩾", ">=", "–", "-", "—", "-", "−", "-", "‐", "-", "‑", "-", "\u00a0", " ", "＜", "<", "＞", ">", "›", ">", "‹", "<")

var reDateLike = regexp.MustCompile(`^\(?\d{1,4}[./-]\d{1,2}[./-]\d{2,4}\)?[,;]?$|^\d{1,2}[./ -](?i:jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez|ene|abr|ago|dic|fév|avr|aoû|déc)[a-zäéû]*\.?[./ -]\d{2,4}$|^\d{1,2}\.\d{1,2}\.$`)

func looksLikeDate(s string) bool {
	s = strings.TrimSpace(s)
	return len(s) <= 40 && strings.IndexFunc(s, isDigit) >= 0 && strings.ContainsAny(s, "./- ") && reDateLike.MatchString(s)
}
