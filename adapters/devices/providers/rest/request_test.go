package rest_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/webhook"
)

// Requests have the ranges and the keys of their kinds.
func TestPull_requestsHaveTheRangeAndKeyOfTheirCollection(t *testing.T) {
	type request struct {
		method, path, contentType, key string
		query                          url.Values
		body                           string
	}
	var got []request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, request{r.Method, r.URL.Path, r.Header.Get("Content-Type"), r.Header.Get("X-Key"), r.URL.Query(), string(body)})
		_, _ = w.Write([]byte(`[{"id": "a b"}]`))
	}))
	t.Cleanup(server.Close)
	from, to := time.Date(2026, 3, 28, 11, 0, 0, 0, time.UTC), time.Date(2026, 3, 29, 22, 30, 0, 0, time.UTC)
	vienna, err := time.LoadLocation("Europe/Vienna") // summer time begins on 29 March
	require.NoError(t, err)
	ignore := func(json.RawMessage, *rest.Batch) {}
	kind := func(k rest.Collection) rest.Collection {
		k.Path, k.Resources, k.Read = "/v1", []string{"steps"}, ignore
		return k
	}
	for name, c := range map[string]struct {
		kinds []rest.Collection
		want  request
	}{
		"instants": {
			[]rest.Collection{kind(rest.Collection{Range: rest.Range{From: "from", To: "to", Format: rest.UnixMilli}})},
			request{method: "GET", query: url.Values{"from": {"1774695600000"}, "to": {"1774823400000"}}},
		},
		"days": {
			[]rest.Collection{kind(rest.Collection{Range: rest.Range{From: "from", To: "to", Days: true, Before: rest.Day}})},
			request{method: "GET", query: url.Values{"from": {"2026-03-27"}, "to": {"2026-03-30"}}},
		},
		"days as instants": {
			[]rest.Collection{kind(rest.Collection{Range: rest.Range{From: "from", To: "to", Days: true, Format: rest.Zoneless}})},
			request{method: "GET", query: url.Values{"from": {"2026-03-27T23:00:00"}, "to": {"2026-03-30T21:59:59"}}},
		},
		"filter": {
			[]rest.Collection{kind(rest.Collection{Range: rest.Range{From: "filter", Filter: `at >= "{from}" AND at < "{to}"`, Days: true}})},
			request{method: "GET", query: url.Values{"filter": {`at >= "2026-03-28" AND at < "2026-03-30"`}}},
		},
		"form": {
			[]rest.Collection{kind(rest.Collection{Method: "POST", Query: url.Values{"action": {"get"}}, Range: rest.Range{From: "from", Format: rest.Unix}})},
			request{method: "POST", contentType: "application/x-www-form-urlencoded", body: "action=get&from=1774695600"},
		},
		"document": {
			[]rest.Collection{kind(rest.Collection{Body: func(first, last healthlab.Date) any { return []healthlab.Date{first, last} }})},
			request{method: "POST", contentType: "application/json", body: `["2026-03-28","2026-03-30"]`},
		},
		"key of an item": {
			[]rest.Collection{
				kind(rest.Collection{For: "list", Ask: func(q url.Values, key string) { q.Set("item", key) }}),
				{Name: "list", Path: "/list", Key: rest.KeyOf("id")},
			},
			request{method: "GET", query: url.Values{"item": {"a b"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got = nil
			connector, err := rest.New(&rest.Definition{BaseURL: server.URL, KeyHeader: "X-Key", Collections: c.kinds}, rest.Client{ID: "id", Secret: "secret", Key: "key"},
				&rest.Options{Guard: &webhook.Guard{Plain: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}})
			require.NoError(t, err)
			secret, err := connector.Encode(linking.Tokens{Access: "access"})
			require.NoError(t, err)
			r := linking.PullRequest{Secret: secret, Resource: "steps", From: from, To: to, Zone: vienna}
			for more := true; more; more = r.Cursor != "" {
				page, err := connector.Pull(t.Context(), r)
				require.NoError(t, err)
				r.Cursor = page.Next
			}
			last := got[len(got)-1]
			require.Equal(t, "/v1", last.path)
			require.Equal(t, "key", last.key)
			last.path, last.key = "", ""
			if len(last.query) == 0 {
				last.query = nil
			}
			require.Equal(t, c.want, last)
		})
	}
}

// The error of a body that cannot be encoded names the body and its collection, not the URL.
func TestPull_unencodableBodyIsNamed(t *testing.T) {
	connector, err := rest.New(&rest.Definition{BaseURL: "https://a.example", Collections: []rest.Collection{{
		Name: "list", Resources: []string{"steps"}, Body: func(healthlab.Date, healthlab.Date) any { return func() {} },
	}}}, rest.Client{ID: "id", Secret: "secret"}, nil)
	require.NoError(t, err)
	secret, err := connector.Encode(linking.Tokens{Access: "access"})
	require.NoError(t, err)
	_, err = connector.Pull(t.Context(), linking.PullRequest{Secret: secret, Resource: "steps"})
	require.EqualError(t, err, "pull: invalid: the body of the request for list cannot be encoded as JSON")
	_, err = connector.Pull(t.Context(), linking.PullRequest{Secret: secret, Resource: "sleep"})
	require.EqualError(t, err, "pull: unimplemented: resource: must be one of: steps")
}

// Of revisions in one answer, the last is read.
func TestRead_keepsTheLastRevisionOfAnItemInAResponse(t *testing.T) {
	type night struct {
		ID rest.ID `json:"id"`
		V  int     `json:"v"`
	}
	d := &rest.Definition{Collections: []rest.Collection{{Name: "nights", Resources: []string{"sleep"}, Key: rest.KeyOf("id"), Revised: true, Read: rest.Each(func(v *night, out *rest.Batch) {
		out.Summary("sleep", healthdata.SourceRing, &healthdata.Sleep{Head: healthdata.Head{ExternalID: fmt.Sprint(v.ID, " ", v.V)}})
	})}}}
	data, err := d.Read("nights", []byte(`[{"id":1,"v":1},{"id":2},{"id":2,"v":"x"},{"v":3},{"id":1,"v":4},{"v":5}]`))
	require.NoError(t, err)
	var read []string
	for _, s := range data["sleep"][0].Summaries {
		read = append(read, healthdata.HeadOf(s).ExternalID)
	}
	require.Equal(t, []string{"2 0", " 3", "1 4", " 5"}, read)
	require.Len(t, data["sleep"][1].Unparsed, 1, "one that cannot be read revises none")
}

// The nights of a page keep their own zones.
func TestRead_eachNightKeepsItsZone(t *testing.T) {
	type night struct{ ID, Zone string }
	d := &rest.Definition{Collections: []rest.Collection{{Name: "nights", Resources: []string{"sleep_cycle"}, Read: rest.Each(func(v *night, out *rest.Batch) {
		out.Zone(v.Zone)
		var s rest.Stages
		s.Add(0, 60, healthdata.SleepStageDeep)
		out.Cycle(healthdata.SourceRing, v.ID, healthlab.Time{}, healthlab.Time{}, &s)
	})}}}
	data, err := d.Read("nights", []byte(`[{"id":"a","zone":"Europe/Vienna"},{"id":"b","zone":"Asia/Tokyo"},{"id":"c"}]`))
	require.NoError(t, err)
	zones := map[string]*string{}
	for _, p := range data["sleep_cycle"] {
		for _, s := range p.Summaries {
			zones[healthdata.HeadOf(s).ExternalID] = s.(*healthdata.SleepCycle).TimeZone
		}
	}
	require.Equal(t, map[string]*string{"a": rest.Ptr("Europe/Vienna"), "b": rest.Ptr("Asia/Tokyo"), "c": nil}, zones)
}

// A cursor goes on with its kind wherever that stands in the table, and with what was asked for
// together; any other begins from the start.
func TestPull_cursorContinuesItsCollectionAndUnknownOneRestarts(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.URL.RequestURI())
		next := "more"
		if r.URL.RawQuery != "" {
			next = ""
		}
		_, _ = fmt.Fprintf(w, `{"next": %q, "items": []}`, next)
	}))
	t.Cleanup(server.Close)
	kind := func(name string, resources ...string) rest.Collection {
		return rest.Collection{Name: name, Path: "/" + name, Items: "items", Pages: rest.Cursor("page", "next"), Key: rest.KeyOf("id"),
			Resources: resources, Read: func(json.RawMessage, *rest.Batch) {}}
	}
	nights := kind("nights", "sleep", "heartrate")
	nights.Join, nights.JoinFor = []string{"scores"}, []string{"sleep"}
	table := []rest.Collection{nights, kind("scores"), kind("pulses", "heartrate")}
	moved := append([]rest.Collection{kind("beats", "heartrate")}, table...)
	code := func(doc string) string { return base64.RawURLEncoding.EncodeToString([]byte(doc)) }
	ask := func(kinds []rest.Collection, cursor, resource string, with ...string) (request, next string) {
		connector, err := rest.New(&rest.Definition{BaseURL: server.URL, Collections: kinds}, rest.Client{ID: "id", Secret: "secret"},
			&rest.Options{Guard: &webhook.Guard{Plain: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}})
		require.NoError(t, err)
		secret, err := connector.Encode(linking.Tokens{Access: "access"})
		require.NoError(t, err)
		page, err := connector.Pull(t.Context(), linking.PullRequest{Secret: secret, Resource: resource, With: with, Cursor: cursor})
		require.NoError(t, err)
		return got[len(got)-1], page.Next
	}
	_, first := ask(table, "", "heartrate")
	_, both := ask(table, "", "sleep", "heartrate")
	for name, c := range map[string]struct {
		kinds    []rest.Collection
		cursor   string
		resource string
		with     []string
		want     string
	}{
		"the same":                 {table, first, "heartrate", nil, "/nights?page=more"},
		"the same in other order":  {table, both, "heartrate", []string{"sleep"}, "/scores?page=more"},
		"another table":            {moved, first, "heartrate", nil, "/nights?page=more"},
		"a kind that is not there": {table[1:], first, "heartrate", nil, "/pulses"},
		"another set":              {table, first, "heartrate", []string{"sleep"}, "/scores"},
		"fewer together":           {table, both, "heartrate", nil, "/nights"},
		"another form":             {table, code(`{"k":1,"t":"more"}`), "heartrate", nil, "/nights"},
	} {
		t.Run(name, func(t *testing.T) {
			request, _ := ask(c.kinds, c.cursor, c.resource, c.with...)
			require.Equal(t, c.want, request)
		})
	}
}

// A range of the longest length stays so if its end is not at a whole second, as that of a clock.
func TestPull_rangeNeverExceedsTheMaximum(t *testing.T) {
	type span struct{ from, to time.Time }
	var got []span
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, err := time.Parse(time.RFC3339Nano, r.URL.Query().Get("from"))
		require.NoError(t, err)
		to, err := time.Parse(time.RFC3339Nano, r.URL.Query().Get("to"))
		require.NoError(t, err)
		got = append(got, span{from, to})
		_, _ = w.Write([]byte(`[]`))
	}))
	t.Cleanup(server.Close)
	exact := rest.Format(func(t time.Time) string { return t.Format(time.RFC3339Nano) })
	for name, format := range map[string]rest.Format{"seconds": rest.RFC3339, "fractions": exact} {
		t.Run(name, func(t *testing.T) {
			got = nil
			k := rest.Collection{Path: "/v1", Resources: []string{"steps"}, Read: func(json.RawMessage, *rest.Batch) {}, Range: rest.Range{
				From: "from", To: "to", Format: format, Before: time.Hour, After: 2 * time.Hour, Max: 28 * rest.Day,
			}}
			connector, err := rest.New(&rest.Definition{BaseURL: server.URL, Collections: []rest.Collection{k}}, rest.Client{ID: "id", Secret: "secret"},
				&rest.Options{Guard: &webhook.Guard{Plain: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}})
			require.NoError(t, err)
			secret, err := connector.Encode(linking.Tokens{Access: "access"})
			require.NoError(t, err)
			to := time.Date(2026, 3, 29, 22, 30, 0, 250_000_000, time.UTC)
			r := linking.PullRequest{Secret: secret, Resource: "steps", From: to.AddDate(0, 0, -60), To: to}
			for more := true; more; more = r.Cursor != "" {
				page, err := connector.Pull(t.Context(), r)
				require.NoError(t, err)
				r.Cursor = page.Next
			}
			require.Len(t, got, 3)
			require.False(t, got[0].to.Before(to.Add(2*time.Hour)))
			require.False(t, got[2].from.After(r.From.Add(-time.Hour)))
			for i, s := range got {
				require.LessOrEqual(t, s.to.Sub(s.from), 28*rest.Day)
				if i > 0 {
					require.False(t, s.to.Before(got[i-1].from.Add(3*time.Hour)), "the widened ranges have no gap")
				}
			}
		})
	}
}
