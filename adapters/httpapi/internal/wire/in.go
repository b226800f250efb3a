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

// In reads one request: path, query, headers and body. Each method returns the zero
// value, or the default, where there is a problem; [In.Err] tells of all of them. A query
// parameter without a value is absent. It is not safe for concurrent use.
type In struct {
	r        *http.Request
	settings *Settings
	query    url.Values
	data     []byte               // of the body that OptBody has read
	unparsed *healthdata.Unparsed // of a body that Items has read; else nil
	fault    *Fault
	problems healthlab.Problems
}

// Settings are what the mount decides about one request. The wrapper around a
// handler sets them with [With].
type Settings struct {
	// MaxBody is the largest body, in bytes, for the words of a 413; the wrapper
	// has put the limit itself around the request's body. Default 1 MiB.
	MaxBody int64
	// IgnoreUnknown passes over unknown keys of the body and the query.
	IgnoreUnknown bool
	// IgnoreReadOnly passes over keys of the body that answers have and bodies do not take.
	IgnoreReadOnly bool
	// NullBody takes null for no body.
	NullBody bool
	// Own is the user to whom the caller is bound; zero if it is not bound. Other users in a body
	// become users that do not exist.
	Own healthlab.UserID

	names map[string]string // name → place, of all that the handler has read
	body  bool              // a body was read

	replaced []string // pairs of an id that no thing has and the one that was sent
}

type settingsKey struct{}

// With returns a request that carries s. From then on s belongs to that request.
func With(r *http.Request, s *Settings) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), settingsKey{}, s))
}

// DefaultMaxBody is the largest body where nothing else is said: 1 MiB.
const DefaultMaxBody = 1 << 20

// From starts to read r. Call it once per request.
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
		in.problems.Add("query_invalid", "is not a well-formed query", "query")
	}
	for name, values := range in.query { // many clients write null as nothing
		in.query[name] = slices.DeleteFunc(values, func(v string) bool { return v == "" })
	}
	return in
}

// Request returns the request that is read.
func (in *In) Request() *http.Request { return in.r }

// Problem notes a problem that the handler found itself. The path begins with its
// place: "query", "path", "header" or "body".
func (in *In) Problem(code, msg string, path ...any) { in.problems.Add(code, msg, path...) }

// NotEmpty notes a text of the body that is there and empty: it is no way to ask for the
// default.
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

// Err returns everything that is wrong with the request, or nil. Query parameters
// that were not read are wrong, too, so call it after the last read. It is a
// [*Fault] where the body could not be read at all, else an [*InputError].
func (in *In) Err() error {
	if in.fault != nil {
		return in.fault
	}
	if !in.settings.IgnoreUnknown {
		var unknown []string
		for name := range in.query {
			if in.settings.names["query "+name] == "" {
				unknown = append(unknown, shortKey(text{raw: []byte(name)}))
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

// ErrAnd is [In.Err]; where something is wrong, it tells as well what check finds wrong
// with the rest of what was read, so that the caller learns of all of it at once. Of what
// could not be read, and of what that holds, check knows nothing.
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

// within reports whether a path leads to something in what another one leads to.
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

func (in *In) used(place, name string) {
	in.settings.names[place+" "+name] = place
	in.settings.names[name] = place
}

// Place puts the path that a Service gave a problem under where the request had it:
// a name that the handler read from the path, the query or a header is there; all
// else is in the body, or in the query where no body was read.
func (s *Settings) Place(path []any) []any {
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
