package mllp

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"
)

// Handler answers messages.
//
// Handle gets the message of a frame. For an unreadable frame it gets no message and the error ([ErrTooLarge],
// [ErrUnterminated]). The server sends the returned answer unless it is empty. Calls of one connection are sequential;
// calls of several connections are concurrent.
type Handler interface {
	Handle(ctx context.Context, message []byte, frameErr error) []byte
}

// HandlerFunc is a function as [Handler].
type HandlerFunc func(ctx context.Context, message []byte, frameErr error) []byte

// Handle implements [Handler].
func (f HandlerFunc) Handle(ctx context.Context, message []byte, frameErr error) []byte {
	return f(ctx, message, frameErr)
}

// ServerOptions adjusts a Server. The zero value, and nil, mean the defaults.
type ServerOptions struct {
	// TLS enables TLS if it is not nil. It should require client certificates.
	TLS *tls.Config
	// MaxBytes is the largest message, in bytes. Default [DefaultMaxBytes].
	MaxBytes int
	// MaxConnections is the largest number of connections that are served at a time; others wait. Default 100.
	MaxConnections int
	// FrameTimeout is the longest time to receive a frame, and to send an answer. Default 30 s.
	FrameTimeout time.Duration
	// IdleTimeout closes idle connections. Default: none, since labs
	// keep theirs open for days.
	IdleTimeout time.Duration
	// Now is the clock of deadlines. Default time.Now.
	Now func() time.Time
	// Log receives connection errors. Default: slog.Default().
	Log *slog.Logger
}

// Server answers messages over TCP. Safe for concurrent use.
type Server struct {
	handler Handler
	opts    ServerOptions
}

// NewServer returns a server that passes messages to h.
func NewServer(h Handler, o *ServerOptions) *Server {
	s := &Server{handler: h}
	if o != nil {
		s.opts = *o
	}
	if s.opts.MaxConnections <= 0 {
		s.opts.MaxConnections = 100
	}
	if s.opts.Now == nil {
		s.opts.Now = time.Now
	}
	if s.opts.FrameTimeout <= 0 {
		s.opts.FrameTimeout = 30 * time.Second
	}
	s.opts.Log = cmp.Or(s.opts.Log, slog.Default())
	return s
}

// Serve accepts connections until ctx ends, waits for running answers and returns nil. It closes the listener. Any
// other error comes from the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if s.opts.TLS != nil {
		l = tls.NewListener(l, s.opts.TLS)
	}
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	var busy sync.WaitGroup
	defer busy.Wait()
	slots := make(chan struct{}, s.opts.MaxConnections)
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		conn, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = conn.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept MLLP connection: %w", err)
		case err != nil:
			// Accept failed because file descriptors have run out, or because the peer has already disconnected.
			<-slots
			s.opts.Log.Warn("accept MLLP connection", "error", err.Error())
			wait(ctx.Done(), 100*time.Millisecond)
			continue
		}
		busy.Go(func() {
			defer func() { <-slots }()
			s.ServeConn(ctx, conn)
		})
	}
}

// ServeConn answers the messages of one connection until it ends or ctx ends, and closes it.
func (s *Server) ServeConn(ctx context.Context, conn net.Conn) {
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(long) })
	defer stop()
	if t, ok := conn.(*tls.Conn); ok {
		shake, cancel := context.WithTimeout(ctx, s.opts.FrameTimeout)
		err := t.HandshakeContext(shake)
		cancel()
		if err != nil {
			s.opts.Log.Warn("MLLP connection", "error", "TLS handshake failed")
			return
		}
	}
	frames := NewReader(conn, s.opts.MaxBytes)
	until := func(d time.Duration) {
		at := time.Time{}
		if d > 0 {
			at = s.opts.Now().Add(d)
		}
		_ = conn.SetReadDeadline(at)
		if ctx.Err() != nil {
			_ = conn.SetReadDeadline(long)
		}
	}
	frames.begun = func() { until(s.opts.FrameTimeout) }
	frames.ended = func() { until(s.opts.IdleTimeout) }
	until(s.opts.IdleTimeout)
	for {
		message, err := frames.Next()
		switch {
		case ctx.Err() != nil && message == nil:
			return
		case errors.Is(err, ErrTooLarge) || errors.Is(err, ErrUnterminated):
			s.opts.Log.Warn("MLLP frame refused", "error", err.Error())
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET):
			return // the laboratory hung up
		case err != nil:
			s.opts.Log.Warn("MLLP connection", "error", err.Error())
			return
		}
		answer := s.handler.Handle(ctx, message, err)
		if len(answer) == 0 {
			continue
		}
		_ = conn.SetWriteDeadline(s.opts.Now().Add(s.opts.FrameTimeout))
		if _, err := conn.Write(Append(nil, answer)); err != nil {
			s.opts.Log.Warn("answer MLLP message", "error", err.Error())
			return
		}
	}
}

// long is a past deadline, which ends a read at once.
var long = time.Unix(1, 0)
