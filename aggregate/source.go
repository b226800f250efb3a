package aggregate

import (
	"cmp"
	"slices"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// Source is who recorded a row: sources are chosen by these two.
type Source struct {
	Provider string                `json:"provider"`
	Type     healthdata.SourceType `json:"type"`
}

// Priority is a team's preference for a provider: the larger number wins between two
// sources of equal type. A provider without one has 0.
type Priority struct {
	// Provider is the slug of a provider or lab.
	Provider string
	// Data is what the preference is about: sleep, activity, body, workouts or
	// timeseries. Empty is everything that has no entry of its own.
	Data   string
	Number int
}

// order compares sources; the smallest is preferred. It is made of steps, each of
// which decides only where those before it are equal.
type order struct {
	overrides map[string]int
	numbers   map[string]int
}

// dataOf says which preferences a table goes by.
var dataOf = map[string]string{
	"sleep": "sleep", readinessTable: "sleep", "activity": "activity", "body": "body", "workout": "workouts", samplesTable: "timeseries",
}

func newOrder(overrides []string, priorities []Priority, table string) *order {
	o := &order{overrides: map[string]int{}, numbers: map[string]int{}}
	for i, s := range overrides {
		if _, ok := o.overrides[s]; !ok {
			o.overrides[s] = i
		}
	}
	for _, own := range [...]bool{false, true} {
		for _, p := range priorities {
			if own && p.Data != "" && p.Data == dataOf[table] || !own && p.Data == "" {
				o.numbers[p.Provider] = p.Number
			}
		}
	}
	return o
}

// steps is the order in which the rules decide. An override of the request comes
// before everything; then the type of the source, the team's number, the slug.
var steps = []struct {
	name    string
	compare func(o *order, a, b Source) int
}{
	{"override", func(o *order, a, b Source) int { return cmp.Compare(o.override(a), o.override(b)) }},
	{"source_type", func(_ *order, a, b Source) int { return compareTypes(a.Type, b.Type) }},
	{"team_priority", func(o *order, a, b Source) int { return cmp.Compare(o.numbers[b.Provider], o.numbers[a.Provider]) }},
	{"provider", func(_ *order, a, b Source) int { return cmp.Compare(a.Provider, b.Provider) }},
}

func (o *order) override(s Source) int {
	if i, ok := o.overrides[s.Provider]; ok {
		return i
	}
	return len(o.overrides)
}

func compareTypes(a, b healthdata.SourceType) int {
	return cmp.Or(cmp.Compare(a.Rank(), b.Rank()), cmp.Compare(a, b))
}

// compare returns which of two sources is preferred, and the rule that says so.
func (o *order) compare(a, b Source) (c int, rule string) {
	for _, s := range steps {
		if c := s.compare(o, a, b); c != 0 {
			return c, s.name
		}
	}
	return 0, ""
}

func (o *order) sort(list []Source) []Source {
	slices.SortFunc(list, func(a, b Source) int { c, _ := o.compare(a, b); return c })
	return slices.Compact(list)
}
