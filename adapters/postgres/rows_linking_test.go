package postgres_test

import (
	"testing"
	"time"

	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/adapters/stores"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/bulk"
	"github.com/healthlab-dev/healthlab/linking/bulk/bulktest"
	"github.com/healthlab-dev/healthlab/linking/linkingtest"
	"github.com/healthlab-dev/healthlab/linking/pull/pulltest"
)

func linksOf(s rowStore, onErase ...healthdata.UserHook) (linkingtest.StoreHarness, *linking.Rows) {
	opts := &linking.StoreOptions{Events: s.log}
	links := linking.NewStore(s, opts)
	return linkingtest.StoreHarness{
		Linking: links, Credentials: links, Second: linking.NewStore(s, opts), Users: s.users(onErase...),
		Data: healthdata.NewData(s, &healthdata.DataOptions{Events: s.log}), Messages: s.log, SetClock: s.setClock,
	}, links
}

func newLinkRows(t testing.TB) rowStore {
	return stoppedRowStore(t, healthdata.DataTables(false), linking.Tables(), bulk.Tables())
}

func rowLinks(t testing.TB) linkingtest.StoreHarness {
	h, _ := linksOf(newLinkRows(t))
	return h
}

func TestLinking_passesItsStoreSuite(t *testing.T) {
	t.Parallel()
	linkingtest.RunStore(t, rowLinks)
}

func TestCredentials_passTheirStoreSuite(t *testing.T) {
	t.Parallel()
	linkingtest.RunCredentialStore(t, rowLinks)
}

func TestCredentialRefresh_passesItsSuite(t *testing.T) {
	t.Parallel()
	linkingtest.RunCredentialRefresh(t, rowLinks)
}

func TestLinkFlows_passTheirSuite(t *testing.T) {
	t.Parallel()
	linkingtest.RunFlows(t, rowLinks)
}

func TestAppSessions_passTheirStoreSuite(t *testing.T) {
	t.Parallel()
	s := newLinkRows(t)
	h, _ := linksOf(s)
	linkingtest.RunApps(t, linkingtest.AppsHarness{Apps: linking.NewAppSessions(s), Users: h.Users})
}

func TestTeamClients_passTheirStoreSuite(t *testing.T) {
	t.Parallel()
	s := newLinkRows(t)
	h, _ := linksOf(s)
	linkingtest.RunClients(t, linkingtest.ClientsHarness{Clients: linking.NewTeamClients(s), Linking: h})
}

func TestBulkOperations_passTheirStoreSuite(t *testing.T) {
	t.Parallel()
	s := newLinkRows(t)
	h, links := linksOf(s, bulk.EraseItems)
	bulktest.RunStore(t, bulktest.StoreHarness{Bulk: bulk.NewStore(s, links), SetClock: s.setClock, Linking: h})
}

func rowPulls(t testing.TB) pulltest.StoreHarness {
	clock := conformance.NewClock(time.Now())
	s := storesOn(t, pgtest.Pool(t), clock.Now, &stores.Options{Keys: rowKeys(t)})
	return pulltest.StoreHarness{
		Pulls: s.Pulls(), Users: s.Users(), Messages: s.WebhookLog(), Data: s.Data(), Credentials: s.Credentials(), SetClock: clock.Set,
	}
}

func TestPulls_passTheirStoreSuite(t *testing.T) {
	t.Parallel()
	pulltest.RunStore(t, rowPulls)
}

func TestPulls_passTheirModelTest(t *testing.T) {
	t.Parallel()
	pulltest.RunStoreModel(t, rowPulls)
}

func TestPulls_passTheCrashSuite(t *testing.T) {
	t.Parallel()
	pulltest.RunCrashes(t, rowPulls)
}
