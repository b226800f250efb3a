package lake_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/operations/lake"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// A team's steps are exported. A service calls Run, with a folder or a bucket of adapters/operations/blob.
func Example() {
	ctx := context.Background()
	providers, _ := healthdata.NewProviders([]healthdata.Provider{{Slug: "manual", Name: "Manual", Category: "app", Class: "manual"}})
	store := memory.New(nil)
	health, _ := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
	team := healthlab.TeamID{UUID: uuid.New()}
	user, _ := health.CreateUser(ctx, team, healthdata.NewUser{ClientUserID: "member-42"})
	_, _ = health.Connections().Connect(ctx, team, user.ID, healthdata.NewConnection{Provider: "manual"})
	at, end := healthlab.At(time.Date(2026, 3, 1, 7, 0, 0, 0, time.UTC)), healthlab.At(time.Date(2026, 3, 1, 7, 5, 0, 0, time.UTC))
	_, _ = health.IngestSamples(ctx, team, user.ID, "steps", healthdata.Upload{Provider: "manual", Source: healthdata.Source{Type: healthdata.SourceWatch}},
		[]healthdata.Sample{{Timestamp: at, End: &end, Unit: "count", Value: healthdata.Number(431)}})

	teams := func(context.Context) ([]healthlab.TeamID, error) { return []healthlab.TeamID{team}, nil }
	exporter, err := lake.New(newPlace(), health, teams, bytes.Repeat([]byte{1}, 32), &lake.Options{Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		fmt.Println(err)
		return
	}
	manifest, err := exporter.Export(ctx, team)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range manifest.Files {
		fmt.Println(f.Resource, f.Month, f.Rows)
	}
	// Output:
	// steps 2026-03 1
}
