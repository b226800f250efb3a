package smart

import (
	"slices"
	"strings"
)

// Grant holds the resource types that a token allows to read and search. The zero value allows nothing.
type Grant struct {
	// Client is the client that got the token.
	Client Client
	// Scopes are the scopes of the token, spelt as the client requested them.
	Scopes []string
}

// Reads reports whether a resource type may be read by id.
func (g *Grant) Reads(kind string) bool { return g.allows(kind, "r") }

// Searches reports whether a type of resources may be searched.
func (g *Grant) Searches(kind string) bool { return g.allows(kind, "s") }

func (g *Grant) allows(kind, right string) bool {
	return slices.ContainsFunc(g.Scopes, func(scope string) bool {
		of, rights, ok := parseScope(scope)
		return ok && (of == "*" || of == kind) && strings.Contains(rights, right)
	})
}

// parseScope parses system/<type or *>.read or, in version 2, system/<type or *>.<r, s or rs>. It returns false for
// other scopes, and for scopes with parameters.
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

// granted returns the scopes that a token gets: those of asked that the scopes of the client (has) allow. For a scope
// of all types that has does not allow, it returns the scopes of single types in has.
func granted(asked, has []string) (out []string) {
	own := &Grant{Scopes: has}
	for _, scope := range asked {
		kind, rights, ok := parseScope(scope)
		switch {
		case !ok || slices.Contains(out, scope):
		case kind == "*" && !allAllowed(own, "*", rights):
			// A request for all types is granted the single types that the client has.
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
