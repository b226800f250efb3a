package receiver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// ServeHTTP takes one message and answers without a body:
//
//   - 204 if it was applied, was applied before, is older than the applied version, or has a type without a handler;
//   - 400 if it cannot be read, 413 if it is too large;
//   - 401 if its signature or its age is wrong;
//   - 405 if the method is not POST;
//   - 409 if this message, or another one about its object, is being handled;
//   - 500 if the host's function or the Seen failed, 503 if the failure is temporary (healthlab.Unavailable, or the
//     timeout).
//
// A sender tries again after anything but 2xx. 410, which would switch the endpoint
// off, is never answered.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, r.opts.MaxBody))
	if err != nil {
		r.opts.Observe(req.Context(), Event{}, "", fmt.Errorf("read message: %w: %w", healthlab.Invalid, err))
		w.WriteHeader(unreadStatus(err))
		return
	}
	_, err = r.Receive(req.Context(), body, req.Header)
	if wait := retryAfter(err); wait > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10))
	}
	w.WriteHeader(status(err))
}

func unreadStatus(err error) int {
	var over *http.MaxBytesError
	if errors.As(err, &over) {
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusBadRequest
}

// status returns the HTTP status for an error of Receive.
func status(err error) int {
	if err == nil {
		return http.StatusNoContent
	}
	later := errors.Is(err, healthlab.Unavailable) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	var failed *ApplyError
	switch {
	case later:
		return http.StatusServiceUnavailable
	case errors.As(err, &failed): // a kind in the error of the host's function does not choose the status
		return http.StatusInternalServerError
	}
	switch healthlab.KindOf(err) {
	case healthlab.Unauthenticated:
		return http.StatusUnauthorized
	case healthlab.Invalid:
		return http.StatusBadRequest
	case healthlab.Conflict:
		return http.StatusConflict
	default:
		return http.StatusInternalServerError
	}
}

// retryAfter returns the delay of an error that has a method RetryAfter; 0 for other errors.
func retryAfter(err error) time.Duration {
	var later interface{ RetryAfter() time.Duration }
	if !errors.As(err, &later) {
		return 0
	}
	return later.RetryAfter()
}
