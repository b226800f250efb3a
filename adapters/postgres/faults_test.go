package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

// writes are calls that change something of a user, and read calls that do not.
var writes = map[string]func(context.Context, *postgres.Store, healthdata.User) error{
	"update": func(ctx context.Context, s *postgres.Store, u healthdata.User) error {
		_, err := s.Users().Update(ctx, u.Team, u.ID, func(u *healthdata.User) ([]healthlab.Event, error) {
			u.FallbackTimeZone.ID = "Asia/Tokyo"
			return []healthlab.Event{event(*u, "k")}, nil
		})
		return err
	},
	"samples": func(ctx context.Context, s *postgres.Store, u healthdata.User) error {
		return s.Data().MergeSamples(ctx, u.Team, u.ID, []healthdata.SampleBatch{minutes(heart, 0, 10, 1)},
			func([]series.Outcome) ([]healthlab.Event, error) { return []healthlab.Event{event(u, "k")}, nil })
	},
	"samples without events": func(ctx context.Context, s *postgres.Store, u healthdata.User) error {
		return s.Data().MergeSamples(ctx, u.Team, u.ID, []healthdata.SampleBatch{minutes(heart, 0, 2000, 1)}, nil)
	},
	"records": func(ctx context.Context, s *postgres.Store, u healthdata.User) error {
		r := healthdata.Record{
			Resource: "sleep", ID: u.ID.UUID, Provider: "acme_band", SourceType: "watch", Index: noon.Time, Doc: []byte(`{}`),
		}
		return s.Data().PutRecords(ctx, u.Team, u.ID, []healthdata.Record{r},
			func([]healthdata.PutResult) ([]healthlab.Event, error) { return []healthlab.Event{event(u, "k")}, nil })
	},
	"outbox": func(ctx context.Context, s *postgres.Store, u healthdata.User) error {
		return s.Outbox().Append(ctx, []healthlab.Event{event(u, "k")})
	},
}

func read(ctx context.Context, s *postgres.Store, u healthdata.User) error {
	_, err := s.Users().Get(ctx, u.Team, u.ID)
	return err
}

// untouched requires that a user is as it was inserted.
func untouched(t *testing.T, pool *pgxpool.Pool, u healthdata.User, what string) {
	t.Helper()
	got, err := postgres.New(pool, nil).Users().Get(t.Context(), u.Team, u.ID)
	require.NoError(t, err, what)
	require.EqualValues(t, 1, got.Revision, what)
	for _, table := range []string{"series", "chunk", "segment", "record", "webhook_event", "webhook_pending", "event_key"} {
		require.Zero(t, rows(t, pool, table), what+" "+table)
	}
}

// configured returns connections with settings of the server's.
func configured(t *testing.T, address string, settings map[string]string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(address)
	require.NoError(t, err)
	for name, value := range settings {
		config.ConnConfig.RuntimeParams[name] = value
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// bounded runs a call that must end by itself.
func bounded(t *testing.T, call func(context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err := call(ctx)
	require.NoError(t, ctx.Err(), "it ended by itself")
	return err
}

// A server that only reads, as a replica does: reads work, writes are Unavailable.
func TestReadOnlyServer(t *testing.T) {
	address := pgtest.URL(t)
	good := pgtest.Connect(t, address)
	u := newPerson(t, postgres.New(good, nil))
	pool := configured(t, address, map[string]string{"default_transaction_read_only": "on"})
	s := postgres.New(pool, nil)
	for what, write := range writes {
		require.ErrorIs(t, bounded(t, func(ctx context.Context) error { return write(ctx, s, u) }), healthlab.Unavailable, what)
		untouched(t, good, u, what)
	}
	require.NoError(t, read(t.Context(), s, u))
	requireIdle(t, pool)
}

// A lock that somebody holds for too long, by the server's clocks.
func TestTimeoutsOfTheServer(t *testing.T) {
	for _, setting := range []string{"statement_timeout", "lock_timeout"} {
		t.Run(setting, func(t *testing.T) {
			address := pgtest.URL(t)
			good := pgtest.Connect(t, address)
			u := newPerson(t, postgres.New(good, nil))
			tx, err := good.Begin(t.Context())
			require.NoError(t, err)
			_, err = tx.Exec(t.Context(), `select from healthlab.users for update; lock healthlab.series, healthlab.webhook_event`)
			require.NoError(t, err)
			pool := configured(t, address, map[string]string{setting: "20ms"})
			s := postgres.New(pool, nil)
			for what, write := range writes {
				require.ErrorIs(t, bounded(t, func(ctx context.Context) error { return write(ctx, s, u) }), healthlab.Unavailable, what)
			}
			require.NoError(t, tx.Rollback(t.Context()))
			untouched(t, good, u, setting)
			requireIdle(t, pool)
		})
	}
}

// raising makes every statement that inserts into a table, or changes it, raise an
// error, so many times.
func raising(t *testing.T, pool *pgxpool.Pool, code string, times int) {
	t.Helper()
	_, err := pool.Exec(t.Context(), fmt.Sprintf(`
		create sequence if not exists public.raised;
		select setval('public.raised', 1, false);
		create or replace function public.raise_it() returns trigger language plpgsql as $$
		begin
			if nextval('public.raised') <= %d then
				raise exception 'value of a person' using errcode = '%s';
			end if;
			return null;
		end $$;`, times, code))
	require.NoError(t, err)
	for _, table := range []string{"users", "chunk", "segment", "record", "webhook_pending"} {
		_, err := pool.Exec(t.Context(), `create or replace trigger raise_it after insert or update on healthlab.`+table+
			` for each statement execute function public.raise_it()`)
		require.NoError(t, err)
	}
}

// Errors in the middle of a transaction: contention is tried again and ends well or as
// Unavailable; others are what they are. Nothing half is left, and nothing is quoted.
func TestErrorsInside(t *testing.T) {
	for _, c := range []struct {
		code  string
		times int
		want  error
	}{
		{"40001", 2, nil},
		{"40P01", 3, nil},
		{"40001", 1000, healthlab.Unavailable},
		{"53100", 1000, healthlab.Unavailable}, // disk full
		{"53200", 1000, healthlab.Unavailable}, // out of memory
		{"58030", 1000, healthlab.Unavailable}, // the disk fails
		{"22003", 1000, healthlab.Invalid},
		{"XX000", 1000, healthlab.Unknown},
	} {
		t.Run(fmt.Sprint(c.code, "/", c.times), func(t *testing.T) {
			pool := pgtest.Pool(t)
			s := postgres.New(pool, nil)
			for what, write := range writes {
				u := newPerson(t, s)
				before := rows(t, pool, "webhook_event")
				raising(t, pool, c.code, c.times)
				err := bounded(t, func(ctx context.Context) error { return write(ctx, s, u) })
				raising(t, pool, c.code, 0)
				if c.want == nil {
					require.NoError(t, err, what)
					continue
				}
				require.ErrorIs(t, err, c.want, what)
				require.NotContains(t, err.Error(), "person", what)
				require.Equal(t, before, rows(t, pool, "webhook_event"), what)
				require.Empty(t, readSeries(t, s, u, heart), what)
			}
			requireIdle(t, pool)
		})
	}
}

// Connections that broke while they were idle are not the caller's concern.
func TestLostConnections(t *testing.T) {
	address := pgtest.URL(t)
	pool, other := pgtest.Connect(t, address), pgtest.Connect(t, address)
	s := postgres.New(pool, nil)
	lose := func() {
		require.NoError(t, other.Ping(t.Context()))
		_, err := other.Exec(t.Context(), `
			select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`)
		require.NoError(t, err)
	}
	for what, write := range writes {
		u := newPerson(t, s)
		lose()
		err := bounded(t, func(ctx context.Context) error { return write(ctx, s, u) })
		if err != nil { // a write in one trip may have arrived; it is not repeated
			require.ErrorIs(t, err, healthlab.Unavailable, what)
		}
		lose()
		require.NoError(t, bounded(t, func(ctx context.Context) error { return read(ctx, s, u) }), what)
	}

	// Lost between the look and the write: nobody is told that it went well.
	u := newPerson(t, s)
	_, err := s.Users().Update(t.Context(), u.Team, u.ID, func(*healthdata.User) ([]healthlab.Event, error) {
		lose()
		return nil, nil
	})
	require.ErrorIs(t, err, healthlab.Unavailable)
	got, err := s.Users().Get(t.Context(), u.Team, u.ID)
	require.NoError(t, err)
	require.EqualValues(t, 1, got.Revision)

	// Lost while a view is open.
	err = s.Data().View(t.Context(), u.Team, u.ID, func(v healthdata.View) error {
		lose()
		_, err := v.Series(t.Context(), healthdata.SeriesQuery{Resources: []string{"heartrate"}})
		return err
	})
	require.ErrorIs(t, err, healthlab.Unavailable)
	requireIdle(t, pool)
}

// Nobody listens.
func TestNoServer(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/none?connect_timeout=2")
	require.NoError(t, err)
	defer pool.Close()
	s := postgres.New(pool, nil)
	u := personOf(healthlab.TeamID{UUID: noID})
	for what, write := range writes {
		require.ErrorIs(t, bounded(t, func(ctx context.Context) error { return write(ctx, s, u) }), healthlab.Unavailable, what)
	}
	require.ErrorIs(t, bounded(t, func(ctx context.Context) error { return read(ctx, s, u) }), healthlab.Unavailable)
	require.ErrorIs(t, postgres.Migrate(t.Context(), pool), healthlab.Unavailable)
}

var noID = [16]byte{1}

// All connections are out: a call waits no longer than its context.
func TestPoolExhausted(t *testing.T) {
	pool := pgtest.Connect(t, pgtest.URL(t)+"&pool_max_conns=1")
	s := postgres.New(pool, nil)
	u := newPerson(t, s)
	held, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	for what, write := range writes {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		err := write(ctx, s, u)
		cancel()
		require.True(t, errors.Is(err, context.DeadlineExceeded), what)
	}
	held.Release()
	untouched(t, pool, u, "afterwards")
	require.NoError(t, writes["samples"](t.Context(), s, u))
	requireIdle(t, pool)
}

// Where the database's own default is stricter, contention is solved by trying again.
func TestSerializableByDefault(t *testing.T) {
	address := pgtest.URL(t)
	pool := configured(t, address, map[string]string{"default_transaction_isolation": "serializable"})
	s := postgres.New(pool, &postgres.Options{Writers: 8})
	u := newPerson(t, s)
	mergeInto(t, s, u, heart, 0, 1, 0)
	errs := make(chan error)
	const callers = 8
	for c := range callers {
		go func() {
			err := s.Data().MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{minutes(heart, 1+c, 1, 1)}, nil)
			errs <- err
		}()
	}
	failed := 0
	for range callers {
		if err := <-errs; err != nil {
			require.ErrorIs(t, err, healthlab.Unavailable)
			failed++
		}
	}
	require.Len(t, readSeries(t, s, u, heart), 1+callers-failed)
	consistent(t, pool)
}
