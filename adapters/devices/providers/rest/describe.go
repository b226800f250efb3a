package rest

import "slices"

// CollectionInfo describes a collection, for pages about a connector.
type CollectionInfo struct {
	Name string
	// Scopes are what it needs, Resources what it makes, and Stored what it makes of stored pages
	// besides. A collection without resources is joined to another, or listed for it.
	Scopes, Resources, Stored []string
	// Messages are the words by which messages announce it.
	Messages []string
}

// Describe returns the collections of a connector, in the order of the table.
func (c *Connector) Describe() (out []CollectionInfo) {
	for i := range c.def.Collections {
		k := &c.def.Collections[i]
		out = append(out, CollectionInfo{k.Name, slices.Clone(k.Scopes), slices.Clone(k.Resources), slices.Clone(k.Stored), Words(c.def.Collections[i : i+1])})
	}
	return out
}
