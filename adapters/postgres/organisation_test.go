package postgres_test

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
	"github.com/healthlab-dev/healthlab/healthdata/organisation/organisationtest"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

func TestOrganisations(t *testing.T) {
	t.Parallel()
	for _, s := range []*postgres.Store{postgres.New(pgtest.Connect(t, pgtest.URL(t)), nil), newRestricted(t)} {
		organisationtest.RunStore(t, organisationtest.StoreHarness{Organisations: s.Organisations(), Users: s.Users(), Choices: s.Teams(), Clients: s.TeamClients()})
	}
}

// orgOf is the organisation of a person's team.
func orgOf(u healthdata.User) uuid.UUID { return uuid.NewSHA1(u.Team.UUID, []byte("organisation")) }

func orgTeamOf(u healthdata.User) organisation.Team {
	return organisation.Team{ID: u.Team, Org: orgOf(u), Name: "Riverside", CreatedAt: noon.Time, UpdatedAt: noon.Time}
}

func apiKeyOf(u healthdata.User) organisation.Key {
	k := organisation.Key{ID: uuid.NewSHA1(u.Team.UUID, []byte("key")), Team: u.Team, Label: "a", Hint: "b", CreatedAt: noon.Time}
	copy(k.Sum[:], u.Team.UUID[:])
	return k
}

// found gives a person's team an organisation and a key.
func found(t testing.TB, s *postgres.Store, u healthdata.User) {
	t.Helper()
	require.NoError(t, s.Organisations().InsertTeam(t.Context(), orgTeamOf(u)))
	require.NoError(t, s.Organisations().InsertKey(t.Context(), apiKeyOf(u), 10))
}

var organisationWrites = map[string]prepare{
	"Organisations.InsertTeam": func(_ testing.TB, _ *postgres.Store, u healthdata.User) write {
		return func(ctx context.Context, s *postgres.Store) error {
			return s.Organisations().InsertTeam(ctx, orgTeamOf(u))
		}
	},
	"Organisations.UpdateTeam": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		found(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Organisations().UpdateTeam(ctx, orgOf(u), u.Team, func(x *organisation.Team) error {
				x.Name = "renamed"
				return nil
			})
			return err
		}
	},
	"Organisations.DeleteTeam": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		empty := u
		empty.Team = healthlab.TeamID{UUID: uuid.New()}
		found(t, s, empty)
		return func(ctx context.Context, s *postgres.Store) error {
			return s.Organisations().DeleteTeam(ctx, orgOf(empty), empty.Team, noon.Time)
		}
	},
	"Organisations.InsertKey": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		require.NoError(t, s.Organisations().InsertTeam(t.Context(), orgTeamOf(u)))
		return func(ctx context.Context, s *postgres.Store) error {
			return s.Organisations().InsertKey(ctx, apiKeyOf(u), 10)
		}
	},
	"Organisations.RotateKey": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		found(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error {
			next := apiKeyOf(u)
			next.ID, next.Sum[0] = uuid.NewSHA1(u.Team.UUID, []byte("next")), next.Sum[0]+1
			return s.Organisations().RotateKey(ctx, apiKeyOf(u).ID, noon.Time, next, 10)
		}
	},
	"Organisations.TouchKey": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		found(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error {
			return s.Organisations().TouchKey(ctx, u.Team, apiKeyOf(u).ID, noon.Time)
		}
	},
	"Organisations.DeleteKey": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		found(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error {
			return s.Organisations().DeleteKey(ctx, u.Team, apiKeyOf(u).ID)
		}
	},
}
