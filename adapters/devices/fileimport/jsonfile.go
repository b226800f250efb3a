package fileimport

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// jsonFile streams a JSON file value by value, so that memory is limited by the largest value.
type jsonFile struct {
	out    *output
	format Format
	dec    *json.Decoder
	limit  *rowLimit
	read   int // values that were read
}

func newJSONFile(out *output, format Format, r io.Reader) *jsonFile {
	limit := &rowLimit{r: r, left: int(out.opts.MaxRecordingBytes)}
	return &jsonFile{out: out, format: format, dec: json.NewDecoder(limit), limit: limit}
}

// errShape is the error of a value of an unexpected kind. Only this value is left out.
var errShape = errors.New("value of another JSON type than the format requires")

// list calls do for each value of a list. A value that is no list is read over.
func (f *jsonFile) list(do func(n int) error) error {
	f.limit.left = int(f.out.opts.MaxRecordingBytes)
	t, err := f.dec.Token()
	if err != nil {
		return err
	}
	if t != json.Delim('[') {
		f.out.leaveOut("value that is no list", 1)
		return f.over(t)
	}
	for n := 1; f.dec.More(); n++ {
		if err := f.out.ctx.Err(); err != nil {
			return err
		}
		f.limit.left = int(f.out.opts.MaxRecordingBytes)
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
		f.out.leaveOut("value that is no object", 1)
		return f.over(t)
	}
	for f.dec.More() {
		f.limit.left = int(f.out.opts.MaxRecordingBytes)
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

// over skips the rest of a value that began with t.
func (f *jsonFile) over(t json.Token) error {
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

// value decodes the next value. It returns errShape for a value of another kind.
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

// result converts a reading error. Data before the error is kept.
func (f *jsonFile) result(err error) error {
	var syntax *json.SyntaxError
	switch {
	case err == nil, f.out.ctx.Err() != nil, errors.As(err, new(*FileError)), errors.As(err, new(*sinkError)):
		return err
	case !errors.As(err, &syntax) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, errLongRow):
		return fmt.Errorf("read file: %w", err)
	case f.read == 0:
		return &FileError{Format: f.format, Offset: f.dec.InputOffset(), Msg: "the file must be JSON of this format, and no value may be too long"}
	}
	f.out.leaveOut("rest of a file that is not JSON", 1)
	f.out.note(fmt.Sprintf("byte %d: the JSON is broken or a value is too long; what stands before is read", f.dec.InputOffset()))
	return nil
}

// itemOf decodes one item of a list; nil if it is of another kind.
func itemOf[T any](raw json.RawMessage) *T {
	var v T
	if string(raw) == "null" || json.Unmarshal(raw, &v) != nil {
		return nil
	}
	return &v
}
