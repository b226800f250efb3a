package aggregate

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/healthlab-dev/healthlab"
)

// node is a JSON value with its keys in order, so that a decoder can tell every key
// that it did not expect.
type node struct {
	kind  byte // { [ " 0 t n; t for both booleans
	text  string
	yes   bool
	keys  []string
	items []node // of a list, or the values of keys
}

const maxDepth = 32

var (
	errDepth = errors.New("is nested too deeply")
	errMore  = errors.New("has something behind its end")
	errUTF8  = errors.New("is not UTF-8")
)

// parseNode reads one JSON text.
func parseNode(data []byte) (node, error) {
	if !utf8.Valid(data) {
		return node{}, errUTF8
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	n, err := nextNode(d, maxDepth)
	if err != nil {
		return node{}, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return node{}, errMore
	}
	return n, nil
}

func nextNode(d *json.Decoder, depth int) (node, error) {
	if depth == 0 {
		return node{}, errDepth
	}
	t, err := d.Token()
	if err != nil {
		return node{}, err
	}
	switch t := t.(type) {
	case json.Delim:
		n := node{kind: byte(t)}
		for d.More() {
			if t == '{' {
				k, err := d.Token()
				if err != nil {
					return node{}, err
				}
				n.keys = append(n.keys, k.(string))
			}
			item, err := nextNode(d, depth-1)
			if err != nil {
				return node{}, err
			}
			n.items = append(n.items, item)
		}
		_, err := d.Token()
		return n, err
	case string:
		return node{kind: '"', text: t}, nil
	case json.Number:
		return node{kind: '0', text: t.String()}, nil
	case bool:
		return node{kind: 't', yes: t}, nil
	default:
		return node{kind: 'n'}, nil
	}
}

// get returns the value of a key, nil if there is none. Of several it is the first.
func (n *node) get(key string) *node {
	for i, k := range n.keys {
		if k == key {
			return &n.items[i]
		}
	}
	return nil
}

func (n *node) has(key string) bool { return n.get(key) != nil }

// isNull reports whether a value is absent or null.
func (n *node) isNull() bool { return n == nil || n.kind == 'n' }

// path is the place of a value in a request.
type path []any

// at returns the place below p. It shares nothing with p.
func (p path) at(more ...any) path {
	return append(append(make(path, 0, len(p)+len(more)), p...), more...)
}

// strictReader reads nodes strictly and gathers what is wrong.
type strictReader struct {
	problems healthlab.Problems
	lenient  bool // unknown keys pass
}

const codeBody = "invalid_body"

func (r *strictReader) fault(code, msg string, p path) { r.problems.Add(code, msg, p...) }

// object checks that n is an object with no other keys than the given ones, none of
// them twice.
func (r *strictReader) object(n *node, p path, keys ...string) bool {
	if n.kind != '{' {
		r.fault(codeBody, "is not an object", p)
		return false
	}
	r.twice(n, p)
	if r.lenient {
		return true
	}
	for _, k := range n.keys {
		if !slices.Contains(keys, k) {
			r.unknown("unknown_key", "is not a key of this object", k, keys, p.at(shortName(k)))
		}
	}
	return true
}

// twice notes keys that stand more than once.
func (r *strictReader) twice(n *node, p path) {
	seen := make(map[string]bool, len(n.keys))
	for _, k := range n.keys {
		if seen[k] {
			r.fault(codeBody, "stands twice", p.at(shortName(k)))
		}
		seen[k] = true
	}
}

// unknown notes a name that is not known, with the nearest one that is.
func (r *strictReader) unknown(code, msg, name string, known []string, p path) {
	problem := healthlab.Problem{Path: p, Code: code, Msg: msg}
	if near := nearest(name, known); near != "" {
		problem.Msg += "; did you mean " + near + "?"
		problem.Context = map[string]any{"did_you_mean": near}
	}
	r.problems = append(r.problems, problem)
}

// shortName cuts a caller's name so that it can be repeated.
func shortName(s string) string {
	if len(s) > 64 {
		return strings.ToValidUTF8(s[:64], "")
	}
	return s
}

func (r *strictReader) text(n *node, p path) (string, bool) {
	switch {
	case n == nil:
		r.fault(codeBody, "is required", p)
	case n.kind != '"':
		r.fault(codeBody, "is not a string", p)
	case strings.ContainsRune(n.text, 0):
		r.fault(codeBody, "has the character U+0000", p)
	default:
		return n.text, true
	}
	return "", false
}

// whole reads a whole number.
func (r *strictReader) whole(n *node, p path) (int64, bool) {
	i, err := strconv.ParseInt(n.text, 10, 64)
	if n.kind != '0' || err != nil {
		r.fault(codeBody, "is not a whole number", p)
		return 0, false
	}
	return i, true
}

func (r *strictReader) boolean(n *node, p path) bool {
	if n.kind != 't' {
		r.fault(codeBody, "is not true or false", p)
	}
	return n.kind == 't' && n.yes
}

// choice reads one of a list of words.
func (r *strictReader) choice(n *node, p path, code string, words []string) (string, bool) {
	s, ok := r.text(n, p)
	if !ok {
		return "", false
	}
	if !slices.Contains(words, s) {
		r.unknown(code, "must be one of: "+strings.Join(words, ", "), s, words, p)
		return "", false
	}
	return s, true
}

// list returns the elements of a list that must be there.
func (r *strictReader) list(n *node, p path) []node {
	switch {
	case n == nil:
		r.fault(codeBody, "is required", p)
	case n.kind != '[':
		r.fault(codeBody, "is not an array", p)
	default:
		return n.items
	}
	return nil
}

// nearest returns the known name with the fewest edits from name, if they are few;
// else the empty text.
func nearest(name string, known []string) string {
	if len(name) > 64 {
		return ""
	}
	best, least := "", 1+max(1, len(name)/3)
	for _, k := range known {
		if d := edits(name, k, least); d < least {
			best, least = k, d
		}
	}
	return best
}

// edits is the number of letters to change, add or leave out between a and b
// (Levenshtein), or limit if it is that or more.
func edits(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := min(row[j]+1, row[j+1]+1, last)
			if a[i] != b[j] {
				next = min(row[j], row[j+1], last) + 1
			}
			last, row[j+1] = row[j+1], next
		}
	}
	return min(row[len(b)], limit)
}
