package fhirlab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
)

const (
	// pollOverlap is subtracted from the start of a poll, because a server may show a report some time after its
	// lastUpdated.
	pollOverlap = time.Minute
	pollCount   = "50"
	// mostPolled is the largest number of pages of a poll, and mostRead the largest number of resources that are read
	// for one report.
	mostPolled = 10_000
	mostRead   = 1000
)

// Poll accepts the DiagnosticReports that a laboratory's FHIR server has updated since an instant, each with the
// Observations, Specimens, Patient and ServiceRequests that it names, as [Backend.Receive] does. It returns the
// instant for the next poll, which the host must store. The zero time begins with the first report. Reports that
// were accepted before change nothing.
//
// If a report cannot be read without loss, Poll still accepts the others. It returns an Invalid error about the
// report, and the next poll begins with it. After any other error the returned instant is since.
func (b *Backend) Poll(ctx context.Context, from *Client, since time.Time) (time.Time, error) {
	var latest, stuck time.Time
	var refused error
	err := from.reports(ctx, since, func(raw []byte, at time.Time) error {
		err := b.Receive(ctx, raw)
		if healthlab.KindOf(err) == healthlab.Invalid {
			refused = errors.Join(refused, err)
			if stuck.IsZero() || at.Before(stuck) {
				stuck = at
			}
			return nil
		}
		if at.After(latest) {
			latest = at
		}
		return err
	})
	switch {
	case err != nil:
		return since, fmt.Errorf("poll reports: %w", err)
	case refused != nil:
		if stuck.Before(since) {
			stuck = since
		}
		return stuck, fmt.Errorf("poll reports: %w", refused)
	case latest.Before(since):
		return since, nil
	}
	return latest, nil
}

// polledPage is a page of a search.
type polledPage struct {
	ResourceType string `json:"resourceType"`
	Link         []struct {
		Relation string `json:"relation"`
		URL      string `json:"url"`
	} `json:"link"`
	Entry []struct {
		Resource json.RawMessage `json:"resource"`
		Search   struct {
			Mode string `json:"mode"`
		} `json:"search"`
	} `json:"entry"`
}

// reports calls use with each report that was updated since an instant, as a bundle of type collection. at is the time
// of the report's last update.
func (c *Client) reports(ctx context.Context, since time.Time, use func(raw []byte, at time.Time) error) error {
	q := url.Values{"_count": {pollCount}, "_sort": {"_lastUpdated"}, "_include": {
		"DiagnosticReport:result", "DiagnosticReport:based-on", "DiagnosticReport:subject", "DiagnosticReport:specimen",
	}}
	if !since.IsZero() {
		q.Set("_lastUpdated", "ge"+since.Add(-pollOverlap).UTC().Format("2006-01-02T15:04:05.000Z07:00"))
	}
	seen := map[string]bool{}
	for next := c.url + "/DiagnosticReport?" + q.Encode(); next != ""; {
		if len(seen) == mostPolled || seen[next] {
			return fmt.Errorf("%w: the search for reports has more than %d pages, or its next links form a cycle", healthlab.Unavailable, mostPolled)
		}
		seen[next] = true
		text, err := c.get(ctx, next)
		if err != nil {
			return err
		}
		var page polledPage
		if json.Unmarshal(text, &page) != nil || page.ResourceType != "Bundle" {
			return fmt.Errorf("%w: the laboratory answers a search with something else than a Bundle", healthlab.Unavailable)
		}
		if err := c.usePage(ctx, &page, use); err != nil {
			return err
		}
		next = ""
		for _, l := range page.Link {
			if l.Relation == "next" {
				next = l.URL
			}
		}
		if next != "" {
			if next, err = c.resolveOnServer(next); err != nil {
				return err
			}
		}
	}
	return nil
}

// resolveOnServer returns the absolute form of a URL. It fails unless the URL is on this server, because the token must
// not be sent elsewhere.
func (c *Client) resolveOnServer(next string) (string, error) {
	base, err := url.Parse(c.url + "/")
	if err != nil {
		return "", fmt.Errorf("address of the laboratory: %w", err)
	}
	at, err := base.Parse(next)
	if err != nil || at.Scheme != base.Scheme || at.Host != base.Host {
		return "", fmt.Errorf("%w: the next page of the laboratory is at another server", healthlab.Unavailable)
	}
	return at.String(), nil
}

// named lists the types of resources that a poll reads together with the report which refers to them.
var named = []string{"Observation", "Specimen", "Patient", "ServiceRequest", "Organization"}

// usePage calls use with each report of a page, as a bundle of type collection. at is the time of its last update.
func (c *Client) usePage(ctx context.Context, page *polledPage, use func(raw []byte, at time.Time) error) error {
	held := map[string]json.RawMessage{}
	for _, e := range page.Entry {
		var h headIn
		if json.Unmarshal(e.Resource, &h) == nil && h.ID != "" {
			held[h.ResourceType+"/"+h.ID] = e.Resource
		}
	}
	for _, e := range page.Entry {
		var h struct {
			headIn
			Meta struct {
				LastUpdated time.Time `json:"lastUpdated"`
			} `json:"meta"`
		}
		if json.Unmarshal(e.Resource, &h) != nil || h.ResourceType != "DiagnosticReport" || e.Search.Mode == "include" {
			continue
		}
		raw, err := c.collect(ctx, "DiagnosticReport/"+h.ID, held)
		if err != nil {
			return err
		}
		if err := use(raw, h.Meta.LastUpdated); err != nil {
			return err
		}
	}
	return nil
}

// collect returns a bundle of type collection with a report and the resources to which it refers, directly or through
// others. held maps references to resources of the page. Resources that held lacks are requested from the server.
func (c *Client) collect(ctx context.Context, report string, held map[string]json.RawMessage) ([]byte, error) {
	type entry struct {
		FullURL  string          `json:"fullUrl"`
		Resource json.RawMessage `json:"resource"`
	}
	var entries []entry
	wanted := []string{report}
	for i := 0; i < len(wanted); i++ {
		if i == mostRead {
			return nil, fmt.Errorf("%w: a report of the laboratory names more than %d resources", healthlab.Unavailable, mostRead)
		}
		raw := held[wanted[i]]
		if raw == nil {
			text, err := c.get(ctx, c.url+"/"+wanted[i])
			if healthlab.KindOf(err) == healthlab.NotFound {
				continue // Receive decides about a missing resource
			}
			if err != nil {
				return nil, err
			}
			raw = text
			held[wanted[i]] = raw
		}
		entries = append(entries, entry{c.url + "/" + wanted[i], raw})
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			return nil, fmt.Errorf("%w: the laboratory answers a read with something else than a resource", healthlab.Unavailable)
		}
		for _, ref := range references(v) {
			ref, _, _ = strings.Cut(strings.TrimPrefix(ref, c.url+"/"), "/_history/")
			kind, id, relative := strings.Cut(ref, "/")
			if relative && slices.Contains(named, kind) && isID(id) && !slices.Contains(wanted, ref) {
				wanted = append(wanted, ref)
			}
		}
	}
	return json.Marshal(map[string]any{"resourceType": "Bundle", "type": "collection", "entry": entries}) //nolint:wrapcheck // these values encode
}

func isID(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, ".") != "" && strings.IndexFunc(s, func(c rune) bool {
		return c != '-' && c != '.' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	}) < 0
}

// references returns all references inside a value, sorted.
func references(v any) (out []string) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			out = append(out, references(x)...)
		}
	case map[string]any:
		for _, x := range v {
			out = append(out, references(x)...)
		}
		if ref, ok := v["reference"].(string); ok {
			out = append(out, ref)
		}
	}
	slices.Sort(out)
	return out
}

// get requests a URL of the laboratory. It returns [healthlab.NotFound] if the answer is 404 or 410, and Unavailable
// for other statuses than 200.
func (c *Client) get(ctx context.Context, address string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("read from the laboratory: %w", err)
	}
	if err := c.sign(r); err != nil {
		return nil, err
	}
	w, err := c.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("read from the laboratory: %w", err)
	}
	defer func() { _ = w.Body.Close() }()
	switch w.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusGone:
		return nil, fmt.Errorf("%w: the laboratory's server answers a GET request with HTTP status %d", healthlab.NotFound, w.StatusCode)
	default:
		return nil, fmt.Errorf("%w: the laboratory's server answers a GET request with HTTP status %d", healthlab.Unavailable, w.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(w.Body, pageLimit+1))
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if len(text) > pageLimit {
		return nil, fmt.Errorf("%w: the laboratory answers with more than %d bytes", healthlab.Unavailable, pageLimit)
	}
	return text, nil
}
