package httpserver

import (
	"bytes"
	"net/url"
)

// longestLine is how many bytes of a request line are held; net/http refuses longer headers.
const longestLine = 64 << 10

// Read reads bytes for net/http. In a request line whose target is no URL it puts / in its
// place and notes that: net/http would answer it with a text and close the connection.
//
// The line is held until it has come, but for its first word, after which net/http limits the
// time of the header.
func (c *conn) Read(p []byte) (int, error) {
	for !c.line && !c.lineReady(len(p)) {
		n, err := c.receive(p)
		if c.held = append(c.held, p[:n]...); err != nil {
			c.line = true // the error ends the request
			return 0, err
		}
	}
	if len(c.held) == 0 {
		return c.receive(p)
	}
	n := len(c.held)
	if !c.line {
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
func (c *conn) lineReady(room int) bool {
	end := bytes.IndexByte(c.held, '\n')
	switch space := bytes.IndexByte(c.held, ' '); {
	case end >= 0:
		c.line = true
		c.held, c.malformed = mendTarget(c.held, end, c.method)
	case len(c.held) >= longestLine:
		c.line = true
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

// isURL reports whether net/http can read a target.
func isURL(target []byte) bool {
	_, err := url.ParseRequestURI(string(target))
	return err == nil && bytes.IndexByte(target, ' ') < 0
}
