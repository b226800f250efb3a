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

// Extension is an operation of another adapter to which this package applies authentication, scopes, rate limits,
// timeouts, request ids and the access log. It is not part of the contract.
type Extension struct {
	// ID is the name of the operation in the access log, in log lines and in Config.Observe.
	ID string
	// Scopes lists the scopes that the API key must have; at least one. The part of the first scope before the colon is
	// the kind of the access log entries. Empty with Public.
	Scopes organisation.Scopes
	// Timeout is the longest duration of the operation; an operation that streams may need a longer one. Default:
	// Limits.Timeout of the Config.
	Timeout time.Duration
	// Handle answers the request. If it returns a healthlab.InvalidError, the path of a problem may begin with query,
	// path, header or body. It must call Access.Concerns for every person whose data it reads before it writes the
	// answer, and must restrict itself to Caller.User if that is set.
	Handle func(w http.ResponseWriter, r *http.Request, by Access) error
	// Public answers requests without an API key in place of Handle, such as a sign-in. They are limited by
	// Config.ClientAddress, and no access is recorded.
	Public func(w http.ResponseWriter, r *http.Request) error
	// Refuse writes the answer to an error, including an error of authentication. Default: the error answer of the
	// contract.
	Refuse func(w http.ResponseWriter, f Refusal) error
	// MaxBody is the largest request body, in bytes. Default Config.MaxBody.
	MaxBody int64
}

// Access is the caller of an [Extension].
type Access struct {
	Caller
	note *accessNote
}

// Concerns adds a person to the access log entries of the request. The zero id stands for an unknown person.
func (a Access) Concerns(user healthlab.UserID) { a.note.persons = append(a.note.persons, user) }

// Body reads the body of a request to its end and undoes its content-encoding. Handle should return its errors,
// which answer 413 or 400.
func (a Access) Body(r *http.Request) ([]byte, error) { return wire.ReadBody(r) }

// Refusal describes the answer to an error.
type Refusal struct {
	Status int
	// Type is the error_type of the contract, and Msg its error_message. They contain no value of a person.
	Type, Msg string
	// Header holds headers of the answer, such as Retry-After. Nil for most.
	Header http.Header
	// Problems lists the problems of an invalid request. It is nil for other errors.
	Problems []healthlab.Problem
}

// Extend returns one handler per extension. The handlers use the authentication, the access log and the limits of c.
// Their requests do not count towards the rate limits of [Handler]. It panics if c.Authenticate is nil or a required
// field of an extension is missing.
func Extend(c Config, extensions ...Extension) []http.Handler {
	if c.Authenticate == nil {
		panic("httpapi: Config.Authenticate is nil")
	}
	a := mountParts(c)
	out := make([]http.Handler, len(extensions))
	for i, e := range extensions {
		public, private := e.Public != nil, len(e.Scopes) > 0 && e.Handle != nil
		if e.ID == "" || public == private {
			panic("httpapi: Extension: ID, and either Public or Scopes and Handle, must be set")
		}
		op := &server.Operation{ID: e.ID, Handle: e.Public, MaxBody: e.MaxBody, Timeout: e.Timeout}
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
