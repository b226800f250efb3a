package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/orders"
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
	"order": func(ctx context.Context, s *postgres.Store, u healthdata.User) error {
		_, err := s.Orders().Insert(ctx, orderOf(u), func(*orders.Record) ([]healthlab.Event, error) { return []healthlab.Event{event(u, "k")}, nil })
		return err
	},
	"order update": func(ctx context.Context, s *postgres.Store, u healthdata.User) error {
		_, err := s.Orders().Update(ctx, u.Team, thingsOf(u).order.ID, func(*orders.Record) ([]healthlab.Event, error) {
			return []healthlab.Event{event(u, "k")}, nil
		})
		return err
	},
	"order claim": func(ctx context.Context, s *postgres.Store, _ healthdata.User) error {
		_, err := s.Orders().Claim(ctx, 10, noon.Time, noon.Add(time.Minute))
		return err
	},
	"feed": func(ctx context.Context, s *postgres.Store, u healthdata.User) error {
		_, _, err := s.Orders().ClaimFeed(ctx, u.ID.String(), noon.Time, noon.Add(time.Minute))
		return err
	},
	"order key": func(ctx context.Context, s *postgres.Store, u healthdata.User) error {
		scope := orders.KeyScope{Team: u.Team, Endpoint: "order", Key: "k"}
		_, err := s.OrderKeys().StartKey(ctx, scope, "print", thingsOf(u).order.ID, noon.Time, noon.Add(time.Minute))
		return err
	},
	"lab test": func(ctx context.Context, s *postgres.Store, u healthdata.User) error {
		return s.LabTests().InsertLabTest(ctx, ownTest(u))
	},
	"lab test update": func(ctx context.Context, s *postgres.Store, u healthdata.User) error {
		_, err := s.LabTests().UpdateLabTest(ctx, u.Team, thingsOf(u).test.ID, func(t *orders.TeamTest) error {
			t.Name = "iron 2"
			return nil
		})
		return err
	},
	"demographics": func(ctx context.Context, s *postgres.Store, u healthdata.User) error {
		return s.Persons().PutUserInfo(ctx, u.Team, u.ID, orders.UserInfo{FirstName: "Ana", DOB: healthlab.DateOf(noon.Time)})
	},
	"insurance": func(ctx context.Context, s *postgres.Store, u healthdata.User) error {
		return s.Persons().AddCoverage(ctx, orders.Coverage{
			ID: u.ID.UUID, Team: u.Team, User: u.ID, ValidFrom: noon.Time,
			Record: orders.InsuranceRecord{Insured: orders.PersonDetails{DOB: healthlab.DateOf(noon.Time)}},
		})
	},
	"payor": func(ctx context.Context, s *postgres.Store, u healthdata.User) error {
		return s.Persons().AddPayor(ctx, orders.KeptPayor{Team: u.Team, Payor: orders.Payor{PayorCode: u.ID.String()}, CreatedAt: noon.Time})
	},
	"link code": func(ctx context.Context, s *postgres.Store, u healthdata.User) error {
		return s.Linking().InsertCode(ctx, linkCode(u, "other "+u.ID.String()))
	},
	"link try": func(ctx context.Context, s *postgres.Store, u healthdata.User) error {
		return s.Linking().TryCode(ctx, u.Team, [32]byte{1}, u.ID.String(), func(x *linking.Try) { _, _ = x.Redeem(time.Now()) })
	},
	"link session": func(ctx context.Context, s *postgres.Store, u healthdata.User) error {
		return s.Linking().InsertSession(ctx, linkSession(u))
	},
	"link session update": func(ctx context.Context, s *postgres.Store, u healthdata.User) error {
		_, err := s.Linking().UpdateSession(ctx, u.Team, thingsOf(u).session.ID, func(*linking.Session) error { return nil })
		return err
	},
	"link": func(ctx context.Context, s *postgres.Store, u healthdata.User) error {
		_, err := s.Linking().Complete(ctx, completed(thingsOf(u).session, u.ID.String()))
		return err
	},
	"unlink": func(ctx context.Context, s *postgres.Store, u healthdata.User) error {
		_, err := s.Linking().Disconnect(ctx, u.Team, u.ID, linkedProvider, func(*healthdata.User) error { return nil })
		return err
	},
	"parsing job": func(ctx context.Context, s *postgres.Store, u healthdata.User) error {
		return s.ParsingJobs().Insert(ctx, jobOf(u), 10, []healthlab.Event{event(u, "k")})
	},
	"parsing job update": func(ctx context.Context, s *postgres.Store, u healthdata.User) error {
		_, err := s.ParsingJobs().Update(ctx, u.Team, thingsOf(u).job.ID, func(*labreport.Job) ([]healthlab.Event, error) {
			return []healthlab.Event{event(u, "k")}, nil
		})
		return err
	},
	"parsing job claim": func(ctx context.Context, s *postgres.Store, _ healthdata.User) error {
		_, err := s.ParsingJobs().Claim(ctx, noon.Time, noon.Add(time.Minute), 10)
		return err
	},
}

// things are what a person has before something fails.
type things struct {
	order   orders.Record
	test    orders.TeamTest
	session linking.Session
	job     labreport.Job
}

// thingsOf names them by the person.
func thingsOf(u healthdata.User) things {
	x := things{orderOf(u), ownTest(u), linkSession(u), jobOf(u)}
	x.order.ID.UUID, x.test.ID.UUID, x.session.ID.UUID, x.job.ID.UUID = u.ID.UUID, u.ID.UUID, u.ID.UUID, u.ID.UUID
	return x
}

// newOwner adds a user with things.
func newOwner(t *testing.T, s *postgres.Store) healthdata.User {
	t.Helper()
	u := newPerson(t, s)
	x := thingsOf(u)
	_, err := s.Orders().Insert(t.Context(), x.order, unchanged)
	require.NoError(t, err)
	require.NoError(t, s.LabTests().InsertLabTest(t.Context(), x.test))
	require.NoError(t, s.Persons().PutUserInfo(t.Context(), u.Team, u.ID, orders.UserInfo{FirstName: "Bo", DOB: healthlab.DateOf(noon.Time)}))
	require.NoError(t, s.Linking().InsertCode(t.Context(), linkCode(u, u.ID.String())))
	require.NoError(t, s.Linking().InsertSession(t.Context(), x.session))
	require.NoError(t, s.ParsingJobs().Insert(t.Context(), x.job, 0, nil))
	return u
}

func read(ctx context.Context, s *postgres.Store, u healthdata.User) error {
	_, err := s.Users().Get(ctx, u.Team, u.ID)
	return err
}

// state is all rows of all tables.
func state(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	var all []string
	for _, table := range texts(t, pool, `select relname from`+ourTables+`and not relispartition`) {
		all = append(all, `select '`+table+` ' || whole::text from healthlab.`+table+` whole`)
	}
	return texts(t, pool, strings.Join(all, ` union all `)+` order by 1`)
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
	u := newOwner(t, postgres.New(good, nil))
	pool := configured(t, address, map[string]string{"default_transaction_read_only": "on"})
	s := postgres.New(pool, nil)
	before := state(t, good)
	for what, write := range writes {
		require.ErrorIs(t, bounded(t, func(ctx context.Context) error { return write(ctx, s, u) }), healthlab.Unavailable, what)
		require.Equal(t, before, state(t, good), what)
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
			u := newOwner(t, postgres.New(good, nil))
			before := state(t, good)
			tx, err := good.Begin(t.Context())
			require.NoError(t, err)
			for _, table := range texts(t, good, `select relname from`+ourTables) {
				_, err = tx.Exec(t.Context(), `lock healthlab.`+table+` in exclusive mode`)
				require.NoError(t, err)
			}
			pool := configured(t, address, map[string]string{setting: "20ms"})
			s := postgres.New(pool, nil)
			for what, write := range writes {
				require.ErrorIs(t, bounded(t, func(ctx context.Context) error { return write(ctx, s, u) }), healthlab.Unavailable, what)
			}
			require.NoError(t, tx.Rollback(t.Context()))
			require.Equal(t, before, state(t, good))
			requireIdle(t, pool)
		})
	}
}

// arm makes every statement that inserts into a table, or changes it, ask whether it may.
func arm(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	raising(t, pool, "XX000", 0)
	for _, table := range []string{
		"users", "chunk", "segment", "record", "webhook_pending", "orders", "order_key", "order_feed", "lab_test",
		"user_info", "insurance", "payor",
		"link_code", "link_try", "link_session", "parsing_job",
	} {
		_, err := pool.Exec(t.Context(), `create trigger raise_it after insert or update on healthlab.`+table+
			` for each statement execute function public.raise_it()`)
		require.NoError(t, err)
	}
}

// raising makes the next ones of such statements, so many of them, raise an error.
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
			arm(t, pool)
			for what, write := range writes {
				u := newOwner(t, s)
				before := state(t, pool)
				raising(t, pool, c.code, c.times)
				err := bounded(t, func(ctx context.Context) error { return write(ctx, s, u) })
				raising(t, pool, c.code, 0)
				if c.want == nil {
					require.NoError(t, err, what)
					continue
				}
				require.ErrorIs(t, err, c.want, what)
				require.NotContains(t, err.Error(), "person", what)
				require.Equal(t, before, state(t, pool), what)
			}
			requireIdle(t, pool)
		})
	}
}

// Connections that broke while they were idle are not the caller's concern.
func TestLostConnections(t *testing.T) {
	t.Parallel()
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
		u := newOwner(t, s)
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
	u := newOwner(t, s)
	before := state(t, pool)
	held, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	for what, write := range writes {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		err := write(ctx, s, u)
		cancel()
		require.True(t, errors.Is(err, context.DeadlineExceeded), what)
	}
	held.Release()
	require.Equal(t, before, state(t, pool))
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
