package people_test

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// A user gets demographics, and an insurance record with a payor of the registry.
func Example() {
	registry, err := people.NewRegistry(people.RegistryContents{
		Payors: []people.RegistryPayor{{Payor: people.Payor{PayorCode: "P1", Name: "Payor One"}}},
	})
	if err != nil {
		panic(err)
	}
	users := people.UsersFunc(func(context.Context, healthlab.TeamID, healthlab.UserID) error { return nil })
	service := people.New(memory.New(&memory.Options{UsersElsewhere: true}).Persons(), users, &people.Options{Registry: registry})

	ctx, team, user := context.Background(), healthlab.TeamID{UUID: uuid.New()}, healthlab.UserID{UUID: uuid.New()}
	born := healthlab.Date{Year: 1990, Month: 5, Day: 17}
	home := people.AddressInput{FirstLine: "1 Main St", City: "Phoenix", State: "AZ", Zip: "85004"}
	if _, err := service.SetUserInfo(ctx, team, user, people.UserInfoRequest{
		FirstName: "Ana", LastName: "Roe", Email: "ana@example.com", PhoneNumber: "+16025550100", Gender: "female", DOB: born,
		Address: people.UserAddressInput{AddressInput: home},
	}); err != nil {
		panic(err)
	}
	record, err := service.AddInsurance(ctx, team, user, people.InsuranceRequest{
		PayorCode: "P1", MemberID: "M-1", Relationship: people.RelationSelf,
		Insured: people.PersonDetailsInput{FirstName: "Ana", LastName: "Roe", Gender: people.Female, DOB: born,
			Email: "ana@example.com", PhoneNumber: "+16025550100", Address: home},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(record.Company.Name, record.IsPrimary)
	fmt.Println(record)
	// Output:
	// Payor One true
	// [redacted]
}
