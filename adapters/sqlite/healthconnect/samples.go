package healthconnect

import (
	"cmp"
	"maps"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// bucket identifies samples that can be passed to the sink in one call: they have the same resource and source.
type bucket struct {
	resource string
	kind     healthdata.SourceType
	app      string
}

// samples imports the records of all tables in tables.
func (i *importer) samples() error {
	for _, t := range tables {
		columns := slices.Concat(common, instantColumns)
		if t.interval {
			columns = slices.Concat(common, intervalColumns)
		}
		for _, v := range t.readings {
			columns = append(columns, v.column)
		}
		if t.detail != "" {
			columns = append(columns, t.detail)
		}
		err := i.each(t.name, "", columns, func(r row) error {
			for _, v := range t.readings {
				if r.null(v.column) && len(t.readings) > 1 {
					continue // a meal without caffeine
				}
				if err := i.reading(&t, v, r); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// reading adds the value of one column of a record as a sample.
func (i *importer) reading(t *table, v reading, r row) error {
	value, ok := r.number(v.column)
	if !ok {
		i.skip(t.name, "no value")
		return nil
	}
	start, end, offset, ok := r.span(t.interval)
	if !ok {
		i.skip(t.name, "bad time")
		return nil
	}
	source := i.source(r)
	s := sampleOf(v.resource, start, end, offset)
	s.Unit, s.Value = cmp.Or(v.unit, s.Unit), &healthdata.Value{Number: value}
	detail, _ := r.integer(t.detail)
	switch t.detail {
	case "specimen_source":
		if kind := specimenSources[detail]; kind != "" && source.Type != healthdata.SourceApp {
			source.Type = kind
		}
	case "measurement_location":
		if place := locations[detail]; place != "" {
			s.SensorLocation = &place
		}
	}
	return i.collect(v.resource, source, s)
}

// sampleOf returns a sample that lacks only its value.
func sampleOf(slug string, start, end healthlab.Time, offset *int) healthdata.Sample {
	resource := healthdata.ResourceBySlug(slug)
	s := healthdata.Sample{Timestamp: start, TimezoneOffset: offset, Unit: resource.Unit}
	if resource.Shape != healthdata.Discrete {
		s.Start, s.End = &start, &end
	}
	return s
}

// heartRates imports the heart rate series: each value becomes a sample.
func (i *importer) heartRates() error {
	if i.columns[heartRateTable] == nil || i.columns[heartSeriesTable] == nil {
		return nil
	}
	columns := slices.Concat(common, []string{"start_zone_offset", "s.epoch_millis", "s.beats_per_minute"})
	return i.each(heartRateTable, " join "+heartSeriesTable+" s on s.parent_key = r.row_id", columns, func(r row) error {
		rate, ok := r.number("beats_per_minute")
		if !ok {
			i.skip(heartSeriesTable, "no value")
			return nil
		}
		at, ok1 := r.instant("epoch_millis")
		offset, ok2 := r.offset("start_zone_offset")
		if !ok1 || !ok2 {
			i.skip(heartSeriesTable, "bad time")
			return nil
		}
		s := sampleOf("heartrate", at, at, offset)
		s.Value = &healthdata.Value{Number: rate}
		return i.collect("heartrate", i.source(r), s)
	})
}

// pressures imports blood pressures.
func (i *importer) pressures() error {
	columns := slices.Concat(common, instantColumns, []string{"systolic", "diastolic"})
	return i.each(pressureTable, "", columns, func(r row) error {
		systolic, ok1 := r.number("systolic")
		diastolic, ok2 := r.number("diastolic")
		if !ok1 || !ok2 {
			i.skip(pressureTable, "no value")
			return nil
		}
		at, _, offset, ok := r.span(false)
		if !ok {
			i.skip(pressureTable, "bad time")
			return nil
		}
		s := sampleOf("blood_pressure", at, at, offset)
		s.Systolic, s.Diastolic = &systolic, &diastolic
		return i.collect("blood_pressure", i.source(r), s)
	})
}

// sessions imports mindfulness sessions: the value of a sample is the length in minutes.
func (i *importer) sessions() error {
	return i.each(mindfulTable, "", slices.Concat(common, intervalColumns), func(r row) error {
		start, end, offset, ok := r.span(true)
		if !ok {
			i.skip(mindfulTable, "bad time")
			return nil
		}
		s := sampleOf("mindfulness_minutes", start, end, offset)
		s.Value = &healthdata.Value{Number: end.Sub(start.Time).Minutes()}
		return i.collect("mindfulness_minutes", i.source(r), s)
	})
}

// collect adds a sample to its bucket. When a bucket has a full batch, collect passes the batch to the sink. When all
// buckets together have four batches, it passes all of them.
func (i *importer) collect(resource string, source healthdata.Source, s healthdata.Sample) error {
	b := bucket{resource: resource, kind: source.Type}
	if source.AppID != nil {
		b.app = *source.AppID
	}
	i.waiting[b] = append(i.waiting[b], s)
	if i.held++; len(i.waiting[b]) >= i.opts.BatchSize {
		return i.handOver(b)
	}
	if i.held >= 4*i.opts.BatchSize {
		return i.flush()
	}
	return nil
}

// flush passes all collected samples to the sink.
func (i *importer) flush() error {
	for _, b := range slices.SortedFunc(maps.Keys(i.waiting), func(a, b bucket) int {
		return cmp.Or(cmp.Compare(a.resource, b.resource), cmp.Compare(a.kind, b.kind), cmp.Compare(a.app, b.app))
	}) {
		if err := i.handOver(b); err != nil {
			return err
		}
	}
	return nil
}

func (i *importer) handOver(b bucket) error {
	samples := i.waiting[b]
	delete(i.waiting, b)
	i.held -= len(samples)
	source := healthdata.Source{Provider: i.opts.Provider, Type: b.kind}
	if b.app != "" {
		source.AppID = &b.app
	}
	if err := i.out.Samples(b.resource, source, samples); err != nil {
		return sinkError{err}
	}
	return nil
}
