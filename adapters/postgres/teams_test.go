package postgres_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings/teamsettingstest"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

func TestTeams(t *testing.T) {
	t.Parallel()
	teamsettingstest.RunStore(t, postgres.New(pgtest.Connect(t, pgtest.URL(t)), nil).Teams())
	teamsettingstest.RunStore(t, newRestricted(t).Teams())
}
