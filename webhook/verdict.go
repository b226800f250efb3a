package webhook

import "time"

// quietTime is how long a lane pauses after an attempt that the receiver may still be processing.
const quietTime = 5 * time.Second

// limits are the options that end a delivery: its attempts, its age, the time for which it blocks its lane, and its
// starts without an outcome.
type limits struct {
	schedule   Schedule
	expiry     time.Duration
	maxBlock   time.Duration
	crashLimit int
}

// endBeforeSend returns the outcome of a claimed delivery that must end without being sent. It returns false if the
// delivery may be sent.
func (l limits) endBeforeSend(d Delivery, at time.Time) (Outcome, bool) {
	switch {
	case d.Superseded:
		return Outcome{Delivery: d, State: Cancelled, Reason: ReasonSuperseded}, true
	case d.Starts > l.crashLimit:
		return Outcome{Delivery: d, State: Failed, Reason: ReasonPoison, Class: ClassCrashed}, true
	case at.Sub(d.QueuedAt) >= l.expiry:
		return Outcome{Delivery: d, State: Failed, Reason: ReasonExpired}, true
	default:
		return Outcome{}, false
	}
}

// outcomeOf returns the outcome of a delivery after an attempt. at is when the attempt ended; accepted is when the
// endpoint last accepted a message.
func (l limits) outcomeOf(d Delivery, r Result, at, accepted time.Time) Outcome {
	o := Outcome{
		Delivery: d, Sent: true,
		Status: r.Status, Class: r.Class, Duration: r.Duration, Head: r.Head, Response: r.Response,
	}
	if r.Class == ClassOK {
		o.State = Succeeded
		return o
	}
	if r.Class.Ambiguous() {
		o.Quiet = quietTime
	}
	delay, again := l.schedule.delayAfter(d.Attempts + 1)
	if !again {
		o.State, o.Reason = Failed, ReasonExhausted
		return o
	}
	o.State, o.Delay = Retrying, max(delay, r.RetryAfter)
	if l.maxBlock <= 0 || !d.Blocking {
		return o
	}
	since := d.FirstFailedAt
	if since.IsZero() {
		since = at
	}
	left := l.maxBlock - at.Sub(since)
	switch {
	case left > 0:
		o.Delay = max(min(o.Delay, left), r.RetryAfter)
	case accepted.After(since):
		o.State, o.Reason, o.Delay = Failed, ReasonBlocked, 0
	}
	return o
}

// fact is what the health of an endpoint needs to know of one attempt.
type fact struct {
	began, ended time.Time // by the store's clock
	class        Class
	retryAfter   time.Duration
	pause        bool // so many different deliveries failed in a row that the endpoint is paused
}

// observe returns the health after a result, and the reason to disable the endpoint, if there is one.
func (h Health) observe(f fact) (Health, DisabledReason) {
	if f.class == ClassOK {
		return h.Succeed(), ""
	}
	h, disable := h.Fail(f.ended)
	switch {
	case f.class == ClassGone:
		return h, DisabledGone
	case disable:
		return h, DisabledFailing
	}
	probe := h.PauseStep > 0 && !f.began.Before(h.PausedUntil)
	if probe || f.pause && h.PauseStep == 0 {
		h = h.Pause(f.ended)
	}
	if f.retryAfter > 0 {
		h = h.PauseFor(f.ended, f.retryAfter)
	}
	return h, ""
}

func (h Health) worthWriting(was Health) bool {
	late := h.LastFailedAt.Sub(was.LastFailedAt) >= time.Minute
	was.LastFailedAt = h.LastFailedAt
	return late || h != was
}
