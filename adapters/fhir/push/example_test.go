package push_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/fhir"
	"github.com/healthlab-dev/healthlab/adapters/fhir/push"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/continuous/ehr"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// A team pushes the weights of its people to its FHIR server. Run does in the background what Claim and Do do here.
func Example() {
	if err := example(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 2 resources pushed, 0 refused
}

func example(ctx context.Context) error {
	clinic := httptest.NewServer(&ehrServer{}) // takes transactions, as FHIR says
	defer clinic.Close()

	store := memory.New(&memory.Options{Pipelines: true})
	providers, err := healthdata.NewProviders([]healthdata.Provider{{
		Slug: "scale", Name: "Scale", Category: "device", Class: "manual", Resources: []healthdata.ProviderResource{{Resource: "weight"}},
	}})
	if err != nil {
		return err
	}
	health, err := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
	if err != nil {
		return err
	}
	questions, err := aggregate.New(health, nil)
	if err != nil {
		return err
	}
	sealer, err := healthlab.NewAESSealer("2026", map[string][]byte{"2026": bytes.Repeat([]byte{1}, 32)})
	if err != nil {
		return err
	}
	pipelines, err := ehr.New(store.Pipelines(), sealer, &ehr.Options{Resources: fhir.Resources()})
	if err != nil {
		return err
	}
	reader, err := fhir.NewReader(fhir.Config{URL: "https://api.example.com/fhir/r4", Health: health, Aggregate: questions})
	if err != nil {
		return err
	}
	pusher, err := push.New(pipelines, reader, &push.Options{Client: http.DefaultClient}) // the default reaches public addresses alone
	if err != nil {
		return err
	}

	team := healthlab.TeamID{UUID: uuid.UUID{1}}
	robin, err := health.CreateUser(ctx, team, healthdata.NewUser{ClientUserID: "robin"})
	if err != nil {
		return err
	}
	if _, err := health.Connections().ConnectLinked(ctx, team, robin.ID, healthdata.NewConnection{Provider: "scale"}); err != nil {
		return err
	}
	at := healthlab.At(time.Now().AddDate(0, 0, -3))
	up := healthdata.Upload{Provider: "scale", Stage: healthdata.StageDaily, Source: healthdata.Source{Type: "scale"}}
	if _, err := health.IngestSamples(ctx, team, robin.ID, "weight", up, []healthdata.Sample{{Timestamp: at, Unit: "kg", Value: &healthdata.Value{Number: 71}}}); err != nil {
		return err
	}
	p, err := pipelines.Create(ctx, team, ehr.NewPipeline{Title: "clinic", BaseURL: clinic.URL, Token: strings.Repeat("t", 20)})
	if err != nil {
		return err
	}
	people, err := pusher.Claim(ctx, 10)
	if err != nil {
		return err
	}
	for _, person := range people {
		if err := pusher.Do(ctx, person); err != nil {
			return err
		}
	}
	st, err := pipelines.State(ctx, team, p.ID)
	if err != nil {
		return err
	}
	fmt.Printf("%d resources pushed, %d refused\n", st.Pushed, st.DeadLetters)
	return nil
}
