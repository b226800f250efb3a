package webhook

import "time"

const (
	slotsAtStart   = 8
	throttleSpace  = time.Second
	pauseAfter     = 10 // an endpoint is paused after so many different deliveries failed in a row
	rateBurst      = time.Second
	slotsOnPause   = 1
	slotsMin       = 1
	slotsHalfEvery = 2
	aheadFor       = 30 * time.Millisecond // deliveries are claimed for about this time ahead of a free slot
)

// gate limits the number of concurrent requests to one endpoint in one process. It depends only on started
// requests, their results and the given instant; it reads no clock. Not safe for concurrent use.
//
// The number of slots adapts: it starts at 8, grows by one per round trip of successes, and is halved when the
// receiver throttles or does not answer. After a throttled answer, sends are a second apart until a success.
// While a receiver answers well, a few more deliveries than slots are claimed, so that a free slot is used
// without waiting for a claim.
type gate struct {
	most  int // greatest number of slots
	slots int // current number of slots
	busy  int
	held  int           // claimed deliveries that wait for a slot
	trip  time.Duration // duration of the last attempt; 0 if it failed

	good   int  // successes since the number of slots changed
	spaced bool // sends are at least a second apart
	last   time.Time

	rate   int // sends per second; 0 is unlimited
	tokens float64
	filled time.Time

	shut   bool // no request starts until the endpoint is stored as disabled or paused
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

// free returns how many deliveries of the endpoint may be claimed now.
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

// start records that a request takes a slot.
func (g *gate) start(now time.Time) {
	g.busy++
	g.last = now
	if g.rate > 0 {
		g.tokens--
	}
}

func (g *gate) release() { g.busy = max(g.busy-1, 0) }

// succeed releases the slot of an attempt that succeeded and took the given time.
func (g *gate) succeed(took time.Duration, now time.Time) {
	g.release()
	g.trip = max(took, 1)
	g.spaced, g.lastOK = false, now
	clear(g.failed)
	if g.good++; g.good >= g.slots {
		g.slots, g.good = min(g.slots+1, g.most), 0
	}
}

// fail releases the slot of a failed attempt, and reports whether enough different deliveries failed in a row to
// pause the endpoint.
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
