package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/store"
	"github.com/healthlab-dev/healthlab/store/storetest"
)

// engineSuite returns a harness of two processes, whose sessions change makes.
func engineSuite(opts postgres.Options, change func(*pgxpool.Config)) func(testing.TB) storetest.Harness {
	return func(t testing.TB) storetest.Harness {
		address, sent := pgtest.URL(t), &sentBatches{}
		first := poolWith(t, address, func(c *pgxpool.Config) {
			c.ConnConfig.Tracer = sent
			change(c)
		})
		return storetest.Harness{
			Store: openEngine(t, first, storetest.Tables(), opts), Second: openEngine(t, poolWith(t, address, change), storetest.Tables(), opts),
			Trips: func() int { return int(sent.n.Load()) },
		}
	}
}

func TestStore_passesTheStoreSuite(t *testing.T) {
	t.Parallel()
	storetest.Run(t, engineSuite(postgres.Options{}, func(*pgxpool.Config) {}))
}

// The suite passes for a role that row-level security holds for.
func TestStore_passesTheStoreSuiteWithRowSecurity(t *testing.T) {
	t.Parallel()
	noCluster(t)
	storetest.Run(t, engineSuite(postgres.Options{RowSecurity: true}, asRestricted))
}

func plainRow(team healthlab.TeamID, id string) store.Row {
	return store.Row{Key: store.Key{Table: "plain", Team: team, ID: id}, Doc: []byte("planted")}
}

func uniqueRow(team healthlab.TeamID, id, value string) store.Row {
	return store.Row{Key: store.Key{Table: "unique_first", Team: team, ID: id}, Index: [2]string{value}}
}

func anyTeam() healthlab.TeamID { return healthlab.TeamID{UUID: uuid.New()} }

func anyUser() healthlab.UserID { return healthlab.UserID{UUID: uuid.New()} }

func put(ctx context.Context, s store.Store, rows ...store.Row) error {
	return s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		tx.Put(rows...)
		return nil
	})
}

// idsOf returns the ids of the rows of a team in a table.
func idsOf(ctx context.Context, t testing.TB, s store.Store, table string, team healthlab.TeamID) []string {
	t.Helper()
	got, err := s.Read(ctx, store.Query{Key: store.Key{Table: table, Team: team}, By: store.ByID})
	require.NoError(t, err)
	out := []string{}
	for _, r := range got[0] {
		out = append(out, r.ID)
	}
	return out
}

// An update that reads all it wants at once takes two round trips on the wire, however much it reads
// and writes; one that only puts, and a read, take one. Users who have no row cost no trip more, but for the
// first of them.
func TestStore_updateTakesTwoRoundTrips(t *testing.T) {
	t.Parallel()
	wire := &flights{}
	pool := poolWith(t, pgtest.URL(t), func(c *pgxpool.Config) {
		c.ConnConfig.DialFunc = wire.dial
		c.MaxConns = 1
	})
	securities := []bool{false, true}
	if pgtest.Spread() {
		securities = securities[:1]
	}
	for _, security := range securities {
		e := openEngine(t, pool, storetest.Tables(), postgres.Options{RowSecurity: security, Now: time.Now})
		team, user := anyTeam(), healthlab.UserID{UUID: uuid.New()}
		require.NoError(t, put(t.Context(), e, store.Row{Key: store.UserKey(team, user)}, plainRow(team, "changed"), plainRow(team, "dropped")))
		n := 0
		work := map[string]func() error{
			"update": func() error {
				n++
				return e.Update(t.Context(), func(_ context.Context, tx store.Tx) error {
					got, err := tx.Read(store.User(team, user), store.Query{Key: plainRow(team, "changed").Key}.Hold(),
						store.Query{Key: store.Key{Table: "plain", Team: team}, By: store.ByID, From: "new", Limit: 3, Lock: store.Plain})
					if err != nil {
						return err
					}
					tx.Put(got[1]...)
					for i := range 20 {
						r := plainRow(team, fmt.Sprint("new ", n, i))
						r.User = user
						tx.Put(r)
					}
					tx.Delete(plainRow(team, "dropped").Key)
					return nil
				})
			},
			"absent": func() error {
				n++
				return e.Update(t.Context(), func(_ context.Context, tx store.Tx) error {
					elsewhere := healthlab.UserID{UUID: uuid.New()}
					_, err := store.LockUser(tx, team, elsewhere)
					r := plainRow(team, fmt.Sprint("elsewhere ", n))
					r.User = elsewhere
					tx.Put(r)
					return err
				})
			},
			"put": func() error { n++; return put(t.Context(), e, plainRow(team, fmt.Sprint("put ", n))) },
			"read": func() error {
				_, err := e.Read(t.Context(), store.User(team, user), store.Query{Key: store.Key{User: user}, By: store.ByUser, Limit: 5})
				return err
			},
		}
		for name, want := range map[string]int64{"update": 2, "absent": 2, "put": 1, "read": 1} {
			require.NoError(t, work[name]()) // prepares the statements
			before := wire.n.Load()
			require.NoError(t, work[name]())
			require.Equal(t, want, wire.n.Load()-before, "%s, row security %t", name, security)
		}
	}
}

// Rows of the store and of the host commit together, or not at all.
func TestWithTx_commitsWithTheHostsTransaction(t *testing.T) {
	t.Parallel()
	pool := pgtest.Connect(t, pgtest.Fresh(t)) // the host's table is no other test's
	_, err := pool.Exec(t.Context(), "create table public.host (id text primary key)")
	require.NoError(t, err)
	e := openEngine(t, pool, storetest.Tables(), postgres.Options{})
	hostRows := func() (n int) {
		require.NoError(t, pool.QueryRow(t.Context(), "select count(*) from public.host").Scan(&n))
		return n
	}
	for _, commits := range []bool{false, true} {
		team := anyTeam()
		tx, err := pool.Begin(t.Context())
		require.NoError(t, err)
		ctx := e.WithTx(t.Context(), tx)
		_, err = tx.Exec(ctx, "insert into public.host values ('host')")
		require.NoError(t, err)
		require.NoError(t, put(ctx, e, plainRow(team, "first")))
		require.NoError(t, e.Update(ctx, func(ctx context.Context, tx store.Tx) error {
			got, err := tx.Read(store.Query{Key: plainRow(team, "first").Key}.Hold())
			if err != nil {
				return err
			}
			require.Len(t, got[0], 1, "an update sees those before it")
			tx.AfterCommit(func() { t.Error("called, and the host has not committed") })
			tx.Put(got[0]...)
			return put(ctx, e, plainRow(team, "joined"))
		}))
		require.Equal(t, []string{"first", "joined"}, idsOf(ctx, t, e, "plain", team))
		require.Empty(t, idsOf(t.Context(), t, e, "plain", team), "not before the host's commit")
		if !commits {
			require.NoError(t, tx.Rollback(t.Context()))
			require.Empty(t, idsOf(t.Context(), t, e, "plain", team))
			require.Zero(t, hostRows())
			continue
		}
		require.NoError(t, tx.Commit(t.Context()))
		require.Equal(t, []string{"first", "joined"}, idsOf(t.Context(), t, e, "plain", team))
		require.Equal(t, 1, hostRows())
	}
}

// What fails in a host's transaction undoes itself alone.
func TestWithTx_failedUpdateRollsBackOnlyItself(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	e := openEngine(t, pool, storetest.Tables(), postgres.Options{})
	team, failed := anyTeam(), errors.New("failed")
	require.NoError(t, put(t.Context(), e, uniqueRow(team, "a", "x"), uniqueRow(team, "b", "y")))
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		ctx := e.WithTx(t.Context(), tx)
		require.NoError(t, put(ctx, e, plainRow(team, "kept")))
		require.ErrorIs(t, e.Update(ctx, func(_ context.Context, tx store.Tx) error {
			_, err := tx.Read(store.Query{Key: plainRow(team, "kept").Key}.Hold())
			tx.Put(plainRow(team, "undone"))
			return errors.Join(failed, err)
		}), failed)
		require.ErrorIs(t, put(ctx, e, plainRow(team, "taken"), uniqueRow(team, "c", "x")), healthlab.Conflict)
		require.ErrorContains(t, put(ctx, e, store.Row{Key: store.Key{Table: "unknown", ID: "a"}}), "not declared")
		stale := plainRow(team, "kept")
		stale.Revision = 7
		require.ErrorIs(t, put(ctx, e, stale), store.ErrStale)
		return e.Update(ctx, func(_ context.Context, tx store.Tx) error { // a second run exchanges unique values
			got, err := tx.Read(store.Query{Key: uniqueRow(team, "a", "").Key}.Hold(), store.Query{Key: uniqueRow(team, "b", "").Key}.Hold())
			if err != nil {
				return err
			}
			a, b := got[0][0], got[1][0]
			a.Index, b.Index = b.Index, a.Index
			tx.Put(a, b)
			return nil
		})
	}))
	require.Equal(t, []string{"kept"}, idsOf(t.Context(), t, e, "plain", team))
	got, err := e.Read(t.Context(), store.Query{Key: store.Key{Table: "unique_first", Team: team}, By: store.ByFirst}.Equal("x"))
	require.NoError(t, err)
	require.Equal(t, "b", got[0][0].ID)
}

// Two updates that lock rows in turn are run again after a deadlock.
func TestStore_deadlockedUpdatesRunAgain(t *testing.T) {
	t.Parallel()
	pool := poolWith(t, pgtest.URL(t), func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["deadlock_timeout"] = "20ms" })
	e := openEngine(t, pool, storetest.Tables(), postgres.Options{})
	team := anyTeam()
	keys := []store.Key{plainRow(team, "a").Key, plainRow(team, "b").Key}
	require.NoError(t, put(t.Context(), e, plainRow(team, "a"), plainRow(team, "b")))
	var both, all sync.WaitGroup
	both.Add(2)
	for i := range 2 {
		first := true
		all.Go(func() {
			err := e.Update(t.Context(), func(_ context.Context, tx store.Tx) error {
				for n := range 2 {
					got, err := tx.Read(store.Query{Key: keys[(i+n)%2]}.Hold())
					if err != nil {
						return err
					}
					if n == 0 && first { // both hold one row before either asks for the other
						first = false
						both.Done()
						both.Wait()
					}
					tx.Put(got[0]...)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	got, err := e.Read(t.Context(), store.Query{Key: keys[0]}, store.Query{Key: keys[1]})
	require.NoError(t, err)
	require.EqualValues(t, []int64{3, 3}, []int64{got[0][0].Revision, got[1][0].Revision})
}

// A write that cannot succeed is tried a few times at most.
func TestStore_failingWriteIsRetriedAFewTimes(t *testing.T) {
	t.Parallel()
	e := openEngine(t, pgtest.Pool(t), storetest.Tables(), postgres.Options{})
	team := anyTeam()
	require.NoError(t, put(t.Context(), e, plainRow(team, "there"), uniqueRow(team, "there", "x")))
	stale := plainRow(team, "there")
	stale.Revision = 7
	for name, c := range map[string]struct {
		row  store.Row
		runs int
		want error
	}{
		"key":      {plainRow(team, "there"), 3, &store.TakenError{Table: "plain", Index: -1}},
		"value":    {uniqueRow(team, "other", "x"), 3, &store.TakenError{Table: "unique_first", Index: 0}},
		"revision": {stale, 4, store.ErrStale},
	} {
		runs := 0
		err := e.Update(t.Context(), func(_ context.Context, tx store.Tx) error {
			runs++
			tx.Put(c.row)
			return nil
		})
		require.Equal(t, c.want, err, name)
		require.Equal(t, c.runs, runs, name)
	}
	// An update whose read failed does not commit, whatever its function makes of it.
	ctx, cancel := context.WithCancel(t.Context())
	require.ErrorIs(t, e.Update(ctx, func(_ context.Context, tx store.Tx) error {
		cancel()
		_, err := tx.Read(store.Query{Key: plainRow(team, "there").Key})
		require.ErrorIs(t, err, context.Canceled)
		tx.Put(plainRow(team, "after"))
		return nil
	}), context.Canceled)
	require.Equal(t, []string{"there"}, idsOf(t.Context(), t, e, "plain", team))
}

// The clock of the store is that of the database.
func TestStore_nowIsTheDatabasesClock(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	e := openEngine(t, pool, storetest.Tables(), postgres.Options{})
	at := func() (now time.Time) {
		require.NoError(t, pool.QueryRow(t.Context(), "select clock_timestamp()").Scan(&now))
		return now
	}
	for range 3 {
		require.NoError(t, e.Update(t.Context(), func(_ context.Context, tx store.Tx) error {
			require.WithinDuration(t, at(), tx.Now(), time.Second)
			require.Equal(t, time.UTC, tx.Now().Location())
			return nil
		}))
	}
}

// A statement that forgets the team finds rows of the team that was set, and rows without a team.
func TestRowSecurity_hidesRowsOfOtherTeams(t *testing.T) {
	t.Parallel()
	noCluster(t)
	address := pgtest.URL(t)
	pool := poolWith(t, address, asRestricted)
	e := openEngine(t, pool, storetest.Tables(), postgres.Options{RowSecurity: true})
	ann, bob := anyTeam(), anyTeam()
	require.NoError(t, put(t.Context(), e, plainRow(ann, "ann"), plainRow(bob, "bob"), plainRow(healthlab.TeamID{}, "none")))
	seen := func(ctx context.Context, tx pgx.Tx) []string {
		rows, err := tx.Query(ctx, "select convert_from(id, 'UTF8') from "+rowSchema+".plain order by 1")
		require.NoError(t, err)
		out, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		return out
	}
	for team, want := range map[string][]string{
		"": {"none"}, ann.String(): {"ann", "none"}, bob.String(): {"bob", "none"}, "all": {"ann", "bob", "none"}, uuid.NewString(): {"none"},
	} {
		require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), "select set_config('healthlab.team', $1, true)", team)
			require.NoError(t, err)
			require.Equal(t, want, seen(t.Context(), tx), team)
			return nil
		}))
	}
	// The store names the team of each query, and no other team's rows are written under its name.
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		ctx := e.WithTx(t.Context(), tx)
		require.Equal(t, []string{"ann"}, idsOf(ctx, t, e, "plain", ann))
		require.Equal(t, []string{"ann", "none"}, seen(ctx, tx))
		_, err := e.Read(ctx, store.Query{Key: store.Key{Table: "plain", User: anyUser()}, By: store.ByUser}, store.Query{Key: plainRow(ann, "ann").Key})
		require.NoError(t, err)
		require.Equal(t, []string{"ann", "none"}, seen(ctx, tx), "a query of all teams in the same trip")
		require.NoError(t, put(ctx, e, plainRow(bob, "bob 2")))
		require.Equal(t, []string{"bob", "bob 2", "none"}, seen(ctx, tx))
		return nil
	}))
	require.ErrorContains(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "select set_config('healthlab.team', $1, true)", ann.String())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), "insert into "+rowSchema+".plain (team, id, revision) values ($1, 'x', 1)", bob.UUID)
		return err
	}), "42501")
}
