package conformance

import (
	"sync/atomic"
	"time"
)

// Clock is the clock of a store under test. It stands still until it is set again. Safe for
// concurrent use; make it with [NewClock].
type Clock struct{ at atomic.Pointer[time.Time] }

// NewClock returns a clock that stands at an instant.
func NewClock(at time.Time) *Clock {
	c := new(Clock)
	c.Set(at)
	return c
}

// Now returns the instant that was set last.
func (c *Clock) Now() time.Time { return *c.at.Load() }

// Set puts the clock at an instant.
func (c *Clock) Set(at time.Time) { c.at.Store(&at) }
