package httpserver

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"
)

// secureListener performs TLS handshakes concurrently. net/http would perform them itself, but then it would read
// HTTP/1.1 requests directly from the TLS connection.
type secureListener struct {
	net.Listener
	config *tls.Config
	time   time.Duration // longest duration of a handshake
	ready  chan accepted
	closed chan struct{}
	close  func()
}

type accepted struct {
	net.Conn
	err error
}

func secure(l net.Listener, config *tls.Config, limit time.Duration) *secureListener {
	s := &secureListener{Listener: l, config: config, time: limit, ready: make(chan accepted), closed: make(chan struct{})}
	s.close = sync.OnceFunc(func() { close(s.closed) })
	go s.run()
	return s
}

func (l *secureListener) run() {
	for {
		c, err := l.Listener.Accept()
		if err == nil {
			go l.handshake(c)
			continue
		}
		l.deliver(accepted{err: err}) // net/http pauses after an error before it calls Accept again
		if errors.Is(err, net.ErrClosed) {
			return
		}
	}
}

// deliver passes a connection or error to a call of Accept. It returns false if the listener is closed.
func (l *secureListener) deliver(a accepted) bool {
	select {
	case l.ready <- a:
		return true
	case <-l.closed:
		return false
	}
}

func (l *secureListener) handshake(c net.Conn) {
	_ = c.SetDeadline(clock().Add(l.time))
	secured := tls.Server(c, l.config)
	if secured.Handshake() != nil { //nolint:noctx // the deadline bounds it
		_ = c.Close() // a caller that does not speak TLS gets no answer
		return
	}
	_ = c.SetDeadline(time.Time{})
	var out net.Conn = secured // net/http recognises HTTP/2 by the type *tls.Conn
	if secured.ConnectionState().NegotiatedProtocol != "h2" {
		out = &secureConn{&lineConn{Conn: secured}, secured}
	}
	if !l.deliver(accepted{Conn: out}) {
		_ = out.Close()
	}
}

// Accept returns the next connection after its handshake.
func (l *secureListener) Accept() (net.Conn, error) {
	select {
	case a := <-l.ready:
		return a.Conn, a.err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close closes the listener and ends Accept.
func (l *secureListener) Close() error {
	l.close()
	return l.Listener.Close()
}
