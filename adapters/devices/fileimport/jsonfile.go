package fileimport

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/healthlab-dev/healthlab"
)

// jsonFile streams a JSON file value by value, so that memory is limited by the largest value.
type jsonFile struct {
	out    *output
	format Format
	dec    *json.Decoder
	limit  *valueLimit
	mender *jsonMender
	read   int // number of values read
}

func newJSONFile(out *output, format Format, r io.Reader) *jsonFile {
	mender := newJSONMender(r)
	limit := &valueLimit{r: mender}
	limit.allow(int(out.opts.MaxRecordingBytes))
	if format == FHIR { // FHIR requires the complete records of a person
		limit.r = r
	}
	return &jsonFile{out: out, format: format, dec: json.NewDecoder(limit), limit: limit, mender: mender}
}

// valueLimit limits the size of a single value, in bytes, to limit the memory.
type valueLimit struct {
	r          io.Reader
	most, left int
}

func (l *valueLimit) allow(most int) { l.most, l.left = most, most }

// longValueError is the error of a value of more than this number of bytes.
type longValueError int

func (e longValueError) Error() string {
	return fmt.Sprintf("a value must have at most %d bytes", int(e))
}

// Read reads up to the limit, and returns an error beyond it.
func (l *valueLimit) Read(b []byte) (int, error) {
	if l.left <= 0 {
		return 0, longValueError(l.most)
	}
	n, err := l.r.Read(b[:min(len(b), l.left)])
	l.left -= n
	return n, err
}

// errShape is the error of a value of an unexpected JSON type. Only this value is left out.
var errShape = errors.New("value of another JSON type than the format requires")

// list calls do for each element of a list. n is the number of the element, from 1. do must read the element. A value
// that is not a list is skipped.
func (f *jsonFile) list(do func(n int) error) error {
	f.limit.allow(int(f.out.opts.MaxRecordingBytes))
	t, err := f.dec.Token()
	if err != nil {
		return err
	}
	if t != json.Delim('[') {
		f.out.countSkipped("value that is no list", 1)
		return f.skipRest(t)
	}
	for n := 1; f.dec.More(); n++ {
		if err := f.out.ctx.Err(); err != nil {
			return err
		}
		f.limit.allow(int(f.out.opts.MaxRecordingBytes))
		if err := do(n); err != nil {
			return err
		}
	}
	_, err = f.dec.Token()
	return err
}

// object calls do for each key of an object. do reads the value. A value that is not an object is skipped.
func (f *jsonFile) object(do func(key string) error) error {
	t, err := f.dec.Token()
	if err != nil {
		return err
	}
	if t != json.Delim('{') {
		f.out.countSkipped("value that is no object", 1)
		return f.skipRest(t)
	}
	for f.dec.More() {
		f.limit.allow(int(f.out.opts.MaxRecordingBytes))
		key, err := f.dec.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		if err := do(name); err != nil {
			return err
		}
	}
	_, err = f.dec.Token()
	return err
}

// skipRest skips the rest of a value whose first token was t.
func (f *jsonFile) skipRest(t json.Token) error {
	for depth := 0; ; {
		switch t {
		case json.Delim('['), json.Delim('{'):
			depth++
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
		if depth == 0 {
			return nil
		}
		var err error
		if t, err = f.dec.Token(); err != nil {
			return err
		}
	}
}

// value decodes the next value. It returns errShape for a value of another JSON type than into needs.
func (f *jsonFile) value(into any) error {
	err := f.dec.Decode(into)
	if errors.As(err, new(*json.UnmarshalTypeError)) {
		return errShape
	}
	if err == nil {
		f.read++
	}
	return err
}

func (f *jsonFile) skip() error {
	var any json.RawMessage
	return f.dec.Decode(&any)
}

// result returns the error of an import whose reading ended with err. If the JSON is broken, but some values were read,
// result returns nil and adds a note.
func (f *jsonFile) result(err error) error {
	var syntax *json.SyntaxError
	var long longValueError
	broken := errors.As(err, &syntax) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &long)
	why := "the JSON is cut or malformed"
	if long > 0 {
		why = long.Error()
	}
	switch {
	case f.out.ctx.Err() != nil, errors.As(err, new(*FileError)), errors.As(err, new(*sinkError)):
		return err
	case err != nil && !broken:
		return fmt.Errorf("read file: %w", err)
	case f.read == 0 && (broken || f.mender.cut || f.mender.left > 0):
		return &FileError{Format: f.format, Offset: f.dec.InputOffset(), Msg: "nothing can be imported: " + why}
	}
	if f.mender.left > 0 {
		f.out.countSkipped("item that is not valid JSON", f.mender.left)
		f.out.note("items that are not valid JSON are left out and counted")
	}
	if broken || f.mender.cut {
		f.out.countSkipped("rest of a file that is not valid JSON", 1)
		f.out.note(fmt.Sprintf("byte %d: %s; what stands before is read", f.dec.InputOffset(), why))
	}
	return nil
}

// itemOf decodes one element of a list; nil if its JSON type is not that of T. It accepts a number in quotes as a
// number, and a number in place of a text (Unix time) as its digits.
func itemOf[T any](raw json.RawMessage) *T {
	for range mostMistyped {
		var v T
		var other *json.UnmarshalTypeError
		err := json.Unmarshal(raw, &v)
		if err == nil && string(raw) != "null" {
			return &v
		}
		if !errors.As(err, &other) {
			return nil
		}
		var ok bool
		if raw, ok = retyped(raw, strings.Split(other.Field, "."), other.Type.Kind()); !ok {
			return nil
		}
	}
	return nil
}

// mostMistyped is the number of attempts of itemOf to decode one element. After a failed attempt it converts one value
// of an unexpected JSON type.
const mostMistyped = 32

// retyped returns an object in which the value at a path is converted to the expected kind. It returns false if the
// value cannot be converted.
func retyped(raw json.RawMessage, field []string, kind reflect.Kind) (json.RawMessage, bool) {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil || len(field) == 0 {
		return nil, false
	}
	for name, value := range object {
		if !strings.EqualFold(name, field[0]) {
			continue
		}
		var text string
		var number json.Number
		switch {
		case len(field) > 1:
			inner, ok := retyped(value, field[1:], kind)
			if !ok {
				return nil, false
			}
			object[name] = inner
		case kind == reflect.Float64 && json.Unmarshal(value, &text) == nil:
			n, ok := healthlab.ParseNumber(text)
			if !ok {
				return nil, false
			}
			object[name] = strconv.AppendFloat(nil, n, 'g', -1, 64)
		case kind == reflect.String && json.Unmarshal(value, &number) == nil:
			object[name] = json.RawMessage(strconv.Quote(number.String()))
		default:
			return nil, false
		}
		out, err := json.Marshal(object)
		return out, err == nil
	}
	return nil, false
}
