// Provider is a host with a connector of its own: ann signs in at an invented maker of scales, and the host fetches
// a month of her weights. connector.go is the connector, double.go is a test server with the provider's API, and the
// test runs the conformance suite of connectors: go run ./examples/provider
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/stores"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

func main() { run(context.Background(), os.Stdout) }

func run(ctx context.Context, out io.Writer) {
	api := httptest.NewServer(&double{tokens: map[string]bool{}})
	defer api.Close()
	secret := make([]byte, 64) // encrypts credentials and signs link tokens; a real host stores it
	must(rand.Read(secret))
	sealer := must(healthlab.NewAESSealer("1", map[string][]byte{"1": secret[:32]}))
	store := memory.New(&memory.Options{Events: stores.NoEvents}) // or stores.New over sqlite.Open or postgres.Open
	connectors := map[string]linking.ProviderConnector{Record().Slug: NewConnector(api.URL).Flows()}
	options := &healthdata.Options{Environment: healthlab.Sandbox}
	health := must(healthdata.New(store.Users(), store.Data(), must(healthdata.NewProviders([]healthdata.Provider{Record()})), options))
	links := must(linking.New(store.Linking(), health, connectors, sealer, &linking.Options{Environment: healthlab.Sandbox, SigningKeys: [][]byte{secret[32:]}}))
	refresher := must(linking.NewCredentialRefresher(store.Credentials(), health, connectors, sealer, nil))
	pulls := must(pull.New(store.Pulls(), health, refresher, connectors, nil))
	go func() { must(0, health.Deletions().Run(ctx)) }() // erases deleted users after their grace period
	go func() { must(0, pulls.Run(ctx)) }()              // fetches data from the provider

	team := healthlab.TeamID{UUID: uuid.UUID{2}} // a fixed id: data is found by it
	ann := must(health.CreateUser(ctx, team, healthdata.NewUser{ClientUserID: "ann"}))
	token := must(links.CreateToken(ctx, team, linking.NewToken{User: ann.ID})).Token // for the person's browser
	signIn := linking.PasswordSignIn{Provider: Record().Slug, Username: "ann", Password: "correct horse"}
	fmt.Fprintln(out, "signed in:", must(links.SignIn(ctx, token, signIn)).State)
	for must(pulls.Progress(ctx, team, ann.ID, Record().Slug)).Done == 0 { // until all data is fetched
		time.Sleep(50 * time.Millisecond)
	}
	weights := must(health.AllSamples(ctx, team, ann.ID, healthdata.SampleQuery{Resource: "weight"}))
	fmt.Fprintln(out, len(weights), "weights since", healthlab.DateOf(weights[0].Timestamp.Time))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
