package mcp_test

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/operations/mcp"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// An assistant in the same process asks for the mean of a day.
func Example() {
	ctx := context.Background()
	store := memory.New(nil)
	providers, _ := healthdata.NewProviders([]healthdata.Provider{{
		Slug: "manual", Name: "Manual", Category: "app", Class: "manual", Resources: []healthdata.ProviderResource{{Resource: "glucose"}},
	}})
	health, _ := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
	questions, _ := aggregate.New(health, nil)
	team := healthlab.TeamID{UUID: uuid.New()}
	ann, _ := health.CreateUser(ctx, team, healthdata.NewUser{ClientUserID: "ann"})
	_, _ = health.Connections().Connect(ctx, team, ann.ID, healthdata.NewConnection{Provider: "manual"})
	_, _ = health.IngestSamples(ctx, team, ann.ID, "glucose", healthdata.Upload{Provider: "manual", Source: healthdata.Source{Type: healthdata.SourceApp}}, []healthdata.Sample{
		{Timestamp: healthlab.At(time.Date(2026, 3, 2, 7, 0, 0, 0, time.UTC)), Unit: "mg/dL", Value: healthdata.Number(90)},
		{Timestamp: healthlab.At(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)), Unit: "mg/dL", Value: healthdata.Number(126)},
	})

	assistant, _ := mcp.New(mcp.Services{Health: health, Aggregate: questions}, mcp.Options{})
	theirs, ours := sdk.NewInMemoryTransports()
	go func() { _ = assistant.Run(ctx, mcp.Caller{Team: team}, ours) }()
	client, _ := sdk.NewClient(&sdk.Implementation{Name: "example"}, nil).Connect(ctx, theirs, nil)
	got, _ := client.CallTool(ctx, &sdk.CallToolParams{Name: "ask", Arguments: mcp.Question{
		User: "ann", Measure: "glucose", Function: "mean", From: "2026-03-02", To: "2026-03-02",
	}})
	answer := got.StructuredContent.(map[string]any)
	fmt.Printf("%.2f %s\n", answer["values"].([]any)[0].(map[string]any)["value"], answer["unit"])
	// Output:
	// 5.99 mmol/L
}
