package fileimport

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
)

// jsonMender reads JSON and drops what is not JSON: a broken item of a list (NaN, a decimal comma, a quote that is
// not closed), a broken key of an object that contains a list, control characters in strings, and the last item of a
// file that is cut, whose open lists and objects it closes.
type jsonMender struct {
	r     *bufio.Reader
	again []byte      // bytes to be read again, in reverse order
	ready []byte      // mended text that Read has not returned yet
	item  []byte      // the current item, which may still be left out
	depth int         // depth of the current item; -1 if there is none
	open  []jsonLevel // the lists and objects around the next token
	want  jsonWant
	err   error

	left int  // number of items left out
	cut  bool // the file ends inside a list or object
}

// jsonLevel is an open list or object.
type jsonLevel struct {
	bracket byte
	items   int // number of items written
}

// jsonWant is the kind of the next token.
type jsonWant uint8

const (
	wantValue jsonWant = iota
	wantKey
	wantColon
	wantEnd // expects a comma or a closing bracket
)

// errNoJSON is the error of a token that is not JSON.
var errNoJSON = errors.New("no JSON")

// mostMended is the size, in bytes, of the largest broken item that can be left out.
const mostMended = 1 << 20

func newJSONMender(r io.Reader) *jsonMender { return &jsonMender{r: bufio.NewReader(r), depth: -1} }

// Read reads the mended text.
func (m *jsonMender) Read(b []byte) (int, error) {
	for len(m.ready) == 0 && m.err == nil {
		err := m.token()
		if errors.Is(err, errNoJSON) {
			err = m.dropItem()
		}
		if errors.Is(err, io.EOF) {
			m.end()
		}
		m.err = err
	}
	if len(m.ready) == 0 {
		return 0, m.err
	}
	n := copy(b, m.ready)
	m.ready = m.ready[n:]
	return n, nil
}

func (m *jsonMender) write(b ...byte) {
	if m.depth < 0 {
		m.ready = append(m.ready, b...)
	} else if m.item = append(m.item, b...); len(m.item) > mostMended {
		m.flushItem()
	}
}

func (m *jsonMender) flushItem() {
	m.ready, m.item, m.depth = append(m.ready, m.item...), m.item[:0], -1
}

func (m *jsonMender) get() (byte, error) {
	if n := len(m.again); n > 0 {
		c := m.again[n-1]
		m.again = m.again[:n-1]
		return c, nil
	}
	return m.r.ReadByte()
}

func (m *jsonMender) unget(b ...byte) {
	slices.Reverse(b)
	m.again = append(m.again, b...)
}

// begin starts an item of the innermost list or object.
func (m *jsonMender) begin() {
	if m.depth < 0 {
		m.depth = len(m.open)
	}
	if len(m.open) > 0 && m.open[len(m.open)-1].items > 0 {
		m.write(',')
	}
}

// endValue records that a value is complete.
func (m *jsonMender) endValue() {
	if m.want = wantEnd; len(m.open) == 0 {
		m.write('\n')
		m.flushItem()
		m.want = wantValue
		return
	}
	m.open[len(m.open)-1].items++
	if m.depth == len(m.open) {
		m.flushItem()
	}
}

// token reads one token.
func (m *jsonMender) token() error {
	c, err := m.byte()
	if err != nil {
		return err
	}
	bracket := byte(0)
	if n := len(m.open); n > 0 {
		bracket = m.open[n-1].bracket
	}
	switch closes := bracket == '[' && c == ']' || bracket == '{' && c == '}'; {
	case closes && (m.want == wantEnd || m.want == wantKey || m.want == wantValue && bracket == '['):
		m.close()
		return nil
	case m.want == wantEnd && c == ',' && bracket == '{':
		m.want = wantKey
		return nil
	case m.want == wantEnd && c == ',':
		m.want = wantValue
		return nil
	case m.want == wantColon && c == ':':
		m.write(':')
		m.want = wantValue
		return nil
	case m.want == wantKey && c == '"':
		m.begin()
		m.want = wantColon
		return m.text()
	case m.want == wantValue:
		if bracket != '{' {
			m.begin()
		}
		return m.value(c)
	}
	m.unget(c)
	return errNoJSON
}

// byte reads the next byte that is not white space.
func (m *jsonMender) byte() (byte, error) {
	for {
		c, err := m.get()
		if err != nil || !spaceByte[c] {
			return c, err
		}
	}
}

func (m *jsonMender) close() {
	m.write(m.open[len(m.open)-1].bracket + 2) // ] is [ + 2, and } is { + 2
	m.open = m.open[:len(m.open)-1]
	m.endValue()
}

// value reads a value that begins with c.
func (m *jsonMender) value(c byte) error {
	switch c {
	case '[':
		m.write(c)
		m.flushItem()
		m.open = append(m.open, jsonLevel{bracket: c})
		return nil
	case '{':
		m.write(c)
		m.open = append(m.open, jsonLevel{bracket: c})
		m.want = wantKey
		return nil
	case '"':
		if err := m.text(); err != nil {
			return err
		}
		m.endValue()
		return nil
	}
	m.unget(c)
	word, err := m.word()
	if err != nil {
		return err
	}
	if !json.Valid(word) {
		return errNoJSON
	}
	m.write(word...)
	m.endValue()
	return nil
}

// word reads a number or a name, up to the character that ends it. A word at the end of the file may be cut.
func (m *jsonMender) word() ([]byte, error) {
	var word []byte
	for len(word) < 100 {
		c, err := m.get()
		if err != nil && len(m.open) == 0 && errors.Is(err, io.EOF) && len(word) > 0 {
			return word, nil
		}
		if err != nil {
			return nil, err
		}
		if spaceByte[c] || c == ',' || c == ']' || c == '}' || c == ':' || c == '[' || c == '{' || c == '"' {
			m.unget(c)
			return word, nil
		}
		word = append(word, c)
	}
	return nil, errNoJSON
}

// text reads the rest of a string after its first quote, and drops control characters.
func (m *jsonMender) text() error {
	m.write('"')
	var read []byte
	for n := 0; ; n++ {
		c, err := m.get()
		if err != nil {
			return err
		}
		read = append(read, c)
		switch {
		case n > mostMended:
			return longValueError(mostMended)
		case c == '"':
			m.write(c)
			return nil
		case c == '\n' || c == '\r': // the quote is not closed, so what stands behind it is no text
			m.unget(read...)
			return errNoJSON
		case c < ' ':
			continue
		case c != '\\':
			m.write(c)
			continue
		}
		if err := m.escape(); err != nil {
			return err
		}
	}
}

// escape reads the rest of an escape sequence after its backslash. An invalid sequence is dropped.
func (m *jsonMender) escape() error {
	escape := []byte{'\\'}
	for want := 2; len(escape) < want; {
		c, err := m.get()
		if err != nil {
			return err
		}
		if want > 2 && !strings.ContainsRune("0123456789abcdefABCDEF", rune(c)) {
			m.unget(c)
			return nil
		}
		if escape = append(escape, c); c == 'u' && len(escape) == 2 {
			want = len(`\u0000`)
		}
	}
	if json.Valid([]byte(`"` + string(escape) + `"`)) {
		m.write(escape...)
	}
	return nil
}

// dropItem drops the current item because of a token that is not JSON, and reads up to the next item.
func (m *jsonMender) dropItem() error {
	m.left++
	inside := 0 // number of open lists and objects within the item
	if m.depth >= 0 {
		inside = len(m.open) - m.depth
		m.open, m.item, m.depth = m.open[:m.depth], m.item[:0], -1
	}
	quoted := false
	for {
		c, err := m.get()
		switch {
		case err != nil:
			return err
		case len(m.open) == 0 && c == '\n':
			m.want = wantValue
			return nil
		case quoted && c == '\\':
			_, _ = m.get()
		case c == '"':
			quoted = !quoted
		case c == '\n' || c == '\r':
			quoted = false
		case quoted || len(m.open) == 0:
		case c == '[' || c == '{':
			inside++
		case (c == ']' || c == '}') && inside > 0:
			inside--
		case c == ']' || c == '}':
			m.close()
			return nil
		case c == ',' && inside == 0:
			if m.want = wantValue; m.open[len(m.open)-1].bracket == '{' {
				m.want = wantKey
			}
			return nil
		}
	}
}

// end closes the open lists and objects at the end of a cut file, and drops the last item.
func (m *jsonMender) end() {
	m.cut = len(m.open) > 0 || len(m.item) > 0
	if m.depth >= 0 {
		m.open, m.item, m.depth = m.open[:m.depth], m.item[:0], -1
	}
	for len(m.open) > 0 {
		m.close()
	}
}
