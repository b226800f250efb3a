package organisation

import (
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab"
)

// Scope is a permission of an API key: an area and read or write, such as data:read. Write
// does not include read.
type Scope string

// The scopes of API keys.
const (
	DataRead     Scope = "data:read"
	DataWrite    Scope = "data:write"
	OrdersRead   Scope = "orders:read"
	OrdersWrite  Scope = "orders:write"
	ReportsRead  Scope = "reports:read"
	ReportsWrite Scope = "reports:write"
	LinkRead     Scope = "link:read"
	LinkWrite    Scope = "link:write"
	AdminRead    Scope = "admin:read"
	AdminWrite   Scope = "admin:write"
)

// Scopes are the scopes of a key. Empty means every scope.
type Scopes []Scope

// AllScopes lists every scope.
func AllScopes() Scopes {
	return Scopes{DataRead, DataWrite, OrdersRead, OrdersWrite, ReportsRead, ReportsWrite, LinkRead, LinkWrite, AdminRead, AdminWrite}
}

// Has reports whether a key with these scopes has a scope.
func (s Scopes) Has(scope Scope) bool { return len(s) == 0 || slices.Contains(s, scope) }

// normalized returns the scopes sorted and without duplicates. It reports unknown ones.
func (s Scopes) normalized(p *healthlab.Problems) Scopes {
	all := AllScopes()
	for i, scope := range s {
		if !slices.Contains(all, scope) {
			p.Add("scope", "must be one of "+all.String(), "scopes", i)
		}
	}
	out := slices.Clone(s)
	slices.Sort(out)
	return slices.Compact(out)
}

// String returns the scopes, separated by commas.
func (s Scopes) String() string {
	names := make([]string, len(s))
	for i, scope := range s {
		names[i] = string(scope)
	}
	return strings.Join(names, ", ")
}
