package postgres_test

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/adapters/stores"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
	"github.com/healthlab-dev/healthlab/privacy/personkey/personkeytest"
	"github.com/healthlab-dev/healthlab/store"
)

func TestPersonKeys_passTheirStoreSuite(t *testing.T) {
	t.Parallel()
	personkeytest.RunStore(t, func(t testing.TB) personkey.Store {
		return personkey.NewStore(openEngine(t, pgtest.Pool(t), personkey.Tables(), postgres.Options{}))
	})
}

// Nothing that the database keeps shows a value of a person, and after the erasure no table has a row
// of one.
func TestStore_passesTheEncryptionAtRestSuite(t *testing.T) {
	t.Parallel()
	personkeytest.RunAtRest(t, func(t testing.TB) personkeytest.AtRestHarness {
		pool, keys := pgtest.Pool(t), rowKeys(t)
		t.Cleanup(func() {
			if !t.Failed() {
				require.Empty(t, usersByTable(t, pool))
			}
		})
		return personkeytest.AtRestHarness{
			Store: storesOn(t, pool, nil, &stores.Options{Keys: keys, EncryptSamples: true}), Keys: keys,
			Kept: func(t testing.TB) []byte { return everyRow(t, pool) },
		}
	})
}

// everyRow returns the rows of all tables as text, which has bytes in hex.
func everyRow(t testing.TB, pool *pgxpool.Pool) []byte {
	t.Helper()
	var all []byte
	for _, table := range postgres.RowTables() {
		rows, err := pool.Query(t.Context(), "select r::text from "+tableName(table)+" r")
		require.NoError(t, err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		for _, line := range lines {
			all = append(append(all, line...), '\n')
		}
	}
	return all
}

func tableName(d store.Definition) string { return pgx.Identifier{rowSchema, d.Name}.Sanitize() }

// usersByTable returns the users that each table has rows of; a table without any is left out.
func usersByTable(t testing.TB, pool *pgxpool.Pool) map[string][]uuid.UUID {
	t.Helper()
	ctx, out := context.WithoutCancel(t.Context()), map[string][]uuid.UUID{}
	for _, table := range postgres.RowTables() {
		rows, err := pool.Query(ctx, "select distinct user_id from "+tableName(table)+" where user_id is not null order by 1")
		require.NoError(t, err)
		users, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		require.NoError(t, err)
		if len(users) > 0 {
			out[table.Name] = users
		}
	}
	return out
}

// An erasure deletes the rows of the user in every table, with and without a team, more than one
// transaction deletes too, and no row of another user.
func TestErasure_deletesTheUsersRowsOfEveryTable(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := storesOn(t, pool, nil, &stores.Options{Keys: rowKeys(t)})
	team, gone, stays := conformance.NewTeam(), conformance.NewUser(), conformance.NewUser()
	var want []string
	for _, user := range []healthlab.UserID{gone, stays} {
		healthdatatest.AddUser(t, s.Users(), team, user)
		healthdatatest.DeleteUser(t, s.Users(), team, user)
		require.NoError(t, s.Rows().Update(t.Context(), func(_ context.Context, tx store.Tx) error {
			if _, err := store.LockUser(tx, team, user); err != nil {
				return err
			}
			for _, table := range stores.Tables() {
				if table.Name == store.UserTable || table.Name == "user_erasure" {
					continue // they have their row
				}
				for n := range 10 {
					for _, of := range []healthlab.TeamID{team, {}} {
						// Rows of different tables do not refer to each other.
						id := store.UUID(user.UUID) + store.Text(table.Name) + store.Int(int64(n))
						tx.Put(store.Row{Key: store.Key{Table: table.Name, Team: of, User: user, ID: id}, Doc: []byte("{}")})
					}
				}
			}
			return nil
		}))
	}
	for _, table := range stores.Tables() {
		want = append(want, table.Name)
	}
	require.Greater(t, 20*len(want), 1000)
	require.NoError(t, s.Users().Erase(t.Context(), team, gone))
	left := usersByTable(t, pool)
	for _, name := range want {
		require.Equal(t, []uuid.UUID{stays.UUID}, left[name], name)
		delete(left, name)
	}
	require.Empty(t, left)
}
