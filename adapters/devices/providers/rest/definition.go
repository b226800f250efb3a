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

// Definition describes a provider. It must not be changed after [New].
type Definition struct {
	// Provider is the record for the catalogue. Its resources and scopes follow from Collections:
	// see [Definition.Record].
	Provider healthdata.Provider
	OAuth    OAuth
	// BaseURL is the prefix of the collections' paths.
	BaseURL string
	// Header lists constant headers of every data request, except those for a Collection.File.
	Header map[string]string
	// KeyHeader is the name of the header in which data requests send Client.Key. Empty: the provider uses no key.
	KeyHeader   string
	Collections []Collection
	// Rates reads the rate limits in the headers of an answer. Nil: the provider sends none.
	Rates func(h http.Header, now time.Time) []linking.RateLimit
	// Wait returns how long to wait after a 429 without Retry-After. Nil: the answer does not say.
	Wait func(h http.Header, now time.Time) time.Duration
	// RateScope is the scope of the rate limit of a 429. Default: the application.
	RateScope linking.RateScope
	// Refused returns the error that a response body reports. It is called before the status is checked. It returns nil
	// for a response with data, and for an error that the HTTP status already expresses.
	Refused func(a *Answer) error
	// Listen reads a message that the provider pushed. Nil: the provider pushes none.
	Listen func(l *Listening, m linking.Message) (linking.ListenResult, error)
	// MessageKey is the name of the client detail with the verify token, for providers with one token per client.
	// Empty: all clients share Options.VerifyToken.
	MessageKey string
	// Setup lists the settings that the owner of an OAuth client must make at the provider.
	Setup []linking.SetupStep
}

// Collection is one kind of items at a provider, such as workouts, and the request that returns them.
type Collection struct {
	// Name identifies the collection in [Definition.Read] and in Join and For.
	Name string
	// Scopes lists the required OAuth scopes; nil if the provider has none. See Missing.
	Scopes []string
	// Method is the HTTP method. Default GET. With POST, the query is sent as a form.
	Method string
	// Body returns the JSON body of the request for the days from first to last, both included. Nil: the request has no
	// JSON body.
	Body func(first, last healthlab.Date) any
	// Path is appended to Definition.BaseURL. {account} stands for the provider's id of the person, and {id} for the key
	// of the item of For.
	Path string
	// Query is sent with every request.
	Query url.Values
	// Range describes how a time range is requested. The zero value requests all items.
	Range Range
	// Time returns the time of an item, for collections that cannot request the whole range. Items outside of the
	// requested range are dropped; an item with the zero time belongs to every range that ends after it. The pages of
	// such a collection must be sorted newest first.
	Time func(item json.RawMessage) time.Time
	// Pages describes the paging. Nil: there is one page.
	Pages Pages
	// Whole means that a response, or its member Items, is one item even if it is a list.
	Whole bool
	// Items is the path of the member that contains the items, as names joined with dots. Empty: the response is the list
	// of items, or an object that is the only item.
	Items string
	// Join lists the names of collections that are requested before this one, for the same range. [Batch.Joined] returns
	// their items.
	Join []string
	// JoinFor lists the resources that need the joined collections; nil means all.
	JoinFor []string
	// For is the name of a collection that lists items. This collection is requested once for each of them, and a response
	// has the details of one item.
	For string
	// File returns the URL of a file, on any host, for an item of the collection For. The request has no token. Path must
	// be empty, and Read gets the bytes of the file.
	File func(item json.RawMessage) string
	// Ask adds the key of an item of the collection For to the query, if Path has no {id}.
	Ask func(q url.Values, key string)
	// With lists the names of collections that are requested before this one, with the key of the same item of For.
	// [Batch.Joined] returns their responses by the key. Their own resources are read from these responses too.
	With []string
	// Key returns the key of an item, by which Join, For and Revised find it. An item with an empty key is neither
	// joined nor requested. Nil if no other collection refers to this one.
	Key func(item json.RawMessage) string
	// Revised means that a later item of a response replaces earlier ones with the same Key.
	Revised bool
	// Keep lists the members of an item that other collections need from Join, With and For; nil means all.
	Keep []string
	// Missing lists HTTP statuses that mean no data, such as 404. If it contains 403, Scopes are optional for resources
	// that other collections also provide.
	Missing []int
	// Media means that an answer is a file instead of JSON. Read gets its bytes.
	Media bool
	// Messages lists the types of the provider's messages that announce data of this collection, for
	// [Listening.Announced].
	Messages []string
	// MessagesFor maps further message types to the resources that they announce, if these are not all of Resources.
	MessagesFor map[string][]string
	// Resources lists the slugs of the resources of which a pull stores the results of Read.
	Resources []string
	// Stored lists the slugs of further resources, whose results of Read are used only for stored pages. Undecodable items
	// of a stored page are reported for Resources and Stored.
	Stored []string
	// Read decodes one item. See [Each].
	Read func(item json.RawMessage, out *Batch)
}

// Record returns the provider's catalogue record with the resources and scopes of the collections. The caller may
// change it.
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
			if slices.Contains(k.Missing, http.StatusForbidden) && len(d.collectionsFor(r)) > 1 {
				to = &s.Optional // optional: without the scope, other collections still have data
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

// collection returns the collection with a name, or nil.
func (d *Definition) collection(name string) *Collection {
	for i := range d.Collections {
		if d.Collections[i].Name == name {
			return &d.Collections[i]
		}
	}
	return nil
}

// collectionsFor returns the indexes in d.Collections of the collections that provide any of the resources. It leaves
// out collections that are read together with one of these (Collection.With).
func (d *Definition) collectionsFor(resources ...string) (out []int) {
	var with []string
	for i := range d.Collections {
		if d.Collections[i].provides(resources) {
			out, with = append(out, i), append(with, d.Collections[i].With...)
		}
	}
	return slices.DeleteFunc(out, func(i int) bool { return slices.Contains(with, d.Collections[i].Name) })
}

// resources returns the resources of all collections, sorted.
func (d *Definition) resources() (out []string) {
	for i := range d.Collections {
		out = append(out, d.Collections[i].Resources...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (k *Collection) provides(resources []string) bool {
	return slices.ContainsFunc(k.Resources, func(r string) bool { return slices.Contains(resources, r) })
}

// resourceSets returns the sets of resources that one pull must read together, because one request provides them.
func (d *Definition) resourceSets() (sets [][]string) {
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

// within returns the items within a range, and whether the last item is older than the range. Without k.Time, all items
// are within the range.
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
