package lake

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

const userColumn = "user"

var userDoc = Column{Name: userColumn, Type: tables.TypeString, Doc: "pseudonym of the user"}

// sampleColumns returns the columns of the samples of a resource: user, time, and the columns of aggregate queries. It
// returns nil if the resource has only free text.
func (e *Exporter) sampleColumns(r *healthdata.Resource) []Column {
	if r.Value == healthdata.ValueText && !e.opts.Identified {
		return nil
	}
	out := []Column{userDoc, {Name: "time", Type: tables.TypeInstant, Doc: "when it was measured, or when the interval began"}}
	for _, c := range tables.SampleColumns(r) {
		if c.Type == tables.TypeList {
			if !e.opts.Identified {
				continue
			}
			c.Type = tables.TypeString
		}
		out = append(out, Column{c.Name, c.Type, c.Unit, c.Doc})
	}
	return out
}

// scanSamples adds the fingerprints of a user's samples to prints.
func (x *export) scanSamples(ctx context.Context, v healthdata.View, user healthlab.UserID, prints map[partition]Fingerprint) error {
	var slugs []string
	for _, r := range tables.SampleTimeseries() {
		if x.manifest.Schemas[r.Slug] != nil {
			slugs = append(slugs, r.Slug)
		}
	}
	all, err := v.Series(ctx, healthdata.SeriesQuery{Resources: slugs})
	if err != nil {
		return err
	}
	for i := range all {
		if x.verify {
			if all[i].Chunks, err = load(ctx, v, &all[i]); err != nil {
				return err
			}
		}
		if err := eachChunk(user, &all[i], func(month string, f Fingerprint) {
			p := partition{all[i].Key.Resource, month}
			sum := prints[p]
			sum.add(f)
			prints[p] = sum
		}); err != nil {
			return err
		}
		all[i].Chunks = nil
	}
	return nil
}

func load(ctx context.Context, v healthdata.View, s *healthdata.Series) ([]series.Chunk, error) {
	starts := make([]int64, len(s.Chunks))
	for i := range s.Chunks {
		starts[i] = s.Chunks[i].Start
	}
	return v.Load(ctx, s.Key, starts)
}

// eachChunk calls add with each chunk and each pending segment of a series: its fingerprint, and a month in which it
// may have samples. With several such months it calls add for each.
func eachChunk(user healthlab.UserID, s *healthdata.Series, add func(month string, f Fingerprint)) error {
	for k := range s.Chunks {
		f := chunkPrint(user, s.Key, &s.Chunks[k], 0)
		if err := chunkMonths(&s.Chunks[k], false, func(month string) { add(month, f) }); err != nil {
			return err
		}
	}
	positions := map[string]int{} // position by month, so that segments of other months do not change a fingerprint
	for k := range s.Pending {
		if err := chunkMonths(&s.Pending[k], true, func(month string) {
			positions[month]++
			add(month, chunkPrint(user, s.Key, &s.Pending[k], positions[month]))
		}); err != nil {
			return err
		}
	}
	return nil
}

// fillSamples writes to t the samples of a user in a partition, ordered by series and time, and adds their fingerprints
// to print. from and to are Unix times in microseconds.
func (x *export) fillSamples(ctx context.Context, t *table, v healthdata.View, user healthlab.UserID, p partition, from, to int64, print *Fingerprint) error {
	all, err := v.Series(ctx, healthdata.SeriesQuery{Resources: []string{p.resource}, From: from, To: to})
	if err != nil {
		return err
	}
	// All samples are read before the first row is written, because a read may be repeated from the start.
	for i := range all {
		if all[i].Chunks, err = load(ctx, v, &all[i]); err != nil {
			return err
		}
	}
	w := sampleWriter{export: x, table: t, user: textCell(x.pseudonym("user", user.String()))}
	for i := range all {
		if err := eachChunk(user, &all[i], func(month string, f Fingerprint) {
			if month == p.month {
				print.add(f)
			}
		}); err != nil {
			return err
		}
	}
	for _, origins := range healthdata.ByPublished(all) {
		if err := w.writeOrigins(origins, series.Range{From: from, To: to}); err != nil {
			return err
		}
	}
	return nil
}

// writeOrigins writes the samples of one source from all its apps and devices (origins). If several have a sample at
// the same time, it writes the one that was received last.
func (w *sampleWriter) writeOrigins(origins []healthdata.Series, r series.Range) error {
	blocks := make([]*series.Block, len(origins))
	for i := range origins {
		s := &origins[i]
		var scan series.Scanner
		for block, err := range scan.Blocks(s.Chunks, s.Pending, r) {
			if err != nil {
				return err
			}
			if len(origins) == 1 {
				err = w.write(s.Key, block)
			} else {
				if blocks[i] == nil {
					blocks[i] = new(series.Block)
				}
				for _, sample := range block.All() {
					blocks[i].Append(sample)
				}
			}
			if err != nil {
				return err
			}
		}
	}
	blocks = slices.DeleteFunc(blocks, func(b *series.Block) bool { return b == nil })
	if len(blocks) == 0 {
		return nil
	}
	var latest series.Block
	series.Latest(&latest, blocks...)
	return w.write(origins[0].Key, &latest)
}

// sampleWriter writes the samples of one user.
type sampleWriter struct {
	*export
	table *table
	user  tables.Cell
}

// write writes a block, column by column.
func (w *sampleWriter) write(key healthdata.SeriesKey, b *series.Block) error {
	for i, c := range w.table.columns {
		switch c.Name {
		case userColumn:
			w.table.fill(i, b.Len(), w.user)
		case "time":
			for _, at := range b.Time {
				w.table.set(i, intCell(at))
			}
		case "value", "systolic":
			for _, v := range b.Value {
				w.table.set(i, floatCell(v))
			}
		case "diastolic":
			w.second(i, b)
		case "duration":
			w.duration(i, b)
		default:
			for _, run := range b.Runs {
				w.table.fill(i, run.N, w.attribute(c.Name, key, &run.Attrs))
			}
		}
	}
	return w.table.added(b.Len())
}

func (w *sampleWriter) second(column int, b *series.Block) {
	if b.Value2 == nil {
		w.table.fill(column, b.Len(), floatCell(0))
		return
	}
	for _, v := range b.Value2 {
		w.table.set(column, floatCell(v))
	}
}

func (w *sampleWriter) duration(column int, b *series.Block) {
	if b.End == nil {
		w.table.fill(column, b.Len(), tables.Cell{})
		return
	}
	const second = 1e6
	for i, end := range b.End {
		c := floatCell(float64(end-b.Time[i]) / second)
		c.Valid = end != series.NoEnd
		w.table.set(column, c)
	}
}

// attribute returns the cell of the column name, for samples that share a series and attributes.
func (w *sampleWriter) attribute(name string, key healthdata.SeriesKey, a *series.Attrs) tables.Cell {
	switch name {
	case "source_provider":
		return textCell(key.Provider)
	case "source_type":
		return textCell(string(key.SourceType))
	case "source_app_id":
		return textCell(a.App)
	case "source_workout_id":
		if a.Workout == uuid.Nil {
			return tables.Cell{}
		}
		return textCell(w.pseudonym("workout", a.Workout.String()))
	case "source_sport":
		return textCell(a.Sport)
	case "timezone_offset":
		return intCell(int64(a.Offset))
	case "type":
		return textCell(a.Type)
	case "content":
		return textCell(a.Text)
	case "sensor_location":
		return textCell(a.Location)
	case "delivery_mode":
		return textCell(a.DeliveryMode)
	case "delivery_form":
		return textCell(a.DeliveryForm)
	case "bolus_purpose":
		return textCell(a.BolusPurpose)
	case "intensity":
		return textCell(a.Intensity)
	case "tags":
		tags := healthdata.SplitTags(a.Tags)
		if len(tags) == 0 {
			return tables.Cell{}
		}
		text, _ := json.Marshal(slices.Clone(tags)) // strings and times always encode
		return textCell(string(text))
	}
	return tables.Cell{}
}
