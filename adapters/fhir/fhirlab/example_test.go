package fhirlab_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/healthlab-dev/healthlab/adapters/fhir/fhirlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
)

// What a laboratory reports, without storing anything.
func ExampleRead() {
	reports, err := fhirlab.Read([]byte(`{
		"resourceType": "DiagnosticReport", "id": "7", "status": "final", "subject": {"reference": "#p"},
		"basedOn": [{"identifier": {"system": "urn:healthlab:order", "value": "ABCD"}}],
		"code": {"text": "Iron status"}, "result": [{"reference": "#o"}],
		"contained": [
			{"resourceType": "Patient", "id": "p", "name": [{"family": "Roe", "given": ["Ana"]}], "birthDate": "1984-05-09"},
			{"resourceType": "Observation", "id": "o", "status": "final", "code": {"text": "Ferritin"}, "valueQuantity": {"value": 51, "unit": "ug/L"}}
		]
	}`), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range reports {
		for i := range r.Results {
			one := &r.Results[i].Result
			fmt.Println(r.Numbers, one.Name, one.Result, *one.Unit)
		}
	}
	// Output:
	// [ABCD] Ferritin 51 ug/L
}

// A laboratory over HTTP, with its results at an address of ours.
func Example() {
	lab := fhirlab.New(fhirlab.NewClient("https://lab.example.com/fhir", nil, nil), nil, &fhirlab.Options{
		LabSlug: "northlab", PatientSystem: "https://clinic.example.com/patients",
	})
	_, err := fhirlab.Read([]byte(`{"resourceType": "Bundle", "type": "message"}`), nil)
	fmt.Println(lab != nil, err)
	// Output:
	// true invalid: the body must contain a DiagnosticReport or an Observation
}

// A laboratory that keeps its reports until they are read. The host polls it every few minutes, in one process at a time, and
// keeps the instant that Poll returns beside its data; after an error it begins there again. This report names no order
// of ours, so it waits for a review; others go to their orders with the next exchange.Service.PullUpdates.
func ExampleBackend_Poll() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"resourceType": "Bundle", "type": "searchset", "entry": [
			{"resource": {"resourceType": "DiagnosticReport", "id": "7", "meta": {"lastUpdated": "2026-03-03T10:00:00Z"}, "status": "final",
				"code": {"text": "Iron status"}, "subject": {"reference": "Patient/p"}, "result": [{"reference": "Observation/o"}]}},
			{"resource": {"resourceType": "Patient", "id": "p", "name": [{"family": "Roe", "given": ["Ana"]}], "birthDate": "1984-05-09"}, "search": {"mode": "include"}},
			{"resource": {"resourceType": "Observation", "id": "o", "status": "final", "code": {"text": "Ferritin"}, "subject": {"reference": "Patient/p"},
				"valueQuantity": {"value": 51, "unit": "ug/L"}}, "search": {"mode": "include"}}]}`)
	}))
	defer server.Close()
	ctx := context.Background()
	from := fhirlab.NewClient(server.URL, nil, server.Client()) // a token in place of nil signs in
	lab := fhirlab.New(from, memory.New(nil).LabJournal(), &fhirlab.Options{LabSlug: "northlab"})

	var since time.Time // what the host has kept: nothing so far
	for range 2 {
		next, err := lab.Poll(ctx, from, since)
		if err != nil {
			fmt.Println(err) // what could be read is taken in all the same
		}
		since = next
	}
	waiting, err := lab.Review(ctx, 0, 10)
	fmt.Println(since.UTC().Format(time.RFC3339), len(waiting), err)
	// Output:
	// 2026-03-03T10:00:00Z 1 <nil>
}
