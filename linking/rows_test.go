package linking_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/internal/eventlog"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/linkingtest"
	"github.com/healthlab-dev/healthlab/personkey"
	"github.com/healthlab-dev/healthlab/store"
)

// newRowStore returns an encrypted store in memory with users, data and links.
func newRowStore(t testing.TB) (store.Store, func(time.Time)) {
	t.Helper()
	var tables []store.Definition
	for _, more := range [][]store.Definition{healthdata.UserTables(), healthdata.DataTables(false), eventlog.Tables(), linking.Tables()} {
		tables = append(tables, more...)
	}
	clock := conformance.NewClock(time.Now())
	engine, err := memory.NewEngine(tables, &memory.EngineOptions{Now: clock.Now})
	require.NoError(t, err)
	sealer, err := healthlab.NewAESSealer("host", map[string][]byte{"host": bytes.Repeat([]byte{7}, 32)})
	require.NoError(t, err)
	return personkey.Encrypt(engine, personkey.New(memory.NewPersonKeys(), sealer, nil), tables), clock.Set
}

func harnessOfRows(s store.Store, setClock func(time.Time)) linkingtest.StoreHarness {
	log := eventlog.New(s)
	opts := &linking.StoreOptions{Events: log}
	rows := linking.NewStore(s, opts)
	return linkingtest.StoreHarness{
		Linking: rows, Credentials: rows, Second: linking.NewStore(s, opts), Users: healthdata.NewUsers(s, &healthdata.UserOptions{Events: log}),
		Data: healthdata.NewData(s, &healthdata.DataOptions{Events: log}), Messages: log, SetClock: setClock,
	}
}

func newRows(t testing.TB) linkingtest.StoreHarness { return harnessOfRows(newRowStore(t)) }

func TestRows(t *testing.T) { linkingtest.RunStore(t, newRows) }

func TestRows_credentials(t *testing.T) { linkingtest.RunCredentialStore(t, newRows) }

func TestRows_refresh(t *testing.T) { linkingtest.RunCredentialRefresh(t, newRows) }

func TestRows_flows(t *testing.T) { linkingtest.RunFlows(t, newRows) }

func TestRows_apps(t *testing.T) {
	s, setClock := newRowStore(t)
	linkingtest.RunApps(t, linkingtest.AppsHarness{Apps: linking.NewAppSessions(s), Users: harnessOfRows(s, setClock).Users})
}

func TestRows_clients(t *testing.T) {
	s, setClock := newRowStore(t)
	linkingtest.RunClients(t, linkingtest.ClientsHarness{Clients: linking.NewTeamClients(s), Linking: harnessOfRows(s, setClock)})
}
