package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/webhook/receiver"
	"github.com/healthlab-dev/healthlab/webhook/receiver/receivertest"
)

func seenStores(t *testing.T) func(t *testing.T) receivertest.SeenHarness {
	pool := pgtest.Pool(t)
	s := postgres.New(pool, nil)
	store := emptied(s, pool)
	return func(t *testing.T) receivertest.SeenHarness {
		return receivertest.SeenHarness{Seen: s.Seen("test"), Advance: store(t).Advance}
	}
}

func TestSeen(t *testing.T) {
	t.Parallel()
	receivertest.RunSeen(t, seenStores(t))
}

func TestSeenModel(t *testing.T) {
	t.Parallel()
	receivertest.RunSeenModel(t, seenStores(t))
}

// Later writes delete expired rows, and two receivers are independent of each other.
func TestSeenIsBoundedByTime(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	clock := &serverClock{t: t, pool: pool}
	s := postgres.New(pool, nil)
	one, two := s.Seen("one"), s.Seen("two")
	handle := func(seen receiver.Seen, id string) {
		c := receiver.Claim{
			Token: uuid.New(), ID: id, Key: "item/" + id, Version: receiver.Version{Seq: 1},
			Lease: time.Minute, Keep: time.Hour, KeepVersion: time.Hour,
		}
		v, err := seen.Claim(t.Context(), c)
		require.NoError(t, err)
		require.Equal(t, receiver.Fresh, v)
		require.NoError(t, seen.Done(t.Context(), c))
	}
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		handle(one, id)
		handle(two, id)
	}
	require.Equal(t, 24, rows(t, pool, "seen"))
	clock.advance(2 * time.Hour)
	for _, id := range []string{"g", "h", "i"} {
		handle(one, id)
	}
	require.Equal(t, 6, rows(t, pool, "seen"))
}
