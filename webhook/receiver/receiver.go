package receiver

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/webhook"
)

const (
	defaultTimeout     = 10 * time.Second
	defaultWait        = 3 * time.Second
	defaultKeep        = 96 * time.Hour
	defaultKeepVersion = 31 * 24 * time.Hour
	leaseMargin        = 15 * time.Second // how much longer than the host's function a claim is leased
	afterTimeout       = 5 * time.Second  // time to call Done or Release after the request has ended
	maxIDLen           = 255
)

// Options configures a Receiver. The zero value, and nil, mean the defaults.
type Options struct {
	// Now is the clock for timestamps of signatures. Default time.Now.
	Now func() time.Time
	// NewID makes the tokens of claims. Default UUID version 4.
	NewID func() uuid.UUID
	// Verifier checks signatures. The zero value is the default.
	Verifier webhook.Verifier
	// Types are event types in addition to [EventTypes], of the host or of another package. They replace types with the
	// same name.
	Types []healthlab.EventType
	// MaxBody is the largest body that is read, in bytes. Default [webhook.MaxBody].
	MaxBody int64
	// Timeout is how long the context of a host's function lasts. The sender waits 15 s for everything. Default
	// 10 s.
	Timeout time.Duration
	// Wait is how long a message waits while the same message, or one about the same object, is being handled.
	// Default 3 s.
	Wait time.Duration
	// Keep is how long the ids of handled messages are remembered. It must be longer than the sender retries: 28
	// hours by the schedule, and at most 72 hours. Default 96 h.
	Keep time.Duration
	// KeepVersion is how long the version of an object is remembered. It must be longer than messages are kept
	// for a replay, which is 30 days. Default 31 days.
	KeepVersion time.Duration
	// Observe is called with the result of each message, for counters and logs. The event is empty if the
	// message is not authentic or not readable. The outcome is empty if there is an error. It is called from
	// many goroutines. It may be nil.
	Observe func(ctx context.Context, e Event, o Outcome, err error)
}

// Outcome is the result of handling an accepted message.
type Outcome string

// Outcomes of accepted messages.
const (
	// Applied means that the host's function succeeded.
	Applied Outcome = "applied"
	// Duplicate means that the message was applied before.
	Duplicate Outcome = "duplicate"
	// Stale means that a newer version of the object was applied before.
	Stale Outcome = "stale"
	// Ignored means that there is no function for the message.
	Ignored Outcome = "ignored"
	// Tested means that the message is a test message.
	Tested Outcome = "tested"
)

// ApplyError wraps the error of a host's function. It unwraps to that error.
type ApplyError struct{ Err error }

// Error returns the function's error with a prefix.
func (e *ApplyError) Error() string { return "apply event: " + e.Err.Error() }

// Unwrap returns the function's error.
func (e *ApplyError) Unwrap() error { return e.Err }

// Receiver handles messages: it checks, deduplicates, orders and decodes them, and calls the host's functions.
// Register the functions first; after that it is safe for concurrent use.
type Receiver struct {
	secrets []webhook.Secret
	seen    Seen
	opts    Options
	types   types

	functions map[reflect.Type]function
	other     function
	test      function
}

type function func(ctx context.Context, e Event) error

// New returns a Receiver of messages that are signed with any of secrets: that of the endpoint, and during a
// rotation also the new one. It returns Invalid if there is no secret, or if another argument is missing.
func New(secrets []webhook.Secret, seen Seen, opts *Options) (*Receiver, error) {
	o := Options{}
	if opts != nil {
		o = *opts
	}
	if seen == nil {
		return nil, fmt.Errorf("%w: receiver.New: the store of seen messages is required", healthlab.Invalid)
	}
	if len(secrets) == 0 || slices.ContainsFunc(secrets, webhook.Secret.IsZero) {
		return nil, fmt.Errorf("%w: receiver.New: at least one secret of the endpoint is required, and none may be the zero Secret", healthlab.Invalid)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = uuid.New
	}
	if o.MaxBody <= 0 {
		o.MaxBody = webhook.MaxBody
	}
	for _, d := range []struct {
		value    *time.Duration
		standard time.Duration
	}{
		{&o.Timeout, defaultTimeout}, {&o.Wait, defaultWait}, {&o.Keep, defaultKeep}, {&o.KeepVersion, defaultKeepVersion},
	} {
		if *d.value <= 0 {
			*d.value = d.standard
		}
	}
	if o.Observe == nil {
		o.Observe = func(context.Context, Event, Outcome, error) {}
	}
	return &Receiver{
		secrets: slices.Clone(secrets), seen: seen, opts: o,
		types:     newTypes(EventTypes(), o.Types),
		functions: map[reflect.Type]function{},
	}, nil
}

// On registers a function for events with a payload of type T: On(r, func(…, s *healthdata.Sleep) error)
// receives every sleep, created or updated, and one for *healthdata.Batch the samples of every resource; e.Name
// distinguishes them. It must be called before r takes messages. It panics if no event type has such a payload,
// or if T has a function already.
//
// A function returns nil when the event is stored safely. An error makes the sender try again; return
// healthlab.Unavailable for a temporary failure. The function may be called again with the same event, but never
// concurrently for two events about one summary, order or appointment.
func On[T any](r *Receiver, do func(ctx context.Context, e Event, data *T) error) {
	t := reflect.TypeFor[T]()
	known := false
	for _, have := range r.types {
		known = known || have == t
	}
	if !known {
		panic("receiver: no event type has a payload of type " + t.String())
	}
	if r.functions[t] != nil {
		panic("receiver: " + t.String() + " has a function already")
	}
	r.functions[t] = func(ctx context.Context, e Event) error { return do(ctx, e, e.Value.(*T)) }
}

// OnOther registers a function for events of unknown types (Value is nil) and of types without a function of [On].
// Without OnOther such events are acknowledged and dropped. Call it before r receives messages.
func (r *Receiver) OnOther(do func(ctx context.Context, e Event) error) { r.other = do }

// OnTest registers a function for test messages. They never reach the other functions, because their data is
// invented. Value is nil. Without it they are acknowledged and dropped. Call it before r receives messages.
func (r *Receiver) OnTest(do func(ctx context.Context, e Event) error) { r.test = do }

// Receive takes one message as it came: the raw bytes of its body, and its headers.
// A nil error means that it is handled: answer the sender with success. Otherwise the
// error is
//
//   - a [*webhook.VerifyError], which is Unauthenticated;
//   - Invalid: the body cannot be read, so a retry is useless;
//   - Conflict: this message, or another one about its object, is being handled;
//   - an [*ApplyError]: the host's function failed;
//   - any other error of the Seen or of ctx.
func (r *Receiver) Receive(ctx context.Context, body []byte, h http.Header) (Outcome, error) {
	e, err := r.read(body, h)
	if err != nil {
		r.opts.Observe(ctx, Event{}, "", err)
		return "", err
	}
	return r.Apply(ctx, e)
}

// read verifies and decodes a message.
func (r *Receiver) read(body []byte, h http.Header) (Event, error) {
	if err := r.opts.Verifier.Verify(body, h, r.opts.Now(), r.secrets...); err != nil {
		return Event{}, err
	}
	e, err := envelope(body)
	if err != nil {
		return Event{}, fmt.Errorf("read message: %w", err)
	}
	e.ID = r.header(h, "id")
	if seconds, err := strconv.ParseInt(r.header(h, "timestamp"), 10, 64); err == nil {
		e.Sent = time.Unix(seconds, 0).UTC()
	}
	return e, nil
}

// header returns the value of the header whose name is a prefix (webhook-, or that of the verifier) and suffix; empty
// if there is none.
func (r *Receiver) header(h http.Header, suffix string) string {
	for _, prefix := range []string{"webhook-", r.opts.Verifier.Prefix} {
		for name, values := range h {
			if len(values) > 0 && values[0] != "" && strings.EqualFold(name, prefix+suffix) {
				return values[0]
			}
		}
	}
	return ""
}

// Apply handles one message that is already authentic, from a queue or an archive. e is a result of [Decode]
// with its ID set to the webhook-id, or to the id in the queue. The errors are those of [Receiver.Receive].
func (r *Receiver) Apply(ctx context.Context, e Event) (Outcome, error) {
	o, err := r.apply(ctx, &e)
	r.opts.Observe(ctx, e, o, err)
	return o, err
}

func (r *Receiver) apply(ctx context.Context, e *Event) (Outcome, error) {
	if e.ID == "" || len(e.ID) > maxIDLen || strings.ContainsRune(e.ID, 0) {
		return "", fmt.Errorf("%w: webhook-id header: must have 1 to %d bytes, and no NUL", healthlab.Invalid, maxIDLen)
	}
	do, none := r.function(e)
	if do == nil {
		return none, nil
	}
	if e.Value == nil && !e.IsTest() {
		if err := r.types.decode(e); err != nil {
			return "", fmt.Errorf("read message: %w", err)
		}
	}
	return r.applyOnce(ctx, *e, do)
}

// function returns the host's function for an event; nil if there is none. Outcome is what to report in that case:
// Tested or Ignored.
func (r *Receiver) function(e *Event) (function, Outcome) {
	if e.IsTest() {
		return r.test, Tested
	}
	if do := r.functions[r.types[e.Type]]; do != nil {
		return do, ""
	}
	return r.other, Ignored
}

// applyOnce calls the host's function do, unless the event or a newer version of its object was applied before. It
// claims the event in the Seen first.
func (r *Receiver) applyOnce(ctx context.Context, e Event, do function) (o Outcome, err error) {
	c := Claim{
		Token: r.opts.NewID(), ID: e.ID, Lease: r.opts.Timeout + leaseMargin,
		Keep: r.opts.Keep, KeepVersion: r.opts.KeepVersion,
	}
	c.Key, c.Version = subject(&e)
	switch v, err := r.claim(ctx, c); {
	case err != nil:
		return "", fmt.Errorf("claim message: %w", err)
	case v == Repeated:
		return Duplicate, nil
	case v == Outdated:
		return Stale, nil
	case v != Fresh:
		return "", fmt.Errorf("claim message: %w: another call handles this message, or one about the same object; send it again later", healthlab.Conflict)
	}
	applied := false
	defer func() { // also after a panic
		if !applied {
			after, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterTimeout)
			defer cancel()
			_ = r.seen.Release(after, c) // otherwise the lease ends by itself
		}
	}()
	limited, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	if err := do(limited, e); err != nil {
		return "", &ApplyError{err}
	}
	applied = true
	// The applied message is marked even if the sender has disconnected.
	after, cancelAfter := context.WithTimeout(context.WithoutCancel(ctx), afterTimeout)
	defer cancelAfter()
	if err := r.seen.Done(after, c); err != nil {
		return "", fmt.Errorf("mark message: %w", err)
	}
	if e.IsTest() {
		return Tested, nil
	}
	return Applied, nil
}

// claim repeats a claim until the verdict is not Busy or Options.Wait has passed.
func (r *Receiver) claim(ctx context.Context, c Claim) (Verdict, error) {
	const longest = 250 * time.Millisecond
	var waited time.Duration
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, longest) {
		v, err := r.seen.Claim(ctx, c)
		if err != nil || v != Busy || waited >= r.opts.Wait {
			return v, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
			waited += pause
		case <-ctx.Done():
			timer.Stop()
			return 0, ctx.Err()
		}
	}
}
