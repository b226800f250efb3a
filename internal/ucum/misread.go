package ucum

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab/internal/fold"
)

// Repair returns the only known unit that a misread text can stand for, and the unit's usual printed form. First it
// looks for a unit that has the same letters once similar glyphs (l, 1, /) are made equal, then for one at an edit
// distance of one. It never changes digits of an exponent. ok is false if none or several fit.
func Repair(printed string) (unit Unit, better string, ok bool) {
	t := units()
	code, better, ok := t.repair(printed)
	return Unit{UCUM: code, kind: kindOf(code)}, t.usualForm(better), ok
}

// Misread reports whether a text may be a unit in which a reader of pictures misread some letters.
func Misread(text string) bool {
	low := strings.ToLower(text)
	_, _, ok := units().repair(text)
	return ok || readsAsShort(text) || rePower.MatchString(strings.Trim(low, "()")) || reFiltration.MatchString(low)
}

// Ambiguous reports whether a text that is a valid unit may also be a misread form of another unit.
func Ambiguous(text string) bool {
	return readsAsShort(text) || reMisreadMicro.MatchString(strings.ToLower(text))
}

func (t *printedUnits) repair(printed string) (ucum, better string, ok bool) {
	key := strings.ToLower(unitKey(printed))
	if len(key) < 3 || uncertain(key) {
		return "", "", false
	}
	look := glyphs(key)
	found, clear := t.uniqueMatch(len(key), func(have form) bool { return have.look == look })
	if found == "" && clear && len(key) >= 4 {
		found, clear = t.uniqueMatch(len(key), func(have form) bool {
			return strings.IndexFunc(have.text, fold.IsDigit) < 0 && fold.Distance(look, have.look, 1) <= 1
		})
	}
	if found == "" || !clear {
		return "", "", false
	}
	return t.folded[found], found, true
}

// uniqueMatch returns a known form, of length-1 to length+1 bytes, for which fits is true; the shortest if there are
// several. clear is false if they belong to different units.
func (t *printedUnits) uniqueMatch(length int, fits func(form) bool) (found string, clear bool) {
	for _, n := range []int{length - 1, length, length + 1} {
		for _, have := range t.byLength[n] {
			switch {
			case !fits(have):
			case found == "":
				found = have.text
			case t.folded[found] != t.folded[have.text]:
				return "", false
			}
		}
	}
	return found, true
}

// RepairAmong returns the printed form of the unit that a misread text stands for, chosen from own, the UCUM codes
// of the analyte's units. ok is false unless one of them alone has the smallest edit distance.
func RepairAmong(printed string, own []string) (better string, ok bool) {
	t := units()
	better, ok = t.repairAmong(printed, own)
	return t.usualForm(better), ok
}

func (t *printedUnits) repairAmong(printed string, own []string) (better string, ok bool) {
	key := strings.ToLower(strings.Trim(strings.ReplaceAll(fold.Plain(printed), " ", ""), "()[],;:"))
	for _, short := range shortUnits {
		if short.re.MatchString(key) && slices.ContainsFunc(own, func(u string) bool { return slices.Contains(short.ucum, u) }) {
			return short.form, true
		}
	}
	if len(key) < 3 || uncertain(key) {
		return "", false
	}
	if m := rePower.FindStringSubmatch(key); m != nil {
		return "x10^" + m[1] + "/" + map[string]string{"ul": "uL", "ui": "uL", "mm3": "mm3", "l": "L"}[m[2]], true
	}
	if reFiltration.MatchString(key) {
		if strings.Contains(key, ",") {
			return "ml/min/1,73m2", true
		}
		return "ml/min/1.73m2", true
	}
	best, at := 3, ""
	for _, ucum := range slices.Sorted(maps.Keys(t.forms)) {
		if !IsAmong(ucum, own) {
			continue
		}
		for _, form := range t.forms[ucum] {
			// Skip units with another size prefix: a misread ng must not become ug.
			look := glyphs(form)
			if len(form) < 4 || sizeLetter(form) != sizeLetter(key) && !reMisreadMicro.MatchString(key) && look != glyphs(key) {
				continue
			}
			switch d := fold.Distance(glyphs(key), look, 2); {
			case d < best:
				best, at = d, form
			case d == best && at != "" && t.folded[strings.ToLower(unitKey(at))] != ucum:
				at = ""
			}
		}
	}
	if at == "" || best > 1 && len(key) < 6 {
		return "", false
	}
	return at, true
}

// IsAmong reports whether results of an analyte may have the unit code; own are the UCUM codes of the analyte's
// units. Laboratories write U both for enzyme units and for international units, so if one of these is among own,
// the other is allowed too, without a conversion.
func IsAmong(code string, own []string) bool {
	enzyme := enzymeUnits.Replace(code)
	return slices.ContainsFunc(own, func(u string) bool { return Same(u, code) || Same(enzymeUnits.Replace(u), enzyme) })
}

var enzymeUnits = strings.NewReplacer("[IU]", "U", "[iU]", "U")

type shortUnit struct {
	re   *regexp.Regexp
	ucum []string
	form string
}

// shortUnits are patterns for misread units of three letters, in which the slash or the l after it was lost or read
// as another thin letter. They are corrected only to a unit that the analyte has.
var shortUnits = []shortUnit{
	{regexp.MustCompile("^u[il1|!/n]{0,2}[il1|!]?$"), []string{"U/L", "[IU]/L"}, "U/L"},
	{regexp.MustCompile("^[gyq9][il1|!/]?[da][il1|!]$"), []string{"g/dL"}, "g/dL"},
	{regexp.MustCompile("^[jil1|!/][uµp][il1|!]$"), []string{"/uL", "{cells}/uL", "10*3/uL", "10*9/L"}, "/uL"},
}

func readsAsShort(text string) bool {
	key := strings.ToLower(strings.Trim(text, "()[],;:"))
	return slices.ContainsFunc(shortUnits, func(s shortUnit) bool { return s.re.MatchString(key) })
}

// reFiltration matches correct and misread forms of mL/min/1.73m2, the unit of a filtration rate.
var reFiltration = regexp.MustCompile("^m[l1i|!]{0,2}/m[il1|!]n/[1il|][.,]?7[3s]")

func sizeLetter(unit string) byte {
	if strings.HasPrefix(unit, "mc") {
		return 'u'
	}
	return glyphs(unit[:1] + " ")[0]
}

// rePower matches a power of ten per volume, such as x10^3/uL, whose caret may be misread.
var rePower = regexp.MustCompile("^x?10[^0-9/]{0,2}[47]?(3|6|9|12)/(ul|ui|mm3|l)$")

// reMisreadMicro matches units whose first letter may be a misread µ: w, h and k.
var reMisreadMicro = regexp.MustCompile(`^(?:w|[hk]g[/l])`)

func glyphs(s string) string { return lookAlike.Replace(s) }

var lookAlike = strings.NewReplacer("rn", "m", "ow", "oll", "/", "l", "v", "u", "i", "l", "1", "l", "|", "l", "!", "l", "\\", "l", "t", "l", "j", "l", "0", "o", "p", "u", "y", "u", "q", "g", "9", "g", "°", "", "\"", "", "'", "", "*", "", "^", "", "(", "", ")", "", ".", "")
