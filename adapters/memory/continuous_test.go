package memory_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/aggregate/aggregatetest"
)

func TestContinuous(t *testing.T) {
	aggregatetest.RunContinuous(t, func(testing.TB) aggregatetest.ContinuousHarness {
		s := memory.New(nil)
		return aggregatetest.ContinuousHarness{
			Store: s.Continuous(), Work: s.ContinuousWork(), Data: s.Data(), Users: s.Users(), Messages: s.WebhookLog(),
		}
	})
}

func TestPriorities(t *testing.T) {
	s := memory.New(nil)
	aggregatetest.RunPriorityStore(t, s.Priorities(), aggregatetest.ContinuousHarness{
		Store: s.Continuous(), Work: s.ContinuousWork(), Data: s.Data(), Users: s.Users(), Messages: s.WebhookLog(),
	})
}
