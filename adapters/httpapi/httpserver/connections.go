package httpserver

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
)

// connections holds the open connections of a server, grouped by remote address.
type connections struct {
	most, mostOfOne int
	proxies         []netip.Prefix
	writePause      time.Duration

	mu    sync.Mutex
	of    map[string]map[*conn]struct{}
	total int
}

// listener wraps a net.Listener and applies the limits on connections.
type listener struct {
	net.Listener
	connections *connections
}

// Accept returns the next connection. It closes a connection that exceeds the limits.
func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: accepted, connections: l.connections, moved: clock()}
		if l.connections.admit(c) {
			return c, nil
		}
		_ = accepted.Close() // it is closed without an answer
	}
}

// lineListener wraps each accepted connection in a lineConn, for HTTP/1.1 without TLS.
type lineListener struct{ net.Listener }

// Accept returns the next connection.
func (l lineListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &lineConn{Conn: c}, nil
}

// admit adds a connection. If a limit is reached, it closes the connection that has waited longest for its caller:
// among those of the same address, or else, at the limit of all connections, among those of the address with the most.
// It returns false, and adds nothing, if none of these is waiting.
func (s *connections) admit(c *conn) bool {
	at := netip.Addr{}
	if tcp, err := netip.ParseAddrPort(c.RemoteAddr().String()); err == nil {
		at = tcp.Addr().Unmap()
	}
	c.address = server.Network(at)
	trusted := !at.IsValid() || slices.ContainsFunc(s.proxies, func(p netip.Prefix) bool { return p.Contains(at) })
	s.mu.Lock()
	defer s.mu.Unlock()
	var victim *conn
	switch own := s.of[c.address]; {
	case s.total >= s.most:
		if victim = longestWaiting(own); victim == nil {
			victim = longestWaiting(s.largest())
		}
	case len(own) >= s.mostOfOne && !trusted:
		victim = longestWaiting(own)
	default:
		s.add(c)
		return true
	}
	if victim == nil {
		return false
	}
	s.remove(victim)
	_ = victim.Conn.Close() // its reads and writes end with an error
	s.add(c)
	return true
}

// longestWaiting returns the connection that has waited longest for its caller; nil if none waits.
func longestWaiting(list map[*conn]struct{}) (found *conn) {
	var since time.Time
	now := clock()
	for c := range list {
		if from, waits := c.waitsSince(now); waits && (found == nil || from.Before(since)) {
			found, since = c, from
		}
	}
	return found
}

// largest returns the connections of the address with the most connections, among addresses with a waiting connection.
func (s *connections) largest() (most map[*conn]struct{}) {
	for _, list := range s.of {
		if len(list) > len(most) && longestWaiting(list) != nil {
			most = list
		}
	}
	return most
}

func (s *connections) add(c *conn) {
	if s.of[c.address] == nil {
		s.of[c.address] = map[*conn]struct{}{}
	}
	s.of[c.address][c] = struct{}{}
	s.total++
}

// remove removes a connection from those that count towards the limits. It may be called more than once.
func (s *connections) remove(c *conn) {
	list := s.of[c.address]
	if _, there := list[c]; !there {
		return
	}
	s.total--
	if delete(list, c); len(list) == 0 {
		delete(s.of, c.address)
	}
}

// closeWaiting closes the connections that have waited for their callers since before the given time.
func (s *connections) closeWaiting(before time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := clock()
	for _, list := range s.of {
		for c := range list {
			if from, waits := c.waitsSince(now); waits && from.Before(before) {
				_ = c.Conn.Close() // its reads and writes end with an error
			}
		}
	}
}
