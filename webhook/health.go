package webhook

import "time"

const (
	armAfter     = 12 * time.Hour  // failures this far apart
	armWithin    = 24 * time.Hour  // and no farther, arm the rule
	disableAfter = 120 * time.Hour // and so long after that, the endpoint is disabled
	maxPause     = 15 * time.Minute
)

// pauseSteps is how long an endpoint that fails everything is left alone, time after
// time; the last one repeats.
var pauseSteps = []time.Duration{
	5 * time.Second, 15 * time.Second, 45 * time.Second, 2 * time.Minute, 5 * time.Minute,
}

// Health is what the outcomes of an endpoint's attempts say about it. It is stored
// with the endpoint, so that all processes agree; its methods are pure.
//
// FirstFailedAt and LastFailedAt are the first and the last failure of the present
// cluster: failures of which none is 12 hours after the first. They are all that the
// rule for disabling needs. For if the rule is not armed yet, everything before the
// cluster is more than 24 hours older than what came after it, and so of no account.
type Health struct {
	FirstFailedAt time.Time
	LastFailedAt  time.Time
	// ArmedAt is when failures spanned 12 to 24 hours without a success. 120 hours
	// after it the endpoint is disabled.
	ArmedAt time.Time
	// PausedUntil is until when nothing is sent.
	PausedUntil time.Time
	// PauseStep counts the pauses since the last success; while it is above 0 one
	// delivery at a time is sent, to try.
	PauseStep int
}

// Succeed returns the health after a success. A pause that the receiver asked for
// stands; one that we made up ourselves ends.
func (h Health) Succeed() Health {
	if h.PauseStep > 0 {
		return Health{}
	}
	return Health{PausedUntil: h.PausedUntil}
}

// Fail returns the health after an attempt failed at this instant, and whether the
// endpoint is to be disabled.
func (h Health) Fail(at time.Time) (Health, bool) {
	switch {
	case h.FirstFailedAt.IsZero():
		h.FirstFailedAt = at
	case !h.ArmedAt.IsZero():
	case at.Sub(h.FirstFailedAt) < armAfter:
	case at.Sub(h.LastFailedAt) <= armWithin:
		// The first of the cluster is 12 to 24 hours back, or the last one is: were
		// it less than 12 hours back, the first would be less than 24.
		h.ArmedAt = at
	default:
		h.FirstFailedAt = at
	}
	if at.After(h.LastFailedAt) {
		h.LastFailedAt = at
	}
	return h, h.ShouldDisable(at)
}

// ShouldDisable reports whether the endpoint has failed for so long that it is to be disabled.
func (h Health) ShouldDisable(at time.Time) bool {
	return !h.ArmedAt.IsZero() && at.Sub(h.ArmedAt) >= disableAfter
}

// Pause returns the health with the next longer pause, counted from at.
func (h Health) Pause(at time.Time) Health {
	h.PausedUntil = at.Add(pauseSteps[min(h.PauseStep, len(pauseSteps)-1)])
	h.PauseStep++
	return h
}

// PauseFor returns the health with a pause that the receiver asked for, of at most
// 15 minutes.
func (h Health) PauseFor(at time.Time, d time.Duration) Health {
	if until := at.Add(min(d, maxPause)); until.After(h.PausedUntil) {
		h.PausedUntil = until
	}
	return h
}

// Paused reports whether nothing is to be sent at this instant.
func (h Health) Paused(at time.Time) bool { return h.PausedUntil.After(at) }
