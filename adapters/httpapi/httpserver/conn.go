package httpserver

import (
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// writePart is the number of bytes of an answer to which the time limit WritePause applies.
	writePart = 64 << 10
	// writeStall is the time without progress after which a connection counts as waiting for its caller to read.
	writeStall = time.Second
	// lingerTime and lingerBytes limit how much of an unread body is read after the answer. Closing a connection with
	// unread bytes resets it, and the caller may lose the answer.
	lingerTime  = 500 * time.Millisecond
	lingerBytes = 256 << 10
)

// clock is the system clock, which connection deadlines use.
var clock = time.Now

// conn is a connection that records whether it waits for its caller.
type conn struct {
	net.Conn
	connections *connections
	address     string

	mu       sync.Mutex
	state    http.ConnState
	handlers int // number of requests that handlers are answering
	waiting  int // number of body reads in progress by these handlers
	reading  bool
	writing  bool
	leaves   bool      // a handler left part of a body unread, so Close reads some of it
	ending   bool      // CloseWrite was called: the server sends nothing more
	moved    time.Time // when bytes last arrived or were sent, or a request began or ended
	writeEnd time.Time // deadline of SetWriteDeadline; zero for none
}

// waitsSince reports whether a connection waits for its caller, and since when: between requests, for a header or body,
// for the caller to read an answer, or for the rest of an unread body.
func (c *conn) waitsSince(now time.Time) (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ending, c.state != http.StateActive, c.handlers > 0 && c.waiting == c.handlers:
		return c.moved, true
	case c.handlers == 0 && c.reading && !c.writing: // net/http reads what no handler did
		return c.moved, true
	}
	return c.moved, c.writing && now.Sub(c.moved) >= writeStall
}

// setState records a change of the connection state reported by net/http.
func (c *conn) setState(state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != state {
		c.moved = clock()
	}
	c.state = state
}

func (c *conn) handles(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handlers += n
	c.moved = clock()
}

// addBodyReads adds n to the number of body reads in progress. c may be nil.
func (c *conn) addBodyReads(n int) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting += n
}

// markBodyUnread records that a body was not read to its end. c may be nil.
func (c *conn) markBodyUnread() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaves = true
}

// Read reads the bytes that have arrived.
func (c *conn) Read(p []byte) (int, error) {
	c.setReading(true)
	n, err := c.Conn.Read(p)
	c.setReading(false)
	return n, err
}

// setReading records the start (true) or the end of a read.
func (c *conn) setReading(reading bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reading = reading; !reading {
		c.moved = clock()
	}
}

// Write sends the bytes in parts. Each part has the time limit WritePause, and the server's deadline applies to all.
func (c *conn) Write(p []byte) (sent int, err error) {
	defer c.setWriting(false)
	for {
		part := p[sent:min(len(p), sent+writePart)]
		if err := c.Conn.SetWriteDeadline(c.setWriting(true)); err != nil {
			return sent, err
		}
		n, err := c.Conn.Write(part)
		sent += n
		if err != nil || sent == len(p) {
			return sent, err
		}
	}
}

// setWriting records the start (true) or the end of sending a part, and returns the deadline of the part.
func (c *conn) setWriting(writing bool) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing, c.moved = writing, clock()
	end := c.moved.Add(c.connections.writePause)
	if !c.writeEnd.IsZero() && c.writeEnd.Before(end) {
		end = c.writeEnd
	}
	return end
}

// SetWriteDeadline sets the server's deadline for writes, in addition to the limit of each part.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writeEnd = t
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline sets the deadlines for reads and writes.
func (c *conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// CloseWrite closes the sending side of the connection.
func (c *conn) CloseWrite() error {
	c.mu.Lock()
	c.ending = true
	c.mu.Unlock()
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}

// Close closes the connection, and removes it from those that count towards the limits. It must be called once.
func (c *conn) Close() error {
	c.mu.Lock()
	leaves := c.leaves
	c.mu.Unlock()
	if leaves && c.CloseWrite() == nil {
		_ = c.Conn.SetReadDeadline(clock().Add(lingerTime))
		_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes) // so that the caller can still read its answer
	}
	c.connections.mu.Lock()
	c.connections.remove(c)
	c.connections.mu.Unlock()
	return c.Conn.Close()
}
