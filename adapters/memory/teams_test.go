package memory_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/healthdata/teamsettings/teamsettingstest"
)

func TestTeamSettings_passTheirStoreSuite(t *testing.T) {
	teamsettingstest.RunStore(t, newStore().Teams())
}
