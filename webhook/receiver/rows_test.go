package receiver_test

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/memory/memstore"
	"github.com/healthlab-dev/healthlab/store"
	"github.com/healthlab-dev/healthlab/webhook/receiver"
	"github.com/healthlab-dev/healthlab/webhook/receiver/receivertest"
)

func seenStore(t *testing.T, now func() time.Time) (receiver.Seen, store.Store) {
	t.Helper()
	engine, err := memstore.New(receiver.Tables(), &memstore.Options{Now: now})
	require.NoError(t, err)
	return receiver.NewSeen(engine), engine
}

func seenHarness(t *testing.T) receivertest.SeenHarness {
	var ahead atomic.Int64
	seen, _ := seenStore(t, func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
	return receivertest.SeenHarness{Seen: seen, Advance: func(d time.Duration) { ahead.Add(int64(d)) }}
}

func TestSeen_overRowsPassesTheSuite(t *testing.T) { receivertest.RunSeen(t, seenHarness) }

func TestSeen_overRowsPassesTheModelSuite(t *testing.T) { receivertest.RunSeenModel(t, seenHarness) }

// Expired claims and marks leave nothing behind, and no row tells an id or a key.
func TestSeen_expiredRowsAreRemovedAndContainNoID(t *testing.T) {
	now := time.Date(2026, 3, 1, 7, 0, 0, 0, time.UTC)
	seen, rows := seenStore(t, func() time.Time { return now })
	kept := func() int {
		got, err := rows.Read(t.Context(), store.Query{Key: store.Key{Table: "webhook_seen"}, By: store.ByID})
		require.NoError(t, err)
		for _, r := range got[0] {
			require.NotContains(t, r.ID+string(r.Doc), "item")
		}
		return len(got[0])
	}
	forget := func() {
		for range 100 {
			require.NoError(t, seen.Release(t.Context(), receiver.Claim{ID: "any"}))
		}
	}
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
	require.Equal(t, 666+50, kept())
	now = now.Add(90 * time.Minute)
	forget()
	require.Equal(t, 50, kept())
	now = now.Add(time.Hour)
	forget()
	require.Zero(t, kept())
}
