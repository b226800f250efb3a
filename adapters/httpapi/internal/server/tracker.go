package server

import (
	"net/http"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
)

// Tracker is a ResponseWriter that records whether the answer has begun. It stores the access log entry before the
// first byte is sent.
type Tracker struct {
	http.ResponseWriter
	// Started reports whether the answer has begun.
	Started bool
	// Status is the status of the answer.
	Status int
	// HungUp is true if a write failed, because the caller has closed the connection.
	HungUp bool
	// Record stores the access log entry. It is called once, before the first byte is sent. If it fails, the answer
	// is replaced by a 503. Nil: nothing is recorded.
	Record func(status int, body []byte) error
	// Refuse writes the 503 after Record has failed. It is required with Record.
	Refuse  func(w http.ResponseWriter, f *wire.Fault) error
	refused bool // the 503 was sent in place of the answer
}

// NewTracker returns a Tracker whose default status is 200.
func NewTracker(w http.ResponseWriter) *Tracker {
	return &Tracker{ResponseWriter: w, Status: http.StatusOK}
}

// WriteHeader stores the status until Record has run.
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

// release calls Record with the stored status and the first bytes of the body, and sends the status; a 503 if Record
// fails.
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

// End calls Record and sends the status, if the handler has written no body.
func (t *Tracker) End() {
	if t.Record != nil {
		t.release(nil)
	}
}

// Unwrap gives http.ResponseController access to the wrapped writer.
func (t *Tracker) Unwrap() http.ResponseWriter { return t.ResponseWriter }
