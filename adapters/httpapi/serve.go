package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"runtime"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
)

// serve makes an operation a handler: who is calling, how much may be read, and what
// becomes of an error or a panic.
func (a api) serve(op operation) http.Handler {
	if (op.handle == nil) == (op.team == nil) {
		panic("httpapi: " + op.id + " needs one of handle and team")
	}
	limit := op.maxBody
	if limit <= 0 {
		limit = a.MaxBody
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		settings := &wire.Settings{
			MaxBody: limit, IgnoreUnknown: a.IgnoreUnknown || op.ignoreUnknown, IgnoreReadOnly: a.Compat != nil, NullBody: a.Compat != nil,
		}
		if a.Compat.rewrites(&op) {
			held := &heldAnswer{ResponseWriter: w}
			defer func() {
				if v := recover(); v != nil {
					panic(v) // nothing is sent
				}
				held.send(a.Compat, &op)
			}()
			w = held
		}
		// What is public, such as a logo, says so itself.
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		out := &tracker{ResponseWriter: w, status: http.StatusOK}
		if a.Observe != nil {
			answered := a.Observe(op.id)
			defer func() { answered(out.status) }()
		}
		if r.Body != nil {
			r.Body = http.MaxBytesReader(w, r.Body, limit)
		}
		r, stop := a.withTimeout(w, r, &op)
		defer stop()
		r = wire.With(identify(w, r), settings)
		call := call{op: op, settings: settings}
		if a.Access != nil {
			r = r.WithContext(context.WithValue(r.Context(), accessNoteKey{}, &call.access)) //nolint:contextcheck // the request's own
			out.before = a.recorder(r, &call, &call.access)                                  //nolint:contextcheck // the request's own
		}
		defer a.rescue(out, r, &call)
		if err := a.run(out, r, &call); err != nil {
			a.fail(out, r, &call, err)
		}
		out.flush()
	})
}

// withTimeout returns a request that ends after the time that its operation may take. An
// operation with a time of its own may write for as long, where the server allows it.
func (a api) withTimeout(w http.ResponseWriter, r *http.Request, op *operation) (*http.Request, context.CancelFunc) {
	if op.timeout <= 0 {
		ctx, stop := context.WithTimeout(r.Context(), a.Limits.Timeout)
		return r.WithContext(ctx), stop
	}
	ctx, stop := context.WithTimeout(r.Context(), op.timeout)
	end, _ := ctx.Deadline()
	_ = http.NewResponseController(w).SetWriteDeadline(end)
	return r.WithContext(ctx), stop
}

// call is one request under way.
type call struct {
	op       operation
	settings *wire.Settings
	team     healthlab.TeamID
	access   accessNote
}

func (a api) run(w http.ResponseWriter, r *http.Request, c *call) error {
	if c.op.handle != nil {
		// Callbacks and pushes of providers come from few addresses, and are not limited.
		if !c.op.ignoreUnknown {
			if err := a.gate.addresses.allow(w, a.ClientAddress(r)); err != nil {
				return err
			}
		}
		if token := r.Header.Get(a.LinkTokenHeader); token != "" && a.Linking != nil {
			a.byLink(r.Context(), token)
		}
		if c.op.browser {
			if err := a.allowOrigin(w, r, r.Header.Get(a.LinkTokenHeader)); err != nil {
				return err
			}
		}
		if err := refuseKey(r, &c.op); err != nil {
			return err
		}
		return c.op.handle(w, withRole(r, c.op.needs.role))
	}
	caller, r, err := a.caller(r, &c.op)
	if err != nil {
		// The rest of the body is not read: it may come slowly.
		if r.ContentLength != 0 {
			w.Header().Set("Connection", "close")
		}
		if slow := a.gate.addresses.allow(w, a.ClientAddress(r)); slow != nil {
			return slow
		}
		return err
	}
	team := caller.Team
	c.team = team
	c.access.team, c.access.actor = team, actorOf(r, caller)
	if err := a.gate.teams.allow(w, team.String()); err != nil {
		return err
	}
	by, err := a.companion(r, team)
	if err != nil {
		return err
	}
	if by != "" {
		c.access.actor = "management:" + by
	}
	if err := c.op.admit(caller); err != nil {
		return err
	}
	release, err := a.gate.share(r, c.settings.MaxBody)
	if err != nil {
		return err
	}
	defer release()
	if err := refuseKey(r, &c.op); err != nil {
		return err
	}
	return c.op.team(w, r, team)
}

// refuseKey refuses the idempotency headers where the operation ignores them: a caller
// that sends one counts on it. Senders that are not our callers may send what they like.
func refuseKey(r *http.Request, op *operation) error {
	if op.keyed || op.ignoreUnknown {
		return nil
	}
	var problems []healthlab.Problem
	for _, name := range []string{idempotencyKey, idempotencyError} {
		if len(r.Header.Values(name)) > 0 {
			problems = append(problems, healthlab.Problem{Path: []any{"header", name}, Code: "unexpected",
				Msg: "must be absent: this operation takes no idempotency key"})
		}
	}
	if len(problems) > 0 {
		return &wire.InputError{Problems: problems}
	}
	return nil
}

// fail answers an error.
func (a api) fail(w *tracker, r *http.Request, c *call, err error) {
	gone := errors.Is(r.Context().Err(), context.Canceled)
	if w.started {
		if !gone {
			a.logFailure(r, c, "answer broke off", err)
		}
		// Half an answer must not look like a whole one.
		panic(http.ErrAbortHandler)
	}
	if problems, ok := problemsOf(err, c.settings); ok && !worded(c.op.replies, err) {
		err = wire.RefuseInput(w, problems)
	} else {
		f := faultOf(err, c.op.replies)
		if f.Status >= http.StatusInternalServerError && f.Status != http.StatusNotImplemented && !gone {
			a.logFailure(r, c, "request failed", err)
		}
		err = wire.Refuse(w, f)
	}
	if err != nil {
		a.logFailure(r, c, "reply could not be encoded", err)
		f := kinds[healthlab.Unknown]
		_ = wire.Refuse(w, &f)
	}
}

// worded reports whether the operation has its own status for err.
func worded(replies []reply, err error) bool {
	for _, r := range replies {
		if r.on != nil && errors.Is(err, r.on) {
			return true
		}
	}
	return false
}

// rescue answers a panic with a 500 and logs where it was, not what it said.
func (a api) rescue(w *tracker, r *http.Request, c *call) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler { //nolint:errorlint // net/http compares the same way
		panic(v)
	}
	a.Log.ErrorContext(context.WithoutCancel(r.Context()), "handler panicked",
		"operation", c.op.id, "request", RequestID(r.Context()), "team", teamText(c.team), "panic", fmt.Sprintf("%T", v), "at", frames())
	if w.started {
		panic(http.ErrAbortHandler)
	}
	f := kinds[healthlab.Unknown]
	_ = wire.Refuse(w, &f)
}

func (a api) logFailure(r *http.Request, c *call, msg string, err error) {
	a.Log.ErrorContext(context.WithoutCancel(r.Context()), msg,
		"operation", c.op.id, "request", RequestID(r.Context()), "team", teamText(c.team), "kind", healthlab.KindOf(err).Error(), "cause", scrub(err))
}

func teamText(t healthlab.TeamID) string {
	if t.IsZero() {
		return ""
	}
	return t.String()
}

// quoted finds what stands between the first quote and the last, for a value may hold
// quotes itself, or behind an equals sign.
var quoted = regexp.MustCompile("(?s)[\"'`].*[\"'`]|[\"'`].*|=\\S+")

// scrub is an error's text without what it quotes. Our own errors hold no values, but
// those of drivers and of the standard library quote what they could not read.
func scrub(err error) string {
	const most = 300
	s := quoted.ReplaceAllString(err.Error(), "…")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// frames names the functions and lines that led to a panic.
func frames() []string {
	var pcs [24]uintptr
	n := runtime.Callers(3, pcs[:])
	var out []string
	for it := runtime.CallersFrames(pcs[:n]); ; {
		f, more := it.Next()
		if f.Function != "" && !strings.HasPrefix(f.Function, "runtime.") {
			file := f.File[strings.LastIndexByte(f.File, '/')+1:]
			out = append(out, fmt.Sprintf("%s (%s:%d)", f.Function, file, f.Line))
		}
		if !more || len(out) == 10 {
			return out
		}
	}
}

// tracker notices that an answer has begun.
type tracker struct {
	http.ResponseWriter
	started bool
	status  int
	// before is called once, before anything is sent. If it fails, 503 is sent instead.
	before  func(status int, body []byte) error
	waiting bool // the status is known and before has not run
	refused bool // 503 was sent instead
}

func (t *tracker) WriteHeader(status int) {
	if t.before != nil && status >= http.StatusOK && !t.started {
		t.started, t.status, t.waiting = true, status, true
		return
	}
	if !t.started {
		t.started, t.status = status >= http.StatusOK, status
	}
	t.ResponseWriter.WriteHeader(status)
}

func (t *tracker) Write(b []byte) (int, error) {
	t.started = true
	if t.before != nil {
		t.waiting = true
		t.release(b)
	}
	if t.refused {
		return len(b), nil
	}
	return t.ResponseWriter.Write(b)
}

// release records the access and sends the status that waits for it.
func (t *tracker) release(body []byte) {
	before := t.before
	t.before, t.waiting = nil, false
	if err := before(t.status, body); err != nil {
		t.refused, t.status = true, http.StatusServiceUnavailable
		h := t.Header()
		for name := range h {
			if strings.HasPrefix(name, "Content-") {
				h.Del(name)
			}
		}
		f := kinds[healthlab.Unavailable]
		f.Msg = "the access could not be recorded; try again later"
		_ = wire.Refuse(t.ResponseWriter, &f)
		return
	}
	t.ResponseWriter.WriteHeader(t.status)
}

// flush sends a status without a body.
func (t *tracker) flush() {
	if t.before != nil {
		t.release(nil)
	}
}

// Unwrap lets http.ResponseController through.
func (t *tracker) Unwrap() http.ResponseWriter { return t.ResponseWriter }
