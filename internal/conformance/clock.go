package conformance

import (
	"sync/atomic"
	"time"
)

// Clock is a clock for a store under test. It does not advance until it is set. Make it with [NewClock]. Safe for
// concurrent use.
type Clock struct{ at atomic.Pointer[time.Time] }

// NewClock returns a clock set to an instant.
func NewClock(at time.Time) *Clock {
	c := new(Clock)
	c.Set(at)
	return c
}

// Now returns the instant of the clock.
func (c *Clock) Now() time.Time { return *c.at.Load() }

// Set puts the clock at an instant.
func (c *Clock) Set(at time.Time) { c.at.Store(&at) }
