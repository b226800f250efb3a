package visits_test

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
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/orders/visits"
)

// A phlebotomist comes to a patient: a free time is found and booked, and then cancelled.
func Example() {
	ctx := context.Background()
	now := func() time.Time { return time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC) }
	cat, err := catalogue.ReadStaticCatalog(strings.NewReader(`{
		"labs":         [{"id": 1, "slug": "northlab", "name": "Northlab", "collection_methods": ["at_home_phlebotomy"]}],
		"markers":      [{"id": 11, "lab_id": 1, "name": "Ferritin", "slug": "ferritin", "unit": "ug/L"}],
		"lab_tests":    [{"id": "7b0a3c1e-0000-4000-8000-000000000001", "name": "Iron", "method": "at_home_phlebotomy",
		                  "status": "active", "lab_id": 1, "marker_ids": [11], "price": 39.50}],
		"lab_accounts": [{"lab": "northlab", "status": "active", "allowed_billing": {"client_bill": ["AZ"]}}]}`))
	check(err)
	everybody := people.UsersFunc(func(context.Context, healthlab.TeamID, healthlab.UserID) error { return nil })
	store := memory.New(&memory.Options{UsersElsewhere: true})
	service, err := orders.New(store.Orders(), everybody, cat, &orders.Options{
		Environment: healthlab.Production, Background: orders.Background{Now: now},
		Settings: func(context.Context, healthlab.TeamID) (orders.Settings, error) {
			return orders.Settings{PreRequisitionBooking: true}, nil // the laboratory has not accepted the order yet
		},
	})
	check(err)
	keys, err := healthlab.NewAESSealer("2026", map[string][]byte{"2026": make([]byte, 32)})
	check(err)
	provider := sandbox.NewLab(&sandbox.LabOptions{Now: now})
	booking, err := visits.New(service, store.Orders(), &visits.Options{Slots: provider, Bookings: provider, BookingKeys: keys})
	check(err)

	team := healthlab.TeamID{UUID: uuid.New()}
	order, err := service.Place(ctx, team, orders.PlaceRequest{
		UserID:   healthlab.UserID{UUID: uuid.New()},
		OrderSet: &catalogue.OrderSet{LabTestIDs: []catalogue.LabTestID{{UUID: uuid.MustParse("7b0a3c1e-0000-4000-8000-000000000001")}}},
		PatientDetails: people.PatientDetailsInput{FirstName: "Ana", LastName: "Roe", DOB: healthlab.Date{Year: 1984, Month: 5, Day: 9},
			Gender: people.Female, PhoneNumber: "+15550100", Email: "ana@example.com"},
		PatientAddress: people.PatientAddressInput{FirstLine: "100 Example Avenue", City: "Phoenix", State: "AZ", Zip: "85004", Country: "US"},
	})
	check(err)

	free, err := booking.Places().HomeSlots(ctx, team, nil, appointment.AddressInput{FirstLine: "100 Example Avenue", City: "Phoenix", State: "AZ", ZipCode: "85004"})
	check(err)
	first := free.Slots[0].Slots[0]
	visit, err := booking.Book(ctx, team, order.ID, appointment.Phlebotomy, visits.BookRequest{BookingKey: *first.BookingKey})
	check(err)
	fmt.Println(visit.Status, visit.StartAt.Equal(first.Start.Time))

	reason := booking.CancellationReasons(appointment.Phlebotomy)[0]
	visit, err = booking.Cancel(ctx, team, order.ID, appointment.Phlebotomy, reason.ID, nil)
	check(err)
	fmt.Println(visit.Status)

	// Output:
	// reserved true
	// cancelled
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
