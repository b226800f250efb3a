// Package server contains what all operations of the API share: the type [Operation], answers to errors, idempotency
// keys, request ids, limits, and the router.
//
// It does not authenticate, and defines no operation. Packages with operations import it and return [Operation] values;
// the parent package authenticates callers and runs the operations.
package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
)

// Operation is one operation of the API with its handler. Exactly one of Handle, Team and Change is set.
type Operation struct {
	// ID is the operationId of the contract.
	ID string
	// Pattern is METHOD /path, spelt as in the contract.
	Pattern string
	// Handle answers the request and authenticates the caller itself.
	Handle func(w http.ResponseWriter, r *http.Request) error
	// Team answers a request of a team. The team was authenticated before the request was read.
	Team func(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error
	// Change reads a request of a team and returns the Change to make, which is stored in one transaction with the
	// access log entry. If it returns an error, nothing is changed.
	Change func(in *wire.In, team healthlab.TeamID) (*Change, error)
	// Bound declares how the operation treats a caller that is bound to one user. It is required with Team and Change.
	// Operations with Handle have none, because a link token, a management key or a signature authenticates them.
	Bound Bound
	// Keyed is true if the operation accepts idempotency headers. Other operations refuse them.
	Keyed bool
	// MaxBody is the largest body, in bytes; 0 means the default of the API.
	MaxBody int64
	// BodyCost is the memory that a large body needs as a multiple of its size; 0 means that of samples.
	BodyCost int64
	// IgnoreUnknown ignores unknown keys and parameters.
	IgnoreUnknown bool
	// Timeout is the longest that the operation may take; 0 means the default of the API.
	Timeout time.Duration
	// Browser allows web pages of other origins to call the operation with a link token.
	Browser bool
	// Replies lists errors that this operation answers with another status, type or text than other operations.
	Replies []Reply
}

// Reply gives an error another status, type or text in the answers of one operation.
type Reply struct {
	// On matches errors by errors.Is: a kind, context.DeadlineExceeded, or an error of a domain package.
	On error
	// Rule matches a RuleError by its Type, instead of On.
	Rule string
	// Status and ErrorType replace those of the answer. Zero values keep them.
	Status    int
	ErrorType string
	// Msg replaces the error_message. An empty Msg keeps it.
	Msg string
}

// Answers reports whether r applies to an error.
func (r *Reply) Answers(err error) bool {
	var rule *healthlab.RuleError
	return r.On != nil && errors.Is(err, r.On) || r.Rule != "" && errors.As(err, &rule) && rule.Type == r.Rule
}

// ReadOne returns a handler that answers 200 with one object as JSON. of reads the id from the request, and read
// returns the object.
func ReadOne[ID, T any](of func(*wire.In) ID, read func(context.Context, healthlab.TeamID, ID) (T, error)) func(http.ResponseWriter, *http.Request, healthlab.TeamID) error {
	return AsJSON(func(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
		id := of(in)
		if err := in.Err(); err != nil {
			return nil, err
		}
		return read(ctx, team, id)
	})
}

// AsJSON returns a handler that answers 200 with the value that answer returns, as JSON.
func AsJSON(answer func(context.Context, *wire.In, healthlab.TeamID) (any, error)) func(http.ResponseWriter, *http.Request, healthlab.TeamID) error {
	return func(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
		out, err := answer(r.Context(), wire.From(r), team)
		if err != nil {
			return err
		}
		return wire.JSON(w, http.StatusOK, out)
	}
}

// Files in the order of reading: each uses those before it.
//
//	bound.go errors.go idempotency.go change.go limits.go operation.go request_id.go mux.go store_watch.go
//	tracker.go
