package memory_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/storetest"
)

func TestContinuous(t *testing.T) {
	storetest.RunContinuous(t, func(testing.TB) storetest.ContinuousHarness {
		s := memory.New(nil)
		return storetest.ContinuousHarness{
			Store: s.Continuous(), Work: s.ContinuousWork(), Data: s.Data(), Users: s.Users(), Messages: s.WebhookLog(),
		}
	})
}

func TestPriorities(t *testing.T) {
	s := memory.New(nil)
	storetest.RunPriorities(t, s.Priorities(), storetest.ContinuousHarness{
		Store: s.Continuous(), Work: s.ContinuousWork(), Data: s.Data(), Users: s.Users(), Messages: s.WebhookLog(),
	})
}
