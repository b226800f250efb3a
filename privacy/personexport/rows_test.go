package personexport_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/memory/memstore"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/privacy/personexport"
	"github.com/healthlab-dev/healthlab/privacy/personexport/personexporttest"
)

func TestStore_overRowsPassesTheSuite(t *testing.T) {
	personexporttest.RunStore(t, func(t testing.TB) personexporttest.StoreHarness {
		clock := conformance.NewClock(time.Unix(0, 0))
		s, err := memstore.New(append(personexport.Tables(), healthdata.UserTables()...), &memstore.Options{Now: clock.Now})
		require.NoError(t, err)
		return personexporttest.StoreHarness{
			Exports: personexport.NewStore(s), SetClock: clock.Set,
			Users: healthdata.NewUsers(s, &healthdata.UserOptions{OnErase: []healthdata.UserHook{personexport.EraseJobs}}),
		}
	})
}
