package smart

import (
	"slices"
	"strings"
)

// Grant is what a token allows: types of resources that may be read and searched. The zero value allows
// nothing.
type Grant struct {
	// Client is whose token it is.
	Client Client
	// Scopes are those of the token, in the words in which they were asked for.
	Scopes []string
}

// Reads reports whether a type of resources may be read, and Searches whether it may be searched.
func (g *Grant) Reads(kind string) bool { return g.allows(kind, "r") }

// Searches reports whether a type of resources may be searched.
func (g *Grant) Searches(kind string) bool { return g.allows(kind, "s") }

func (g *Grant) allows(kind, right string) bool {
	return slices.ContainsFunc(g.Scopes, func(scope string) bool {
		of, rights, ok := parseScope(scope)
		return ok && (of == "*" || of == kind) && strings.Contains(rights, right)
	})
}

// parseScope reads system/<type or *>.read or, of version 2, system/<type or *>.<r, s or rs>. Others, and those
// with parameters, are not known.
func parseScope(scope string) (kind, rights string, ok bool) {
	rest, ok := strings.CutPrefix(scope, "system/")
	kind, rights, cut := strings.Cut(rest, ".")
	if !ok || !cut || kind == "" || strings.Trim(kind, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") != "" && kind != "*" {
		return "", "", false
	}
	switch rights {
	case "read", "rs":
		return kind, "rs", true
	case "r", "s":
		return kind, rights, true
	}
	return "", "", false
}

// granted are the scopes that were asked for and that the client has, as far as it has them.
func granted(asked, has []string) (out []string) {
	own := &Grant{Scopes: has}
	for _, scope := range asked {
		kind, rights, ok := parseScope(scope)
		switch {
		case !ok || slices.Contains(out, scope):
		case kind == "*" && !allAllowed(own, "*", rights):
			// What it has of all types.
			for _, h := range has {
				if of, have, ok := parseScope(h); ok && strings.Trim(have, rights) == "" && !slices.Contains(out, h) && of != "*" {
					out = append(out, h)
				}
			}
		case allAllowed(own, kind, rights):
			out = append(out, scope)
		}
	}
	return out
}

func allAllowed(g *Grant, kind, rights string) bool {
	for _, r := range rights {
		if !g.allows(kind, string(r)) {
			return false
		}
	}
	return true
}
