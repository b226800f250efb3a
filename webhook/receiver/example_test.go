package receiver_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/webhook"
	"github.com/healthlab-dev/healthlab/webhook/receiver"
)

// A coaching app wants to know how its people slept, and when a lab order moves.
func Example() {
	secret, _ := webhook.ParseSecret("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
	r, _ := receiver.New([]webhook.Secret{secret}, memory.NewSeen(nil), nil)

	receiver.On(r, func(_ context.Context, e receiver.Event, s *healthdata.Sleep) error {
		if s.Total == nil {
			return nil // the source does not say it
		}
		fmt.Printf("%s slept %s, says %s\n", e.ClientUserID, time.Duration(*s.Total)*time.Second, s.Source.Provider)
		return nil
	})
	receiver.On(r, func(_ context.Context, e receiver.Event, o *orders.Order) error {
		fmt.Printf("the order of %s is %s\n", e.ClientUserID, o.LastEvent.Status.LowLevel())
		return nil
	})
	// In a program: http.Handle("/events", r). Here a night arrives, then arrives once
	// more, then is corrected; and the first version comes late for a second time.
	night := `"id":"6f1c0b52-0000-4000-8000-000000000001","source":{"slug":"acme_ring"},"total":`
	first := night + `25200,"updated_at":"2026-03-01T07:00:00+00:00"`
	corrected := night + `27000,"updated_at":"2026-03-01T08:30:00+00:00"`
	order := `"id":"0190a000-0000-7000-8000-000000000005","last_event":{"id":2,"status":"received.testkit.requisition_created"}`
	for _, m := range []struct{ id, eventType, data string }{
		{"msg_0001", "daily.data.sleep.created", first},
		{"msg_0001", "daily.data.sleep.created", first},
		{"msg_0002", "daily.data.sleep.created", corrected},
		{"msg_0003", "daily.data.sleep.created", first},
		{"msg_0004", "labtest.order.updated", order},
		{"msg_0005", "garden.rose.opened", `"petals":12`},
	} {
		body := []byte(`{"event_type":"` + m.eventType + `","data":{` + m.data + `},` +
			`"team_id":"0190a000-0000-7000-8000-000000000001","user_id":"6f1c0b52-5e0c-4b1b-9d53-0e6a7f5c1a01","client_user_id":"patient-77"}`)
		request := httptest.NewRequest(http.MethodPost, "/events", bytes.NewReader(body))
		webhook.SetSignature(request.Header, m.id, time.Now(), body, secret)
		answer := httptest.NewRecorder()
		r.ServeHTTP(answer, request)
		fmt.Println(m.id, answer.Code)
	}
	// Output:
	// patient-77 slept 7h0m0s, says acme_ring
	// msg_0001 204
	// msg_0001 204
	// patient-77 slept 7h30m0s, says acme_ring
	// msg_0002 204
	// msg_0003 204
	// the order of patient-77 is requisition_created
	// msg_0004 204
	// msg_0005 204
}

// A message from a queue, which carries the same bodies: it is believed already, and
// the queue's own id stands for the webhook-id.
func ExampleReceiver_Apply() {
	secret, _ := webhook.ParseSecret("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
	r, _ := receiver.New([]webhook.Secret{secret}, memory.NewSeen(nil), nil)
	receiver.On(r, func(_ context.Context, e receiver.Event, b *healthdata.Batch) error {
		fmt.Println(len(b.Data), "samples of", e.Name.Resource)
		return nil
	})
	body := []byte(`{"event_type":"daily.data.heartrate.created","team_id":"0190a000-0000-7000-8000-000000000001",
		"data":{"source":{"provider":"acme_band"},"data":[{"timestamp":"2026-03-01T07:00:00+00:00","unit":"bpm","value":61}]}}`)

	e, _ := receiver.Decode(body)
	e.ID = "stream-1:17"
	outcome, err := r.Apply(context.Background(), e)
	fmt.Println(outcome, err)
	// Output:
	// 1 samples of heartrate
	// applied <nil>
}
