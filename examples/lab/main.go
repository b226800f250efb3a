// Lab is a host with a laboratory of its own: it orders an iron panel from an invented laboratory with a JSON API, and
// prints the results. backend.go translates between package orders and the laboratory, menu.json lists the tests,
// double.go is a test server in place of the laboratory, and the test runs the conformance suite: go run ./examples/lab
package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/stores"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/people"
)

//go:embed menu.json
var menu []byte

func main() { run(context.Background(), os.Stdout) }

func run(ctx context.Context, out io.Writer) {
	lab := newDouble()
	api := httptest.NewServer(lab)                                                            // the laboratory's API
	store := memory.New(&memory.Options{Events: stores.NoEvents, UsersElsewhere: true})       // or stores.New over sqlite.Open
	hasUser := func(context.Context, healthlab.TeamID, healthlab.UserID) error { return nil } // asks the host's users
	service := must(orders.New(store.Orders(), people.UsersFunc(hasUser), must(catalogue.ReadStaticCatalog(bytes.NewReader(menu))), &orders.Options{Environment: healthlab.Production}))
	labs := must(exchange.New(service, store.Orders(), store.Reviews(), NewBackend(api.URL), nil))
	go func() { must(0, labs.Run(ctx)) }() // sends orders to the laboratory, and reads its reports
	order := must(service.Place(ctx, healthlab.TeamID{UUID: uuid.UUID{2}}, orders.PlaceRequest{
		UserID:         healthlab.UserID{UUID: uuid.UUID{3}},
		OrderSet:       &catalogue.OrderSet{LabTestIDs: []catalogue.LabTestID{{UUID: uuid.MustParse("7b0a3c1e-0000-4000-8000-000000000001")}}},
		PatientDetails: people.PatientDetailsInput{FirstName: "Ana", LastName: "Roe", Gender: people.Female, PhoneNumber: "+15550100", Email: "ana@example.com", DOB: healthlab.Date{Year: 1984, Month: 5, Day: 9}},
		PatientAddress: people.PatientAddressInput{FirstLine: "7 Elm Rd", City: "Mesa", State: "AZ", Zip: "85201", Country: "US"},
	}))
	for ; order.LastEvent.Status.LowLevel() != orders.Completed; order = must(service.Get(ctx, order.TeamID, order.ID)) {
		lab.Work() // simulates the laboratory's work; a real host waits
		time.Sleep(50 * time.Millisecond)
	}
	for _, r := range must(service.Results(ctx, order.TeamID, order.ID)).Results {
		fmt.Fprintf(out, "%s %s %s: %s\n", r.Name, r.Result, *r.Unit, r.Interpretation)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
