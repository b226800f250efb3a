package oauthrest

import (
	"strings"
)

// A place is an extended JSON pointer to a value in a response. It is a JSON pointer (RFC 6901) that starts at the
// item, with four additions: "." is the item itself. Each ^ at the beginning moves out to the list element, or the
// whole response, that contains the item. The step * selects every element of a list. The step # selects the element
// at the item's own position in another list.

// item is an item of a response, with the values that contain it.
type item struct {
	// inside lists the whole response, then the list elements that contain the item from the outside in, then the item.
	inside []any
	// position is the index of the list element that contains the item, in the innermost list.
	position int
}

func (it *item) value() any { return it.inside[len(it.inside)-1] }

// steps splits an extended JSON pointer. out is the number of leading ^, each of which moves out to the containing list
// element. ok is false if the pointer is malformed.
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

// wildcards counts the steps * in a JSON pointer. Each selects all elements of a list.
func wildcards(place string) int {
	_, list, _ := steps(place)
	n := 0
	for _, s := range list {
		if s == "*" {
			n++
		}
	}
	return n
}

// depth returns how many ^ a JSON pointer inside an item may have, if place is the pointer to the items.
func depth(place string) int {
	_, list, _ := steps(place)
	n := wildcards(place)
	if len(list) > 0 && list[len(list)-1] != "*" {
		n++
	}
	return n
}

// find returns the value that a JSON pointer selects from the item: with a step * a list of values. It returns false if
// there is no such value.
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

// element returns the index that the step s selects in a list of n elements: s is a number, or # for position. It
// returns false if the list has no such element.
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

// maxElements limits the index in a step of a JSON pointer.
const maxElements = 1 << 24

func unescape(s string) string {
	if !strings.Contains(s, "~") {
		return s
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(s)
}

// items returns the items that the JSON pointer place selects in a response, and the number of elements of the
// outermost list in the pointer, which is what providers count as a page.
//
// ok is false if the response has another shape: the outermost list is missing, or a value on the way is neither a list
// nor an object. Null counts as an empty list. So does a value that an element of a list lacks.
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
	if wildcards(place) == 0 {
		outer = len(all)
	}
	return all, outer, ok
}
