package aggregate_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

var (
	team = healthlab.TeamID{UUID: uuid.UUID{1}}
	user = healthlab.UserID{UUID: uuid.UUID{2}}
)

// person is one user's data in memory: a Reader that answers for this user only.
type person struct {
	zone    string
	records []healthdata.Record
	series  map[healthdata.SeriesKey]*stored

	loads int // calls of Load
}

type stored struct {
	chunks, pending []series.Chunk
}

func newPerson() *person { return &person{zone: "UTC", series: map[healthdata.SeriesKey]*stored{}} }

func (p *person) User(_ context.Context, t healthlab.TeamID, id healthlab.UserID) (healthdata.User, error) {
	if t != team || id != user {
		return healthdata.User{}, healthlab.NotFound
	}
	return healthdata.User{ID: id, Team: t, FallbackTimeZone: healthdata.FallbackTimeZone{ID: p.zone}}, nil
}

func (p *person) View(_ context.Context, t healthlab.TeamID, id healthlab.UserID, read func(healthdata.View) error) error {
	if t != team || id != user {
		return healthlab.NotFound
	}
	return read(personView{p})
}

type personView struct{ p *person }

func (v personView) Records(_ context.Context, q healthdata.RecordQuery) ([]healthdata.Record, error) {
	var out []healthdata.Record
	for _, r := range v.p.records {
		if r.Resource != q.Resource || !q.From.IsZero() && r.Index.Before(q.From) || !q.To.IsZero() && r.Index.After(q.To) {
			continue
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b healthdata.Record) int {
		return cmp.Or(a.Index.Compare(b.Index), bytes.Compare(a.ID[:], b.ID[:]))
	})
	return out, nil
}

func (v personView) Series(_ context.Context, q healthdata.SeriesQuery) ([]healthdata.Series, error) {
	var out []healthdata.Series
	for k, s := range v.p.series {
		if !slices.Contains(q.Resources, k.Resource) {
			continue
		}
		one := healthdata.Series{Key: k, Pending: s.pending}
		for _, c := range s.chunks {
			if c.Overlaps(q.From, q.To) {
				c.Data = nil
				one.Chunks = append(one.Chunks, c)
			}
		}
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b healthdata.Series) int { return a.Key.Compare(b.Key) })
	return out, nil
}

func (v personView) Load(_ context.Context, key healthdata.SeriesKey, starts []int64) ([]series.Chunk, error) {
	v.p.loads++
	s := v.p.series[key]
	out := make([]series.Chunk, 0, len(starts))
	for _, at := range starts {
		i, ok := slices.BinarySearchFunc(s.chunks, at, func(c series.Chunk, t int64) int { return cmp.Compare(c.Start, t) })
		if !ok {
			return nil, healthlab.NotFound
		}
		out = append(out, s.chunks[i])
	}
	return out, nil
}

// key names a series.
func key(resource, provider string, t healthdata.SourceType, part string) healthdata.SeriesKey {
	return healthdata.SeriesKey{Resource: resource, Provider: provider, SourceType: t, Part: part}
}

// measure merges samples into a series; pending ones go to its log.
func (p *person) measure(t require.TestingT, k healthdata.SeriesKey, span series.Span, pending bool, samples ...series.Sample) {
	var b series.Builder
	for _, s := range samples {
		b.Add(s)
	}
	st := p.series[k]
	if st == nil {
		st = &stored{}
		p.series[k] = st
	}
	if pending {
		seg, err := series.Segments(b.Block())
		require.NoError(t, err)
		st.pending = append(st.pending, seg...)
		return
	}
	change, err := series.Apply(st.chunks, nil, b.Block(), span)
	require.NoError(t, err)
	for _, put := range change.Put {
		st.chunks = slices.DeleteFunc(st.chunks, func(c series.Chunk) bool { return c.Start == put.Start })
	}
	st.chunks = slices.DeleteFunc(st.chunks, func(c series.Chunk) bool { return slices.Contains(change.Drop, c.Start) })
	st.chunks = append(st.chunks, change.Put...)
	slices.SortFunc(st.chunks, func(a, b series.Chunk) int { return cmp.Compare(a.Start, b.Start) })
}

// put stores a summary as its own JSON.
func (p *person) put(t require.TestingT, resource, provider string, st healthdata.SourceType, index time.Time, offset int, s healthdata.Summary) uuid.UUID {
	doc, err := json.Marshal(s)
	require.NoError(t, err)
	id := healthdata.HeadOf(s).ID
	if id == uuid.Nil {
		id = uuid.NewSHA1(uuid.Nil, append(doc, provider...))
	}
	p.records = append(p.records, healthdata.Record{
		Resource: resource, ID: id, Provider: provider, SourceType: st, Index: index.UTC(), Offset: offset, Doc: doc,
		CreatedAt: index, UpdatedAt: index,
	})
	return id
}

func service(t require.TestingT, p *person, opts *aggregate.Options) *aggregate.Service {
	s, err := aggregate.New(p, opts)
	require.NoError(t, err)
	return s
}

// ask answers a request that is written as JSON.
func ask(t *testing.T, s *aggregate.Service, body string) string {
	t.Helper()
	req, err := s.Decode([]byte(body), false)
	require.NoError(t, err)
	out, err := s.Query(t.Context(), team, user, &req)
	require.NoError(t, err)
	return string(out.AppendJSON(nil))
}

// table is the columns of a one-query answer.
func table(t *testing.T, s *aggregate.Service, body string) string {
	t.Helper()
	var out struct {
		Results []struct {
			Table json.RawMessage `json:"table"`
		} `json:"results"`
	}
	require.NoError(t, json.Unmarshal([]byte(ask(t, s, body)), &out))
	require.Len(t, out.Results, 1)
	return string(out.Results[0].Table)
}

// over wraps one query in a request over n days up to a day.
func over(days, anchor, query string) string {
	return `{"timeframe":{"type":"relative","anchor":"` + anchor + `","past":{"unit":"day","value":` + days + `}},"queries":[` + query + `]}`
}

// at is an instant in microseconds.
func at(s string) int64 {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return t.UnixMicro()
}

func ptr[T any](v T) *T { return &v }

func date(s string) healthlab.Date {
	d, err := healthlab.ParseDate(s)
	if err != nil {
		panic(err)
	}
	return d
}
