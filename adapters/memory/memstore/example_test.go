package memstore_test

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory/memstore"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// A program that keeps users alone has their tables alone.
func Example() {
	engine, err := memstore.New(healthdata.UserTables(), nil)
	if err != nil {
		panic(err)
	}
	users := healthdata.NewUsers(engine, nil)
	team := healthlab.TeamID{UUID: uuid.MustParse("0d4b1f5e-0000-4000-8000-000000000001")}
	ann := healthdata.User{ID: healthlab.UserID{UUID: uuid.MustParse("0d4b1f5e-0000-4000-8000-000000000002")}, Team: team, ClientUserID: "ann"}
	fmt.Println(users.Insert(context.Background(), ann, 0))
	got, err := users.Get(context.Background(), team, ann.ID)
	fmt.Println(got.ClientUserID, err)
	// Output:
	// <nil>
	// ann <nil>
}
