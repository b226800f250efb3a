package memory_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/linking/bulk/bulktest"
	"github.com/healthlab-dev/healthlab/linking/linkingtest"
)

func newLinking(testing.TB) linkingtest.StoreHarness {
	store, setClock := clockedStore()
	return linkingtest.StoreHarness{
		Linking: store.Linking(), Credentials: store.Credentials(), Second: store.Credentials(), Users: store.Users(), Data: store.Data(), Messages: store.WebhookLog(),
		SetClock: setClock,
	}
}

func TestLinking_passesItsStoreSuite(t *testing.T) { linkingtest.RunStore(t, newLinking) }

func TestCredentials_passTheirStoreSuite(t *testing.T) { linkingtest.RunCredentialStore(t, newLinking) }

func TestAppSessions_passTheirStoreSuite(t *testing.T) {
	store := newStore()
	linkingtest.RunApps(t, linkingtest.AppsHarness{Apps: store.Apps(), Users: store.Users()})
}

func TestTeamClients_passTheirStoreSuite(t *testing.T) {
	store := newStore()
	linkingtest.RunClients(t, linkingtest.ClientsHarness{Clients: store.TeamClients(), Linking: linkingtest.StoreHarness{
		Linking: store.Linking(), Credentials: store.Credentials(), Second: store.Credentials(), Users: store.Users(), Data: store.Data(), Messages: store.WebhookLog(),
	}})
}

func TestBulkOperations_passTheirStoreSuite(t *testing.T) {
	store, setClock := clockedStore()
	bulktest.RunStore(t, bulktest.StoreHarness{Bulk: store.Bulk(), Linking: linkingtest.StoreHarness{
		Linking: store.Linking(), Credentials: store.Credentials(), Second: store.Credentials(), Users: store.Users(), Data: store.Data(), Messages: store.WebhookLog(),
	}, SetClock: setClock})
}

func TestCredentialRefresh_passesItsSuite(t *testing.T) {
	linkingtest.RunCredentialRefresh(t, newLinking)
}

func TestLinkFlows_passTheirSuite(t *testing.T) { linkingtest.RunFlows(t, newLinking) }

func BenchmarkLinking(b *testing.B) { linkingtest.BenchFlows(b, newLinking) }
