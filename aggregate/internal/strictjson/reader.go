package strictjson

import (
	"slices"
	"strconv"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/nearest"
)

// Path is the position of a value in a request.
type Path []any

// At returns a path below p in fresh memory.
func (p Path) At(more ...any) Path {
	return append(append(make(Path, 0, len(p)+len(more)), p...), more...)
}

// Reader reads JSON nodes strictly and collects problems.
type Reader struct {
	Problems healthlab.Problems
	Lenient  bool // unknown keys are accepted
}

// CodeBody is the problem code of a body that is not valid JSON, or of a field that is missing or not allowed there.
const CodeBody = "invalid_body"

// Fault adds a problem at a path.
func (r *Reader) Fault(code, msg string, p Path) { r.Problems.Add(code, msg, p...) }

// Object checks that n is an object with only the given keys, each at most once. It returns false only if n is not an
// object. Repeated keys become problems, and also other keys unless r is Lenient.
func (r *Reader) Object(n *Node, p Path, keys ...string) bool {
	if n.Kind != '{' {
		r.Fault(CodeBody, "must be an object", p)
		return false
	}
	r.reportDuplicates(n, p)
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

// reportDuplicates adds a problem for each key that occurs twice.
func (r *Reader) reportDuplicates(n *Node, p Path) {
	seen := make(map[string]bool, len(n.Keys))
	for _, k := range n.Keys {
		if seen[k] {
			r.Fault(CodeBody, "must occur only once in the object", p.At(ShortName(k)))
		}
		seen[k] = true
	}
}

// codeUnknownKey is the problem code of an unknown key.
const codeUnknownKey = "unknown_key"

// Unknown adds a problem about an unknown name. The problem's text has the nearest known name. It also has the allowed
// names, unless code is the one for an unknown key.
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

// ShortName cuts s, which comes from a request, to at most 64 bytes for use in an error.
func ShortName(s string) string {
	if len(s) > 64 {
		return strings.ToValidUTF8(s[:64], "")
	}
	return s
}

// Text returns the string in n. It returns false and adds a problem if n is nil, is not a string or contains U+0000.
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

// Whole returns the integer in n. It returns false and adds a problem if n is not an integer of 64 bits.
func (r *Reader) Whole(n *Node, p Path) (int64, bool) {
	i, err := strconv.ParseInt(n.Text, 10, 64)
	if n.Kind != '0' || err != nil {
		r.Fault(CodeBody, "must be a whole number", p)
		return 0, false
	}
	return i, true
}

// Boolean returns the boolean in n. It returns false and adds a problem if n is not a boolean.
func (r *Reader) Boolean(n *Node, p Path) bool {
	if n.Kind != 't' {
		r.Fault(CodeBody, "must be true or false", p)
	}
	return n.Kind == 't' && n.Yes
}

// Choice returns the string in n, which must be one of words. It returns false and adds a problem otherwise; code is
// the code of the problem about an unknown word.
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

// List returns the elements of the array in n. It returns nil and adds a problem if n is nil or not an array.
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
