package webhook_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/webhook"
)

// numbered writes an event with a key whose data says which version of it this is.
func (h *fixture) numbered(t testing.TB, eventType, key string, version int) uuid.UUID {
	t.Helper()
	e := healthlab.Event{
		ID: uuid.Must(uuid.NewV7()), Type: eventType, Team: team, User: user, Key: key, At: time.Now(),
		Data: fmt.Appendf(nil, `{"key":%q,"version":%d}`, key, version),
	}
	require.NoError(t, h.store.Outbox().Append(t.Context(), []healthlab.Event{e}))
	return e.ID
}

// version says which key and version a message is about.
func version(t testing.TB, n webhook.Notification) (key string, number int) {
	t.Helper()
	var body struct {
		Data struct {
			Key     string
			Version int
		}
	}
	require.NoError(t, json.Unmarshal(n.Body, &body))
	return body.Data.Key, body.Data.Version
}

// sentOf returns the versions of a key that were sent, each with when.
func (h *fixture) sentOf(t testing.TB, key string) (versions []int, when []time.Time) {
	t.Helper()
	for _, r := range h.to.all() {
		if k, v := version(t, r.Notification); k == key {
			versions, when = append(versions, v), append(when, r.when)
		}
	}
	return versions, when
}

// A receiver's Retry-After moves the next attempt of that message, and delays all other
// messages to the receiver for at most a quarter of an hour. An unreadable one changes
// nothing.
func TestDispatcher_retryAfterMovesTheNextAttempt(t *testing.T) {
	date := func(d time.Duration) func(time.Time) string {
		return func(now time.Time) string { return now.Add(d).UTC().Format(http.TimeFormat) }
	}
	text := func(s string) func(time.Time) string { return func(time.Time) string { return s } }
	const schedule = 5 * time.Second
	for _, c := range []struct {
		name         string
		header       func(now time.Time) string
		next, others time.Duration
	}{
		{"seconds", text("120"), 2 * time.Minute, 2 * time.Minute},
		{"fewer seconds than the schedule", text("2"), schedule, 2 * time.Second},
		{"an hour", text("3600"), time.Hour, 15 * time.Minute},
		{"a date", date(10 * time.Minute), 10 * time.Minute, 10 * time.Minute},
		{"a past date", date(-time.Hour), schedule, time.Second},
		{"garbage", text("as soon as the nurse is back"), schedule, time.Second},
		{"a negative number", text("-7"), schedule, time.Second},
		{"ten years in seconds", text("315360000"), 24 * time.Hour, 15 * time.Minute},
		{"ten years as a date", date(10 * 365 * 24 * time.Hour), 24 * time.Hour, 15 * time.Minute},
		{"nothing", text(""), schedule, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newFixture(t)
				h.create(t)
				h.to.answer = func(_ webhook.Notification, nth int) webhook.Result {
					if nth > 1 {
						return webhook.Result{Class: webhook.ClassOK, Status: 200}
					}
					now := time.Now()
					return webhook.Result{
						Class: webhook.ClassThrottled, Status: http.StatusTooManyRequests,
						RetryAfter: webhook.ParseRetryAfter(c.header(now), now),
					}
				}
				h.numbered(t, "labtest.order.updated", "first", 1)
				h.opts.Idle = time.Second
				stop := h.run(t)
				time.Sleep(500 * time.Millisecond)
				h.numbered(t, "labtest.order.updated", "other", 1)
				time.Sleep(c.others + 4*time.Second)
				stop()
				h.runFor(t, c.next-c.others+4*time.Second)
				h.runFor(t, time.Hour)
				_, first := h.sentOf(t, "first")
				_, other := h.sentOf(t, "other")
				require.Len(t, first, 2)
				require.Len(t, other, 1)
				for what, got := range map[string][2]time.Duration{
					"the same message": {c.next, first[1].Sub(first[0])},
					"another one":      {c.others, other[0].Sub(first[0])},
				} {
					require.GreaterOrEqual(t, got[1], got[0].Truncate(time.Second), what)
					require.Less(t, got[1], got[0]+2500*time.Millisecond, what)
				}
			})
		})
	}
}

// poisoned is a fixture whose receiver does not take the second version of one key.
func poisoned(t *testing.T) (h *fixture, ill *bool) {
	h, ill = newFixture(t), new(bool)
	*ill = true
	h.to.answer = func(n webhook.Notification, _ int) webhook.Result {
		if k, v := version(t, n); *ill && k == "bad" && v == 2 {
			return webhook.Result{Class: webhook.ClassRefused, Status: 500}
		}
		return webhook.Result{Class: webhook.ClassOK, Status: 200}
	}
	return h, ill
}

// A message that its receiver always refuses blocks its own key only.
func TestDispatcher_refusedMessageBlocksOnlyItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := poisoned(t)
		h.create(t)
		stop := h.run(t)
		for v := 1; v <= 4; v++ {
			h.numbered(t, "labtest.order.updated", "bad", v)
			for k := range 20 {
				h.numbered(t, "labtest.order.updated", fmt.Sprint(k), v)
			}
		}
		time.Sleep(time.Minute)
		for k := range 20 {
			versions, _ := h.sentOf(t, fmt.Sprint(k))
			require.Equal(t, []int{1, 2, 3, 4}, versions, "the others flow")
		}
		time.Sleep(27 * time.Hour)
		versions, _ := h.sentOf(t, "bad")
		require.Equal(t, []int{1, 2, 2, 2, 2, 2, 2, 2}, versions, "nothing passes it")
		time.Sleep(time.Hour)
		stop()
		versions, _ = h.sentOf(t, "bad")
		require.Equal(t, []int{1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 4}, versions, "the schedule is the bound")
	})
}

// With MaxBlock a blocked key continues earlier, because the endpoint accepts other keys.
// Recover then sends the skipped message and all later ones of the key, in order.
func TestDispatcher_maxBlockSkipsAMessageAndRecoverSendsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, ill := poisoned(t)
		e := h.create(t)
		h.opts.MaxBlock = time.Hour
		began := time.Now()
		stop := h.run(t)
		h.numbered(t, "labtest.order.updated", "bad", 1)
		poison := h.numbered(t, "labtest.order.updated", "bad", 2)
		h.numbered(t, "labtest.order.updated", "bad", 3)
		h.numbered(t, "labtest.order.updated", "bad", 4)
		for m := range 7 {
			time.Sleep(10 * time.Minute)
			h.numbered(t, "labtest.order.updated", "good", m+1)
		}
		time.Sleep(time.Minute)
		versions, when := h.sentOf(t, "bad")
		require.Equal(t, []int{1, 2, 2, 2, 2, 2, 3, 4}, versions)
		require.InDelta(t, time.Hour.Seconds(), when[6].Sub(began).Seconds(), 10, "MaxBlock after its first failure")
		page, err := h.service.Attempts(t.Context(), webhook.AttemptQuery{Team: team, Event: poison})
		require.NoError(t, err)
		require.Equal(t, []any{webhook.Failed, webhook.ReasonBlocked}, []any{page.Attempts[0].State, page.Attempts[0].Reason})

		*ill = false
		before := len(h.to.all())
		n, err := h.service.Recover(t.Context(), team, e.ID, began.Add(-time.Minute), time.Time{})
		require.NoError(t, err)
		require.Equal(t, 3, n)
		time.Sleep(time.Minute)
		stop()
		var again []string
		for _, r := range h.to.all()[before:] {
			k, v := version(t, r.Notification)
			again = append(again, fmt.Sprint(k, v))
		}
		require.Equal(t, "bad2 bad3 bad4", strings.Join(again, " "))
	})
}

// A process whose clock is wrong disables an endpoint no sooner and no later than others.
func TestDispatcher_disablesEndpointsByTheClockOfTheStore(t *testing.T) {
	for _, wrong := range []time.Duration{2 * time.Hour, -2 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			h := newFixture(t)
			e := h.create(t)
			_, err := h.store.Endpoints().Update(t.Context(), team, e.ID, func(e *webhook.Endpoint) ([]healthlab.Event, error) {
				e.Health.ArmedAt = time.Now().Add(-119*time.Hour - 30*time.Minute)
				e.Health.FirstFailedAt, e.Health.LastFailedAt = e.Health.ArmedAt.Add(-12*time.Hour), e.Health.ArmedAt
				return nil, nil
			})
			require.NoError(t, err)
			h.opts.Now = func() time.Time { return time.Now().Add(wrong) }
			stop := h.run(t)
			time.Sleep(10 * time.Minute)
			now, err := h.service.Get(t.Context(), team, e.ID)
			require.NoError(t, err)
			require.False(t, now.Disabled, wrong)
			time.Sleep(time.Hour)
			stop()
			now, err = h.service.Get(t.Context(), team, e.ID)
			require.NoError(t, err)
			require.True(t, now.Disabled, wrong)
			require.Equal(t, webhook.DisabledFailing, now.DisabledReason)
		})
	}
}
