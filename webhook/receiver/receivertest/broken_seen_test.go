package receivertest_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/webhook/receiver"
	"github.com/healthlab-dev/healthlab/webhook/receiver/receivertest"
)

// brokenSeen passes on what it is not told to break.
type brokenSeen struct {
	receiver.Seen
	claim         func(ctx context.Context, sound receiver.Seen, c receiver.Claim) (receiver.Verdict, error)
	done, release func(ctx context.Context, sound receiver.Seen, c receiver.Claim) error
}

func (b brokenSeen) Claim(ctx context.Context, c receiver.Claim) (receiver.Verdict, error) {
	if b.claim == nil {
		return b.Seen.Claim(ctx, c)
	}
	return b.claim(ctx, b.Seen, c)
}

func (b brokenSeen) Done(ctx context.Context, c receiver.Claim) error {
	if b.done == nil {
		return b.Seen.Done(ctx, c)
	}
	return b.done(ctx, b.Seen, c)
}

func (b brokenSeen) Release(ctx context.Context, c receiver.Claim) error {
	if b.release == nil {
		return b.Seen.Release(ctx, c)
	}
	return b.release(ctx, b.Seen, c)
}

func seen(how func(*brokenSeen)) func(*testing.T) { return brokenSight(receivertest.RunSeen, how) }

func brokenSight(suite func(*testing.T, func(*testing.T) receivertest.SeenHarness), how func(*brokenSeen)) func(*testing.T) {
	return func(t *testing.T) {
		suite(t, func(*testing.T) receivertest.SeenHarness {
			var ahead atomic.Int64
			sound := memory.NewSeen(&memory.Options{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
			b := brokenSeen{Seen: sound}
			how(&b)
			return receivertest.SeenHarness{Seen: b, Advance: func(d time.Duration) { ahead.Add(int64(d)) }}
		})
	}
}

// seenWith breaks a memory by changing every claim that it is handed.
func seenWith(edit func(*receiver.Claim)) func(*testing.T) {
	return seen(func(b *brokenSeen) {
		b.claim = func(ctx context.Context, s receiver.Seen, c receiver.Claim) (receiver.Verdict, error) {
			edit(&c)
			return s.Claim(ctx, c)
		}
		b.done = func(ctx context.Context, s receiver.Seen, c receiver.Claim) error { edit(&c); return s.Done(ctx, c) }
		b.release = func(ctx context.Context, s receiver.Seen, c receiver.Claim) error { edit(&c); return s.Release(ctx, c) }
	})
}

// seenSays breaks a memory by changing its verdicts.
func seenSays(is, says receiver.Verdict) func(*testing.T) {
	return seen(func(b *brokenSeen) {
		b.claim = func(ctx context.Context, s receiver.Seen, c receiver.Claim) (receiver.Verdict, error) {
			v, err := s.Claim(ctx, c)
			if v == is {
				v = says
			}
			return v, err
		}
	})
}

var brokenSeenStores = []conformance.Broken{
	{Name: "seen: two hold one id", Suite: seenSays(receiver.Busy, receiver.Fresh), Subtest: "ID/HeldByOne"},
	{Name: "seen: a lease never ends", Suite: seenWith(func(c *receiver.Claim) { c.Lease = 1000 * time.Hour }), Subtest: "ID/LeaseEnds"},
	{Name: "seen: a lease ends at once", Suite: seenWith(func(c *receiver.Claim) { c.Lease = 0 }), Subtest: "ID/LeaseEnds"},
	{Name: "seen: nothing is remembered", Suite: seen(func(b *brokenSeen) {
		b.done = func(ctx context.Context, s receiver.Seen, c receiver.Claim) error { return s.Release(ctx, c) }
	}), Subtest: "ID/Remembered"},
	{Name: "seen: an id is remembered for a day", Suite: seenWith(func(c *receiver.Claim) { c.Keep = min(c.Keep, 24*time.Hour) }), Subtest: "ID/Remembered"},
	{Name: "seen: an id is remembered for ever", Suite: seenWith(func(c *receiver.Claim) { c.Keep *= 1000 }), Subtest: "ID/Forgotten"},
	{Name: "seen: done counts only within the lease", Suite: seen(func(b *brokenSeen) {
		held := map[string]uuid.UUID{}
		b.claim = func(ctx context.Context, s receiver.Seen, c receiver.Claim) (receiver.Verdict, error) {
			v, err := s.Claim(ctx, c)
			if v == receiver.Fresh {
				held[c.ID] = c.Token
			}
			return v, err
		}
		b.done = func(ctx context.Context, s receiver.Seen, c receiver.Claim) error {
			if held[c.ID] != c.Token {
				return ctx.Err()
			}
			return s.Done(ctx, c)
		}
	}), Subtest: "ID/DoneAfterTheLease"},
	{Name: "seen: release does nothing", Suite: seen(func(b *brokenSeen) {
		b.release = func(ctx context.Context, _ receiver.Seen, _ receiver.Claim) error { return ctx.Err() }
	}), Subtest: "ID/Released"},
	{Name: "seen: anybody releases", Suite: seenWith(func(c *receiver.Claim) { c.Token = uuid.Nil }), Subtest: "ID/ReleasedByAnother"},
	{Name: "seen: ids fold case", Suite: seenWith(func(c *receiver.Claim) { c.ID = strings.ToLower(c.ID) }), Subtest: "ID/Exact"},
	{Name: "seen: ids are trimmed", Suite: seenWith(func(c *receiver.Claim) { c.ID = strings.TrimSpace(c.ID) }), Subtest: "ID/Exact"},
	{Name: "seen: keys fold case", Suite: seenWith(func(c *receiver.Claim) { c.Key = strings.ToLower(c.Key) }), Subtest: "ID/Exact"},
	{Name: "seen: old versions are fresh", Suite: seenSays(receiver.Outdated, receiver.Fresh), Subtest: "Version/OlderIsOutdated"},
	{Name: "seen: versions to the second", Suite: seenWith(func(c *receiver.Claim) { c.Version.At = c.Version.At.Truncate(time.Second) }), Subtest: "Version/ByTheMicrosecond"},
	{Name: "seen: versions to the minute", Suite: seenWith(func(c *receiver.Claim) { c.Version.At = c.Version.At.Truncate(time.Hour) }), Subtest: "Version/OlderIsOutdated"},
	{Name: "seen: steps do not count", Suite: seenWith(func(c *receiver.Claim) { c.Version.Step = 0 }), Subtest: "Version/StepsCountFirst"},
	{Name: "seen: sequences do not count", Suite: seenWith(func(c *receiver.Claim) { c.Version.Seq = 0 }), Subtest: "Version/SequencesDecide"},
	{Name: "seen: any sequence decides", Suite: seenWith(func(c *receiver.Claim) { c.Version.Seq++ }), Subtest: "Version/OneSequenceDecidesNothing"},
	{Name: "seen: all keys are one", Suite: seenWith(func(c *receiver.Claim) { c.Key = "k" }), Subtest: "Version/OfEachKey"},
	{Name: "seen: a key is not held", Suite: seen(func(b *brokenSeen) {
		b.claim = func(ctx context.Context, s receiver.Seen, c receiver.Claim) (receiver.Verdict, error) {
			v, err := s.Claim(ctx, c)
			if v != receiver.Busy {
				return v, err
			}
			c.Key = ""
			return s.Claim(ctx, c)
		}
	}), Subtest: "Version/KeyIsHeld"},
	{Name: "seen: done keeps the key held", Suite: seen(func(b *brokenSeen) {
		b.done = func(ctx context.Context, s receiver.Seen, c receiver.Claim) error {
			c.Token = uuid.New()
			return s.Done(ctx, c)
		}
	}), Subtest: "Version/KeyIsHeld"},
	{Name: "seen: release forgets the version", Suite: seen(func(b *brokenSeen) {
		versions := map[string]receiver.Version{}
		b.release = func(ctx context.Context, s receiver.Seen, c receiver.Claim) error {
			versions[c.Key] = receiver.Version{}
			return s.Release(ctx, c)
		}
		b.claim = func(ctx context.Context, s receiver.Seen, c receiver.Claim) (receiver.Verdict, error) {
			v, err := s.Claim(ctx, c)
			if _, gone := versions[c.Key]; gone && v == receiver.Outdated {
				return receiver.Fresh, nil
			}
			return v, err
		}
	}), Subtest: "ID/ReleaseForgetsNothing"},
	{Name: "seen: a claim sets the version", Suite: seen(func(b *brokenSeen) {
		b.release = func(ctx context.Context, s receiver.Seen, c receiver.Claim) error {
			c.ID += "?"
			return s.Done(ctx, c)
		}
	}), Subtest: "Version/ReleaseKeepsTheOld"},
	{Name: "seen: a late done lowers the version", Suite: seen(func(b *brokenSeen) {
		last := map[string]receiver.Version{}
		b.done = func(ctx context.Context, s receiver.Seen, c receiver.Claim) error {
			last[c.Key] = c.Version
			return s.Done(ctx, c)
		}
		b.claim = func(ctx context.Context, s receiver.Seen, c receiver.Claim) (receiver.Verdict, error) {
			v, err := s.Claim(ctx, c)
			if v == receiver.Outdated && !c.Version.Before(last[c.Key]) {
				return receiver.Fresh, err
			}
			return v, err
		}
	}), Subtest: "Version/NeverGoesBack"},
	{Name: "seen: a version goes with its id", Suite: seenWith(func(c *receiver.Claim) { c.KeepVersion = c.Keep }), Subtest: "Version/OutlivesTheID"},
	{Name: "seen: a version is remembered for ever", Suite: seenWith(func(c *receiver.Claim) { c.KeepVersion *= 1000 }), Subtest: "Version/Forgotten"},
	{Name: "seen: NUL is taken", Suite: seen(func(b *brokenSeen) {
		b.claim = func(ctx context.Context, s receiver.Seen, c receiver.Claim) (receiver.Verdict, error) {
			c.ID = strings.ReplaceAll(c.ID, "\x00", "0")
			return s.Claim(ctx, c)
		}
	}), Subtest: "Calls/NUL"},
	{Name: "seen: an ended context claims", Suite: seen(func(b *brokenSeen) {
		b.claim = func(ctx context.Context, s receiver.Seen, c receiver.Claim) (receiver.Verdict, error) {
			return s.Claim(context.WithoutCancel(ctx), c)
		}
	}), Subtest: "Calls/ContextHasEnded"},
	{Name: "seen: looks, and holds nothing", Suite: seen(func(b *brokenSeen) {
		var mu sync.Mutex
		b.claim = func(ctx context.Context, s receiver.Seen, c receiver.Claim) (receiver.Verdict, error) {
			mu.Lock()
			defer mu.Unlock()
			v, err := s.Claim(ctx, c)
			if v == receiver.Fresh {
				err = s.Release(ctx, c)
			}
			return v, err
		}
	}), Subtest: "Calls/OneOfManyGetsIt"},
	{Name: "seen: only ids are held", Suite: seen(func(b *brokenSeen) {
		b.claim = func(ctx context.Context, s receiver.Seen, c receiver.Claim) (receiver.Verdict, error) {
			c.Key = ""
			return s.Claim(ctx, c)
		}
	}), Subtest: "Calls/OneOfAKeyAtATime"},
	{Name: "seen model: done extends the version", Suite: brokenSight(receivertest.RunSeenModel, func(b *brokenSeen) {
		last := map[string]receiver.Version{}
		b.done = func(ctx context.Context, s receiver.Seen, c receiver.Claim) error {
			if c.Version.Before(last[c.Key]) {
				c.Version = last[c.Key]
			}
			last[c.Key] = c.Version
			return s.Done(ctx, c)
		}
	}), Subtest: ""},
}
