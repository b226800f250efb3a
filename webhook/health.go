package webhook

import "time"

const (
	armAfter     = 12 * time.Hour  // an endpoint is armed if a failure comes so long after the first one
	armWithin    = 24 * time.Hour  // but not by a failure that comes longer than this after the previous one
	disableAfter = 120 * time.Hour // an armed endpoint is disabled after this time without a success
	maxPause     = 15 * time.Minute
)

// pauseSteps are the lengths of the first, second, … pause of a failing endpoint. The last one repeats.
var pauseSteps = []time.Duration{
	5 * time.Second, 15 * time.Second, 45 * time.Second, 2 * time.Minute, 5 * time.Minute,
}

// Health is the state of an endpoint that follows from its attempts. It is stored with the endpoint, so that all
// processes agree; its methods are pure.
//
// FirstFailedAt and LastFailedAt are the first and the last failure since the last success; zero if there is none.
// Until ArmedAt is set, a failure becomes the first one if it comes more than 24 hours after the failure before it and
// at least 12 hours after the first one: earlier failures are not needed to decide about disabling.
type Health struct {
	FirstFailedAt time.Time
	LastFailedAt  time.Time
	// ArmedAt is when an endpoint was armed: by a failure at least 12 hours after the first one, and at most 24 hours
	// after the last one. After 120 hours more without a success the endpoint is disabled.
	ArmedAt time.Time
	// PausedUntil is the end of the pause, during which nothing is sent; zero without a pause.
	PausedUntil time.Time
	// PauseStep is the number of pauses since the last success. While it is above 0, one delivery at a time is
	// sent as a probe.
	PauseStep int
}

// Succeed returns the health after a success. It ends a pause of [Health.Pause], and with it one that the receiver
// requested. A pause that only the receiver requested stays.
func (h Health) Succeed() Health {
	if h.PauseStep > 0 {
		return Health{}
	}
	return Health{PausedUntil: h.PausedUntil}
}

// Fail returns the health after a failed attempt, and whether the endpoint must be disabled.
func (h Health) Fail(at time.Time) (Health, bool) {
	switch {
	case h.FirstFailedAt.IsZero():
		h.FirstFailedAt = at
	case !h.ArmedAt.IsZero():
	case at.Sub(h.FirstFailedAt) < armAfter:
	case at.Sub(h.LastFailedAt) <= armWithin:
		// The first failure of the cluster or the last one is 12 to 24 hours ago.
		h.ArmedAt = at
	default:
		h.FirstFailedAt = at
	}
	if at.After(h.LastFailedAt) {
		h.LastFailedAt = at
	}
	return h, h.shouldDisable(at)
}

func (h Health) shouldDisable(at time.Time) bool {
	return !h.ArmedAt.IsZero() && at.Sub(h.ArmedAt) >= disableAfter
}

// Pause returns the health with the next pause of pauseSteps, which begins at the instant at.
func (h Health) Pause(at time.Time) Health {
	h.PausedUntil = at.Add(pauseSteps[min(h.PauseStep, len(pauseSteps)-1)])
	h.PauseStep++
	return h
}

// PauseFor returns the health with a pause that the receiver requested: from at on for d, at most 15 minutes. A pause
// that ends later stays.
func (h Health) PauseFor(at time.Time, d time.Duration) Health {
	if until := at.Add(min(d, maxPause)); until.After(h.PausedUntil) {
		h.PausedUntil = until
	}
	return h
}

// Paused reports whether nothing may be sent at the instant at.
func (h Health) Paused(at time.Time) bool { return h.PausedUntil.After(at) }
