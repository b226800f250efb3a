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
	// Whole limits the time from the first read of the body to its end. Default 2 minutes.
	Whole time.Duration
	// Pause limits the time between two parts of the body. Default 15 seconds.
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

// LimitBodies limits how long the bodies of a handler's requests may take to arrive. A read that takes longer fails
// with os.ErrDeadlineExceeded. If the handler answers before it has read the whole body, the rest is not read, and an
// HTTP/1.1 connection is closed after the answer. If calls are nested, only the outermost one limits. If the
// ResponseWriter supports no deadlines, as httptest.ResponseRecorder, only the header Connection is set.
func LimitBodies(h http.Handler, times BodyTimes) http.Handler {
	times = times.withDefaults()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Context().Value(limitedKey{}) != nil {
			h.ServeHTTP(w, r)
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), limitedKey{}, true)) // a copy: net/http needs the original body
		if r.Body == nil || r.Body == http.NoBody {
			h.ServeHTTP(w, r)
			return
		}
		b := &body{ReadCloser: r.Body, control: http.NewResponseController(w), times: times, conn: connOf(r.Context())} //nolint:contextcheck // the request's own
		r.Body = b
		out := &answer{ResponseWriter: w, body: b, closes: r.ProtoMajor < 2} // in HTTP/2 the stream is closed instead
		defer out.end()
		h.ServeHTTP(out, r)
	})
}

// body is a request body with time limits.
type body struct {
	io.ReadCloser
	control *http.ResponseController
	times   BodyTimes
	conn    *conn // nil if the connection was not accepted by a Server of this package
	until   time.Time
	whole   atomic.Bool // the body was read to its end
}

// Read reads the next bytes within the time limits.
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
		_ = b.control.SetReadDeadline(end) // net/http removes the deadline at the end of the body
		b.conn.addBodyReads(1)
		defer b.conn.addBodyReads(-1)
	}
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.whole.Store(true)
	}
	return n, err
}

// Close does nothing, because net/http closes the body after the handler.
func (b *body) Close() error { return nil }

// answer is a ResponseWriter that closes the HTTP/1.1 connection if the answer begins before the body was read to its
// end.
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

// WriteHeader sends the status. If the body was not read to its end, it adds the header Connection: close.
func (a *answer) WriteHeader(status int) {
	if status >= http.StatusOK {
		a.start()
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write sends bytes of the answer, and before the first ones the header, as WriteHeader does.
func (a *answer) Write(b []byte) (int, error) {
	a.start()
	return a.ResponseWriter.Write(b)
}

// FlushError sends buffered bytes, and before the first ones the header, as WriteHeader does.
func (a *answer) FlushError() error {
	a.start()
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Flush calls FlushError, for handlers that use http.Flusher.
func (a *answer) Flush() { _ = a.FlushError() }

// Unwrap gives http.ResponseController access to the wrapped writer.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// end makes further reads of the body fail; otherwise net/http would read up to 256 KiB that the handler left
// unread.
func (a *answer) end() {
	a.start()
	if a.closes && !a.body.whole.Load() {
		_ = a.body.control.SetReadDeadline(time.Unix(1, 0))
		a.body.conn.markBodyUnread()
	}
}
