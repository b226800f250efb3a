package memory_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
)

func TestTeams(t *testing.T) { healthdatatest.RunTeamStore(t, newStore().Teams()) }
