package memory_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/storetest"
)

func newLinking(testing.TB) storetest.LinkingHarness {
	store := memory.New(nil)
	return storetest.LinkingHarness{
		Linking: store.Linking(), Grants: store.Grants(), Second: store.Grants(), Users: store.Users(), Data: store.Data(), Messages: store.WebhookLog(),
	}
}

func TestLinking(t *testing.T) { storetest.RunLinking(t, newLinking) }

func TestGrants(t *testing.T) { storetest.RunGrants(t, newLinking) }

func TestApps(t *testing.T) {
	store := memory.New(nil)
	storetest.RunApps(t, storetest.AppsHarness{Apps: store.Apps(), Users: store.Users()})
}

func TestTeamClients(t *testing.T) {
	store := memory.New(nil)
	storetest.RunClients(t, storetest.ClientsHarness{Clients: store.TeamClients(), Linking: storetest.LinkingHarness{
		Linking: store.Linking(), Grants: store.Grants(), Second: store.Grants(), Users: store.Users(), Data: store.Data(), Messages: store.WebhookLog(),
	}})
}

func TestBulk(t *testing.T) {
	store := memory.New(nil)
	storetest.RunBulk(t, storetest.BulkHarness{Bulk: store.Bulk(), Linking: storetest.LinkingHarness{
		Linking: store.Linking(), Grants: store.Grants(), Second: store.Grants(), Users: store.Users(), Data: store.Data(), Messages: store.WebhookLog(),
	}})
}

func TestKeeping(t *testing.T) { storetest.RunKeeping(t, newLinking) }

func TestLinkingFlows(t *testing.T) { storetest.RunLinkingFlows(t, newLinking) }

func BenchmarkLinking(b *testing.B) { storetest.BenchLinking(b, newLinking) }
