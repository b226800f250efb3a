package httpserver

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
)

// Options holds the limits of a [Server]. Zero fields mean the defaults.
type Options struct {
	// Header is how long the TLS handshake and the header of a request may take to arrive. Default 10 seconds.
	Header time.Duration
	// Body limits the time of bodies.
	Body BodyTimes
	// Idle is how long a connection may wait for its next request. Default 2 minutes.
	Idle time.Duration
	// Write is how long an answer may take, from the end of the request's header. A handler
	// can set another end with http.ResponseController. Default 4 minutes.
	Write time.Duration
	// WritePause is how long the caller may take to read 64 KiB of an answer. Default 20 seconds.
	WritePause time.Duration

	// Connections is the largest number of connections. Default 4000. If the process has a limit of file handles, it is
	// at most that limit minus Reserve, and at most three quarters of the limit.
	Connections int
	// AddressConnections is the largest number of connections of one address; of IPv6 the first 64 bits count. Default
	// half of Connections.
	AddressConnections int
	// Reserve is the number of file handles for the rest of the program: database, files and outgoing requests. Default
	// 96.
	Reserve int
	// Proxies are the addresses of proxies, which may have more than AddressConnections connections.
	Proxies []netip.Prefix
}

// withDefaults returns the options with defaults for zero fields. handles is the limit of file handles of the process;
// 0 means no limit.
func (o Options) withDefaults(handles int) Options {
	o.Header = cmp.Or(o.Header, 10*time.Second)
	o.Body = o.Body.withDefaults()
	o.Idle = cmp.Or(o.Idle, 2*time.Minute)
	o.Write = cmp.Or(o.Write, 4*time.Minute)
	o.WritePause = cmp.Or(o.WritePause, 20*time.Second)
	o.Connections = cmp.Or(o.Connections, 4000)
	o.Reserve = cmp.Or(o.Reserve, 96)
	if handles > 0 {
		o.Connections = max(1, min(o.Connections, handles-o.Reserve, handles/4*3))
	}
	o.AddressConnections = cmp.Or(o.AddressConnections, max(1, o.Connections/2))
	return o
}

// Server serves HTTP/1.1, and HTTP/2 over TLS. It is safe for concurrent use.
type Server struct {
	http        *http.Server
	options     Options
	connections *connections
}

// New returns a server for a handler. Nil options mean the defaults.
func New(h http.Handler, o *Options) *Server {
	if o == nil {
		o = &Options{}
	}
	s := &Server{options: o.withDefaults(fileHandles())}
	s.connections = &connections{
		most: s.options.Connections, mostOfOne: s.options.AddressConnections, proxies: s.options.Proxies, writePause: s.options.WritePause,
		of: map[string]map[*conn]struct{}{},
	}
	s.http = &http.Server{
		Handler:           countRequests(LimitBodies(checkTarget(h), s.options.Body)),
		ReadHeaderTimeout: s.options.Header, WriteTimeout: s.options.Write, IdleTimeout: s.options.Idle, MaxHeaderBytes: 64 << 10,
		ReadTimeout: s.options.Body.Whole, // limits bodies that net/http reads itself
		// Without it, net/http reads the body of a request OPTIONS * itself.
		DisableGeneralOptionsHandler: true,
		ConnState: func(c net.Conn, state http.ConnState) {
			line, under := wrappersOf(c)
			if line != nil && state == http.StateIdle { // the goroutine that reads the connection calls this
				line.next()
			}
			under.setState(state)
		},
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			line, under := wrappersOf(c)
			return context.WithValue(context.WithValue(ctx, connKey{}, under), lineKey{}, line)
		},
	}
	return s
}

// Serve answers the connections of a listener, and closes it. It returns http.ErrServerClosed
// after [Server.Shutdown].
func (s *Server) Serve(l net.Listener) error {
	return s.http.Serve(lineListener{&listener{Listener: l, connections: s.connections}})
}

// ServeTLS answers over TLS with the certificate and key of two PEM files. It otherwise behaves like [Server.Serve],
// but resets an HTTP/2 request whose target is not a URL.
func (s *Server) ServeTLS(l net.Listener, certificate, key string) error {
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12}
	return s.http.Serve(secure(&listener{Listener: l, connections: s.connections}, config, s.options.Header))
}

// stopPause is how long a connection may wait for its caller during a shutdown.
const stopPause = time.Second

// Shutdown stops accepting connections and waits for running requests. It does not wait for a request whose caller has
// sent and read nothing for a second. If requests still run when ctx ends, it closes their connections and returns the
// error of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- s.http.Shutdown(ctx) }()
	tick := time.NewTicker(stopPause / 10)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			if err != nil {
				_ = s.http.Close() // err already holds the reason
			}
			s.connections.closeWaiting(clock()) // connections whose handshake is in progress
			return err
		case now := <-tick.C:
			s.connections.closeWaiting(now.Add(-stopPause))
		}
	}
}

// countRequests counts, in the conn of each request, the requests that next is answering.
func countRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := connOf(r.Context())
		c.handles(1)
		defer c.handles(-1)
		next.ServeHTTP(w, r)
	})
}

// checkTarget refuses requests whose target is not a URL.
func checkTarget(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if line, _ := r.Context().Value(lineKey{}).(*lineConn); line != nil && line.malformed {
			refuseTarget(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// refuseTarget answers a request whose target is not a URL.
func refuseTarget(w http.ResponseWriter, r *http.Request) {
	server.Identify(w, r)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_ = wire.Refuse(w, &wire.Fault{
		Status: http.StatusBadRequest, Type: "PATH_INVALID",
		Msg: "the path must begin with / and have two hexadecimal digits after each %, and no spaces or control characters",
	})
}

type (
	connKey struct{}
	lineKey struct{}
)

func connOf(ctx context.Context) *conn {
	c, _ := ctx.Value(connKey{}).(*conn)
	return c
}

// wrappersOf returns the wrappers around a connection that a listener of this package accepted. line is nil for HTTP/2.
func wrappersOf(c net.Conn) (line *lineConn, under *conn) {
	for {
		switch layer := c.(type) {
		case *secureConn:
			c = layer.lineConn
		case *lineConn:
			line, c = layer, layer.Conn
		case *tls.Conn:
			c = layer.NetConn()
		default:
			return line, c.(*conn)
		}
	}
}
