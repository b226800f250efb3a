package memory_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/storetest"
)

func newPulls(testing.TB) storetest.PullHarness {
	s := memory.New(nil)
	return storetest.PullHarness{Pulls: s.Pulls(), Users: s.Users(), Messages: s.WebhookLog(), Data: s.Data(), Grants: s.Grants()}
}

func TestPulls(t *testing.T) { storetest.RunPulls(t, newPulls) }

func TestPullsModel(t *testing.T) { storetest.RunPullsModel(t, newPulls) }

func TestPullCrashes(t *testing.T) { storetest.RunPullCrashes(t, newPulls) }
