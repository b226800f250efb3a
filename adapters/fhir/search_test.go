package fhir_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
)

// found are the ids of a search with parameters of names and values.
func (c *clinic) found(kind string, params ...string) []string {
	c.t.Helper()
	values := url.Values{"_count": {"500"}}
	for i := 0; i < len(params); i += 2 {
		values.Add(params[i], params[i+1])
	}
	return ids(c.get("team", "/"+kind+"?"+values.Encode(), 200))
}

// A reference to a Patient is an id, a relative one or an address, and several are alternatives.
func TestSearch_patientTakesIDsAndReferencesAsAlternatives(t *testing.T) {
	c := newClinic(t)
	ann, ben := c.ann.String(), c.ben.String()
	want := c.found("Observation", "patient", ann, "code", "8867-4")
	require.Len(t, want, days)
	for _, as := range []string{"Patient/" + ann, base + "/Patient/" + ann, ann + "," + uuid.NewString()} {
		for _, name := range []string{"patient", "subject", "patient:Patient", "subject:Patient"} {
			require.Equal(t, want, c.found("Observation", name, as, "code", "8867-4"), as)
		}
	}
	require.Empty(t, c.found("Observation", "patient", ann, "subject", ben), "each parameter holds")
	for _, kind := range []string{"DiagnosticReport", "ServiceRequest", "Specimen", "DocumentReference"} {
		require.Equal(t, c.found(kind, "patient", ann), c.found(kind, "subject", "Patient/"+ann), kind)
	}
	require.Len(t, c.found("Observation", "patient", ann+",Patient/"+ben, "code", "8867-4"), 2*days)
	require.Equal(t, want, ids(c.get("team", "/Observation?patient="+ann+"&patient="+ben+","+ann+"&code=8867-4", 200)))
	require.Empty(t, ids(c.get("team", "/Observation?patient="+ann+"&patient="+ben, 200)), "each parameter holds")
	require.Empty(t, c.found("Observation", "patient", c.foreign.String()))
	for _, wrong := range []string{"", "Group/" + ann, "Patient/", "https://other.example.com/Patient/" + ann, ann + ",", strings.Repeat(ann+",", 10) + ann[:35]} {
		c.get("team", "/Observation?patient="+url.QueryEscape(wrong), 400)
	}
}

// Dates have precisions, prefixes and alternatives, and each parameter holds.
func TestSearch_dateAppliesPrecisionsPrefixesAndAlternatives(t *testing.T) {
	c := newClinic(t)
	day := func(n int) string { return noon(n).Format(time.DateOnly) }
	for _, x := range []struct {
		dates []string
		want  []int // days ago
	}{
		{[]string{day(1)}, []int{1}},
		{[]string{"eq" + day(1)}, []int{1}},
		{[]string{"ne" + day(1)}, []int{0, 2}},
		{[]string{"gt" + day(1)}, []int{0}},
		{[]string{"lt" + day(1)}, []int{2}},
		{[]string{"ge" + day(1)}, []int{0, 1}},
		{[]string{"le" + day(1)}, []int{1, 2}},
		{[]string{"sa" + day(1)}, []int{0}},
		{[]string{"eb" + day(1)}, []int{2}},
		{[]string{day(0) + "," + day(2)}, []int{0, 2}},
		{[]string{"gt" + day(1) + ",lt" + day(1)}, []int{0, 2}},
		{[]string{"ge" + day(1), "le" + day(1)}, []int{1}},
		{[]string{"ge" + day(2) + "T00:00:00Z", "lt" + day(0) + "T00:00Z"}, []int{1, 2}},
		{[]string{"ge" + day(2) + "T00:00:00+00:00", "lt" + day(0) + "T00:00:00.000Z"}, []int{1, 2}},
		{[]string{"sa" + day(1) + "T23:59:59"}, []int{0}},
		{[]string{"ge2020", "lt2100-01"}, []int{0, 1, 2}},
		{[]string{"gt" + day(0)}, nil},
		{[]string{day(0), day(1)}, nil},
	} {
		params := []string{"patient", c.ben.String(), "code", "8867-4"}
		for _, d := range x.dates {
			params = append(params, "date", d)
		}
		var want []string
		for _, n := range x.want {
			want = append(want, measurementOf(c.ben, "hr", noon(n)))
		}
		require.Equal(t, want, c.found("Observation", params...), x.dates)
	}
	unescaped := "/Observation?code=8867-4&patient=" + c.ben.String() + "&date=ge" + day(0) + "T00:00:00+00:00"
	require.Len(t, entries(c.get("team", unescaped, 200)), 1, "a plus sign that is not encoded")
	require.Len(t, c.found("ServiceRequest", "patient", c.ann.String(), "authored", "ge2020"), 2)
	for _, wrong := range []string{"", "ap2026", "2026-13", "2026-01-01T25:00Z", day(0) + ",", "gege2026"} {
		c.get("team", "/Observation?patient="+c.ben.String()+"&date="+wrong, 400)
	}
}

// Tokens have a system or none, and several are alternatives.
func TestSearch_tokenMatchesWithOrWithoutASystem(t *testing.T) {
	c := newClinic(t)
	ann := c.ann.String()
	hr := c.found("Observation", "patient", ann, "code", "8867-4")
	require.Equal(t, hr, c.found("Observation", "patient", ann, "code", "http://loinc.org|8867-4"))
	require.Equal(t, hr, c.found("Observation", "patient", ann, "code", `8867-4,a\,b`))
	require.Empty(t, c.found("Observation", "patient", ann, "code", "|8867-4"), "without a system")
	require.Empty(t, c.found("Observation", "patient", ann, "code", "http://snomed.info/sct|8867-4"))
	for _, wrong := range []string{"code=", "code=|", "status=,final", "category=vital-signs,"} {
		c.get("team", "/Observation?patient="+ann+"&"+wrong, 400)
	}
	require.Empty(t, ids(c.get("team", "/Observation?code=8867-4&code=9279-1&patient="+ann, 200)), "each parameter holds")
	require.ElementsMatch(t, slices.Concat(hr, c.found("Observation", "patient", ann, "code", "9279-1")), c.found("Observation", "patient", ann, "code", "8867-4,9279-1"))
	vital := c.found("Observation", "patient", ann, "category", "vital-signs")
	require.Equal(t, vital, c.found("Observation", "patient", ann, "category", "http://terminology.hl7.org/CodeSystem/observation-category|vital-signs"))
	require.Equal(t, vital, c.found("Observation", "patient", ann, "category", "http://terminology.hl7.org/CodeSystem/observation-category|", "category", "vital-signs"))
	for kind, status := range map[string]string{
		"Observation": "http://hl7.org/fhir/observation-status|final", "DiagnosticReport": "http://hl7.org/fhir/diagnostic-report-status|final",
		"ServiceRequest": "http://hl7.org/fhir/request-status|active", "Coverage": "http://hl7.org/fhir/fm-status|active",
		"Consent": "http://hl7.org/fhir/consent-state-codes|active", "DocumentReference": "http://hl7.org/fhir/document-reference-status|current",
		"Specimen": "http://hl7.org/fhir/specimen-status|available", "Device": "http://hl7.org/fhir/device-status|active",
		"Appointment": "http://hl7.org/fhir/appointmentstatus|booked",
	} {
		_, code, _ := strings.Cut(status, "|")
		want := c.found(kind, "patient", ann, "status", code)
		require.Equal(t, want, c.found(kind, "patient", ann, "status", status), kind)
		if kind != "Specimen" && kind != "Appointment" {
			require.NotEmpty(t, want, kind)
		}
		require.Empty(t, c.found(kind, "patient", ann, "status", "http://example.com|"+code), kind)
	}
}

// A modifier is refused with the parameter that it is at, and other parameters are with the list of those there are.
func TestSearch_unsupportedModifierIsRefusedByName(t *testing.T) {
	c := newClinic(t)
	at := "&patient=" + c.ann.String()
	for path, says := range map[string]string{
		"/Observation?code:missing=true" + at: "query.code: must have no modifier", "/Observation?status:not=final" + at: "query.status: must have no modifier",
		"/Observation?code:text=marker" + at: "query.code: must have no modifier", "/Observation?patient:Group=marker": "query.patient: must have no modifier",
		"/Observation?_sort=marker" + at: "query._sort: must be one of date, _lastUpdated, _id, or", "/Observation?_since=marker" + at: "query._since: must be a time with an offset",
		"/Observation?patient.name=marker": "query.patient.name: is not a parameter of Observation, which takes _count, _after", "/Group?member=marker": "query.member: is not a parameter of Group, which takes _count",
		"/Patient?_sort=marker": "query._sort: is not a parameter of Patient", "/Observation?subject:Patient.name=marker": "query.subject: must have no modifier",
		"/Observation?_include=marker" + at: "query._include: must be one of Observation:based-on, Observation:patient", "/Observation?_revinclude=marker" + at: "query._revinclude: must be one of Provenance:target",
		"/Observation?_summary=marker" + at: "query._summary: must be one of true, text, data, count, false", "/Observation?_total=marker" + at: "query._total: must be one of none, estimate, accurate",
		"/Observation?_has:marker=1" + at: "query._has:marker: is not a parameter", "/Observation?Marker%20Person=1" + at: "query.a name: is not a parameter",
	} {
		b, err := json.Marshal(c.get("team", path, 400))
		require.NoError(t, err)
		require.Contains(t, string(b), says, path)
		require.NotContains(t, strings.ReplaceAll(string(b), "_has:marker", ""), "marker")
		require.NotContains(t, string(b), "Person=")
	}
}

// Several ids are alternatives, each parameter holds, and their pages are as small as was asked for.
func TestSearch_severalIDsAreAlternativesInPages(t *testing.T) {
	c := newClinic(t)
	hr := c.found("Observation", "patient", c.ann.String(), "code", "8867-4")
	for kind, all := range map[string][]string{"Observation": hr, "Patient": {c.ann.String(), c.ben.String()}} {
		list := strings.Join(all, ",") + "," + uuid.NewString()
		require.ElementsMatch(t, all, c.found(kind, "_id", list))
		require.Equal(t, all[:1], c.found(kind, "_id", list, "_id", all[0]))
		require.Empty(t, c.found(kind, "_id", all[0], "_id", all[1]))
		var got []string
		for next := "/" + kind + "?_count=1&_id=" + list; next != ""; {
			page := c.get("team", next, 200)
			require.Len(t, entries(page), 1)
			require.EqualValues(t, len(all), page["total"])
			got, next = append(got, ids(page)...), nextOf(page)
		}
		require.ElementsMatch(t, all, got)
	}
	require.Equal(t, hr[:1], c.found("Observation", "patient", c.ann.String(), "_id", hr[0]))
	require.Empty(t, c.found("Observation", "patient", c.ben.String(), "_id", hr[0]))
}

func measurementOf(user healthlab.UserID, key string, at time.Time) string {
	return fmt.Sprintf("vs.%s.%s.%s", strings.ReplaceAll(user.String(), "-", ""), key, at.Format(time.DateOnly))
}

// nextOf is the path of the next page; empty for none.
func nextOf(bundle object) string {
	for _, l := range bundle["link"].([]any) {
		if l := l.(object); l["relation"] == "next" {
			return strings.TrimPrefix(l["url"].(string), base)
		}
	}
	return ""
}

// _count=0 asks for the total alone.
func TestSearch_countZeroReturnsOnlyTheTotal(t *testing.T) {
	c := newClinic(t)
	for path, want := range map[string]int{"/Patient?": 2, "/Observation?code=8867-4&patient=" + c.ann.String() + "&": days, "/Group?": 1, "/Patient?_id=" + c.ann.String() + "&": 1} {
		out := c.get("team", path+"_count=0", 200)
		require.EqualValues(t, want, out["total"], path)
		require.Empty(t, entries(out))
		require.Empty(t, nextOf(out))
	}
	require.Len(t, entries(c.get("team", "/Patient?_count=100000", 200)), 2, "more than the most is the most")
	require.Len(t, entries(c.get("team", "/Patient?_format=application/fhir+json", 200)), 2)
}

// meta.lastUpdated of a resource is found, and what is before it and after it is not.
func TestSearch_lastUpdatedAppliesEachPrefix(t *testing.T) {
	c := newClinic(t)
	for _, kind := range []string{"DiagnosticReport", "ServiceRequest", "Coverage"} {
		r := entries(c.get("team", "/"+kind+"?patient="+c.ann.String(), 200))[0]
		at := r["meta"].(object)["lastUpdated"].(string)
		for value, has := range map[string]bool{
			at: true, "ge" + at: true, "le" + at: true, "gt" + at: false, "lt" + at: false, "ne" + at: false, "sa" + at: false, "eb" + at: false,
			"gt2020-01-01": true, "lt2020-01-01": false, at[:10]: true,
		} {
			require.Equal(t, has, slices.Contains(c.found(kind, "patient", c.ann.String(), "_lastUpdated", value), r["id"].(string)), "%s %s", kind, value)
		}
	}
}

// A Patient is found by the id that the team has given, and by its own as an identifier.
func TestSearch_identifierFindsByClientUserIDAndUUID(t *testing.T) {
	c := newClinic(t)
	ann := []string{c.ann.String()}
	for _, value := range []string{"ann", base + "/NamingSystem/client-user-id|ann", "urn:ietf:rfc:3986|urn:uuid:" + ann[0], "ann,nobody"} {
		require.Equal(t, ann, c.found("Patient", "identifier", value), value)
	}
	for _, value := range []string{"eve", "an", "urn:ietf:rfc:3986|ann", "http://example.com|ann", "urn:uuid:" + c.foreign.String()} {
		require.Empty(t, c.found("Patient", "identifier", value), value)
	}
	require.Empty(t, c.found("Patient", "identifier", "ann", "_id", c.ben.String()))
	require.Empty(t, ids(c.get("bound", "/Patient?identifier=ann", 200)))
	c.get("team", "/Patient?identifier="+url.QueryEscape(base+"/NamingSystem/client-user-id|"), 400)
	c.get("team", "/Patient/"+strings.ToUpper(ann[0]), 404)
}

// A client finds the Group that it exports, and no other.
func TestSearch_groupFindsOnlyTheClientsOwnGroup(t *testing.T) {
	c := newClinic(t)
	own := []string{c.team.String()}
	for _, path := range []string{
		"/Group", "/Group?_count=1", "/Group?_id=" + own[0], "/Group?identifier=urn:uuid:" + own[0],
		"/Group?identifier=urn:ietf:rfc:3986|urn:uuid:" + own[0], "/Group?_id=" + own[0] + "," + c.other.String(),
	} {
		out := c.get("team", path, 200)
		require.Equal(t, own, ids(out), path)
		require.Equal(t, []object{c.get("team", c.group(), 200)}, entries(out))
		require.Empty(t, nextOf(out))
	}
	for _, path := range []string{"/Group?_id=" + c.other.String(), "/Group?identifier=urn:uuid:" + c.other.String(), "/Group?identifier=" + own[0]} {
		require.Empty(t, ids(c.get("team", path, 200)), path)
	}
	require.EqualValues(t, 1, entries(c.get("bound", "/Group", 200))[0]["quantity"])
	status, body := c.send(c.handler, "POST", "/Group/_search", "team", "_id="+own[0])
	require.Equal(t, 200, status)
	require.Contains(t, string(body), own[0])
	c.get("", "/Group", 401)
}

// The pages of $everything have every resource once, in the order of one page.
func TestEverything_pagesContainEachResourceOnceInOrder(t *testing.T) {
	c := newClinic(t)
	path := "/Patient/" + c.ann.String() + "/$everything"
	whole := ids(c.get("team", path, 200))
	for _, size := range []int{17, len(whole), 1000} {
		var got []string
		for next := fmt.Sprintf("%s?_count=%d", path, size); next != ""; {
			page := c.get("team", next, 200)
			require.LessOrEqual(t, len(entries(page)), size)
			got, next = append(got, ids(page)...), nextOf(page)
		}
		require.Equal(t, whole, got)
	}
	// What comes before the next page, and what leaves, moves nothing.
	few := path + "?_type=Observation&start=" + noon(2).Format(time.DateOnly)
	list := ids(c.get("team", few, 200))
	page := c.get("team", few+"&_count=3", 200)
	at := noon(2)
	c.remove(c.ann, "heartrate", "app", at)
	gone := measurementOf(c.ann, "hr", at)
	left := func(ids []string) []string {
		return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == gone })
	}
	require.Contains(t, list, gone)
	require.Equal(t, left(list[3:]), ids(c.get("team", strings.Replace(nextOf(page), "_count=3&", "", 1), 200)))
	for _, wrong := range []string{"_count=0", "_count=a", "_after=1", "_after=a~b", "start=2026,2027", "start=gt2026", "_since=2026-01-01"} {
		c.get("team", "/Patient/"+c.ben.String()+"/$everything?"+wrong, 400)
	}
	self := c.get("team", "/Patient/"+c.ben.String()+"/$everything", 200)["link"].([]any)[0].(object)
	require.Equal(t, object{"relation": "self", "url": base + "/Patient/" + c.ben.String() + "/$everything"}, self)
}
