package refrange

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/fold"
)

// Group is a range for some people, from a list by sex, age, pregnancy or fasting.
type Group struct {
	// Name is the laboratory's name of the group, such as "Female 18-60 years".
	Name  string
	Range Range

	is condition
}

// Sex is female or male; empty if it is not known or neither.
type Sex string

// The sexes in lists of ranges.
const (
	Female Sex = "female"
	Male   Sex = "male"
)

// Person has the known facts about a person on the day of a sample. A zero or nil field is not known.
type Person struct {
	Sex               Sex
	Born, On          healthlab.Date
	Pregnant, Fasting *bool
}

// condition is what a person must be to belong to a group. A zero or nil part is not required.
type condition struct {
	sex               Sex
	age               []bound
	pregnant, fasting *bool
	unclear           bool // the condition has a part that was not read
}

// bound is an end of an age range, in completed units.
type bound struct {
	unit    string // day, week, month or year
	n       int
	upper   bool
	open    bool // "more than 60 years" and "up to 60 years" may or may not include an age of 60 and a half
	exclude bool // "under 18" excludes 18
}

// answer is true, false or unknown.
type answer int8

const (
	no answer = iota - 1
	unknown
	yes
)

// Groups parses a list of ranges by sex, age, pregnancy or fasting: "M: 13-17; F: 12-15", "Adults (>= 18 years)
// 3.5-5.1, children 3.4-4.7". It returns false if it cannot read a part of the list. result is the result's value:
// like [ParseBeside], Groups uses it to decide whether a comma is a decimal mark.
func Groups(text, result string) ([]Group, bool) {
	const most = 1000
	text, ok := withDecimalPoints(text, result)
	if !ok || len(text) > most || strings.IndexFunc(text, fold.IsDigit) < 0 {
		return nil, false
	}
	var out []Group
	for _, entry := range entries(PlainMarks(text)) {
		g, ok := readGroup(entry)
		if !ok {
			return nil, false
		}
		out = append(out, g)
	}
	return out, len(out) > 0
}

// Choose returns the group of a person. It returns false if no group matches, if several match and none is more
// specific than all others, or if a required fact is not known.
func Choose(groups []Group, p Person) (Group, bool) {
	var holds, perhaps []Group
	for _, g := range groups {
		switch g.is.of(&p) {
		case yes:
			holds = append(holds, g)
		case unknown:
			perhaps = append(perhaps, g)
		}
	}
	for i := range holds {
		others := slices.Concat(holds[:i], holds[i+1:], perhaps)
		if !slices.ContainsFunc(others, func(o Group) bool { return !holds[i].is.narrower(&o.is) }) {
			return holds[i], true
		}
	}
	return Group{}, false
}

// of reports whether a person meets the condition. The answer is no if a known fact contradicts it, otherwise unknown
// if a required fact about the person is missing or the condition is unclear.
func (c *condition) of(p *Person) answer {
	out := yes
	and := func(a answer) { out = min(out, a) }
	if c.sex != "" {
		and(known(p.Sex != "", p.Sex == c.sex))
	}
	for _, b := range c.age {
		and(b.of(p.Born, p.On))
	}
	if c.pregnant != nil {
		switch {
		case p.Sex == Male:
			and(known(true, !*c.pregnant))
		default:
			and(known(p.Pregnant != nil, p.Pregnant != nil && *p.Pregnant == *c.pregnant))
		}
	}
	if c.fasting != nil {
		and(known(p.Fasting != nil, p.Fasting != nil && *p.Fasting == *c.fasting))
	}
	if c.unclear {
		and(unknown)
	}
	return out
}

func known(is, holds bool) answer {
	switch {
	case !is:
		return unknown
	case holds:
		return yes
	}
	return no
}

func (c *condition) narrower(o *condition) bool {
	includes := (o.sex == "" || o.sex == c.allSex()) && (len(o.age) == 0 || slices.Equal(o.age, c.age)) &&
		(o.pregnant == nil || equalNonNil(o.pregnant, c.pregnant)) && (o.fasting == nil || equalNonNil(o.fasting, c.fasting)) && !o.unclear
	return includes && c.count() > o.count()
}

func (c *condition) allSex() Sex {
	if c.pregnant != nil && *c.pregnant {
		return Female
	}
	return c.sex
}

func equalNonNil(a, b *bool) bool { return a != nil && b != nil && *a == *b }

// count returns the number of parts of a condition.
func (c *condition) count() int {
	n := min(len(c.age), 1)
	for _, is := range []bool{c.allSex() != "", c.pregnant != nil, c.fasting != nil} {
		if is {
			n++
		}
	}
	return n
}

// of reports whether the age of a person born on one date, on another date, is within the bound. The answer is
// unknown if a date is missing, if on is before born, or if the bound leaves this age open.
func (b bound) of(born, on healthlab.Date) answer {
	if born.IsZero() || on.IsZero() || on.Before(born) {
		return unknown
	}
	age := completedAge(born, on, b.unit)
	switch {
	case age == b.n && b.open:
		return unknown
	case b.upper && b.exclude:
		return known(true, age < b.n)
	case b.upper:
		return known(true, age <= b.n)
	}
	return known(true, age >= b.n)
}

// completedAge returns a person's age on a date in completed days, weeks, months or years, as unit says.
func completedAge(born, on healthlab.Date, unit string) int {
	from, to := born.At(time.UTC), on.At(time.UTC)
	days := int(to.Sub(from) / (24 * time.Hour))
	months := (to.Year()-from.Year())*12 + int(to.Month()-from.Month())
	if to.Day() < from.Day() {
		months--
	}
	switch unit {
	case "day":
		return days
	case "week":
		return days / 7
	case "month":
		return months
	}
	return months / 12
}

var (
	reAge = regexp.MustCompile(`(?i)\(?\s*(?:\b(?:aged?|alter|edad)\s*:?\s*)?(<=|>=|<|>|(?:under|over|above|below|from|ab|bis|über|unter)\b)?\s*\b(\d{1,3})\s*(?:(?:-|to|bis|a|à)\s*(\d{1,3}))?\s*(\+)?\s*(` +
		ageUnits + `)\b\.?(?:\s*(?:old|of age|alt)\b)?(\s*(?:(?:and|und|or|oder)\s+)?(?:older|over|above|up|älter|mehr)\b|\s*\+)?\s*\)?`)
	reBetweenGroups = regexp.MustCompile(`[\n;|]|,\s+|\s/\s`)
	reGroupWord     = regexp.MustCompile(`\d[\d.]*|[\pL]+(?:-[\pL]+)?|` + ageMark)
)

const ageUnits = `years?|yrs?|yo|y/o|y|months?|mths?|mos?|weeks?|wks?|days?|jahren?|jahre|monaten?|wochen?|tagen?|anos?|años?|meses|mes|semanas?|dias?|días?|ans?|mois|semaines?|jours?`

// ageMark replaces an age in a text: a character that no report has.
const ageMark = "\uE000"

// entry is one group of a list, with its ages replaced by a mark.
type entry struct {
	plain string
	ages  [][]string // matches of reAge
}

func (e *entry) name(label string) string {
	for _, m := range e.ages {
		label = strings.Replace(label, ageMark, strings.TrimSpace(m[0]), 1)
	}
	return strings.Trim(strings.Join(strings.Fields(label), " "), " :=.,-")
}

// entries splits a list into its groups.
func entries(text string) []entry {
	ages := reAge.FindAllStringSubmatch(text, -1)
	plain := reAge.ReplaceAllString(text, " "+ageMark+" ")
	var out []entry
	for _, part := range reBetweenGroups.Split(plain, -1) {
		for _, one := range cutAtGroups(part) {
			n := strings.Count(one, ageMark)
			if strings.Trim(one, " .,") != "" {
				out = append(out, entry{one, ages[:n]})
			}
			ages = ages[n:]
		}
	}
	return out
}

// cutAtGroups splits a line before each word of a group or age that follows a range.
func cutAtGroups(line string) []string {
	var out []string
	from, ranged := 0, false
	for _, at := range reGroupWord.FindAllStringIndex(line, -1) {
		word := line[at[0]:at[1]]
		switch {
		case fold.IsDigit(rune(word[0])):
			ranged = true
		case ranged && (word == ageMark || groupMeanings[fold.String(word)] != nil):
			out = append(out, line[from:at[0]])
			from, ranged = at[0], false
		}
	}
	return append(out, line[from:])
}

// readGroup reads one entry of a list, such as "Male 18-60 years: 13-17 g/dL". It returns false if the entry has no
// range or no name. A word of the name that it does not know sets unclear.
func readGroup(e entry) (Group, bool) {
	label, r, ok := labelled(e.plain)
	if !ok || !r.Any() {
		return Group{}, false
	}
	g := Group{Name: e.name(label), Range: r}
	for _, w := range reGroupWord.FindAllString(label, -1) {
		switch meaning := groupMeanings[fold.String(w)]; {
		case meaning != nil:
			meaning(&g.is)
		case w != ageMark && !fillers[fold.String(w)]:
			g.is.unclear = true
		}
	}
	for _, m := range e.ages {
		g.is.age = append(g.is.age, boundsOf(m)...)
	}
	return g, g.Name != ""
}

// labelled splits an entry into its label and the longest range at its end.
func labelled(text string) (label string, r Range, ok bool) {
	for _, at := range reGroupWord.FindAllStringIndex(text, -1) {
		start := at[0]
		for start > 0 && strings.ContainsRune("<>=(.+- ", rune(text[start-1])) {
			start--
		}
		if !fold.IsDigit(rune(text[at[0]])) && !rangeWords[fold.String(text[at[0]:at[1]])] {
			continue
		}
		if r, ok := oneRange(text[start:]); ok {
			return text[:start], r, !namesGroup(text[start:])
		}
	}
	return "", Range{}, false
}

func namesGroup(text string) bool {
	return slices.ContainsFunc(reGroupWord.FindAllString(text, -1), func(w string) bool { return w == ageMark || groupMeanings[fold.String(w)] != nil })
}

// boundsOf parses an age from a match of reAge.
func boundsOf(m []string) []bound {
	sign, low, high, plus, unit, older := strings.ToLower(m[1]), m[2], m[3], m[4], ageUnit(m[5]), m[6]
	n, _ := strconv.Atoi(low)
	switch {
	case high != "":
		to, _ := strconv.Atoi(high)
		return []bound{{unit: unit, n: n}, {unit: unit, n: to, upper: true}}
	case plus != "" || older != "":
		return []bound{{unit: unit, n: n}}
	}
	switch sign {
	case ">=", "from", "ab":
		return []bound{{unit: unit, n: n}}
	case ">", "over", "above", "über":
		return []bound{{unit: unit, n: n, open: true}}
	case "<", "under", "below", "unter":
		return []bound{{unit: unit, n: n, upper: true, exclude: true}}
	case "<=", "bis":
		return []bound{{unit: unit, n: n, upper: true, open: true}}
	}
	return []bound{{unit: unit, n: n}, {unit: unit, n: n, upper: true}}
}

// ageUnit returns day, week, month or year.
func ageUnit(word string) string {
	w := fold.String(word)
	for unit, starts := range map[string]string{"day": "d t jo", "week": "w s", "month": "m"} {
		for _, s := range strings.Fields(starts) {
			if strings.HasPrefix(w, s) {
				return unit
			}
		}
	}
	return "year"
}

// groupMeanings has the words in labels, without case and accents, with their conditions.
var groupMeanings = func() map[string]func(*condition) {
	out := map[string]func(*condition){}
	all := func(words string, meaning func(*condition)) {
		for _, w := range strings.Fields(words) {
			out[fold.String(w)] = meaning
		}
	}
	of := func(sex Sex) func(*condition) {
		return func(c *condition) {
			c.unclear = c.unclear || c.sex != "" && c.sex != sex
			c.sex = sex
		}
	}
	all("female females women woman f frauen frau weiblich w mujer mujeres hembras femenino femme femmes", of(Female))
	all("male males men man m männer mann männlich hombre hombres varones masculino homme hommes", of(Male))
	all("adult adults erwachsene adulto adultos adulte adultes", func(c *condition) { c.age = append(c.age, bound{unit: "year", n: 18}) })
	all("child children kinder kind niños enfants", func(c *condition) {
		c.age = append(c.age, bound{unit: "year", n: 18, upper: true, exclude: true})
	})
	all("pregnant pregnancy schwanger schwangere embarazada embarazadas enceinte enceintes", func(c *condition) { c.pregnant = new(true) })
	all("nonpregnant non-pregnant", func(c *condition) { c.pregnant = new(false) })
	all("fasting nüchtern ayunas", func(c *condition) { c.fasting = new(true) })
	all("nonfasting non-fasting random postprandial", func(c *condition) { c.fasting = new(false) })
	all("follicular luteal midcycle postmenopausal premenopausal follikelphase lutealphase trimester trimestre trimenon", func(c *condition) {
		of(Female)(c)
		c.unclear = true
	})
	return out
}()

// fillers are words in labels without a meaning.
var fillers = fold.Set(`reference range ranges ref normal values value and of the in old age aged years`)

// rangeWords are words at the start of a range in words.
var rangeWords = fold.Set(`less lower smaller up below under greater more higher at above over between bis unter über zwischen mindestens hasta menor mayor entre max min`)
