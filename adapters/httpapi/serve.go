package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/compat"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/internal/work"
)

// serve returns the handler of an operation. It authenticates the caller, limits the body and answers errors and
// panics.
func (a api) serve(op *server.Operation) http.Handler {
	ways := 0
	for _, is := range []bool{op.Handle != nil, op.Team != nil, op.Change != nil} {
		if is {
			ways++
		}
	}
	if ways != 1 {
		panic("httpapi: " + op.ID + " must have exactly one of Handle, Team and Change")
	}
	if op.Bound.Stated() != (op.Handle == nil) {
		panic("httpapi: " + op.ID + " must have Bound if it has Team or Change, and only then")
	}
	return a.handler(op, call{op: op, needs: requirements()[op.ID], own: isOwn(op)})
}

// handler returns the handler of an operation. Each request works on a copy of begin, which holds what all requests
// share.
func (a api) handler(op *server.Operation, begin call) http.Handler {
	limit := op.MaxBody
	if limit <= 0 {
		limit = a.MaxBody
	}
	var shapes compat.Shapes
	reshaped := false
	if a.Compat != nil {
		shapes = compat.Shapes(*a.Compat)
		reshaped = shapes.Rewrites(op)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		settings := &wire.Settings{
			MaxBody: limit, IgnoreUnknown: a.IgnoreUnknown || op.IgnoreUnknown, IgnoreReadOnly: a.Compat != nil, NullBody: a.Compat != nil,
			Placed: begin.extension != nil,
		}
		if reshaped {
			held := &compat.Answer{ResponseWriter: w}
			defer func() {
				if v := recover(); v != nil {
					panic(v) // net/http closes the connection and sends nothing
				}
				held.Send(shapes, op)
			}()
			w = held
		}
		// An operation with a public answer, such as a logo, overwrites this header.
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		out := server.NewTracker(w)
		if a.Observe != nil {
			answered := a.Observe(op.ID)
			defer func() { answered(out.Status) }()
		}
		if r.Body != nil {
			r.Body = http.MaxBytesReader(w, r.Body, limit)
		}
		r, stop := a.withTimeout(w, r, op)
		defer stop()
		bound, free := a.store.Bound(r.Context())
		defer free()
		r = r.WithContext(bound) //nolint:contextcheck // the context is derived from that of the request
		r = wire.With(server.Identify(w, r), settings)
		call := begin
		call.settings = settings
		if a.Access != nil {
			r = r.WithContext(context.WithValue(r.Context(), accessNoteKey{}, &call.access)) //nolint:contextcheck // the request's own
			out.Record = a.recorder(r, &call)                                                //nolint:contextcheck // the request's own
			out.Refuse = func(w http.ResponseWriter, f *wire.Fault) error { return call.refuse(w, f, nil) }
		}
		defer a.rescue(out, r, &call)
		if err := a.run(out, r, &call); err != nil {
			a.fail(out, r, &call, err)
		}
		out.End()
	})
}

// withTimeout returns a request whose context ends after the time limit of its operation. An operation with its own
// limit may also write for that long, if the server supports it.
func (a api) withTimeout(w http.ResponseWriter, r *http.Request, op *server.Operation) (*http.Request, context.CancelFunc) {
	if op.Timeout <= 0 {
		ctx, stop := context.WithTimeout(r.Context(), a.Limits.Timeout)
		return r.WithContext(ctx), stop
	}
	ctx, stop := context.WithTimeout(r.Context(), op.Timeout)
	end, _ := ctx.Deadline()
	_ = http.NewResponseController(w).SetWriteDeadline(end)
	return r.WithContext(ctx), stop
}

// call is one request in progress.
type call struct {
	op       *server.Operation
	needs    requirement // security scheme, scopes and role that the contract requires
	own      bool        // companion apps may call the operation for their own user
	settings *wire.Settings
	team     healthlab.TeamID
	access   accessNote
	// extension is the Extension of the operation; nil for an operation of the contract.
	extension *Extension
}

func (a api) run(w *server.Tracker, r *http.Request, c *call) error {
	compressed, err := wire.Uncompress(r, c.settings.MaxBody)
	if err != nil {
		return err
	}
	if c.op.Handle != nil {
		// Callbacks and pushes of providers come from few addresses, so they are not rate limited.
		if !c.op.IgnoreUnknown {
			if err := a.addresses.Allow(w, a.ClientAddress(r)); err != nil {
				return err
			}
		}
		if token := r.Header.Get(a.LinkTokenHeader); token != "" && a.tokenUser != nil {
			a.byLink(r.Context(), token)
		}
		if c.op.Browser {
			if err := a.allowOrigin(w, r, r.Header.Get(a.LinkTokenHeader)); err != nil {
				return err
			}
		}
		if err := refuseKey(r, c.op); err != nil {
			return err
		}
		return c.op.Handle(w, withRole(r, c.needs.role))
	}
	caller, r, err := a.caller(r, c)
	if err != nil {
		if slow := a.addresses.Allow(w, a.ClientAddress(r)); slow != nil {
			return slow
		}
		return err
	}
	team := caller.Team
	c.team = team
	c.access.team, c.access.actor = team, actorOf(r, caller)
	if err := a.teams.Allow(w, team.String()); err != nil {
		return err
	}
	by, err := a.secondManager(r, team)
	if err != nil {
		return err
	}
	if by != "" {
		c.access.actor = "management:" + by
	}
	if err := c.admit(caller); err != nil {
		return err
	}
	if compressed {
		server.Measure(r)
	}
	release, err := a.bodies.Share(r, c.settings.MaxBody, c.op.BodyCost)
	if err != nil {
		return err
	}
	defer release()
	if err := refuseKey(r, c.op); err != nil {
		return err
	}
	if c.extension != nil {
		return c.extension.Handle(w, r, Access{Caller: caller, note: &c.access})
	}
	if !caller.User.IsZero() {
		if r, c.access.tried, err = c.op.Bound.Confine(r, c.settings, team, caller.User); err != nil {
			return err
		}
	}
	if c.op.Change != nil {
		return a.change(w, r, c)
	}
	return c.op.Team(w, withScopes(r, caller.Scopes), team)
}

// change answers a request that changes the store. The change and its access log entry are stored in one transaction
// before the answer is sent. If the change fails, its error is returned, nothing of it is stored, and the error
// answer gets an entry of its own.
func (a api) change(w *server.Tracker, r *http.Request, c *call) error {
	change, err := c.op.Change(wire.From(r), c.team)
	if err != nil {
		return err
	}
	if change.Outside || a.Transact == nil {
		answer, err := change.Answer(r.Context())
		if err != nil {
			return err
		}
		return answer.Send(w)
	}
	var answer *server.Answer
	if change.InParts != nil {
		answer, err = a.inParts(r, c, change)
	} else {
		err = a.transact(r.Context(), c, func(ctx context.Context) error {
			var err error
			if answer, err = change.Answer(ctx); err != nil {
				return err
			}
			return a.recordIn(ctx, r, c, answer.Status(), answer.Body())
		})
	}
	if err != nil {
		return err
	}
	w.Record = nil // the entry is already stored
	return answer.Send(w)
}

// transact calls run in a transaction of the store, and again after a conflict. Persons that an earlier call has added
// to the access log entry are removed first.
func (a api) transact(ctx context.Context, c *call, run func(context.Context) error) error {
	persons := slices.Clip(c.access.persons)
	return a.Transact(ctx, func(ctx context.Context) error {
		c.access.persons = persons // remove the persons that an earlier run has added
		return run(ctx)
	})
}

// inParts makes a change in several transactions, each with an entry of its own in the access log.
func (a api) inParts(r *http.Request, c *call, change *server.Change) (*server.Answer, error) {
	change.Do = func(ctx context.Context) (any, error) {
		return change.InParts(ctx, func(ctx context.Context, part func(context.Context) error) error {
			return a.transact(ctx, c, func(ctx context.Context) error {
				if err := part(ctx); err != nil {
					return err
				}
				return a.recordIn(ctx, r, c, http.StatusOK, nil)
			})
		})
	}
	return change.Answer(r.Context())
}

// refuseKey refuses idempotency headers for an operation that does not support them, because the caller would rely on
// them. Requests of providers are exempt.
func refuseKey(r *http.Request, op *server.Operation) error {
	if op.Keyed || op.IgnoreUnknown {
		return nil
	}
	var problems []healthlab.Problem
	for _, name := range []string{server.IdempotencyKey, server.IdempotencyError} {
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
func (a api) fail(w *server.Tracker, r *http.Request, c *call, err error) {
	// The error may hide that ctx was ended by the store watch, which has logged that the store does not answer.
	silent := server.StoreSilent(r.Context())
	// The connection of a caller that hung up may fail before the context ends.
	gone := silent || w.HungUp || errors.Is(r.Context().Err(), context.Canceled)
	if silent && !w.Started {
		err = server.ErrStoreSilent
	}
	if w.Started {
		if !gone {
			a.logFailure(r, c, "answer broke off", err)
		}
		// The connection is closed so that the client does not take half an answer for a whole one.
		panic(http.ErrAbortHandler)
	}
	if problems, ok := server.ProblemsOf(err, c.settings); ok && !hasReply(c.op.Replies, err) {
		err = c.refuse(w, nil, problems)
	} else {
		f := server.FaultOf(err, a.replies(r, c, err))
		if f.Status >= http.StatusInternalServerError && f.Status != http.StatusNotImplemented && !gone {
			a.logFailure(r, c, "request failed", err)
		}
		f.Msg = c.settings.AsAsked(f.Msg)
		err = c.refuse(w, f, nil)
	}
	if err != nil && !w.HungUp {
		a.logFailure(r, c, "reply could not be encoded", err)
		_ = c.refuse(w, server.PlainFault(healthlab.Unknown), nil)
	}
}

// hasReply reports whether the operation defines its own reply for err.
func hasReply(replies []server.Reply, err error) bool {
	for _, r := range replies {
		if r.On != nil && errors.Is(err, r.On) {
			return true
		}
	}
	return false
}

// rescue answers a panic with status 500. It logs the stack but not the value of the panic.
func (a api) rescue(w *server.Tracker, r *http.Request, c *call) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler { //nolint:errorlint // net/http compares the same way
		panic(v)
	}
	a.Log.ErrorContext(context.WithoutCancel(r.Context()), "handler panicked",
		"operation", c.op.ID, "request", RequestID(r.Context()), "team", teamText(c.team), "panic", fmt.Sprintf("%T", v), "at", work.Frames())
	if w.Started {
		panic(http.ErrAbortHandler)
	}
	_ = c.refuse(w, server.PlainFault(healthlab.Unknown), nil)
}

func (a api) logFailure(r *http.Request, c *call, msg string, err error) {
	a.Log.ErrorContext(context.WithoutCancel(r.Context()), msg,
		"operation", c.op.ID, "request", RequestID(r.Context()), "team", teamText(c.team), "kind", healthlab.KindOf(err).Error(), "cause", work.Cause(err))
}

func teamText(t healthlab.TeamID) string {
	if t.IsZero() {
		return ""
	}
	return t.String()
}
