package ehr_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/aggregate/continuous/ehr"
)

// A team names a FHIR server. Its token is kept sealed.
func Example() {
	ctx := context.Background()
	store := memory.New(&memory.Options{Pipelines: true})
	sealer, err := healthlab.NewAESSealer("2026", map[string][]byte{"2026": bytes.Repeat([]byte{1}, 32)})
	if err != nil {
		fmt.Println(err)
		return
	}
	service, err := ehr.New(store.Pipelines(), sealer, &ehr.Options{Resources: []string{"heartrate", "weight"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	team := healthlab.TeamID{UUID: uuid.UUID{1}}
	p, err := service.Create(ctx, team, ehr.NewPipeline{Title: "clinic", BaseURL: "https://ehr.example.com/fhir", ClientID: "healthlab"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Auth, p.Status, p.Resources)
	// Output: backend_services active [heartrate weight]
}
