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
	// Status is that of the answer.
	Status int
	// HungUp reports that a part of the answer could not be sent, because the caller closed the connection.
	HungUp bool
	// Record records the access. It is called once, before anything is sent; if it fails, 503
	// is sent instead. Nil: nothing is recorded.
	Record func(status int, body []byte) error
	// Refuse writes that 503. It is required with Record.
	Refuse  func(w http.ResponseWriter, f *wire.Fault) error
	refused bool // 503 was sent instead
}

// NewTracker returns a Tracker whose answer is 200 if nothing else is written.
func NewTracker(w http.ResponseWriter) *Tracker {
	return &Tracker{ResponseWriter: w, Status: http.StatusOK}
}

// WriteHeader keeps the status back until Record has run.
func (t *Tracker) WriteHeader(status int) {
	if t.Record != nil && status >= http.StatusOK && !t.Started {
		t.Started, t.Status = true, status
		return
	}
	if !t.Started {
		t.Started, t.Status = status >= http.StatusOK, status
	}
	t.ResponseWriter.WriteHeader(status)
}

// Write runs Record, once, and sends the bytes.
func (t *Tracker) Write(b []byte) (int, error) {
	t.Started = true
	if t.Record != nil {
		t.release(b)
	}
	if t.refused {
		return len(b), nil
	}
	n, err := t.ResponseWriter.Write(b)
	t.HungUp = t.HungUp || err != nil
	return n, err
}

// release records the access and sends the status that waits for it.
func (t *Tracker) release(body []byte) {
	record := t.Record
	t.Record = nil
	if err := record(t.Status, body); err != nil {
		t.refused, t.Status = true, http.StatusServiceUnavailable
		h := t.Header()
		for name := range h {
			if strings.HasPrefix(name, "Content-") {
				h.Del(name)
			}
		}
		f := kinds[healthlab.Unavailable]
		f.Msg = "the access could not be recorded; try again later"
		_ = t.Refuse(t.ResponseWriter, &f)
		return
	}
	t.ResponseWriter.WriteHeader(t.Status)
}

// End sends a status without a body.
func (t *Tracker) End() {
	if t.Record != nil {
		t.release(nil)
	}
}

// Unwrap lets http.ResponseController through.
func (t *Tracker) Unwrap() http.ResponseWriter { return t.ResponseWriter }
