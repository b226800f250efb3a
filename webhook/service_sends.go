package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/nearest"
)

// SendTest sends an example of an event type to one endpoint once and returns the result. The data is the
// catalogue's example; the message id begins with msg_test. It also works on a disabled endpoint, and changes
// neither its log nor its health.
//
// Invalid if the catalogue does not have the type; NotFound if the team has no such
// endpoint; [*RateLimitError].
func (s *Service) SendTest(ctx context.Context, team healthlab.TeamID, id EndpointID, eventType string) (Result, error) {
	if err := s.allow(team); err != nil {
		return Result{}, err
	}
	t, ok := s.types.Lookup(eventType)
	if !ok {
		var p healthlab.Problems
		p.Add("unknown_type", nearest.Allowed(eventType, s.types.Names(), nearest.Contract), "event_type")
		return Result{}, fmt.Errorf("send test: %w", p.Err())
	}
	data, err := json.Marshal(t.Data)
	if err != nil || len(data) == 0 || data[0] != '{' {
		data = []byte("{}")
	}
	at := s.clock()
	event := healthlab.Event{ID: s.opts.NewID(), Type: t.Name, Team: team, At: at, Data: data}
	body, err := s.opts.Envelope.Render(event, nil)
	if err != nil {
		return Result{}, fmt.Errorf("send test: %w", err)
	}
	e, err := s.endpoints.Get(ctx, team, id)
	if err != nil {
		return Result{}, fmt.Errorf("send test: %w", err)
	}
	to := &opened{Endpoint: e}
	if err := unseal(ctx, s.seal, to); err != nil {
		return Result{}, fmt.Errorf("send test: %w", err)
	}
	return s.notifier.Notify(ctx, Notification{
		URL: e.URL, Team: team, Type: t.Name, Headers: to.headers, ID: testMessageID(event.ID), At: at, Secrets: to.active(at), Body: body,
	}), nil
}

// Attempts returns one page of attempts, the latest first.
func (s *Service) Attempts(ctx context.Context, q AttemptQuery) (AttemptPage, error) {
	page, err := s.log.Attempts(ctx, q)
	if err != nil {
		return AttemptPage{}, fmt.Errorf("list attempts: %w", err)
	}
	return page, nil
}

// Retry sends one message to one endpoint again, with the same id and bytes. An old version is never sent after a newer
// one. An event of mode Latest is refused if its key has a newer event. An event of mode Ordered is sent again with all
// later events of its key, in order. It returns the number of messages to send.
//
// Precondition as Deliveries.Replay says; NotFound if the team has no such endpoint or message;
// [*RateLimitError].
func (s *Service) Retry(ctx context.Context, team healthlab.TeamID, id EndpointID, event uuid.UUID) (int, error) {
	if event == uuid.Nil {
		return 0, fmt.Errorf("retry message: %w: event: must be set", healthlab.NotFound)
	}
	if err := s.allow(team); err != nil {
		return 0, err
	}
	done, err := s.deliveries.Replay(ctx, Replay{Team: team, Endpoint: id, Modes: s.types.Modes(), Event: event})
	if err != nil {
		return 0, fmt.Errorf("retry message: %w", err)
	}
	return done.Queued, nil
}

// Recover sends lost messages to an endpoint again, page by page: of the messages written at or after since
// and, unless it is zero, before until, those that failed or were cancelled, and those written while the
// endpoint was disabled. It returns the number of new deliveries. After an error, or the end of ctx, call it
// again; a message that is already queued is not queued twice.
//
// Precondition if the endpoint is disabled; NotFound if the team has no such endpoint; [*RateLimitError].
func (s *Service) Recover(ctx context.Context, team healthlab.TeamID, id EndpointID, since, until time.Time) (int, error) {
	if err := s.allow(team); err != nil {
		return 0, err
	}
	r := Replay{Team: team, Endpoint: id, Modes: s.types.Modes(), Since: since, Until: until}
	queued := 0
	for {
		done, err := s.deliveries.Replay(ctx, r)
		queued += done.Queued
		if err != nil {
			return queued, fmt.Errorf("recover endpoint: %w", err)
		}
		if done.Next == "" {
			return queued, nil
		}
		r.After = done.Next
	}
}
