package wire

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// In reads one request: path, query, headers and body. A method returns the zero value or the default if the value has
// a problem; [In.Err] returns all problems. A query parameter without a value counts as absent. Not safe for concurrent
// use.
type In struct {
	r        *http.Request
	settings *Settings
	query    url.Values
	data     []byte               // body that OptBody has read
	unparsed *healthdata.Unparsed // invalid items, if Items has read the body; else nil
	fault    *Fault
	problems healthlab.Problems
}

// Settings are the limits and switches for reading one HTTP request. The code that calls a handler attaches them to
// the request by [With].
type Settings struct {
	// MaxBody is the largest body, in bytes, that the text of a 413 names. This package does not enforce it. Default
	// 1 MiB.
	MaxBody int64
	// IgnoreUnknown ignores unknown keys of the body and the query.
	IgnoreUnknown bool
	// IgnoreReadOnly ignores keys of fields that are tagged out, which only answers have.
	IgnoreReadOnly bool
	// NullBody treats the body null as an absent body.
	NullBody bool
	// Own is the only user for whom the caller may act; zero if there is no such limit. Ids of other users in a body
	// are replaced by ids that do not exist.
	Own healthlab.UserID
	// Placed is true if paths of the handler's problems may begin with query, path, header or body. Otherwise
	// [Settings.Place] adds that element.
	Placed bool

	names map[string]string // maps names that the handler has read to query, path or header
	body  bool              // true after the handler has read the body

	replaced []string // alternates ids that do not exist and the sent ids that they replace
}

type settingsKey struct{}

// With returns a request that carries s. The caller must not use s for another request.
func With(r *http.Request, s *Settings) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), settingsKey{}, s))
}

// DefaultMaxBody is the default of Settings.MaxBody.
const DefaultMaxBody = 1 << 20

// From returns the reader of a request. It must be called once per request.
func From(r *http.Request) *In {
	s, _ := r.Context().Value(settingsKey{}).(*Settings)
	if s == nil {
		s = &Settings{}
		r.Body = http.MaxBytesReader(nil, bodyOf(r), DefaultMaxBody)
	}
	if s.MaxBody <= 0 {
		s.MaxBody = DefaultMaxBody
	}
	s.names = map[string]string{}
	in := &In{r: r, settings: s}
	var err error
	if in.query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		in.problems.Add("query_invalid", "must be a well-formed query string: two hexadecimal digits after each %, and no unescaped semicolon", "query")
	}
	for name, values := range in.query { // many clients write null for an absent parameter
		in.query[name] = slices.DeleteFunc(values, func(v string) bool { return v == "" })
	}
	return in
}

// Request returns the underlying request.
func (in *In) Request() *http.Request { return in.r }

// Problem records a problem that the handler found. The first element of the path must be "query", "path", "header" or
// "body".
func (in *In) Problem(code, msg string, path ...any) { in.problems.Add(code, msg, path...) }

// NotEmpty records a problem if a text field of the body is present and empty. name is the key of the field.
func (in *In) NotEmpty(name string, v *string) {
	if v != nil && *v == "" {
		in.Problem("empty", "must not be empty", "body", name)
	}
}

func (in *In) add(code, msg, place, name string, ctx map[string]any) {
	in.problems = append(in.problems, healthlab.Problem{
		Path: []any{place, name}, Code: code, Msg: msg, Context: ctx,
	})
}

// Err returns all problems of the request as an [*InputError]; nil if there are none. It must be called after the last
// read, because it reports query parameters that were not read as unknown. If the body could not be read, it returns a
// [*Fault].
func (in *In) Err() error {
	if in.fault != nil {
		return in.fault
	}
	if !in.settings.IgnoreUnknown {
		var unknown []string
		for name := range in.query {
			if in.settings.names["query "+name] == "" {
				unknown = append(unknown, truncateKey(text{raw: []byte(name)}))
			}
		}
		slices.Sort(unknown)
		for _, name := range unknown {
			in.add("unknown_parameter", "is not a parameter of this operation", "query", name, nil)
		}
	}
	if len(in.problems) == 0 {
		return nil
	}
	return &InputError{Problems: in.problems}
}

// ErrAnd is [In.Err] with the problems that check finds. It calls check only if the request has problems and its values
// could be read; a service checks valid requests itself. It leaves out problems of values that Err reports too.
func (in *In) ErrAnd(check func() error) error {
	err := in.Err()
	if err == nil || in.fault != nil || slices.ContainsFunc(in.problems, unreadable) {
		return err
	}
	var more *healthlab.InvalidError
	if !errors.As(check(), &more) {
		return err
	}
	found := slices.Clone(in.problems)
	for _, p := range more.Problems {
		p.Path = in.settings.Place(p.Path)
		if !slices.ContainsFunc(in.problems, func(known healthlab.Problem) bool { return within(known.Path, p.Path) || within(p.Path, known.Path) }) {
			found = append(found, p)
		}
	}
	return &InputError{Problems: found}
}

func unreadable(p healthlab.Problem) bool {
	return strings.HasPrefix(p.Code, "json_") || p.Code == "too_many_problems" || len(p.Path) < 2
}

// within reports whether outer is a prefix of inner, or equal to it.
func within(outer, inner []any) bool {
	if len(outer) > len(inner) {
		return false
	}
	for i := range outer {
		if outer[i] != inner[i] {
			return false
		}
	}
	return true
}

func (in *In) markRead(place, name string) {
	in.settings.names[place+" "+name] = place
	in.settings.names[name] = place
}

// Place adds query, path, header or body to the beginning of a problem's path: the part of the request from which the
// handler read the name path[0], else body, or query if no body was read. With Placed, a path that begins with one of
// these words is returned unchanged.
func (s *Settings) Place(path []any) []any {
	if s != nil && s.Placed && len(path) > 0 && slices.Contains([]any{"query", "path", "header", "body"}, path[0]) {
		return path
	}
	place := "query"
	if s == nil || s.body {
		place = "body"
	}
	if s != nil && len(path) > 0 {
		if name, ok := path[0].(string); ok && s.names[name] != "" {
			place = s.names[name]
		}
	}
	return append([]any{place}, path...)
}
