package healthdata_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/memory/memstore"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/internal/eventlog"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
	"github.com/healthlab-dev/healthlab/store"
)

// newRows returns a store in memory that encrypts, with the tables of data.
func newRows(t testing.TB, encryptSamples bool) store.Store {
	t.Helper()
	tables := append(healthdata.DataTables(encryptSamples), healthdata.UserTables()...)
	tables = append(tables, eventlog.Tables()...)
	engine, err := memstore.New(tables, nil)
	require.NoError(t, err)
	sealer, err := healthlab.NewAESSealer("host", map[string][]byte{"host": bytes.Repeat([]byte{7}, 32)})
	require.NoError(t, err)
	return personkey.Encrypt(engine, personkey.New(memory.NewPersonKeys(), sealer, nil), tables)
}

func dataOfRows(s store.Store) healthdatatest.DataHarness {
	events := eventlog.New(s)
	return healthdatatest.DataHarness{
		Data: healthdata.NewData(s, &healthdata.DataOptions{Events: events}), Users: healthdata.NewUsers(s, &healthdata.UserOptions{Events: events}), Messages: events,
	}
}

func TestData_overRowsPassesTheSuite(t *testing.T) {
	for name, encrypt := range map[string]bool{"clear": false, "encrypted": true} {
		newStore := func(t testing.TB) healthdatatest.DataHarness { return dataOfRows(newRows(t, encrypt)) }
		t.Run(name, func(t *testing.T) { healthdatatest.RunData(t, newStore) })
		t.Run(name+" model", func(t *testing.T) { healthdatatest.RunDataModel(t, newStore) })
	}
}

// Users and Data over one store keep the promises of Users about data.
func TestUsers_overRowsWithDataPassesTheSuite(t *testing.T) {
	newStore := func(t testing.TB) healthdatatest.UsersHarness {
		h := dataOfRows(newRows(t, false))
		return healthdatatest.UsersHarness{Users: h.Users, Messages: h.Messages, Data: h.Data}
	}
	healthdatatest.RunUsers(t, newStore)
	t.Run("model", func(t *testing.T) { healthdatatest.RunUsersModel(t, newStore) })
}
