package healthdata_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// A team keeps a user's steps: they come in, come in again, change, and are read.
func Example() {
	ctx := context.Background()
	providers, _ := healthdata.ReadProviders(strings.NewReader(`[{"slug": "manual", "name": "Manual",
		"source_type": "app", "class": "manual", "resources": [{"resource": "steps"}]}]`))
	store := memory.New(nil)
	health, _ := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})

	team := healthlab.TeamID{UUID: uuid.New()}
	user, _ := health.CreateUser(ctx, team, healthdata.NewUser{ClientUserID: "member-42"})
	_, _ = health.Connections().Connect(ctx, team, user.ID, healthdata.NewConnection{Provider: "manual"})

	start, _ := healthlab.ParseTime("2026-03-01T07:00:00+01:00")
	end, _ := healthlab.ParseTime("2026-03-01T08:00:00+01:00")
	hour := func(steps float64) []healthdata.Sample {
		return []healthdata.Sample{{Timestamp: start, End: &end, Unit: "count", Value: healthdata.Number(steps)}}
	}
	upload := healthdata.Upload{Provider: "manual", Source: healthdata.Source{Type: healthdata.SourceWatch}}
	for _, steps := range []float64{431, 431, 780} {
		counts, _ := health.IngestSamples(ctx, team, user.ID, "steps", upload, hour(steps))
		fmt.Printf("new %d, changed %d, the same %d\n", counts.New, counts.Changed, counts.Same)
	}

	page, _ := health.Samples(ctx, team, user.ID, healthdata.SampleQuery{Resource: "steps"})
	for _, group := range page.Groups {
		for s := range group.All() {
			fmt.Printf("%s, by %s: %v %s\n", s.Timestamp, group.Source.Type, s.Value.Number, s.Unit)
		}
	}
	// Output:
	// new 1, changed 0, the same 0
	// new 0, changed 0, the same 1
	// new 0, changed 1, the same 0
	// 2026-03-01T06:00:00+00:00, by watch: 780 count
}
