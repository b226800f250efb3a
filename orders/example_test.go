package orders_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// A clinic orders a test kit for a patient, finds the order, and cancels it.
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
	everybody := people.UsersFunc(func(context.Context, healthlab.TeamID, healthlab.UserID) error { return nil })
	store := memory.New(&memory.Options{UsersElsewhere: true})
	service, err := orders.New(store.Orders(), everybody, cat, &orders.Options{Environment: healthlab.Production, Background: orders.Background{Now: now}})
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

	page, err := service.List(ctx, orders.Query{Team: team, Status: []orders.LowLevel{orders.Ordered}})
	check(err)
	fmt.Println(page.Total, "order:", page.Orders[0].LastEvent.Status)

	order, err = service.Cancel(ctx, team, order.ID)
	check(err)
	_, err = service.Cancel(ctx, team, order.ID)
	fmt.Println(order.Status, "and then", err)

	// Output:
	// 1 order: received.testkit.ordered
	// cancelled and then cancel order: CANCEL_NOT_ALLOWED: the order cannot be cancelled in the status cancelled.testkit.cancelled
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// What may follow what is a table that a program can ask.
func ExampleNext() {
	bound := orders.Facts{Initial: true}
	to, ok := orders.Next(catalogue.Testkit, orders.TransitLab, orders.SampleReceived, bound)
	fmt.Println(to, ok)
	_, ok = orders.Next(catalogue.Testkit, orders.WithCustomer, orders.CancelRequested, bound)
	fmt.Println(ok)
	// Output:
	// delivered_to_lab true
	// false
}
