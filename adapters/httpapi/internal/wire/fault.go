package wire

import (
	"net/http"

	"github.com/healthlab-dev/healthlab"
)

// Fault is an answer other than success that belongs to HTTP, or that an operation
// words itself. Return it from a handler.
type Fault struct {
	// Status is the status of the reply.
	Status int
	// Type is its error_type, UPPER_SNAKE.
	Type string
	// Msg is its error_message. It never holds a value of a person.
	Msg string
	// Extra holds further keys of detail, next to those two. Nil for most.
	Extra map[string]any
	// Header holds headers of the reply. Nil for most.
	Header http.Header
	// Cause is the error behind it, for logs of a 500. It is not sent. May be nil.
	Cause error
}

// Error returns the type and the words.
func (f *Fault) Error() string { return f.Type + ": " + f.Msg }

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Cause }

func tooLarge(limit int64) *Fault {
	return &Fault{
		Status: http.StatusRequestEntityTooLarge, Type: "BODY_TOO_LARGE", Msg: "the body is larger than this operation takes",
		Extra: map[string]any{"limit": limit},
	}
}

func unsupported(msg string) *Fault {
	return &Fault{Status: http.StatusUnsupportedMediaType, Type: "UNSUPPORTED_MEDIA_TYPE", Msg: msg}
}

// NotAcceptable is the error for an accept header that names nothing we can send.
func NotAcceptable() *Fault {
	return &Fault{Status: http.StatusNotAcceptable, Type: "NOT_ACCEPTABLE", Msg: "none of the accepted media types can be sent"}
}

// InputError lists every problem of a request. The path of each begins with its
// place: path, query, header or body. It unwraps to [healthlab.Invalid].
type InputError struct {
	Problems healthlab.Problems
}

// Error says how many problems there are, and nothing of what was sent.
func (e *InputError) Error() string { return "the request is not valid" }

// Unwrap returns [healthlab.Invalid].
func (e *InputError) Unwrap() error { return healthlab.Invalid }
