package server

import (
	"net/http"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
)

// Tracker notices that an answer has begun. It is for one request.
type Tracker struct {
	http.ResponseWriter
	// Started reports whether the answer has begun.
	Started bool
	// Status is that of the answer; set it to 200 before.
	Status int
	// Before is called once, before anything is sent. If it fails, 503 is sent instead.
	Before  func(status int, body []byte) error
	waiting bool // the status is known and Before has not run
	refused bool // 503 was sent instead
}

// WriteHeader keeps the status back until Before has run.
func (t *Tracker) WriteHeader(status int) {
	if t.Before != nil && status >= http.StatusOK && !t.Started {
		t.Started, t.Status, t.waiting = true, status, true
		return
	}
	if !t.Started {
		t.Started, t.Status = status >= http.StatusOK, status
	}
	t.ResponseWriter.WriteHeader(status)
}

// Write runs Before, once, and sends the bytes.
func (t *Tracker) Write(b []byte) (int, error) {
	t.Started = true
	if t.Before != nil {
		t.waiting = true
		t.release(b)
	}
	if t.refused {
		return len(b), nil
	}
	return t.ResponseWriter.Write(b)
}

// release records the access and sends the status that waits for it.
func (t *Tracker) release(body []byte) {
	before := t.Before
	t.Before, t.waiting = nil, false
	if err := before(t.Status, body); err != nil {
		t.refused, t.Status = true, http.StatusServiceUnavailable
		h := t.Header()
		for name := range h {
			if strings.HasPrefix(name, "Content-") {
				h.Del(name)
			}
		}
		f := kinds[healthlab.Unavailable]
		f.Msg = "the access could not be recorded; try again later"
		_ = wire.Refuse(t.ResponseWriter, &f)
		return
	}
	t.ResponseWriter.WriteHeader(t.Status)
}

// End sends a status without a body.
func (t *Tracker) End() {
	if t.Before != nil {
		t.release(nil)
	}
}

// Unwrap lets http.ResponseController through.
func (t *Tracker) Unwrap() http.ResponseWriter { return t.ResponseWriter }
