package aggregate

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"math"
	"slices"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab/aggregate/internal/vector"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

// Columns of derived_readiness.
const (
	readyDate = iota
	readyChronotype
	readySleepScore
	readyRecovery
	readyRecoveryZone
	readyStress
	readyStrain
	readyStrainZone
)

func readinessColumns() []column {
	cols := []column{
		readyDate:         {name: "date", typ: typeDate, doc: "also the index"},
		readyChronotype:   {name: "chronotype", typ: typeText, doc: "lark, third or owl"},
		readySleepScore:   {name: "sleep_score", typ: typeInt, unit: "0-100"},
		readyRecovery:     {name: "recovery_score", typ: typeInt, unit: "0-100", doc: "higher is better"},
		readyRecoveryZone: {name: "recovery_zone", typ: typeText, doc: "Red, Amber or Green"},
		readyStress:       {name: "stress_score", typ: typeInt, unit: "0-100", doc: "100 minus recovery_score"},
		readyStrain:       {name: "strain_score", typ: typeInt, unit: "0-21", doc: "higher is more load"},
		readyStrainZone:   {name: "strain_zone", typ: typeText, doc: "Low, Moderate, High or Very High"},
	}
	for i := range cols {
		cols[i].base, cols[i].from, cols[i].number = cols[i].name, fromReadiness, i
	}
	return cols
}

// Night is the main sleep of a day, the input of a [Readiness]. A nil field is unknown.
type Night struct {
	// AsleepHours is the time asleep.
	AsleepHours *float64
	// RestingHR is in beats per minute. HRV is RMSSD in milliseconds.
	RestingHR, HRV *float64
}

// Readiness rates a day by its night and the nights of the 21 days before, the oldest first: recovery from 0 to
// 100 and strain from 0 to 21, nil if too little is known. Implementations are pure and safe for concurrent
// use.
type Readiness func(night Night, before []Night) (recovery, strain *int64)

// Constants of [HouseReadiness].
const (
	baselineDays   = 21
	baselineLeast  = 7
	neutral        = 50.0 // a recovery below it adds to the strain
	neededHours    = 8.0
	weightHRV      = 0.5
	weightHR       = 0.3
	weightSleep    = 0.2
	leastSpreadHRV = 0.05 // least standard deviation, as a share of the mean
	leastSpreadHR  = 0.02
	loadRecovery   = 0.6
	loadDebt       = 0.4
	loadSteepness  = 3.0
	mostStrain     = 21.0
)

// HouseReadiness is version 1 of this library's model. Recovery is a logistic function of the heart rate
// variability above and the resting heart rate below their means of the 21 days before, in standard deviations,
// and of sleep against eight hours. Strain grows with a recovery below 50 and with missing sleep. It needs
// seven earlier nights. It is no medical statement.
func HouseReadiness(night Night, before []Night) (recovery, strain *int64) {
	zh, ok1 := deviation(night.HRV, before, func(n Night) *float64 { return n.HRV }, leastSpreadHRV)
	zr, ok2 := deviation(night.RestingHR, before, func(n Night) *float64 { return n.RestingHR }, leastSpreadHR)
	if !ok1 || !ok2 {
		return nil, nil
	}
	zs := 0.0
	if night.AsleepHours != nil {
		zs = min(max((*night.AsleepHours-neededHours)/2, -3), 1)
	}
	r := int64(math.Round(100 / (1 + math.Exp(-(weightHRV*zh - weightHR*zr + weightSleep*zs)))))
	recovery = &r
	if night.AsleepHours == nil {
		return recovery, nil
	}
	load := loadRecovery*max(0, neutral-float64(r))/neutral + loadDebt*clamp((neededHours-*night.AsleepHours)/neededHours)
	s := int64(math.Round(mostStrain * (1 - math.Exp(-loadSteepness*load)) / (1 - math.Exp(-loadSteepness))))
	return recovery, &s
}

// deviation returns the distance of a value from the mean of the nights before, in standard deviations, limited to -3
// and 3. get returns the value of a night. least is the least standard deviation, as a share of the mean. ok is false
// if v or too many nights are unknown, or if the standard deviation is 0.
func deviation(v *float64, before []Night, get func(Night) *float64, least float64) (z float64, ok bool) {
	if v == nil {
		return 0, false
	}
	var known []float64
	for _, n := range before {
		if x := get(n); x != nil {
			known = append(known, *x)
		}
	}
	if len(known) < baselineLeast {
		return 0, false
	}
	mean := 0.0
	for _, x := range known {
		mean += x / float64(len(known))
	}
	spread := 0.0
	for _, x := range known {
		spread += (x - mean) * (x - mean)
	}
	sigma := max(math.Sqrt(spread/float64(len(known)-1)), least*mean)
	if sigma == 0 {
		return 0, false
	}
	return min(max((*v-mean)/sigma, -3), 3), true
}

func zoneOf(v int64, names []string, most []int64) string {
	for i, m := range most {
		if v <= m {
			return names[i]
		}
	}
	return names[len(names)-1]
}

// mainSleep is a day's main sleep.
type mainSleep struct {
	source Source
	sleep  *healthdata.Sleep
	end    int64
	row    tables.Row
}

// readinessRows computes the table derived_readiness for the days of a window.
func (p *plan) readinessRows(ctx context.Context, v healthdata.View, o *order, m *models) ([]kept, error) {
	days := map[int64]mainSleep{}
	w := p.window
	if w != everything {
		w.from -= baselineDays * day
	}
	t := tables.ByName("sleep")
	err := eachSummary(ctx, v, t, w, false, func(r *tables.Row, at int64) error {
		s, ok := r.Summary.(*healthdata.Sleep)
		if !ok || s.Type != healthdata.SleepLong || r.Record.CoveredBy != uuid.Nil {
			return nil
		}
		n := mainSleep{Source{r.Record.Provider, r.Record.SourceType}, s, at, *r}
		d := floorDiv(at, day)
		if was, ok := days[d]; !ok || o.prefers(&n, &was) {
			days[d] = n
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var out []kept
	for _, d := range slices.Sorted(maps.Keys(days)) {
		n := days[d]
		if d*day < p.window.from || d*day >= p.window.to {
			continue
		}
		var before []Night
		for b := d - baselineDays; b < d; b++ {
			if x, ok := days[b]; ok {
				before = append(before, x.night())
			}
		}
		cells := readinessCells(d, &n, before, m)
		k := kept{source: n.source, index: d * day, id: n.sleep.ID, cells: make([]tables.Cell, len(p.slots))}
		for i := range p.slots {
			switch s := &p.slots[i]; s.from {
			case fromReadiness:
				k.cells[i] = cells[s.number]
			case fromIndex:
				k.cells[i] = indexCell(s.typ, k.index)
			}
		}
		out = append(out, k)
	}
	return out, nil
}

func (o *order) prefers(a, b *mainSleep) bool {
	c, _ := o.compare(a.source, b.source)
	return cmp.Or(c, cmp.Compare(asleep(b.sleep), asleep(a.sleep)), cmp.Compare(b.end, a.end),
		bytes.Compare(a.row.Record.ID[:], b.row.Record.ID[:])) < 0
}

func asleep(s *healthdata.Sleep) int64 {
	if s.Total == nil {
		return 0
	}
	return *s.Total
}

func (n *mainSleep) night() Night {
	var out Night
	if s := asleep(n.sleep); s > 0 {
		out.AsleepHours = new(float64(s) / 3600)
	}
	hr := n.sleep.HRResting
	if hr == nil {
		hr = n.sleep.HRLowest
	}
	if hr != nil {
		out.RestingHR = new(float64(*hr))
	}
	out.HRV = n.sleep.AverageHRV
	return out
}

func readinessCells(d int64, n *mainSleep, before []Night, m *models) []tables.Cell {
	out := make([]tables.Cell, readyStrainZone+1)
	out[readyDate] = vector.IntCell(d)
	out[readyChronotype] = m.macro("chronotype", &n.row)
	out[readySleepScore] = m.macro("sleep_score", &n.row)
	recovery, strain := m.readiness(n.night(), slices.Clip(before))
	if recovery != nil {
		out[readyRecovery] = vector.IntCell(*recovery)
		out[readyRecoveryZone] = vector.TextCell(zoneOf(*recovery, []string{"Red", "Amber", "Green"}, []int64{33, 66}))
		out[readyStress] = vector.IntCell(100 - *recovery)
	}
	if strain != nil {
		out[readyStrain] = vector.IntCell(*strain)
		out[readyStrainZone] = vector.TextCell(zoneOf(*strain, []string{"Low", "Moderate", "High", "Very High"}, []int64{6, 13, 17}))
	}
	return out
}
