// Lab is a laboratory of your own: it orders an iron panel from an invented laboratory with a
// JSON API, and prints the status of the order until its results are there. backend.go
// translates between package orders and the laboratory, double.go stands for the laboratory,
// and the test runs the conformance suite of laboratories.
//
//	go run ./examples/lab
//
// A whole service takes NewBackend(url) as service.Config.Laboratory.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// menu is what can be ordered: a file in a real deployment.
const menu = `{
	"labs":         [{"id": 1, "slug": "tidelab", "name": "Tidelab", "collection_methods": ["walk_in_test"]}],
	"markers":      [{"id": 11, "lab_id": 1, "name": "Ferritin", "slug": "ferritin", "provider_id": "FER", "unit": "ug/L"},
	                 {"id": 12, "lab_id": 1, "name": "Iron", "slug": "iron", "provider_id": "IRON", "unit": "ug/dL"}],
	"lab_tests":    [{"id": "7b0a3c1e-0000-4000-8000-000000000001", "name": "Iron panel", "method": "walk_in_test",
	                  "status": "active", "lab_id": 1, "marker_ids": [11, 12], "price": 39.50}],
	"lab_accounts": [{"lab": "tidelab", "status": "active", "allowed_billing": {"client_bill": ["AZ"]}}]}`

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	lab := newDouble()
	api := httptest.NewServer(lab)
	defer api.Close()
	source, err := catalogue.ReadStaticCatalog(strings.NewReader(menu))
	if err != nil {
		return err
	}
	store := memory.New(nil)
	providers, err := healthdata.NewProviders(nil)
	if err != nil {
		return err
	}
	users, err := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Production})
	if err != nil {
		return err
	}
	team := healthlab.TeamID{UUID: uuid.New()}
	ana, err := users.CreateUser(ctx, team, healthdata.NewUser{ClientUserID: "ana"})
	if err != nil {
		return err
	}
	service, err := orders.New(store.Orders(), people.UsersFunc(func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error {
		_, err := users.User(ctx, team, user)
		return err
	}), source, NewBackend(api.URL), &orders.Options{Environment: healthlab.Production, Reviews: store.Reviews()})
	if err != nil {
		return err
	}
	order, err := service.Place(ctx, team, orders.PlaceRequest{
		UserID:   ana.ID,
		OrderSet: &catalogue.OrderSet{LabTestIDs: []catalogue.LabTestID{{UUID: uuid.MustParse("7b0a3c1e-0000-4000-8000-000000000001")}}},
		PatientDetails: people.PatientDetailsInput{FirstName: "Ana", LastName: "Roe", DOB: healthlab.Date{Year: 1984, Month: 5, Day: 9},
			Gender: people.Female, PhoneNumber: "+15550100", Email: "ana@example.com"},
		PatientAddress: people.PatientAddressInput{FirstLine: "7 Elm Rd", City: "Mesa", State: "AZ", Zip: "85201", Country: "US"},
	})
	if err != nil {
		return err
	}
	// A service does this in the background: service.Run(ctx).
	if _, err := service.SubmitDue(ctx); err != nil {
		return err
	}
	for range 2 {
		lab.Work()
		if _, err := service.PullUpdates(ctx); err != nil {
			return err
		}
		if order, err = service.Get(ctx, team, order.ID); err != nil {
			return err
		}
		fmt.Fprintln(out, "the order is", order.LastEvent.Status)
	}
	results, err := service.Results(ctx, team, order.ID)
	if err != nil {
		return err
	}
	for _, r := range results.Results {
		fmt.Fprintf(out, "%s %s %s: %s\n", r.Name, r.Result, *r.Unit, r.Interpretation)
	}
	return nil
}
