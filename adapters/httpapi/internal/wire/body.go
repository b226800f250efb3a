package wire

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Body decodes the required JSON body into *v; see [Decode] for the rules of the type.
func (in *In) Body(v any) {
	if !in.OptBody(v) && in.fault == nil && len(in.problems) == 0 {
		in.problems.Add("missing", "is required", "body")
	}
}

// OptBody is [In.Body] for a body that may be absent. It reports whether the request has a body.
func (in *In) OptBody(v any) bool {
	data := in.Raw()
	if in.fault != nil || len(data) == 0 || in.settings.NullBody && string(bytes.TrimSpace(data)) == "null" {
		return false
	}
	in.data = data
	in.problems.Under(in.decode(v), "body")
	return true
}

// Items is [In.Body] for an upload with a list of items, of which invalid ones do not make the upload fail. An invalid
// element of a field tagged items is left out, an invalid element of a field tagged points is zero, and unparsed lists
// both. If the body has other problems, Err reports those of the elements too.
func (in *In) Items(v any) (unparsed *healthdata.Unparsed) {
	in.unparsed = &healthdata.Unparsed{}
	in.Body(v)
	return in.unparsed
}

func (in *In) decode(v any) healthlab.Problems {
	if in.unparsed != nil {
		*in.unparsed = healthdata.Unparsed{}
	}
	problems := Decode(in.data, v, Options{IgnoreUnknown: in.settings.IgnoreUnknown, IgnoreReadOnly: in.settings.IgnoreReadOnly, Unparsed: in.unparsed})
	in.confine(v)
	return problems
}

// BodyAgain decodes the body of [In.Body] into another value of the same type, for a handler that runs again after it
// has changed the first value.
func (in *In) BodyAgain(v any) error { return in.decode(v).Err() }

// Raw returns the bytes of a JSON body; nil if the request has no body or it could not be read.
func (in *In) Raw() []byte {
	in.settings.body = true
	data, fault := in.read()
	if fault != nil {
		in.fault = fault
		return nil
	}
	return data
}

// Whole returns the bytes of a body of any media type, such as a message from a provider. It returns nil if the request
// has no body, or if the body could not be read.
func (in *In) Whole() []byte {
	in.settings.body = true
	data, fault := in.drain()
	if fault != nil {
		in.fault = fault
		return nil
	}
	return data
}

func (in *In) read() ([]byte, *Fault) {
	if in.r.ContentLength > in.settings.MaxBody {
		return nil, tooLarge(in.settings.MaxBody)
	}
	kind := in.r.Header.Get("Content-Type")
	if kind != "" && !isJSON(in.r.Header.Values("Content-Type")) {
		return nil, unsupported("the body must be application/json in UTF-8")
	}
	data, fault := in.drain()
	switch {
	case fault != nil || len(data) < 2:
	case data[0] == 0x1f && data[1] == 0x8b, bytes.HasPrefix(data, []byte("\x28\xb5\x2f\xfd")):
		return nil, unsupported("a compressed body needs the header content-encoding: gzip or zstd")
	case kind == "":
		return nil, unsupported("a body needs the content-type application/json")
	case data[0] == 0, data[1] == 0, data[0] >= 0xfe: // UTF-16 or UTF-32
		return nil, unsupported("the body must be application/json in UTF-8")
	}
	// Some clients send a byte order mark first, which a parser may ignore (RFC 8259, section 8.1).
	return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), fault
}

// ReadBody reads the whole body of a request, with the settings that [With] has attached to it.
func ReadBody(r *http.Request) ([]byte, error) {
	in := From(r)
	in.settings.body = true
	data, fault := in.drain()
	if fault != nil {
		return nil, fault
	}
	return data, nil
}

func (in *In) drain() ([]byte, *Fault) {
	limit := in.settings.MaxBody
	if in.r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	data, err := readAll(bodyOf(in.r), in.r.ContentLength)
	if err != nil {
		return nil, bodyFault(err, limit)
	}
	return data, nil
}

// readAll reads to the end. Until a quarter of the declared length has arrived, it allocates little, because a
// caller may declare a length and send nothing.
func readAll(r io.Reader, length int64) ([]byte, error) {
	room := int(max(length, 0)) + bytes.MinRead // the end of the body is found by one more read
	b := make([]byte, 0, min(room, 1<<20))
	for {
		if len(b) == cap(b) {
			want := 2 * cap(b)
			if len(b) < room {
				want = min(room, 4*cap(b))
			}
			b = slices.Grow(b, want-len(b))
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// ListItems returns the elements of a header with comma-separated values. lines are the lines of the header. A comma
// between quotes is part of an element.
func ListItems(lines []string) []string {
	quoted, escaped := false, false
	return strings.FieldsFunc(strings.Join(lines, ","), func(r rune) bool {
		switch {
		case escaped:
			escaped = false
		case quoted && r == '\\':
			escaped = true
		case r == '"':
			quoted = !quoted
		}
		return r == ',' && !quoted
	})
}

// isJSON reports whether a Content-Type is application/json or ends in +json, in UTF-8 or ASCII, which is part of
// UTF-8. It ignores parameters other than charset. If the header occurs more than once, all must be JSON.
func isJSON(contentType []string) bool {
	for _, one := range ListItems(contentType) {
		kind, params, _ := strings.Cut(strings.ToLower(one), ";")
		kind = strings.TrimSpace(kind)
		if kind != "application/json" && !(strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")) {
			return false
		}
		for param := range strings.SplitSeq(params, ";") {
			name, charset, _ := strings.Cut(param, "=")
			if strings.TrimSpace(name) == "charset" && !slices.Contains(charsets, strings.Trim(charset, " \t\"'")) {
				return false
			}
		}
	}
	return true
}

// charsets lists the accepted charsets of a JSON body, in lower case, in the spellings that clients use. The empty
// one stands for a Content-Type without a charset.
var charsets = []string{"", "utf-8", "utf8", "utf_8", "us-ascii", "ascii"}

func bodyOf(r *http.Request) io.ReadCloser {
	if r.Body == nil {
		return http.NoBody
	}
	return r.Body
}
