package labreport_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/memory/memstore"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/internal/eventlog"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/labreport/labreporttest"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
	"github.com/healthlab-dev/healthlab/store"
)

// newRows returns an empty store that encrypts, and sets its clock.
func newRows(t testing.TB) (store.Store, func(time.Time)) {
	clock := conformance.NewClock(time.Unix(0, 0))
	tables := append(append(labreport.Tables(), eventlog.Tables()...), healthdata.UserTables()...)
	s, err := memstore.New(tables, &memstore.Options{Now: clock.Now})
	require.NoError(t, err)
	sealer, err := healthlab.NewAESSealer("host", map[string][]byte{"host": bytes.Repeat([]byte{7}, 32)})
	require.NoError(t, err)
	return personkey.Encrypt(s, personkey.New(memory.NewPersonKeys(), sealer, nil), tables), clock.Set
}

func TestEraseUser_overRowsPassesTheSuite(t *testing.T) {
	labreporttest.RunErasure(t, func(t testing.TB) labreporttest.ErasureHarness {
		s, setClock := newRows(t)
		return labreporttest.ErasureHarness{
			Users: healthdata.NewUsers(s, &healthdata.UserOptions{OnErase: []healthdata.UserHook{labreport.EraseJobs}}),
			Jobs:  labreport.NewStore(s, &labreport.StoreOptions{UsersElsewhere: true}), SetClock: setClock,
		}
	})
}

func TestStore_overRowsPassesTheSuite(t *testing.T) {
	labreporttest.RunStore(t, func(t testing.TB) labreporttest.StoreHarness {
		s, setClock := newRows(t)
		events := eventlog.New(s)
		return labreporttest.StoreHarness{
			Jobs:     labreport.NewStore(s, &labreport.StoreOptions{Events: events, UsersElsewhere: true}),
			Messages: events, SetClock: setClock,
		}
	})
}
