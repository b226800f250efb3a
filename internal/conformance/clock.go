package conformance

import (
	"sync/atomic"
	"time"
)

// Clock is a clock for a store under test. Its time changes only by [Clock.Set]. Make it with [NewClock]. It is safe
// for concurrent use.
type Clock struct{ at atomic.Pointer[time.Time] }

// NewClock returns a clock that shows an instant until it is set.
func NewClock(at time.Time) *Clock {
	c := new(Clock)
	c.Set(at)
	return c
}

// Now returns the instant that the clock shows.
func (c *Clock) Now() time.Time { return *c.at.Load() }

// Set makes the clock show an instant, which may be earlier than before.
func (c *Clock) Set(at time.Time) { c.at.Store(&at) }
