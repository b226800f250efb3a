package webhook

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/healthlab-dev/healthlab"
)

const ident = `[a-z][a-z0-9_]*`

var typeName = regexp.MustCompile(
	`^(?:daily\.data\.` + ident + `\.(?:created|updated|deleted)|historical\.data\.` + ident + `\.created|` +
		`labtest\.result\.critical\.` + ident + `|` + ident + `\.` + ident + `\.` + ident + `|endpoint\.` + ident + `)$`)

// ValidType reports whether name fits the grammar of event types: three identifiers joined by full stops;
// daily.data.<resource>.<created, updated or deleted>; historical.data.<resource>.created;
// labtest.result.critical.<change>; or endpoint.<change>. Identifiers are lower case letters, digits and underscores, a
// letter first. A name may be valid and not be in any catalogue.
func ValidType(name string) bool { return typeName.MatchString(name) }

const badTypeName = "must be three words of lower-case letters, digits and _, each with a letter first, joined by full stops, " +
	"such as labtest.order.created; or daily.data.<resource>.<created, updated or deleted>, historical.data.<resource>.created, " +
	"labtest.result.critical.<change> or endpoint.<change>"

// Catalogue has the event types of a service. It is immutable and safe for concurrent use.
type Catalogue struct {
	types  []healthlab.EventType
	byName map[string]int
}

// NewCatalogue joins the lists of event types of several packages; [EventTypes] is the list of package webhook.
// NewCatalogue returns Invalid with every position if a name does not match the grammar or occurs twice.
func NewCatalogue(lists ...[]healthlab.EventType) (*Catalogue, error) {
	c := &Catalogue{byName: map[string]int{}}
	var problems healthlab.Problems
	for i, list := range lists {
		for j, t := range list {
			switch _, taken := c.byName[t.Name]; {
			case !ValidType(t.Name):
				problems.Add("bad_name", badTypeName, i, j)
			case taken:
				problems.Add("duplicate", "must not come twice", i, j)
			default:
				c.byName[t.Name] = len(c.types)
				c.types = append(c.types, t)
			}
		}
	}
	if err := problems.Err(); err != nil {
		return nil, fmt.Errorf("event catalogue: %w", err)
	}
	return c, nil
}

// Lookup returns the type of this name, and whether there is one.
func (c *Catalogue) Lookup(name string) (healthlab.EventType, bool) {
	i, ok := c.byName[name]
	if !ok {
		return healthlab.EventType{}, false
	}
	return c.types[i], true
}

// Types returns all types, in the order of the lists that [NewCatalogue] joined.
func (c *Catalogue) Types() []healthlab.EventType { return slices.Clone(c.types) }

// Names returns the names of all types, sorted.
func (c *Catalogue) Names() []string { return slices.Sorted(maps.Keys(c.byName)) }

// Modes returns, by type name, how events with the same key are ordered.
func (c *Catalogue) Modes() map[string]healthlab.Mode {
	modes := make(map[string]healthlab.Mode, len(c.types))
	for _, t := range c.types {
		modes[t.Name] = t.Mode
	}
	return modes
}
