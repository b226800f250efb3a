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
)

// gate decides how many requests one endpoint may start, in one process. It is a
// small machine over what was started, what came of it, and the instant; it reads no
// clock. Not safe for concurrent use.
//
// The slots adapt: they start at 8, grow by one per round trip of successes, and are
// halved when the receiver throttles or does not answer. After a throttled answer,
// sends are a second apart until a success.
type gate struct {
	most  int // slots, at most
	slots int // slots, at present
	busy  int

	good   int  // successes since the slots last changed
	spaced bool // sends are kept apart
	last   time.Time

	rate   int // sends per second; 0 is unlimited
	tokens float64
	filled time.Time

	shut   bool // the receiver is gone
	failed map[DeliveryID]struct{}
	lastOK time.Time
}

func newGate(most int) *gate {
	return &gate{most: most, slots: min(slotsAtStart, most), failed: map[DeliveryID]struct{}{}}
}

// limit sets the rate, in sends per second; 0 means unlimited.
func (g *gate) limit(rate int, now time.Time) {
	if rate != g.rate {
		g.rate, g.tokens, g.filled = rate, float64(rate), now
	}
}

// free returns how many sends may start at this instant.
func (g *gate) free(now time.Time) int {
	n := max(g.slots-g.busy, 0)
	if g.shut {
		return 0
	}
	if g.spaced {
		if g.busy > 0 || now.Sub(g.last) < throttleSpace {
			return 0
		}
		n = min(n, 1)
	}
	if g.rate > 0 {
		g.fill(now)
		n = min(n, int(g.tokens))
	}
	return n
}

// fill adds what the time since the last look has earned, up to one second's worth.
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

// release gives a slot back without an attempt.
func (g *gate) release() { g.busy = max(g.busy-1, 0) }

// succeed frees the slot of an attempt that succeeded.
func (g *gate) succeed(now time.Time) {
	g.release()
	g.spaced, g.shut, g.lastOK = false, false, now
	clear(g.failed)
	if g.good++; g.good >= g.slots {
		g.slots, g.good = min(g.slots+1, g.most), 0
	}
}

// fail frees the slot of an attempt that failed, and reports whether so many
// different deliveries have failed in a row that the endpoint is to be paused.
func (g *gate) fail(id DeliveryID, c Class, now time.Time) bool {
	g.release()
	g.last = now
	switch c {
	case ClassThrottled:
		g.spaced = true
		g.halve()
	case ClassTimeout:
		g.halve()
	case ClassGone:
		g.shut = true
	}
	g.failed[id] = struct{}{}
	if len(g.failed) < pauseAfter {
		return false
	}
	clear(g.failed)
	return true
}

func (g *gate) halve() { g.slots, g.good = max(g.slots/slotsHalfEvery, slotsMin), 0 }

// resume starts over, carefully, after a pause.
func (g *gate) resume() { g.slots, g.good = slotsOnPause, 0 }
