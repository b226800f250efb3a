package aggregate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// Explanation describes how one result was computed and from which sources.
type Explanation struct {
	// Query is the query as the service understood it.
	Query Query `json:"query"`
	// Table is the table of the query, and Resources its timeseries, if any.
	Table     string   `json:"table"`
	Resources []string `json:"resources,omitempty"`
	// From and To are the limits of the time window in the person's local time, To exclusive.
	From string `json:"from"`
	To   string `json:"to"`
	// Path is the way of computation: buckets (from chunk headers and columns), samples (every sample is read)
	// or rows (summaries).
	Path string `json:"path"`
	// Chunks is the number of stored chunks of samples in the window, FromHeader the number whose header was
	// enough, and Decoded the number that was decoded. On the path samples only Chunks is counted.
	Chunks     int `json:"chunks"`
	FromHeader int `json:"chunks_from_header"`
	Decoded    int `json:"chunks_decoded"`
	// Rows is the number of rows of summaries in the window.
	Rows int `json:"rows"`
	// Sources are the sources that had data, in order of preference. Each has the rule that ranks it below the previous
	// source: override, source_type, team_priority or provider.
	Sources []RankedSource `json:"sources"`
	// OverlapPolicy is the way in which overlapping sources were combined.
	OverlapPolicy OverlapPolicy `json:"overlap_policy"`
	// Chosen is true if one source was chosen for each group.
	Chosen bool `json:"one_source_per_group"`
	// Merged lists the sources of the result by time range, if several sources were merged.
	Merged *Merged `json:"merged,omitempty"`
	// Winners are the ranges of buckets and the source that was chosen in each. If rows are grouped by more
	// than time, a bucket may have several.
	Winners []Winner `json:"winners,omitempty"`
	// Joins explains each join of the query, in order.
	Joins []Explanation `json:"joins,omitempty"`
	// As and MaxAge are set in the explanation of a join: the name of the join, and the highest age of the
	// joined row.
	As     string  `json:"as,omitempty"`
	MaxAge *Period `json:"max_age,omitempty"`
}

// RankedSource is a source with the rule that decided its rank.
type RankedSource struct {
	Source
	// BehindBy is the rule that ranks the source below the previous one; empty for the first.
	BehindBy string `json:"behind_by,omitempty"`
}

// Winner is a range of neighbouring buckets, from the start of the first to the start of the last, and the
// source that was chosen in all of them.
type Winner struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Buckets int    `json:"buckets"`
	Source  Source `json:"source"`
	// Resource is set if the query has several timeseries.
	Resource string `json:"resource,omitempty"`
}

// String returns the explanation as text for people.
func (e *Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "table %s", e.Table)
	if len(e.Resources) > 0 {
		fmt.Fprintf(&b, " (%s)", strings.Join(e.Resources, ", "))
	}
	fmt.Fprintf(&b, "\nwindow %s to %s\npath %s", e.From, e.To, e.Path)
	if e.Path == "rows" {
		fmt.Fprintf(&b, ": %d rows", e.Rows)
	} else {
		fmt.Fprintf(&b, ": %d chunks, %d by header, %d read", e.Chunks, e.FromHeader, e.Decoded)
	}
	for i, s := range e.Sources {
		fmt.Fprintf(&b, "\nsource %d: %s %s", i+1, s.Provider, s.Type)
		if s.BehindBy != "" {
			fmt.Fprintf(&b, " (behind by %s)", s.BehindBy)
		}
	}
	for _, w := range e.Winners {
		fmt.Fprintf(&b, "\nwon %s to %s (%d): %s %s", w.From, w.To, w.Buckets, w.Source.Provider, w.Source.Type)
	}
	for i := range e.Joins {
		fmt.Fprintf(&b, "\njoin %s: %s", e.Joins[i].As, strings.ReplaceAll(e.Joins[i].String(), "\n", "\n  "))
	}
	return b.String()
}

// trace collects an explanation. A nil trace collects nothing.
type trace struct {
	mu  sync.Mutex
	out Explanation
}

func newTrace(p *plan) *trace {
	t := &trace{}
	t.out.Query, t.out.Table, t.out.Chosen = *p.query, p.table.name, p.chosen
	t.out.OverlapPolicy = p.policy()
	for _, r := range p.resources {
		t.out.Resources = append(t.out.Resources, r.Slug)
	}
	t.out.From, t.out.To = wallText(p.window.from), wallText(p.window.to)
	t.out.Sources = []RankedSource{}
	return t
}

func (t *trace) merged(o *order, log *mergeLog, sources []Source) {
	if t != nil {
		t.out.Merged = log.merged(o, sources)
	}
}

func (t *trace) path(name string) {
	if t != nil {
		t.out.Path = name
	}
}

func (t *trace) rows(n int) {
	if t != nil {
		t.out.Rows = n
	}
}

func (t *trace) sources(o *order, list []Source) {
	if t == nil {
		return
	}
	for i, s := range list {
		r := RankedSource{Source: s}
		if i > 0 {
			_, r.BehindBy = o.compare(list[i-1], s)
		}
		t.out.Sources = append(t.out.Sources, r)
	}
}

// chunks adds len(all) chunks to the counts of the explanation. decoded of them were decoded.
func (t *trace) chunks(all []series.Chunk, decoded int) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.out.Chunks += len(all)
	t.out.FromHeader += len(all) - decoded
	t.out.Decoded += decoded
}

// win is the source that was chosen in one bucket.
type win struct {
	at       int64
	source   int // index in the list of sources
	resource int // index in the plan's resources
}

// winners adds the chosen sources to the explanation. Neighbouring buckets with the same chosen source become one
// range. The sources of list are indexes in sources.
func (t *trace) winners(p *plan, list []win, sources []Source) {
	if t == nil || !p.chosen {
		return
	}
	slices.SortFunc(list, func(a, b win) int {
		return cmp.Or(cmp.Compare(a.resource, b.resource), cmp.Compare(a.at, b.at), cmp.Compare(a.source, b.source))
	})
	last := win{source: -1}
	for _, w := range slices.Compact(list) {
		k := len(t.out.Winners) - 1
		if p.trunc >= 0 && w.source == last.source && w.resource == last.resource && p.keys[p.trunc].period.next(last.at) == w.at {
			t.out.Winners[k].To = wallText(w.at)
			t.out.Winners[k].Buckets++
		} else {
			at := wallText(w.at)
			won := Winner{From: at, To: at, Buckets: 1, Source: sources[w.source]}
			if len(p.resources) > 1 {
				won.Resource = p.resources[w.resource].Slug
			}
			t.out.Winners = append(t.out.Winners, won)
		}
		last = w
	}
}
