package postgres_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/store"
	"github.com/healthlab-dev/healthlab/store/storetest"
)

func TestDistribute_requiresCitusShardsAndDeclaredTables(t *testing.T) {
	t.Parallel()
	pool, opts := pgtest.Pool(t), &postgres.Options{Schema: rowSchema}
	tables := postgres.RowTables()
	require.ErrorIs(t, postgres.Distribute(t.Context(), pool, tables, 0, opts), healthlab.Invalid)
	require.ErrorIs(t, postgres.Distribute(t.Context(), pool, append(tables, store.Definition{Name: "missing"}), 8, opts), healthlab.Precondition)
	if pgtest.Spread() {
		require.NoError(t, postgres.Distribute(t.Context(), pool, tables, 8, opts), "what is spread is left alone")
		_, err := postgres.New(t.Context(), pool, tables, &postgres.Options{Schema: rowSchema, RowSecurity: true})
		require.ErrorIs(t, err, healthlab.Precondition)
		return
	}
	err := postgres.Distribute(t.Context(), pool, tables, 8, opts)
	require.ErrorIs(t, err, healthlab.Precondition)
	require.ErrorContains(t, err, "citus")
}

// A table per user refuses rows and queries that do not name the user, and has no unique values.
func TestStore_tablePerUserRefusesRowsWithoutAUser(t *testing.T) {
	t.Parallel()
	require.Error(t, postgres.Migrate(t.Context(), nil, []store.Definition{{Name: "a", PerUser: true, Unique: [2]bool{true}}}, nil))
	e := openEngine(t, pgtest.Pool(t), storetest.Tables(), postgres.Options{})
	ref := newPerson(t, e)
	r := perUserRow(ref, "a")
	for _, q := range []store.Query{{Key: r.Key}, {Key: store.Key{Table: "per_user", Team: ref.Team}, By: store.ByID}} {
		q.User = healthlab.UserID{}
		_, err := e.Read(t.Context(), q)
		require.ErrorContains(t, err, "must name the user")
		require.ErrorContains(t, e.Update(t.Context(), func(_ context.Context, tx store.Tx) error {
			_, err := tx.Read(q)
			return err
		}), "must name the user")
	}
	for name, change := range map[string]func(*store.Row){
		"id":   func(r *store.Row) { r.ID = "a" },
		"due":  func(r *store.Row) { r.Due = time.Now() },
		"user": func(r *store.Row) { r.User = healthlab.UserID{} },
	} {
		wrong := r
		change(&wrong)
		require.ErrorContains(t, addRows(t.Context(), e, ref, wrong), "per_user", name)
	}
}

// person is a user with a row.
type person = store.Key

func newPerson(t testing.TB, s store.Store) person {
	t.Helper()
	k := store.UserKey(anyTeam(), anyUser())
	require.NoError(t, put(t.Context(), s, store.Row{Key: k}))
	return k
}

func perUserRow(of person, id string) store.Row {
	return store.Row{Key: store.Key{Table: "per_user", Team: of.Team, User: of.User, ID: store.UUID(of.User.UUID) + id}}
}

// addRows puts new rows of a user.
func addRows(ctx context.Context, s store.Store, of person, rows ...store.Row) error {
	return s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		_, err := store.LockUser(tx, of.Team, of.User)
		tx.Put(rows...)
		return err
	})
}

func addPair(ctx context.Context, s store.Store, of person, n int) error {
	plain := plainRow(of.Team, strconv.Itoa(n))
	plain.User = of.User
	return addRows(ctx, s, of, perUserRow(of, strconv.Itoa(n)), plain)
}

// pairs requires that both rows of each pair are stored, or none, and returns how many there are.
func pairs(t *testing.T, s store.Store, of person) int {
	t.Helper()
	q := store.Query{Key: store.Key{User: of.User}, By: store.ByUser}
	one, other := q, q
	one.Table, other.Table = "per_user", "plain"
	got, err := s.Read(t.Context(), one, other)
	require.NoError(t, err)
	require.Len(t, got[1], len(got[0]))
	for i, r := range got[0] {
		require.Equal(t, r.ID[16:], got[1][i].ID)
	}
	return len(got[0])
}

// newCluster is a cluster of its own that a test may change, with tables that are not spread.
func newCluster(t *testing.T, workers int, durability pgtest.Durability) (*pgtest.Cluster, *pgxpool.Pool) {
	t.Helper()
	if !pgtest.Spread() {
		t.Skip("it needs a cluster: set " + pgtest.EnvCitus)
	}
	c, err := pgtest.StartCluster(t.Context(), durability, workers)
	require.NoError(t, err)
	t.Cleanup(c.Remove)
	pool := pgtest.Connect(t, c.URL()+"&pool_max_conns=16")
	require.NoError(t, postgres.Migrate(t.Context(), pool, storetest.Tables(), nil))
	return c, pool
}

// spread spreads the tables of a cluster and returns the store.
func spread(t *testing.T, pool *pgxpool.Pool) *postgres.Store {
	t.Helper()
	require.NoError(t, postgres.Distribute(t.Context(), pool, storetest.Tables(), 8, nil))
	e, err := postgres.New(t.Context(), pool, storetest.Tables(), nil)
	require.NoError(t, err)
	return e
}

// machines returns the machines that have rows of users.
func machines(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), "select distinct nodename from citus_shards where table_name = 'healthlab.per_user'::regclass and shard_size > 8192")
	require.NoError(t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return names
}

// Distribute spreads a database that is in use: all rows are still there, and later writes work.
func TestDistribute_keepsTheRowsOfADatabaseInUse(t *testing.T) {
	_, pool := newCluster(t, 2, pgtest.Fast)
	before, err := postgres.New(t.Context(), pool, storetest.Tables(), nil)
	require.NoError(t, err)
	people := make([]person, 16)
	for i := range people {
		people[i] = newPerson(t, before)
		require.NoError(t, addPair(t.Context(), before, people[i], 1))
	}
	e := spread(t, pool)
	for _, p := range people {
		require.Equal(t, 1, pairs(t, e, p))
		require.ErrorIs(t, addPair(t.Context(), e, p, 1), healthlab.Conflict)
		require.NoError(t, addPair(t.Context(), e, p, 2))
		require.Equal(t, 2, pairs(t, e, p))
	}
	require.Len(t, machines(t, pool), 2)
}

// Statements about one user run on one machine. The setting of the test makes any other plan an error.
func TestDistribute_statementsOfOneUserRunOnOneMachine(t *testing.T) {
	t.Parallel()
	if !pgtest.Spread() {
		t.Skip("it needs a cluster: set " + pgtest.EnvCitus)
	}
	e := openEngine(t, poolWith(t, pgtest.URL(t), func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["citus.multi_task_query_log_level"] = "error"
	}), storetest.Tables(), postgres.Options{})
	p := newPerson(t, e)
	require.NoError(t, addPair(t.Context(), e, p, 1))
	require.NoError(t, e.Update(t.Context(), func(_ context.Context, tx store.Tx) error {
		got, err := tx.Read(store.User(p.Team, p.User), store.Query{Key: perUserRow(p, "1").Key}.Hold(), store.Query{
			Key: store.Key{Table: "per_user", Team: p.Team, User: p.User}, By: store.ByID, From: p.ID, To: store.End(p.ID), Desc: true, Limit: 3,
		})
		if err != nil {
			return err
		}
		tx.Put(got[1][0], perUserRow(p, "2"))
		return nil
	}))
	require.NoError(t, e.Update(t.Context(), func(_ context.Context, tx store.Tx) error {
		_, err := tx.Read(store.User(p.Team, p.User).Hold(), store.Query{Key: store.Key{User: p.User}, By: store.ByUser, Lock: store.Held})
		tx.Delete(perUserRow(p, "2").Key)
		return err
	}))
	require.Equal(t, 1, pairs(t, e, p))
}

// write adds pairs of users until done holds and each has some, and returns how many each has. What is
// unavailable meanwhile is sent again, as a device does.
func write(t *testing.T, s store.Store, people []person, done func() bool) (written []int) {
	written = make([]int, len(people))
	var all sync.WaitGroup
	for i, p := range people {
		all.Go(func() {
			for !done() || written[i] < 50 {
				err := addPair(t.Context(), s, p, written[i])
				switch {
				case err == nil, healthlab.KindOf(err) == healthlab.Conflict: // the answer of the one before was lost
					written[i]++
				case healthlab.KindOf(err) != healthlab.Unavailable:
					t.Errorf("a write: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
	return written
}

// While users write, a worker is added and shards are moved to it. Nothing is lost, and nothing is there
// twice.
func TestDistribute_rebalancingLosesAndDuplicatesNothing(t *testing.T) {
	c, pool := newCluster(t, 1, pgtest.Fast)
	e := spread(t, pool)
	people := make([]person, 6)
	for i := range people {
		people[i] = newPerson(t, e)
	}
	var moved atomic.Bool
	written := make(chan []int)
	go func() { written <- write(t, e, people, moved.Load) }()
	err := c.Grow(t.Context())
	if err == nil {
		_, err = pool.Exec(t.Context(), "select rebalance_table_shards(shard_transfer_mode => 'block_writes')")
	}
	moved.Store(true)
	want := <-written
	require.NoError(t, err)
	for i, p := range people {
		require.Equal(t, want[i], pairs(t, e, p))
	}
}

// While a worker is down, its users are unavailable and all others work. After its restart all committed
// rows are there, on both machines.
func TestDistribute_deadWorkerLosesNoCommittedRow(t *testing.T) {
	c, pool := newCluster(t, 2, pgtest.Durable)
	e := spread(t, pool)
	people := make([]person, 12)
	for i := range people {
		people[i] = newPerson(t, e)
		require.NoError(t, addPair(t.Context(), e, people[i], 0))
	}
	on := func(p person) (folder string) {
		require.NoError(t, pool.QueryRow(t.Context(),
			"select nodename from citus_shards where shardid = get_shard_id_for_distribution_column('healthlab.per_user', $1::uuid)", p.User.UUID).Scan(&folder))
		return folder
	}
	dead := c.Workers[0]
	var theirs, others []person
	for _, p := range people {
		if dead.Is(on(p)) {
			theirs = append(theirs, p)
		} else {
			others = append(others, p)
		}
	}
	require.NotEmpty(t, theirs)
	require.NotEmpty(t, others)
	// It dies while all write.
	written := make(chan []int)
	writing, cancel := context.WithCancel(t.Context())
	go func() {
		counts := make([]int, len(people))
		var all sync.WaitGroup
		for i, p := range people {
			all.Go(func() {
				for counts[i] = 1; writing.Err() == nil && addPair(writing, e, p, counts[i]) == nil; counts[i]++ {
				}
			})
		}
		all.Wait()
		written <- counts
	}()
	dead.Crash()
	cancel()
	counts := <-written
	for i, p := range theirs {
		require.ErrorIs(t, addPair(t.Context(), e, p, 9000), healthlab.Unavailable, i)
		_, err := e.Read(t.Context(), store.Query{Key: perUserRow(p, "0").Key})
		require.ErrorIs(t, err, healthlab.Unavailable, i)
		rows, err := e.Read(t.Context(), store.User(p.Team, p.User))
		require.NoError(t, err, "who there is is known")
		require.Len(t, rows[0], 1)
	}
	for i, p := range others {
		require.NoError(t, addPair(t.Context(), e, p, 9000), i)
	}
	require.NoError(t, dead.Up(t.Context()))
	_, err := pool.Exec(t.Context(), "select recover_prepared_transactions()") // which the cluster does by itself from time to time
	require.NoError(t, err)
	for _, p := range theirs {
		require.NoError(t, addPair(t.Context(), e, p, 9000))
	}
	for i, p := range people {
		require.GreaterOrEqual(t, pairs(t, e, p), counts[i]+1, "an answered pair is lost")
	}
}
