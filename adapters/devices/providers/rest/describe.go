package rest

import "slices"

// CollectionInfo describes a collection, for pages about a connector.
type CollectionInfo struct {
	Name string
	// Scopes lists the required OAuth scopes, Resources the slugs of the resources that a pull provides, and Stored those
	// that only a stored page provides. A collection without Resources is joined to another one, or lists the items of
	// another one.
	Scopes, Resources, Stored []string
	// Messages lists the message types that announce the collection.
	Messages []string
}

// Describe returns the collections of a connector, in the order of its definition.
func (c *Connector) Describe() (out []CollectionInfo) {
	for i := range c.def.Collections {
		k := &c.def.Collections[i]
		out = append(out, CollectionInfo{k.Name, slices.Clone(k.Scopes), slices.Clone(k.Resources), slices.Clone(k.Stored), Words(c.def.Collections[i : i+1])})
	}
	return out
}
