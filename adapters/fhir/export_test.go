package fhir_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/fhir"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
	"github.com/healthlab-dev/healthlab/privacy/accesslog"
)

type exportFile struct{ Type, URL string }

type exportManifest struct {
	TransactionTime, Request string
	RequiresAccessToken      bool
	Output, Deleted, Error   []exportFile
}

// kickOff begins an export, and returns the path of its status.
func (c *clinic) kickOff(key, path string) string {
	c.t.Helper()
	r := httptest.NewRequestWithContext(c.t.Context(), http.MethodGet, path, http.NoBody)
	r.Header.Set("x-service-api-key", key)
	r.Header.Set("Prefer", "respond-async")
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	require.Equal(c.t, http.StatusAccepted, w.Code, w.Body.String())
	return strings.TrimPrefix(w.Header().Get("Content-Location"), base)
}

func (c *clinic) manifest(key, status string) (m exportManifest) {
	c.t.Helper()
	code, body := c.send(c.handler, "GET", status, key, "")
	require.Equal(c.t, 200, code, string(body))
	require.NoError(c.t, json.Unmarshal(body, &m))
	require.True(c.t, m.RequiresAccessToken)
	return m
}

// download reads the resources of files.
func (c *clinic) download(key string, files []exportFile) (out []object) {
	c.t.Helper()
	for _, f := range files {
		code, body := c.send(c.handler, "GET", strings.TrimPrefix(f.URL, base), key, "")
		require.Equal(c.t, 200, code, f.URL)
		lines := bufio.NewScanner(bytes.NewReader(body))
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var r object
			require.NoError(c.t, json.Unmarshal(lines.Bytes(), &r))
			require.Equal(c.t, f.Type, r["resourceType"])
			out = append(out, r)
		}
	}
	return out
}

// An export has what $everything has of each person of the team.
func TestExport(t *testing.T) {
	c := newClinic(t)
	for _, path := range []string{"/$export", "/Patient/$export?_outputFormat=ndjson", c.group() + "/$export"} {
		status := c.kickOff("team", path)
		m := c.manifest("team", status)
		require.Equal(t, base+path, m.Request)
		require.Empty(t, m.Deleted)
		want := map[string]object{}
		for _, user := range []string{c.ann.String(), c.ben.String()} {
			for _, r := range entries(c.get("team", "/Patient/"+user+"/$everything", 200)) {
				want[r["resourceType"].(string)+"/"+r["id"].(string)] = r
			}
		}
		got := map[string]object{}
		for _, r := range c.download("team", m.Output) {
			at := r["resourceType"].(string) + "/" + r["id"].(string)
			require.NotContains(t, got, at)
			got[at] = r
		}
		require.Equal(t, want, got)

		c.get("other", status, 404)
		c.get("bound", status, 404)
		c.get("", status, 401)
		require.NotEmpty(t, m.Output)
		c.get("other", strings.TrimPrefix(m.Output[0].URL, base), 404)
		code, _ := c.send(c.handler, "DELETE", status, "team", "")
		require.Equal(t, http.StatusAccepted, code)
		c.get("team", status, 404)
		c.get("team", strings.TrimPrefix(m.Output[0].URL, base), 404)
	}
	for _, path := range []string{"/$export", c.group() + "/$export"} {
		m := c.manifest("bound", c.kickOff("bound", path+"?_type=Patient"))
		require.Equal(t, []string{c.ben.String()}, idsOf(c.download("bound", m.Output)))
	}
}

// With _since, an export has what was updated, and who was deleted.
func TestExportSince(t *testing.T) {
	c := newClinic(t)
	m := c.manifest("team", c.kickOff("team", "/$export?_type=DiagnosticReport,Patient&_since=2100-01-01T00:00:00Z"))
	for _, r := range c.download("team", m.Output) {
		require.Equal(t, "Patient", r["resourceType"], "nothing says when a person was updated")
	}
	before := time.Now().Add(-time.Minute).UTC().Format(time.RFC3339)
	status := c.kickOff("team", "/$export?_type=Patient,DiagnosticReport&_since="+before)
	require.NoError(t, c.s.Health.DeleteUser(t.Context(), c.team, c.ann))
	require.Equal(t, []string{c.ben.String()}, idsOf(c.download("team", c.manifest("team", status).Output)), "who is deleted is in no file")
	for _, path := range []string{"/$export", c.group() + "/$export"} {
		m = c.manifest("team", c.kickOff("team", path+"?_type=Patient&_since="+before))
		require.Len(t, m.Deleted, 1)
		gone := c.download("team", m.Deleted)
		require.Len(t, gone, 1)
		require.Equal(t, object{"method": "DELETE", "url": "Patient/" + c.ann.String()}, gone[0]["entry"].([]any)[0].(object)["request"])
	}
	m = c.manifest("team", c.kickOff("team", "/$export?_type=Patient"))
	require.Empty(t, m.Deleted)
}

func TestExportRefusals(t *testing.T) {
	c := newClinic(t)
	for _, path := range []string{"/$export", "/Patient/$export", c.group() + "/$export"} {
		for _, query := range []string{"_type=Goal", "_type=Group", "_since=marker", "_outputFormat=csv", "interval=sampled", "marker=1"} {
			c.get("team", path+"?"+query, 400)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
		r.Header.Set("x-service-api-key", "team")
		w := httptest.NewRecorder()
		c.handler.ServeHTTP(w, r)
		require.Equal(t, 400, w.Code)
		require.Contains(t, w.Body.String(), "Prefer")
	}
	for _, path := range []string{"/$export-status/marker", "/$export-file/marker/Patient/0"} {
		c.get("team", path, 404)
	}
	at := strings.Replace(c.kickOff("team", "/$export?_type=Patient"), "status", "file", 1)
	c.get("team", at+"/Observation/0", 404)
	c.get("team", at+"/Patient/x", 404)
	code, body := c.send(c.handler, "GET", at+"/Patient/7", "team", "")
	require.Equal(t, 200, code)
	require.Empty(t, body)
}

// A file has a line in the access log for each person.
func TestExportAccess(t *testing.T) {
	c := newClinic(t)
	m := c.manifest("team", c.kickOff("team", c.group()+"/$export?_type=Device"))
	before, err := c.s.Access.Lines(t.Context(), accesslog.Query{Team: c.team, N: 1000})
	require.NoError(t, err)
	c.download("team", m.Output)
	after, err := c.s.Access.Lines(t.Context(), accesslog.Query{Team: c.team, N: 1000})
	require.NoError(t, err)
	persons := map[string]bool{}
	for _, l := range after[len(before):] {
		require.Equal(t, "fhir_download_export", l.Operation)
		persons[l.Person.String()] = true
	}
	require.Equal(t, map[string]bool{c.ann.String(): true, c.ben.String(): true}, persons)
}

func (c *clinic) group() string { return "/Group/" + c.team.String() }

// The Group of a team counts those whom an export by the same key has.
func TestGroup(t *testing.T) {
	c := newClinic(t)
	g := c.get("team", c.group(), 200)
	version := g["meta"].(object)["versionId"]
	require.Equal(t, object{
		"resourceType": "Group", "id": c.team.String(), "meta": object{"versionId": version}, "active": true, "type": "person", "actual": true, "quantity": 2.0,
		"identifier": []any{object{"system": "urn:ietf:rfc:3986", "value": "urn:uuid:" + c.team.String()}},
	}, g)
	require.EqualValues(t, 1, c.get("bound", c.group(), 200)["quantity"])
	require.EqualValues(t, 1, c.get("other", "/Group/"+c.other.String(), 200)["quantity"])
	require.NoError(t, c.s.Health.DeleteUser(t.Context(), c.team, c.ben))
	g = c.get("team", c.group(), 200)
	require.EqualValues(t, 1, g["quantity"])
	require.NotEqual(t, version, g["meta"].(object)["versionId"])
	require.EqualValues(t, 0, c.get("bound", c.group(), 200)["quantity"])
	c.get("", c.group(), 401)
	c.scopes = organisation.Scopes{organisation.DataRead}
	c.get("team", c.group(), 403)
	c.get("team", c.group()+"/$export", 403)
}

// The id of another team and one of no team get the same answer, which a line of the access log is about.
func TestGroupOfAnotherTeam(t *testing.T) {
	c := newClinic(t)
	lines, err := c.s.Access.Lines(t.Context(), accesslog.Query{Team: c.team, N: 1000})
	require.NoError(t, err)
	known := len(lines)
	var want object
	var paths []string
	for _, id := range []string{c.other.String(), uuid.NewString(), c.ann.String(), "marker", strings.ToUpper(c.team.String())} {
		paths = append(paths, "/Group/"+id, "/Group/"+id+"/$export", "/Group/"+id+"/$export?_type=Goal")
	}
	for _, path := range paths {
		for _, key := range []string{"team", "bound"} {
			out := c.get(key, path, 404)
			require.Equal(t, "OperationOutcome", out["resourceType"], path)
			if want == nil {
				want = out
			}
			require.Equal(t, want, out, path)
		}
	}
	lines, err = c.s.Access.Lines(t.Context(), accesslog.Query{Team: c.team, N: 1000})
	require.NoError(t, err)
	require.Len(t, lines[known:], 2*len(paths))
	for _, l := range lines[known:] {
		require.Contains(t, []string{"fhir_read_group", "fhir_export"}, l.Operation)
		require.Equal(t, http.StatusNotFound, l.Status)
		require.True(t, l.Person.IsZero())
	}
}

// Without exports there is no Group.
func TestGroupNeedsExports(t *testing.T) {
	c := newClinic(t)
	c.config.Exports = nil
	var err error
	c.handler, err = fhir.Handler(c.config)
	require.NoError(t, err)
	c.get("team", c.group(), 404)
	c.get("team", c.group()+"/$export", 404)
	for _, r := range c.get("", "/metadata", 200)["rest"].([]any)[0].(object)["resource"].([]any) {
		require.NotEqual(t, "Group", r.(object)["type"])
	}
}
