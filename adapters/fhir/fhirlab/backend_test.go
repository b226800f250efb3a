package fhirlab_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/fhir/fhirlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/orderstest"
	"github.com/healthlab-dev/healthlab/orders/people"
)

func TestBackend_passesTheLabBackendSuite(t *testing.T) {
	orderstest.RunLabBackend(t, func(t testing.TB) orderstest.LabHarness {
		b := newBench(t)
		steps := map[string]int{}
		pass := func() {
			b.lab.mu.Lock()
			bundles := b.lab.bundles
			b.lab.mu.Unlock()
			for _, sent := range bundles {
				request := resources(sent, "ServiceRequest")[0]
				number := request["requisition"].(object)["value"].(string)
				if request["status"] == "revoked" {
					steps[number] = 99
					continue
				}
				who := resources(sent, "Patient")[0]
				who["id"] = "p"
				one := reported("r", number, "o")
				result := observed("o", "4598", "9")
				result["code"] = request["code"]
				switch steps[number]++; steps[number] {
				case 2:
					one["status"], result["status"] = "preliminary", "preliminary"
				case 4:
				default:
					continue
				}
				require.NoError(t, b.send(bundle("message", one, who, result)))
			}
		}
		return orderstest.LabHarness{Lab: b.back, Method: catalogue.WalkInTest, Pass: pass, RefusesUnreadable: true, Report: func(t testing.TB, s exchange.Submission, odd orderstest.OddReport) {
			number := resources(b.lab.last(), "ServiceRequest")[0]["requisition"].(object)["value"].(string)
			who := resources(b.lab.last(), "Patient")[0]
			who["id"] = "p"
			value, status := "9", "final"
			all := []object{who}
			switch odd {
			case orderstest.BoundReport:
				value = "<5"
			case orderstest.CommentReport:
				value = orderstest.CommentText
			case orderstest.NoPatientReport:
				all = nil
			case orderstest.OtherPatientReport:
				p := orderstest.OtherPatient()
				all[0] = object{"resourceType": "Patient", "id": "p", "name": []any{object{"family": p.LastName, "given": []string{p.FirstName}}}, "birthDate": p.DOB.String()}
			case orderstest.UnknownStateReport:
				status = "unknown"
			case orderstest.UnreadableReport:
				require.Error(t, b.back.Receive(t.Context(), []byte(`{"resourceType":"DiagnosticReport","status":7}`)))
				return
			}
			one := reported("odd", number, "o")
			one["status"] = status
			require.NoError(t, b.send(bundle("transaction", append(all, one, observed("o", "4598", value))...)))
		}}
	})
}

// What the laboratory gets is what the order says, and can be sent twice.
func TestSubmit_sendsAnIdempotentTransactionBundle(t *testing.T) {
	b := newBench(t)
	_, n := b.ana()
	sent := b.lab.last()
	require.Equal(t, "transaction", sent["type"])
	p := resources(sent, "Patient")[0]
	require.Equal(t, []any{object{"use": "official", "family": "Roe", "given": []any{"Ana"}}}, p["name"])
	require.Equal(t, "1984-05-09", p["birthDate"])
	requests := resources(sent, "ServiceRequest")
	require.Len(t, requests, 2)
	for i, r := range requests {
		require.Equal(t, fmt.Sprintf("%s-%d", n, i+1), number(r))
		require.Equal(t, "active", r["status"])
	}
	for _, e := range sent["entry"].([]any) {
		q := e.(object)["request"].(object)
		if q["method"] == "POST" {
			require.True(t, strings.HasPrefix(q["ifNoneExist"].(string), "identifier="))
		} else {
			require.Contains(t, q["url"], "?identifier=")
		}
	}
}

// A refusal for good is Invalid, and everything else is tried again.
func TestClient_mapsStatusCodesToErrorKinds(t *testing.T) {
	for status, kind := range map[int]error{200: nil, 201: nil, 400: healthlab.Invalid, 422: healthlab.Invalid, 404: healthlab.NotFound, 401: healthlab.Unavailable, 409: healthlab.Unavailable, 500: healthlab.Unavailable} {
		lab := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(status) }))
		_, err := fhirlab.NewClient(lab.URL+"/", nil, nil).Send(t.Context(), []byte("{}"))
		lab.Close()
		if kind == nil {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, kind)
		}
	}
}

// TestMatching_certainBundlesAreAttachedAndOthersQueuedForReview is the rule of orders for what is reported of patient
// and numbers.
func TestMatching_certainBundlesAreAttachedAndOthersQueuedForReview(t *testing.T) {
	for name, c := range map[string]struct {
		edit   func(b *bench, number string) any
		review string // empty: attached
	}{
		"exact": {func(_ *bench, n string) any {
			return bundle("transaction", patient("p", "Roe", "Ana"), reported("r", n, "o"), observed("o", "4598", "v1"))
		}, ""},
		"second name": {func(_ *bench, n string) any {
			return bundle("message", patient("p", "ROE", "ANA", "MARIE"), reported("r", n, "o"), observed("o", "4598", "v1"))
		}, ""},
		"number of a test": {func(_ *bench, n string) any {
			return bundle("batch", patient("p", "Roe", "Ana"), reported("r", n+"-2", "o"), observed("o", "4598", "v1"))
		}, ""},
		"the laboratory's reference": {func(_ *bench, n string) any {
			r := reported("r", "", "o")
			r["basedOn"] = []any{ref("ServiceRequest/at-" + n + "-1")}
			return bundle("collection", patient("p", "Roe", "Ana"), r, observed("o", "4598", "v1"))
		}, ""},
		"a request in the bundle": {func(_ *bench, n string) any {
			r := reported("r", "", "o")
			r["basedOn"] = []any{ref("ServiceRequest/q")}
			q := object{"resourceType": "ServiceRequest", "id": "q", "requisition": object{"system": "urn:healthlab:order", "value": n}}
			return bundle("transaction", q, patient("p", "Roe", "Ana"), r, observed("o", "4598", "v1"))
		}, ""},
		"contained": {func(_ *bench, n string) any {
			r := reported("r", n)
			o := observed("o", "4598", "v1")
			o["subject"] = ref("#p")
			r["contained"] = []any{patient("p", "Roe", "Ana"), o}
			r["subject"], r["result"] = ref("#p"), []any{ref("#o")}
			return r
		}, ""},
		"name without a birth date": {func(_ *bench, n string) any {
			p := patient("p", "Roe", "Ana")
			delete(p, "birthDate")
			return bundle("transaction", p, reported("r", n, "o"), observed("o", "4598", "v1"))
		}, ""},
		"another family name": {func(_ *bench, n string) any {
			return bundle("transaction", patient("p", "Rowe", "Ana"), reported("r", n, "o"), observed("o", "4598", "v1"))
		}, "match_sample_id_mismatch_demo"},
		"another sex": {func(_ *bench, n string) any {
			p := patient("p", "Roe", "Ana")
			p["gender"] = "male"
			return bundle("transaction", p, reported("r", n, "o"), observed("o", "4598", "v1"))
		}, "match_sample_id_mismatch_demo"},
		"another year": {func(_ *bench, n string) any {
			p := patient("p", "Roe", "Ana")
			p["birthDate"] = "1985"
			return bundle("transaction", p, reported("r", n, "o"), observed("o", "4598", "v1"))
		}, "match_sample_id_mismatch_demo"},
		"of two official names one": {func(_ *bench, n string) any {
			p := patient("p", "Roe", "Ana")
			p["name"] = []any{object{"use": "official", "family": "Roe", "given": []string{"Ana"}}, object{"use": "official", "family": "Poe", "given": []string{"Eve"}}}
			return bundle("transaction", p, reported("r", n, "o"), observed("o", "4598", "v1"))
		}, "match_sample_id_mismatch_demo"},
		"no patient": {func(_ *bench, n string) any {
			return bundle("transaction", reported("r", n, "o"), observed("o", "4598", "v1"))
		}, "match_sample_id_mismatch_demo"},
		"two patients of one id": {func(_ *bench, n string) any {
			return bundle("transaction", patient("p", "Roe", "Ana"), patient("p", "Poe", "Eve"), reported("r", n, "o"), observed("o", "4598", "v1"))
		}, "match_sample_id_mismatch_demo"},
		"the observation is another's": {func(_ *bench, n string) any {
			o := observed("o", "4598", "v1")
			o["subject"] = ref("Patient/q")
			return bundle("transaction", patient("p", "Roe", "Ana"), patient("q", "Poe", "Eve"), reported("r", n, "o"), o)
		}, "match_sample_id_mismatch_demo"},
		"the observation is of another order": {func(b *bench, n string) any {
			_, other := b.place(healthlab.UserID{UUID: uuid.New()}, people.PatientDetailsInput{FirstName: "Ana", LastName: "Roe", DOB: anaBorn, Gender: people.Female})
			o := observed("o", "4598", "v1")
			o["basedOn"] = []any{object{"identifier": object{"system": "urn:healthlab:order", "value": other}}}
			return bundle("transaction", patient("p", "Roe", "Ana"), reported("r", n, "o"), o)
		}, "match_sample_id_mismatch_demo"},
		"an unknown reference beside the number": {func(_ *bench, n string) any {
			r := reported("r", n, "o")
			r["basedOn"] = append(r["basedOn"].([]any), ref("ServiceRequest/elsewhere"))
			return bundle("transaction", patient("p", "Roe", "Ana"), r, observed("o", "4598", "v1"))
		}, "match_sample_id_mismatch_demo"},
		"our number of another person": {func(_ *bench, n string) any {
			p := patient("p", "Roe", "Ana")
			p["identifier"] = []any{object{"system": "urn:healthlab:patient", "value": uuid.NewString()}}
			return bundle("transaction", p, reported("r", n, "o"), observed("o", "4598", "v1"))
		}, "match_sample_id_mismatch_demo"},
		"no number": {func(_ *bench, n string) any {
			return bundle("transaction", patient("p", "Roe", "Ana"), reported("r", "", "o"), observed("o", "4598", "v1"))
		}, "match_demo"},
		"an observation alone": {func(_ *bench, n string) any {
			o := observed("o", "4598", "v1")
			o["basedOn"] = []any{object{"identifier": object{"system": "urn:healthlab:order", "value": n}}}
			return bundle("transaction", patient("p", "Roe", "Ana"), o)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			id, n := b.ana()
			sent := c.edit(b, n)
			for range 2 { // a repeat changes nothing
				require.NoError(t, b.send(sent))
				if c.review == "" {
					require.Equal(t, "v1\n", b.resultTexts(id))
					require.Empty(t, b.waiting())
				} else {
					require.Empty(t, b.resultTexts(id))
					require.Equal(t, c.review+"\nv1\n", b.waiting())
				}
			}
		})
	}
}

// What cannot be read without loss is refused as a whole.
func TestRead_refusesABundleThatCannotBeReadCompletely(t *testing.T) {
	b := newBench(t)
	id, n := b.ana()
	good := func() (object, object) { return reported("r", n, "o"), observed("o", "4598", "marker") }
	for name, edit := range map[string]func(r, o object) any{
		"a result that is not there": func(r, o object) any {
			return bundle("transaction", patient("p", "Roe", "Ana"), r)
		},
		"a member that is not there": func(r, o object) any {
			o["hasMember"] = []any{ref("Observation/x")}
			return bundle("transaction", patient("p", "Roe", "Ana"), r, o)
		},
		"samples": func(r, o object) any {
			delete(o, "valueString")
			o["valueSampledData"] = object{"data": "1 2"}
			return bundle("transaction", patient("p", "Roe", "Ana"), r, o)
		},
		"a form that is not there": func(r, o object) any {
			r["presentedForm"] = []any{object{"contentType": "application/pdf", "url": "https://lab.example.com/marker"}}
			return bundle("transaction", patient("p", "Roe", "Ana"), r, o)
		},
		"a deletion": func(r, o object) any {
			x := bundle("transaction", patient("p", "Roe", "Ana"), r, o)
			x["entry"].([]any)[1].(object)["request"] = object{"method": "DELETE", "url": "DiagnosticReport/r"}
			return x
		},
		"a status that is none": func(r, o object) any {
			r["status"] = "marker"
			return bundle("transaction", patient("p", "Roe", "Ana"), r, o)
		},
		"another kind of bundle": func(r, o object) any { return bundle("searchset", patient("p", "Roe", "Ana"), r, o) },
		"nothing reported":       func(r, o object) any { return bundle("transaction", patient("p", "Roe", "Ana")) },
	} {
		r, o := good()
		err := b.send(edit(r, o))
		require.ErrorIs(t, err, healthlab.Invalid, name)
		require.NotContains(t, err.Error(), "marker", name)
	}
	require.Empty(t, b.resultTexts(id))
	require.Empty(t, b.waiting())
}

// A report comes in parts, is final when all tests are there, and is corrected.
func TestReport_goesFromPartialToFinalToCorrected(t *testing.T) {
	b := newBench(t)
	id, n := b.ana()
	who := patient("p", "Roe", "Ana")
	status := func() orders.LowLevel {
		o, err := b.service.Get(t.Context(), b.team, id)
		require.NoError(t, err)
		return o.LowLevel()
	}
	first := observed("a", "4598", "10")
	first["status"] = "preliminary"
	one := reported("one", n, "a")
	one["status"] = "preliminary"
	require.NoError(t, b.send(bundle("message", who, one, first)))
	require.Equal(t, "10\n", b.resultTexts(id))
	require.Equal(t, orders.PartialResults, status())
	first["status"], one["status"] = "final", "final"
	require.NoError(t, b.send(bundle("message", who, one, first)))
	require.NotEqual(t, orders.Completed, status(), "one test is to come")
	two := reported("two", n, "b")
	two["presentedForm"] = []any{object{"contentType": "application/pdf", "data": []byte("%PDF-1.7")}}
	require.NoError(t, b.send(bundle("message", who, two, observed("b", "7573", "20"))))
	require.Equal(t, "10\n20\n", b.resultTexts(id))
	require.Equal(t, orders.Completed, status())
	require.Len(t, b.files, 1)
	first["status"], one["status"], first["valueString"], one["issued"] = "corrected", "corrected", "11", "2026-03-04T10:00:00Z"
	require.NoError(t, b.send(bundle("message", who, one, first)))
	require.Equal(t, "11\n20\n", b.resultTexts(id))
	require.Equal(t, orders.Corrected, status())
	first["status"], one["status"], first["valueString"], one["issued"] = "final", "final", "10", "2026-03-03T09:00:00Z"
	require.NoError(t, b.send(bundle("message", who, one, first)))
	require.Equal(t, "11\n20\n", b.resultTexts(id), "an older version")
}

// Resources that each bundle numbers anew are not taken for versions of each other.
func TestReport_equalResourceIDsOfTwoBundlesAreNotVersions(t *testing.T) {
	b := newBench(t)
	id, n := b.ana()
	require.NoError(t, b.send(bundle("message", patient("p", "Roe", "Ana"), reported("r", n, "o"), observed("o", "4598", "10"))))
	require.NoError(t, b.send(bundle("message", patient("p", "Roe", "Ana"), reported("r", n, "o"), observed("o", "7573", "20"))))
	require.Equal(t, "10\n20\n", b.resultTexts(id))
}

func TestRead_rangeInAnotherUnitGivesNoLimits(t *testing.T) {
	quantity := func(value float64, unit, code string) object {
		return object{"value": value, "unit": unit, "code": code}
	}
	own, other := object{"low": quantity(70, "mg/dl", ""), "high": quantity(99, "MG/DL", "")}, object{"low": quantity(3.9, "mmol/L", ""), "high": quantity(5.5, "mmol/L", "")}
	for name, c := range map[string]struct {
		ranges []any
		want   string
	}{
		"the same unit":                  {[]any{own}, "normal 70 99 of 70-99"},
		"another unit":                   {[]any{other}, "unknown  of 3.9 mmol/L - 5.5 mmol/L"},
		"another unit of one limit":      {[]any{object{"low": quantity(70, "mg/dL", ""), "high": quantity(5.5, "mmol/L", "")}}, "unknown  of 70 mg/dL - 5.5 mmol/L"},
		"a low limit alone":              {[]any{object{"low": quantity(3.9, "mmol/L", "")}}, "unknown  of >=3.9 mmol/L"},
		"a high limit alone":             {[]any{object{"high": quantity(5.5, "mmol/L", "")}}, "unknown  of <=5.5 mmol/L"},
		"a unit that is not known":       {[]any{object{"low": quantity(3.9, "zorks", "")}}, "unknown  of >=3.9 zorks"},
		"no unit":                        {[]any{object{"low": object{"value": 70}, "high": object{"value": 99}}}, "normal 70 99 of 70-99"},
		"names of one code":              {[]any{object{"high": quantity(99, "milligrams per decilitre", "mg/dL")}}, "normal 99 of <=99"},
		"one name of two codes":          {[]any{object{"high": quantity(5.5, "mg/dL", "mmol/L")}}, "unknown  of <=5.5 mmol/L"},
		"the text without the unit":      {[]any{object{"low": other["low"], "high": other["high"], "text": "3.9-5.5"}}, "unknown  of 3.9 mmol/L - 5.5 mmol/L"},
		"the text with the value's unit": {[]any{object{"low": other["low"], "high": other["high"], "text": "70-99 mg/dL"}}, "normal 70 99 of 70-99 mg/dL"},
		"the text with both units":       {[]any{object{"low": other["low"], "high": other["high"], "text": "3.9-5.5 mmol/L (70-99 mg/dL)"}}, "normal 70 99 of 3.9-5.5 mmol/L (70-99 mg/dL)"},
		"the text in another unit":       {[]any{object{"text": "3.9-5.5 mmol/L"}}, "unknown  of 3.9-5.5 mmol/L"},
		"the value's unit in the second": {[]any{other, own}, "normal 70 99 of 70-99"},
		"two ranges in the value's unit": {[]any{other, own, object{"high": quantity(200, "mg/dL", "")}}, "unknown  of 3.9 mmol/L - 5.5 mmol/L"},
		"the value's unit in the first":  {[]any{own, other}, "normal 70 99 of 70-99"},
		"the words of a range":           {[]any{object{"low": other["low"], "text": "see note"}}, "unknown  of see note"},
	} {
		o := observed("o", "4598", "")
		delete(o, "valueString")
		o["valueQuantity"], o["referenceRange"] = quantity(90, "mg/dL", "mg/dL"), c.ranges
		reports, err := fhirlab.Read(encode(t, bundle("message", patient("p", "Roe", "Ana"), reported("r", "N", "o"), o)), nil)
		require.NoError(t, err)
		r := reports[0].Results[0].Result
		limits := ""
		for _, n := range []*catalogue.Number{r.MinRangeValue, r.MaxRangeValue} {
			if n != nil {
				limits = strings.TrimSpace(limits + " " + n.String())
			}
		}
		require.Equal(t, c.want, fmt.Sprintf("%s %s of %s", r.Interpretation, limits, *r.ReferenceRange), name)
	}
}

func TestRead_readsEachTypeOfObservationValue(t *testing.T) {
	for text, value := range map[string]object{
		"5.10|numeric|ug/L":     {"valueQuantity": object{"value": jsonNumber("5.10"), "unit": "ug/L"}},
		"<5|range|ug/L":         {"valueQuantity": object{"value": 5, "comparator": "<", "unit": "ug/L"}},
		"POSITIVE|coded_value|": {"valueCodeableConcept": object{"coding": []any{object{"system": "http://snomed.info/sct", "code": "10828004"}}, "text": "POSITIVE"}},
		"7|numeric|":            {"valueInteger": 7},
		"3-5|range|g":           {"valueRange": object{"low": object{"value": 3, "unit": "g"}, "high": object{"value": 5, "unit": "g"}}},
		"1:40|comment|":         {"valueRatio": object{"numerator": object{"value": 1}, "denominator": object{"value": 40}}},
		"see letter|comment|":   {"valueString": "see letter"},
		"true|comment|":         {"valueBoolean": true},
	} {
		o := observed("o", "4598", "")
		delete(o, "valueString")
		for name, v := range value {
			o[name] = v
		}
		reports, err := fhirlab.Read(encode(t, bundle("message", patient("p", "Roe", "Ana"), reported("r", "N", "o"), o)), nil)
		require.NoError(t, err)
		r := reports[0].Results[0].Result
		unit := ""
		if r.Unit != nil {
			unit = *r.Unit
		}
		require.Equal(t, text, r.Result+"|"+string(r.Type)+"|"+unit)
	}
	panel := observed("o", "4598", "")
	delete(panel, "valueString")
	panel["component"] = []any{
		object{"code": object{"text": "A"}, "valueString": "x"}, object{"code": object{"text": "A"}, "valueString": "y"},
	}
	reports, err := fhirlab.Read(encode(t, bundle("message", patient("p", "Roe", "Ana"), reported("r", "N", "o"), panel)), nil)
	require.NoError(t, err)
	require.Len(t, reports[0].Results, 2)
	require.NotEqual(t, reports[0].Results[0].Key, reports[0].Results[1].Key)
}

func TestHandler_receivesBundlesOfAuthenticatedLabs(t *testing.T) {
	b := newBench(t)
	id, n := b.ana()
	h := b.back.Handler(func(r *http.Request) error {
		if r.Header.Get("Authorization") != "Bearer lab" {
			return healthlab.Unauthenticated
		}
		return nil
	})
	post := func(method, path, key string, v any) (int, string) {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(string(encode(t, v))))
		r.Header.Set("Authorization", "Bearer "+key)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	good := bundle("transaction", patient("p", "Roe", "Ana"), reported("r", n, "o"), observed("o", "4598", "v1"))
	status, _ := post("POST", "/", "other", good)
	require.Equal(t, 401, status)
	status, body := post("POST", "/", "lab", good)
	require.Equal(t, 200, status)
	require.Equal(t, 3, strings.Count(body, "201 Created"))
	b.pull()
	require.Equal(t, "v1\n", b.resultTexts(id))
	one := reported("two", n)
	o := observed("o", "7573", "v2")
	o["subject"] = ref("#p")
	one["contained"], one["subject"], one["result"] = []any{patient("p", "Roe", "Ana"), o}, ref("#p"), []any{ref("#o")}
	status, _ = post("PUT", "/DiagnosticReport/two", "lab", one)
	require.Equal(t, 200, status)
	b.pull()
	require.Equal(t, "v1\nv2\n", b.resultTexts(id))
	status, body = post("POST", "/$process-message", "lab", object{"resourceType": "Bundle", "type": "message"})
	require.Equal(t, 422, status)
	require.Contains(t, body, "OperationOutcome")
}

func FuzzRead(f *testing.F) {
	f.Add(encode(f, bundle("message", patient("p", "Roe", "Ana"), reported("r", "N", "o"), observed("o", "4598", "v1"))))
	f.Add([]byte(`{"resourceType":"Observation","contained":[{"id":"a"}],"hasMember":[{"reference":"#a"}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		reports, err := fhirlab.Read(raw, nil)
		if err != nil {
			require.ErrorIs(t, err, healthlab.Invalid)
			return
		}
		for _, r := range reports {
			require.NotEmpty(t, r.Patients)
		}
	})
}
