package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/webhook"
)

// A sender signs, a receiver verifies.
func Example() {
	secret, _ := webhook.ParseSecret("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
	body := []byte(`{"event_type":"daily.data.steps.created","data":{}}`)
	sent := time.Unix(1767225600, 0)

	headers := http.Header{}
	webhook.SetSignature(headers, "msg_0001", sent, body, secret)
	fmt.Println(headers.Get("webhook-signature"))

	fmt.Println(webhook.Verify(body, headers, sent.Add(2*time.Second), secret))
	fmt.Println(webhook.Verify(body, headers, sent.Add(time.Hour), secret))
	// Output:
	// v1,k0cepTrWoPKg6czQZYcDFrgNRZuOBT8/4QyxrwaHuNA=
	// <nil>
	// webhook message refused: timestamp_too_old
}

// A team registers an endpoint; something happens; the dispatcher tells them.
func ExampleDispatcher() {
	ctx, cancel := context.WithCancel(context.Background())
	types, _ := webhook.NewCatalogue([]healthlab.EventType{{Name: "labtest.order.updated", Mode: healthlab.Ordered}}, webhook.EventTypes())
	sealer, _ := healthlab.NewAESSealer("2026", map[string][]byte{"2026": make([]byte, 32)})
	store := memory.New(nil)
	out := printer{done: cancel} // a host uses webhook.NewHTTP(nil)

	service, _ := webhook.NewService(types, store.Webhooks(), out, sealer, nil)
	_, _ = service.Create(ctx, team, webhook.NewEndpoint{URL: "https://receiver.example.com/in"})

	_ = store.Outbox().Append(ctx, []healthlab.Event{{
		ID: uuid.MustParse("0190a000-0000-7000-8000-000000000002"), Type: "labtest.order.updated", Team: team,
		Key: "order 17", Data: json.RawMessage(`{"status":"completed"}`),
	}})

	dispatcher, _ := webhook.NewDispatcher(types, store.Webhooks(), out, sealer, nil)
	fmt.Println(dispatcher.Run(ctx))
	// Output:
	// https://receiver.example.com/in: {"event_type":"labtest.order.updated","data":{"status":"completed"},"team_id":"0190a000-0000-7000-8000-000000000001","user_id":null,"client_user_id":null}
	// <nil>
}

// printer is a Notifier that prints.
type printer struct{ done func() }

func (p printer) Notify(_ context.Context, n webhook.Notification) webhook.Result {
	fmt.Printf("%s: %s\n", n.URL, n.Body)
	p.done()
	return webhook.Result{Class: webhook.ClassOK, Status: 204}
}
