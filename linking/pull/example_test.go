package pull_test

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// nightly is a provider with one reading a day for each user: 52 beats a minute at midnight.
type nightly struct{}

func (nightly) Pull(_ context.Context, r linking.PullRequest) (linking.PullPage, error) {
	beats := linking.PullItem{Source: healthdata.Source{Type: healthdata.SourceWatch}}
	for day := r.From.Truncate(24 * time.Hour); day.Before(r.To); day = day.AddDate(0, 0, 1) {
		beats.Samples = append(beats.Samples, healthdata.Sample{Timestamp: healthlab.At(day), Unit: "bpm", Value: healthdata.Number(52)})
	}
	return linking.PullPage{Items: []linking.PullItem{beats}}, nil
}

// The history of a demo connection is fetched, which is thirty days. A host runs Service.Run in place of the
// loop over Step.
func Example() {
	ctx := context.Background()
	team := healthlab.TeamID{UUID: uuid.New()}
	clock := func() time.Time { return time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC) }
	store := memory.New(&memory.Options{Now: clock})
	providers, _ := healthdata.NewProviders([]healthdata.Provider{{
		Slug: "acme_band", Name: "Acme Band", AuthType: "oauth", Category: "device", Class: "cloud", Demo: true,
		Resources: []healthdata.ProviderResource{{Resource: "heartrate"}},
		Backfill:  healthdata.Backfill{DefaultDays: 10, Mode: "pull"},
	}})
	health, _ := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox, Now: clock})
	sealer, _ := healthlab.NewAESSealer("2026", map[string][]byte{"2026": make([]byte, 32)}) // 32 random bytes
	refresher, _ := linking.NewCredentialRefresher(store.Credentials(), health, nil, sealer, &linking.CredentialRefresherOptions{Now: clock})
	pulls, _ := pull.New(store.Pulls(), health, refresher, nil, &pull.Options{Demo: nightly{}, Now: clock})

	ann, _ := health.CreateUser(ctx, team, healthdata.NewUser{ClientUserID: "patient-17"})
	_, _ = health.Connections().ConnectLinked(ctx, team, ann.ID, healthdata.NewConnection{Provider: "acme_band", Demo: true})
	for n := 1; n > 0; {
		n, _ = pulls.Step(ctx)
	}

	tasks, _ := store.Pulls().Tasks(ctx, team, ann.ID)
	fmt.Println(tasks[0].Kind, tasks[0].Status, tasks[0].DaysWithData())
	// Output: history success 31
}
