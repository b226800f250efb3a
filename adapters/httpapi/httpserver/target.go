package httpserver

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
)

// longestLine is how many bytes of a request line are held; net/http refuses longer headers.
const longestLine = 64 << 10

// lineConn is a connection of HTTP/1.1 whose request lines have targets that net/http can read. In
// place of one that is no URL it puts / and notes that: net/http would answer it with a text and
// close the connection. Its fields belong to the goroutine that reads.
type lineConn struct {
	net.Conn
	read      bool   // the request line
	method    bool   // the line was handed on up to its first space
	held      []byte // what has come and was not handed on
	malformed bool   // the target was no URL
}

// secureConn is a lineConn over TLS.
type secureConn struct {
	*lineConn
	secured *tls.Conn
}

// ConnectionState is what net/http puts into a request.
func (c *secureConn) ConnectionState() tls.ConnectionState { return c.secured.ConnectionState() }

func (c *lineConn) next() { c.read, c.method, c.malformed = false, false, false }

// CloseWrite says that the server sends nothing more.
func (c *lineConn) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}

// Read reads bytes for net/http. The request line is held until it has come, but for its first
// word, after which net/http limits the time of the header.
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

// lineReady reports whether held bytes can be handed on: the line with a target that is a URL,
// or its first word if there is room for it.
func (c *lineConn) lineReady(room int) bool {
	end := bytes.IndexByte(c.held, '\n')
	switch space := bytes.IndexByte(c.held, ' '); {
	case end >= 0:
		c.read = true
		c.held, c.malformed = mendTarget(c.held, end, c.method)
	case len(c.held) >= longestLine:
		c.read = true
	case c.method || space < 0 || space >= room:
		return false
	}
	return true
}

// mendTarget puts / in the place of the target of a request line that ends before end, if it is
// no URL. The line begins with the target if the method was handed on.
func mendTarget(held []byte, end int, methodGone bool) (mended []byte, malformed bool) {
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
