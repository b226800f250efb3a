package postgres_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/store"
)

// Many processes may make the tables at once, and what a later program declares is added.
func TestMigrate_runsConcurrentlyAndAddsTables(t *testing.T) {
	t.Parallel()
	pool := poolWith(t, pgtest.Empty(t), func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["default_transaction_isolation"] = "repeatable read"
	})
	tables := []store.Definition{{Name: "note"}, {Name: "order", Unique: [2]bool{false, true}}}
	_, err := postgres.New(t.Context(), pool, tables, nil)
	require.ErrorIs(t, err, healthlab.Precondition)
	require.ErrorContains(t, err, "Migrate")

	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			made := func(n, total int, name string) { t.Errorf("%d of %d: %s: the database is new", n, total, name) }
			if err := postgres.Migrate(t.Context(), pool, tables, &postgres.Options{Migrating: made}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	e, err := postgres.New(t.Context(), pool, tables, nil)
	require.NoError(t, err)
	team := anyTeam()
	note := store.Row{Key: store.Key{Table: "note", Team: team, ID: "a"}}
	require.NoError(t, put(t.Context(), e, note))

	more := append(tables, store.Definition{Name: "plan"})
	_, err = postgres.New(t.Context(), pool, more, nil)
	require.ErrorIs(t, err, healthlab.Precondition)
	require.ErrorContains(t, err, "lacks 5 of the store's tables and indexes, such as plan; call Migrate")
	_, err = pool.Exec(t.Context(), "drop index healthlab.order_i1_unique")
	require.NoError(t, err)
	require.ErrorContains(t, e.Ping(t.Context()), "order_i1_unique")
	var steps []int
	require.NoError(t, postgres.Migrate(t.Context(), pool, more, &postgres.Options{Migrating: func(n, total int, name string) {
		require.Equal(t, 6, total)
		require.NotEmpty(t, name)
		steps = append(steps, n)
	}}))
	require.Equal(t, []int{1, 2, 3, 4, 5, 6}, steps, "plan with its relations, and the index")
	require.NoError(t, e.Ping(t.Context()))
	e, err = postgres.New(t.Context(), pool, more, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, idsOf(t.Context(), t, e, "note", team))

	_, err = pool.Exec(t.Context(), "update healthlab.schema_version set version = 99")
	require.NoError(t, err)
	_, err = postgres.New(t.Context(), pool, tables, nil)
	for _, err := range []error{err, e.Ping(t.Context()), postgres.Migrate(t.Context(), pool, tables, nil)} {
		require.ErrorIs(t, err, healthlab.Precondition)
		require.ErrorContains(t, err, "version 99")
	}
}

// Tables of the same name that another program has made are left alone.
func TestMigrate_leavesForeignTablesAlone(t *testing.T) {
	t.Parallel()
	pool := pgtest.Connect(t, pgtest.Empty(t))
	_, err := pool.Exec(t.Context(), "create schema healthlab; create table healthlab.note (n int)")
	require.NoError(t, err)
	err = postgres.Migrate(t.Context(), pool, []store.Definition{{Name: "note"}}, nil)
	require.ErrorIs(t, err, healthlab.Precondition)
	require.ErrorContains(t, err, "note")
}

// Stores of two schemas of one database share nothing.
func TestMigrate_storesOfTwoSchemasShareNothing(t *testing.T) {
	t.Parallel()
	pool := pgtest.Connect(t, pgtest.Empty(t))
	tables, team := []store.Definition{{Name: "note"}}, anyTeam()
	for _, schema := range []string{"one", `an "other"`} {
		opts := &postgres.Options{Schema: schema}
		require.NoError(t, postgres.Migrate(t.Context(), pool, tables, opts))
		e, err := postgres.New(t.Context(), pool, tables, opts)
		require.NoError(t, err)
		require.Empty(t, idsOf(t.Context(), t, e, "note", team))
		require.NoError(t, put(t.Context(), e, store.Row{Key: store.Key{Table: "note", Team: team, ID: "a"}}))
	}
}

func TestMigrate_refusesInvalidTableNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "Note", "1", "a-b", `a"b`, "schema_version", strings.Repeat("a", 49)} {
		require.Error(t, postgres.Migrate(t.Context(), nil, []store.Definition{{Name: name}}, nil), name)
	}
	require.Error(t, postgres.Migrate(t.Context(), nil, []store.Definition{{Name: "a"}, {Name: "a"}}, nil))
}
