package queryoracle

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// Team and User are the ids under which a Person answers. Other ids are NotFound.
var (
	Team = healthlab.TeamID{UUID: uuid.UUID{1}}
	User = healthlab.UserID{UUID: uuid.UUID{2}}
)

// Person is an aggregate.Reader of one user's data in memory.
type Person struct {
	Zone    string
	Records []healthdata.Record
	Series  map[healthdata.SeriesKey]*Stored

	Loads int // the number of calls of View.Load
}

// Stored is one series of samples of a Person: merged chunks, and pending samples.
type Stored struct {
	Chunks, Pending []series.Chunk
}

// NewPerson returns a Person without data in the time zone UTC.
func NewPerson() *Person { return &Person{Zone: "UTC", Series: map[healthdata.SeriesKey]*Stored{}} }

// User implements aggregate.Reader.
func (p *Person) User(_ context.Context, t healthlab.TeamID, id healthlab.UserID) (healthdata.User, error) {
	if t != Team || id != User {
		return healthdata.User{}, healthlab.NotFound
	}
	return healthdata.User{ID: id, Team: t, FallbackTimeZone: healthdata.FallbackTimeZone{ID: p.Zone}}, nil
}

// View implements aggregate.Reader.
func (p *Person) View(_ context.Context, t healthlab.TeamID, id healthlab.UserID, read func(healthdata.View) error) error {
	if t != Team || id != User {
		return healthlab.NotFound
	}
	return read(view{p})
}

type view struct{ p *Person }

func (v view) Records(_ context.Context, q healthdata.RecordQuery) ([]healthdata.Record, error) {
	var out []healthdata.Record
	for _, r := range v.p.Records {
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

func (v view) Series(_ context.Context, q healthdata.SeriesQuery) ([]healthdata.Series, error) {
	var out []healthdata.Series
	for k, s := range v.p.Series {
		if !slices.Contains(q.Resources, k.Resource) {
			continue
		}
		one := healthdata.Series{Key: k, Pending: s.Pending}
		for _, c := range s.Chunks {
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

func (v view) Load(_ context.Context, key healthdata.SeriesKey, starts []int64) ([]series.Chunk, error) {
	v.p.Loads++
	s := v.p.Series[key]
	out := make([]series.Chunk, 0, len(starts))
	for _, at := range starts {
		i, ok := slices.BinarySearchFunc(s.Chunks, at, func(c series.Chunk, t int64) int { return cmp.Compare(c.Start, t) })
		if !ok {
			return nil, healthlab.NotFound
		}
		out = append(out, s.Chunks[i])
	}
	return out, nil
}

// Measure writes samples to a series. If pending, it only adds them to [Stored].Pending, as a store does with samples
// that it has not merged into chunks yet.
func (p *Person) Measure(t require.TestingT, k healthdata.SeriesKey, span series.Span, pending bool, samples ...series.Sample) {
	var b series.Builder
	for _, s := range samples {
		b.Add(s)
	}
	st := p.Series[k]
	if st == nil {
		st = &Stored{}
		p.Series[k] = st
	}
	if pending {
		seg, err := series.NewChunk(b.Block())
		require.NoError(t, err)
		st.Pending = append(st.Pending, seg)
		return
	}
	change, err := series.Apply(st.Chunks, nil, b.Block(), span)
	require.NoError(t, err)
	for _, put := range change.Put {
		st.Chunks = slices.DeleteFunc(st.Chunks, func(c series.Chunk) bool { return c.Start == put.Start })
	}
	st.Chunks = slices.DeleteFunc(st.Chunks, func(c series.Chunk) bool { return slices.Contains(change.Drop, c.Start) })
	st.Chunks = append(st.Chunks, change.Put...)
	slices.SortFunc(st.Chunks, func(a, b series.Chunk) int { return cmp.Compare(a.Start, b.Start) })
}

// Put stores a summary with its source type, its time (index) and its offset from UTC, and returns its id.
func (p *Person) Put(t require.TestingT, resource, provider string, st healthdata.SourceType, index time.Time, offset int, s healthdata.Summary) uuid.UUID {
	doc, err := json.Marshal(s)
	require.NoError(t, err)
	id := healthdata.HeadOf(s).ID
	if id == uuid.Nil {
		id = uuid.NewSHA1(uuid.Nil, append(doc, provider...))
	}
	p.Records = append(p.Records, healthdata.Record{
		Resource: resource, ID: id, Provider: provider, SourceType: st, Index: index.UTC(), Offset: offset, Doc: doc,
		CreatedAt: index, UpdatedAt: index,
	})
	return id
}
