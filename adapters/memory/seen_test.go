package memory_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/webhook/receiver/receivertest"
)

func seenStore(*testing.T) receivertest.SeenHarness {
	c := &clock{}
	return receivertest.SeenHarness{Seen: memory.NewSeen(&memory.Options{Now: c.now}), Advance: c.advance}
}

func TestSeenMessages_passTheirStoreSuite(t *testing.T) { receivertest.RunSeen(t, seenStore) }
func TestSeenMessages_passTheirModelTest(t *testing.T)  { receivertest.RunSeenModel(t, seenStore) }
