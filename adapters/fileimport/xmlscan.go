package fileimport

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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

	// The element that next has just found.
	name    []byte
	attrs   []attr
	pending bool // it was <x/>: its end has not been told yet

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
	scanBuffer  = 64 << 10
	mostTag     = 1 << 20 // bytes of one tag, comment or text between tags
	mostDepth   = 100
	mostAttrs   = 64
	startToken  = 1
	endToken    = 2
	endOfStream = 0
)

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

// line returns the line of the current element, from 1.
func (s *scanner) line() int { return s.lines + bytes.Count(s.buf[:s.pos], []byte{'\n'}) + 1 }

// here is a problem of the current element.
func (s *scanner) here(msg string) error { return s.fault(s.pos, msg) }

// fill reads more, after what is unread. At the end of the file it returns io.EOF, and
// sets eof.
func (s *scanner) fill() error {
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
		if !s.eof {
			if err := s.fill(); err != nil && !errors.Is(err, io.EOF) {
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
		case !allSpace(s.buf[s.pos:s.end]):
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
		}
	}
	b := s.buf[s.pos:s.end]
	lt := bytes.IndexByte(b, '<')
	if lt < 0 {
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
	if b[n] != '"' && b[n] != '\'' {
		return 0, s.fault(s.pos+n, "an attribute's value stands in quotes")
	}
	end, refs, err := s.quoted(b, n)
	if err != nil {
		return 0, err
	}
	a.raw, a.refs = b[n+1:end-1], refs
	for _, other := range s.attrs {
		if string(other.name) == string(a.name) {
			return 0, s.fault(s.pos+i, "an attribute stands twice")
		}
	}
	if len(s.attrs) == mostAttrs {
		return 0, s.fault(s.pos+i, "too many attributes")
	}
	s.attrs = append(s.attrs, a)
	return end, nil
}

// quoted reads a quoted value that begins at b[n]. It returns where it ends, behind the
// closing quote, and whether it holds references.
func (s *scanner) quoted(b []byte, n int) (end int, refs bool, err error) {
	quote := b[n]
	for n++; n < len(b); {
		c := b[n]
		switch class := byteClass[c]; {
		case class == plain:
			n++
		case c == quote:
			return n + 1, refs, nil
		case c == '"' || c == '\'' || c == '>':
			n++
		case c == '&':
			m := reference(b[n:])
			if m == 0 {
				if len(b)-n < mostReference && !s.eof {
					return 0, false, errMore
				}
				return 0, false, s.fault(s.pos+n, "a reference to something undefined")
			}
			n += m
			refs = true
		case class == multi:
			if !utf8.FullRune(b[n:]) {
				return 0, false, errMore
			}
			m := runeLen(b[n:])
			if m == 0 {
				return 0, false, s.fault(s.pos+n, "not a valid character of UTF-8")
			}
			n += m
		case c == '<':
			return 0, false, s.fault(s.pos+n, "a < inside an attribute")
		default:
			return 0, false, s.fault(s.pos+n, "a character that XML does not allow")
		}
	}
	return 0, false, errMore
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
	stop := bytes.Index(b[2:], []byte("?>"))
	if stop < 0 {
		return errMore
	}
	stop += 2
	inside := b[2:stop]
	if err := s.opaque(inside, 2); err != nil {
		return err
	}
	n, err := s.nameAt(b, 2)
	if err != nil {
		return err
	}
	if target := b[2:n]; len(target) == 3 && bytes.EqualFold(target, []byte("xml")) {
		if s.rooted {
			return s.here("an XML declaration inside the document")
		}
		if enc := declared(inside, "encoding"); !utf8Encoding(enc) && charsetOf(enc) == nil {
			return s.here("the encoding must be UTF-8, UTF-16, ISO-8859-1 or windows-1252")
		}
		if v := declared(inside, "version"); v != "1.0" && v != "1.1" {
			return s.here("the version of XML must be 1.0 or 1.1")
		}
	}
	s.pos += stop + 2
	return nil
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
