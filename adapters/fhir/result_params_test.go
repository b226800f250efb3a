package fhir_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata/organisation"
)

// ask reads a path with headers, each a name and a value.
func (c *clinic) ask(method, path, body string, headers ...string) (int, object) {
	c.t.Helper()
	r := httptest.NewRequestWithContext(c.t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("x-service-api-key", "team")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	var out object
	require.NoError(c.t, json.Unmarshal(w.Body.Bytes(), &out), path)
	return w.Code, out
}

// JSON of R4 is served to all that take it, and other formats are refused with 406.
func TestFormat_otherThanJSONIsRefused(t *testing.T) {
	c := newClinic(t)
	ann := c.ann.String()
	paths := []string{"/metadata", "/Patient/" + ann, "/Patient", "/Observation?code=8867-4&patient=" + ann, "/Patient/" + ann + "/$everything?_type=Patient"}
	for _, path := range paths {
		for accept, status := range map[string]int{
			"": 200, "*/*": 200, "application/*": 200, "application/json": 200, "application/fhir+json": 200, "application/fhir+json; fhirVersion=4.0": 200,
			"application/fhir+json;fhirVersion=4.0.1;charset=utf-8": 200, "application/fhir+xml;q=0.9, application/fhir+json;q=0.8": 200,
			"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": 200,
			"application/fhir+json; fhirVersion=3.0":                          406, "application/fhir+json; fhirVersion=5.0": 406, "application/fhir+xml": 406, "application/xml": 406, "text/xml, text/turtle": 406,
			"application/fhir+json;q=0": 406, "text/html": 406,
		} {
			got, out := c.ask("GET", path, "", "Accept", accept)
			require.Equal(t, status, got, "%s %s", path, accept)
			require.Equal(t, status != 200, out["resourceType"] == "OperationOutcome")
		}
		and := map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")]
		for format, status := range map[string]int{"json": 200, "application/fhir%2Bjson": 200, "application/fhir+json": 200, "application/json": 200, "xml": 406, "application/fhir%2Bxml": 406, "html": 406, "ttl": 406} {
			got, _ := c.ask("GET", path+and+"_format="+format, "", "Accept", "application/fhir+xml")
			require.Equal(t, status, got, "%s %s: _format wins over Accept", path, format)
		}
	}
	form := []string{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}
	got, _ := c.ask("POST", "/Patient/_search", "_format=xml", form...)
	require.Equal(t, 406, got)
	got, _ = c.ask("POST", "/Patient/_search", "_format=json", form...)
	require.Equal(t, 200, got)
	got, _ = c.ask("POST", "/Patient/_search", "{}", "Content-Type", "application/json")
	require.Equal(t, 415, got)
}

// What is not known is refused, or does not count where the client prefers that.
func TestHandling_lenientIgnoresUnknownParametersAndStrictRefuses(t *testing.T) {
	c := newClinic(t)
	ann := c.ann.String()
	for path, and := range map[string]string{"/Observation": "?code=8867-4&patient=" + ann, "/Patient/" + ann + "/$everything": "?_type=Patient"} {
		for prefer, status := range map[string]int{"": 400, "handling=strict": 400, "return=minimal": 400, "handling=lenient": 200, "respond-async; handling=lenient": 200} {
			got, out := c.ask("GET", path+and+"&marker=1", "", "Prefer", prefer)
			require.Equal(t, status, got, prefer)
			if status == 200 {
				self := out["link"].([]any)[0].(object)["url"].(string)
				require.NotContains(t, self, "marker", "the link says what counted")
				continue
			}
			issue := out["issue"].([]any)[0].(object)
			require.Equal(t, "not-supported", issue["code"])
			require.Equal(t, []any{"http.query.marker"}, issue["expression"])
		}
	}
	got, _ := c.ask("GET", "/Observation?code:in=a&patient="+ann, "", "Prefer", "handling=lenient")
	require.Equal(t, 400, got, "a modifier that does not count would find more")
	got, _ = c.ask("GET", "/Observation?date=marker&patient="+ann, "", "Prefer", "handling=lenient")
	require.Equal(t, 400, got)
}

func TestSort_pagesFollowTheRequestedOrder(t *testing.T) {
	c := newClinic(t)
	for _, kind := range []string{"Observation", "ServiceRequest", "DiagnosticReport", "Coverage", "Device", "DocumentReference"} {
		path := "/" + kind + "?patient=" + c.ann.String()
		def := ids(c.get("team", path+"&_count=500", 200))
		for _, by := range []string{"date", "authored", "_lastUpdated", "_id"} {
			status, _ := c.send(c.handler, "GET", path+"&_sort="+by, "team", "")
			if status == 400 {
				require.NotEqual(t, "_id", by)
				continue
			}
			for _, sign := range []string{"", "-"} {
				whole := entries(c.get("team", path+"&_count=500&_sort="+sign+by, 200))
				require.ElementsMatch(t, def, idsOf(whole))
				var keys []string
				for _, r := range whole {
					switch at, _ := r["meta"].(object)["lastUpdated"].(string); {
					case by == "_id":
						keys = append(keys, r["id"].(string))
					case by == "_lastUpdated" && at != "":
						keys = append(keys, at)
					case by == "_lastUpdated":
						keys = append(keys, map[string]string{"": "3", "-": "1"}[sign]) // behind those with a time, in both orders
					}
				}
				want := slices.Sorted(slices.Values(keys))
				if sign == "-" {
					slices.Reverse(want)
				}
				require.Equal(t, want, keys, "%s %s%s", kind, sign, by)
				var got []string
				for next := path + "&_count=3&_sort=" + sign + by; next != ""; {
					page := c.get("team", next, 200)
					got, next = append(got, ids(page)...), nextOf(page)
				}
				require.Equal(t, idsOf(whole), got, "%s %s%s", kind, sign, by)
			}
		}
	}
	path := "/Observation?code=8867-4&patient=" + c.ann.String()
	latest := ids(c.get("team", path, 200))
	require.Equal(t, latest, ids(c.get("team", path+"&_sort=-date", 200)))
	slices.Reverse(latest)
	require.Equal(t, latest, ids(c.get("team", path+"&_sort=date", 200)))
}

// _since finds what changed since then, and what nothing says of when it changed: as $everything does.
func TestSince_searchAndEverythingReturnTheSame(t *testing.T) {
	c := newClinic(t)
	at := "&patient=" + c.ann.String()
	for since, labs := range map[string]bool{"2020-01-01T00:00:00Z": true, "2100-01-01T00:00:00Z": false, "2020-01-01T00:00:00%2B01:00": true, "2020-01-01T00:00:00+01:00": true} {
		require.Len(t, entries(c.get("team", "/Observation?code=8867-4&_since="+since+at, 200)), days)
		require.Equal(t, labs, len(entries(c.get("team", "/DiagnosticReport?_since="+since+at, 200))) == 1)
		require.NotEmpty(t, entries(c.get("team", "/Patient?_since="+since, 200)))
		for _, kind := range personal {
			var want []string
			for _, r := range entries(c.get("team", "/Patient/"+c.ann.String()+"/$everything?_type="+kind+"&_since="+since, 200)) {
				want = append(want, r["id"].(string))
			}
			require.ElementsMatch(t, want, ids(c.get("team", "/"+kind+"?_count=500&_since="+since+at, 200)), kind)
		}
	}
	c.get("team", "/DiagnosticReport?_since=2020-01-01T00:00:00Z&_id="+c.order.String(), 400)
	c.get("team", "/DiagnosticReport?_since=2020-01-01"+at, 400)
}

// The bundle has what its parameters ask for.
func TestResultParameters_applySummaryElementsAndTotal(t *testing.T) {
	c := newClinic(t)
	path := "/Observation?code=8867-4&patient=" + c.ann.String()
	whole := c.get("team", path, 200)
	for _, params := range []string{"&_summary=count", "&_count=1&_summary=count", "&_summary=count&_total=accurate"} {
		out := c.get("team", path+params, 200)
		require.EqualValues(t, days, out["total"], params)
		require.Empty(t, entries(out))
		require.Empty(t, nextOf(out))
	}
	for _, params := range []string{"&_summary=false", "&_summary=data", "&_pretty=true", "&_total=accurate", "&_total=estimate"} {
		out := c.get("team", path+params, 200)
		require.Equal(t, entries(whole), entries(out), params)
		require.EqualValues(t, days, out["total"])
	}
	out := c.get("team", path+"&_total=none&_count=1", 200)
	require.NotContains(t, out, "total")
	require.Len(t, entries(out), 1)
	require.NotEmpty(t, nextOf(out))
	for params, want := range map[string][]string{
		"_elements=subject": {"code", "id", "meta", "resourceType", "status", "subject"}, "_elements=id,Observation.valueQuantity,%20method,Patient.name": {"code", "id", "meta", "method", "resourceType", "status", "valueQuantity"},
		"_summary=text": {"code", "id", "meta", "resourceType", "status"}, "_summary=true": {"code", "effectiveDateTime", "id", "meta", "resourceType", "status", "subject", "valueQuantity"},
	} {
		for i, r := range entries(c.get("team", path+"&"+params, 200)) {
			var names []string
			for name := range r {
				names = append(names, name)
				if name != "meta" {
					require.Equal(t, entries(whole)[i][name], r[name])
				}
			}
			slices.Sort(names)
			require.Equal(t, want, names, params)
			tag := r["meta"].(object)["tag"].([]any)[0].(object)
			require.Equal(t, "SUBSETTED", tag["code"])
			require.Equal(t, entries(whole)[i]["meta"].(object)["versionId"], r["meta"].(object)["versionId"])
		}
	}
	for _, kind := range personal { // what R4 requires is there
		require.NotEmpty(t, entries(c.get("team", "/"+kind+"?_summary=true&patient="+c.ann.String(), 200)), kind)
	}
	report := entries(c.get("team", "/DiagnosticReport?_summary=true&patient="+c.ann.String(), 200))[0]
	require.NotContains(t, report, "result")
	require.Contains(t, report, "issued")
}

// modes are the entries of a bundle by their search modes, each with its type and id.
func modes(bundle object) (match, include []string) {
	list, _ := bundle["entry"].([]any)
	for _, e := range list {
		r := e.(object)["resource"].(object)
		at := r["resourceType"].(string) + "/" + r["id"].(string)
		if e.(object)["search"].(object)["mode"] == "include" {
			include = append(include, at)
		} else {
			match = append(match, at)
		}
	}
	return match, include
}

// What matches refer to comes with them, once, and does not count.
func TestInclude_addsReferencedResourcesOnceOutsideTheTotal(t *testing.T) {
	c := newClinic(t)
	at := "patient=" + c.ann.String()
	patient := "Patient/" + c.ann.String()
	for path, want := range map[string]func(string) bool{
		"/Observation?code=8867-4&_include=Observation:patient&" + at:         func(id string) bool { return id == patient },
		"/Observation?code=8867-4&_include=Observation:subject:Patient&" + at: func(id string) bool { return id == patient },
		"/DiagnosticReport?_include=DiagnosticReport:result&" + at:            func(id string) bool { return strings.HasPrefix(id, "Observation/"+c.order.String()) },
		"/DiagnosticReport?_include=DiagnosticReport:based-on&" + at:          func(id string) bool { return id == "ServiceRequest/"+c.order.String() },
		"/DiagnosticReport?_revinclude=Provenance:target&" + at:               func(id string) bool { return id == "Provenance/"+c.order.String() },
		"/Observation?_count=500&_revinclude=Provenance:target&" + at:         func(id string) bool { return id == "Provenance/"+c.order.String() },
		"/ServiceRequest?_include=ServiceRequest:requester&" + at:             func(id string) bool { return id == "Practitioner/"+c.visited.String() },
		"/Coverage?_include=Coverage:payor&" + at:                             func(id string) bool { return strings.HasPrefix(id, "Organization/payor.") },
		"/Appointment?_include=Appointment:patient&" + at:                     func(id string) bool { return id == patient },
		"/Device?_include=Device:patient&" + at:                               func(id string) bool { return id == patient },
		"/Consent?_include=Consent:patient&" + at:                             func(id string) bool { return id == patient },
		"/Specimen?_include=Specimen:subject&" + at:                           func(id string) bool { return id == patient },
		"/Provenance?_include=Provenance:target:DiagnosticReport&" + at:       func(id string) bool { return id == "DiagnosticReport/"+c.order.String() },
	} {
		out := c.get("team", path, 200)
		match, include := modes(out)
		require.NotEmpty(t, match, path)
		require.NotEmpty(t, include, path)
		require.EqualValues(t, len(match), out["total"], path)
		require.Equal(t, slices.Compact(slices.Sorted(slices.Values(include))), slices.Sorted(slices.Values(include)), path)
		for _, id := range include {
			require.True(t, want(id), "%s %s", path, id)
		}
	}
	report := "/DiagnosticReport?_include=DiagnosticReport:result&_include=DiagnosticReport:specimen&_include=DiagnosticReport:subject&" + at
	_, include := modes(c.get("team", report, 200))
	require.Contains(t, include, patient)
	require.Contains(t, fmt.Sprint(include), "Specimen/")
	require.Equal(t, len(c.results())+2, len(include))
	out := c.get("team", report+"&_summary=count", 200)
	require.Empty(t, entries(out))
	_, include = modes(c.get("bound", "/Observation?code=8867-4&_include=Observation:patient&patient="+c.ben.String(), 200))
	require.Equal(t, []string{"Patient/" + c.ben.String()}, include)

	get, _ := c.tokens()
	status, body, _ := c.bear(get("system/Observation.rs"), "/Observation?code=8867-4&_include=Observation:patient&"+at)
	require.Equal(t, 200, status)
	require.NotContains(t, body, `"resourceType":"Patient"`, "the token may not read it")
	c.scopes = organisation.Scopes{organisation.DataRead}
	_, include = modes(c.get("team", "/Device?_include=Device:patient&"+at, 200))
	require.Empty(t, include, "the key may not read it")
}

// An export is its client's alone, and other clients of the team learn nothing of it.
func TestExport_isVisibleOnlyToTheClientThatStartedIt(t *testing.T) {
	c := newClinic(t)
	get, client := c.tokens()
	own := get("system/*.read")
	status, _, head := c.bear(own, "/$export?_type=Patient")
	require.Equal(t, 202, status)
	at := strings.TrimPrefix(head.Get("Content-Location"), base)
	file := strings.Replace(at, "status", "file", 1) + "/Patient/0"
	again := get("system/*.read")
	for _, path := range []string{at, file} {
		status, body, _ := c.bear(again, path)
		require.Equal(t, 200, status, body)
		c.get("team", path, 404)
	}
	code, _ := c.send(c.handler, "DELETE", at, "team", "")
	require.Equal(t, 404, code)
	client.Key = uuid.New()
	status, _, _ = c.bear(own, at)
	require.Equal(t, 404, status)
}

// _typeFilter leaves what none of the searches of a type finds, and all of the other types.
func TestExport_typeFilterLimitsOnlyItsType(t *testing.T) {
	c := newClinic(t)
	export := func(params string) map[string]int {
		out := map[string]int{}
		for _, r := range c.download("team", c.manifest("team", c.kickOff("team", "/$export?"+params)).Output) {
			out[r["resourceType"].(string)]++
		}
		return out
	}
	day := noon(1).Format(time.DateOnly)
	require.Equal(t, map[string]int{"Observation": 2 * days, "Patient": 2}, export("_type=Patient,Observation&_typeFilter=Observation%3Fcode%3D8867-4"))
	require.Equal(t, map[string]int{"Observation": 2}, export("_type=Observation&_typeFilter=Observation%3Fcode%3D8867-4%26date%3D"+day))
	require.Equal(t, map[string]int{"Observation": 4 * days}, export("_type=Observation&_typeFilter=Observation%3Fcode%3D8867-4,Observation%3Fcode%3D9279-1"))
	require.Equal(t, map[string]int{"Observation": 4 * days, "ServiceRequest": 1}, export("_type=Observation,ServiceRequest&_typeFilter=Observation%3Fcode%3D8867-4,9279-1&_typeFilter=ServiceRequest%3Fstatus%3Dcompleted"))
	for _, wrong := range []string{"marker", "Goal%3Fstatus%3Dactive", "Observation%3Fmarker%3D1", "Observation%3Fdate%3Dmarker", "Observation%3Fpatient%3D" + c.ann.String(), "Observation%3Fcode%3Ain%3Da", "Patient%3F_id%3Da"} {
		out := c.get("team", "/$export?_typeFilter="+wrong, 400)
		b, err := json.Marshal(out)
		require.NoError(t, err)
		require.Contains(t, string(b), "query._typeFilter: ")
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/$export?_type=Observation&_typeFilter=Observation%3Fcode%3D8867-4&_typeFilter=Observation%3Fmarker%3D1", http.NoBody)
	r.Header.Set("x-service-api-key", "team")
	r.Header.Set("Prefer", "respond-async, handling=lenient")
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	require.Equal(t, 202, w.Code)
	list := c.download("team", c.manifest("team", strings.TrimPrefix(w.Header().Get("Content-Location"), base)).Output)
	require.Greater(t, len(list), 2*days, "one that does not count finds everything")
}

// Operations are called by POST, too, with parameters in the address or in a resource; and what a Patient's compartment
// has is searched under its address.
func TestOperations_acceptPOSTAndCompartmentSearch(t *testing.T) {
	c := newClinic(t)
	path := "/Patient/" + c.ann.String() + "/$everything"
	want := ids(c.get("team", path+"?_type=Observation&_count=3", 200))
	for _, body := range []string{"", "{}", `{"resourceType":"Parameters"}`} {
		status, out := c.ask("POST", path+"?_type=Observation&_count=3", body, "Content-Type", "application/fhir+json")
		require.Equal(t, 200, status, body)
		require.Equal(t, want, ids(out))
		require.NotEmpty(t, nextOf(out))
	}
	status, out := c.ask("POST", path, `{"resourceType":"Parameters","parameter":[{"name":"_type","valueCode":"Observation"},{"name":"_count","valueInteger":3}]}`)
	require.Equal(t, 200, status)
	require.Equal(t, want, ids(out))
	for _, wrong := range []string{"marker", `{"resourceType":"Patient"}`, `{"resourceType":"Parameters","parameter":[{"name":"_type"}]}`, `{"resourceType":"Parameters","parameter":[{"valueCode":"marker"}]}`, `{"resourceType":"Parameters","parameter":[{"name":"marker","valueReference":{"reference":"a"}}]}`} {
		status, out := c.ask("POST", path, wrong)
		require.Equal(t, 400, status)
		require.Contains(t, fmt.Sprint(out), "body: must be a resource Parameters")
	}
	for _, path := range []string{"/$export", "/Patient/$export", c.group() + "/$export"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(`{"resourceType":"Parameters","parameter":[{"name":"_type","valueString":"Patient"},{"name":"_since","valueInstant":"2020-01-01T00:00:00Z"}]}`))
		r.Header.Set("x-service-api-key", "team")
		r.Header.Set("Prefer", "respond-async")
		w := httptest.NewRecorder()
		c.handler.ServeHTTP(w, r)
		require.Equal(t, 202, w.Code, w.Body.String())
		m := c.manifest("team", strings.TrimPrefix(w.Header().Get("Content-Location"), base))
		require.Len(t, m.Output, 1)
	}
	for _, kind := range personal {
		require.Equal(t, c.found(kind, "patient", c.ann.String()), ids(c.get("team", "/Patient/"+c.ann.String()+"/"+kind+"?_count=500", 200)), kind)
	}
	require.Len(t, ids(c.get("team", "/Patient/"+c.ann.String()+"/Observation?code=8867-4", 200)), days)
	require.Empty(t, ids(c.get("team", "/Patient/"+c.foreign.String()+"/Observation", 200)))
	c.get("team", "/Patient/marker/Observation", 400)
	c.get("team", "/Patient/"+c.ann.String()+"/Organization", 404)
}
