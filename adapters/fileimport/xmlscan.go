package fileimport

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A scanner reads XML 1.0 as a stream of elements, in one buffer whose size does not
// depend on the file. It is strict about what it reads: tags that match, attributes
// that are quoted and unique, references that are defined, text that is valid UTF-8,
// one root. It is lenient about one thing, the internal document type subset, which
// it passes over without reading: phones write broken ones.
//
// It knows the five predefined entities only, so that no file can blow up in memory.
type scanner struct {
	r      io.Reader
	format Format

	buf      []byte
	pos, end int
	eof      bool
	base     int64 // offset of buf[0] in the file
	lines    int   // newlines before buf[0]

	names []byte // of the open elements, one after another
	opens []int  // where each begins in names

	rooted  bool // the root element has begun
	started bool // the prolog has begun
	first   int  // where it begins, after a byte order mark

	// The element that next has just found.
	name    []byte
	attrs   []attr
	closed  bool // <x/>: its end follows by itself
	pending bool // that end has not been told yet

	text    func([]byte) // receives text, with references replaced; may be nil
	scratch []byte
}

// attr is an attribute. Both parts point into the scanner's buffer and are valid until
// the next call of next.
type attr struct {
	name, raw []byte
	refs      bool // raw holds references
}

const (
	scanBuffer  = 256 << 10
	mostTag     = 1 << 20 // bytes of one tag, comment or text between tags
	mostDepth   = 100
	mostAttrs   = 64
	startToken  = 1
	endToken    = 2
	endOfStream = 0
)

var utf8BOM = []byte("\xef\xbb\xbf")

func newScanner(r io.Reader, format Format) *scanner {
	return &scanner{r: r, format: format, buf: make([]byte, scanBuffer)}
}

// errMore says that a token is not wholly in the buffer.
var errMore = errors.New("more input needed")

// fault is a problem at a position of the buffer.
func (s *scanner) fault(at int, msg string) error {
	at = min(at, s.end)
	return &FileError{
		Format: s.format,
		Offset: s.base + int64(at),
		Line:   s.lines + bytes.Count(s.buf[:at], []byte{'\n'}) + 1,
		Msg:    msg,
	}
}

// here is a problem of the current element.
func (s *scanner) here(msg string) error { return s.fault(s.pos, msg) }

// fill reads more, after what is unread. At the end of the file it returns io.EOF.
func (s *scanner) fill() error {
	if s.eof {
		return io.EOF
	}
	if s.pos > 0 {
		s.lines += bytes.Count(s.buf[:s.pos], []byte{'\n'})
		s.base += int64(s.pos)
		copy(s.buf, s.buf[s.pos:s.end])
		s.end -= s.pos
		s.pos = 0
	}
	if s.end == len(s.buf) {
		if len(s.buf) >= mostTag {
			return s.fault(0, "a tag or a text is too long")
		}
		s.buf = append(s.buf, make([]byte, len(s.buf))...)
	}
	for range 100 {
		n, err := s.r.Read(s.buf[s.end:])
		s.end += n
		if errors.Is(err, io.EOF) {
			s.eof = true
			if n > 0 {
				return nil
			}
			return io.EOF
		}
		if err != nil {
			return fmt.Errorf("read file: %w", err)
		}
		if n > 0 {
			return nil
		}
	}
	return fmt.Errorf("read file: %w", io.ErrNoProgress)
}

// next returns startToken or endToken for the next element that begins or ends, with
// its name and attributes in s, and endOfStream at the proper end of the document.
func (s *scanner) next() (int, error) {
	if s.pending {
		s.pending = false
		s.pop()
		return endToken, nil
	}
	for {
		token, err := s.step()
		switch {
		case err == nil && token != 0:
			return token, nil
		case err == nil:
			continue
		case !errors.Is(err, errMore):
			return 0, err
		}
		if err := s.fill(); !errors.Is(err, io.EOF) {
			if err != nil {
				return 0, err
			}
			continue
		}
		switch {
		case s.pos < s.end && s.buf[s.pos] == '<':
			return 0, s.fault(s.end, "the file ends inside a tag")
		case len(s.opens) > 0:
			return 0, s.fault(s.end, "the file ends before its elements do")
		case !s.rooted:
			return 0, s.fault(s.end, "the file has no element")
		case s.pos < s.end:
			return 0, s.fault(s.pos, "text after the end of the document")
		}
		return endOfStream, nil
	}
}

// step reads one piece of the document. It returns 0 and no error for what is not an
// element, and errMore, without having moved, if the piece is not all there.
func (s *scanner) step() (int, error) {
	if !s.started {
		if s.end-s.pos < 5 && !s.eof {
			return 0, errMore
		}
		s.started = true
		if bytes.HasPrefix(s.buf[s.pos:s.end], utf8BOM) {
			s.pos += len(utf8BOM)
			s.first = len(utf8BOM)
		}
	}
	b := s.buf[s.pos:s.end]
	lt := bytes.IndexByte(b, '<')
	if lt < 0 {
		if s.eof && len(s.opens) == 0 && allSpace(b) {
			s.pos = s.end
		}
		return 0, errMore
	}
	if lt > 0 {
		if err := s.chars(b[:lt]); err != nil {
			return 0, err
		}
		s.pos += lt
		return 0, nil
	}
	if len(b) < 2 {
		return 0, errMore
	}
	switch b[1] {
	case '/':
		return s.endTag(b)
	case '?':
		return 0, s.instruction(b)
	case '!':
		return 0, s.declaration(b)
	default:
		return s.startTag(b)
	}
}

func allSpace(b []byte) bool {
	for _, c := range b {
		if !spaceByte[c] {
			return false
		}
	}
	return true
}

// chars checks text between tags, and passes it on.
func (s *scanner) chars(b []byte) error {
	if allSpace(b) && (s.text == nil || len(s.opens) == 0) {
		return nil
	}
	if len(s.opens) == 0 {
		return s.here("text outside the document's element")
	}
	refs := false
	for i := 0; i < len(b); {
		switch class := byteClass[b[i]]; {
		case class == plain || b[i] == '"' || b[i] == '\'' || b[i] == '>':
			if b[i] == '>' && i >= 2 && b[i-1] == ']' && b[i-2] == ']' {
				return s.fault(s.pos+i, "]]> in a text")
			}
			i++
		case b[i] == '&':
			n := reference(b[i:])
			if n == 0 {
				return s.fault(s.pos+i, "a reference to something undefined")
			}
			i += n
			refs = true
		case class == multi:
			n := runeLen(b[i:])
			if n == 0 {
				return s.fault(s.pos+i, "not a valid character of UTF-8")
			}
			i += n
		default:
			return s.fault(s.pos+i, "a character that XML does not allow")
		}
	}
	if s.text != nil {
		if refs {
			b = s.expand(b)
		}
		s.text(b)
	}
	return nil
}

func (s *scanner) startTag(b []byte) (int, error) {
	n, err := s.nameAt(b, 1)
	if err != nil {
		return 0, err
	}
	if len(s.opens) == 0 && s.rooted {
		return 0, s.here("a second element after the document's own")
	}
	if len(s.opens) >= mostDepth {
		return 0, s.here("elements are nested too deeply")
	}
	s.attrs = s.attrs[:0]
	i := n
	for {
		space := i
		for i < len(b) && spaceByte[b[i]] {
			i++
		}
		if i >= len(b) {
			return 0, errMore
		}
		if b[i] == '>' || b[i] == '/' {
			break
		}
		if i == space {
			return 0, s.fault(s.pos+i, "a space is missing before an attribute")
		}
		if i, err = s.attribute(b, i); err != nil {
			return 0, err
		}
	}
	closed := b[i] == '/'
	if closed {
		if i++; i >= len(b) {
			return 0, errMore
		}
		if b[i] != '>' {
			return 0, s.fault(s.pos+i, "a / inside a tag")
		}
	}
	s.rooted = true
	s.opens = append(s.opens, len(s.names))
	s.names = append(s.names, b[1:n]...)
	s.name = b[1:n]
	s.pending = closed
	s.pos += i + 1
	return startToken, nil
}

// nameAt reads a name that begins at b[i] and returns where it ends.
func (s *scanner) nameAt(b []byte, i int) (int, error) {
	if i >= len(b) {
		return 0, errMore
	}
	if !nameByte[b[i]] || b[i] == '-' || b[i] == '.' || b[i]-'0' <= 9 {
		return 0, s.fault(s.pos+i, "a name was expected")
	}
	for i < len(b) && nameByte[b[i]] {
		if b[i] < utf8.RuneSelf {
			i++
			continue
		}
		if !utf8.FullRune(b[i:]) {
			return 0, errMore
		}
		n := runeLen(b[i:])
		if n == 0 {
			return 0, s.fault(s.pos+i, "not a valid character of UTF-8")
		}
		i += n
	}
	if i >= len(b) {
		return 0, errMore
	}
	return i, nil
}

// attribute reads an attribute that begins at b[i] and returns where it ends.
func (s *scanner) attribute(b []byte, i int) (int, error) {
	n, err := s.nameAt(b, i)
	if err != nil {
		return 0, err
	}
	a := attr{name: b[i:n]}
	for n < len(b) && spaceByte[b[n]] {
		n++
	}
	if n < len(b) && b[n] != '=' {
		return 0, s.fault(s.pos+n, "an attribute without a value")
	}
	n++
	for n < len(b) && spaceByte[b[n]] {
		n++
	}
	if n >= len(b) {
		return 0, errMore
	}
	quote := b[n]
	if quote != '"' && quote != '\'' {
		return 0, s.fault(s.pos+n, "an attribute's value stands in quotes")
	}
	from := n + 1
	for n = from; n < len(b); {
		c := b[n]
		class := byteClass[c]
		switch {
		case class == plain:
			n++
			continue
		case c == quote:
			a.raw = b[from:n]
			for _, other := range s.attrs {
				if string(other.name) == string(a.name) {
					return 0, s.fault(s.pos+i, "an attribute stands twice")
				}
			}
			if len(s.attrs) == mostAttrs {
				return 0, s.fault(s.pos+i, "too many attributes")
			}
			s.attrs = append(s.attrs, a)
			return n + 1, nil
		case c == '"' || c == '\'' || c == '>':
			n++
		case c == '&':
			m := reference(b[n:])
			if m == 0 {
				if len(b)-n < mostReference && !s.eof {
					return 0, errMore
				}
				return 0, s.fault(s.pos+n, "a reference to something undefined")
			}
			n += m
			a.refs = true
		case class == multi:
			if !utf8.FullRune(b[n:]) {
				return 0, errMore
			}
			m := runeLen(b[n:])
			if m == 0 {
				return 0, s.fault(s.pos+n, "not a valid character of UTF-8")
			}
			n += m
		case c == '<':
			return 0, s.fault(s.pos+n, "a < inside an attribute")
		default:
			return 0, s.fault(s.pos+n, "a character that XML does not allow")
		}
	}
	return 0, errMore
}

func (s *scanner) endTag(b []byte) (int, error) {
	n, err := s.nameAt(b, 2)
	if err != nil {
		return 0, err
	}
	name := b[2:n]
	for n < len(b) && spaceByte[b[n]] {
		n++
	}
	if n >= len(b) {
		return 0, errMore
	}
	if b[n] != '>' {
		return 0, s.fault(s.pos+n, "an end tag holds a name only")
	}
	if len(s.opens) == 0 || string(name) != string(s.names[s.opens[len(s.opens)-1]:]) {
		return 0, s.here("an end tag that matches no start tag")
	}
	s.name = name
	s.attrs = s.attrs[:0]
	s.pos += n + 1
	s.pop()
	return endToken, nil
}

func (s *scanner) pop() {
	last := s.opens[len(s.opens)-1]
	s.opens = s.opens[:len(s.opens)-1]
	s.names = s.names[:last]
}

// instruction passes over <?...?>. The XML declaration must not name another
// encoding than UTF-8.
func (s *scanner) instruction(b []byte) error {
	stop := bytes.Index(b, []byte("?>"))
	if stop < 0 {
		return errMore
	}
	inside := b[2:stop]
	if err := s.opaque(inside, 2); err != nil {
		return err
	}
	n, err := s.nameAt(b, 2)
	if err != nil {
		return err
	}
	if target := b[2:n]; len(target) == 3 && bytes.EqualFold(target, []byte("xml")) {
		if s.base+int64(s.pos) != int64(s.first) {
			return s.here("an XML declaration inside the document")
		}
		if enc := declared(inside, "encoding"); enc != "" &&
			!strings.EqualFold(enc, "utf-8") && !strings.EqualFold(enc, "us-ascii") {
			return s.here("the encoding must be UTF-8")
		}
		if v := declared(inside, "version"); v != "1.0" {
			return s.here("the version of XML must be 1.0")
		}
	}
	s.pos += stop + 2
	return nil
}

// declared returns the value of a pseudo-attribute of an XML declaration.
func declared(b []byte, name string) string {
	_, rest, found := bytes.Cut(b, []byte(name))
	if !found {
		return ""
	}
	rest = bytes.TrimLeft(rest, " \t\r\n")
	if len(rest) == 0 || rest[0] != '=' {
		return ""
	}
	rest = bytes.TrimLeft(rest[1:], " \t\r\n")
	if len(rest) == 0 || rest[0] != '"' && rest[0] != '\'' {
		return ""
	}
	value, _, _ := bytes.Cut(rest[1:], rest[:1])
	return string(value)
}

// declaration passes over comments and the document type, and hands on the text of a
// CDATA section.
func (s *scanner) declaration(b []byte) error {
	const comment, cdata, doctype = "<!--", "<![CDATA[", "<!DOCTYPE"
	switch {
	case bytes.HasPrefix(b, []byte(comment)):
		stop := bytes.Index(b[4:], []byte("--"))
		if stop < 0 || stop+7 > len(b) {
			return errMore
		}
		if b[4+stop+2] != '>' {
			return s.fault(s.pos+4+stop, "-- inside a comment")
		}
		if err := s.opaque(b[4:4+stop], 4); err != nil {
			return err
		}
		s.pos += stop + 7
		return nil
	case bytes.HasPrefix(b, []byte(cdata)):
		if len(s.opens) == 0 {
			return s.here("text outside the document's element")
		}
		stop := bytes.Index(b, []byte("]]>"))
		if stop < 0 {
			return errMore
		}
		inside := b[len(cdata):stop]
		if err := s.opaque(inside, len(cdata)); err != nil {
			return err
		}
		if s.text != nil {
			s.text(inside)
		}
		s.pos += stop + 3
		return nil
	case bytes.HasPrefix(b, []byte(doctype)):
		if s.rooted {
			return s.here("a document type inside the document")
		}
		n, err := documentType(b[len(doctype):])
		if err != nil {
			return err
		}
		s.pos += len(doctype) + n
		return nil
	case len(b) < len(doctype):
		return errMore
	}
	return s.here("an unknown declaration")
}

// documentType returns how long the rest of a document type is: up to its >, and if
// it has an internal subset, up to the first ]> that stands in no comment and no
// quoted text of the subset. Declarations inside are not read.
func documentType(b []byte) (int, error) {
	subset := false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"' || c == '\'':
			n := bytes.IndexByte(b[i+1:], c)
			if n < 0 {
				return 0, errMore
			}
			i += n + 1
		case subset && bytes.HasPrefix(b[i:], []byte("<!--")):
			n := bytes.Index(b[i+4:], []byte("-->"))
			if n < 0 {
				return 0, errMore
			}
			i += 4 + n + 2
		case c == '[':
			subset = true
		case c == ']':
			rest := bytes.TrimLeft(b[i+1:], " \t\r\n")
			if len(rest) == 0 {
				return 0, errMore
			}
			if rest[0] == '>' {
				return len(b) - len(rest) + 1, nil
			}
		case c == '>' && !subset:
			return i + 1, nil
		}
	}
	return 0, errMore
}

// opaque checks the characters of what is passed over; at is where b begins after pos.
func (s *scanner) opaque(b []byte, at int) error {
	for i := 0; i < len(b); {
		switch {
		case byteClass[b[i]] == multi:
			n := runeLen(b[i:])
			if n == 0 {
				return s.fault(s.pos+at+i, "not a valid character of UTF-8")
			}
			i += n
		case byteClass[b[i]] == banned:
			return s.fault(s.pos+at+i, "a character that XML does not allow")
		default:
			i++
		}
	}
	return nil
}

// value returns an attribute's value with references replaced. It is valid until the
// next call of value or next.
func (s *scanner) value(a attr) []byte {
	if !a.refs {
		return a.raw
	}
	return s.expand(a.raw)
}

func (s *scanner) expand(b []byte) []byte {
	out := s.scratch[:0]
	for len(b) > 0 {
		if b[0] != '&' {
			n := bytes.IndexByte(b, '&')
			if n < 0 {
				n = len(b)
			}
			out = append(out, b[:n]...)
			b = b[n:]
			continue
		}
		n := reference(b)
		out = utf8.AppendRune(out, referenced(b[1:n-1]))
		b = b[n:]
	}
	s.scratch = out
	return out
}

// mostReference is the length of the longest reference that is understood.
const mostReference = 12

// reference returns the length of the reference that b begins with, 0 if there is no
// valid one.
func reference(b []byte) int {
	n := bytes.IndexByte(b[:min(len(b), mostReference)], ';')
	if n < 2 || referenced(b[1:n]) < 0 {
		return 0
	}
	return n + 1
}

// referenced returns the character of a reference, without its & and ;, or -1.
func referenced(name []byte) rune {
	switch string(name) {
	case "lt":
		return '<'
	case "gt":
		return '>'
	case "amp":
		return '&'
	case "quot":
		return '"'
	case "apos":
		return '\''
	}
	if len(name) < 2 || name[0] != '#' {
		return -1
	}
	digits, base := name[1:], 10
	if digits[0] == 'x' {
		digits, base = digits[1:], 16
	}
	v, err := strconv.ParseUint(string(digits), base, 32)
	if err != nil || v > utf8.MaxRune || !charAllowed(rune(v)) {
		return -1
	}
	return rune(v)
}

// charAllowed reports whether XML 1.0 allows a character.
func charAllowed(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || r >= 0x20 && r <= 0xd7ff ||
		r >= 0xe000 && r <= 0xfffd || r >= 0x10000 && r <= utf8.MaxRune
}

// runeLen returns the length of the character that b begins with, 0 if it is not
// valid UTF-8 or XML does not allow it.
func runeLen(b []byte) int {
	r, n := utf8.DecodeRune(b)
	if r == utf8.RuneError && n <= 1 || !charAllowed(r) {
		return 0
	}
	return n
}

// localName returns a name without its name space prefix.
func localName[T string | []byte](name T) string {
	s := string(name)
	return s[strings.IndexByte(s, ':')+1:]
}

// What a byte of text is.
const (
	plain  = iota // stands for itself
	markup        // < & > and quotes
	multi         // part of a longer character
	banned        // a control character
)

var byteClass, nameByte, spaceByte = tables()

func tables() (class [256]uint8, name, space [256]bool) {
	for c := range 256 {
		switch {
		case c >= utf8.RuneSelf:
			class[c] = multi
			name[c] = true
		case c == '<' || c == '&' || c == '>' || c == '"' || c == '\'':
			class[c] = markup
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			space[c] = true
		case c < ' ':
			class[c] = banned
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9',
			c == '_', c == ':', c == '-', c == '.':
			name[c] = true
		}
	}
	return class, name, space
}
