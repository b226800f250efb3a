package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/personexport"
	"github.com/healthlab-dev/healthlab/personexport/personexporttest"
)

func runPersonExports(t *testing.T, newStore func(t testing.TB) (*postgres.Store, func(time.Time))) {
	personexporttest.RunStore(t, func(t testing.TB) personexporttest.StoreHarness {
		s, setClock := newStore(t)
		return personexporttest.StoreHarness{Exports: s.PersonExports(), Users: s.Users(), SetClock: setClock}
	})
}

func TestPersonExports(t *testing.T) {
	t.Parallel()
	runPersonExports(t, clockedStore)
}

// The suite passes for a role that row-level security holds for.
func TestPersonExportsWithRowSecurity(t *testing.T) {
	skipRowSecurity(t)
	t.Parallel()
	runPersonExports(t, restrictedClock)
}

func exportOf(u healthdata.User) personexport.Job {
	return personexport.Job{
		ID: personexport.JobID{UUID: uuid.New()}, Team: u.Team, User: u.ID, Status: personexport.InProgress,
		DueAt: noon.Time, CreatedAt: noon.Time, UpdatedAt: noon.Time,
	}
}

var exportWrites = map[string]prepare{
	"PersonExports.Insert": func(_ testing.TB, _ *postgres.Store, u healthdata.User) write {
		return func(ctx context.Context, s *postgres.Store) error {
			return s.PersonExports().Insert(ctx, exportOf(u), 10)
		}
	},
	"PersonExports.Update": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		j := exportOf(u)
		require.NoError(t, s.PersonExports().Insert(t.Context(), j, 10))
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.PersonExports().Update(ctx, u.Team, j.ID, func(j *personexport.Job) error { j.Next++; return nil })
			return err
		}
	},
	"PersonExports.Claim": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		require.NoError(t, s.PersonExports().Insert(t.Context(), exportOf(u), 10))
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.PersonExports().Claim(ctx, 10, time.Minute)
			return err
		}
	},
	"PersonExports.Delete": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		j := exportOf(u)
		require.NoError(t, s.PersonExports().Insert(t.Context(), j, 10))
		return func(ctx context.Context, s *postgres.Store) error { return s.PersonExports().Delete(ctx, u.Team, j.ID) }
	},
}
