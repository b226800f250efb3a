package memory_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/storetest"
)

func newLinking(testing.TB) storetest.LinkingHarness {
	store := memory.New(nil)
	return storetest.LinkingHarness{
		Linking: store.Linking(), Users: store.Users(), Data: store.Data(), Messages: store.WebhookLog(),
	}
}

func TestLinking(t *testing.T) { storetest.RunLinking(t, newLinking) }

func TestLinkingFlows(t *testing.T) { storetest.RunLinkingFlows(t, newLinking) }

func BenchmarkLinking(b *testing.B) { storetest.BenchLinking(b, newLinking) }
