package memory_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
)

func TestTeams(t *testing.T) { healthdatatest.RunTeamStore(t, memory.New(nil).Teams()) }
