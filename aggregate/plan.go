package aggregate

import (
	"math"

	"github.com/healthlab-dev/healthlab/aggregate/internal/vector"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

// plan is a checked query: every name is known, every type fits.
type plan struct {
	query     *Query
	table     *table
	resources []*healthdata.Resource // the resources of a query over samples, in the order of their slugs
	window    window
	slots     []slot
	where     vector.Filter // nil selects all rows
	keys      []key
	aggs      []agg
	outs      []out
	trunc     int // index of the date truncation in keys, -1 for none
	grouped   bool
	rows      bool // one result row per row of the table
	merge     bool // sources are merged before rows are grouped
	origins   bool // data that two apps or devices of one source recorded counts once
	chosen    bool // one source is chosen per group
	fill      bool // gaps of the chosen source are filled from the others
	align     *Align
	joins     []joinPlan
	latest    bool // the plan is that of a join with AsOf, so each number column of lab_result must be of one analyte
	traced    bool // an explanation was requested
}

// slot is a value of a row that the plan reads.
type slot struct {
	column
	sub *subplan // set if the column comes from a list (fromList)
}

// key is an expression that rows are grouped by.
type key struct {
	kind   keyKind
	period Period
	part   Part
	slot   int
	typ    Type
}

func (k *key) days() bool {
	return k.kind == keyTrunc && k.period.Unit != Minute && k.period.Unit != Hour
}

type keyKind uint8

const (
	keyTrunc keyKind = iota
	keyPart
	keySlot
)

// agg is a function over the values of one slot, which is a column that the plan reads.
type agg struct {
	fn        Func
	slot      int
	base      string // name of the argument in column names
	in, typ   Type
	low, high *float64
	band      Band
}

func (a *agg) overTime() bool {
	return a.fn == TimeWeightedMean || a.fn == TimeInRange && a.band == ""
}

// accumulator returns an empty accumulator of the function. left is the number of values that may still be
// stored.
func (a *agg) accumulator(left *int) vector.Acc {
	switch a.fn {
	case Count:
		return &vector.Count{}
	case Sum, Mean:
		if a.in == typeFloat {
			return &vector.FloatSum{Mean: a.fn == Mean}
		}
		return &vector.IntSum{Mean: a.fn == Mean, In: a.in}
	case StdDev, CV:
		return &vector.Deviation{Ratio: a.fn == CV}
	case Min, Max:
		return &vector.Extreme{Max: a.fn == Max, Type: a.in}
	case Oldest, Newest:
		return &vector.Edge{Newest: a.fn == Newest}
	case GMI:
		return &vector.GMI{}
	case GRI:
		return &vector.Shares{
			Ranges:  []vector.Range{vector.VeryLow, vector.Low, vector.VeryHigh, vector.High},
			Weights: []float64{300, 240, 160, 80}, Most: 100,
		}
	case LBGI, HBGI:
		return &vector.RiskIndex{High: a.fn == HBGI}
	case MAGE:
		return &vector.Trace{Measure: vector.Excursions, Left: left}
	case MODD:
		return &vector.Trace{Measure: vector.DailyDifferences, Clock: true, Left: left}
	case SensorActive:
		return &vector.Trace{Measure: vector.SensorActive, Left: left}
	case Episodes:
		return &vector.Trace{Measure: vector.Episodes(bandRanges[a.band]), Left: left}
	case TimeInRange, TimeWeightedMean:
		if a.band != "" {
			return &vector.Shares{Ranges: []vector.Range{bandRanges[a.band]}, Weights: []float64{100}, Most: 100}
		}
		out := &vector.OverTime{Mean: a.fn == TimeWeightedMean, Low: math.Inf(-1), High: math.Inf(1)}
		if a.low != nil {
			out.Low = *a.low
		}
		if a.high != nil {
			out.High = *a.high
		}
		return out
	}
	rank := 50
	if p, ok := a.fn.percent(); ok {
		rank = p
	}
	return &vector.Rank{Percent: rank, In: a.in, Left: left}
}

// out is a column of the result, other than its index.
type out struct {
	name string
	kind outKind
	n    int // index of the key, aggregate function or slot
	typ  Type
}

type outKind uint8

const (
	outKey outKind = iota
	outAgg
	outSlot
)

// subplan computes one value from a list column.
type subplan struct {
	list  int // the slot of the column with the list
	where vector.Filter
	agg   agg // its slot is the index of the field, -1 to count elements
}

func (q *Query) plan() *plan {
	return &plan{query: q, trunc: -1, align: q.Align, grouped: len(q.GroupBy) > 0}
}

// policy returns the overlap policy of the plan.
func (p *plan) policy() OverlapPolicy {
	switch {
	case p.merge:
		return MergeSources
	case p.fill:
		return FillGaps
	case p.chosen:
		return WinnerOnly
	default:
		return AllSources
	}
}

func (p *plan) sampleTable() bool { return p.table.name == samplesTable }

// indexType returns the type of the result's index column.
func (p *plan) indexType() Type {
	if p.trunc < 0 && !p.rows {
		return typeInt
	}
	if p.table.indexType == typeInstant {
		return typeInstant
	}
	return typeTime
}

func (p *plan) within(w window) *plan {
	q := *p
	q.window = w
	return &q
}

// value computes the subplan's value from a list. fields are the fields of an element. eb is memory for the elements of
// the list, which value overwrites.
func (s *subplan) value(list tables.Cell, fields []tables.ListField, eb *vector.Batch) tables.Cell {
	eb.Reset(len(fields))
	for i, f := range fields {
		eb.Cols[i].Type = f.Type
		for _, e := range list.List {
			eb.Cols[i].Add(e[i])
		}
	}
	eb.SetLen(len(list.List))
	if s.where != nil {
		eb.Keep(s.where)
	}
	if s.agg.slot < 0 {
		return tables.Cell{Valid: true, Int: int64(eb.N)}
	}
	left := len(list.List)
	a := s.agg.accumulator(&left)
	if eb.N > 0 {
		a.Add(&eb.Cols[s.agg.slot], eb, 0, eb.N)
	}
	v, _ := a.Result()
	return v
}
