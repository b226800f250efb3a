package fileimport

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// A scanner reads XML 1.0 as a stream of elements, in one buffer whose size does not depend on the file. It reads
// well-formed XML as encoding/xml does. From malformed XML it drops only the malformed part, and reports it: it
// drops characters that XML does not allow and undefined references, returns an element with a broken tag without
// attributes, skips end tags without a start tag, and accepts a file that ends early. It skips the internal document
// type subset.
//
// It knows only the five predefined entities, so that no file can expand to fill the memory.
type scanner struct {
	r      io.Reader
	format Format

	buf      []byte
	pos, end int
	eof      bool
	base     int64 // offset of buf[0] in the file
	lines    int   // number of newlines before buf[0]

	names []byte // names of the open elements, one after another
	opens []int  // start of each name in names

	rooted  bool // the root element has begun
	started bool // the prolog has begun

	// The element of which next last returned the start or the end.
	name    []byte
	attrs   []attr
	pending bool // the element was self-closing, and next has yet to return its end

	bad bool // the start tag is malformed, so attrs is empty

	parents map[string]string // element that cannot nest → names of its possible parents, between spaces
	told    func(what string) // called with a description of each malformed part; may be nil
	dirty   bool              // the start tag contains characters or references that must be dropped
	text    func([]byte)      // called with the text between tags, references replaced; may be nil
	scratch []byte
}

// attr is an attribute. Both parts point into the scanner's buffer and are valid until
// the next call of next.
type attr struct {
	name, raw []byte
	refs      bool // raw contains references
}

const (
	scanBuffer  = 64 << 10
	mostTag     = 1 << 20 // largest size of a tag, a comment or a text between tags
	mostDepth   = 100
	mostAttrs   = 64
	startToken  = 1
	endToken    = 2
	endOfStream = 0
)

func newScanner(r io.Reader, format Format) *scanner {
	return &scanner{r: r, format: format, buf: make([]byte, scanBuffer)}
}

// errMore means that a token is not completely in the buffer.
var errMore = errors.New("more input needed")

// fault returns a FileError for the position at in the buffer.
func (s *scanner) fault(at int, msg string) error {
	at = min(at, s.end)
	return &FileError{
		Format: s.format,
		Offset: s.base + int64(at),
		Line:   s.lines + bytes.Count(s.buf[:at], []byte{'\n'}) + 1,
		Msg:    msg,
	}
}

func (s *scanner) line() int { return s.lines + bytes.Count(s.buf[:s.pos], []byte{'\n'}) + 1 }

func (s *scanner) errorHere(msg string) error { return s.fault(s.pos, msg) }

// fill reads more bytes into the buffer. At the end of the file it returns io.EOF and sets eof.
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
			return s.fault(0, fmt.Sprintf("a tag, comment or text must have at most %d bytes", mostTag))
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

// next returns startToken or endToken for the next start or end of an element, whose name and attributes are in s, and
// endOfStream at the end of the document.
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
		case !s.rooted:
			return 0, s.fault(s.end, "the file must have an XML root element")
		case len(s.opens) > 0 || s.pos < s.end && s.buf[s.pos] == '<':
			s.reportMalformed("the end of the file: it ends before its elements do")
		case !allSpace(s.buf[s.pos:s.end]):
			s.reportMalformed(textOutside)
		}
		s.pos = s.end
		return endOfStream, nil
	}
}

// textOutside is reported for text before or after the root element.
const textOutside = "text outside the root element"

func (s *scanner) reportMalformed(what string) {
	if s.told != nil {
		s.told(what)
	}
}

// step reads one token. It returns 0 and no error for a token that is not a tag. If the token is not completely in the
// buffer, it consumes nothing and returns errMore.
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

// chars checks a text between tags, and passes it to s.text.
func (s *scanner) chars(b []byte) error {
	if allSpace(b) && (s.text == nil || len(s.opens) == 0) {
		return nil
	}
	if len(s.opens) == 0 {
		s.reportMalformed(textOutside)
		return nil
	}
	refs, dirty := false, false
	for i := 0; i < len(b); {
		switch class := byteClass[b[i]]; {
		case class == plain || b[i] == '"' || b[i] == '\'' || b[i] == '>':
			dirty = dirty || b[i] == '>' && i >= 2 && b[i-1] == ']' && b[i-2] == ']'
			i++
		case b[i] == '&':
			n := reference(b[i:])
			refs, dirty = true, dirty || n == 0
			i += max(n, 1)
		case class == multi:
			n := runeLen(b[i:])
			dirty = dirty || n == 0
			i += max(n, 1)
		default:
			dirty = true
			i++
		}
	}
	if dirty {
		s.reportMalformed(badCharacter)
	}
	if s.text != nil {
		if refs || dirty {
			b = s.expand(b)
		}
		s.text(b)
	}
	return nil
}

// badCharacter is reported for dropped characters and references.
const badCharacter = "character or reference that XML does not allow"

// skipRest skips the rest of the document. It returns errMore at the end of the file.
func (s *scanner) skipRest() error {
	s.pos = s.end
	for !s.eof {
		if err := s.fill(); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		s.pos = s.end
	}
	return errMore
}

// startTag reads a start tag. It skips a malformed tag up to its end, or up to the start of another tag.
func (s *scanner) startTag(b []byte) (int, error) {
	n, err := s.nameAt(b, 1)
	if errors.Is(err, errMore) {
		return 0, err
	}
	if err != nil {
		s.reportMalformed("< that begins no tag")
		s.pos++
		return 0, nil //nolint:nilerr // the fault is already reported
	}
	if len(s.opens) == 0 && s.rooted {
		s.reportMalformed("element after the end of the root element")
		return 0, s.skipRest()
	}
	if len(s.opens) >= mostDepth {
		return 0, s.errorHere(fmt.Sprintf("elements must be nested at most %d levels deep", mostDepth))
	}
	if s.unclosed(b[1:n]) {
		s.reportMalformed("element without its end tag")
		last := len(s.opens) - 1
		s.name, s.attrs = bytes.Clone(s.nameOf(last)), s.attrs[:0]
		s.pop()
		return endToken, nil
	}
	s.attrs, s.bad, s.dirty = s.attrs[:0], false, false
	i, closed, err := s.tagRest(b, n)
	var broken *FileError
	if errors.As(err, &broken) {
		end := bytes.IndexAny(b[n:], "<>")
		switch {
		case end < 0:
			return 0, errMore
		case b[n+end] == '<':
			s.reportMalformed("tag that cannot be read")
			s.pos += n + end
			return 0, nil
		}
		i = n + end + 1
		closed = b[i-2] == '/'
		s.attrs, s.bad, s.dirty, err = s.attrs[:0], true, false, nil
	}
	if err != nil {
		return 0, err
	}
	if s.dirty {
		s.reportMalformed(badCharacter)
	}
	if s.bad {
		s.reportMalformed("tag that cannot be read")
	}
	s.rooted = true
	s.opens = append(s.opens, len(s.names))
	s.names = append(s.names, b[1:n]...)
	s.name = b[1:n]
	s.pending = closed
	s.pos += i
	return startToken, nil
}

// tagRest reads attributes from b[i] on, and returns the end of the tag and whether the tag is self-closing.
func (s *scanner) tagRest(b []byte, i int) (end int, closed bool, err error) {
	for {
		space := i
		for i < len(b) && spaceByte[b[i]] {
			i++
		}
		if i >= len(b) {
			return 0, false, errMore
		}
		if b[i] == '>' || b[i] == '/' {
			break
		}
		if i == space {
			return 0, false, s.fault(s.pos+i, "a space is missing before an attribute")
		}
		if i, err = s.attribute(b, i); err != nil {
			return 0, false, err
		}
	}
	closed = b[i] == '/'
	if closed {
		if i++; i >= len(b) {
			return 0, false, errMore
		}
		if b[i] != '>' {
			return 0, false, s.fault(s.pos+i, "a slash inside a tag must be before its end")
		}
	}
	return i + 1, closed, nil
}

// nameAt reads a name at b[i] and returns its end.
func (s *scanner) nameAt(b []byte, i int) (int, error) {
	if i >= len(b) {
		return 0, errMore
	}
	if !nameByte[b[i]] || b[i] == '-' || b[i] == '.' || b[i]-'0' <= 9 {
		return 0, s.fault(s.pos+i, "a name must begin with a letter, an underscore or a colon")
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

// attribute reads an attribute at b[i] and returns its end.
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
		return 0, s.fault(s.pos+n, "the value of an attribute must be in quotes")
	}
	end, refs, err := s.quoted(b, n)
	if err != nil {
		return 0, err
	}
	a.raw, a.refs = b[n+1:end-1], refs
	for _, other := range s.attrs {
		if string(other.name) == string(a.name) {
			return 0, s.fault(s.pos+i, "an attribute occurs twice")
		}
	}
	if len(s.attrs) == mostAttrs {
		return 0, s.fault(s.pos+i, fmt.Sprintf("an element must have at most %d attributes", mostAttrs))
	}
	s.attrs = append(s.attrs, a)
	return end, nil
}

// quoted reads a quoted value that begins at b[n]. It returns the position after the closing quote, and whether the
// value contains references.
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
				s.dirty = true
			}
			n += max(m, 1)
			refs = true
		case class == multi:
			if !utf8.FullRune(b[n:]) {
				return 0, false, errMore
			}
			m := runeLen(b[n:])
			if m == 0 {
				s.dirty, refs = true, true
			}
			n += max(m, 1)
		case c == '<':
			return 0, false, s.fault(s.pos+n, "the character < inside an attribute must be escaped")
		default:
			s.dirty, refs = true, true
			n++
		}
	}
	return 0, false, errMore
}

// endTag reads an end tag. Elements inside that have no end tag are ended first, one per call. An end tag without a
// start tag is skipped.
func (s *scanner) endTag(b []byte) (int, error) {
	end := bytes.IndexByte(b, '>')
	if end < 0 {
		return 0, errMore
	}
	name := bytes.TrimRight(b[2:end], " \t\r\n")
	open := len(s.opens) - 1
	for open >= 0 && string(name) != string(s.nameOf(open)) {
		open--
	}
	if open < 0 {
		s.reportMalformed("end tag that matches no start tag")
		s.pos += end + 1
		return 0, nil
	}
	s.attrs = s.attrs[:0]
	if last := len(s.opens) - 1; open < last {
		s.reportMalformed("element without its end tag")
		s.name = bytes.Clone(s.nameOf(last))
		s.pop()
		return endToken, nil
	}
	s.name = name
	s.pos += end + 1
	s.pop()
	return endToken, nil
}

// unclosed reports whether the innermost open element lacks its end tag, judging by a start tag of the given name. That
// is so if an element of that name, which cannot nest, is open, or if a possible parent of it is open but not
// innermost.
func (s *scanner) unclosed(name []byte) bool {
	parents, known := s.parents[string(name)]
	if !known {
		return false
	}
	last := len(s.opens) - 1
	for i := last; i >= 0; i-- {
		open := s.nameOf(i)
		if string(open) == string(name) {
			return true
		}
		if strings.Contains(parents, " "+string(open)+" ") {
			return i < last
		}
	}
	return false
}

// nameOf returns the name of the open element at depth i, from 0.
func (s *scanner) nameOf(i int) []byte {
	end := len(s.names)
	if i+1 < len(s.opens) {
		end = s.opens[i+1]
	}
	return s.names[s.opens[i]:end]
}

func (s *scanner) pop() {
	last := s.opens[len(s.opens)-1]
	s.opens = s.opens[:len(s.opens)-1]
	s.names = s.names[:last]
}

// instruction skips <?...?>. It fails if an XML declaration names an unsupported encoding.
func (s *scanner) instruction(b []byte) error {
	stop := bytes.Index(b[2:], []byte("?>"))
	if lt := bytes.IndexByte(b[2:], '<'); lt >= 0 && (stop < 0 || lt < stop) {
		s.reportMalformed("processing instruction that cannot be read")
		s.pos += 2 + lt
		return nil
	}
	if stop < 0 {
		return errMore
	}
	inside := b[2 : stop+2]
	n, err := s.nameAt(b, 2)
	if err != nil || s.hasInvalidCharacters(inside) {
		s.reportMalformed("processing instruction that cannot be read")
	} else if target := b[2:n]; len(target) == 3 && bytes.EqualFold(target, []byte("xml")) {
		enc := declared(inside, "encoding")
		switch {
		case s.rooted:
			s.reportMalformed("XML declaration inside the document")
		case !utf8Encoding(enc) && charsetOf(enc) == nil:
			return s.errorHere("the encoding must be UTF-8, UTF-16, ISO-8859-1 or windows-1252")
		case declared(inside, "version") != "1.0":
			s.reportMalformed("XML declaration of another version than 1.0")
		}
	}
	s.pos += stop + 4
	return nil
}

// declaration skips comments and the document type, and passes the text of a CDATA section to s.text.
func (s *scanner) declaration(b []byte) error {
	const comment, cdata, doctype = "<!--", "<![CDATA[", "<!DOCTYPE"
	switch {
	case bytes.HasPrefix(b, []byte(comment)):
		stop := bytes.Index(b[4:], []byte("-->"))
		if stop < 0 {
			return errMore
		}
		if inside := b[4 : 4+stop]; s.hasInvalidCharacters(inside) || bytes.Contains(inside, []byte("--")) || bytes.HasSuffix(inside, []byte("-")) {
			s.reportMalformed("comment that is not well formed")
		}
		s.pos += stop + 7
		return nil
	case bytes.HasPrefix(b, []byte(cdata)):
		stop := bytes.Index(b, []byte("]]>"))
		if stop < 0 {
			return errMore
		}
		inside := b[len(cdata):stop]
		if s.hasInvalidCharacters(inside) {
			s.reportMalformed(badCharacter)
			inside = appendXMLChars(nil, inside)
		}
		if len(s.opens) == 0 {
			s.reportMalformed(textOutside)
		} else if s.text != nil {
			s.text(inside)
		}
		s.pos += stop + 3
		return nil
	case bytes.HasPrefix(b, []byte(doctype)):
		if s.rooted {
			s.reportMalformed("document type inside the document")
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
	end := bytes.IndexByte(b, '>')
	if end < 0 {
		return errMore
	}
	s.reportMalformed("declaration that is unknown")
	s.pos += end + 1
	return nil
}

// hasInvalidCharacters reports whether a text contains characters that XML does not allow.
func (s *scanner) hasInvalidCharacters(b []byte) bool {
	for i := 0; i < len(b); {
		switch {
		case byteClass[b[i]] == multi:
			n := runeLen(b[i:])
			if n == 0 {
				return true
			}
			i += n
		case byteClass[b[i]] == banned:
			return true
		default:
			i++
		}
	}
	return false
}

// appendXMLChars appends those characters of b to out that XML allows.
func appendXMLChars(out, b []byte) []byte {
	for i := 0; i < len(b); {
		n := 1
		switch byteClass[b[i]] {
		case banned:
			n = 0
		case multi:
			n = runeLen(b[i:])
		}
		out = append(out, b[i:i+n]...)
		i += max(n, 1)
	}
	return out
}

func (s *scanner) value(a attr) []byte {
	// The text is valid until the next call of value or next.
	if !a.refs {
		return a.raw
	}
	return s.expand(a.raw)
}

// expand returns b with references replaced. Undefined references and characters that XML does not allow are dropped.
// An & that begins no reference is kept.
func (s *scanner) expand(b []byte) []byte {
	out := s.scratch[:0]
	for len(b) > 0 {
		if b[0] != '&' {
			n := bytes.IndexByte(b, '&')
			if n < 0 {
				n = len(b)
			}
			out = appendXMLChars(out, b[:n])
			b = b[n:]
			continue
		}
		n := reference(b)
		if n > 0 {
			out = utf8.AppendRune(out, referenced(b[1:n-1]))
		} else if n = 1 + bytes.IndexByte(b[:min(len(b), mostReference)], ';'); n < 2 || bytes.ContainsAny(b[:n], " \t\r\n<>\"'") {
			n = 1
			out = append(out, '&')
		}
		b = b[n:]
	}
	s.scratch = out
	return out
}
