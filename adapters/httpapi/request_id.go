package httpapi

import (
	"context"
	"net/http"
	"regexp"

	"github.com/google/uuid"
)

// requestIDHeader names the header of a request's id, in requests and answers.
const requestIDHeader = "X-Request-Id"

// requestIDForm is what an id of a caller or a proxy may look like.
var requestIDForm = regexp.MustCompile(`^[0-9A-Za-z._:/+=-]{1,128}$`)

type requestIDKey struct{}

// RequestID returns the id of the request whose context this is: that of the header
// X-Request-Id if the caller or a proxy sent one, else a new one. Every answer has it in the
// same header, and every line that this package logs about the request has it as request.
// Empty outside of a request.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// identify gives a request its id, once.
func identify(w http.ResponseWriter, r *http.Request) *http.Request {
	if RequestID(r.Context()) != "" {
		return r
	}
	id := r.Header.Get(requestIDHeader)
	if !requestIDForm.MatchString(id) {
		id = uuid.NewString()
	}
	w.Header().Set(requestIDHeader, id)
	return r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id))
}
