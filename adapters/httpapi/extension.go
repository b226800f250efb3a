package httpapi

import (
	"net/http"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/httpserver"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
)

// Extension is an operation of another adapter, with the rules of this package: authentication, scopes,
// rate limits, times, request ids, the access log, and an answer to every error. It is no part of the
// contract.
type Extension struct {
	// ID names the operation in the access log, in lines of the log and to Config.Observe.
	ID string
	// Scopes are what the API key must have, all of them; at least one. The part of the first one before
	// the colon is the kind of the lines in the access log.
	Scopes organisation.Scopes
	// Timeout is the longest that the operation may take, for those that stream. Default: Limits.Timeout
	// of the Config.
	Timeout time.Duration
	// Handle answers. It must call Access.Concerns for every person whose data it reads, before it
	// writes, and obey Caller.User.
	Handle func(w http.ResponseWriter, r *http.Request, by Access) error
	// Refuse writes the answer to an error, that of authentication included. Default: the answer of the
	// contract.
	Refuse func(w http.ResponseWriter, f Refusal) error
	// MaxBody is the largest request body, in bytes. Default Config.MaxBody.
	MaxBody int64
}

// Access is who calls an [Extension].
type Access struct {
	Caller
	note *accessNote
}

// Concerns notes that the request is about a person: the access log gets a line for each. Zero is a
// person who is not known.
func (a Access) Concerns(user healthlab.UserID) { a.note.persons = append(a.note.persons, user) }

// Body reads the body of a request to its end, without its content-encoding. Its errors answer 413 and 400;
// Handle returns them.
func (a Access) Body(r *http.Request) ([]byte, error) { return wire.ReadBody(r) }

// Refusal is the answer to an error.
type Refusal struct {
	Status int
	// Type is the error_type of the contract, and Msg its words. They hold no value of a person.
	Type, Msg string
	// Header holds headers of the answer, such as Retry-After. Nil for most.
	Header http.Header
	// Problems are those of a request that is not valid; nil for other errors.
	Problems []healthlab.Problem
}

// Extend returns a handler of an extension. Of c it uses what says who calls, what is recorded and what
// is limited. Limits by team and by address count apart from those of [Handler]. It panics if c has no
// Authenticate, or the extension lacks a part.
func Extend(c Config, extensions ...Extension) []http.Handler {
	if c.Authenticate == nil {
		panic("httpapi: Config.Authenticate is nil")
	}
	a := mountParts(c)
	out := make([]http.Handler, len(extensions))
	for i, e := range extensions {
		if e.ID == "" || len(e.Scopes) == 0 || e.Handle == nil {
			panic("httpapi: an Extension needs ID, Scopes and Handle")
		}
		op := &server.Operation{ID: e.ID, MaxBody: e.MaxBody, Timeout: e.Timeout}
		out[i] = httpserver.LimitBodies(a.handler(op, call{op: op, needs: requirement{scopes: e.Scopes}, extension: &e}), a.Limits.Body)
	}
	return out
}

// refuse writes the answer to an error in the form of the operation.
func (c *call) refuse(w http.ResponseWriter, f *wire.Fault, problems []healthlab.Problem) error {
	own := c.extension != nil && c.extension.Refuse != nil
	switch {
	case !own && problems != nil:
		return wire.RefuseInput(w, problems)
	case !own:
		return wire.Refuse(w, f)
	case problems != nil:
		return c.extension.Refuse(w, Refusal{Status: http.StatusUnprocessableEntity, Type: "INVALID_REQUEST", Msg: "the request is not valid", Problems: problems})
	}
	return c.extension.Refuse(w, Refusal{Status: f.Status, Type: f.Type, Msg: f.Msg, Header: f.Header})
}
