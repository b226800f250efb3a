package webhook

import (
	"time"

	"github.com/cenkalti/backoff/v4"
)

// defaultDelays are the delays before attempts 2 to 8, each counted from the end of
// the attempt before it. The last possible attempt is 27 h 35 min 5 s after the
// first, if the attempts themselves take no time.
var defaultDelays = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour,
	5 * time.Hour, 10 * time.Hour, 10 * time.Hour,
}

// jitterFrom is the shortest delay to which DefaultSchedule adds jitter.
const jitterFrom = 5 * time.Minute

// Schedule makes a fresh retry schedule. Its first NextBackOff is the delay before
// attempt 2; backoff.Stop means that there are no more attempts. The delays must not
// depend on how long the caller takes, so an exponential one needs its limit on
// elapsed time set to 0.
type Schedule func() backoff.BackOff

// DefaultSchedule returns the schedule of 8 attempts: 5 s, 5 min, 30 min, 2 h, 5 h,
// 10 h and 10 h apart. jitter lengthens each delay of 5 minutes and more by up to
// that fraction of it; random returns numbers in [0, 1) and is not called if jitter
// is 0.
func DefaultSchedule(jitter float64, random func() float64) Schedule {
	return func() backoff.BackOff {
		return &delayList{delays: defaultDelays, jitter: jitter, random: random}
	}
}

// Delays returns a schedule whose attempt n+1 comes delays[n-1] after attempt n has ended. It has one attempt more than
// delays.
func Delays(delays ...time.Duration) Schedule {
	return func() backoff.BackOff { return &delayList{delays: delays} }
}

// delayList is a backoff.BackOff that returns the delays of a list, and then backoff.Stop.
type delayList struct {
	delays []time.Duration
	next   int
	jitter float64
	random func() float64
}

func (l *delayList) Reset() { l.next = 0 }

func (l *delayList) NextBackOff() time.Duration {
	if l.next >= len(l.delays) {
		return backoff.Stop
	}
	d := l.delays[l.next]
	l.next++
	if l.jitter > 0 && d >= jitterFrom {
		d += time.Duration(l.jitter * l.random() * float64(d))
	}
	return d
}

// delayAfter returns the delay after the n-th attempt has failed (n from 1), and
// whether there is another attempt at all.
func (s Schedule) delayAfter(n int) (time.Duration, bool) {
	b := s()
	b.Reset()
	d := backoff.Stop
	for range n {
		if d = b.NextBackOff(); d == backoff.Stop {
			return 0, false
		}
	}
	return d, true
}
