package fhirlab_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/fhir/fhirlab"
)

// archive is the FHIR server of a laboratory that is read.
type archive struct {
	t *testing.T
	*httptest.Server
	resources map[string]object // by type and id
	reports   []string          // the order of the search
	include   bool              // answers _include
	elsewhere string            // where the next page is said to be; empty for here
	asked     []string
	down      bool
}

func newArchive(t *testing.T) *archive {
	a := &archive{t: t, resources: map[string]object{}}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return a
}

func (a *archive) put(at time.Time, all ...object) {
	for _, r := range all {
		key := r["resourceType"].(string) + "/" + r["id"].(string)
		r["meta"] = object{"lastUpdated": at.Format(time.RFC3339Nano)}
		if a.resources[key] == nil && r["resourceType"] == "DiagnosticReport" {
			a.reports = append(a.reports, key)
		}
		a.resources[key] = r
	}
}

// ServeHTTP answers a search with a report a page.
func (a *archive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.asked = append(a.asked, r.URL.Path)
	if a.down || r.Header.Get("Authorization") != "Bearer secret" {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if path := strings.TrimPrefix(r.URL.Path, "/fhir/"); path != "DiagnosticReport" {
		if a.resources[path] == nil {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_ = json.NewEncoder(w).Encode(a.resources[path])
		return
	}
	q := r.URL.Query()
	var left []string
	for _, key := range a.reports {
		from, err := time.Parse(time.RFC3339, strings.TrimPrefix(q.Get("_lastUpdated"), "ge"))
		at, wrong := time.Parse(time.RFC3339, a.resources[key]["meta"].(object)["lastUpdated"].(string))
		if err != nil || wrong == nil && !at.Before(from) {
			left = append(left, key)
		}
	}
	n := len(q.Get("page"))
	out := object{"resourceType": "Bundle", "type": "searchset"}
	if n < len(left) {
		entries := []any{object{"resource": a.resources[left[n]], "search": object{"mode": "match"}}}
		for key, other := range a.resources {
			if a.include && !strings.HasPrefix(key, "DiagnosticReport/") {
				entries = append(entries, object{"resource": other, "search": object{"mode": "include"}})
			}
		}
		out["entry"] = entries
	}
	if n+1 < len(left) {
		q.Set("page", strings.Repeat("x", n+1))
		next := "/fhir/DiagnosticReport?" + q.Encode()
		if a.elsewhere != "" {
			next = a.elsewhere
		}
		out["link"] = []any{object{"relation": "next", "url": next}}
	}
	_ = json.NewEncoder(w).Encode(out)
}

func (a *archive) client() *fhirlab.Client {
	return fhirlab.NewClient(a.URL+"/fhir", func(context.Context) (string, error) { return "secret", nil }, a.Client())
}

var reportedAt = time.Date(2026, time.March, 3, 10, 0, 0, 0, time.UTC)

// Reports are read from the server of the laboratory, with what they name, page by page.
func TestPoll_readsReportsPageByPageWithReferencedResources(t *testing.T) {
	for name, include := range map[string]bool{"included": true, "read one by one": false} {
		t.Run(name, func(t *testing.T) {
			b, a := newBench(t), newArchive(t)
			a.include = include
			one, number := b.ana()
			two, other := b.ana()
			a.put(reportedAt, reported("r1", number, "o1"), observed("o1", "4598", "41"), patient("p", "Roe", "Ana"))
			a.put(reportedAt.Add(time.Hour), reported("r2", other, "o2", "o3"), observed("o2", "4598", "42"), observed("o3", "7573", "43"))
			next, err := b.back.Poll(t.Context(), a.client(), time.Time{})
			require.NoError(t, err)
			require.Equal(t, reportedAt.Add(time.Hour), next.UTC())
			b.pull()
			require.Equal(t, "41\n", b.resultTexts(one))
			require.Equal(t, "42\n43\n", b.resultTexts(two))
			require.Empty(t, b.waiting())

			// What was taken in changes nothing, and a correction is read.
			again, err := b.back.Poll(t.Context(), a.client(), next)
			require.NoError(t, err)
			require.Equal(t, next, again)
			b.pull()
			corrected, o := reported("r1", number, "o1"), observed("o1", "4598", "47")
			corrected["status"], o["status"] = "corrected", "corrected"
			a.put(reportedAt.Add(2*time.Hour), corrected, o)
			next, err = b.back.Poll(t.Context(), a.client(), again)
			require.NoError(t, err)
			require.Equal(t, reportedAt.Add(2*time.Hour), next.UTC())
			b.pull()
			require.Equal(t, "47\n", b.resultTexts(one))
			require.Equal(t, "42\n43\n", b.resultTexts(two))
		})
	}
}

// A report that cannot be read holds up no other one, and is read again.
func TestPoll_unreadableReportDelaysNoOtherAndIsReadAgain(t *testing.T) {
	b, a := newBench(t), newArchive(t)
	one, number := b.ana()
	two, other := b.ana()
	a.put(reportedAt, reported("r1", number, "missing"), patient("p", "Roe", "Ana"))
	a.put(reportedAt.Add(time.Hour), reported("r2", other, "o2"), observed("o2", "4598", "42"))
	next, err := b.back.Poll(t.Context(), a.client(), time.Time{})
	require.ErrorIs(t, err, healthlab.Invalid)
	require.Equal(t, reportedAt, next.UTC())
	b.pull()
	require.Empty(t, b.resultTexts(one))
	require.Equal(t, "42\n", b.resultTexts(two))
	a.put(reportedAt.Add(time.Hour), observed("missing", "4598", "41"))
	next, err = b.back.Poll(t.Context(), a.client(), next)
	require.NoError(t, err)
	require.Equal(t, reportedAt.Add(time.Hour), next.UTC())
	b.pull()
	require.Equal(t, "41\n", b.resultTexts(one))
}

// A server that fails leaves the instant as it was, and no address of another server is asked.
func TestPoll_serverFailureKeepsTheCursorAndNoOtherHostIsAsked(t *testing.T) {
	b, a := newBench(t), newArchive(t)
	one, number := b.ana()
	a.put(reportedAt, reported("r1", number, "o1"), observed("o1", "4598", "41"), patient("p", "Roe", "Ana"))
	a.put(reportedAt, reported("r2", number, "../../o1", "o1"))
	a.down = true
	next, err := b.back.Poll(t.Context(), a.client(), reportedAt)
	require.ErrorIs(t, err, healthlab.Unavailable)
	require.Equal(t, reportedAt, next)
	a.down = false
	a.elsewhere = "https://other.example.com/fhir/DiagnosticReport"
	next, err = b.back.Poll(t.Context(), a.client(), reportedAt)
	require.ErrorIs(t, err, healthlab.Unavailable)
	require.Equal(t, reportedAt, next)
	b.pull()
	require.Equal(t, "41\n", b.resultTexts(one), "what came before it is taken in")
	for _, path := range a.asked {
		require.NotContains(t, path, "..")
	}
}
