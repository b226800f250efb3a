package teamsettings_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/memory/memstore"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings/teamsettingstest"
)

func TestStore_overRowsPassesTheSuite(t *testing.T) {
	s, err := memstore.New(teamsettings.Tables(), nil)
	require.NoError(t, err)
	teamsettingstest.RunStore(t, teamsettings.NewStore(s))
}
