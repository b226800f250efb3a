package wire

import (
	"fmt"
	"net/http"

	"github.com/healthlab-dev/healthlab"
)

// Fault is an error answer with its own HTTP status and text. Handlers return it as an error.
type Fault struct {
	// Status is the HTTP status of the answer.
	Status int
	// Type is the error_type of the answer, in UPPER_SNAKE.
	Type string
	// Msg is the error_message of the answer. It contains no value of a person.
	Msg string
	// Extra holds additional keys of the object detail in the answer. It may be nil.
	Extra map[string]any
	// Header holds headers of the answer. It may be nil.
	Header http.Header
	// Cause is the underlying error. It is logged for a 500 and never sent. It may be nil.
	Cause error
}

// Error returns the error_type and the error_message.
func (f *Fault) Error() string { return f.Type + ": " + f.Msg }

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Cause }

func tooLarge(limit int64) *Fault {
	return &Fault{
		Status: http.StatusRequestEntityTooLarge, Type: "BODY_TOO_LARGE", Msg: fmt.Sprintf("the body must have at most %d bytes, uncompressed", limit),
		Extra: map[string]any{"limit": limit},
	}
}

func unsupported(msg string) *Fault {
	return &Fault{Status: http.StatusUnsupportedMediaType, Type: "UNSUPPORTED_MEDIA_TYPE", Msg: msg}
}

// NotAcceptable returns the answer to an Accept header that matches no available type.
func NotAcceptable() *Fault {
	return &Fault{Status: http.StatusNotAcceptable, Type: "NOT_ACCEPTABLE", Msg: "the header accept allows none of the media types that the operation sends"}
}

// InputError lists every problem of a request. The first element of each path is path, query, header or body. It
// unwraps to [healthlab.Invalid].
type InputError struct {
	Problems healthlab.Problems
}

// Error returns a fixed text, so that no sent value is repeated.
func (e *InputError) Error() string { return "the request is not valid" }

// Unwrap returns [healthlab.Invalid].
func (e *InputError) Unwrap() error { return healthlab.Invalid }
