package postgres_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

func TestDistributeRefuses(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	require.ErrorIs(t, postgres.Distribute(t.Context(), pool, 0), healthlab.Invalid)
	if pgtest.Spread() {
		require.NoError(t, postgres.Distribute(t.Context(), pool, 8), "what is spread is left alone")
		return
	}
	require.ErrorIs(t, postgres.Distribute(t.Context(), pool, 4), healthlab.Precondition, "no extension")
}

// newCluster is a cluster of its own that a test may change, with the schema.
func newCluster(t *testing.T, workers int, durability pgtest.Durability) (*pgtest.Cluster, *pgxpool.Pool) {
	t.Helper()
	if !pgtest.Spread() {
		t.Skip("it needs a cluster: set " + pgtest.EnvCitus)
	}
	c, err := pgtest.StartCluster(t.Context(), durability, workers)
	require.NoError(t, err)
	t.Cleanup(c.Remove)
	pool := pgtest.Connect(t, c.URL()+"&pool_max_conns=16")
	require.NoError(t, postgres.Migrate(t.Context(), pool))
	return c, pool
}

// history is what everySample wrote of heart.
func history(t *testing.T, s *postgres.Store, u healthdata.User) []series.Sample {
	t.Helper()
	got := readSeries(t, s, u, heart)
	require.Len(t, got, 2061)
	return got
}

// Distribute spreads a database that is in use: all rows are still there, and later writes
// work.
func TestDistributeFilled(t *testing.T) {
	_, pool := newCluster(t, 2, pgtest.Fast)
	s := postgres.New(pool, nil)
	people := make([]healthdata.User, 8)
	before := make([][]series.Sample, len(people))
	for i := range people {
		people[i] = newPerson(t, s)
		everySample(t, s, people[i])
		before[i] = history(t, s, people[i])
	}
	require.NoError(t, postgres.Distribute(t.Context(), pool, 8))
	s = postgres.New(pool, nil)
	for i, u := range people {
		require.Equal(t, before[i], history(t, s, u))
		require.Equal(t, 1, mergeInto(t, s, u, heart, 5000, 1, 60).New)
	}
	machines := texts(t, pool, `select nodename || count(*) from citus_shards where shard_size > 0 and table_name = 'healthlab.chunk'::regclass group by nodename`)
	require.Len(t, machines, 2)
	consistent(t, pool)
}

// A query about one user runs on one machine. The setting of the test makes any other plan an
// error.
func TestOneMachineAUser(t *testing.T) {
	t.Parallel()
	if !pgtest.Spread() {
		t.Skip("it needs a cluster: set " + pgtest.EnvCitus)
	}
	address := pgtest.URL(t)
	writer := postgres.New(pgtest.Connect(t, address), nil)
	reader := postgres.New(configured(t, address, map[string]string{"citus.multi_task_query_log_level": "error"}), nil)
	u := newPerson(t, writer)
	everySample(t, writer, u)
	history(t, reader, u)
	require.NoError(t, writer.Data().PutRecords(t.Context(), u.Team, u.ID, []healthdata.Record{{
		Resource: "sleep", ID: uuid.New(), Provider: "acme_band", SourceType: "watch", Index: noon.Time, Doc: []byte(`{}`),
		CreatedAt: noon.Time, UpdatedAt: noon.Time,
	}}, nil))
	require.NoError(t, reader.Data().View(t.Context(), u.Team, u.ID, func(v healthdata.View) error {
		got, err := v.Records(t.Context(), healthdata.RecordQuery{Resource: "sleep"})
		require.Len(t, got, 1)
		return err
	}))
}

// While users write, a worker is added and shards are moved to it. Nothing is lost, and
// nothing is there twice.
func TestRebalanceWhileWriting(t *testing.T) {
	c, pool := newCluster(t, 1, pgtest.Fast)
	require.NoError(t, postgres.Distribute(t.Context(), pool, 8))
	s := postgres.New(pool, nil)
	people := make([]healthdata.User, 6)
	written := make([]int, len(people))
	for i := range people {
		people[i] = newPerson(t, s)
		mergeInto(t, s, people[i], heart, 0, 1, 60)
		written[i] = 1
	}
	var moved atomic.Bool
	var all sync.WaitGroup
	for i, u := range people {
		all.Go(func() {
			for !moved.Load() || written[i] < 50 {
				n := 1 + 1199*(written[i]%10/9) // now and then a chunk
				batch := minutes(heart, written[i], n, 60)
				// What is unavailable while a shard moves is sent again, as a device does.
				for {
					err := s.Data().MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{batch}, nil)
					if err == nil {
						break
					}
					if !assertKind(t, err) {
						return
					}
				}
				written[i] += n
			}
		})
	}
	require.NoError(t, c.Grow(t.Context()))
	_, err := pool.Exec(t.Context(), `select rebalance_table_shards(shard_transfer_mode => 'block_writes')`)
	moved.Store(true)
	all.Wait()
	require.NoError(t, err)
	machines := texts(t, pool, `select distinct nodename from citus_shards where table_name = 'healthlab.series'::regclass`)
	require.Len(t, machines, 2)
	for i, u := range people {
		require.Len(t, readSeries(t, s, u, heart), written[i])
	}
	consistent(t, pool)
}

func assertKind(t *testing.T, err error) bool {
	if healthlab.KindOf(err) != healthlab.Unavailable {
		t.Errorf("a write while shards move: %v", err)
		return false
	}
	return true
}

// While a worker is down, its users are unavailable and all others work. After its restart
// all committed data is there.
func TestWorkerDies(t *testing.T) {
	c, pool := newCluster(t, 2, pgtest.Durable)
	require.NoError(t, postgres.Distribute(t.Context(), pool, 8))
	s := postgres.New(pool, nil)
	people := make([]healthdata.User, 12)
	for i := range people {
		people[i] = newPerson(t, s)
		everySample(t, s, people[i])
	}
	on := func(u healthdata.User) (folder string) {
		err := pool.QueryRow(t.Context(), `select nodename from citus_shards where shardid = get_shard_id_for_distribution_column('healthlab.series', $1::uuid)`, u.ID.UUID).Scan(&folder)
		require.NoError(t, err)
		return folder
	}
	dead := c.Workers[0]
	var theirs, others []healthdata.User
	for _, u := range people {
		if dead.Is(on(u)) {
			theirs = append(theirs, u)
		} else {
			others = append(others, u)
		}
	}
	require.NotEmpty(t, theirs)
	require.NotEmpty(t, others)
	look := func(u healthdata.User) error {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		return s.Data().View(ctx, u.Team, u.ID, func(v healthdata.View) error {
			_, err := v.Series(ctx, healthdata.SeriesQuery{Resources: []string{heart.Resource}})
			return err
		})
	}
	add := func(u healthdata.User, at int) error {
		return s.Data().MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{minutes(heart, at, 1, 60)},
			func([]series.Outcome) ([]healthlab.Event, error) { return []healthlab.Event{event(u, "k")}, nil })
	}
	dead.Crash()
	for i, u := range theirs {
		require.ErrorIs(t, look(u), healthlab.Unavailable, i)
		require.ErrorIs(t, add(u, 9000), healthlab.Unavailable, i)
		_, err := s.Users().Get(t.Context(), u.Team, u.ID)
		require.NoError(t, err, "who there is is known")
	}
	for i, u := range others {
		require.NoError(t, look(u), i)
		require.NoError(t, add(u, 9000), i)
	}
	require.NoError(t, dead.Up(t.Context()))
	for _, u := range theirs {
		require.Len(t, readSeries(t, s, u, heart), 2061)
		require.NoError(t, add(u, 9000))
	}
	for _, u := range people {
		require.Len(t, readSeries(t, s, u, heart), 2062)
		var events int
		require.NoError(t, pool.QueryRow(t.Context(), `select count(*) from healthlab.webhook_event where user_id = $1`, u.ID.UUID).Scan(&events))
		require.Equal(t, 1, events, "an event for each write that was committed, and for no other")
	}
	consistent(t, pool)
}
