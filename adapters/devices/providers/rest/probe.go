package rest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/linking"
)

// Probe is the result of [Connector.Probe]: the first non-empty page of a collection.
type Probe struct {
	// Collection is the name of the collection, Scopes its required scopes, and Resources its resources.
	Collection        string
	Scopes, Resources []string
	// Requests is the number of sent requests, including those for collections that are joined to this one or list its
	// items.
	Requests int
	// Items is the number of items on the page. 0 means that no page had data before the range or the allowed number of
	// requests ended.
	Items int
	Data  Data
	// Cursor is the value of PullRequest.Cursor with which a failed probe can continue; else empty.
	Cursor string
}

// maxProbe is the largest number of requests of one probe.
const maxProbe = 10

// Collections returns the names of the collections that provide resources, in the order of the definition.
func (c *Connector) Collections() (out []string) {
	for i := range c.def.Collections {
		if len(c.def.Collections[i].Resources) > 0 {
			out = append(out, c.def.Collections[i].Name)
		}
	}
	return out
}

// Probe pulls a collection until a page has items, with at most ten requests, to check a connector against its
// provider. Probe sets r.Resource; r.Cursor must be the cursor of a failed probe, or empty. It returns the errors of
// Pull; the Probe then has Cursor and Requests. It returns Invalid if no collection with this name provides a
// resource.
func (c *Connector) Probe(ctx context.Context, collection string, r linking.PullRequest) (Probe, error) {
	own := c.def.collection(collection)
	if own == nil || len(own.Resources) == 0 {
		return Probe{}, fmt.Errorf("probe: %w: collection: must be one of %v", healthlab.Invalid, c.Collections())
	}
	out := Probe{Collection: collection, Scopes: slices.Clone(own.Scopes), Resources: slices.Clone(own.Resources)}
	secret, err := readTokens(r.Secret)
	if err != nil {
		return out, fmt.Errorf("probe: %w", err)
	}
	r.Zone = cmp.Or(r.Zone, time.UTC)
	if r.Resource = own.Resources[0]; own.JoinFor != nil {
		r.Resource = own.JoinFor[0]
	}
	for more := true; more && out.Requests < maxProbe; more = r.Cursor != "" {
		out.Cursor = r.Cursor
		at, err := readCursor(r.Cursor)
		if err != nil {
			return out, fmt.Errorf("probe: %w", err)
		}
		at.Collection = collection
		w := c.window(&r, &at, []string{r.Resource})
		out.Requests++
		body, _, err := c.fetch(ctx, w, secret.Access)
		if err != nil {
			return out, fmt.Errorf("probe: %w", err)
		}
		data, n, err := c.read(w, body)
		if err != nil {
			return out, fmt.Errorf("probe: %w", err)
		}
		if w.collection == own && len(data) > 0 {
			out.Items, out.Data, out.Cursor = n, data, ""
			return out, nil
		}
		if r.Cursor, err = c.next(w, body, n, nil); err != nil {
			return out, fmt.Errorf("probe: %w", err)
		}
	}
	out.Cursor = ""
	return out, nil
}
