package simulation_test

import (
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/simulation"
)

func Example() {
	code := "2951-2"
	o := orders.Order{LabTest: catalogue.LabTest{Markers: []catalogue.Marker{{ID: 1, Name: "Sodium"}}}}
	expected := map[int][]catalogue.ExpectedResult{1: {{Name: "Sodium", LOINC: &catalogue.LOINC{Code: code}}}}
	flags := orders.SimulationFlags{Interpretation: labresult.Abnormal}

	report := simulation.Results(&o, expected, flags, orders.FinalResult, time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC))
	r := report.Results[0]
	fmt.Println(r.Name, *r.Unit, *r.ReferenceRange, *r.IsAboveMaxRange)
	// Output: Sodium mmol/L 136-145 true
}

// Each case of test runs needs orders in certain roles.
func ExampleMatchTestCases() {
	for _, c := range simulation.MatchTestCases() {
		if c.Case == exchange.MatchSeveralPeople {
			fmt.Println(c.Case, c.OrderRoles)
		}
	}
	// Output: multiple_demo_match [first_patient second_patient]
}
