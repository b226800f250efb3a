package nightscout_test

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/devices/nightscout"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/webhook"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

const (
	token     = "ann-0123456789abcdef"
	apiSecret = "a very long secret"
)

type document = map[string]any

// server is a Nightscout as its API is published: who may read what, documents found by
// date, the newest first, and as many as are asked for.
type server struct {
	t  testing.TB
	at *httptest.Server

	mu         sync.Mutex
	entries    []document
	treatments []document
	open       bool // readable without a token
	closed     bool // the token may not
	units      string
	zone       string
	requests   []*http.Request
	fail       http.HandlerFunc // answers in place of everything
	failing    string           // the one path of which that is so; empty for all
}

func newServer(t testing.TB) *server {
	s := &server{t: t, units: "mmol", zone: "Europe/Vienna"}
	s.at = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.at.Close)
	return s
}

func guard() *webhook.Guard {
	return &webhook.Guard{Plain: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
}

func (s *server) connector() *nightscout.Connector { return s.connectorWithTimeout(0) }

func (s *server) connectorWithTimeout(d time.Duration) *nightscout.Connector {
	return nightscout.New(&nightscout.Options{Guard: guard(), Timeout: d, Now: func() time.Time { return noon }})
}

// signedIn returns what is asked with after a sign-in.
func (s *server) signedIn(c *nightscout.Connector) []byte {
	s.t.Helper()
	got, err := c.SignIn(s.t.Context(), linking.PasswordRequest{Username: s.at.URL, Password: token})
	require.NoError(s.t, err)
	require.Nil(s.t, got.Challenge)
	return got.Grant.Secret
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	if s.fail != nil && (s.failing == "" || s.failing == r.URL.Path) {
		s.fail(w, r)
		return
	}
	q := r.URL.Query()
	known := q.Get("token") == token || r.Header.Get("Api-Secret") == hashed(apiSecret)
	read := known && !s.closed || s.open
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	say := func(status int, v any) {
		w.WriteHeader(status)
		require.NoError(s.t, json.NewEncoder(w).Encode(v))
	}
	if r.URL.Path == "/api/v1/verifyauth" {
		m := document{"canRead": read, "canWrite": false, "isAdmin": false, "message": "UNAUTHORIZED", "rolefound": "NOTFOUND", "permissions": "DEFAULT"}
		if known {
			m["rolefound"], m["permissions"] = "FOUND", "ROLE"
			if !s.closed {
				m["message"] = "OK"
			}
		}
		say(200, document{"status": 200, "message": m})
		return
	}
	if !read {
		say(401, document{"status": 401, "message": "Unauthorized", "description": "Invalid/Missing"})
		return
	}
	switch r.URL.Path {
	case "/api/v1/entries.json":
		say(200, s.find(s.entries, q.Get("find[date][$gte]"), q.Get("find[date][$lt]"), q.Get("count"), func(d document) float64 { return d["date"].(float64) }))
	case "/api/v1/treatments.json":
		say(200, s.findText(s.treatments, q.Get("find[created_at][$gte]"), q.Get("find[created_at][$lt]"), q.Get("count")))
	case "/api/v1/profile.json":
		say(200, []document{{"defaultProfile": "Default", "store": document{"Default": document{"dia": 3, "timezone": s.zone, "units": s.units}}}})
	case "/api/v1/status.json":
		say(200, document{"status": "ok", "name": "nightscout", "version": "15.0.2", "apiEnabled": true, "settings": document{"units": s.units}})
	default:
		say(404, document{})
	}
}

// findText finds treatments: a site keeps their instant as a text, and compares texts.
func (s *server) findText(all []document, from, until, count string) []document {
	at := func(d document) string { return d["created_at"].(string) }
	n, _ := strconv.Atoi(count)
	found := []document{}
	for _, d := range all {
		if at(d) >= from && (until == "" || at(d) < until) {
			found = append(found, d)
		}
	}
	slices.SortStableFunc(found, func(a, b document) int { return cmp.Compare(at(b), at(a)) })
	return found[:min(n, len(found))]
}

func (s *server) find(all []document, from, until, count string, at func(document) float64) []document {
	lo, _ := strconv.ParseFloat(from, 64)
	hi, err := strconv.ParseFloat(until, 64)
	n, _ := strconv.Atoi(count)
	found := []document{}
	for _, d := range all {
		if at(d) >= lo && (err != nil || at(d) < hi) {
			found = append(found, d)
		}
	}
	slices.SortStableFunc(found, func(a, b document) int { return cmp.Compare(at(b), at(a)) })
	return found[:min(n, len(found))]
}

func read(t testing.TB, docs string) (out []document) {
	t.Helper()
	require.NoError(t, json.NewDecoder(strings.NewReader(docs)).Decode(&out))
	return out
}

// all follows the pages of a resource to their end.
func (s *server) all(c *nightscout.Connector, secret []byte, resource string, days int) (items []linking.PullItem, requests int) {
	s.t.Helper()
	r := linking.PullRequest{Secret: secret, Resource: resource, From: noon.AddDate(0, 0, -days), To: noon, Zone: time.UTC}
	for range 100 {
		page, err := c.Pull(s.t.Context(), r)
		require.NoError(s.t, err)
		items = append(items, page.Items...)
		requests++
		if r.Cursor = page.Next; r.Cursor == "" {
			return items, requests
		}
	}
	s.t.Fatal("it never ends")
	return nil, 0
}
