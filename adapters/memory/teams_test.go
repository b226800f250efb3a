package memory_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/healthdata/teamsettings/teamsettingstest"
)

func TestTeams(t *testing.T) { teamsettingstest.RunStore(t, newStore().Teams()) }
