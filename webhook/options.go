package webhook

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

const (
	routeBatch           = 500 // number of events that the dispatcher routes in one transaction
	defaultTimeout       = 15 * time.Second
	defaultSlots         = 256
	defaultEndpointSlots = 64
)

// Options configures a Dispatcher. The zero value, and nil, mean the defaults.
type Options struct {
	// Now measures durations. Before the first claim it is also the clock; after that the store's clock is used.
	// Default time.Now.
	Now func() time.Time
	// NewID makes the ids of events. Default UUID version 7.
	NewID func() uuid.UUID
	// Log receives failures, without any payload. Default: slog.Default().
	Log *slog.Logger
	// Hooks are called for metrics.
	Hooks Hooks
	// Settings returns a team's settings for all of its endpoints. They are cached with an endpoint for CacheFor. A message
	// that the team does not want ends as Cancelled, unwanted, by settings that were read after the message was claimed.
	// Default: everything is sent everywhere.
	Settings func(context.Context, healthlab.TeamID) (TeamSettings, error)
	// Bodies deletes the bodies of messages, once an hour, after the team's BodyRetention. Default: bodies are
	// kept as long as messages.
	Bodies Bodies
	// Signal notifies other processes of routed events, and this process of theirs. Default: none; each process looks
	// for due deliveries every Idle.
	Signal Signal

	// Schedule is the schedule of retries. Default: DefaultSchedule without jitter.
	Schedule Schedule
	// Slots is the number of concurrent requests; default 256. EndpointSlots is the greatest number of them at
	// one endpoint; default 64.
	Slots, EndpointSlots int
	// Lease is how long a process may keep a claimed delivery. Default 60 s.
	Lease time.Duration
	// Timeout is how long a request may take, and StartMargin a reserve for clocks
	// and queues: a request is started only if both still fit into the lease. They
	// default to 15 s and 5 s. The Notifier has its own timeout, which must not be
	// longer.
	Timeout, StartMargin time.Duration
	// Expiry is the time in the lane after which a delivery fails without another attempt. Default 72 h.
	Expiry time.Duration
	// MaxBlock is how long a failing delivery may block its lane while the endpoint accepts others. Default 0:
	// until the end of the schedule.
	MaxBlock time.Duration
	// CrashLimit is how often a delivery may be started without an outcome before it is given up as poison.
	// Default 5.
	CrashLimit int
	// OutcomeBatch is the number of outcomes in one write, and OutcomeWait how long the first of them waits for
	// more. Default 500 and 1 ms; the wait grows up to 10 ms with the number of used slots.
	OutcomeBatch int
	OutcomeWait  time.Duration
	// Busy is the interval at which the dispatcher looks for events and due deliveries while there are some, and Idle
	// while there are none. Default 100 ms and 1 s.
	Busy, Idle time.Duration
	// CacheFor is how long a read endpoint is cached with the settings of its team. A changed endpoint is read again for
	// the next claimed delivery, in each process. Default 5 s.
	CacheFor time.Duration
	// Drain is how long running requests may go on after Run's context has ended.
	// Default 20 s.
	Drain time.Duration
}

func (o *Options) orDefaults() Options {
	v := Options{}
	if o != nil {
		v = *o
	}
	set(&v.Slots, defaultSlots)
	set(&v.EndpointSlots, defaultEndpointSlots)
	set(&v.Lease, 60*time.Second)
	set(&v.Timeout, defaultTimeout)
	set(&v.StartMargin, 5*time.Second)
	set(&v.Expiry, 72*time.Hour)
	set(&v.CrashLimit, 5)
	set(&v.OutcomeBatch, 500)
	set(&v.OutcomeWait, time.Millisecond)
	set(&v.Busy, 100*time.Millisecond)
	set(&v.Idle, time.Second)
	set(&v.CacheFor, 5*time.Second)
	set(&v.Drain, 20*time.Second)
	if v.Settings == nil {
		v.Settings = func(context.Context, healthlab.TeamID) (TeamSettings, error) { return TeamSettings{}, nil }
	}
	if v.Now == nil {
		v.Now = time.Now
	}
	if v.NewID == nil {
		v.NewID = func() uuid.UUID { return uuid.Must(uuid.NewV7()) }
	}
	if v.Log == nil {
		v.Log = slog.Default()
	}
	if v.Schedule == nil {
		v.Schedule = DefaultSchedule(0, nil)
	}
	v.Hooks = v.Hooks.orNothing()
	return v
}

func set[T int | time.Duration](v *T, otherwise T) {
	if *v <= 0 {
		*v = otherwise
	}
}

// Hooks are called by a Dispatcher, for metrics. Each may be nil. They are called from many goroutines and must
// not block. None of them gets the team or endpoint of a delivery: per-endpoint figures come from the log of
// attempts.
type Hooks struct {
	// Attempt is called for every request, with its result, its number in the delivery (from 1), its duration, the time
	// from the event to its end, and whether the connection was reused.
	Attempt func(c Class, n int, took, lag time.Duration, reused bool)
	// Routed, Claimed and OutcomesRecorded are called after a call of the store with the number of events, deliveries
	// or outcomes, and its duration.
	Routed, Claimed, OutcomesRecorded func(n int, took time.Duration)
	// Ended is called for every delivery that ended without an attempt.
	Ended func(Reason)
	// DuplicateStart is called when a delivery starts although an earlier start has no recorded outcome.
	DuplicateStart func()
	// Released is called when a delivery is released before it starts, because the rest of its lease is too short or
	// the dispatcher stops.
	Released func()
	// LeaseLost is called for an outcome that was not applied, because the delivery was claimed again or has ended.
	LeaseLost func()
	// Paused, Resumed and Disabled are called when an endpoint is paused, resumed or disabled.
	Paused, Resumed, Disabled func()
	// SealError is called if secrets or headers could not be decrypted, so that nothing was sent. It should
	// alert an operator.
	SealError func()
}

func (h Hooks) orNothing() Hooks {
	if h.Attempt == nil {
		h.Attempt = func(Class, int, time.Duration, time.Duration, bool) {}
	}
	if h.Ended == nil {
		h.Ended = func(Reason) {}
	}
	for _, f := range []*func(int, time.Duration){&h.Routed, &h.Claimed, &h.OutcomesRecorded} {
		if *f == nil {
			*f = func(int, time.Duration) {}
		}
	}
	for _, f := range []*func(){&h.DuplicateStart, &h.Released, &h.LeaseLost, &h.Paused, &h.Resumed, &h.Disabled, &h.SealError} {
		if *f == nil {
			*f = func() {}
		}
	}
	return h
}
