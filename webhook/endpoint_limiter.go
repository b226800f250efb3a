package webhook

import "time"

const (
	slotsAtStart   = 8
	throttleSpace  = time.Second
	pauseAfter     = 10 // different deliveries failed in a row
	rateBurst      = time.Second
	slotsOnPause   = 1
	slotsMin       = 1
	slotsHalfEvery = 2
	aheadFor       = 30 * time.Millisecond // a claim waits and takes about that long
)

// gate decides how many requests one endpoint may start, in one process. It is a
// small machine over what was started, what came of it, and the instant; it reads no
// clock. Not safe for concurrent use.
//
// The slots adapt: they start at 8, grow by one per round trip of successes, and are
// halved when the receiver throttles or does not answer. After a throttled answer,
// sends are a second apart until a success. While a receiver answers well, a few
// deliveries more than there are slots are claimed and held, so that a slot that comes
// free need not wait for a claim.
type gate struct {
	most  int // slots, at most
	slots int // slots, at present
	busy  int
	held  int           // claimed, without a slot
	trip  time.Duration // of the last request; 0 unless it succeeded

	good   int  // successes since the slots last changed
	spaced bool // sends are kept apart
	last   time.Time

	rate   int // sends per second; 0 is unlimited
	tokens float64
	filled time.Time

	shut   bool // until what made the receiver go, or pause, is written
	failed map[DeliveryID]struct{}
	lastOK time.Time
}

func newGate(most int) *gate {
	return &gate{most: most, slots: min(slotsAtStart, most), failed: map[DeliveryID]struct{}{}}
}

func (g *gate) limit(rate int, now time.Time) {
	if rate != g.rate {
		g.rate, g.tokens, g.filled = rate, float64(rate), now
	}
}

// free returns how many deliveries may be claimed at this instant.
func (g *gate) free(now time.Time) int {
	n := max(g.slots+g.ahead()-g.busy-g.held, 0)
	if g.shut {
		return 0
	}
	if g.spaced {
		if g.busy+g.held > 0 || now.Sub(g.last) < throttleSpace {
			return 0
		}
		n = min(n, 1)
	}
	if g.rate > 0 {
		g.fill(now)
		n = min(n, max(int(g.tokens)-g.held, 0))
	}
	return n
}

func (g *gate) ahead() int {
	if g.trip <= 0 || g.rate > 0 {
		return 0
	}
	return int(min(int64(g.slots), int64(g.slots)*int64(aheadFor)/int64(g.trip)))
}

func (g *gate) hasFreeSlot() bool { return g.busy < g.slots && !g.shut }

func (g *gate) fill(now time.Time) {
	if d := now.Sub(g.filled); d > 0 {
		g.tokens = min(g.tokens+d.Seconds()*float64(g.rate), float64(g.rate)*rateBurst.Seconds())
		g.filled = now
	}
}

// start takes a slot for a delivery.
func (g *gate) start(now time.Time) {
	g.busy++
	g.last = now
	if g.rate > 0 {
		g.tokens--
	}
}

func (g *gate) release() { g.busy = max(g.busy-1, 0) }

// succeed frees the slot of an attempt that succeeded and took so long.
func (g *gate) succeed(took time.Duration, now time.Time) {
	g.release()
	g.trip = max(took, 1)
	g.spaced, g.lastOK = false, now
	clear(g.failed)
	if g.good++; g.good >= g.slots {
		g.slots, g.good = min(g.slots+1, g.most), 0
	}
}

// fail frees the slot of an attempt that failed, and reports whether so many
// different deliveries have failed in a row that the endpoint is to be paused.
func (g *gate) fail(id DeliveryID, c Class, now time.Time) bool {
	g.release()
	g.last, g.trip = now, 0
	switch c {
	case ClassThrottled:
		g.spaced = true
		g.halve()
	case ClassTimeout:
		g.halve()
	}
	g.failed[id] = struct{}{}
	if len(g.failed) < pauseAfter {
		return false
	}
	clear(g.failed)
	return true
}

func (g *gate) halve() { g.slots, g.good = max(g.slots/slotsHalfEvery, slotsMin), 0 }

func (g *gate) resume() { g.slots, g.good, g.trip = slotsOnPause, 0, 0 }
