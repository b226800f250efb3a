package oauthrest

import (
	"strings"
)

// A place is the path to a value in an answer. It is a JSON pointer (RFC 6901) that starts at the item, with four
// additions: "." is the item itself. Each ^ at the beginning moves out to the list element, or the whole answer,
// that contains the item. The step * selects every element of a list. The step # selects the element at the item's
// own position in another list.

// item is a value of an answer with the values around it.
type item struct {
	// inside holds the answer, the list elements that contain the item from the outside in, and the item.
	inside []any
	// position is the index of the innermost list element.
	position int
}

func (it *item) value() any { return it.inside[len(it.inside)-1] }

// steps returns the number of levels that a place moves out, and its steps. ok is false if the place is malformed.
func steps(place string) (out int, list []string, ok bool) {
	if place == "." {
		return 0, nil, true
	}
	inner := strings.TrimLeft(place, "^")
	out = len(place) - len(inner)
	if inner == "" {
		return out, nil, out > 0
	}
	if inner[0] != '/' || len(place) > 256 {
		return 0, nil, false
	}
	list = strings.Split(inner[1:], "/")
	for _, s := range list {
		if rest := strings.NewReplacer("~0", "", "~1", "").Replace(s); s == "" || strings.Contains(rest, "~") {
			return 0, nil, false
		}
	}
	return out, list, true
}

// stars counts the steps * of a place.
func stars(place string) int {
	_, list, _ := steps(place)
	n := 0
	for _, s := range list {
		if s == "*" {
			n++
		}
	}
	return n
}

// depth returns how many levels a place of an item may move out, if the items are at the given place.
func depth(place string) int {
	_, list, _ := steps(place)
	n := stars(place)
	if len(list) > 0 && list[len(list)-1] != "*" {
		n++
	}
	return n
}

// find returns the value at a place, or the list of values at a place with *. ok is false if there is none.
func (it *item) find(place string) (any, bool) {
	out, list, ok := steps(place)
	if !ok || out >= len(it.inside) {
		return nil, false
	}
	return it.walk(it.inside[len(it.inside)-1-out], list)
}

func (it *item) walk(v any, list []string) (any, bool) {
	for i, s := range list {
		switch node := v.(type) {
		case map[string]any:
			next, ok := node[unescape(s)]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			if s == "*" {
				all := []any{}
				for _, e := range node {
					if found, ok := it.walk(e, list[i+1:]); ok {
						all = append(all, found)
					}
				}
				return all, true
			}
			n, ok := it.element(s, len(node))
			if !ok {
				return nil, false
			}
			v = node[n]
		default:
			return nil, false
		}
	}
	return v, v != nil
}

// element returns the position that a step selects in a list of n elements.
func (it *item) element(s string, n int) (int, bool) {
	at := 0
	if s == "#" {
		at = it.position
	} else {
		for _, d := range s {
			if d < '0' || d > '9' || at > maxElements {
				return 0, false
			}
			at = at*10 + int(d-'0')
		}
	}
	return at, at < n
}

// maxElements is the largest index in a place.
const maxElements = 1 << 24

func unescape(s string) string {
	if !strings.Contains(s, "~") {
		return s
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(s)
}

// items returns the items of an answer at a place, and the number of elements of the outermost list on the path,
// which providers count as a page. ok is false if the answer has another shape: the path to the outermost list is
// missing, or a value is neither a list nor an object. Null counts as an empty list, and so does a value that an
// element of a list lacks.
func items(answer any, place string) (all []item, outer int, ok bool) {
	_, list, _ := steps(place)
	ok = true
	ends := len(list) > 0 && list[len(list)-1] != "*" // the item is inside of a list element
	var walk func(it item, v any, list []string)
	walk = func(it item, v any, list []string) {
		if len(list) == 0 {
			if ends {
				it.inside = under(it.inside, v)
			}
			all = append(all, it)
			return
		}
		switch node := v.(type) {
		case nil:
		case map[string]any:
			next, found := node[unescape(list[0])]
			if !found {
				ok = ok && len(it.inside) > 1 && list[0] != "*" // an object is no list
				return
			}
			walk(it, next, list[1:])
		case []any:
			if list[0] != "*" {
				ok = false
				return
			}
			if len(it.inside) == 1 {
				outer = len(node)
			}
			for i, e := range node {
				walk(item{inside: under(it.inside, e), position: i}, e, list[1:])
			}
		default:
			ok = false
		}
	}
	root := item{inside: []any{answer}}
	if len(list) == 0 {
		return []item{root}, 1, true
	}
	walk(root, answer, list)
	if stars(place) == 0 {
		outer = len(all)
	}
	return all, outer, ok
}
