package labreport

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab/internal/fold"
)

// role is the kind of a part of a line, such as a name or a value.
type role uint8

const (
	rName role = iota
	rValue
	rFlag
	rUnit
	rRange
	rLow
	rHigh
	// a row has each of the roles above at most once, and the roles below any number of times
	rPrev
	rCode
	rNote
	rDate
	rOut // a value column for results outside the range
	roles
)

// headingRoles maps the keys of the list "heading" in the word files (data/words) to the roles of columns.
var headingRoles = map[string]role{"name": rName, "value": rValue, "outside": rOut, "flag": rFlag, "unit": rUnit, "range": rRange, "low": rLow, "high": rHigh,
	"previous": rPrev, "code": rCode, "note": rNote, "date": rDate}

// headWords maps column headings, in lower case without accents, to the roles of their columns.
var headWords = wordsBy("heading", headingRoles)

// headShapes is headWords with letters and digits that OCR confuses, such as O and 0, made equal.
var headShapes = func() map[string]role {
	out := map[string]role{}
	for _, phrase := range slices.Sorted(maps.Keys(headWords)) {
		shape := fold.Shape(phrase)
		if _, taken := out[shape]; !taken {
			out[shape] = headWords[phrase]
		}
	}
	return out
}()

// column is a column of a table with its role and position.
type column struct {
	role   role
	x0, x1 float64
	// printed is the date in the column's heading.
	printed string
	// unsure reports whether another dated column may be the current one.
	unsure bool
	// qualified reports whether the cell of the heading has a word that is not known: "Baseline result".
	qualified bool
	// second reports whether the column follows another column of results.
	second bool
}

// heading reads a line as the heading of a table. It returns nil if the line is not a heading.
func heading(l line) []column {
	var cols []column
	matched, total := 0, 0
	for _, cell := range l.cells() {
		var words []token
		for _, t := range cell {
			if len(fold.Words(t.text)) > 0 || strings.ContainsAny(t.text, "+-") && len(t.text) <= 3 {
				words = append(words, t)
			}
		}
		first, known := len(cols), 0
		for i := 0; i < len(words); {
			total++
			r, n := headPhrase(words[i:])
			if n == 0 {
				if i == 0 && (looksLikeDate(strings.Trim(words[0].text, "()")) || looksLikeDate(textOf(words))) {
					cols = append(cols, column{role: rDate, x0: words[i].x0, x1: words[len(words)-1].x1, printed: textOf(words[i:])})
					matched++
					i = len(words)
					continue
				}
				i++
				continue
			}
			matched += n
			known += n
			total += n - 1
			cols = append(cols, column{role: r, x0: words[i].x0, x1: words[i+n-1].x1})
			i += n
		}
		for i := range cols[first:] {
			cols[first+i].qualified = known < len(words)
		}
	}
	if len(cols) < 2 || float64(matched) < 0.6*float64(total) || !tableHeads(cols) {
		return nil
	}
	resolveSecondColumns(cols)
	return withoutParents(cols)
}

// tableHeads reports whether cols are the headings of a table of results. If no column is named as the result, it
// makes the column with the newest date the value column, and the other dated columns older results. If one is named
// so, it makes dated columns after the first column older results.
func tableHeads(cols []column) bool {
	has := map[role]int{}
	for _, c := range cols {
		has[c.role]++
	}
	// If results have dates as headings, the newest is current, unless there is also a column named result.
	if has[rValue] == 0 && has[rOut] == 0 && has[rDate] > 0 && (has[rName] > 0 || has[rUnit]+has[rRange] > 0) {
		at, sure := newest(cols)
		for i := range cols {
			if cols[i].role == rDate {
				cols[i].role = rPrev
			}
		}
		cols[at].role, cols[at].unsure = rValue, !sure
		has[rValue] = 1
	} else if has[rValue] > 0 && has[rDate] > 0 {
		for i := range cols {
			if cols[i].role == rDate && i > 0 {
				cols[i].role = rPrev
			}
		}
	}
	value := has[rValue] + has[rOut]
	if value == 0 && !(has[rName] > 0 && has[rRange] > 0 && has[rUnit] > 0) {
		return false
	}
	if value > 0 && has[rName] == 0 && has[rUnit] == 0 && has[rRange] == 0 && has[rLow] == 0 {
		return false
	}
	if has[rName]+has[rUnit]+has[rRange]+has[rLow]+has[rFlag] == 0 {
		return false
	}
	return true
}

// newest returns the column with the newest date. sure is false if the order of day and month matters, or if a
// date cannot be read; then it returns the first column.
func newest(cols []column) (at int, sure bool) {
	var found [2]int
	for k, order := range []dayOrder{dayFirst, monthFirst} {
		best := ""
		found[k] = -1
		for i, c := range cols {
			if c.role != rDate {
				continue
			}
			iso, _, _ := findDate(c.printed, order)
			if !reISODate.MatchString(iso) {
				found[k] = -1
				break
			}
			if iso > best {
				found[k], best = i, iso
			}
		}
	}
	if found[0] >= 0 && found[0] == found[1] {
		return found[0], true
	}
	first := slices.IndexFunc(cols, func(c column) bool { return c.role == rDate })
	single := !slices.ContainsFunc(cols[first+1:], func(c column) bool { return c.role == rDate })
	return first, single
}

var reISODate = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)

// resolveSecondColumns makes a second value column an older result, and a second name column a
// note.
func resolveSecondColumns(cols []column) {
	rOutThere := hasRoleExactly(cols, rOut)
	// A second value column is an older result. If one of the two has another word, either may be the older one.
	first := -1
	for i := range cols {
		if cols[i].role != rValue {
			continue
		}
		if first >= 0 && !rOutThere {
			// An older result, or the interpretation of the first column ("Result Interpretation").
			cols[i].role, cols[i].second = rPrev, true
			cols[first].unsure = cols[first].unsure || cols[first].qualified || cols[i].qualified
		}
		if first < 0 {
			first = i
		}
	}
	named := false
	for i := range cols {
		if cols[i].role == rName {
			if named {
				cols[i].role = rNote
			}
			named = true
		}
	}
}

func hasRoleExactly(cols []column, r role) bool {
	return slices.ContainsFunc(cols, func(c column) bool { return c.role == r })
}

func withoutParents(cols []column) []column {
	if !hasRoleExactly(cols, rLow) || !hasRoleExactly(cols, rHigh) {
		return cols
	}
	return slices.DeleteFunc(cols, func(c column) bool { return c.role == rRange })
}

func headPhrase(words []token) (role, int) {
	for n := min(4, len(words)); n > 0; n-- {
		var parts []string
		for _, w := range words[:n] {
			f := fold.Words(w.text)
			if len(f) == 0 {
				f = []string{w.text}
			}
			parts = append(parts, f...)
		}
		phrase := strings.Join(parts, " ")
		if r, ok := headWords[phrase]; ok {
			return r, n
		}
		if r, ok := headShapes[fold.Shape(phrase)]; ok && len(phrase) >= 5 {
			return r, n
		}
	}
	return 0, 0
}

// columnOf returns the index of the column nearest to the horizontal extent x0 to x1, and the distance from it in
// line heights h; -1 if there are no columns.
func columnOf(cols []column, x0, x1, h float64) (int, float64) {
	best, bestCost := -1, math.Inf(1)
	for i, c := range cols {
		cost := min(math.Abs(x0-c.x0), math.Abs(x1-c.x1), math.Abs((x0+x1-c.x0-c.x1)/2))
		if x0 < c.x1 && c.x0 < x1 {
			cost -= 0.6 * h
		} else {
			cost += 0.3 * h
		}
		if cost < bestCost {
			best, bestCost = i, cost
		}
	}
	if best < 0 {
		return -1, 0
	}
	return best, bestCost / max(h, 1e-9)
}

// valueAmongRanges reports, for a row from a picture, whether its value is where at least two and at least half of the
// ranges of other rows of the page are, and no other row has its value. Then OCR missed the value, and the text in its
// field is a part of a range or of another row.
func (d *document) valueAmongRanges(r *row) bool {
	value := r.p.find(rValue)
	if !d.pages[r.p.line.page].Image || len(value) == 0 {
		return false
	}
	from, to := extentOf(value)
	below := func(tokens []token) bool {
		start, end := extentOf(tokens)
		return len(tokens) > 0 && start < to && end > from
	}
	ranges, over := 0, 0
	for i := range d.rows {
		o := &d.rows[i]
		switch {
		case o == r || o.p.line.page != r.p.line.page:
		case below(o.p.find(rValue)):
			return false
		case len(o.refToks) > 0:
			ranges++
			if below(o.refToks) {
				over++
			}
		}
	}
	return over >= 2 && 2*over >= ranges
}

// extentOf returns the left and the right end of words.
func extentOf(tokens []token) (from, to float64) {
	from, to = math.Inf(1), math.Inf(-1)
	for _, t := range tokens {
		from, to = min(from, t.x0), max(to, t.x1)
	}
	return from, to
}
