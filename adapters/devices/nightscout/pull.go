package nightscout

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/linking"
)

// pageSize is the number of documents of one request.
const pageSize = 1000

// The collections of a site.
const (
	entries    = "entries"
	treatments = "treatments"
)

// collections lists the collections of a site that contain data of a resource.
var collections = map[string][]string{
	"glucose": {entries, treatments}, "insulin_injection": {treatments}, "carbohydrates": {treatments}, "note": {treatments},
}

// cursor is the position of a pull. A collection is read from the newest document to the oldest. collection is an index
// in the collections of the resource, and until the exclusive end of the unread range, in Unix milliseconds.
type cursor struct {
	collection int
	until      int64
}

func (c cursor) String() string { return fmt.Sprintf("%d.%d", c.collection, c.until) }

func readCursor(s string, end time.Time) (c cursor, err error) {
	c.until = end.Add(time.Millisecond - time.Nanosecond).UnixMilli()
	if s == "" {
		return c, nil
	}
	n, until, _ := strings.Cut(s, ".")
	if c.collection, err = strconv.Atoi(n); err == nil && until != "" {
		c.until, err = strconv.ParseInt(until, 10, 64)
	}
	if err != nil || c.collection < 0 {
		return c, fmt.Errorf("%w: cursor: must be one that this connector returned", healthlab.Invalid)
	}
	return c, nil
}

// Pull reads one page of one collection, newest documents first. See [linking.Puller].
func (c *Connector) Pull(ctx context.Context, r linking.PullRequest) (linking.PullPage, error) {
	page, err := c.pull(ctx, &r)
	if err != nil {
		return linking.PullPage{}, fmt.Errorf("pull: %w", err)
	}
	return page, nil
}

func (c *Connector) pull(ctx context.Context, r *linking.PullRequest) (page linking.PullPage, err error) {
	from := collections[r.Resource]
	if from == nil {
		return page, fmt.Errorf("%w: resource: must be one of: %s", healthlab.Unimplemented, strings.Join(slices.Sorted(maps.Keys(collections)), ", "))
	}
	at, err := readCursor(r.Cursor, r.To)
	if err != nil || at.collection >= len(from) {
		return page, err
	}
	var s site
	if json.Unmarshal(r.Secret, &s) != nil || s.Base == "" {
		return page, fmt.Errorf("%w: secret: must be one that the sign-in of this connector returned", healthlab.Invalid)
	}
	q := url.Values{"count": {strconv.Itoa(pageSize)}}
	begin, texts := r.From.UnixMilli(), from[at.collection] == treatments
	if texts {
		begin, at.until = second(begin), second(at.until+999)
	}
	if !texts {
		q.Set("find[date][$gte]", strconv.FormatInt(begin, 10))
		q.Set("find[date][$lt]", strconv.FormatInt(at.until, 10))
	} else {
		q.Set("find[created_at][$gte]", iso(begin))
		q.Set("find[created_at][$lt]", iso(at.until))
	}
	body, err := c.get(ctx, &s, "/api/v1/"+from[at.collection]+".json", q)
	if err != nil {
		return page, err
	}
	var docs []json.RawMessage
	if json.Unmarshal(body, &docs) != nil {
		return page, errShape
	}
	m := newMapper(r.Resource, &s)
	for _, doc := range docs {
		m.read(doc, !texts)
	}
	page.Items = m.pulled()
	page.Next, err = at.next(m.oldest, len(docs), begin, len(from), texts)
	return page, err
}

func second(ms int64) int64 {
	// A site compares treatments by the text of their time, in which 10:00:00Z sorts after 10:00:00.999Z. Only whole
	// seconds are in order.
	return ms - (ms%1000+1000)%1000
}

func iso(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// next returns the cursor after a page of n documents; empty at the end. oldest is the time of the oldest document, and
// begin the start of the range, in Unix milliseconds. collections is the number of collections of the resource.
//
// Documents of the instant oldest are requested again, because the page may have left some out. For treatments (texts
// is true), all documents of that second are requested again.
func (c cursor) next(oldest int64, n int, begin int64, collections int, texts bool) (string, error) {
	if n >= pageSize {
		if oldest >= c.until || oldest < begin {
			return "", fmt.Errorf("%w: the site returned documents outside of the requested range", healthlab.Invalid)
		}
		until := oldest + 1
		if texts {
			oldest = second(oldest)
			until = oldest + 1000
		}
		if until >= c.until {
			until = oldest // the whole page has one time
		}
		return cursor{c.collection, until}.String(), nil
	}
	if c.collection+1 < collections {
		// The next collection is read from the end of the range, r.To.
		return fmt.Sprintf("%d.", c.collection+1), nil
	}
	return "", nil
}
