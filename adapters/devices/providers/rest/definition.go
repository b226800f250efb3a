package rest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// Definition describes a provider. It is not changed after [New].
type Definition struct {
	// Provider is the record for the catalogue. Its resources and scopes follow from Collections:
	// see [Definition.Record].
	Provider healthdata.Provider
	OAuth    OAuth
	// BaseURL stands before the paths of the collections.
	BaseURL string
	// Header is sent with every request for data.
	Header map[string]string
	// KeyHeader is the header of the client's Key. Empty: clients have none.
	KeyHeader   string
	Collections []Collection
	// Rates reads the limits that an answer's headers state. Nil if there are none.
	Rates func(h http.Header, now time.Time) []linking.RateLimit
	// Wait is how long an answer of 429 without Retry-After asks to wait. Nil if it never
	// says.
	Wait func(h http.Header, now time.Time) time.Duration
	// RateScope says whose limit an answer of 429 is about. Default: the application's.
	RateScope linking.RateScope
	// Refused reads an answer in the provider's own words before the status is looked at.
	// It returns nil for an answer with data, and for one that the status explains.
	Refused func(a *Answer) error
	// Listen reads a message of the provider. Nil if it sends none.
	Listen func(l *Listening, m linking.Message) (linking.ListenResult, error)
	// MessageKey is the name of the detail of a client that holds its Options.VerifyToken, for
	// providers where each client has its own. Empty if all clients share that of Options.
	MessageKey string
	// Setup lists what the owner of a client has to set up at the provider.
	Setup []linking.SetupStep
}

// Collection is one collection of items at a provider.
type Collection struct {
	// Name identifies the collection in [Definition.Read] and in Join and For.
	Name string
	// Scopes are the scopes that it needs; nil if the provider has none. See Missing.
	Scopes []string
	// Method is the HTTP method. Default GET. With POST, the query is sent as a form.
	Method string
	// Body makes the JSON document that is posted for a range of days, the last one included.
	// Nil: there is none.
	Body func(first, last healthlab.Date) any
	// Path stands behind the base URL. {account} is the provider's id of the person, and {id}
	// the key of the item in For.
	Path string
	// Query is sent with every request.
	Query url.Values
	// Range says how the range is asked for; the zero value asks for all.
	Range Range
	// Time returns the instant of an item, for collections that cannot be asked for a range:
	// items outside of the range are left out. The pages of such a collection come newest
	// first, and end with the first whose last item is before the range.
	Time func(item json.RawMessage) time.Time
	// Pages says how pages go on. Nil: there is one.
	Pages Pages
	// Whole reads an answer, or its member Items, as one item even if it is a list.
	Whole bool
	// Items is the member of the answer that holds the items, with dots between the names of
	// nested ones. Empty: the answer is the list, or an object that is the only item.
	Items string
	// Join lists collections that are read before, over the same range. [Batch.Joined] finds their
	// items.
	Join []string
	// JoinFor lists the resources that need the joined collections; nil is all of them.
	JoinFor []string
	// For is a collection of whose items each is asked for by itself: this collection's answer is one
	// item's details.
	For string
	// File returns the address of the file of an item of For, at whatever host: the request has
	// no token. The collection has no Path, and Read gets the bytes of the file in place of an item.
	File func(item json.RawMessage) string
	// Ask puts the key of an item into the query, for collections whose path has no {id}.
	Ask func(q url.Values, key string)
	// With lists collections that are asked for with the same key before each item of For.
	// [Batch.Joined] finds their answers by the key. Resources of theirs that are wanted, too, are
	// read of these answers.
	With []string
	// Key returns the key of an item for Join, For and Revised; an empty one leaves it out of
	// Join and For. Nil in collections that no other collection names.
	Key func(item json.RawMessage) string
	// Revised reads, of the items of an answer with an equal Key, the last one only.
	Revised bool
	// Keep lists the members that joined items keep; nil keeps all.
	Keep []string
	// Missing lists statuses that mean that there is no data, such as 404. With 403, the scopes
	// are optional for resources that other collections make, too.
	Missing []int
	// Media says that an answer is a file, not JSON: Read gets its bytes in place of an item.
	Media bool
	// Messages lists the words by which the provider's messages announce this collection, for
	// [Listening.Announced].
	Messages []string
	// MessagesFor lists the resources that a word announces, where that is not all of the collection.
	MessagesFor map[string][]string
	// Resources are the slugs that are taken of what Read makes.
	Resources []string
	// Stored are the slugs that Read makes of stored pages besides. Items of a stored page that
	// cannot be read are reported for Resources and Stored.
	Stored []string
	// Read reads one item. See [Each].
	Read func(item json.RawMessage, out *Batch)
}

// Record returns the provider's record with the resources and scopes of the collections. It is the
// caller's to change.
func (d *Definition) Record() healthdata.Provider {
	p := d.Provider
	p.Resources = slices.Clone(p.Resources)
	p.Scopes = map[string]healthdata.Scopes{}
	for _, k := range d.Collections {
		for _, r := range k.Resources {
			if !p.Supports(r) {
				p.Resources = append(p.Resources, healthdata.ProviderResource{Resource: r})
			}
			s := p.Scopes[r]
			to := &s.Required
			if slices.Contains(k.Missing, http.StatusForbidden) && len(d.of(r)) > 1 {
				to = &s.Optional // a refusal means no data, and the other collections have some
			}
			for _, name := range k.Scopes {
				if !slices.Contains(*to, name) {
					*to = append(*to, name)
				}
			}
			if len(s.Required)+len(s.Optional) > 0 {
				p.Scopes[r] = s
			}
		}
	}
	for r, s := range p.Scopes {
		s.Optional = slices.DeleteFunc(s.Optional, func(name string) bool { return slices.Contains(s.Required, name) })
		if s.Optional == nil {
			s.Optional = []string{}
		}
		p.Scopes[r] = s
	}
	return p
}

// collection returns a collection by its name, or nil.
func (d *Definition) collection(name string) *Collection {
	for i := range d.Collections {
		if d.Collections[i].Name == name {
			return &d.Collections[i]
		}
	}
	return nil
}

// of returns the positions of the collections that resources are read from, in the order of the table,
// without those that come with another of them.
func (d *Definition) of(resources ...string) (out []int) {
	var with []string
	for i := range d.Collections {
		if d.Collections[i].makes(resources) {
			out, with = append(out, i), append(with, d.Collections[i].With...)
		}
	}
	return slices.DeleteFunc(out, func(i int) bool { return slices.Contains(with, d.Collections[i].Name) })
}

func (k *Collection) makes(resources []string) bool {
	return slices.ContainsFunc(k.Resources, func(r string) bool { return slices.Contains(resources, r) })
}

// together returns the sets of resources that have a collection in common, or one that comes with it,
// directly or by another.
func (d *Definition) together() (sets [][]string) {
	for i := range d.Collections {
		set := slices.Clone(d.Collections[i].Resources)
		for _, name := range d.Collections[i].With {
			set = append(set, d.collection(name).Resources...)
		}
		made := slices.Clone(set)
		sets = slices.DeleteFunc(sets, func(other []string) bool {
			if !slices.ContainsFunc(other, func(r string) bool { return slices.Contains(made, r) }) {
				return false
			}
			set = append(set, other...)
			return true
		})
		slices.Sort(set)
		if set = slices.Compact(set); len(set) > 0 {
			sets = append(sets, set)
		}
	}
	return slices.DeleteFunc(sets, func(set []string) bool { return len(set) == 1 })
}

// within returns the items of a range, and whether the last one is before it.
func (k *Collection) within(items []json.RawMessage, from, to time.Time) (kept []json.RawMessage, past bool) {
	if k.Time == nil {
		return items, false
	}
	for _, item := range items {
		at := k.Time(item)
		past = !at.IsZero() && at.Before(from)
		if !past && at.Before(to) {
			kept = append(kept, item)
		}
	}
	return kept, past
}

func (k *Collection) accepts() string {
	if k.Media {
		return "*/*"
	}
	return "application/json"
}

func (k *Collection) joins(resources []string) []string {
	if k.JoinFor != nil && !slices.ContainsFunc(k.JoinFor, func(r string) bool { return slices.Contains(resources, r) }) {
		return nil
	}
	return k.Join
}
