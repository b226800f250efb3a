package fhir_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/fhir"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/privacy/accesslog"
)

func TestHandler_requiresAuthenticateURLHealthAndAggregate(t *testing.T) {
	_, err := fhir.Handler(fhir.Config{URL: "https://api.example.com/"})
	require.ErrorIs(t, err, healthlab.Invalid)
	for _, field := range []string{"API.Authenticate", "URL", "Health", "Aggregate"} {
		require.ErrorContains(t, err, field)
	}
}

func TestPatient_hasKnownDemographicsAndNoInventedOnes(t *testing.T) {
	c := newClinic(t)
	p := c.get("team", "/Patient/"+c.ann.String(), 200)
	require.Equal(t, "Patient", p["resourceType"])
	require.Equal(t, "female", p["gender"])
	require.Equal(t, "1984-01-02", p["birthDate"])
	require.Equal(t, []any{object{"family": "Markerson", "given": []any{"Annika"}}}, p["name"])
	// Nothing is known of the other one, and nothing is made up.
	p = c.get("team", "/Patient/"+c.ben.String(), 200)
	require.Equal(t, "unknown", p["gender"])
	require.NotContains(t, p, "birthDate")
	require.NotContains(t, p, "telecom")
	require.Equal(t, []any{object{"extension": []any{object{"url": "http://hl7.org/fhir/StructureDefinition/data-absent-reason", "valueCode": "unknown"}}}}, p["name"])
}

// Every resource of a search can be read by its id, and is the same there, version included.
func TestRead_returnsTheResourceAsSearchDoes(t *testing.T) {
	c := newClinic(t)
	for kind, least := range map[string]int{
		"Observation": 7*days + 2, "DiagnosticReport": 1, "ServiceRequest": 2, "Specimen": 1, "Appointment": 1, "Provenance": 1, "Coverage": 2,
		"Device": 1, "Consent": 2, "DocumentReference": 2,
	} {
		found := c.get("team", "/"+kind+"?_count=500&patient="+c.ann.String(), 200)
		require.GreaterOrEqual(t, len(entries(found)), least, kind)
		require.EqualValues(t, len(entries(found)), found["total"])
		seen := map[string]bool{}
		for _, r := range entries(found) {
			id := r["id"].(string)
			require.False(t, seen[id], id)
			require.Regexp(t, `^[A-Za-z0-9.-]{1,64}$`, id)
			seen[id] = true
			require.Equal(t, r, c.get("team", "/"+kind+"/"+id, 200))
			require.Equal(t, []object{r}, entries(c.get("team", "/"+kind+"?_id="+id, 200)))
		}
	}
}

func TestVitalSigns_areObservationsOfADayWithLOINCCodes(t *testing.T) {
	c := newClinic(t)
	day := noon(1).Format(time.DateOnly)
	q := "/Observation?category=vital-signs&patient=Patient/" + c.ann.String() + "&date=" + day
	found := entries(c.get("team", q+"&code=http://loinc.org|8867-4", 200))
	require.Len(t, found, 1)
	o := found[0]
	require.Equal(t, day, o["effectiveDateTime"])
	require.Equal(t, object{"value": 62.5, "unit": "beats/minute", "system": "http://unitsofmeasure.org", "code": "/min"}, o["valueQuantity"])
	require.NotContains(t, o["meta"], "lastUpdated")
	require.Len(t, entries(c.get("team", q, 200)), 7)
	pressure := entries(c.get("team", q+"&code=85354-9", 200))[0]
	require.NotContains(t, pressure, "valueQuantity")
	require.Len(t, pressure["component"], 2)
	require.Empty(t, entries(c.get("team", q+"&code=http://loinc.org|1-1", 200)))
	require.Empty(t, entries(c.get("team", q+"&_lastUpdated=gt2000", 200)), "nothing says when")
}

func TestDiagnosticReport_referencesResultsWithValueOrAbsentReason(t *testing.T) {
	c := newClinic(t)
	report := c.get("team", "/DiagnosticReport/"+c.order.String(), 200)
	require.Equal(t, "final", report["status"])
	request := c.get("team", "/ServiceRequest/"+c.order.String(), 200)
	require.Equal(t, "completed", request["status"])
	results := c.results()
	var named []string
	for _, r := range report["result"].([]any) {
		named = append(named, strings.TrimPrefix(r.(object)["reference"].(string), "Observation/"))
	}
	require.ElementsMatch(t, named, idsOf(results))
	cancelled := 0
	for _, o := range results {
		values := 0
		for name := range o {
			if strings.HasPrefix(name, "value") {
				values++
			}
		}
		if o["status"] == "cancelled" {
			cancelled++
		}
		if o["dataAbsentReason"] != nil {
			require.Zero(t, values)
		} else {
			require.Equal(t, 1, values)
		}
	}
	require.Equal(t, 1, cancelled)
	require.Len(t, entries(c.get("team", "/DiagnosticReport?status=final,corrected&category=LAB&patient="+c.ann.String(), 200)), 1)
	require.Empty(t, entries(c.get("team", "/DiagnosticReport?status=partial&patient="+c.ann.String(), 200)))
	require.Len(t, entries(c.get("team", "/ServiceRequest?_lastUpdated=gt2020-01-01&patient="+c.ann.String(), 200)), 2)
	require.Empty(t, entries(c.get("team", "/ServiceRequest?_lastUpdated=lt2020-01-01&patient="+c.ann.String(), 200)))
}

// A code of a laboratory is a coding if its system has an address and the code is one of that system.
func TestLaboratory_codeOfAKnownSystemBecomesACoding(t *testing.T) {
	c := newClinic(t)
	id := c.placed(c.ann)
	_, err := c.s.Exchange.Simulate(t.Context(), c.team, id, orders.StatusOf(catalogue.Testkit, orders.DeliveredToLab), orders.SimulationFlags{})
	require.NoError(t, err)
	r, err := c.s.Orders.Record(t.Context(), c.team, id)
	require.NoError(t, err)
	require.NoError(t, c.s.Exchange.Receive(t.Context(), exchange.Message{
		ID: "1", Team: c.team, Order: id, On: orders.FinalResult, At: noon(0), Patient: orders.ReportedAs(r.PatientDetails), Results: codedReport(0),
	}))
	var got []any
	for _, o := range c.results() {
		if v, ok := o["valueCodeableConcept"].(object); ok && strings.HasPrefix(o["id"].(string), id.String()) {
			got = append(got, v["coding"].([]any)...)
			require.Equal(t, object{"text": "Culture", "coding": []any{object{"system": "http://snomed.info/sct", "code": "104177005", "display": "Blood culture"}}}, o["method"])
		}
	}
	require.Equal(t, []any{
		object{"system": "http://snomed.info/sct", "code": "10828004", "display": "Positive"}, object{"system": "http://snomed.info/sct", "code": "10828004", "display": "Positive"},
		object{"system": "http://loinc.org", "code": "LA6576-8", "display": "Positive"},
		object{"system": "http://hl7.org/fhir/sid/icd-10-cm", "code": "B95.62", "display": "Infection"},
		object{"system": "http://hl7.org/fhir/sid/icd-10-cm", "code": "A49.01", "display": "Infection"},
		object{"system": "http://snomed.info/sct", "code": "260373001", "display": "Detected"},
	}, got)
}

// codedReport has results, methods and a specimen with codes of each system that laboratories name.
func codedReport(version int) *labresult.Report {
	text := func(s string) *string { return &s }
	codes := []labresult.Code{
		{Code: "10828004", Text: "Positive", System: "SCT"}, {Code: "10828004", Text: "Positive", System: "SNM"}, {Code: "G-A200", Text: "Positive", System: "SNM"},
		{Code: "LA6576-8", Text: "Positive", System: "LN"}, {Code: "B95.62", Text: "Infection", System: "I10"}, {Code: "A49.01", Text: "Infection", System: "I10C"},
		{Code: "POS", Text: "Positive", System: "L"}, {Code: "260373001", Text: "Detected", System: "http://snomed.info/sct"},
		{Code: "pos", Text: "Positive", System: "urn:oid:2.999.1"},
	}
	method := []labresult.Coded{{Text: "Culture", Codes: []labresult.Code{{Code: "104177005", Text: "Blood culture", System: "SCT"}, {Code: "P3-0001", System: "SNM"}}}}
	one := &method[0]
	return &labresult.Report{
		Results: []labresult.Result{
			{Name: "Culture", Result: "Positive", Type: labresult.CodedValue, Codes: codes, Methods: method, Interpretation: labresult.Abnormal, SourceSampleID: text("S1")},
			{Name: "C-reactive protein", Result: "<" + fmt.Sprint(version+1), Type: labresult.Range, Unit: text("mg/L"), LOINC: text("1988-5"), SourceSampleID: text("S1")},
			{Name: "Potassium", Result: "1.5", Type: labresult.Numeric, Unit: text("mmol/L"), ReferenceRange: text("3.5-5.1"), Interpretation: labresult.Critical},
			{Name: "Note", Result: "see report", Type: labresult.Comment},
		},
		SampleInformation: map[string]labresult.SampleData{"S1": {
			SampleID: text("S1"), SpecimenType: one, SpecimenSite: one, CollectionMethod: one, ContainerType: one, Additives: method, Conditions: method, RejectReasons: method,
		}},
	}
}

// The pages of next links have every resource once, in the order of one page, for every size.
func TestSearch_pagesContainEachResourceOnceInOrder(t *testing.T) {
	c := newClinic(t)
	for _, path := range []string{"/Patient?", "/Observation?patient=" + c.ann.String() + "&"} {
		whole := ids(c.get("team", path+"_count=500", 200))
		for _, size := range []int{1, 2, 7, len(whole)} {
			var got []string
			for next := fmt.Sprintf("%s_count=%d", path, size); next != ""; {
				page := c.get("team", next, 200)
				require.LessOrEqual(t, len(entries(page)), size)
				got, next = append(got, ids(page)...), ""
				for _, l := range page["link"].([]any) {
					if l := l.(object); l["relation"] == "next" {
						next = strings.TrimPrefix(l["url"].(string), base)
						require.True(t, strings.HasPrefix(next, "/"))
					}
				}
			}
			require.Equal(t, whole, got)
		}
	}
}

func TestSearch_acceptsParametersInAPOSTForm(t *testing.T) {
	c := newClinic(t)
	status, body := c.send(c.handler, "POST", "/Observation/_search", "team", "code=8867-4&patient="+c.ann.String())
	require.Equal(t, 200, status)
	var found object
	require.NoError(t, json.Unmarshal(body, &found))
	require.Len(t, entries(found), days)
}

// What is not known is refused, and nothing that was sent is repeated.
func TestHandler_refusesUnknownInputWithoutRepeatingIt(t *testing.T) {
	c := newClinic(t)
	at := "&patient=" + c.ann.String()
	for path, status := range map[string]int{
		"/Observation":                                              400,
		"/Observation?code=8867-4":                                  400,
		"/Observation?_id=a&code=8867-4":                            400,
		"/Observation?secret=marker" + at:                           400,
		"/Observation?date=marker" + at:                             400,
		"/Observation?date=2026-02-30" + at:                         400,
		"/Observation?date=xx2026-02-03" + at:                       400,
		"/Observation?_count=-1" + at:                               400,
		"/Observation?_count=marker" + at:                           400,
		"/Observation?_after=marker" + at:                           400,
		"/Observation?patient=marker":                               400,
		"/Observation?_format=marker" + at:                          406,
		"/Observation?Annika%20marker=1" + at:                       400,
		"/Observation?%zz":                                          400,
		"/Patient?name=marker":                                      400,
		"/Patient/marker":                                           404,
		"/Observation/vs.marker.hr.2026-01-01":                      404,
		"/Observation/marker":                                       404,
		"/ServiceRequest/marker":                                    404,
		"/marker/1":                                                 404,
		"/Practitioner":                                             400,
		"/Practitioner?_id=marker":                                  200,
		"/Practitioner/marker":                                      404,
		"/Organization/marker":                                      404,
		"/Organization/lab.marker":                                  404,
		"/Organization/payor.marker":                                404,
		"/Coverage/marker":                                          404,
		"/Device/marker":                                            404,
		"/Consent/marker":                                           404,
		"/Specimen/marker":                                          404,
		"/Binary/marker":                                            404,
		"/Goal":                                                     404,
		"/Device":                                                   400,
		"/Coverage?code=a" + at:                                     400,
		"/Observation?interval=marker" + at:                         400,
		"/Observation?interval=sampled" + at:                        400,
		"/Observation?interval=hour&date=ge2020-01-01" + at:         400,
		"/Patient/marker/$everything":                               404,
		"/Patient/" + c.ann.String() + "/$everything?_type=Goal":    400,
		"/Patient/" + c.ann.String() + "/$everything?_since=marker": 400,
		"/Patient/" + c.ann.String() + "/$everything?interval=sampled&other=marker": 400,
	} {
		out := c.get("team", path, status)
		if status == 200 {
			require.Empty(t, entries(out))
			continue
		}
		require.Equal(t, "OperationOutcome", out["resourceType"], path)
		text, err := json.Marshal(out)
		require.NoError(t, err)
		require.NotContains(t, string(text), "marker", path)
	}
	for _, path := range []string{"/Patient", "/Observation?patient=" + c.ann.String(), "/ServiceRequest/" + c.order.String()} {
		require.Equal(t, "login", c.get("", path, 401)["issue"].([]any)[0].(object)["code"])
	}
	status, body := c.send(c.handler, "PUT", "/Patient/"+c.ann.String(), "team", "{}")
	require.Equal(t, http.StatusMethodNotAllowed, status)
	require.Contains(t, string(body), "OperationOutcome")
	c.scopes = organisation.Scopes{organisation.DataRead}
	require.Equal(t, "forbidden", c.get("team", "/Patient", 403)["issue"].([]any)[0].(object)["code"])
	require.NotContains(t, c.logs.String(), "Markerson")
}

// paths are all ways to something of a user with an order.
func (c *clinic) paths(user healthlab.UserID) (reads, searches []string) {
	reads = []string{"/Patient/" + user.String()}
	for _, kind := range personal {
		searches = append(searches, "/"+kind+"?patient="+user.String())
		for _, id := range ids(c.get("team", "/"+kind+"?_count=500&patient="+user.String(), 200)) {
			reads = append(reads, "/"+kind+"/"+id)
			searches = append(searches, "/"+kind+"?_id="+id)
		}
	}
	return reads, append(searches, "/Patient?_id="+user.String())
}

// Another team and a caller bound to another user get the answers that ids get which do not exist.
func TestHandler_hidesPatientsOfOtherTeamsAndUsers(t *testing.T) {
	c := newClinic(t)
	reads, searches := c.paths(c.ann)
	for _, key := range []string{"other", "bound"} {
		for _, path := range reads {
			out := c.get(key, path, 404)
			kind, _, _ := strings.Cut(path[1:], "/")
			require.Equal(t, c.get("team", "/"+kind+"/"+uuid.NewString(), 404), out, path)
		}
		for _, path := range searches {
			out := c.get(key, path, 200)
			require.Empty(t, entries(out), path)
			require.EqualValues(t, 0, out["total"])
		}
	}
	require.Equal(t, []string{c.ben.String()}, ids(c.get("bound", "/Patient", 200)))
	require.Equal(t, []string{c.foreign.String()}, ids(c.get("other", "/Patient", 200)))
	require.Len(t, entries(c.get("bound", "/Observation?code=8867-4&patient="+c.ben.String(), 200)), days)
}

func TestHandler_deletedUserIsNeitherReadNorFound(t *testing.T) {
	c := newClinic(t)
	reads, searches := c.paths(c.ann)
	require.NoError(t, c.s.Health.Deletions().Delete(t.Context(), c.team, c.ann))
	for _, path := range reads {
		c.get("team", path, 404)
	}
	for _, path := range searches {
		require.Empty(t, entries(c.get("team", path, 200)), path)
	}
	require.Equal(t, []string{c.ben.String()}, ids(c.get("team", "/Patient", 200)))
}

// Each request has one line for each person whom it reads or tries to.
func TestAccessLog_hasALineForEachPatientOfARequest(t *testing.T) {
	c := newClinic(t)
	var after int64
	read := func() (out []string) {
		list, err := c.s.Access.Lines(t.Context(), accesslog.Query{Team: c.team, After: after, N: 1000})
		require.NoError(t, err)
		names := map[healthlab.UserID]string{c.ann: "ann", c.ben: "ben", {}: "none"}
		for _, l := range list {
			after = l.Seq
			out = append(out, strings.Join([]string{l.Kind, l.Operation, names[l.Person], fmt.Sprint(l.Status)}, " "))
		}
		slices.Sort(out)
		return out
	}
	vital := ids(c.get("team", "/Observation?code=8867-4&patient="+c.ann.String(), 200))[0]
	read()
	for path, want := range map[string][]string{
		"/Patient":                                    {"data fhir_search_patient ann 200", "data fhir_search_patient ben 200"},
		"/Patient/" + c.ann.String():                  {"data fhir_read_patient ann 200"},
		"/Observation?patient=" + c.ann.String():      {"data fhir_search_observation ann 200"},
		"/Observation/" + vital:                       {"data fhir_read_observation ann 200"},
		"/ServiceRequest/" + c.order.String():         {"orders fhir_read_servicerequest ann 200"},
		"/DiagnosticReport?_id=" + c.order.String():   {"orders fhir_search_diagnosticreport ann 200"},
		"/metadata":                                   nil,
		"/Observation?marker=1":                       nil,
		"/DiagnosticReport?patient=" + c.ben.String(): {"orders fhir_search_diagnosticreport ben 200"},
		"/Patient/" + c.ann.String() + "/$everything": {"data fhir_everything ann 200"},
		"/Device?patient=" + c.ann.String():           {"data fhir_search_device ann 200"},
		"/Coverage?patient=" + c.ann.String():         {"orders fhir_search_coverage ann 200"},
		"/Practitioner/" + c.visited.String():         {"orders fhir_read_practitioner ann 200"},
		"/Binary/" + c.order.String() + ".results":    {"orders fhir_read_binary ann 200"},
		"/Organization":                               nil,
		c.group():                                     nil,
	} {
		status := 200
		if strings.Contains(path, "marker") {
			status = 400
		}
		code, _ := c.send(c.handler, "GET", path, "team", "")
		require.Equal(t, status, code, path)
		require.Equal(t, want, read(), path)
	}
	c.get("team", "/ServiceRequest/"+uuid.NewString(), 404)
	require.Equal(t, []string{"orders fhir_read_servicerequest none 404"}, read())
	c.get("bound", "/ServiceRequest/"+c.order.String(), 404)
	require.Equal(t, []string{"orders fhir_read_servicerequest ann 404"}, read())
}

func TestETag_matchingIfNoneMatchAnswersNotModified(t *testing.T) {
	c := newClinic(t)
	ask := func(tag string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/Patient/"+c.ann.String(), http.NoBody)
		r.Header.Set("x-service-api-key", "team")
		r.Header.Set("If-None-Match", tag)
		w := httptest.NewRecorder()
		c.handler.ServeHTTP(w, r)
		return w
	}
	tag := ask("").Header().Get("ETag")
	require.Regexp(t, `^W/"[0-9a-f]{16}"$`, tag)
	for _, same := range []string{tag, strings.TrimPrefix(tag, "W/"), `"a", ` + tag, "*"} {
		require.Equal(t, http.StatusNotModified, ask(same).Code, same)
	}
	require.Equal(t, http.StatusOK, ask(`W/"a", "b"`).Code)
}

func TestCapabilityStatement_everyListedParameterIsSupported(t *testing.T) {
	c := newClinic(t)
	out := c.get("", "/metadata", 200)
	require.Equal(t, "4.0.1", out["fhirVersion"])
	require.Contains(t, out["rest"].([]any)[0].(object)["resource"], object{
		"type": "Group", "interaction": []any{object{"code": "read"}, object{"code": "search-type"}}, "conditionalRead": "not-match",
		"searchParam": []any{object{"name": "_id", "type": "token"}, object{"name": "identifier", "type": "token"}},
		"operation":   []any{object{"name": "export", "definition": "http://hl7.org/fhir/uv/bulkdata/OperationDefinition/group-export"}},
	})
	// What it names is there: each parameter of each type is known.
	for _, r := range out["rest"].([]any)[0].(object)["resource"].([]any) {
		kind := r.(object)["type"].(string)
		params, _ := r.(object)["searchParam"].([]any)
		for _, p := range params {
			name := p.(object)["name"].(string)
			value := map[string]string{"date": "2026-01-01", "_lastUpdated": "2026-01-01", "authored": "2026-01-01", "interval": "day"}[name]
			if value == "" {
				value = "a"
			}
			path := "/" + kind + "?" + name + "=" + value
			if !slices.Contains([]string{"Patient", "Organization", "Practitioner", "Group"}, kind) {
				path += "&patient=" + c.ann.String()
			}
			if name == "patient" || name == "subject" {
				path = "/" + kind + "?" + name + "=" + c.ann.String()
			}
			c.get("team", path, 200)
		}
	}
}

// Everything that leaves is valid by an independent validator, by R4 and by the profiles that it names.
func TestResources_areValidByAnIndependentValidator(t *testing.T) {
	if !prove.All() {
		t.Skip("runs in CI and under make prove: it fetches a validator")
	}
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("there is no " + program)
		}
	}
	dir := filepath.Join(t.TempDir(), "validator")
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "validator"))))
	install := exec.CommandContext(t.Context(), "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1", "--fetch-timeout=20000")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		require.Empty(t, os.Getenv("CI"), "CI must be able to fetch the packages: %s", out)
		t.Skip("npm could not fetch the packages")
	}
	c := newClinic(t)
	var input strings.Builder
	n := 0
	add := func(r object) {
		b, err := json.Marshal(r)
		require.NoError(t, err)
		input.Write(append(b, '\n'))
		n++
	}
	add(c.get("", "/metadata", 200))
	add(c.get("team", "/Observation", 400))
	add(c.get("team", c.group(), 200))
	add(c.get("team", "/Patient?_summary=count", 200))
	add(c.get("team", "/Observation?_total=none&code=8867-4&_elements=valueQuantity,category,subject,effectiveDateTime&patient="+c.ann.String(), 200))
	paths := []string{"/Patient", "/Organization", "/Practitioner?_id=" + c.visited.String(), "/DiagnosticReport?_include=DiagnosticReport:result&_revinclude=Provenance:target&patient=" + c.ann.String(), "/Patient/" + c.ann.String() + "/$everything"}
	for _, kind := range personal {
		paths = append(paths, "/"+kind+"?_count=500&patient="+c.ann.String())
	}
	for _, by := range []string{"hour", "sampled"} {
		paths = append(paths, "/Observation?_count=500&interval="+by+"&date=ge"+noon(days).Format(time.DateOnly)+"&date=le"+noon(0).Format(time.DateOnly)+"&patient="+c.ann.String())
	}
	for _, path := range paths {
		found := c.get("team", path, 200)
		require.NotEmpty(t, entries(found), path)
		add(found)
		for _, r := range entries(found) {
			add(r)
		}
	}
	check := func(lines string) string {
		run := exec.CommandContext(t.Context(), "node", "validate.cjs")
		run.Dir, run.Stdin = dir, strings.NewReader(lines)
		out, err := run.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	require.Equal(t, fmt.Sprintf("checked %d\n", n), check(input.String()))
	for i := range prove.Counts(1, 1, 50) {
		user := c.person(c.team, fmt.Sprint("person ", i))
		c.live(user, prove.Counts(7, 7, 365))
		found := entries(c.get("team", "/Patient/"+user.String()+"/$everything", 200))
		input.Reset()
		for _, r := range found {
			add(r)
		}
		require.Equal(t, fmt.Sprintf("checked %d\n", len(found)), check(input.String()))
	}
	// It finds what is wrong.
	require.Contains(t, check(`{"resourceType":"Observation","id":"a","code":{"text":"x"}}`), "status")
}

// Every reference leads to a resource that can be read.
func TestReferences_leadToReadableResources(t *testing.T) {
	c := newClinic(t)
	seen := map[string]bool{}
	var follow func(v any)
	follow = func(v any) {
		switch v := v.(type) {
		case object:
			for name, part := range v {
				at, ok := part.(string)
				if name == "reference" && ok && !seen[at] {
					seen[at] = true
					r := c.get("team", "/"+at, 200)
					require.Equal(t, at, r["resourceType"].(string)+"/"+r["id"].(string))
					follow(r)
				}
				follow(part)
			}
		case []any:
			for _, part := range v {
				follow(part)
			}
		}
	}
	follow(c.get("team", "/Patient/"+c.ann.String()+"/$everything", 200))
	kinds := map[string]bool{}
	for at := range seen {
		kind, _, _ := strings.Cut(at, "/")
		kinds[kind] = true
	}
	for _, kind := range []string{"Patient", "Observation", "DiagnosticReport", "ServiceRequest", "Specimen", "Organization", "Practitioner"} {
		require.True(t, kinds[kind], kind)
	}
}

// $everything is what the searches find, and each resource is there once.
func TestEverything_returnsWhatSearchesFindOnce(t *testing.T) {
	c := newClinic(t)
	all := func(path string) (out []string) {
		for _, r := range entries(c.get("team", path, 200)) {
			out = append(out, r["resourceType"].(string)+"/"+r["id"].(string))
		}
		return out
	}
	var want []string
	for _, kind := range personal {
		want = append(want, all("/"+kind+"?_count=500&patient="+c.ann.String())...)
	}
	path := "/Patient/" + c.ann.String() + "/$everything"
	got := all(path)
	require.Equal(t, "Patient/"+c.ann.String(), got[0])
	others := slices.DeleteFunc(slices.Clone(got), func(id string) bool {
		kind, _, _ := strings.Cut(id, "/")
		return slices.Contains([]string{"Patient", "Organization", "Practitioner"}, kind)
	})
	require.ElementsMatch(t, want, others)
	slices.Sort(got)
	require.Equal(t, slices.Compact(slices.Clone(got)), got)
	for _, r := range entries(c.get("team", path, 200)) {
		require.Equal(t, r, c.get("team", "/"+r["resourceType"].(string)+"/"+r["id"].(string), 200))
	}
	require.Equal(t, []string{"Patient/" + c.ben.String()}, all("/Patient/"+c.ben.String()+"/$everything?_type=Patient,Device"))
	require.Empty(t, all(path+"?_type=DiagnosticReport&_since=2100-01-01T00:00:00Z"))
	require.Len(t, all(path+"?_type=DiagnosticReport&_since=2020-01-01T00:00:00Z"), 1)
	day := noon(1).Format(time.DateOnly)
	require.Len(t, all(path+"?_type=Observation&start="+day+"&end="+day), 7)
	c.get("bound", path, 404)
	c.get("other", path, 404)
	c.get("bound", "/Patient/"+c.ben.String()+"/$everything", 200)
}

// An hour begins at the offset of the person, and samples have a place a minute.
func TestObservation_intervalParameterGroupsByDayHourOrSamples(t *testing.T) {
	c := newClinic(t)
	at := "&date=" + noon(0).Format(time.DateOnly) + "&patient=" + c.ann.String()
	glucose := func(by, code string) []object {
		return entries(c.get("team", "/Observation?code="+code+"&interval="+by+at, 200))
	}
	day := glucose("day", "105273-7")
	require.Len(t, day, 1)
	require.EqualValues(t, 6.5, day[0]["valueQuantity"].(object)["value"])
	require.Equal(t, object{"start": noon(0).Format(time.DateOnly), "end": noon(0).Format(time.DateOnly)}, day[0]["effectivePeriod"])
	require.Len(t, glucose("day", "14743-9"), 1)
	require.Len(t, glucose("day", base+"/CodeSystem/measurement|glucose"), 3, "a sensor, a fingerprick, and another source")
	hour := glucose("hour", "105273-7")
	require.Len(t, hour, 1)
	begin := noon(0).Add(-3 * time.Hour).Format("2006-01-02T15:04:05Z")
	require.Equal(t, begin, hour[0]["effectivePeriod"].(object)["start"])
	samples := glucose("sampled", "105272-9")
	require.Len(t, samples, 1)
	data := samples[0]["component"].([]any)[0].(object)["valueSampledData"].(object)
	require.Equal(t, "5 E E E E 6 E E E E 7 E E E E 8", data["data"])
	require.EqualValues(t, 60000, data["period"])
	require.Equal(t, begin, samples[0]["effectivePeriod"].(object)["start"])
	for _, o := range []object{day[0], hour[0], samples[0]} {
		require.Equal(t, o, c.get("team", "/Observation/"+o["id"].(string), 200))
	}
	steps := glucose("hour", "55423-8")
	require.Len(t, steps, 3)
	require.EqualValues(t, 1000, steps[0]["valueQuantity"].(object)["value"])
	require.EqualValues(t, 3000, glucose("day", "41950-7")[0]["valueQuantity"].(object)["value"])
	sleep := glucose("day", "93832-4")
	require.EqualValues(t, 7, sleep[0]["valueQuantity"].(object)["value"])
	require.Len(t, sleep[0]["component"], 3)
	require.EqualValues(t, 52, glucose("day", "40443-4")[0]["valueQuantity"].(object)["value"])
}

// A document is a file, and a Binary for who asks for FHIR.
func TestDocument_isAFileOrABinaryByAcceptHeader(t *testing.T) {
	c := newClinic(t)
	found := entries(c.get("team", "/DocumentReference?patient="+c.ann.String(), 200))
	require.NotEmpty(t, found)
	for _, d := range found {
		at := strings.TrimPrefix(d["content"].([]any)[0].(object)["attachment"].(object)["url"].(string), base)
		status, file := c.send(c.handler, "GET", at, "team", "")
		require.Equal(t, 200, status)
		require.True(t, strings.HasPrefix(string(file), "%PDF-"))
		for _, key := range []string{"other", "bound"} {
			status, _ = c.send(c.handler, "GET", at, key, "")
			require.Equal(t, 404, status)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, at, http.NoBody)
		r.Header.Set("x-service-api-key", "team")
		r.Header.Set("Accept", "application/fhir+json")
		w := httptest.NewRecorder()
		c.handler.ServeHTTP(w, r)
		var b struct {
			ResourceType, ContentType string
			Data                      []byte
		}
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &b))
		require.Equal(t, "Binary", b.ResourceType)
		require.Equal(t, file, b.Data)
	}
}

// What US Core 5.0.1 requires of types beside R4 is there: the validator does not have its profiles for
// them.
func TestOtherResources_haveTheElementsThatUSCoreRequires(t *testing.T) {
	c := newClinic(t)
	required := map[string][]string{
		"Organization": {"active", "name"}, "Practitioner": {"identifier", "name"}, "Provenance": {"target", "recorded", "agent"},
		"DocumentReference": {"status", "type", "category", "subject", "content"},
	}
	seen := map[string]bool{}
	for _, r := range entries(c.get("team", "/Patient/"+c.ann.String()+"/$everything", 200)) {
		kind := r["resourceType"].(string)
		seen[kind] = true
		for _, name := range required[kind] {
			require.NotEmpty(t, r[name], kind+" "+name)
		}
		switch kind {
		case "Provenance":
			for _, a := range r["agent"].([]any) {
				require.NotEmpty(t, a.(object)["who"])
			}
		case "Practitioner":
			require.NotEmpty(t, r["name"].([]any)[0].(object)["family"])
		}
	}
	for kind := range required {
		require.True(t, seen[kind], kind)
	}
}

// Laboratory resources have what US Core 5.0.1 requires beside R4: the validator does not have its
// profiles for them.
func TestLaboratory_resourcesHaveTheElementsThatUSCoreRequires(t *testing.T) {
	c := newClinic(t)
	day := regexp.MustCompile(`^\d{4}-\d{2}-\d{2}`)
	for kind, required := range map[string][]string{
		"Observation?category=laboratory&": {"status", "category", "code", "subject"},
		"DiagnosticReport?":                {"status", "category", "code", "subject", "issued"},
		"ServiceRequest?":                  {"status", "intent", "code", "subject"},
	} {
		found := entries(c.get("team", "/"+kind+"_count=500&patient="+c.ann.String(), 200))
		found = slices.DeleteFunc(found, func(r object) bool { return strings.HasPrefix(r["id"].(string), "vs.") })
		require.NotEmpty(t, found)
		for _, r := range found {
			for _, name := range required {
				require.Contains(t, r, name)
			}
			require.Equal(t, object{"reference": "Patient/" + c.ann.String()}, r["subject"])
			first := r["category"].([]any)[0].(object)["coding"].([]any)[0].(object)
			switch r["resourceType"] {
			case "Observation":
				require.Equal(t, "laboratory", first["code"])
				if at, ok := r["effectiveDateTime"]; ok { // us-core-1
					require.Regexp(t, day, at)
				}
			case "DiagnosticReport": // us-core-8
				require.Equal(t, []any{"http://terminology.hl7.org/CodeSystem/v2-0074", "LAB"}, []any{first["system"], first["code"]})
				require.True(t, r["effectiveDateTime"] != nil || r["_effectiveDateTime"] != nil)
			}
		}
	}
}
