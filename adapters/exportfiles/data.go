package exportfiles

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"
	pq "github.com/parquet-go/parquet-go"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// record is a line of an NDJSON file: a summary, the stream of a workout, or a device of the user.
type record struct {
	ID         uuid.UUID             `json:"id"`
	Provider   string                `json:"provider"`
	SourceType healthdata.SourceType `json:"source_type"`
	Index      time.Time             `json:"index"`
	Offset     int                   `json:"utc_offset"`
	Data       json.RawMessage       `json:"data"`
	// Raw is the payload of the provider, if the team keeps payloads.
	Raw       json.RawMessage `json:"raw,omitempty"`
	CreatedAt time.Time       `json:"created_at"`
	UpdatedAt time.Time       `json:"updated_at"`
}

// summaries returns one file for each resource that is not a timeseries.
func (s Services) summaries() (list []file) {
	for _, r := range healthdata.Resources() {
		if r.Class == healthdata.ClassTimeseries {
			continue
		}
		list = append(list, file{r.Slug + ".ndjson", func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, w io.Writer) error {
			out := lines{w: json.NewEncoder(w)}
			err := s.Health.View(ctx, team, user, healthdata.Once(func(v healthdata.View) error {
				for q := range windows(r) {
					if err := writeRecords(ctx, v, q, &out); err != nil {
						return err
					}
				}
				return nil
			}))
			if err != nil {
				return err
			}
			return out.end()
		}})
	}
	return list
}

// windows returns queries for all records of a resource: one for each year from 2000 to 2099, or for each month of a
// stream, and one each for the time before and after. The answer to a query is held in memory, and one record may have
// a megabyte.
func windows(r *healthdata.Resource) func(yield func(healthdata.RecordQuery) bool) {
	return func(yield func(healthdata.RecordQuery) bool) {
		const most = time.Microsecond
		from, end := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
		months := 12
		if r.Class == healthdata.ClassStream {
			months = 1
		}
		if !yield(healthdata.RecordQuery{Resource: r.Slug, To: from.Add(-most)}) {
			return
		}
		for from.Before(end) {
			next := from.AddDate(0, months, 0)
			if !yield(healthdata.RecordQuery{Resource: r.Slug, From: from, To: next.Add(-most)}) {
				return
			}
			from = next
		}
		yield(healthdata.RecordQuery{Resource: r.Slug, From: end})
	}
}

func writeRecords(ctx context.Context, v healthdata.View, q healthdata.RecordQuery, out *lines) error {
	list, err := v.Records(ctx, q)
	if err != nil || len(list) == 0 {
		return err
	}
	q.Raw = true
	withRaw, err := v.Records(ctx, q)
	if err != nil {
		return err
	}
	raw := make(map[uuid.UUID][]byte, len(withRaw))
	for i := range withRaw {
		raw[withRaw[i].ID] = withRaw[i].Raw
	}
	for i := range list {
		r := &list[i]
		if err := out.add(record{r.ID, r.Provider, r.SourceType, r.Index, r.Offset, r.Doc, raw[r.ID], r.CreatedAt, r.UpdatedAt}); err != nil {
			return err
		}
	}
	return nil
}

// Sample is one sample: a line of an NDJSON file, and a row of the Parquet file of the same name.
type Sample struct {
	Provider   string `json:"provider" parquet:"provider,dict"`
	SourceType string `json:"source_type" parquet:"source_type,dict"`
	// Part is the Type or the Workout, for resources whose samples it distinguishes at one time. It is the Device if
	// the team keeps devices apart, and otherwise empty.
	Part string    `json:"part,omitempty" parquet:"part,dict,optional"`
	At   time.Time `json:"at" parquet:"at,timestamp(microsecond)"`
	// End is the end of an interval; nil for a sample at an instant.
	End *time.Time `json:"end,omitempty" parquet:"end,optional,timestamp(microsecond)"`
	// Value is the number, or the systolic value of a blood pressure. It is 0 if the sample has a Text.
	Value float64 `json:"value" parquet:"value"`
	// Diastolic is the diastolic value of a blood pressure; 0 for other samples.
	Diastolic    float64 `json:"diastolic,omitempty" parquet:"diastolic,optional"`
	Unit         string  `json:"unit" parquet:"unit,dict"`
	Offset       int32   `json:"utc_offset" parquet:"utc_offset"`
	Type         string  `json:"type,omitempty" parquet:"type,dict,optional"`
	App          string  `json:"app,omitempty" parquet:"app,dict,optional"`
	Device       string  `json:"device,omitempty" parquet:"device,dict,optional"`
	Workout      string  `json:"workout,omitempty" parquet:"workout,dict,optional"`
	Sport        string  `json:"sport,omitempty" parquet:"sport,dict,optional"`
	Location     string  `json:"location,omitempty" parquet:"location,dict,optional"`
	Intensity    string  `json:"intensity,omitempty" parquet:"intensity,dict,optional"`
	DeliveryMode string  `json:"delivery_mode,omitempty" parquet:"delivery_mode,dict,optional"`
	DeliveryForm string  `json:"delivery_form,omitempty" parquet:"delivery_form,dict,optional"`
	BolusPurpose string  `json:"bolus_purpose,omitempty" parquet:"bolus_purpose,dict,optional"`
	Text         string  `json:"text,omitempty" parquet:"text,optional"`
	Tags         string  `json:"tags,omitempty" parquet:"tags,optional"`
}

// sampleFiles is the folder "samples" of an export. It has an NDJSON file and a Parquet file for each resource with
// samples.
type sampleFiles struct{ health *healthdata.Service }

// Files implements [personexport.Source].
func (f sampleFiles) Files(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) ([]string, error) {
	var names []string
	err := f.health.View(ctx, team, user, func(v healthdata.View) error {
		names = nil
		for _, r := range healthdata.Timeseries() {
			all, err := v.Series(ctx, healthdata.SeriesQuery{Resources: []string{r.Slug}})
			if err != nil {
				return err
			}
			if len(all) > 0 {
				names = append(names, r.Slug+".ndjson", r.Slug+".parquet")
			}
		}
		return nil
	})
	return names, err
}

// Write implements [personexport.Source].
func (f sampleFiles) Write(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, name string, w io.Writer) error {
	slug, form, _ := strings.Cut(name, ".")
	r := healthdata.ResourceBySlug(slug)
	if r == nil {
		return noFile()
	}
	var add func([]Sample) error
	var end func() error
	if form == "parquet" {
		// The rows of a group are held in memory.
		const groupRows = 1 << 16
		table := pq.NewGenericWriter[Sample](w, pq.Compression(&pq.Zstd), pq.MaxRowsPerRowGroup(groupRows))
		add = func(rows []Sample) error { _, err := table.Write(rows); return err }
		end = table.Close
	} else {
		out := lines{w: json.NewEncoder(w)}
		add = func(rows []Sample) error {
			for i := range rows {
				if err := out.add(&rows[i]); err != nil {
					return err
				}
			}
			return nil
		}
		end = out.end
	}
	err := f.health.View(ctx, team, user, healthdata.Once(func(v healthdata.View) error {
		all, err := v.Series(ctx, healthdata.SeriesQuery{Resources: []string{slug}})
		if err != nil {
			return err
		}
		for i := range all {
			if err := writeSeries(ctx, v, r, &all[i], add); err != nil {
				return err
			}
		}
		return nil
	}))
	if err != nil {
		return err
	}
	return end()
}

// loadChunks is how many chunks of a series are loaded at a time.
const loadChunks = 64

// writeSeries passes all samples of the series s to add in time order, a block at a time.
func writeSeries(ctx context.Context, v healthdata.View, r *healthdata.Resource, s *healthdata.Series, add func([]Sample) error) error {
	var scan series.Scanner
	var rows []Sample
	for at := 0; at == 0 || at < len(s.Chunks); at += loadChunks {
		within := series.Range{From: series.MinTime, To: series.MaxTime}
		if at > 0 {
			within.From = s.Chunks[at].Start
		}
		group := s.Chunks[at:]
		if len(group) > loadChunks {
			group = group[:loadChunks]
			within.To = s.Chunks[at+loadChunks].Start
		}
		starts := make([]int64, len(group))
		for i := range group {
			starts[i] = group[i].Start
		}
		chunks, err := v.Load(ctx, s.Key, starts)
		if err != nil {
			return err
		}
		for block, err := range scan.Blocks(chunks, s.Pending, within) {
			if err != nil {
				return err
			}
			rows = rows[:0]
			for _, x := range block.All() {
				rows = append(rows, sampleOf(r, s.Key, &x))
			}
			if err := add(rows); err != nil {
				return err
			}
		}
	}
	return nil
}

func sampleOf(r *healthdata.Resource, key healthdata.SeriesKey, x *series.Sample) Sample {
	out := Sample{
		Provider: key.Provider, SourceType: string(key.SourceType), Part: key.Part, At: time.UnixMicro(x.Time).UTC(), Value: x.Value, Diastolic: x.Value2,
		Unit: x.Unit, Offset: x.Offset, Type: x.Type, App: x.App, Device: idText(x.Device), Workout: idText(x.Workout), Sport: x.Sport, Location: x.Location,
		Intensity: x.Intensity, DeliveryMode: x.DeliveryMode, DeliveryForm: x.DeliveryForm, BolusPurpose: x.BolusPurpose, Text: x.Text, Tags: x.Tags,
	}
	out.Unit = cmp.Or(out.Unit, r.Unit)
	if x.End != series.NoEnd {
		out.End = new(time.UnixMicro(x.End).UTC())
	}
	return out
}

func idText(id uuid.UUID) string {
	if id == uuid.Nil {
		return ""
	}
	return id.String()
}
