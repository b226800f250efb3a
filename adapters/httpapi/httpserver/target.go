package httpserver

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
)

// longestLine is the largest buffered request line, in bytes. net/http refuses longer headers.
const longestLine = 64 << 10

// lineConn is an HTTP/1.1 connection that replaces a malformed request target by / and records it, because net/http
// would answer such a request with plain text and close the connection. Only the reading goroutine uses its fields.
type lineConn struct {
	net.Conn
	read      bool   // the request line was received to its end
	method    bool   // the method, the first word of the line, was already returned
	held      []byte // bytes that were received and not yet returned
	malformed bool   // the target was no URL
}

// secureConn is a lineConn over TLS.
type secureConn struct {
	*lineConn
	secured *tls.Conn
}

// ConnectionState returns the TLS state that net/http copies into each request.
func (c *secureConn) ConnectionState() tls.ConnectionState { return c.secured.ConnectionState() }

func (c *lineConn) next() { c.read, c.method, c.malformed = false, false, false }

// CloseWrite closes the sending side of the connection.
func (c *lineConn) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}

// Read reads bytes for net/http. It buffers the request line until its end, except the first word, with which net/http
// starts the time limit of the header.
func (c *lineConn) Read(p []byte) (int, error) {
	for !c.read && !c.lineReady(len(p)) {
		n, err := c.Conn.Read(p)
		if c.held = append(c.held, p[:n]...); err != nil {
			c.read = true // the error ends the request
			return 0, err
		}
	}
	if len(c.held) == 0 {
		return c.Conn.Read(p)
	}
	n := len(c.held)
	if !c.read {
		n = bytes.IndexByte(c.held, ' ') + 1
		c.method = true
	}
	n = copy(p, c.held[:n])
	if c.held = c.held[n:]; len(c.held) == 0 {
		c.held = nil
	}
	return n, nil
}

// lineReady reports whether Read can return buffered bytes: a checked request line, or its first word if room, the
// length of Read's buffer, suffices.
func (c *lineConn) lineReady(room int) bool {
	end := bytes.IndexByte(c.held, '\n')
	switch space := bytes.IndexByte(c.held, ' '); {
	case end >= 0:
		c.read = true
		c.held, c.malformed = replaceTarget(c.held, end, c.method)
	case len(c.held) >= longestLine:
		c.read = true
	case c.method || space < 0 || space >= room:
		return false
	}
	return true
}

// replaceTarget replaces a malformed target in the request line held[:end] by /. methodGone means that held starts with
// the target.
func replaceTarget(held []byte, end int, methodGone bool) (mended []byte, malformed bool) {
	line := bytes.TrimSuffix(held[:end], []byte("\r"))
	from := 0
	if !methodGone {
		from = bytes.IndexByte(line, ' ') + 1
	}
	to := bytes.LastIndexByte(line, ' ')
	if to < from || from == 0 && !methodGone || !bytes.HasPrefix(line[to+1:], []byte("HTTP/")) || isURL(line[from:to]) {
		return held, false
	}
	return bytes.Join([][]byte{held[:from], held[to:]}, []byte("/")), true
}

func isURL(target []byte) bool {
	_, err := url.ParseRequestURI(string(target))
	return err == nil && bytes.IndexByte(target, ' ') < 0
}
