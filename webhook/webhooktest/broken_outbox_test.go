package webhooktest_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/webhook"
	"github.com/healthlab-dev/healthlab/webhook/webhooktest"
)

// outboxes runs the suite on outboxes that were broken in one way.
func outboxes(how func(*webhooktest.OutboxHarness)) func(*testing.T) {
	return func(t *testing.T) {
		webhooktest.RunOutbox(t, func(*testing.T) webhooktest.OutboxHarness {
			s := memory.New(nil)
			h := webhooktest.OutboxHarness{Outbox: s.Outbox(), Message: s.WebhookLog().Message}
			how(&h)
			return h
		})
	}
}

func appends(how func(ctx context.Context, sound webhook.Outbox, events []healthlab.Event) error) func(*testing.T) {
	return outboxes(func(h *webhooktest.OutboxHarness) {
		sound := h.Outbox
		h.Outbox = brokenOutbox(func(ctx context.Context, events []healthlab.Event) error { return how(ctx, sound, events) })
	})
}

// answers changes the messages that an outbox shows.
func answers(change func(*webhook.Message)) func(*testing.T) {
	return outboxes(func(h *webhooktest.OutboxHarness) {
		sound := h.Message
		h.Message = func(ctx context.Context, team healthlab.TeamID, event uuid.UUID) (webhook.Message, error) {
			m, err := sound(ctx, team, event)
			change(&m)
			return m, err
		}
	})
}

// brokenOutboxes are outboxes that break one promise each.
var brokenOutboxes = []conformance.Broken{
	{Name: "counts a team's events together", Suite: appends(func(ctx context.Context, sound webhook.Outbox, events []healthlab.Event) error {
		for i := range events {
			events[i].Key = "one"
		}
		return sound.Append(ctx, events)
	}), Subtest: "Append/DrawsSeqPerKey"},
	{Name: "forgets events", Suite: appends(func(context.Context, webhook.Outbox, []healthlab.Event) error { return nil }), Subtest: "Append/Body"},
	{Name: "encodes the body anew", Suite: answers(func(m *webhook.Message) {
		var v any
		if json.Unmarshal(m.Body, &v) == nil {
			m.Body, _ = json.Marshal(v)
		}
	}), Subtest: "Append/Body"},
	{Name: "appends one by one", Suite: appends(func(ctx context.Context, sound webhook.Outbox, events []healthlab.Event) error {
		for _, e := range events {
			if err := sound.Append(ctx, []healthlab.Event{e}); err != nil {
				return err
			}
		}
		return nil
	}), Subtest: "Append/AllOrNone"},
	{Name: "refuses no events", Suite: appends(func(ctx context.Context, sound webhook.Outbox, events []healthlab.Event) error {
		if len(events) == 0 {
			return healthlab.Invalid
		}
		return sound.Append(ctx, events)
	}), Subtest: "Append/NoEvents"},
	{Name: "takes an id twice", Suite: appends(func(ctx context.Context, sound webhook.Outbox, events []healthlab.Event) error {
		if err := sound.Append(ctx, events); !errors.Is(err, healthlab.Conflict) {
			return err
		}
		return nil
	}), Subtest: "Append/IDTaken"},
	{Name: "goes on without its caller", Suite: appends(func(ctx context.Context, sound webhook.Outbox, events []healthlab.Event) error {
		return sound.Append(context.WithoutCancel(ctx), events)
	}), Subtest: "Append/CancelledContext"},
	{Name: "shows every team all events", Suite: outboxes(func(h *webhooktest.OutboxHarness) {
		var mu sync.Mutex
		teams := map[uuid.UUID]healthlab.TeamID{}
		outbox, message := h.Outbox, h.Message
		h.Outbox = brokenOutbox(func(ctx context.Context, events []healthlab.Event) error {
			mu.Lock()
			defer mu.Unlock()
			for _, e := range events {
				teams[e.ID] = e.Team
			}
			return outbox.Append(ctx, events)
		})
		h.Message = func(ctx context.Context, _ healthlab.TeamID, event uuid.UUID) (webhook.Message, error) {
			mu.Lock()
			defer mu.Unlock()
			return message(ctx, teams[event], event)
		}
	}), Subtest: "Append/Teams"},
	{Name: "draws a number twice", Suite: answers(func(m *webhook.Message) {
		if m.Seq > 10 {
			m.Seq--
		}
	}), Subtest: "Append/SeqUnderWriters"},
}

// The outbox that the broken ones are made of keeps every promise.
func TestBrokenOutboxes_unbrokenBasePassesTheSuite(t *testing.T) {
	outboxes(func(*webhooktest.OutboxHarness) {})(t)
}
