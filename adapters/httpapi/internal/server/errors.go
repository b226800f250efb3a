package server

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
)

// kinds maps each kind of domain error to its HTTP answer.
var kinds = map[healthlab.ErrorKind]wire.Fault{
	healthlab.Unknown:         {Status: 500, Type: "INTERNAL_ERROR", Msg: "an internal error occurred; try again later"},
	healthlab.Invalid:         {Status: 422, Type: "INVALID_REQUEST", Msg: "the request is not valid"},
	healthlab.NotFound:        {Status: 404, Type: "NOT_FOUND", Msg: "the requested resource was not found"},
	healthlab.Conflict:        {Status: 409, Type: "CONFLICT", Msg: "a resource with this identity already exists"},
	healthlab.Precondition:    {Status: 400, Type: "PRECONDITION_FAILED", Msg: "the current state of the resource does not allow this operation"},
	healthlab.Unauthenticated: {Status: 401, Type: "UNAUTHORIZED", Msg: "the credential is missing or unknown"},
	healthlab.Forbidden:       {Status: 403, Type: "FORBIDDEN", Msg: "the caller is not allowed to do this"},
	healthlab.Exhausted:       {Status: 429, Type: "RATE_LIMITED", Msg: "a limit is reached; try again later"},
	healthlab.Unavailable:     {Status: 503, Type: "UNAVAILABLE", Msg: "try again later"},
	healthlab.Unimplemented:   {Status: 501, Type: "NOT_IMPLEMENTED", Msg: "this deployment does not support the operation"},
}

// FaultOf returns the answer to an error; replies take precedence. Callers answer an error with [ProblemsOf] with its
// problems instead. The text comes from replies, kinds, a RuleError or a Fault, never from another error, because the
// text of other errors may contain values.
func FaultOf(err error, replies []Reply) *wire.Fault {
	f := PlainFault(err)
	for _, r := range replies {
		if !r.Answers(err) {
			continue
		}
		if r.Status != 0 {
			f.Status = r.Status
		}
		if r.ErrorType != "" {
			f.Type = r.ErrorType
		}
		if r.Msg != "" {
			f.Msg = r.Msg
		}
		break
	}
	addRetryAfter(f, err)
	return f
}

// PlainFault is [FaultOf] without replies, and without the Retry-After that the error itself asks for.
func PlainFault(err error) *wire.Fault {
	var f *wire.Fault
	if errors.As(err, &f) {
		return new(*f)
	}
	// The context is checked first, because an error of an ended context often looks like an outage.
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		f := kinds[healthlab.Unavailable]
		f.Header = http.Header{"Retry-After": {wire.RetryAfter}}
		return &f
	}
	own := kinds[healthlab.KindOf(err)]
	var rule *healthlab.RuleError
	if errors.As(err, &rule) {
		own = kinds[healthlab.KindOf(rule)]
		own.Type, own.Msg = rule.Type, rule.Msg
	}
	return &own
}

// addRetryAfter sets the header Retry-After of an answer with status 429 or 503, in whole seconds, rounded up. It does
// so if the error has a method RetryAfter() time.Duration that returns a positive duration.
func addRetryAfter(f *wire.Fault, err error) {
	var later interface{ RetryAfter() time.Duration }
	if f.Status != http.StatusTooManyRequests && f.Status != http.StatusServiceUnavailable || !errors.As(err, &later) {
		return
	}
	wait := later.RetryAfter()
	if wait <= 0 {
		return
	}
	header := f.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set("Retry-After", strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10))
	f.Header = header
}

// ProblemsOf returns the problems of invalid input. The first element of each path is path, query, header or body. ok
// is false for other errors.
func ProblemsOf(err error, s *wire.Settings) (list []healthlab.Problem, ok bool) {
	var input *wire.InputError
	if errors.As(err, &input) {
		return input.Problems, true
	}
	var fault *wire.Fault
	if errors.As(err, &fault) {
		return nil, false
	}
	// An answer with status 422 always has a list of problems, even for a broken business rule.
	var rule *healthlab.RuleError
	if errors.As(err, &rule) {
		one := healthlab.Problem{Path: s.Place(nil), Code: strings.ToLower(rule.Type), Msg: rule.Msg}
		return []healthlab.Problem{one}, errors.Is(rule, healthlab.Invalid)
	}
	var invalid *healthlab.InvalidError
	if errors.As(err, &invalid) && len(invalid.Problems) > 0 {
		list = make([]healthlab.Problem, len(invalid.Problems))
		for i, p := range invalid.Problems {
			p.Path = s.Place(p.Path)
			list[i] = p
		}
		return list, true
	}
	if healthlab.KindOf(err) != healthlab.Invalid {
		return nil, false
	}
	f := kinds[healthlab.Invalid]
	return []healthlab.Problem{{Path: s.Place(nil), Code: "invalid", Msg: f.Msg}}, true
}
