package memory_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory/memstore"
	"github.com/healthlab-dev/healthlab/adapters/stores"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/store"
)

// A long erasure says how many rows it has deleted, and a short one says nothing.
func TestErasure_longErasureReportsTheNumberOfDeletedRows(t *testing.T) {
	ctx := t.Context()
	engine, err := memstore.New(stores.Tables(), nil)
	require.NoError(t, err)
	told := map[healthlab.UserID][]int{}
	all := stores.New(engine, &stores.Options{Events: stores.NoEvents, Erasing: func(_ healthlab.TeamID, user healthlab.UserID, rows int) {
		told[user] = append(told[user], rows)
	}})
	team := healthlab.TeamID{UUID: uuid.New()}
	at := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	add := func(name string, rows int) healthlab.UserID {
		u := healthdata.User{ID: healthlab.UserID{UUID: uuid.New()}, Team: team, ClientUserID: name, CreatedOn: healthlab.At(at)}
		require.NoError(t, all.Users().Insert(ctx, u, 0))
		const part = 5000
		for from := 0; from < rows; from += part {
			require.NoError(t, engine.Update(ctx, func(_ context.Context, tx store.Tx) error {
				queries := []store.Query{{Key: store.UserKey(team, u.ID), Lock: store.Shared}}
				for i := from; i < min(rows, from+part); i++ {
					queries = append(queries, store.Query{Key: store.Key{Table: "record", Team: team, User: u.ID, ID: strconv.Itoa(i)}, Lock: store.Held})
				}
				if _, err := tx.Read(queries...); err != nil {
					return err
				}
				for _, q := range queries[1:] {
					tx.Put(store.Row{Key: q.Key})
				}
				return nil
			}))
		}
		_, err := all.Users().Update(ctx, team, u.ID, func(u *healthdata.User) ([]healthlab.Event, error) {
			u.DeletedAt = at
			return nil, nil
		})
		require.NoError(t, err)
		require.NoError(t, all.Users().Erase(ctx, team, u.ID))
		return u.ID
	}
	short, long := add("ann", 10), add("bob", healthdata.ErasingRows+10)
	require.Empty(t, told[short])
	require.Equal(t, []int{healthdata.ErasingRows}, told[long])
}
