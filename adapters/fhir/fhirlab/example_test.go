package fhirlab_test

import (
	"fmt"

	"github.com/healthlab-dev/healthlab/adapters/fhir/fhirlab"
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
	// true invalid: must have a DiagnosticReport or an Observation
}
