package memory_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/aggregate/aggregatetest"
)

func TestContinuousQueries_passTheirStoreSuite(t *testing.T) {
	aggregatetest.RunContinuous(t, func(testing.TB) aggregatetest.ContinuousHarness {
		s := newStore()
		return aggregatetest.ContinuousHarness{
			Store: s.Continuous(), Work: s.ContinuousWork(), Data: s.Data(), Users: s.Users(), Messages: s.WebhookLog(),
		}
	})
}

func TestPriorities_passTheirStoreSuite(t *testing.T) {
	s := newStore()
	aggregatetest.RunPriorityStore(t, s.Priorities(), aggregatetest.ContinuousHarness{
		Store: s.Continuous(), Work: s.ContinuousWork(), Data: s.Data(), Users: s.Users(), Messages: s.WebhookLog(),
	})
}
