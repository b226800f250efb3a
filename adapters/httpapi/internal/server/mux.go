package server

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
)

// Mux routes requests by a tree of path segments. From left to right, a literal part of a path wins over a
// parameter. A path answers with and without a trailing slash, and is never redirected. An unknown path is 404, and
// an unknown method of a known path 405 with the header Allow; both as JSON. The zero value is ready for [Mux.Add],
// which must not run concurrently with requests.
type Mux struct{ root node }

type node struct {
	literal map[string]*node
	param   *node
	routes  map[string]leaf // by method
}

type leaf struct {
	pattern string
	names   []string // names of the path parameters, from left to right
	handler http.Handler
}

// Add routes a pattern, METHOD /path, to a handler. If preflight is not nil, it answers OPTIONS at the same path. Add
// panics if the pattern has another form or was added before.
func (m *Mux) Add(pattern string, handler, preflight http.Handler) {
	method, path, ok := strings.Cut(pattern, " ")
	if !ok || !strings.HasPrefix(path, "/") {
		panic(fmt.Sprintf("httpapi: the pattern %q is not METHOD /path", pattern))
	}
	l := leaf{pattern: pattern, handler: handler}
	n := &m.root
	for _, part := range split(strings.TrimSuffix(path, "{$}")) {
		name, isParam := strings.CutPrefix(part, "{")
		if isParam {
			l.names = append(l.names, strings.TrimSuffix(name, "}"))
			if n.param == nil {
				n.param = &node{}
			}
			n = n.param
			continue
		}
		if n.literal == nil {
			n.literal = map[string]*node{}
		}
		if n.literal[part] == nil {
			n.literal[part] = &node{}
		}
		n = n.literal[part]
	}
	if n.routes == nil {
		n.routes = map[string]leaf{}
	}
	if _, taken := n.routes[method]; taken {
		panic(fmt.Sprintf("httpapi: two routes for %s", pattern))
	}
	n.routes[method] = l
	if preflight != nil {
		n.routes[http.MethodOptions] = leaf{pattern: pattern, names: l.names, handler: preflight}
	}
}

// split returns the segments of a path. A trailing slash is ignored.
func split(path string) []string {
	path = strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/")
	if path == "" {
		return nil
	}
	return strings.Split(path, "/")
}

// match returns the route of a path and method, with values plus the values of its parameters; false if there is none.
// If only the method does not match, it adds the methods of the path to allow.
func (n *node) match(parts []string, method string, values []string, allow *[]string) (leaf, []string, bool) {
	if len(parts) == 0 {
		l, ok := n.routes[method]
		if !ok && method == http.MethodHead {
			l, ok = n.routes[http.MethodGet]
		}
		if !ok {
			for have := range n.routes {
				*allow = append(*allow, have)
			}
		}
		return l, values, ok
	}
	if next := n.literal[parts[0]]; next != nil {
		if l, values, ok := next.match(parts[1:], method, values, allow); ok {
			return l, values, true
		}
	}
	if n.param != nil && parts[0] != "" {
		return n.param.match(parts[1:], method, append(values, parts[0]), allow)
	}
	return leaf{}, nil, false
}

// ServeHTTP calls the handler of the request's route.
func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = Identify(w, r)
	parts := split(r.URL.EscapedPath())
	for i, part := range parts {
		var err error
		if parts[i], err = url.PathUnescape(part); err != nil {
			parts[i] = ""
		}
	}
	var allow []string
	l, values, ok := m.root.match(parts, r.Method, nil, &allow)
	if !ok {
		refuseRoute(w, allow)
		return
	}
	for i, name := range l.names {
		r.SetPathValue(name, values[i])
	}
	r.Pattern = l.pattern
	l.handler.ServeHTTP(w, r)
}

func refuseRoute(w http.ResponseWriter, allow []string) {
	f := &wire.Fault{Status: http.StatusNotFound, Type: "NOT_FOUND", Msg: "no operation has this path"}
	if len(allow) > 0 {
		if slices.Contains(allow, http.MethodGet) {
			allow = append(allow, http.MethodHead)
		}
		slices.Sort(allow)
		f = &wire.Fault{
			Status: http.StatusMethodNotAllowed, Type: "METHOD_NOT_ALLOWED", Msg: "the path does not support this method; the header Allow lists those it supports",
			Header: http.Header{"Allow": {strings.Join(slices.Compact(allow), ", ")}},
		}
	}
	_ = wire.Refuse(w, f)
}
