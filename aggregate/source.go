package aggregate

import (
	"cmp"
	"slices"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// Source is the provider and the source type of a row. The choice between sources depends on both.
type Source struct {
	Provider string                `json:"provider"`
	Type     healthdata.SourceType `json:"type"`
}

// Priority is a team's preference for a provider: of two sources with the same source type, the one with the larger
// Number is preferred. The number of a provider without a preference is 0.
type Priority struct {
	// Provider is the slug of a provider or lab.
	Provider string
	// Data is the kind of data: sleep, activity, body, workouts or timeseries. Empty applies to all kinds for which the
	// provider has no entry.
	Data   string
	Number int
}

// order compares sources; the smallest source is preferred. It applies several rules in order until one finds a
// difference.
type order struct {
	overrides map[string]int
	numbers   map[string]int
}

// dataOf is the kind of data of each table, for preferences.
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

// steps are the rules in the order in which they apply: the overrides of the request, the source type, the team's
// Priority, the slug of the provider.
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

// compare compares two sources: negative if a is preferred, positive if b is. rule is the name of the rule that
// decided.
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
