package webhook

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

const (
	routeBatch           = 500 // events that are routed at a time
	defaultTimeout       = 15 * time.Second
	defaultSlots         = 256
	defaultEndpointSlots = 64
)

// Options adjusts a Dispatcher. The zero value, and nil, mean the defaults.
type Options struct {
	// Now measures durations and, before the first claim, tells the time. What is
	// due, and what is signed, goes by the store's clock. Default time.Now.
	Now func() time.Time
	// NewID makes the ids of events. Default UUID version 7.
	NewID func() uuid.UUID
	// Log receives what went wrong, without any payload. Default: slog.Default().
	Log *slog.Logger
	// Hooks are called with what happens.
	Hooks Hooks
	// Settings returns what a team has chosen for all of its endpoints. It is asked before a
	// message is sent, at most every CacheFor for an endpoint; one that the team does not
	// want ends as Cancelled, unwanted. Default: everything is sent everywhere.
	Settings func(context.Context, healthlab.TeamID) (TeamSettings, error)
	// Bodies empties the bodies of messages, once an hour, when the team's BodyRetention is over.
	// Default: bodies are kept as long as messages.
	Bodies Bodies
	// Signal tells this process what others have routed, and them what this one has.
	// Default: none; each process looks for work every Idle.
	Signal Signal

	// Schedule says when a failed delivery is tried again. Default: DefaultSchedule
	// without jitter.
	Schedule Schedule
	// Slots is how many requests run at a time; default 256. EndpointSlots is how
	// many of them at one endpoint, at most; default 64.
	Slots, EndpointSlots int
	// Lease is how long a claimed delivery is this process's. Default 60 s.
	Lease time.Duration
	// Timeout is how long a request may take, and StartMargin a reserve for clocks
	// and queues: a request is started only if both still fit into the lease. They
	// default to 15 s and 5 s. The Notifier has its own timeout, which must not be
	// longer.
	Timeout, StartMargin time.Duration
	// Expiry is the age at which a delivery is not worth sending any more. Default
	// 72 h.
	Expiry time.Duration
	// MaxBlock is how long a failing delivery may hold up its lane while the endpoint
	// accepts others. Default 0: the schedule is the bound.
	MaxBlock time.Duration
	// CrashLimit is how often a delivery may be started without an outcome before it
	// is taken for poison. Default 5.
	CrashLimit int
	// OutcomeBatch is how many outcomes are recorded at a time, and OutcomeWait how
	// long the first of them waits for company. Default 500 and 1 ms; it waits longer,
	// up to 10 ms, the more slots are taken.
	OutcomeBatch int
	OutcomeWait  time.Duration
	// Busy is how often to look for work while there is some, Idle while there is
	// none. Default 100 ms and 1 s.
	Busy, Idle time.Duration
	// CacheFor is how long an endpoint that was read is good for. Default 5 s.
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

// Hooks are called with what a Dispatcher does, for metrics. Each may be nil. They are
// called from many goroutines and must not block. None of them gets the team
// or endpoint of a delivery: per-endpoint figures come from the log of attempts.
type Hooks struct {
	// Attempt is called for every request, with its result, which one of its delivery
	// it was (from 1), how long it took, how long after the event it ended, and
	// whether the connection was an old one.
	Attempt func(c Class, n int, took, lag time.Duration, reused bool)
	// Routed, Claimed and OutcomesRecorded are called with the number at a time and the duration.
	Routed, Claimed, OutcomesRecorded func(n int, took time.Duration)
	// Ended is called for every delivery that ended without an attempt.
	Ended func(Reason)
	// DuplicateStart: a delivery was started before, with unknown outcome.
	DuplicateStart func()
	// Released: a lease was too old to start on, and given back.
	Released func()
	// LeaseLost: an outcome came too late to count.
	LeaseLost func()
	// Paused, Resumed and Disabled are about endpoints.
	Paused, Resumed, Disabled func()
	// SealError: secrets or headers could not be opened, so nothing was sent. This
	// one should page an operator.
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
