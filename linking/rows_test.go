package linking_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/memory/memstore"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/internal/eventlog"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/linkingtest"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
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
	engine, err := memstore.New(tables, &memstore.Options{Now: clock.Now})
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

func TestStore_overRowsPassesTheSuite(t *testing.T) { linkingtest.RunStore(t, newRows) }

func TestCredentialStore_overRowsPassesTheSuite(t *testing.T) {
	linkingtest.RunCredentialStore(t, newRows)
}

func TestCredentialRefresh_overRowsPassesTheSuite(t *testing.T) {
	linkingtest.RunCredentialRefresh(t, newRows)
}

func TestFlows_overRowsPassTheSuite(t *testing.T) { linkingtest.RunFlows(t, newRows) }

func TestApps_overRowsPassTheSuite(t *testing.T) {
	s, setClock := newRowStore(t)
	linkingtest.RunApps(t, linkingtest.AppsHarness{Apps: linking.NewAppSessions(s), Users: harnessOfRows(s, setClock).Users})
}

func TestClients_overRowsPassTheSuite(t *testing.T) {
	s, setClock := newRowStore(t)
	linkingtest.RunClients(t, linkingtest.ClientsHarness{Clients: linking.NewTeamClients(s), Linking: harnessOfRows(s, setClock)})
}

func countRows(t *testing.T, s store.Store, table string, team healthlab.TeamID) int {
	t.Helper()
	got, err := s.Read(t.Context(), store.Query{Key: store.Key{Table: table, Team: team}, By: store.ByID, Bare: true})
	require.NoError(t, err)
	return len(got[0])
}

func TestStore_insertForAnUnknownUserIsNotFound(t *testing.T) {
	h := newRows(t)
	now := time.Now()
	team, user := conformance.Team("a"), conformance.User("nobody")
	require.ErrorIs(t, h.Linking.InsertCode(t.Context(), linking.Code{
		Text: "skus00000001", Team: team, User: user, CreatedAt: now, ExpiresAt: now.Add(time.Hour),
	}), healthlab.NotFound)
	require.ErrorIs(t, h.Linking.InsertSession(t.Context(), linking.Session{
		ID: linking.SessionID{UUID: conformance.Named("session")}, Team: team, User: user, CreatedAt: now, ExpiresAt: now.Add(time.Hour),
	}), healthlab.NotFound)
}

// What expired more than a day ago, and windows that are over, go with later insertions.
func TestStore_insertPrunesRowsThatExpiredADayAgo(t *testing.T) {
	s, setClock := newRowStore(t)
	h := harnessOfRows(s, setClock)
	apps := linking.NewAppSessions(s)
	team, user := conformance.Team("a"), h.AddUser(t, "a", "ann")
	start := time.Now().UTC().Truncate(time.Second)
	insert := func(now time.Time, name string) {
		setClock(now)
		ends := now.Add(time.Hour)
		require.NoError(t, h.Linking.InsertCode(t.Context(), linking.Code{Text: name, Team: team, User: user, CreatedAt: now, ExpiresAt: ends}))
		require.NoError(t, h.Linking.InsertSession(t.Context(), linking.Session{
			ID: linking.SessionID{UUID: conformance.Named("session " + name)}, Team: team, User: user, CreatedAt: now, ExpiresAt: ends,
		}))
		require.NoError(t, apps.InsertApp(t.Context(), linking.AppSession{ID: conformance.Named("app " + name), Team: team, User: user, CreatedAt: now, ExpiresAt: ends}))
		client := [32]byte(bytes.Repeat([]byte(name[len(name)-1:]), 32))
		require.NoError(t, h.Linking.TryCode(t.Context(), team, client, "wrong", func(x *linking.CodeAttempt) { _, _ = x.Redeem(now) }))
	}
	rows := func() []int {
		return []int{
			countRows(t, s, "link_code", healthlab.TeamID{}), countRows(t, s, "link_session", team),
			countRows(t, s, "link_app", team), countRows(t, s, "link_code_client", team),
		}
	}
	insert(start, "skus00000001")
	insert(start.Add(time.Hour), "skus00000002")
	require.Equal(t, []int{2, 2, 2, 2}, rows())
	insert(start.Add(25*time.Hour), "skus00000003")
	require.Equal(t, []int{2, 2, 2, 1}, rows())
}

func TestDeleteTeam_removesAllRowsOfTheTeamOnly(t *testing.T) {
	s, setClock := newRowStore(t)
	h := harnessOfRows(s, setClock)
	clients := linking.NewTeamClients(s)
	now := time.Now()
	teams := []healthlab.TeamID{conformance.Team("a"), conformance.Team("b")}
	for _, team := range teams {
		_, err := clients.PutClient(t.Context(), linking.TeamClient{
			Team: team, Provider: "acme_scale", ClientID: "id", Box: healthlab.Sealed{KeyID: "k", Box: []byte{1}}, CreatedAt: now, UpdatedAt: now,
		})
		require.NoError(t, err)
		require.NoError(t, h.Linking.TryCode(t.Context(), team, [32]byte{1}, "wrong", func(x *linking.CodeAttempt) { _, _ = x.Redeem(now) }))
	}
	require.NoError(t, s.Update(t.Context(), func(ctx context.Context, tx store.Tx) error { return linking.DeleteTeam(ctx, tx, teams[0]) }))
	for _, table := range linking.Tables() {
		require.Zero(t, countRows(t, s, table.Name, teams[0]), table.Name)
	}
	list, err := clients.Clients(t.Context(), linking.ClientQuery{Team: teams[1]})
	require.NoError(t, err)
	require.Len(t, list, 1)
}

// Connections are counted page by page.
func TestClients_connectionsAreCountedBeyondOnePage(t *testing.T) {
	s, setClock := newRowStore(t)
	h := harnessOfRows(s, setClock)
	clients := linking.NewTeamClients(s)
	team := conformance.Team("a")
	_, err := clients.PutClient(t.Context(), linking.TeamClient{
		Team: team, Provider: "acme_scale", ClientID: "id", Box: healthlab.Sealed{KeyID: "k", Box: []byte{1}}, CreatedAt: time.Now(), UpdatedAt: time.Now(),
	})
	require.NoError(t, err)
	const many = 401
	for i := range many {
		c := h.AddConnection(t, "a", fmt.Sprint("user ", i))
		_, err := h.Users.Update(t.Context(), team, c.User, func(u *healthdata.User) ([]healthlab.Event, error) {
			u.Connections[0].Client = "id"
			return nil, nil
		})
		require.NoError(t, err)
	}
	list, err := clients.Clients(t.Context(), linking.ClientQuery{Team: team, Count: true})
	require.NoError(t, err)
	require.Equal(t, many, list[0].Connections)
}
