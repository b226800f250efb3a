package postgres_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

func TestTeams(t *testing.T) {
	t.Parallel()
	healthdatatest.RunTeamStore(t, postgres.New(pgtest.Connect(t, pgtest.URL(t)), nil).Teams())
	healthdatatest.RunTeamStore(t, newRestricted(t).Teams())
}
