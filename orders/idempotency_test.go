package orders_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/idempotency"
)

// once places an order under a key, and renders the answer as a handler does.
func (d *fixture) once(s *orders.Service, key string, edit ...func(*orders.PlaceRequest)) ([]byte, error) {
	return idempotency.New(d.store.OrderKeys(), nil).Once(d.t.Context(), idempotency.Request{Scope: idempotency.Scope{Team: d.team, Endpoint: "order", Key: key}},
		func(ctx context.Context, id orders.OrderID) (idempotency.Outcome, error) {
			o, err := s.PlaceAs(ctx, d.team, id, d.asks("walk-in", edit...))
			var rule *healthlab.RuleError
			if errors.As(err, &rule) {
				return idempotency.Outcome{Answer: []byte(rule.Type), Failed: true}, nil
			}
			if err != nil {
				return idempotency.Outcome{}, err
			}
			answer, err := json.Marshal(o)
			return idempotency.Outcome{Answer: answer}, err
		})
}

// TestIdempotencyKey_concurrentCallsPlaceOneOrder lets many callers of two services place an order with one key at
// once. There is one order; each answer is the stored one, or asks to ask again.
func TestIdempotencyKey_concurrentCallsPlaceOneOrder(t *testing.T) {
	d := newFixture(t)
	other, err := d.newServices(book(t), d.lab, &options{orderOptions: orders.Options{Environment: healthlab.Production, Background: orders.Background{Now: d.now}}})
	require.NoError(t, err)
	callers := prove.Count(100, 1000)
	answers := make([]string, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			s := []*orders.Service{d.Service, other.Service}[i%2]
			for {
				b, err := d.once(s, "one")
				var rule *healthlab.RuleError
				if errors.As(err, &rule) && rule.Type == orders.IdempotencyInProgress && errors.Is(err, healthlab.Conflict) {
					continue
				}
				if err != nil {
					t.Error(err)
				}
				answers[i] = string(b)
				return
			}
		})
	}
	wg.Wait()
	for _, a := range answers {
		require.Equal(t, answers[0], a)
	}
	page, err := d.List(t.Context(), orders.Query{Team: d.team})
	require.NoError(t, err)
	require.Equal(t, 1, page.Total)
}

func TestIdempotencyKey_storesAFailureToo(t *testing.T) {
	d := newFixture(t)
	minor := func(r *orders.PlaceRequest) { r.PatientDetails.DOB = healthlab.Date{Year: 2020, Month: 1, Day: 1} }
	b, err := d.once(d.Service, "k", minor)
	require.NoError(t, err)
	require.Equal(t, orders.MinorNotAllowed, string(b))
	b, err = d.once(d.Service, "k")
	require.NoError(t, err)
	require.Equal(t, orders.MinorNotAllowed, string(b), "a failure is kept, too; the body is not compared")
}

// TestIdempotencyKey_retryAfterACrashReturnsTheSameOrder: a process places the order and dies before it answers.
func TestIdempotencyKey_retryAfterACrashReturnsTheSameOrder(t *testing.T) {
	d := newFixture(t)
	scope := idempotency.Scope{Team: d.team, Endpoint: "order", Key: "k"}
	state, err := d.store.OrderKeys().StartKey(t.Context(), scope, "", orders.OrderID{UUID: id("chosen")}, time.Minute)
	require.NoError(t, err)
	_, err = d.PlaceAs(t.Context(), d.team, state.Order, d.asks("walk-in"))
	require.NoError(t, err)
	_, err = d.once(d.Service, "k")
	requireRule(t, err, orders.IdempotencyInProgress, healthlab.Conflict)
	d.advance(time.Minute)
	b, err := d.once(d.Service, "k")
	require.NoError(t, err)
	require.Contains(t, string(b), state.Order.String())
	page, err := d.List(t.Context(), orders.Query{Team: d.team})
	require.NoError(t, err)
	require.Equal(t, 1, page.Total)
}
