package memory_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/webhook/receiver"
	"github.com/healthlab-dev/healthlab/webhook/receiver/receivertest"
)

func seenStore(*testing.T) receivertest.SeenHarness {
	c := &clock{}
	return receivertest.SeenHarness{Seen: memory.NewSeen(&memory.Options{Now: c.now}), Advance: c.advance}
}

func TestSeen(t *testing.T)      { receivertest.RunSeen(t, seenStore) }
func TestSeenModel(t *testing.T) { receivertest.RunSeenModel(t, seenStore) }

// Expired claims and marks leave nothing in memory.
func TestSeenIsBoundedByTime(t *testing.T) {
	now := time.Date(2026, 3, 1, 7, 0, 0, 0, time.UTC)
	seen := memory.NewSeen(&memory.Options{Now: func() time.Time { return now }})
	for i := range 1000 {
		c := receiver.Claim{
			Token: uuid.New(), ID: "msg_" + strconv.Itoa(i), Key: "item/" + strconv.Itoa(i%50),
			Version: receiver.Version{Seq: int64(i + 1)}, Lease: time.Minute, Keep: time.Hour, KeepVersion: 2 * time.Hour,
		}
		v, err := seen.Claim(t.Context(), c)
		require.NoError(t, err)
		require.Equal(t, receiver.Fresh, v)
		if i%3 == 0 {
			require.NoError(t, seen.Release(t.Context(), c))
			continue
		}
		require.NoError(t, seen.Done(t.Context(), c))
		now = now.Add(time.Second)
	}
	require.GreaterOrEqual(t, memory.SeenLen(seen), 666+50)
	now = now.Add(90 * time.Minute)
	require.NoError(t, seen.Release(t.Context(), receiver.Claim{ID: "any"}))
	require.Equal(t, 50, memory.SeenLen(seen))
	now = now.Add(time.Hour)
	require.NoError(t, seen.Release(t.Context(), receiver.Claim{ID: "any"}))
	require.Zero(t, memory.SeenLen(seen))
}
