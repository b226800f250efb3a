package storetest_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/storetest"
	"github.com/healthlab-dev/healthlab/webhook/receiver"
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

// seen returns the suite over memories that were broken in one way.
func seen(how func(*brokenSeen)) func(*testing.T) { return brokenSight(storetest.RunSeen, how) }

func brokenSight(suite func(*testing.T, func(*testing.T) storetest.SeenStore), how func(*brokenSeen)) func(*testing.T) {
	return func(t *testing.T) {
		suite(t, func(*testing.T) storetest.SeenStore {
			var ahead atomic.Int64
			sound := memory.NewSeen(&memory.Options{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
			b := brokenSeen{Seen: sound}
			how(&b)
			return storetest.SeenStore{Seen: b, Advance: func(d time.Duration) { ahead.Add(int64(d)) }}
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

var seenMutants = []mutant{
	{"seen: two hold one id", seenSays(receiver.Busy, receiver.Fresh), "ID/HeldByOne"},
	{"seen: a lease never ends", seenWith(func(c *receiver.Claim) { c.Lease = 1000 * time.Hour }), "ID/LeaseEnds"},
	{"seen: a lease ends at once", seenWith(func(c *receiver.Claim) { c.Lease = 0 }), "ID/LeaseEnds"},
	{"seen: nothing is remembered", seen(func(b *brokenSeen) {
		b.done = func(ctx context.Context, s receiver.Seen, c receiver.Claim) error { return s.Release(ctx, c) }
	}), "ID/Remembered"},
	{"seen: an id is remembered for a day", seenWith(func(c *receiver.Claim) { c.Keep = min(c.Keep, 24*time.Hour) }), "ID/Remembered"},
	{"seen: an id is remembered for ever", seenWith(func(c *receiver.Claim) { c.Keep *= 1000 }), "ID/Forgotten"},
	{"seen: done counts only within the lease", seen(func(b *brokenSeen) {
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
	}), "ID/DoneAfterTheLease"},
	{"seen: release does nothing", seen(func(b *brokenSeen) {
		b.release = func(ctx context.Context, _ receiver.Seen, _ receiver.Claim) error { return ctx.Err() }
	}), "ID/Released"},
	{"seen: anybody releases", seenWith(func(c *receiver.Claim) { c.Token = uuid.Nil }), "ID/ReleasedByAnother"},
	{"seen: ids fold case", seenWith(func(c *receiver.Claim) { c.ID = strings.ToLower(c.ID) }), "ID/Exact"},
	{"seen: ids are trimmed", seenWith(func(c *receiver.Claim) { c.ID = strings.TrimSpace(c.ID) }), "ID/Exact"},
	{"seen: keys fold case", seenWith(func(c *receiver.Claim) { c.Key = strings.ToLower(c.Key) }), "ID/Exact"},
	{"seen: old versions are fresh", seenSays(receiver.Outdated, receiver.Fresh), "Version/OlderIsOutdated"},
	{"seen: versions to the second", seenWith(func(c *receiver.Claim) { c.Version.At = c.Version.At.Truncate(time.Second) }), "Version/ByTheMicrosecond"},
	{"seen: versions to the minute", seenWith(func(c *receiver.Claim) { c.Version.At = c.Version.At.Truncate(time.Hour) }), "Version/OlderIsOutdated"},
	{"seen: steps do not count", seenWith(func(c *receiver.Claim) { c.Version.Step = 0 }), "Version/StepsCountFirst"},
	{"seen: sequences do not count", seenWith(func(c *receiver.Claim) { c.Version.Seq = 0 }), "Version/SequencesDecide"},
	{"seen: any sequence decides", seenWith(func(c *receiver.Claim) { c.Version.Seq++ }), "Version/OneSequenceDecidesNothing"},
	{"seen: all keys are one", seenWith(func(c *receiver.Claim) { c.Key = "k" }), "Version/OfEachKey"},
	{"seen: a key is not held", seen(func(b *brokenSeen) {
		b.claim = func(ctx context.Context, s receiver.Seen, c receiver.Claim) (receiver.Verdict, error) {
			v, err := s.Claim(ctx, c)
			if v != receiver.Busy {
				return v, err
			}
			c.Key = ""
			return s.Claim(ctx, c)
		}
	}), "Version/KeyIsHeld"},
	{"seen: done keeps the key held", seen(func(b *brokenSeen) {
		b.done = func(ctx context.Context, s receiver.Seen, c receiver.Claim) error {
			c.Token = uuid.New()
			return s.Done(ctx, c)
		}
	}), "Version/KeyIsHeld"},
	{"seen: release forgets the version", seen(func(b *brokenSeen) {
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
	}), "ID/ReleaseForgetsNothing"},
	{"seen: a claim sets the version", seen(func(b *brokenSeen) {
		b.release = func(ctx context.Context, s receiver.Seen, c receiver.Claim) error {
			c.ID += "?"
			return s.Done(ctx, c)
		}
	}), "Version/ReleaseKeepsTheOld"},
	{"seen: a late done lowers the version", seen(func(b *brokenSeen) {
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
	}), "Version/NeverGoesBack"},
	{"seen: a version goes with its id", seenWith(func(c *receiver.Claim) { c.KeepVersion = c.Keep }), "Version/OutlivesTheID"},
	{"seen: a version is remembered for ever", seenWith(func(c *receiver.Claim) { c.KeepVersion *= 1000 }), "Version/Forgotten"},
	{"seen: NUL is taken", seen(func(b *brokenSeen) {
		b.claim = func(ctx context.Context, s receiver.Seen, c receiver.Claim) (receiver.Verdict, error) {
			c.ID = strings.ReplaceAll(c.ID, "\x00", "0")
			return s.Claim(ctx, c)
		}
	}), "Calls/NUL"},
	{"seen: an ended context claims", seen(func(b *brokenSeen) {
		b.claim = func(ctx context.Context, s receiver.Seen, c receiver.Claim) (receiver.Verdict, error) {
			return s.Claim(context.WithoutCancel(ctx), c)
		}
	}), "Calls/ContextHasEnded"},
	{"seen: looks, and holds nothing", seen(func(b *brokenSeen) {
		b.claim = func(ctx context.Context, s receiver.Seen, c receiver.Claim) (receiver.Verdict, error) {
			v, err := s.Claim(ctx, c)
			if v == receiver.Fresh {
				err = s.Release(ctx, c)
			}
			return v, err
		}
	}), "Calls/OneOfManyGetsIt"},
	{"seen: only ids are held", seen(func(b *brokenSeen) {
		b.claim = func(ctx context.Context, s receiver.Seen, c receiver.Claim) (receiver.Verdict, error) {
			c.Key = ""
			return s.Claim(ctx, c)
		}
	}), "Calls/OneOfAKeyAtATime"},
	{"seen model: done extends the version", brokenSight(storetest.RunSeenModel, func(b *brokenSeen) {
		last := map[string]receiver.Version{}
		b.done = func(ctx context.Context, s receiver.Seen, c receiver.Claim) error {
			if c.Version.Before(last[c.Key]) {
				c.Version = last[c.Key]
			}
			last[c.Key] = c.Version
			return s.Done(ctx, c)
		}
	}), ""},
}
