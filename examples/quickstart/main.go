// Quickstart is the program of the README: it keeps a person's glucose, answers a question
// about it, and receives the signed event of the upload. Everything is in memory.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http/httptest"
	"net/netip"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/webhook"
	"github.com/healthlab-dev/healthlab/webhook/receiver"
)

// signingSecret is the shared secret of sender and receiver. If it is left out, the service generates one.
const signingSecret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	ctx, stop := context.WithTimeout(ctx, 30*time.Second)
	defer stop()
	team := healthlab.TeamID{UUID: uuid.New()}
	store := memory.New(nil) // or stores.New over sqlite.Open or postgres.Open: the same methods

	// A receiver of events, as another program would run it.
	secret, err := webhook.ParseSecret(signingSecret)
	if err != nil {
		return err
	}
	events, err := receiver.New([]webhook.Secret{secret}, memory.NewSeen(nil), nil)
	if err != nil {
		return err
	}
	receiver.On(events, func(_ context.Context, e receiver.Event, b *healthdata.Batch) error {
		fmt.Fprintf(out, "event: %d new samples of %s's %s\n", len(b.Data), e.ClientUserID, e.Name.Resource)
		stop() // ends the dispatcher below
		return nil
	})
	server := httptest.NewServer(events)
	defer server.Close()

	dispatcher, err := newDispatcher(ctx, store, team, server.URL)
	if err != nil {
		return err
	}

	// A user, a connected source, and an upload.
	providers, err := healthdata.NewProviders([]healthdata.Provider{{Slug: "manual", Name: "Manual entry", Class: "manual",
		Category: "app", Resources: []healthdata.ProviderResource{{Resource: "glucose"}}}})
	if err != nil {
		return err
	}
	health, err := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
	if err != nil {
		return err
	}
	user, err := health.CreateUser(ctx, team, healthdata.NewUser{ClientUserID: "member-42"})
	if err != nil {
		return err
	}
	if _, err := health.Connections().Connect(ctx, team, user.ID, healthdata.NewConnection{Provider: "manual"}); err != nil {
		return err
	}
	at := healthlab.At(time.Date(2026, 3, 1, 7, 0, 0, 0, time.UTC))
	counts, err := health.IngestSamples(ctx, team, user.ID, "glucose",
		healthdata.Upload{Provider: "manual", Source: healthdata.Source{Type: "fingerprick"}},
		[]healthdata.Sample{{Timestamp: at, Unit: "mg/dL", Value: healthdata.Number(95)}})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "stored:", counts.New)

	// A question about it, by the user's own local days.
	questions, err := aggregate.New(health, nil)
	if err != nil {
		return err
	}
	answer, err := questions.Query(ctx, team, user.ID, aggregate.Ask(
		aggregate.Last(7, healthlab.Date{Year: 2026, Month: 3, Day: 2}),
		aggregate.Query{
			Select:  []aggregate.Expr{aggregate.Mean.Of(aggregate.Samples("glucose"))},
			GroupBy: []aggregate.Expr{aggregate.By(aggregate.Days(1))},
		}))
	if err != nil {
		return err
	}
	days, err := answer.Frames[0].Column("index")
	if err != nil {
		return err
	}
	means, err := answer.Frames[0].Column("mean")
	if err != nil {
		return err
	}
	for i := range days.Len() {
		fmt.Fprintf(out, "%s: %.2f mmol/L\n", days.Date(i), means.Float(i))
	}

	return dispatcher.Run(ctx) // until the event has come
}

// newDispatcher registers an endpoint of the team and returns the dispatcher of its events. In production the
// default guard refuses private addresses and plain http.
func newDispatcher(ctx context.Context, store *memory.Store, team healthlab.TeamID, url string) (*webhook.Dispatcher, error) {
	local := &webhook.Guard{Plain: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	sealer, err := healthlab.NewAESSealer("first", map[string][]byte{"first": key})
	if err != nil {
		return nil, err
	}
	types, err := webhook.NewCatalogue(healthdata.EventTypes(), webhook.EventTypes())
	if err != nil {
		return nil, err
	}
	sender := webhook.NewHTTP(&webhook.HTTPOptions{Guard: local})
	hooks, err := webhook.NewService(types, store.Webhooks(), sender, sealer, &webhook.ServiceOptions{Guard: local})
	if err != nil {
		return nil, err
	}
	if _, err := hooks.Create(ctx, team, webhook.NewEndpoint{URL: url, Secret: signingSecret}); err != nil {
		return nil, err
	}
	return webhook.NewDispatcher(types, store.Webhooks(), sender, sealer, nil)
}
