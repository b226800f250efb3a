package healthdatatest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/conformance"
)

// DataHarness is a fresh, empty store for the suite of health data. All fields use the same store.
type DataHarness struct {
	// Data is the tested interface.
	Data healthdata.Data
	// Users adds the users of the suite.
	Users healthdata.Users
	// Messages reads the events that Data wrote.
	Messages Messages
}

// dataT is one subtest with its store and helpers.
type dataT struct {
	*testing.T
	DataAloneHarness
}

func (t dataT) on(sub *testing.T) dataT { return dataT{sub, t.DataAloneHarness} }

// Steps is the series that most cases write to.
var Steps = healthdata.SeriesKey{Resource: "steps", Provider: "acme_band", SourceType: "watch"}

func (t dataT) user() healthdata.User {
	t.Helper()
	u := LiveUser(conformance.NewTeam(), "ann")
	require.NoError(t, t.Add(t.Context(), u))
	return u
}

func (t dataT) remove(u healthdata.User) {
	t.Helper()
	require.NoError(t, t.Delete(t.Context(), u))
}

// Record returns a new valid record of a resource with the given index time. Origin, Session, CoveredBy and Replaces
// are zero.
func Record(resource string, index time.Time) healthdata.Record {
	return healthdata.Record{
		Resource: resource, ID: uuid.New(), Provider: "acme_band", SourceType: "watch",
		Index: index, Offset: 3600, Doc: []byte(`{"v":1,"text":"` + long[:100] + `"}`), Raw: []byte(`{"raw":1}`),
		CreatedAt: noon.Time, UpdatedAt: noon.Add(time.Minute),
	}
}

// put writes records, which must succeed.
func (t dataT) put(u healthdata.User, records ...healthdata.Record) (results []healthdata.PutResult) {
	t.Helper()
	err := t.Data.PutRecords(t.Context(), u.Team, u.ID, records, func(r []healthdata.PutResult) ([]healthlab.Event, error) {
		results = r
		return nil, nil
	})
	require.NoError(t, err)
	return results
}

// records reads records, which must succeed.
func (t dataT) records(u healthdata.User, q healthdata.RecordQuery) (out []healthdata.Record) {
	t.Helper()
	t.view(u, func(v healthdata.View) {
		var err error
		out, err = v.Records(t.Context(), q)
		require.NoError(t, err)
	})
	return out
}

// view calls read with a view of the data of u. The test fails if View returns an error.
func (t dataT) view(u healthdata.User, read func(healthdata.View)) {
	t.Helper()
	require.NoError(t, t.Data.View(t.Context(), u.Team, u.ID, func(v healthdata.View) error {
		read(v)
		return nil
	}))
}

// Sample returns a sample with the value v at i minutes past 12:00 UTC on the day of noon.
func Sample(i int, v float64) series.Sample {
	return series.Sample{Time: noon.Truncate(time.Hour).UnixMicro() + int64(i)*60_000_000, End: series.NoEnd, Value: v}
}

// fullSample returns the sample of minute i with a value in every field except Rank.
func fullSample(i int) series.Sample {
	s := Sample(i, 0.1+float64(i))
	s.End, s.Value2 = s.Time+60_000_001, -7.25
	s.Attrs = series.Attrs{
		Offset: -12600, Type: "typé", Unit: "u", App: "com.example", Device: uuid.UUID{1, 2}, Workout: uuid.UUID{3, 4},
		Sport: "running", Location: "wrist", Intensity: "low", DeliveryMode: "bolus", DeliveryForm: "extended",
		BolusPurpose: "meal", Text: long, Tags: "food,exercise",
	}
	return s
}

// Batch returns a batch of samples of one series.
func Batch(key healthdata.SeriesKey, samples ...series.Sample) healthdata.SampleBatch {
	var b series.Builder
	for _, s := range samples {
		b.Add(s)
	}
	return healthdata.SampleBatch{Key: key, Samples: b.Block(), Span: series.PerMinute}
}

// merge writes samples, which must succeed.
func (t dataT) merge(u healthdata.User, key healthdata.SeriesKey, samples ...series.Sample) (out series.Outcome) {
	t.Helper()
	err := t.Data.MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{Batch(key, samples...)},
		func(o []series.Outcome) ([]healthlab.Event, error) {
			out = o[0]
			return nil, nil
		})
	if err != nil {
		t.Errorf("merge: %v", err)
	}
	return out
}

// mergeWithEvent writes samples of the series Steps, and the event e in the same commit. The test fails on an error.
func (t dataT) mergeWithEvent(u healthdata.User, e healthlab.Event, samples ...series.Sample) {
	t.Helper()
	err := t.Data.MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{Batch(Steps, samples...)},
		func([]series.Outcome) ([]healthlab.Event, error) { return []healthlab.Event{e}, nil })
	if err != nil {
		t.Errorf("merge: %v", err)
	}
}

func (t dataT) samples(u healthdata.User, key healthdata.SeriesKey) (out []series.Sample) {
	t.Helper()
	t.view(u, func(v healthdata.View) { out = readAll(t, v, key) })
	return out
}

func readAll(t dataT, v healthdata.View, key healthdata.SeriesKey) []series.Sample {
	t.Helper()
	out, err := readSeries(t.Context(), v, key, func() {})
	require.NoError(t, err)
	return out
}

// errHeader reports that View.Load returned a chunk with another header than View.Series returned.
var errHeader = errors.New("the header of a chunk is another one")

// readSeries reads a whole series through a view: chunks by their headers, then pending segments. It calls between
// after it has read the headers.
func readSeries(ctx context.Context, v healthdata.View, key healthdata.SeriesKey, between func()) (out []series.Sample, err error) {
	all, err := v.Series(ctx, healthdata.SeriesQuery{Resources: []string{key.Resource}, Key: &key})
	if err != nil {
		return nil, err
	}
	between()
	for _, s := range all {
		starts := make([]int64, len(s.Chunks))
		for i := range starts {
			starts[i] = s.Chunks[i].Start
		}
		chunks, err := v.Load(ctx, key, starts)
		if err != nil {
			return nil, err
		}
		for i := range chunks {
			if s.Chunks[i].Header != chunks[i].Header {
				return nil, errHeader
			}
		}
		var scan series.Scanner
		for b, err := range scan.Blocks(chunks, s.Pending, series.Range{From: series.MinTime, To: series.MaxTime + 1}) {
			if err != nil {
				return nil, err
			}
			for _, sm := range b.All() {
				out = append(out, sm)
			}
		}
	}
	return out, nil
}
