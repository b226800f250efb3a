package bench_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"testing"
	"time"

	_ "github.com/duckdb/duckdb-go/v2"
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

// start is the first second of every series.
var start = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

// offset is how far the clock of the person is from UTC, in seconds.
const offset = 3600

// person is one user with one series of heart rates, as chunks in memory.
type person struct{ chunks []series.Chunk }

func value(i int64) float64 {
	// valueSQL makes the same in DuckDB.
	return float64(60 + (i/60)*7919%40 + i*31%5)
}

const valueSQL = "(60 + (i // 60) * 7919 % 40 + i * 31 % 5)::double"

// newPerson returns a person with n heart rates, one a second.
func newPerson(t testing.TB, n int64) *person {
	t.Helper()
	p := &person{}
	for i := int64(0); i < n; {
		var b series.Block
		cell := series.PerSecond.Cell(start + i*1_000_000)
		for ; i < n && start+i*1_000_000 < cell.To; i++ {
			b.Append(series.Sample{Time: start + i*1_000_000, End: series.NoEnd, Value: value(i), Attrs: series.Attrs{Offset: offset}})
		}
		c, err := series.NewChunk(&b)
		require.NoError(t, err)
		p.chunks = append(p.chunks, c)
	}
	return p
}

func (p *person) User(context.Context, healthlab.TeamID, healthlab.UserID) (healthdata.User, error) {
	return healthdata.User{ID: user, Team: team, FallbackTimeZone: healthdata.FallbackTimeZone{ID: "UTC"}}, nil
}

func (p *person) View(_ context.Context, _ healthlab.TeamID, _ healthlab.UserID, read func(healthdata.View) error) error {
	return read(view{p})
}

type view struct{ p *person }

func (v view) Records(context.Context, healthdata.RecordQuery) ([]healthdata.Record, error) {
	return nil, nil
}

func (v view) Series(_ context.Context, q healthdata.SeriesQuery) ([]healthdata.Series, error) {
	s := healthdata.Series{Key: healthdata.SeriesKey{Resource: "heartrate", Provider: "acme_watch", SourceType: healthdata.SourceWatch}}
	for _, c := range v.p.chunks {
		if c.Overlaps(q.From, q.To) {
			c.Data = nil
			s.Chunks = append(s.Chunks, c)
		}
	}
	return []healthdata.Series{s}, nil
}

func (v view) Load(_ context.Context, _ healthdata.SeriesKey, starts []int64) ([]series.Chunk, error) {
	out := make([]series.Chunk, len(starts))
	for i, at := range starts {
		k, ok := slices.BinarySearchFunc(v.p.chunks, at, func(c series.Chunk, t int64) int { return int(min(max(c.Start-t, -1), 1)) })
		if !ok {
			return nil, healthlab.NotFound
		}
		out[i] = v.p.chunks[k]
	}
	return out, nil
}

func newService(t testing.TB, p *person, threads int) *aggregate.Service {
	t.Helper()
	s, err := aggregate.New(p, &aggregate.Options{
		Parallel: threads, Limits: aggregate.Limits{Rows: 100_000_000, Values: 100_000_000, Time: time.Hour},
	})
	require.NoError(t, err)
	return s
}

// duck is a DuckDB in memory with some threads.
func duck(t testing.TB, threads int) *sql.DB {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	require.NoError(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	run(t, db, fmt.Sprintf("set threads = %d", threads))
	return db
}

func run(t testing.TB, db *sql.DB, statement string) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), statement)
	require.NoError(t, err, statement)
}

func fill(t testing.TB, db *sql.DB, n int64) {
	t.Helper()
	run(t, db, fmt.Sprintf(`create or replace table sample as select make_timestamp(%d + i * 1000000) as wall, %s as value from range(%d) r(i)`,
		start+offset*1_000_000, valueSQL, n))
}

// ask answers one query over all of the person's data.
func ask(t testing.TB, s *aggregate.Service, q aggregate.Query) *aggregate.Frame {
	t.Helper()
	out, err := s.Query(t.Context(), team, user, aggregate.Ask(aggregate.Timeframe{
		Anchor: healthlab.Date{Year: 2026, Month: 12, Day: 31}, Past: aggregate.Years(3),
	}, q))
	require.NoError(t, err)
	return &out.Frames[0]
}
