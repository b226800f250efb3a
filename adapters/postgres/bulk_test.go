package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/bulk"
	"github.com/healthlab-dev/healthlab/linking/bulk/bulktest"
)

func TestBulk(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	store := postgres.New(pool, nil)
	bulktest.RunStore(t, bulktest.StoreHarness{Bulk: store.Bulk(), Linking: linkingOf(store), SetClock: setClock(t, pool)})
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
	require.NoError(t, s.Bulk().Submit(t.Context(), opOf(u), itemOf(u)))
}

func itemOf(u healthdata.User) []bulk.Item {
	return []bulk.Item{{User: u.ID, Grant: healthlab.Sealed{KeyID: "k1", Box: []byte("grant")}}}
}

var bulkWrites = map[string]prepare{
	"Bulk.Submit": func(_ testing.TB, _ *postgres.Store, u healthdata.User) write {
		return func(ctx context.Context, s *postgres.Store) error {
			return s.Bulk().Submit(ctx, opOf(u), itemOf(u))
		}
	},
	"Bulk.Claim": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		submit(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Bulk().Claim(ctx, 1000, noon.Time, time.Minute)
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
	"Bulk.UpdateOp over": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		submit(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Bulk().UpdateOp(ctx, u.Team, u.ID.UUID, func(op *bulk.Op) error {
				op.Status = bulk.Aborted
				return nil
			})
			return err
		}
	},
	"Bulk.Prune": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		submit(t, s, u)
		_, err := s.Bulk().UpdateOp(t.Context(), u.Team, u.ID.UUID, func(op *bulk.Op) error {
			op.Status, op.EndedAt = bulk.Aborted, noon.Time
			return nil
		})
		require.NoError(t, err)
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Bulk().Prune(ctx, 1000, end)
			return err
		}
	},
	"Bulk.Import": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		submit(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error {
			done := completed(linking.Session{Team: u.Team, User: u.ID}, u.ID.String())
			_, err := s.Bulk().Import(ctx, bulk.Import{
				Team: u.Team, Op: u.ID.UUID, Credential: done.Credential, Sole: done.Sole,
				Change: func(u *healthdata.User) ([]healthlab.Event, error) { return done.Change(&linking.Session{}, u) },
			})
			return err
		}
	},
	"Bulk.Reject": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		submit(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Bulk().Reject(ctx, u.Team, u.ID.UUID, 0, bulk.NoUser)
			return err
		}
	},
}
