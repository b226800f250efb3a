package exchange_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// A clinic sends a test kit to a patient, and a laboratory reports what it found.
func Example() {
	ctx := context.Background()
	clock := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	now := func() time.Time { return clock }

	// What can be ordered is a file; here it is one test of one laboratory.
	cat, err := catalogue.ReadStaticCatalog(strings.NewReader(`{
		"labs":         [{"id": 1, "slug": "northlab", "name": "Northlab", "collection_methods": ["testkit"]}],
		"markers":      [{"id": 11, "lab_id": 1, "name": "Ferritin", "slug": "ferritin", "unit": "ug/L"}],
		"lab_tests":    [{"id": "7b0a3c1e-0000-4000-8000-000000000001", "name": "Iron at home", "method": "testkit",
		                  "status": "active", "lab_id": 1, "marker_ids": [11], "price": 39.50}],
		"lab_accounts": [{"lab": "northlab", "status": "active", "allowed_billing": {"client_bill": ["AZ"]}}]}`))
	check(err)
	lab := sandbox.NewLab(&sandbox.LabOptions{Now: now, Step: 24 * time.Hour})
	everybody := people.UsersFunc(func(context.Context, healthlab.TeamID, healthlab.UserID) error { return nil })
	store := memory.New(&memory.Options{UsersElsewhere: true})
	service, err := orders.New(store.Orders(), everybody, cat, &orders.Options{Environment: healthlab.Production, Background: orders.Background{Now: now}})
	check(err)
	labs, err := exchange.New(service, store.Orders(), store.Reviews(), lab, nil)
	check(err)

	team, patient := healthlab.TeamID{UUID: uuid.New()}, healthlab.UserID{UUID: uuid.New()}
	order, err := service.Place(ctx, team, orders.PlaceRequest{
		UserID:   patient,
		OrderSet: &catalogue.OrderSet{LabTestIDs: []catalogue.LabTestID{{UUID: uuid.MustParse("7b0a3c1e-0000-4000-8000-000000000001")}}},
		PatientDetails: people.PatientDetailsInput{FirstName: "Ana", LastName: "Roe", DOB: healthlab.Date{Year: 1984, Month: 5, Day: 9},
			Gender: people.Female, PhoneNumber: "+15550100", Email: "ana@example.com"},
		PatientAddress: people.PatientAddressInput{FirstLine: "7 Elm Rd", City: "Mesa", State: "AZ", Zip: "85201", Country: "US"},
	})
	check(err)

	// Ten days pass. A host runs this in the background: exchange.Service.Run.
	for range 10 {
		_, err = labs.SubmitDue(ctx)
		check(err)
		_, err = labs.PullUpdates(ctx)
		check(err)
		clock = clock.Add(24 * time.Hour)
	}

	order, err = service.Get(ctx, team, order.ID)
	check(err)
	for _, e := range order.Events {
		fmt.Println(e.CreatedAt.Format("Jan _2"), e.Status)
	}
	results, err := service.Results(ctx, team, order.ID)
	check(err)
	fmt.Println(results.Results[0].Name, "is", results.Results[0].Interpretation)

	_, err = service.Cancel(ctx, team, order.ID)
	fmt.Println(err)

	// Output:
	// Mar  2 received.testkit.ordered
	// Mar  2 received.testkit.requisition_created
	// Mar  3 collecting_sample.testkit.transit_customer
	// Mar  4 collecting_sample.testkit.out_for_delivery
	// Mar  5 collecting_sample.testkit.with_customer
	// Mar  6 collecting_sample.testkit.transit_lab
	// Mar  7 sample_with_lab.testkit.delivered_to_lab
	// Mar  8 completed.testkit.completed
	// Ferritin is normal
	// cancel order: CANCEL_NOT_ALLOWED: the order cannot be cancelled in the status completed.testkit.completed
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
