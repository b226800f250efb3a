package rest

import (
	"errors"
	"iter"
	"maps"
	"net/url"
	"strconv"
	"strings"
)

// At returns the path /part/part/…, with each part escaped.
func At(parts ...string) string {
	path := ""
	for _, part := range parts {
		path += "/" + url.PathEscape(part)
	}
	return path
}

// checkPath refuses a path that would reach another operation, such as a path with an empty id.
func checkPath(path string) error {
	for i, part := range strings.Split(path, "/") {
		if (i == 0) != (part == "") || part == "." || part == ".." || strings.ContainsAny(part, "?#") {
			return errors.New("path: must start with a slash and have no ?, # or segment that is empty, . or ..; an empty id makes an empty segment")
		}
	}
	return nil
}

// Pages returns the items of all pages. fetch is called with a nil cursor for the first page, and returns a nil cursor
// with the last one. If fetch fails, the last element of the sequence has the error.
func Pages[T any](fetch func(cursor *string) (items []T, next *string, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for cursor, more := (*string)(nil), true; more; more = cursor != nil {
			items, next, err := fetch(cursor)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			cursor = next
		}
	}
}

// PageQuery returns the query of a page: q, which may be nil, with the cursor added as the parameter name.
func PageQuery(q url.Values, name string, cursor *string) url.Values {
	out := url.Values{}
	maps.Copy(out, q)
	if cursor != nil {
		out.Set(name, *cursor)
	}
	return out
}

// Following returns number, which is that of the next page or the next offset, as a cursor; nil if more is false.
func Following(number int, more bool) *string {
	if !more {
		return nil
	}
	return new(strconv.Itoa(number))
}
