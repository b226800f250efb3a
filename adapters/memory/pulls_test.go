package memory_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/linking/pull/pulltest"
)

func newPulls(testing.TB) pulltest.StoreHarness {
	s, setClock := clockedStore()
	return pulltest.StoreHarness{Pulls: s.Pulls(), Users: s.Users(), Messages: s.WebhookLog(), Data: s.Data(), Credentials: s.Credentials(), SetClock: setClock}
}

func TestPulls_passTheirStoreSuite(t *testing.T) { pulltest.RunStore(t, newPulls) }

func TestPulls_passTheirModelTest(t *testing.T) { pulltest.RunStoreModel(t, newPulls) }

func TestPulls_passTheCrashSuite(t *testing.T) { pulltest.RunCrashes(t, newPulls) }
