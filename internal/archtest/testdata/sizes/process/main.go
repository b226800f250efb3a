// Process keeps health data of a team and asks questions about it, in its own process.
package main

import (
	"context"
	"fmt"
	"log"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory/memstore"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	providers, err := healthdata.ReadProviders(strings.NewReader(`[{"slug": "manual", "name": "Manual", "source_type": "app", "class": "manual"}]`))
	if err != nil {
		return err
	}
	engine, err := memstore.New(slices.Concat(healthdata.UserTables(), healthdata.DataTables(false)), nil)
	if err != nil {
		return err
	}
	health, err := healthdata.New(healthdata.NewUsers(engine, nil), healthdata.NewData(engine, nil), providers, &healthdata.Options{Environment: healthlab.Sandbox})
	if err != nil {
		return err
	}
	team := healthlab.TeamID{UUID: uuid.New()}
	user, err := health.CreateUser(ctx, team, healthdata.NewUser{ClientUserID: "member-42"})
	if err != nil {
		return err
	}
	counts, err := health.IngestSamples(ctx, team, user.ID, "heartrate", healthdata.Upload{Provider: "manual"}, nil)
	if err != nil {
		return err
	}
	questions, err := aggregate.New(health, nil)
	if err != nil {
		return err
	}
	request, err := questions.Decode([]byte(`{"timeframe": {"type": "relative", "past": {"unit": "day", "value": 7}}, "queries": [{"select": [{"arg": {"index": "sleep"}, "func": "count"}]}]}`), false)
	if err != nil {
		return err
	}
	result, err := questions.Query(ctx, team, user.ID, &request)
	fmt.Println(counts, result, err)
	return err
}
