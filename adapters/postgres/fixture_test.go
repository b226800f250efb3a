package postgres_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/personkey"
)

var noon = healthlab.At(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))

func personOf(team healthlab.TeamID) healthdata.User {
	return healthdata.User{
		ID: healthlab.UserID{UUID: uuid.New()}, Team: team, ClientUserID: uuid.NewString(), CreatedOn: noon,
		FallbackTimeZone: healthdata.FallbackTimeZone{ID: "UTC", SourceSlug: "default", UpdatedAt: noon},
	}
}

// sealed returns options of a store that encrypts.
func sealed() *postgres.Options { return &postgres.Options{Keys: personKeys()} }

// personKeys returns keys of persons in memory.
func personKeys() *personkey.Keys {
	sealer, err := healthlab.NewAESSealer("host", map[string][]byte{"host": bytes.Repeat([]byte{7}, 32)})
	if err != nil {
		panic(err) // the key has the right length
	}
	return personkey.New(memory.NewPersonKeys(), sealer, &personkey.Options{Cached: 100_000})
}

// clockedStore returns an empty store, and sets its clock.
func clockedStore(t testing.TB) (*postgres.Store, func(time.Time)) {
	pool := pgtest.Pool(t)
	return postgres.New(pool, sealed()), setClock(t, pool)
}

// restrictedClock is clockedStore for a role that row-level security holds for.
func restrictedClock(t testing.TB) (*postgres.Store, func(time.Time)) {
	pool, owner := restrictedOf(t)
	return postgres.New(pool, &postgres.Options{RowSecurity: true}), setClock(t, owner)
}

// setClock returns what makes healthlab.clock stand at an instant, as owner of the database.
func setClock(t testing.TB, owner *pgxpool.Pool) func(time.Time) {
	return func(at time.Time) {
		_, err := owner.Exec(t.Context(), fmt.Sprintf(
			`create or replace function healthlab.clock() returns timestamptz language sql stable parallel safe as $$ select '%s'::timestamptz $$`,
			at.Format(time.RFC3339Nano)))
		require.NoError(t, err)
	}
}

// form is whether a store encrypts samples.
type form string

const (
	inClear   form = "in clear"
	encrypted form = "encrypted"
)

// sampleKeys are what stores of [encrypted] encrypt with.
var sampleKeys = personKeys()

// New returns a store with some options.
func (f form) New(db postgres.DB, opts *postgres.Options) *postgres.Store {
	if f == encrypted {
		o := postgres.Options{}
		if opts != nil {
			o = *opts
		}
		o.Keys, o.EncryptSamples = sampleKeys, true
		opts = &o
	}
	return postgres.New(db, opts)
}

// eachForm runs a test with samples in clear and, in CI and under make prove, with encrypted ones.
func eachForm(t *testing.T, test func(t *testing.T, f form)) {
	forms := []form{inClear}
	if prove.All() {
		forms = append(forms, encrypted)
	}
	for _, f := range forms {
		t.Run(string(f), func(t *testing.T) { test(t, f) })
	}
}

// newPerson adds a user of a team of its own.
func newPerson(t testing.TB, s *postgres.Store) healthdata.User {
	t.Helper()
	u := personOf(healthlab.TeamID{UUID: uuid.New()})
	require.NoError(t, s.Users().Insert(t.Context(), u, 0))
	return u
}

// minutes is n samples, one a minute, of one value.
func minutes(key healthdata.SeriesKey, from, n int, value float64) healthdata.SampleBatch {
	b := new(series.Block)
	for i := range n {
		b.Append(series.Sample{Time: noon.UnixMicro() + int64(from+i)*60_000_000, Value: value})
	}
	return healthdata.SampleBatch{Key: key, Samples: b, Span: series.PerMinute}
}

// steps is another series than heart.
var steps = healthdata.SeriesKey{Resource: "steps", Provider: "acme_band", SourceType: "watch"}

// everySample puts samples of a user into every place where samples are kept: a chunk,
// segments as a merge and as a full tail make them, and a tail.
func everySample(t testing.TB, s *postgres.Store, u healthdata.User) {
	t.Helper()
	mergeInto(t, s, u, heart, 0, 2000, 60)
	mergedSegment(t, s, u, 2000)
	for i := range 60 {
		mergeInto(t, s, u, heart, 2001+i, 1, float64(60+i))
	}
}

// mergedSegment adds a minute to heart, and one to steps, each as a segment with a header.
func mergedSegment(t testing.TB, s *postgres.Store, u healthdata.User, at int) {
	t.Helper()
	err := s.Data().MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{minutes(heart, at, 1, 60), minutes(steps, at, 1, 60)}, nil)
	require.NoError(t, err)
}

// varied is n samples, one a minute, that do not go into few bytes.
func varied(key healthdata.SeriesKey, from, n int) healthdata.SampleBatch {
	b := minutes(key, from, n, 0)
	for i := range b.Samples.Value {
		b.Samples.Value[i] = 1 / float64(from+i+3)
	}
	return b
}

func mergeInto(t testing.TB, s *postgres.Store, u healthdata.User, key healthdata.SeriesKey, from, n int, value float64) (o series.Outcome) {
	t.Helper()
	err := s.Data().MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{minutes(key, from, n, value)},
		func(all []series.Outcome) ([]healthlab.Event, error) {
			o = all[0]
			return nil, nil
		})
	require.NoError(t, err)
	return o
}

// readSeries reads a whole series.
func readSeries(t testing.TB, s *postgres.Store, u healthdata.User, key healthdata.SeriesKey) (out []series.Sample) {
	t.Helper()
	err := s.Data().View(t.Context(), u.Team, u.ID, func(v healthdata.View) error {
		all, err := v.Series(t.Context(), healthdata.SeriesQuery{Resources: []string{key.Resource}, Key: &key})
		if err != nil || len(all) == 0 {
			return err
		}
		var starts []int64
		for i := range all[0].Chunks {
			starts = append(starts, all[0].Chunks[i].Start)
		}
		chunks, err := v.Load(t.Context(), key, starts)
		if err != nil {
			return err
		}
		var scan series.Scanner
		for b, err := range scan.Blocks(chunks, all[0].Pending, series.Range{From: series.MinTime, To: series.MaxTime}) {
			if err != nil {
				return err
			}
			for _, sm := range b.All() {
				out = append(out, sm)
			}
		}
		return nil
	})
	require.NoError(t, err)
	return out
}

func event(u healthdata.User, key string) healthlab.Event {
	return healthlab.Event{
		ID: uuid.New(), Type: healthdata.EventConnectionCreated, Team: u.Team, User: u.ID, Key: key, At: noon.Time, Data: []byte(`{"n":1}`),
	}
}
