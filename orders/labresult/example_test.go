package labresult_test

import (
	"fmt"

	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

func Example() {
	code, span := "2345-7", "70-99"
	ordered := catalogue.LabTest{Markers: []catalogue.Marker{{ID: 1, Name: "Glucose"}}}
	expected := map[int][]catalogue.ExpectedResult{1: {{Name: "Glucose", Slug: "glucose", LOINC: &catalogue.LOINC{Code: code}}}}
	report := labresult.Complete(labresult.Report{
		Results: []labresult.Result{{Name: "GLUCOSE", LOINC: &code, Result: "105", ReferenceRange: &span}},
	}, ordered, expected, true)

	r := report.Results[0]
	fmt.Println(r.Slug, r.Type, r.Interpretation, *r.IsAboveMaxRange, r.SourceMarkers[0].Name)
	// Output: glucose numeric abnormal true Glucose
}
