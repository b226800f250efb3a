package fileimport

import (
	"encoding/json"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Files of a Withings export. Its README.txt states the units. Times of weighings and blood pressures are local.
var (
	withingsWeights   = withingsScale("kg")
	withingsPounds    = withingsScale("lb")
	withingsPressures = csvFile{
		format: WithingsExport, name: "bp.csv", read: readWithingsPressures, local: true, named: true,
		keys: []string{"Date", "Heart rate", "Systolic", "Diastolic"},
	}
	withingsHeartRates = withingsSeries("raw_hr_hr.csv", "heartrate", 20, 300)
	withingsSteps      = withingsSeries("raw_tracker_steps.csv", "steps", 0, 100_000)
	withingsDistances  = withingsSeries("raw_tracker_distance.csv", "distance", 0, 1_000_000)
)

// withingsScale describes the file of weighings of an account that displays masses in the given unit.
func withingsScale(unit string) csvFile {
	column := func(name string) string { return name + " (" + unit + ")" }
	return csvFile{
		format: WithingsExport, name: "weight.csv", local: true,
		keys: []string{"Date", column("Weight"), column("Fat mass"), column("Bone mass"), column("Muscle mass"), column("Hydration")},
		read: func(r *rows) error { return readWithingsWeights(r, unit) },
	}
}

func withingsSeries(name, resource string, least, most float64) csvFile {
	// All of these files have the same columns, so the file name selects the resource.
	return csvFile{
		format: WithingsExport, name: name, named: true, keys: []string{"start", "duration", "value"},
		read: func(r *rows) error { return readWithingsSeries(r, resource, least, most) },
	}
}

// weighed is a row of weight.csv. NaN means a missing value.
type weighed struct{ weight, fat, bone, muscle, water float64 }

// withingsColumns returns the columns with masses in a unit.
func withingsColumns(unit string) []value[weighed] {
	column := func(name string, leastKg, mostKg float64, set func(w *weighed, n float64)) value[weighed] {
		perKg, _ := healthdata.ConvertUnit(1, unit, "kg")
		return value[weighed]{name + " (" + unit + ")", leastKg / perKg, mostKg / perKg, set}
	}
	return []value[weighed]{
		column("Weight", 1, 500, func(w *weighed, n float64) { w.weight = n }),
		column("Fat mass", 0, 500, func(w *weighed, n float64) { w.fat = n }),
		column("Bone mass", 0, 50, func(w *weighed, n float64) { w.bone = n }),
		column("Muscle mass", 0, 500, func(w *weighed, n float64) { w.muscle = n }),
		column("Hydration", 0, 500, func(w *weighed, n float64) { w.water = n }),
	}
}

// readWithingsWeights stores weighings. Masses of body parts become percentages.
func readWithingsWeights(r *rows, unit string) error {
	b, seen, columns := newBatch(r.out, r.out.recordedBy(healthdata.SourceScale)), map[int64]bool{}, withingsColumns(unit)
	err := r.each(func() error {
		at, ok := localInstant(r, "Date")
		if !ok {
			return nil
		}
		w := weighed{nan, nan, nan, nan, nan}
		readValues(r, columns, &w)
		if w.weight != w.weight {
			r.skipRow("weighing without a weight")
			return nil
		}
		if seen[at.Unix()] {
			r.skipRow("weighing at the time of another")
			return nil
		}
		seen[at.Unix()] = true
		share := func(part float64) *float64 {
			if part != part || part <= 0 || part > w.weight {
				return nil
			}
			return new(100 * part / w.weight)
		}
		kilograms, _ := healthdata.ConvertUnit(w.weight, unit, "kg")
		body := &healthdata.Body{
			MeasuredAt: healthlab.At(at), TimezoneOffset: offsetOf(at), Weight: &kilograms,
			Fat: share(w.fat), WaterPercentage: share(w.water), MuscleMassPercentage: share(w.muscle), BoneMassPercentage: share(w.bone),
		}
		if err := b.summary("body", body); err != nil {
			return err
		}
		for _, m := range []struct {
			resource, unit string
			value          *float64
		}{{"weight", unit, &w.weight}, {"fat", "", body.Fat}} {
			if m.value == nil {
				continue
			}
			s := sampleAt(at, healthdata.Number(*m.value))
			s.Unit = m.unit
			if err := b.sample(m.resource, s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return b.flush()
}

// pressure is a row of bp.csv. NaN means a missing value.
type pressure struct{ systolic, diastolic, pulse float64 }

var withingsPressureColumns = []value[pressure]{
	{"Systolic", 30, 350, func(p *pressure, n float64) { p.systolic = n }},
	{"Diastolic", 10, 250, func(p *pressure, n float64) { p.diastolic = n }},
	{"Heart rate", 20, 300, func(p *pressure, n float64) { p.pulse = n }},
}

// readWithingsPressures stores blood pressures and the heart rates measured with them.
func readWithingsPressures(r *rows) error {
	b := newBatch(r.out, r.out.recordedBy(healthdata.SourceCuff))
	err := r.each(func() error {
		at, ok := localInstant(r, "Date")
		if !ok {
			return nil
		}
		p := pressure{nan, nan, nan}
		readValues(r, withingsPressureColumns, &p)
		hasSystolic, hasDiastolic := p.systolic == p.systolic, p.diastolic == p.diastolic
		if hasSystolic != hasDiastolic {
			r.out.skip("blood pressure with one value only")
		}
		if hasSystolic && hasDiastolic {
			s := sampleAt(at, nil)
			s.Systolic, s.Diastolic = &p.systolic, &p.diastolic
			if err := b.sample("blood_pressure", s); err != nil {
				return err
			}
		}
		if p.pulse == p.pulse {
			if err := b.sample("heartrate", sampleAt(at, healthdata.Number(p.pulse))); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return b.flush()
}

func sampleAt(at time.Time, v *healthdata.Value) healthdata.Sample {
	return healthdata.Sample{Timestamp: healthlab.At(at), TimezoneOffset: offsetOf(at), Value: v}
}

// numbersOf reads a list of numbers such as [60,60] from a cell. It returns false, and adds a note, if the list is
// malformed, empty, or has a number outside of least to most.
func numbersOf(r *rows, column string, least, most float64) ([]*float64, bool) {
	var list []*float64
	err := json.Unmarshal([]byte(r.text(column)), &list)
	ok := err == nil && len(list) > 0
	for _, n := range list {
		ok = ok && n != nil && *n >= least && *n <= most
	}
	if !ok {
		r.refuse(column, "a list of numbers from "+shortNumber(least)+" to "+shortNumber(most)+", such as [60,60]")
	}
	return list, ok
}

// readWithingsSeries stores a series. Values and durations are two lists: those at equal positions belong together,
// and an interval begins at the end of the previous one.
func readWithingsSeries(r *rows, resource string, least, most float64) error {
	b := newBatch(r.out, r.out.recordedBy(healthdata.SourceWatch))
	interval := healthdata.ResourceBySlug(resource).Shape != healthdata.Discrete
	err := r.each(func() error {
		at, ok := zonedInstant(r, "start")
		if !ok {
			return nil
		}
		lengths, ok1 := numbersOf(r, "duration", 0, 86_400)
		values, ok2 := numbersOf(r, "value", least, most)
		if !ok1 || !ok2 {
			return nil
		}
		if len(lengths) != len(values) {
			r.refuse("value", "as many numbers as the duration has")
			return nil
		}
		for i, v := range values {
			s := sampleAt(at, healthdata.Number(*v))
			at = at.Add(time.Duration(*lengths[i] * float64(time.Second)))
			if interval {
				start, end := s.Timestamp, healthlab.At(at)
				s.Start, s.End = &start, &end
			}
			if err := b.sample(resource, s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return b.flush()
}
