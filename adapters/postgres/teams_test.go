package postgres_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/storetest"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

func TestTeams(t *testing.T) {
	t.Parallel()
	storetest.RunTeams(t, postgres.New(pgtest.Connect(t, pgtest.URL(t)), nil).Teams())
	storetest.RunTeams(t, newRestricted(t).Teams())
}
