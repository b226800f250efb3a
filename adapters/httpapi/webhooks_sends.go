package httpapi

import (
	"context"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/webhook"
)

// webhookTestIn is the body that requests a test message.
type webhookTestIn struct {
	EventType string `json:"event_type"`
}

// webhookTestOut is the outcome of a test message.
type webhookTestOut struct {
	Outcome    webhook.Class `json:"outcome"`
	StatusCode *int          `json:"status_code"`
	DurationMS int64         `json:"duration_ms"`
}

// webhookAttemptOut is one delivery attempt.
type webhookAttemptOut struct {
	At         healthlab.Time  `json:"at"`
	WebhookID  uuid.UUID       `json:"webhook_id"`
	MessageID  string          `json:"message_id"`
	EventType  string          `json:"event_type"`
	Attempt    int             `json:"attempt"`
	Trigger    webhook.Trigger `json:"trigger"`
	Outcome    *webhook.Class  `json:"outcome"`
	StatusCode *int            `json:"status_code"`
	DurationMS int64           `json:"duration_ms"`
	State      webhook.State   `json:"state"`
	Reason     *webhook.Reason `json:"reason"`
	Head       *string         `json:"response_head"`
	Response   *string         `json:"response"`
}

// webhookAttemptsOut is one page of delivery attempts.
type webhookAttemptsOut struct {
	Data       []webhookAttemptOut `json:"data"`
	NextCursor *string             `json:"next_cursor"`
}

// webhookRecoverIn is the body that requests the events missed since a time.
type webhookRecoverIn struct {
	Since healthlab.Time  `json:"since"`
	Until *healthlab.Time `json:"until"`
}

// webhookQueuedOut is the number of deliveries that were queued.
type webhookQueuedOut struct {
	Queued int `json:"queued"`
}

// nonZero returns a pointer to v, or nil if v is the zero value, which stands for an absent field.
func nonZero[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

func attemptFrom(t webhook.Attempt) webhookAttemptOut {
	out := webhookAttemptOut{
		At: healthlab.At(t.At), WebhookID: t.Endpoint.UUID, MessageID: webhook.MessageID(t.Event), EventType: t.Type,
		Attempt: t.N, Trigger: t.Trigger, Outcome: nonZero(t.Class), StatusCode: nonZero(t.Status),
		DurationMS: int64(t.Duration / time.Millisecond), State: t.State, Reason: nonZero(t.Reason),
	}
	out.Head, out.Response = received(t.Head), received(t.Response)
	return out
}

func received(b []byte) *string {
	if b == nil {
		return nil
	}
	return new(strings.ToValidUTF8(string(b), "\uFFFD"))
}

func (a api) sendWebhookTest(w http.ResponseWriter, r *http.Request, m *managed) error {
	id := m.webhookID()
	var body webhookTestIn
	m.Body(&body)
	team, err := m.authorizedTeam()
	if err != nil {
		return err
	}
	result, err := a.Webhooks.SendTest(r.Context(), team, id, body.EventType)
	if err != nil {
		return err
	}
	return wire.JSON(w, http.StatusOK, webhookTestOut{
		Outcome: result.Class, StatusCode: nonZero(result.Status), DurationMS: int64(result.Duration / time.Millisecond),
	})
}

func (a api) listWebhookAttempts(ctx context.Context, m *managed) (any, error) {
	q := webhook.AttemptQuery{Endpoint: m.webhookID()}
	q.Size, q.Cursor = m.page()
	message := m.ShortText("message_id")
	var err error
	if q.Team, err = m.authorizedTeam(); err != nil {
		return nil, err
	}
	if message != "" {
		if q.Event, err = eventOf(message); err != nil {
			return nil, err
		}
	}
	if _, err := a.Webhooks.Get(ctx, q.Team, q.Endpoint); err != nil {
		return nil, err
	}
	page, err := a.Webhooks.Attempts(ctx, q)
	if err != nil {
		return nil, cursorProblem(err)
	}
	out := webhookAttemptsOut{Data: make([]webhookAttemptOut, 0, len(page.Attempts)), NextCursor: next(page.Next)}
	for _, t := range page.Attempts {
		out.Data = append(out.Data, attemptFrom(t))
	}
	return out, nil
}

func (a api) retryWebhookMessage(ctx context.Context, m *managed) (any, error) {
	id, message := m.webhookID(), m.PathText("message_id", wire.MaxPathText)
	team, err := m.authorizedTeam()
	if err != nil {
		return nil, err
	}
	event, err := eventOf(message)
	if err != nil {
		return nil, err
	}
	queued, err := a.Webhooks.Retry(ctx, team, id, event)
	if err != nil {
		return nil, err
	}
	return webhookQueuedOut{queued}, nil
}

func (a api) recoverWebhook(ctx context.Context, m *managed) (any, error) {
	id := m.webhookID()
	var body webhookRecoverIn
	m.Body(&body)
	team, err := m.authorizedTeam()
	if err != nil {
		return nil, err
	}
	var until time.Time
	if body.Until != nil {
		until = body.Until.Time
	}
	queued, err := a.Webhooks.Recover(ctx, team, id, body.Since.Time, until)
	if err != nil {
		return nil, err
	}
	return webhookQueuedOut{queued}, nil
}

// eventOf returns the id of the event from which a message id was derived. It returns NotFound for any other message
// id.
func eventOf(message string) (uuid.UUID, error) {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	none := fmt.Errorf("%w: message", healthlab.NotFound)
	text, ok := strings.CutPrefix(message, "msg_")
	if !ok || len(text) != 27 {
		return uuid.Nil, none
	}
	n, base := new(big.Int), big.NewInt(int64(len(digits)))
	for i := range len(text) {
		digit := strings.IndexByte(digits, text[i])
		if digit < 0 {
			return uuid.Nil, none
		}
		n.Add(n.Mul(n, base), big.NewInt(int64(digit)))
	}
	const size = 20 // 16 bytes of the event's id, 4 of a checksum
	if n.BitLen() > 8*size {
		return uuid.Nil, none
	}
	id := uuid.UUID(n.FillBytes(make([]byte, size))[:16])
	if webhook.MessageID(id) != message {
		return uuid.Nil, none
	}
	return id, nil
}
