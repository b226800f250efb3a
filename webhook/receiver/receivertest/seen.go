package receivertest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/webhook/receiver"
)

// SeenHarness is a [receiver.Seen] and a function to move its clock.
type SeenHarness struct {
	Seen receiver.Seen
	// Advance moves the store's clock forward. The clock may also move by itself, but
	// not by a minute within a test.
	Advance func(d time.Duration)
}

// sight is a [receiver.Seen] under test with helpers.
type sight struct {
	SeenHarness
	t testing.TB
}

const (
	seenLease       = time.Minute
	seenKeep        = 28 * time.Hour
	seenKeepVersion = 30 * 24 * time.Hour
)

func newClaim(id, key string, v receiver.Version) receiver.Claim {
	return receiver.Claim{
		Token: uuid.New(), ID: id, Key: key, Version: v,
		Lease: seenLease, Keep: seenKeep, KeepVersion: seenKeepVersion,
	}
}

// claim makes the claim c, fails the test unless the verdict is want, and returns c.
func (s sight) claim(want receiver.Verdict, c receiver.Claim) receiver.Claim {
	s.t.Helper()
	got, err := s.Seen.Claim(s.t.Context(), c)
	require.NoError(s.t, err)
	require.Equal(s.t, want.String(), got.String())
	return c
}

func (s sight) done(c receiver.Claim) {
	s.t.Helper()
	require.NoError(s.t, s.Seen.Done(s.t.Context(), c))
}

func (s sight) release(c receiver.Claim) {
	s.t.Helper()
	require.NoError(s.t, s.Seen.Release(s.t.Context(), c))
}

func (s sight) apply(id, key string, v receiver.Version) {
	s.t.Helper()
	s.done(s.claim(receiver.Fresh, newClaim(id, key, v)))
}

func versionAt(minute int) receiver.Version {
	return receiver.Version{At: longAgo.Add(time.Duration(minute) * time.Minute)}
}

// RunSeen runs the contract of [receiver.Seen]. newStore returns a fresh, empty store
// and registers its own cleanup on t.
func RunSeen(t *testing.T, newStore func(t *testing.T) SeenHarness) {
	run := func(t *testing.T, name string, test func(s sight)) {
		t.Helper()
		t.Run(name, func(t *testing.T) { test(sight{newStore(t), t}) })
	}
	t.Run("ID", func(t *testing.T) { seenIDs(t, run) })
	t.Run("Version", func(t *testing.T) { seenVersions(t, run) })
	t.Run("Calls", func(t *testing.T) { seenCalls(t, run) })
}

type runSeen func(t *testing.T, name string, test func(s sight))

func seenIDs(t *testing.T, run runSeen) {
	none := receiver.Version{}
	run(t, "HeldByOne", func(s sight) {
		s.claim(receiver.Fresh, newClaim("msg_1", "", none))
		s.claim(receiver.Busy, newClaim("msg_1", "", none))
		s.claim(receiver.Fresh, newClaim("msg_2", "", none))
	})
	run(t, "LeaseEnds", func(s sight) {
		s.claim(receiver.Fresh, newClaim("msg_1", "", none))
		s.Advance(seenLease - 10*time.Second)
		s.claim(receiver.Busy, newClaim("msg_1", "", none))
		s.Advance(20 * time.Second)
		s.claim(receiver.Fresh, newClaim("msg_1", "", none))
	})
	run(t, "Remembered", func(s sight) {
		s.apply("msg_1", "", none)
		s.claim(receiver.Repeated, newClaim("msg_1", "", none))
		s.Advance(seenKeep - time.Minute)
		s.claim(receiver.Repeated, newClaim("msg_1", "", none))
	})
	run(t, "Forgotten", func(s sight) {
		s.apply("msg_1", "", none)
		s.Advance(seenKeep + time.Minute)
		s.claim(receiver.Fresh, newClaim("msg_1", "", none))
	})
	run(t, "DoneAfterTheLease", func(s sight) {
		late := s.claim(receiver.Fresh, newClaim("msg_1", "", none))
		s.Advance(seenLease + time.Minute)
		s.claim(receiver.Fresh, newClaim("msg_1", "", none))
		s.done(late)
		s.claim(receiver.Repeated, newClaim("msg_1", "", none))
	})
	run(t, "DoneTwice", func(s sight) {
		c := s.claim(receiver.Fresh, newClaim("msg_1", "", none))
		s.done(c)
		s.done(c)
		s.claim(receiver.Repeated, newClaim("msg_1", "", none))
	})
	run(t, "Released", func(s sight) {
		s.release(s.claim(receiver.Fresh, newClaim("msg_1", "", none)))
		s.claim(receiver.Fresh, newClaim("msg_1", "", none))
	})
	run(t, "ReleasedByAnother", func(s sight) {
		late := s.claim(receiver.Fresh, newClaim("msg_1", "item/1", versionAt(1)))
		s.Advance(seenLease + time.Minute)
		s.claim(receiver.Fresh, newClaim("msg_1", "item/1", versionAt(1)))
		s.release(late)
		s.claim(receiver.Busy, newClaim("msg_1", "item/1", versionAt(1)))
		s.claim(receiver.Busy, newClaim("msg_2", "item/1", versionAt(2)))
	})
	run(t, "ReleaseForgetsNothing", func(s sight) {
		c := s.claim(receiver.Fresh, newClaim("msg_1", "item/1", versionAt(5)))
		s.done(c)
		s.release(c)
		s.claim(receiver.Repeated, c)
		s.claim(receiver.Outdated, newClaim("msg_0", "item/1", versionAt(4)))
	})
	run(t, "Exact", func(s sight) {
		for _, id := range []string{"msg_a", "msg_A", "msg_\u00e1", "msg_a\u0301", "msg_a ", " msg_a"} {
			s.apply(id, "", none)
		}
		for i, key := range []string{"item/a", "item/A", "item/\u00e1", "item/a "} {
			s.apply("1 "+key, key, versionAt(9-i))
		}
		s.claim(receiver.Fresh, newClaim("2", "item/a\u0301", versionAt(1)))
	})
}

func seenVersions(t *testing.T, run runSeen) {
	run(t, "OlderIsOutdated", func(s sight) {
		s.apply("msg_2", "item/1", versionAt(2))
		s.claim(receiver.Outdated, newClaim("msg_1", "item/1", versionAt(1)))
		s.claim(receiver.Fresh, newClaim("msg_3", "item/1", versionAt(3)))
	})
	run(t, "ByTheMicrosecond", func(s sight) {
		v := receiver.Version{At: longAgo.Add(time.Microsecond)}
		s.apply("msg_2", "item/1", v)
		s.claim(receiver.Outdated, newClaim("msg_1", "item/1", receiver.Version{At: longAgo}))
		s.claim(receiver.Fresh, newClaim("msg_3", "item/1", v))
	})
	run(t, "EqualIsFresh", func(s sight) {
		s.apply("msg_1", "item/1", versionAt(1))
		s.apply("msg_2", "item/1", versionAt(1))
		s.claim(receiver.Repeated, newClaim("msg_1", "item/1", versionAt(1)))
	})
	run(t, "StepsCountFirst", func(s sight) {
		s.apply("msg_2", "item/1", receiver.Version{Step: 2, At: longAgo})
		s.claim(receiver.Outdated, newClaim("msg_1", "item/1", receiver.Version{Step: 1, At: longAgo.Add(time.Hour)}))
		s.claim(receiver.Outdated, newClaim("msg_0", "item/1", receiver.Version{Step: 2, At: longAgo.Add(-time.Hour)}))
		s.apply("msg_3", "item/1", receiver.Version{Step: 3, At: longAgo.Add(-time.Hour)})
	})
	run(t, "SequencesDecide", func(s sight) {
		s.apply("msg_7", "item/1", receiver.Version{Seq: 7, Step: 9, At: longAgo})
		s.claim(receiver.Outdated, newClaim("msg_6", "item/1", receiver.Version{Seq: 6, Step: 10, At: longAgo.Add(time.Hour)}))
		s.apply("msg_8", "item/1", receiver.Version{Seq: 8, Step: 1, At: longAgo.Add(-time.Hour)})
	})
	run(t, "OneSequenceDecidesNothing", func(s sight) {
		s.apply("msg_2", "item/1", versionAt(2))
		s.claim(receiver.Outdated, newClaim("msg_1", "item/1", receiver.Version{Seq: 9, At: versionAt(1).At}))
		s.apply("msg_3", "item/1", receiver.Version{Seq: 1, At: versionAt(3).At})
		s.claim(receiver.Outdated, newClaim("msg_0", "item/1", versionAt(2)))
	})
	run(t, "OfEachKey", func(s sight) {
		s.apply("msg_2", "item/1", versionAt(2))
		s.claim(receiver.Fresh, newClaim("msg_1", "item/2", versionAt(1)))
		s.claim(receiver.Fresh, newClaim("msg_0", "", versionAt(0)))
	})
	run(t, "KeyIsHeld", func(s sight) {
		c := s.claim(receiver.Fresh, newClaim("msg_1", "item/1", versionAt(1)))
		s.claim(receiver.Busy, newClaim("msg_2", "item/1", versionAt(2)))
		s.claim(receiver.Busy, newClaim("msg_0", "item/1", versionAt(0)))
		s.done(c)
		s.claim(receiver.Fresh, newClaim("msg_2", "item/1", versionAt(2)))
	})
	run(t, "BusyHoldsNothing", func(s sight) {
		c := s.claim(receiver.Fresh, newClaim("msg_1", "item/1", versionAt(1)))
		s.claim(receiver.Busy, newClaim("msg_2", "item/1", versionAt(2)))
		s.release(c)
		s.claim(receiver.Fresh, newClaim("msg_2", "item/1", versionAt(2)))
	})
	run(t, "OutdatedWhileHeld", func(s sight) {
		s.apply("msg_2", "item/1", versionAt(2))
		s.claim(receiver.Fresh, newClaim("msg_3", "item/1", versionAt(3)))
		s.claim(receiver.Outdated, newClaim("msg_1", "item/1", versionAt(1)))
	})
	run(t, "LeaseEnds", func(s sight) {
		s.claim(receiver.Fresh, newClaim("msg_1", "item/1", versionAt(1)))
		s.Advance(seenLease + time.Minute)
		s.claim(receiver.Fresh, newClaim("msg_0", "item/1", versionAt(0)))
	})
	run(t, "ReleaseKeepsTheOld", func(s sight) {
		s.apply("msg_1", "item/1", versionAt(1))
		s.release(s.claim(receiver.Fresh, newClaim("msg_3", "item/1", versionAt(3))))
		s.claim(receiver.Fresh, newClaim("msg_2", "item/1", versionAt(2)))
	})
	run(t, "NeverGoesBack", func(s sight) {
		late := s.claim(receiver.Fresh, newClaim("msg_1", "item/1", versionAt(1)))
		s.Advance(seenLease + time.Minute)
		s.apply("msg_3", "item/1", versionAt(3))
		s.done(late)
		s.claim(receiver.Outdated, newClaim("msg_2", "item/1", versionAt(2)))
	})
	run(t, "OutlivesTheID", func(s sight) {
		s.apply("msg_2", "item/1", versionAt(2))
		s.Advance(seenKeepVersion - time.Hour)
		s.claim(receiver.Outdated, newClaim("msg_1", "item/1", versionAt(1)))
		s.claim(receiver.Fresh, newClaim("msg_2", "item/1", versionAt(2)))
	})
	run(t, "Forgotten", func(s sight) {
		s.apply("msg_2", "item/1", versionAt(2))
		s.Advance(seenKeepVersion + time.Hour)
		s.claim(receiver.Fresh, newClaim("msg_1", "item/1", versionAt(1)))
	})
}

func seenCalls(t *testing.T, run runSeen) {
	run(t, "NUL", func(s sight) {
		for _, c := range []receiver.Claim{newClaim("a\x00", "", versionAt(1)), newClaim("a", "b\x00", versionAt(1)), newClaim("", "", versionAt(1))} {
			_, err := s.Seen.Claim(s.t.Context(), c)
			require.ErrorIs(s.t, err, healthlab.Invalid)
			require.ErrorIs(s.t, s.Seen.Done(s.t.Context(), c), healthlab.Invalid)
			require.ErrorIs(s.t, s.Seen.Release(s.t.Context(), c), healthlab.Invalid)
		}
	})
	run(t, "ContextHasEnded", func(s sight) {
		ctx, cancel := context.WithCancel(s.t.Context())
		cancel()
		c := newClaim("msg_1", "item/1", versionAt(1))
		_, err := s.Seen.Claim(ctx, c)
		require.ErrorIs(s.t, err, context.Canceled)
		require.ErrorIs(s.t, s.Seen.Done(ctx, c), context.Canceled)
		s.claim(receiver.Fresh, c)
		require.ErrorIs(s.t, s.Seen.Release(ctx, c), context.Canceled)
		s.claim(receiver.Busy, newClaim("msg_1", "item/1", versionAt(1)))
	})
	run(t, "OneOfManyGetsIt", func(s sight) {
		const many = 16
		verdicts := make([]receiver.Verdict, many)
		var wg sync.WaitGroup
		for i := range many {
			wg.Go(func() {
				verdicts[i], _ = s.Seen.Claim(s.t.Context(), newClaim("msg_1", "item/1", versionAt(1)))
			})
		}
		wg.Wait()
		fresh := 0
		for _, v := range verdicts {
			if v == receiver.Fresh {
				fresh++
			}
		}
		require.Equal(s.t, 1, fresh)
	})
	run(t, "OneOfAKeyAtATime", func(s sight) {
		const many = 16
		verdicts := make([]receiver.Verdict, many)
		var wg sync.WaitGroup
		for i := range many {
			wg.Go(func() {
				verdicts[i], _ = s.Seen.Claim(s.t.Context(), newClaim("msg_"+string(rune('a'+i)), "item/1", versionAt(1)))
			})
		}
		wg.Wait()
		fresh := 0
		for _, v := range verdicts {
			if v == receiver.Fresh {
				fresh++
			}
		}
		require.Equal(s.t, 1, fresh)
	})
}

var longAgo = time.Date(2020, 1, 2, 3, 4, 5, 678901000, time.UTC)
