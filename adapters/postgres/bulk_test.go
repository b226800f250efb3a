package postgres_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/storetest"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/linking/bulk"
)

func TestBulk(t *testing.T) {
	store := postgres.New(pgtest.Connect(t, pgtest.URL(t)), nil)
	storetest.RunBulk(t, storetest.BulkHarness{Bulk: store.Bulk(), Linking: linkingOf(store)})
}

func opOf(u healthdata.User) bulk.Op {
	return bulk.Op{
		ID: u.ID.UUID, Team: u.Team, Type: bulk.HistoricalTrigger, Provider: linkedProvider, Status: bulk.InProgress, Total: 1,
		StartedAt: noon.Time, Due: noon.Time,
	}
}

// submit adds a bulk operation about a user.
func submit(t testing.TB, s *postgres.Store, u healthdata.User) {
	t.Helper()
	require.NoError(t, s.Bulk().Submit(t.Context(), opOf(u), []healthlab.UserID{u.ID}))
}

var bulkWrites = map[string]prepare{
	"Bulk.Submit": func(_ testing.TB, _ *postgres.Store, u healthdata.User) write {
		return func(ctx context.Context, s *postgres.Store) error {
			return s.Bulk().Submit(ctx, opOf(u), []healthlab.UserID{u.ID})
		}
	},
	"Bulk.Claim": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		submit(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Bulk().Claim(ctx, 1000, noon.Time, end)
			return err
		}
	},
	"Bulk.UpdateOp": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		submit(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Bulk().UpdateOp(ctx, u.Team, u.ID.UUID, func(op *bulk.Op) error {
				op.Next, op.Running = 1, []healthlab.UserID{u.ID}
				return nil
			})
			return err
		}
	},
}
