package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/accesslog"
	"github.com/healthlab-dev/healthlab/accesslog/accesslogtest"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

func TestAccessLog(t *testing.T) {
	t.Parallel()
	for _, s := range []*postgres.Store{postgres.New(pgtest.Connect(t, pgtest.URL(t)), nil), newRestricted(t)} {
		accesslogtest.RunStore(t, s.AccessLog())
	}
}

func accessOf(u healthdata.User) []accesslog.Entry {
	return []accesslog.Entry{{Team: u.Team, At: noon.Time, Actor: "key:1", Person: u.ID, Kind: "data", Operation: "read_user", Status: 200}}
}

func signAccess(accesslog.Head) []byte { return []byte("s") }

var accessWrites = map[string]prepare{
	"AccessLog.Append": func(_ testing.TB, _ *postgres.Store, u healthdata.User) write {
		return func(ctx context.Context, s *postgres.Store) error {
			return s.AccessLog().Append(ctx, accessOf(u), signAccess)
		}
	},
	"AccessLog.AddAnchor": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		require.NoError(t, s.AccessLog().Append(t.Context(), accessOf(u), signAccess))
		return func(ctx context.Context, s *postgres.Store) error {
			return s.AccessLog().AddAnchor(ctx, accesslog.Anchor{Head: accesslog.Head{Team: u.Team, Seq: 1}, At: noon.Time, KeyID: "k", Signature: []byte("s")})
		}
	},
	"AccessLog.Prune": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		require.NoError(t, s.AccessLog().Append(t.Context(), accessOf(u), signAccess))
		a := accesslog.Anchor{Head: accesslog.Head{Team: u.Team, Seq: 1}, At: noon.Time, KeyID: "k", Signature: []byte("s")}
		require.NoError(t, s.AccessLog().AddAnchor(t.Context(), a))
		return func(ctx context.Context, s *postgres.Store) error {
			return s.AccessLog().Prune(ctx, noon.Add(time.Hour))
		}
	},
}
