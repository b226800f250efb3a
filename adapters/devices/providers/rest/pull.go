package rest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/linking"
)

// cursor is the position of a pull. A pull reads one collection after the other, each in windows of the time range from
// the newest. In a window it requests first the joined collections, then the collection itself, or the collection that
// lists its items and then each item.
type cursor struct {
	// Collection is the name of the current collection. Set lists the resources that the pull reads, sorted.
	Collection string   `json:"collection,omitempty"`
	Set        []string `json:"set,omitempty"`
	// Part is the number of joined collections that were read for the window.
	Part int `json:"p,omitempty"`
	// Until is the end of the window, in Unix microseconds; 0 means the end of the whole range.
	Until int64 `json:"u,omitempty"`
	// Token identifies the next page, and Page is the number of pages before it.
	Token string `json:"t,omitempty"`
	Page  int    `json:"n,omitempty"`
	// Joined holds the items of the joined collections, by collection and key.
	Joined map[string]map[string]json.RawMessage `json:"j,omitempty"`
	// Queue lists the keys of items that are still to be requested. Step is the number of collections of Collection.With
	// that were already requested for the first key.
	Queue []string `json:"q,omitempty"`
	Step  int      `json:"s,omitempty"`
}

const (
	// maxPages is the largest number of pages of one collection in one window.
	maxPages = 5000
	// maxCursor is the longest cursor, in bytes.
	maxCursor = 1 << 20
)

func (c *cursor) String() string {
	b, _ := json.Marshal(c) //nolint:errchkjson // numbers, strings and JSON
	return base64.RawURLEncoding.EncodeToString(b)
}

func readCursor(s string) (c cursor, err error) {
	if s == "" {
		return c, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil || c.Part < 0 || c.Page < 0 || c.Step < 0 {
		return c, fmt.Errorf("%w: cursor: must be one that this connector returned", healthlab.Invalid)
	}
	return c, nil
}

// Pulls reports whether the provider has the resource, which is device or workout_stream. See [linking.ExtendedPuller].
func (c *Connector) Pulls(resource string) bool { return len(c.def.collectionsFor(resource)) > 0 }

// Pull sends one request for the resource and those of r.With. See [linking.Puller].
func (c *Connector) Pull(ctx context.Context, r linking.PullRequest) (linking.PullPage, error) {
	page, err := c.pull(ctx, &r)
	if err != nil {
		return linking.PullPage{}, fmt.Errorf("pull: %w", err)
	}
	return page, nil
}

// window describes one request: a collection and a part of the range.
type window struct {
	*cursor
	r          *linking.PullRequest
	asked      bool        // the request is for the first key of the queue
	set        []string    // resources that the pull reads
	own        *Collection // the collection whose items are read
	collection *Collection // requested collection: own, one that is joined to it, or the one that lists its items
	from, to   time.Time
	past       bool // the last item of the page is older than the range
}

func (c *Connector) pull(ctx context.Context, r *linking.PullRequest) (page linking.PullPage, err error) {
	at, err := readCursor(r.Cursor)
	set := slices.Sorted(slices.Values(append([]string{r.Resource}, r.With...)))
	collections := c.def.collectionsFor(set...)
	if err != nil {
		return page, err
	}
	if len(collections) == 0 {
		return page, fmt.Errorf("%w: resource: must be one of: %s", healthlab.Unimplemented, strings.Join(c.def.resources(), ", "))
	}
	n := slices.IndexFunc(collections, func(i int) bool { return c.def.Collections[i].Name == at.Collection })
	if n < 0 || !slices.Equal(at.Set, set) { // the first page, or the table or the set has changed since the last one
		n, at = 0, cursor{Collection: c.def.Collections[collections[0]].Name, Set: set}
	}
	secret, err := readTokens(r.Secret)
	if err != nil {
		return page, err
	}
	r.Zone = cmp.Or(r.Zone, time.UTC)
	w := c.window(r, &at, set)
	body, rates, err := c.fetch(ctx, w, secret.Access)
	if err != nil {
		return page, err
	}
	page.RateLimits = rates
	data, count, err := c.read(w, body)
	if err != nil {
		return page, err
	}
	page.Items = data[r.Resource]
	for _, resource := range r.With {
		page.With = append(page.With, linking.ResourceData{Resource: resource, Items: data[resource]})
	}
	page.Next, err = c.next(w, body, count, collections[n+1:])
	return page, err
}

// fetch sends one request, and returns the body and the rate limits of the answer. The body is nil if there is no data.
func (c *Connector) fetch(ctx context.Context, w *window, token string) ([]byte, []linking.RateLimit, error) {
	req, err := c.request(ctx, w, token)
	if err != nil {
		return nil, nil, err
	}
	a, err := c.HTTP.Do(req)
	if err != nil {
		return nil, nil, err
	}
	empty, err := c.checkStatus(w.collection, a)
	if err != nil {
		return nil, nil, err
	}
	var rates []linking.RateLimit
	if c.def.Rates != nil {
		rates = c.def.Rates(a.Header, c.HTTP.now())
	}
	if empty {
		return nil, rates, nil
	}
	return a.Body, rates, nil
}

// window returns the next request of a pull, whose position is at. set lists the resources that the pull reads.
func (c *Connector) window(r *linking.PullRequest, at *cursor, set []string) *window {
	own := c.def.collection(at.Collection)
	w := &window{cursor: at, r: r, set: set, own: own, collection: own, from: r.From, to: r.To}
	if at.Until != 0 {
		w.to = time.UnixMicro(at.Until).UTC()
	}
	ranged, joins := own, own.joins(set)
	switch {
	case at.Part < len(joins):
		w.collection = c.def.collection(joins[at.Part])
	case own.For != "" && len(at.Queue) == 0:
		w.collection = c.def.collection(own.For)
	case at.Step < len(own.With):
		w.collection = c.def.collection(own.With[at.Step])
	}
	if own.For != "" {
		ranged = c.def.collection(own.For)
	}
	w.from, w.asked = ranged.Range.cut(w.from, w.to), own.For != "" && len(at.Queue) > 0
	return w
}

// file returns the request for the file (Collection.File) of the first item of the queue.
func (c *Connector) file(ctx context.Context, w *window) (*http.Request, error) {
	address := rebase(w.collection.File(w.Joined[w.own.For][w.Queue[0]]), c.opts.Origin)
	if _, err := c.opts.Guard.CheckURL(address); err != nil {
		return nil, fmt.Errorf("%w: the URL of a file must be an address that the guard of outgoing requests allows", healthlab.Invalid)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("%w: the URL of the request to the provider must be valid", healthlab.Invalid)
	}
	return req, nil
}

// request returns the HTTP request of a window. token is the access token.
func (c *Connector) request(ctx context.Context, w *window, token string) (*http.Request, error) {
	if w.asked && w.collection.File != nil {
		return c.file(ctx, w)
	}
	account, id := "", ""
	if w.r.ExternalUserID != nil {
		account = *w.r.ExternalUserID
	}
	if w.asked {
		id = w.Queue[0]
	}
	for _, part := range []string{account, id} {
		if part == "." || part == ".." {
			return nil, fmt.Errorf(`%w: the ids of the account and of the item must not be "." or ".."`, healthlab.Invalid)
		}
	}
	path := strings.NewReplacer(accountPart, url.PathEscape(account), "{id}", url.PathEscape(id)).Replace(w.collection.Path)
	where, err := url.Parse(strings.TrimSuffix(c.base.String(), "/") + path)
	if err != nil {
		return nil, fmt.Errorf("%w: the URL of the request to the provider must be valid", healthlab.Invalid)
	}
	q := where.Query()
	for name, values := range w.collection.Query {
		q[name] = slices.Clone(values)
	}
	if w.asked && w.collection.Ask != nil {
		w.collection.Ask(q, id)
	}
	if !w.asked {
		w.collection.Range.set(q, w.from, w.to, w.r.Zone)
		if w.collection.Pages != nil {
			w.collection.Pages.setPage(q, w.Token)
		}
	}
	method, body, contentType := http.MethodGet, io.Reader(http.NoBody), ""
	switch {
	case w.collection.Body != nil:
		doc, err := json.Marshal(w.collection.Body(w.collection.Range.days(w.from, w.to, w.r.Zone)))
		if err != nil {
			return nil, fmt.Errorf("%w: the body of the request for %s cannot be encoded as JSON", healthlab.Invalid, w.collection.Name)
		}
		method, body, contentType = http.MethodPost, bytes.NewReader(doc), "application/json"
	case w.collection.Method == http.MethodPost:
		method, body, contentType = http.MethodPost, strings.NewReader(q.Encode()), formType
		q = url.Values{}
	}
	where.RawQuery = q.Encode()
	req, err := http.NewRequestWithContext(ctx, method, where.String(), body)
	if err != nil {
		return nil, fmt.Errorf("%w: the URL of the request to the provider must be valid", healthlab.Invalid)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	req.Header.Set("Accept", w.collection.accepts())
	c.setHeaders(req, token)
	return req, nil
}

// setHeaders adds the headers of every data request, except those for a Collection.File. token is the access token.
func (c *Connector) setHeaders(req *http.Request, token string) {
	for name, value := range c.def.Header {
		req.Header.Set(name, value)
	}
	if c.def.KeyHeader != "" {
		req.Header.Set(c.def.KeyHeader, c.Client.Key)
	}
	req.Header.Set("Authorization", "Bearer "+token)
}

// checkStatus judges the status and the body of a response. empty means that the person has no data, which is no error.
// err is the error of any other response without data.
func (c *Connector) checkStatus(k *Collection, a *Answer) (empty bool, err error) {
	if c.def.Refused != nil {
		if err := c.def.Refused(a); err != nil {
			return false, err
		}
	}
	if a.Status/100 == 2 {
		return a.Status == http.StatusNoContent || len(strings.TrimSpace(string(a.Body))) == 0, nil
	}
	wait := c.HTTP.RetryAfter(a)
	switch {
	case slices.Contains(k.Missing, a.Status):
		return true, nil
	case a.Status == http.StatusUnauthorized:
		return false, fmt.Errorf("%w: the provider does not accept the token", healthlab.Unauthenticated)
	case a.Status == http.StatusTooManyRequests:
		if wait == 0 && c.def.Wait != nil {
			wait = c.def.Wait(a.Header, c.HTTP.now())
		}
		return false, &linking.RateLimitError{Scope: c.def.RateScope, Wait: wait}
	case a.Status == http.StatusForbidden && strings.Contains(a.Header.Get("WWW-Authenticate"), `error="insufficient_scope"`):
		return false, fmt.Errorf("%w: the person has not granted a scope that this resource requires", healthlab.Invalid) // RFC 6750, 3.1
	case a.Status == http.StatusForbidden, a.Status == http.StatusRequestTimeout:
		return false, Unavailable(fmt.Sprintf("answers with status %d; the request is repeated later", a.Status), wait)
	case a.Status/100 == 4:
		return false, fmt.Errorf("%w: the provider answered the request for %s with status %d, which means that the request is wrong", healthlab.Invalid, k.Name, a.Status)
	case a.Status/100 == 3:
		return false, Unavailable(fmt.Sprintf("answers with status %d, a redirect, which is not followed", a.Status), 0)
	}
	return false, Unavailable(fmt.Sprintf("answers with status %d", a.Status), wait)
}

// read decodes a response body, and returns the data and the number of items. The items of a joined or listing
// collection are kept in w.Joined, and give no data. A nil body has no items.
func (c *Connector) read(w *window, body []byte) (Data, int, error) {
	if body == nil {
		return nil, 0, nil
	}
	if w.collection == w.own {
		return w.decode(body)
	}
	if w.Joined == nil {
		w.Joined = map[string]map[string]json.RawMessage{}
	}
	kept := w.Joined[w.collection.Name]
	if kept == nil {
		kept = map[string]json.RawMessage{}
		w.Joined[w.collection.Name] = kept
	}
	if w.asked {
		if !json.Valid(body) {
			return nil, 0, errShape
		}
		kept[w.Queue[0]] = w.collection.keepMembers(body)
		if w.collection.provides(w.set) {
			return w.decode(body)
		}
		return nil, 1, nil
	}
	all, err := w.collection.items(body)
	if err != nil {
		return nil, 0, err
	}
	items, past := w.collection.within(all, w.from, w.to)
	w.past = past
	for _, item := range items {
		key := w.collection.Key(item)
		if key == "" {
			continue
		}
		kept[key] = w.collection.keepMembers(item)
		if w.own.For == w.collection.Name {
			w.Queue = append(w.Queue, key)
		}
	}
	return nil, len(all), nil
}

// decode decodes the items of a response body, and returns the data and the number of items.
func (w *window) decode(body []byte) (Data, int, error) {
	all, err := w.collection.items(body)
	if err != nil {
		return nil, 0, err
	}
	items, past := w.collection.within(all, w.from, w.to)
	w.past = past
	b := newBatch(w.collection)
	b.person = w.r.Zone
	if b.joined = w.Joined; b.joined == nil {
		b.joined = map[string]map[string]json.RawMessage{}
	}
	if w.asked {
		b.id = w.Queue[0]
	}
	b.read(body, w.collection.latest(items))
	return b.data, len(all), nil
}

// keepMembers returns an item with only the members that k.Keep lists.
func (k *Collection) keepMembers(item json.RawMessage) json.RawMessage {
	if k.Keep == nil {
		return item
	}
	out := map[string]json.RawMessage{}
	for _, name := range k.Keep {
		if v := memberAt(item, name); v != nil {
			out[name] = v
		}
	}
	b, _ := json.Marshal(out) //nolint:errchkjson // JSON that was read
	return b
}

// next returns the cursor after a response; empty at the end. n is the number of items in body. later holds the indexes
// of the collections that follow.
func (c *Connector) next(w *window, body []byte, n int, later []int) (string, error) {
	at := *w.cursor
	token, listed := at.Token, w.collection != w.own && w.own.For == w.collection.Name
	if listed = listed && !w.asked; w.asked && w.collection != w.own {
		at.Step++
	} else if w.asked {
		for _, kept := range at.Joined {
			delete(kept, at.Queue[0])
		}
		at.Queue, at.Step = at.Queue[1:], 0
	} else if token = ""; w.collection.Pages != nil && !w.past {
		token = w.collection.Pages.next(at.Token, body, n)
		if token != "" && (token == at.Token || at.Page >= maxPages) {
			return "", fmt.Errorf("%w: the pages of the provider do not end: a cursor repeats, or there are more than %d pages", healthlab.Invalid, maxPages)
		}
	}
	switch {
	case len(at.Queue) > 0: // the items of this page of the list, then its next page
		at.Token = token
		if listed {
			at.Page++
		}
	case token != "":
		at.Token = token
		at.Page++
	case at.Part < len(w.own.joins(w.set)):
		at.Part, at.Token, at.Page = at.Part+1, "", 0
	case w.from.After(w.r.From):
		at = cursor{Collection: at.Collection, Set: at.Set, Until: w.from.UnixMicro()}
	case len(later) > 0:
		at = cursor{Collection: c.def.Collections[later[0]].Name, Set: at.Set}
	default:
		return "", nil
	}
	s := at.String()
	if len(s) > maxCursor {
		return "", fmt.Errorf("%w: the state of the pull, with its joined items and its queue, must have at most %d bytes", healthlab.Invalid, maxCursor)
	}
	return s, nil
}

// Read decodes a stored page of a collection without network access: all resources that the collection provides,
// without joined items. It returns Invalid if there is no such collection or the page does not have the documented
// form.
func (d *Definition) Read(collection string, page []byte) (Data, error) {
	k := d.collection(collection)
	if k == nil || k.Read == nil {
		names := []string{}
		for _, k := range d.Collections {
			names = append(names, k.Name)
		}
		return nil, fmt.Errorf("%w: collection: must be one of %s", healthlab.Invalid, strings.Join(names, ", "))
	}
	items, err := k.items(page)
	if err != nil {
		return nil, fmt.Errorf("%w: the page does not have the form that the provider documents", healthlab.Invalid)
	}
	b := newBatch(k)
	b.read(page, k.latest(items))
	return b.data, nil
}
