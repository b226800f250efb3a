package exportfiles_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/exportfiles"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// The files about a user of a service that has health data alone.
func Example() {
	ctx, team, store := context.Background(), healthlab.TeamID{UUID: uuid.New()}, memory.New(nil)
	providers, _ := healthdata.NewProviders(nil)
	health, err := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
	if err != nil {
		fmt.Println(err)
		return
	}
	user, err := health.CreateUser(ctx, team, healthdata.NewUser{ClientUserID: "one"})
	if err != nil {
		fmt.Println(err)
		return
	}
	sources := exportfiles.Sources(exportfiles.Services{Health: health})
	names, err := sources["person"].Files(ctx, team, user.ID)
	fmt.Println(names, err)
	var file strings.Builder
	err = sources["person"].Write(ctx, team, user.ID, "user.json", &file)
	fmt.Println(strings.Contains(file.String(), `"client_user_id": "one"`), err)
	// Output:
	// [user.json connections.json consents.json devices.json] <nil>
	// true <nil>
}
