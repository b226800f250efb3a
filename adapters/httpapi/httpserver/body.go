package httpserver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// BodyTimes limits how long the body of a request may take to arrive.
type BodyTimes struct {
	// Whole is the limit for the whole body, from the first read of it. Default 2 minutes.
	Whole time.Duration
	// Pause is the limit between two parts of it. Default 15 seconds.
	Pause time.Duration
}

func (t BodyTimes) withDefaults() BodyTimes {
	if t.Whole <= 0 {
		t.Whole = 2 * time.Minute
	}
	if t.Pause <= 0 {
		t.Pause = 15 * time.Second
	}
	return t
}

type limitedKey struct{}

// LimitBodies limits the time that bodies take. A read of a body that takes longer fails with
// os.ErrDeadlineExceeded. A body of which the handler has not read the end when it answers is not
// read further, and the connection is closed after the answer. Of nested calls the outermost
// holds. Servers whose connections have no deadlines, such as httptest.ResponseRecorder, get
// the header Connection alone.
func LimitBodies(h http.Handler, times BodyTimes) http.Handler {
	times = times.withDefaults()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Context().Value(limitedKey{}) != nil {
			h.ServeHTTP(w, r)
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), limitedKey{}, true)) // a copy: net/http keeps the body of its own
		if r.Body == nil || r.Body == http.NoBody {
			h.ServeHTTP(w, r)
			return
		}
		b := &body{ReadCloser: r.Body, control: http.NewResponseController(w), times: times, conn: connOf(r.Context())} //nolint:contextcheck // the request's own
		r.Body = b
		out := &answer{ResponseWriter: w, body: b, closes: r.ProtoMajor < 2} // HTTP/2 ends the stream
		defer out.end()
		h.ServeHTTP(out, r)
	})
}

// body is the body of a request, with limits of time.
type body struct {
	io.ReadCloser
	control *http.ResponseController
	times   BodyTimes
	conn    *conn // nil without a Server
	until   time.Time
	whole   atomic.Bool // its end was read
}

// Read reads a part within the limits.
func (b *body) Read(p []byte) (int, error) {
	if !b.whole.Load() {
		now := clock()
		if b.until.IsZero() {
			b.until = now.Add(b.times.Whole)
		}
		end := now.Add(b.times.Pause)
		if b.until.Before(end) {
			end = b.until
		}
		_ = b.control.SetReadDeadline(end) // a recorder has none; net/http takes it away at the end of the body
		b.conn.waits(1)
		defer b.conn.waits(-1)
	}
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.whole.Store(true)
	}
	return n, err
}

// Close does nothing: net/http closes the body after the handler, and reads it first.
func (b *body) Close() error { return nil }

// answer closes the connection after an answer that begins before the end of the body.
type answer struct {
	http.ResponseWriter
	body    *body
	closes  bool
	started bool
}

func (a *answer) start() {
	if !a.started && a.closes && !a.body.whole.Load() {
		a.Header().Set("Connection", "close")
	}
	a.started = true
}

// WriteHeader starts the answer.
func (a *answer) WriteHeader(status int) {
	if status >= http.StatusOK {
		a.start()
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write starts the answer.
func (a *answer) Write(b []byte) (int, error) {
	a.start()
	return a.ResponseWriter.Write(b)
}

// FlushError starts the answer.
func (a *answer) FlushError() error {
	a.start()
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Flush is FlushError for handlers that ask for an http.Flusher.
func (a *answer) Flush() { _ = a.FlushError() }

// Unwrap lets http.ResponseController through.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// end stops the reading of a body that the handler left: net/http would wait for up to 256 KiB of it.
func (a *answer) end() {
	a.start()
	if a.closes && !a.body.whole.Load() {
		_ = a.body.control.SetReadDeadline(time.Unix(1, 0))
		a.body.conn.leavesBody()
	}
}
