package oauthrest

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/linking"
)

// cursor is the position of a pull: the entry of Config.Resources, the part of the time range, and the page.
type cursor struct {
	// Entry is the number of entries whose data was pulled completely.
	Entry int `json:"e,omitempty"`
	// Until is the end of the current part of the time range, in Unix microseconds; 0 means the end of the whole range.
	Until int64 `json:"u,omitempty"`
	// Page is the number of pages of the current part that were pulled. Token is the provider's cursor or URL for the next
	// page.
	Page  int    `json:"p,omitempty"`
	Token string `json:"t,omitempty"`
	// Held holds the last samples of the previous page, whose hour may continue on this page.
	Held []held `json:"h,omitempty"`
}

// maxCursor is the longest accepted cursor of a provider, and maxHeld the largest size of Held as JSON, in bytes.
const (
	maxCursor = 8 << 10
	maxHeld   = 256 << 10
)

func (c cursor) String() string {
	b, _ := json.Marshal(c) //nolint:errchkjson // numbers and a text
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
	if err != nil || len(s) > 2*(maxCursor+maxHeld) || c.Entry < 0 || c.Page < 0 {
		return c, fmt.Errorf("%w: cursor: must be one that this connector returned", healthlab.Invalid)
	}
	return c, nil
}

// errLoop is the error of a pull whose pages do not end.
var errLoop = fmt.Errorf("%w: the pages of the provider do not end: a cursor repeats, or there are more pages than max_pages of the entry allows", healthlab.Invalid)

// part describes one request: an entry, a part of the time range, and a page.
type part struct {
	*linking.PullRequest
	m        *mapper
	at       cursor
	from, to time.Time
	now      time.Time
}

// Pulls reports whether the configuration has an entry for a resource. See [linking.ExtendedPuller].
func (c *Connector) Pulls(resource string) bool { return len(c.entries[resource]) > 0 }

// Pull sends one request. See [linking.Puller].
func (c *Connector) Pull(ctx context.Context, r linking.PullRequest) (linking.PullPage, error) {
	page, err := c.pull(ctx, r)
	if err != nil {
		return linking.PullPage{}, fmt.Errorf("pull: %w", err)
	}
	return page, nil
}

func (c *Connector) pull(ctx context.Context, r linking.PullRequest) (page linking.PullPage, err error) {
	entries := c.entries[r.Resource]
	at, err := readCursor(r.Cursor)
	switch {
	case err != nil:
		return page, err
	case len(entries) == 0:
		return page, fmt.Errorf("%w: resource: must be one of: %s", healthlab.Unimplemented, strings.Join(slices.Sorted(maps.Keys(c.entries)), ", "))
	case at.Entry >= len(entries):
		return page, nil // the page has more
	}
	s, err := c.Decode(r.Secret)
	if err != nil {
		return page, err
	}
	r.Zone = cmp.Or(r.Zone, time.UTC)
	p := &part{PullRequest: &r, m: entries[at.Entry], at: at, from: r.From, to: r.To}
	p.bounds()
	p.now = c.now()
	where, err := c.address(p)
	if err != nil {
		return page, err
	}
	a, err := c.get(ctx, where, s.Access)
	if err != nil {
		return page, err
	}
	nothing, err := c.checkStatus(a, "path, query and range of the entry of "+r.Resource)
	if err != nil {
		return page, err
	}
	page.RateLimits = c.rates(a)
	var doc any
	var got gathering
	got.addHeld(at.Held)
	count := 0
	if !nothing {
		if doc, err = tree(a.Body, nil); err != nil {
			return page, shapeError("it " + errDocument.Error())
		}
		if count, err = p.m.mapItems(&got, doc, r.Zone); err != nil {
			return page, err
		}
	}
	next, err := c.next(p, where, a, doc, count, len(entries))
	if err != nil {
		return page, err
	}
	if p.m.entry.Combine {
		if next != nil && next.Token != "" {
			if next.Held, err = checkHeld(got.popLast()); err != nil {
				return page, err
			}
		}
		got.combine(r.Resource, p.inRequestedRange())
	}
	page.Items = got.pulled
	if next != nil {
		page.Next = next.String()
	}
	return page, nil
}

// checkHeld returns the samples that the cursor carries to the next page. It fails if they are too large for a cursor.
func checkHeld(back []held) ([]held, error) {
	b, err := json.Marshal(back)
	if err != nil || len(b) > maxHeld {
		return nil, fmt.Errorf("%w: the items of one hour must have at most %d bytes to be combined", healthlab.Invalid, maxHeld)
	}
	return back, nil
}

// bounds reduces the time range to the part that one request may cover. The newest part is requested first.
func (p *part) bounds() {
	if p.at.Until != 0 {
		p.to = time.UnixMicro(p.at.Until).UTC()
	}
	days := p.m.entry.Range.MaxDays
	if days == 0 {
		return
	}
	from := p.end().AddDate(0, 0, -days).Add(2 * p.margin())
	if p.m.entry.Range.Format == formatDate {
		from = p.last().AddDays(1 - days).At(p.Zone).UTC()
	}
	if from.After(p.from) {
		p.from = from
	}
}

func (p *part) end() time.Time { return p.to.Add(time.Second - time.Microsecond).Truncate(time.Second) }

func (p *part) margin() time.Duration {
	// Combined entries need whole hours, so an hour is requested on each side; a range of days already has whole
	// hours.
	if e := p.m.entry; !e.Combine || !e.ranged() || e.Range.Format == formatDate {
		return 0
	}
	return time.Hour
}

func (p *part) inRequestedRange() func(time.Time) bool {
	margin := p.margin()
	from, to := p.from.Add(-margin), p.end()
	return func(t time.Time) bool { return margin == 0 || !t.Before(from) && !t.After(to) }
}

func (p *part) last() healthlab.Date {
	return healthlab.DateOf(p.to.Add(-time.Microsecond).In(p.Zone))
}

// ranged reports whether the requests of an entry contain {from} or {to}.
func (e *Resource) ranged() bool {
	has := func(s string) bool { return strings.Contains(s, "{from}") || strings.Contains(s, "{to}") }
	for _, v := range e.Query {
		if has(v) {
			return true
		}
	}
	return has(e.Path)
}

// next returns the cursor after the response a to the request of the URL asked; nil at the end. doc is the decoded
// response, count its number of elements, and entries the number of entries for the resource.
func (c *Connector) next(p *part, asked *url.URL, a *rest.Answer, doc any, count, entries int) (*cursor, error) {
	e := p.m.entry
	token, err := c.nextPage(p, asked, a, doc, count)
	if err != nil {
		return nil, err
	}
	most := e.Paging.MaxPages
	if most == 0 {
		most = defaultPages
	}
	switch {
	case token != "" && (token == p.at.Token || p.at.Page+1 >= most):
		return nil, errLoop
	case token != "":
		return &cursor{Entry: p.at.Entry, Until: p.at.Until, Page: p.at.Page + 1, Token: token}, nil
	case e.ranged() && p.from.After(p.From):
		return &cursor{Entry: p.at.Entry, Until: p.from.UnixMicro()}, nil
	case p.at.Entry+1 < entries:
		return &cursor{Entry: p.at.Entry + 1}, nil
	}
	return nil, nil //nolint:nilnil // nil marks the end
}

// nextPage returns the provider's cursor, URL or number of the next page; empty on the last page. count is the number
// of elements on this page.
func (c *Connector) nextPage(p *part, asked *url.URL, a *rest.Answer, doc any, count int) (string, error) {
	g := &p.m.entry.Paging
	token := ""
	switch g.Kind {
	case pageNumber, pageOffset:
		if count < g.Size {
			return "", nil
		}
		return itoa(int64(p.at.Page + 1)), nil
	case pageCursor, pageURL:
		v, _ := (&item{inside: []any{doc}}).find(g.Next)
		token, _ = text(v)
		if token == "false" {
			token = ""
		}
	case pageLink:
		token = nextLink(a.Header.Values("Link"))
	}
	if len(token) > maxCursor {
		return "", shapeError(fmt.Sprintf("the cursor or URL of the next page must have at most %d bytes", maxCursor))
	}
	if token != "" && (g.Kind == pageURL || g.Kind == pageLink) {
		u, err := asked.Parse(token)
		if err != nil || u.User != nil {
			return "", shapeError("the URL of the next page must be valid, and must not contain a user")
		}
		if err := c.requireProviderHost(u); err != nil {
			return "", err
		}
		token = u.String()
	}
	return token, nil
}

// requireProviderHost returns an error unless u has the scheme and host of API.BaseURL, because the access token must
// not be sent elsewhere.
func (c *Connector) requireProviderHost(u *url.URL) error {
	base, err := url.Parse(c.config.API.BaseURL)
	if err != nil || u.Scheme != base.Scheme || !strings.EqualFold(u.Host, base.Host) {
		return fmt.Errorf("%w: the URL of the next page must be at the host of the provider", healthlab.Invalid)
	}
	return nil
}

// nextLink returns the target of the link with rel=next in Link headers (RFC 8288); empty if there is none.
func nextLink(headers []string) string {
	for _, h := range headers {
		for rest := h; ; {
			_, after, ok := strings.Cut(rest, "<")
			if !ok {
				break
			}
			target, tail, ok := strings.Cut(after, ">")
			if !ok {
				break
			}
			attributes, _, _ := strings.Cut(tail, "<")
			for _, one := range strings.FieldsFunc(attributes, func(r rune) bool { return r == ';' || r == ',' }) {
				name, value, _ := strings.Cut(strings.TrimSpace(one), "=")
				if strings.EqualFold(name, "rel") && slices.Contains(strings.Fields(strings.ToLower(strings.Trim(value, `" `))), "next") {
					return target
				}
			}
			rest = tail
		}
	}
	return ""
}

// address returns the URL of a request.
func (c *Connector) address(p *part) (*url.URL, error) {
	e := p.m.entry
	g := &e.Paging
	if p.at.Token != "" && (g.Kind == pageURL || g.Kind == pageLink) {
		u, err := url.Parse(p.at.Token)
		if err != nil {
			return nil, fmt.Errorf("%w: cursor: must be one that this connector returned", healthlab.Invalid)
		}
		return u, c.requireProviderHost(u)
	}
	user := ""
	if p.ExternalUserID != nil {
		user = *p.ExternalUserID
	}
	all := e.Path
	for _, v := range e.Query {
		all += v
	}
	if user == "" && strings.Contains(all, "{user_id}") {
		return nil, fmt.Errorf("%w: the connection has no account id of the provider, which {user_id} requires", healthlab.Invalid)
	}
	from, to := p.rangeTexts()
	u, err := url.Parse(strings.TrimSuffix(c.config.API.BaseURL, "/") +
		strings.NewReplacer("{user_id}", url.PathEscape(user), "{from}", url.PathEscape(from), "{to}", url.PathEscape(to)).Replace(e.Path))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: the URL of the request to the provider must be valid: check api.base_url and the path of the entry of %s", healthlab.Invalid, e.Resource)
	case user == "." || user == "..":
		return nil, fmt.Errorf(`%w: the account id of the provider, which {user_id} requires, must not be "." or ".."`, healthlab.Invalid)
	}
	q := url.Values{}
	fill := strings.NewReplacer("{user_id}", user, "{from}", from, "{to}", to)
	for name, value := range e.Query {
		q.Set(name, fill.Replace(value))
	}
	if g.SizeParam != "" && g.Size > 0 {
		q.Set(g.SizeParam, itoa(int64(g.Size)))
	}
	switch {
	case g.Kind == pageNumber:
		q.Set(g.Param, itoa(int64(g.First+p.at.Page)))
	case g.Kind == pageOffset:
		q.Set(g.Param, itoa(int64(g.First)+int64(p.at.Page)*int64(g.Size)))
	case g.Kind == pageCursor && p.at.Token != "":
		q.Set(g.Param, p.at.Token)
	}
	u.RawQuery = q.Encode()
	return u, nil
}

// rangeTexts returns the bounds of a part as text in the provider's format.
func (p *part) rangeTexts() (from, to string) {
	r := &p.m.entry.Range
	start, end := p.from.Add(-p.margin()), p.end().Add(p.margin())
	if p.margin() > 0 && end.After(p.now) { // nothing is written then
		end = p.now.Add(time.Second - time.Microsecond).Truncate(time.Second)
		if p.end().After(end) {
			end = p.end()
		}
	}
	switch r.Format {
	case formatDate:
		last := p.last()
		if !r.Inclusive {
			last = last.AddDays(1)
		}
		return healthlab.DateOf(p.from.In(p.Zone)).String(), last.String()
	case formatUnix:
		return itoa(start.Unix()), itoa(end.Unix())
	case formatUnixMS:
		return itoa(start.UnixMilli()), itoa(end.UnixMilli())
	}
	return start.UTC().Format(time.RFC3339), end.UTC().Format(time.RFC3339)
}
