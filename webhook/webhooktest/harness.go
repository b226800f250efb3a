package webhooktest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/webhook"
)

// Harness has the interfaces of one store for the suites of package webhook, and a function to move its clock.
type Harness struct {
	Outbox     webhook.Outbox
	Deliveries webhook.Deliveries
	Endpoints  webhook.Endpoints
	Log        webhook.Log
	Bodies     webhook.Bodies
	// Advance moves the store's clock forward: what was due in an hour is due now
	// after Advance(time.Hour), and a lease of a minute has ended. The clock may also
	// move by itself.
	Advance func(d time.Duration)
}

// Event types that the suites write.
const (
	typeLatest      = "test.latest.changed"
	typeOrdered     = "test.ordered.changed"
	typeIndependent = "test.independent.changed"
)

var modes = map[string]healthlab.Mode{
	typeLatest:      healthlab.Latest,
	typeOrdered:     healthlab.Ordered,
	typeIndependent: healthlab.Independent,
}

const (
	lease = time.Minute
	most  = 1000 // a limit that no subtest reaches
)

// bench is a store under test, with a team and one endpoint of the team, and helpers for tests.
type bench struct {
	t    testing.TB
	s    Harness
	team healthlab.TeamID
	user healthlab.UserID
	to   webhook.EndpointID
}

func newBench(t testing.TB, s Harness, change ...func(*webhook.Endpoint)) *bench {
	b := &bench{t: t, s: s, team: healthlab.TeamID{UUID: id()}, user: healthlab.UserID{UUID: uuid.New()}}
	b.to = b.endpoint(change...)
	return b
}

func id() uuid.UUID { return uuid.Must(uuid.NewV7()) }

// longAgo is earlier than any time of a store's clock.
var longAgo = time.Date(2020, 1, 2, 3, 4, 5, 678901000, time.UTC)

// endpoint registers one more endpoint of the team.
func (b *bench) endpoint(change ...func(*webhook.Endpoint)) webhook.EndpointID {
	b.t.Helper()
	e := webhook.Endpoint{
		ID: webhook.EndpointID{UUID: id()}, Team: b.team, URL: "https://receiver.example.com/in",
		OrderScope: webhook.OrderKey, CreatedAt: longAgo, UpdatedAt: longAgo,
		Secrets: []webhook.SealedSecret{{ID: id(), Sealed: healthlab.Sealed{KeyID: "k", Box: []byte("box")}, CreatedAt: longAgo}},
	}
	for _, c := range change {
		c(&e)
	}
	require.NoError(b.t, b.s.Endpoints.Insert(b.t.Context(), e, most))
	return e.ID
}

func (b *bench) event(eventType, key string) healthlab.Event {
	return healthlab.Event{
		ID: id(), Type: eventType, Team: b.team, User: b.user, Key: key, At: longAgo,
		Data: json.RawMessage(`{"key": "` + key + `"}`),
	}
}

func (b *bench) write(eventType, key string) uuid.UUID {
	b.t.Helper()
	e := b.event(eventType, key)
	require.NoError(b.t, b.s.Outbox.Append(b.t.Context(), []healthlab.Event{e}))
	return e.ID
}

// route calls Route until all written events are routed.
func (b *bench) route() {
	b.t.Helper()
	for {
		routed, err := b.s.Deliveries.Route(b.t.Context(), modes, most)
		require.NoError(b.t, err)
		if routed.Events == 0 {
			return
		}
	}
}

func (b *bench) send(eventType, key string) uuid.UUID {
	b.t.Helper()
	e := b.write(eventType, key)
	b.route()
	return e
}

func (b *bench) claimMax(n int) []webhook.Delivery {
	b.t.Helper()
	return b.claimOf(b.to, n)
}

func (b *bench) claimOf(to webhook.EndpointID, n int) []webhook.Delivery {
	b.t.Helper()
	c, err := b.s.Deliveries.Claim(b.t.Context(), webhook.Claim{
		Quotas: []webhook.Quota{{Endpoint: to, Max: n}}, Lease: lease,
	})
	require.NoError(b.t, err)
	return c.Deliveries
}

func (b *bench) claim() []webhook.Delivery { b.t.Helper(); return b.claimMax(most) }

func (b *bench) claimOnly(event uuid.UUID) webhook.Delivery {
	b.t.Helper()
	got := b.claim()
	require.Equal(b.t, []uuid.UUID{event}, events(got))
	return got[0]
}

func (b *bench) nothing() { b.t.Helper(); require.Empty(b.t, events(b.claim())) }

func events(ds []webhook.Delivery) []uuid.UUID {
	var out []uuid.UUID
	for _, d := range ds {
		out = append(out, d.Event)
	}
	return out
}

func (b *bench) record(o ...webhook.Outcome) webhook.RecordedOutcomes {
	b.t.Helper()
	recorded, err := b.s.Deliveries.RecordOutcomes(b.t.Context(), o)
	require.NoError(b.t, err)
	require.Empty(b.t, recorded.Locked)
	return recorded
}

func succeeded(d webhook.Delivery) webhook.Outcome {
	return webhook.Outcome{
		Delivery: d, State: webhook.Succeeded, Sent: true, Status: 200, Class: webhook.ClassOK, Duration: time.Millisecond,
	}
}

func failed(d webhook.Delivery, delay time.Duration) webhook.Outcome {
	return webhook.Outcome{
		Delivery: d, State: webhook.Retrying, Delay: delay, Sent: true, Status: 500, Class: webhook.ClassRefused, Duration: time.Millisecond,
	}
}

func exhausted(d webhook.Delivery) webhook.Outcome {
	o := failed(d, 0)
	o.State, o.Reason = webhook.Failed, webhook.ReasonExhausted
	return o
}

func cancelled(d webhook.Delivery, why webhook.Reason) webhook.Outcome {
	return webhook.Outcome{Delivery: d, State: webhook.Cancelled, Reason: why}
}

// lastAttempt returns the latest log entry of an event at the endpoint b.to: attempt number, state and reason, such as
// "1 succeeded "; "nothing" if there is none.
func (b *bench) lastAttempt(event uuid.UUID) string {
	b.t.Helper()
	page, err := b.s.Log.Attempts(b.t.Context(), webhook.AttemptQuery{Team: b.team, Endpoint: b.to, Event: event})
	require.NoError(b.t, err)
	if len(page.Attempts) == 0 {
		return "nothing"
	}
	a := page.Attempts[0]
	return fmt.Sprint(a.N, " ", a.State, " ", a.Reason)
}

func (b *bench) get() webhook.Endpoint {
	b.t.Helper()
	e, err := b.s.Endpoints.Get(b.t.Context(), b.team, b.to)
	require.NoError(b.t, err)
	return e
}

func (b *bench) update(change func(*webhook.Endpoint)) webhook.Endpoint {
	b.t.Helper()
	e, err := b.s.Endpoints.Update(b.t.Context(), b.team, b.to, func(e *webhook.Endpoint) ([]healthlab.Event, error) {
		change(e)
		return nil, nil
	})
	require.NoError(b.t, err)
	return e
}

func (b *bench) now() time.Time {
	b.t.Helper()
	c, err := b.s.Deliveries.Claim(b.t.Context(), webhook.Claim{Lease: lease})
	require.NoError(b.t, err)
	return c.At
}
