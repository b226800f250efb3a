package fhir_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/fhir"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
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
func TestExport_containsWhatEverythingReturnsForEachPatient(t *testing.T) {
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
func TestExport_sinceReturnsUpdatedResourcesAndDeletedPatients(t *testing.T) {
	c := newClinic(t)
	m := c.manifest("team", c.kickOff("team", "/$export?_type=DiagnosticReport,Patient&_since=2100-01-01T00:00:00Z"))
	for _, r := range c.download("team", m.Output) {
		require.Equal(t, "Patient", r["resourceType"], "nothing says when a person was updated")
	}
	before := time.Now().Add(-time.Minute).UTC().Format(time.RFC3339)
	status := c.kickOff("team", "/$export?_type=Patient,DiagnosticReport&_since="+before)
	require.NoError(t, c.s.Health.Deletions().Delete(t.Context(), c.team, c.ann))
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

// remove removes samples of a person, which there are.
func (c *clinic) remove(user healthlab.UserID, resource string, source healthdata.SourceType, at ...time.Time) {
	c.t.Helper()
	var times []healthlab.Time
	for _, t := range at {
		times = append(times, healthlab.At(t))
	}
	up := healthdata.Upload{Provider: "manual", Stage: healthdata.StageDaily, Source: healthdata.Source{Type: source}}
	n, err := c.s.Health.RemoveSamples(c.t.Context(), c.team, user, resource, up, "", times)
	require.NoError(c.t, err)
	require.Equal(c.t, len(at), n)
}

// deletions are what the deleted files of an export name.
func (c *clinic) deletions(key, path string) (out []string) {
	c.t.Helper()
	for _, b := range c.download(key, c.manifest(key, c.kickOff(key, path)).Deleted) {
		require.Equal(c.t, "transaction", b["type"])
		for _, e := range b["entry"].([]any) {
			request := e.(object)["request"].(object)
			require.Equal(c.t, "DELETE", request["method"])
			out = append(out, request["url"].(string))
		}
	}
	slices.Sort(out)
	return out
}

// With _since, an export tells of the observations that data was removed of and that are no more.
func TestExport_sinceListsObservationsWhoseDataWasRemoved(t *testing.T) {
	c := newClinic(t)
	since := "_since=" + time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	all := []string{"/$export?" + since, "/Patient/$export?" + since, c.group() + "/$export?" + since}
	for _, path := range all {
		require.Empty(t, c.manifest("team", c.kickOff("team", path)).Deleted, "nothing was removed")
	}
	c.remove(c.ben, "heartrate", "app", noon(0), noon(2))
	c.remove(c.ann, "glucose", healthdata.SourceFingerprick, noon(0).Add(-3*time.Hour), noon(0).Add(-175*time.Minute), noon(0).Add(-170*time.Minute), noon(0).Add(-165*time.Minute))
	c.remove(c.ann, "glucose", healthdata.SourceApp, noon(0).Add(-3*time.Hour)) // one of four
	c.remove(c.ann, "steps", healthdata.SourceWatch, noon(0).Add(-3*time.Hour)) // one of three hours
	_, err := c.s.Health.RemoveSummaries(t.Context(), c.team, c.ann, "sleep",
		healthdata.Upload{Provider: "manual", Stage: healthdata.StageDaily, Source: healthdata.Source{Type: healthdata.SourceWatch}}, []string{"night"})
	require.NoError(t, err)
	want := []string{
		"Observation/" + measurementOf(c.ann, "gf", noon(0)), "Observation/" + measurementOf(c.ann, "sl", noon(0)),
		"Observation/" + measurementOf(c.ben, "hr", noon(0)), "Observation/" + measurementOf(c.ben, "hr", noon(2)),
	}
	slices.Sort(want)
	for _, path := range all {
		require.Equal(t, want, c.deletions("team", path))
		require.Equal(t, want, c.deletions("team", path+"&_type=Observation"))
		require.Empty(t, c.deletions("team", path+"&_type=Patient"))
	}
	for _, at := range want {
		c.get("team", "/"+at, 404)
	}
	hours := c.deletions("team", "/$export?interval=hour&"+since)
	hour := func(user healthlab.UserID, key string, at time.Time) string {
		return "Observation/" + strings.Replace(measurementOf(user, key, at), "vs.", "vh.", 1) + at.Format("T15")
	}
	require.ElementsMatch(t, []string{
		hour(c.ann, "gf", noon(0).Add(-3*time.Hour)), hour(c.ann, "st", noon(0).Add(-3*time.Hour)), hour(c.ben, "hr", noon(0)), hour(c.ben, "hr", noon(2)),
	}, hours)

	// A caller who is bound to one person, and another team.
	require.Len(t, c.deletions("bound", "/$export?"+since), 2)
	require.Empty(t, c.deletions("other", "/$export?"+since))
	// Before the time and without one there is nothing.
	require.Empty(t, c.deletions("team", "/$export"))
	require.Empty(t, c.deletions("team", "/$export?_since=2100-01-01T00:00:00%2B00:00"))
	// What came again is there.
	_, err = c.s.Health.IngestSamples(t.Context(), c.team, c.ben, "heartrate", healthdata.Upload{Provider: "manual", Stage: healthdata.StageDaily, Source: healthdata.Source{Type: "app"}},
		[]healthdata.Sample{{Timestamp: healthlab.At(noon(2)), Unit: "bpm", Value: &healthdata.Value{Number: 70}}})
	require.NoError(t, err)
	require.Len(t, c.deletions("team", "/$export?"+since), 3)
	// Of a person who was deleted it is the Patient.
	require.NoError(t, c.s.Health.Deletions().Delete(t.Context(), c.team, c.ann))
	require.Equal(t, []string{"Observation/" + measurementOf(c.ben, "hr", noon(0)), "Patient/" + c.ann.String()}, c.deletions("team", "/$export?"+since))
}

// A next export from the transactionTime of the one before tells of what was removed in between, once.
func TestExport_sinceTransactionTimeListsEachDeletionOnce(t *testing.T) {
	c := newClinic(t)
	next := func(m exportManifest) string {
		return "/$export?_type=Observation&_since=" + url.QueryEscape(m.TransactionTime)
	}
	first := c.manifest("team", c.kickOff("team", "/$export?_type=Observation"))
	c.remove(c.ben, "heartrate", "app", noon(1))
	path := next(first)
	require.Equal(t, []string{"Observation/" + measurementOf(c.ben, "hr", noon(1))}, c.deletions("team", path))
	c.at = time.Now().Add(time.Minute)
	second := c.manifest("team", c.kickOff("team", path))
	require.Empty(t, c.deletions("team", next(second)))
}

// A report that the laboratory has taken back is told as deleted.
func TestExport_sinceListsAWithdrawnReportAsDeleted(t *testing.T) {
	c := newClinic(t)
	since := "?_since=" + time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	to := func(status orders.LowLevel) {
		_, err := c.s.Exchange.Simulate(t.Context(), c.team, c.visited, orders.StatusOf(catalogue.AtHomePhlebotomy, status), orders.SimulationFlags{})
		require.NoError(t, err)
	}
	to(orders.PartialResults)
	report := c.get("team", "/DiagnosticReport/"+c.visited.String(), 200)
	require.Equal(t, "partial", report["status"])
	require.Empty(t, c.deletions("team", "/$export"+since))
	to(orders.SampleError)
	c.get("team", "/DiagnosticReport/"+c.visited.String(), 404)
	id := c.visited.String()
	require.Equal(t, []string{"DiagnosticReport/" + id, "DocumentReference/" + id + ".results", "Provenance/" + id}, c.deletions("team", c.group()+"/$export"+since))
	require.Equal(t, []string{"DiagnosticReport/" + id}, c.deletions("team", "/$export"+since+"&_type=DiagnosticReport,Patient"))
	require.Empty(t, c.deletions("team", "/$export"+since+"&_type=Patient"))
	require.Empty(t, c.deletions("bound", "/$export"+since))
}

// An export lasts a week.
func TestExport_expiresAfterAWeek(t *testing.T) {
	c := newClinic(t)
	status := c.kickOff("team", "/$export?_type=Patient")
	file := strings.TrimPrefix(c.manifest("team", status).Output[0].URL, base)
	c.at = time.Now().Add(7*24*time.Hour - time.Minute)
	c.get("team", status, 200)
	c.at = time.Now().Add(7*24*time.Hour + time.Minute)
	c.get("team", status, 404)
	c.get("team", file, 404)
	code, _ := c.send(c.handler, "DELETE", status, "team", "")
	require.Equal(t, 404, code)
}

func TestExport_lenientHandlingIgnoresUnsupportedParameters(t *testing.T) {
	c := newClinic(t)
	ask := func(prefer, path string) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
		r.Header.Set("x-service-api-key", "team")
		r.Header.Set("Prefer", prefer)
		w := httptest.NewRecorder()
		c.handler.ServeHTTP(w, r)
		return w.Code
	}
	require.Equal(t, 202, ask("respond-async", "/$export?_outputFormat=application/fhir+ndjson&_type=Patient,Device&_type=Observation"))
	require.Equal(t, 400, ask("respond-async", "/$export?_typeFilter=a"))
	require.Equal(t, 400, ask("respond-async", "/$export?_elements=id"))
	require.Equal(t, 202, ask("respond-async, handling=lenient", "/$export?_typeFilter=a&_elements=id"))
	require.Equal(t, 202, ask("handling=lenient; Respond-Async", "/$export?_elements=id"))
	require.Equal(t, 400, ask("handling=lenient", "/$export"))
	require.Equal(t, 400, ask("respond-async, handling=lenient", "/$export?_since=yesterday"))
}

func TestExport_refusesInvalidParametersAndAMissingPrefer(t *testing.T) {
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
func TestExport_downloadIsLoggedForEachPatient(t *testing.T) {
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
func TestGroup_quantityIsTheNumberOfExportedPatients(t *testing.T) {
	c := newClinic(t)
	g := c.get("team", c.group(), 200)
	version := g["meta"].(object)["versionId"]
	require.Equal(t, object{
		"resourceType": "Group", "id": c.team.String(), "meta": object{"versionId": version}, "active": true, "type": "person", "actual": true, "quantity": 2.0,
		"identifier": []any{object{"system": "urn:ietf:rfc:3986", "value": "urn:uuid:" + c.team.String()}},
	}, g)
	require.EqualValues(t, 1, c.get("bound", c.group(), 200)["quantity"])
	require.EqualValues(t, 1, c.get("other", "/Group/"+c.other.String(), 200)["quantity"])
	require.NoError(t, c.s.Health.Deletions().Delete(t.Context(), c.team, c.ben))
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
func TestGroup_ofAnotherTeamIsNotFoundAndLogged(t *testing.T) {
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
func TestGroup_isAbsentWithoutExports(t *testing.T) {
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
