package httpapi

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"regexp"
)

// requestIDHeader names the header of a request's id, in requests and answers.
const requestIDHeader = "X-Request-Id"

// requestIDForm is what an id of a caller or a proxy looks like: a UUID or the 32 digits of a
// trace id. Any other text might say something of a person, and would be logged.
var requestIDForm = regexp.MustCompile(`^(?:[0-9a-fA-F]{32}|[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12})$`)

type requestIDKey struct{}

// RequestID returns the id of the request whose context this is: that of the header
// X-Request-Id if the caller or a proxy sent a UUID or a trace id of 32 digits, else a new one. Every answer has it in the
// same header, and every line that this package logs about the request has it as request.
// Empty outside of a request.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// newRequestID draws 32 hexadecimal digits.
func newRequestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// identify gives a request its id, once.
func identify(w http.ResponseWriter, r *http.Request) *http.Request {
	if RequestID(r.Context()) != "" {
		return r
	}
	id := r.Header.Get(requestIDHeader)
	if !requestIDForm.MatchString(id) {
		id = newRequestID()
	}
	w.Header().Set(requestIDHeader, id)
	return r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id))
}
