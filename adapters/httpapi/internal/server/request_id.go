package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"regexp"
)

// RequestIDHeader names the header of a request's id, in requests and answers.
const RequestIDHeader = "X-Request-Id"

// requestIDForm matches the request ids that are accepted from callers and proxies: a UUID, or a trace id of 32 digits.
// Other texts could contain personal data, and the id is logged.
var requestIDForm = regexp.MustCompile(`^(?:[0-9a-fA-F]{32}|[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12})$`)

type requestIDKey struct{}

// RequestID returns the id of the request of a context; empty outside of a request.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

func newRequestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// Identify assigns an id to a request, unless it already has one.
func Identify(w http.ResponseWriter, r *http.Request) *http.Request {
	if RequestID(r.Context()) != "" {
		return r
	}
	id := r.Header.Get(RequestIDHeader)
	if !requestIDForm.MatchString(id) {
		id = newRequestID()
	}
	w.Header().Set(RequestIDHeader, id)
	return r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id))
}
