package stores_test

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory/memstore"
	"github.com/healthlab-dev/healthlab/adapters/stores"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Users in an engine. A durable program takes the engine of adapters/sqlite or adapters/postgres.
func Example() {
	engine, err := memstore.New(stores.Tables(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	all := stores.New(engine, nil)
	providers, err := healthdata.NewProviders([]healthdata.Provider{{Slug: "manual", Name: "Manual", Category: "app", Class: "manual"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	health, err := healthdata.New(all.Users(), all.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
	if err != nil {
		fmt.Println(err)
		return
	}
	team := healthlab.TeamID{UUID: uuid.New()}
	user, err := health.CreateUser(context.Background(), team, healthdata.NewUser{ClientUserID: "member-42"})
	fmt.Println(user.ClientUserID, err)
	// Output: member-42 <nil>
}
