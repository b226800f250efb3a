package strictjson

import (
	"slices"
	"strconv"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/nearest"
)

// Path is the place of a value in a request.
type Path []any

// At returns the place below p. It shares nothing with p.
func (p Path) At(more ...any) Path {
	return append(append(make(Path, 0, len(p)+len(more)), p...), more...)
}

// Reader reads nodes strictly and gathers what is wrong.
type Reader struct {
	Problems healthlab.Problems
	Lenient  bool // unknown keys pass
}

// CodeBody is the code of what is wrong with the form of a body.
const CodeBody = "invalid_body"

// Fault notes what is wrong at a place.
func (r *Reader) Fault(code, msg string, p Path) { r.Problems.Add(code, msg, p...) }

// Object checks that n is an object with no other keys than the given ones, none of
// them twice.
func (r *Reader) Object(n *Node, p Path, keys ...string) bool {
	if n.Kind != '{' {
		r.Fault(CodeBody, "must be an object", p)
		return false
	}
	r.twice(n, p)
	if r.Lenient {
		return true
	}
	for _, k := range n.Keys {
		if !slices.Contains(keys, k) {
			r.Unknown(codeUnknownKey, "must be a key of this object", k, keys, p.At(ShortName(k)))
		}
	}
	return true
}

// twice notes keys that stand more than once.
func (r *Reader) twice(n *Node, p Path) {
	seen := make(map[string]bool, len(n.Keys))
	for _, k := range n.Keys {
		if seen[k] {
			r.Fault(CodeBody, "must not stand twice in the object", p.At(ShortName(k)))
		}
		seen[k] = true
	}
}

// codeUnknownKey is the code of a key that an object does not have.
const codeUnknownKey = "unknown_key"

// Unknown notes a name that is not known, with the nearest one that is, and with those that are allowed unless
// it is a key.
func (r *Reader) Unknown(code, msg, name string, known []string, p Path) {
	problem := healthlab.Problem{Path: p, Code: code, Msg: msg}
	switch allowed := nearest.Allowed(name, known, nearest.Contract); {
	case code == codeUnknownKey:
	case msg == "":
		problem.Msg = allowed
	default:
		problem.Msg += ": " + strings.TrimPrefix(allowed, "must be ")
	}
	if near := Nearest(name, known); near != "" {
		problem.Msg += "; did you mean " + near + "?"
		problem.Context = map[string]any{"did_you_mean": near}
	}
	r.Problems = append(r.Problems, problem)
}

// ShortName cuts a caller's name so that it can be repeated.
func ShortName(s string) string {
	if len(s) > 64 {
		return strings.ToValidUTF8(s[:64], "")
	}
	return s
}

// Text reads a string that must be there.
func (r *Reader) Text(n *Node, p Path) (string, bool) {
	switch {
	case n == nil:
		r.Fault(CodeBody, "is required", p)
	case n.Kind != '"':
		r.Fault(CodeBody, "must be a string", p)
	case strings.ContainsRune(n.Text, 0):
		r.Fault(CodeBody, "must not have the character U+0000", p)
	default:
		return n.Text, true
	}
	return "", false
}

// Whole reads a whole number.
func (r *Reader) Whole(n *Node, p Path) (int64, bool) {
	i, err := strconv.ParseInt(n.Text, 10, 64)
	if n.Kind != '0' || err != nil {
		r.Fault(CodeBody, "must be a whole number", p)
		return 0, false
	}
	return i, true
}

// Boolean reads true or false.
func (r *Reader) Boolean(n *Node, p Path) bool {
	if n.Kind != 't' {
		r.Fault(CodeBody, "must be true or false", p)
	}
	return n.Kind == 't' && n.Yes
}

// Choice reads one of a list of words.
func (r *Reader) Choice(n *Node, p Path, code string, words []string) (string, bool) {
	s, ok := r.Text(n, p)
	if !ok {
		return "", false
	}
	if !slices.Contains(words, s) {
		r.Unknown(code, "", s, words, p)
		return "", false
	}
	return s, true
}

// List returns the elements of a list that must be there.
func (r *Reader) List(n *Node, p Path) []Node {
	switch {
	case n == nil:
		r.Fault(CodeBody, "is required", p)
	case n.Kind != '[':
		r.Fault(CodeBody, "must be an array", p)
	default:
		return n.Items
	}
	return nil
}
