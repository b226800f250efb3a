package orders_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// once places an order under a key, and renders the answer as a handler does.
func (d *fixture) once(s *orders.Service, key string, edit ...func(*orders.PlaceRequest)) ([]byte, error) {
	return s.Once(d.t.Context(), d.store.OrderKeys(), orders.Once{KeyScope: orders.KeyScope{Team: d.team, Endpoint: "order", Key: key}},
		func(ctx context.Context, id orders.OrderID) (orders.Outcome, error) {
			o, err := s.PlaceAs(ctx, d.team, id, d.asks("walk-in", edit...))
			var rule *healthlab.RuleError
			if errors.As(err, &rule) {
				return orders.Outcome{Answer: []byte(rule.Type), Failed: true}, nil
			}
			if err != nil {
				return orders.Outcome{}, err
			}
			answer, err := json.Marshal(o)
			return orders.Outcome{Answer: answer}, err
		})
}

// TestOneKeyOneOrder lets many callers of two services place an order with one key at
// once. There is one order; each answer is the stored one, or asks to ask again.
func TestOneKeyOneOrder(t *testing.T) {
	d := newFixture(t)
	other, err := orders.New(d.store.Orders(), people.UsersFunc(d.user1), book(t), d.lab, &orders.Options{Environment: healthlab.Production, Now: d.now})
	require.NoError(t, err)
	callers := prove.Count(100, 1000)
	answers := make([]string, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			s := []*orders.Service{d.Service, other}[i%2]
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

func TestKeysOfFailures(t *testing.T) {
	d := newFixture(t)
	minor := func(r *orders.PlaceRequest) { r.PatientDetails.DOB = healthlab.Date{Year: 2020, Month: 1, Day: 1} }
	b, err := d.once(d.Service, "k", minor)
	require.NoError(t, err)
	require.Equal(t, orders.MinorNotAllowed, string(b))
	b, err = d.once(d.Service, "k")
	require.NoError(t, err)
	require.Equal(t, orders.MinorNotAllowed, string(b), "a failure is kept, too; the body is not compared")

	runs := 0
	req := orders.Once{KeyScope: orders.KeyScope{Team: d.team, Endpoint: "order", Key: "no cache"}, SuccessOnly: true}
	do := func(failed bool, fault error) func(context.Context, orders.OrderID) (orders.Outcome, error) {
		return func(context.Context, orders.OrderID) (orders.Outcome, error) {
			runs++
			return orders.Outcome{Answer: []byte("answer"), Failed: failed}, fault
		}
	}
	own := errors.New("own")
	for _, tc := range []struct {
		failed bool
		fault  error
		runs   int
	}{{true, nil, 1}, {true, nil, 2}, {false, own, 3}, {false, nil, 4}, {true, nil, 4}, {false, own, 4}} {
		_, err := d.Once(t.Context(), d.store.OrderKeys(), req, do(tc.failed, tc.fault))
		require.Equal(t, tc.runs, runs)
		if runs < 4 {
			require.ErrorIs(t, err, tc.fault)
		} else {
			require.NoError(t, err)
		}
	}
}

// TestWorkThatWasNotAnswered: a process places the order and dies before it answers.
func TestWorkThatWasNotAnswered(t *testing.T) {
	d := newFixture(t)
	scope := orders.KeyScope{Team: d.team, Endpoint: "order", Key: "k"}
	state, err := d.store.OrderKeys().StartKey(t.Context(), scope, "", orders.OrderID{UUID: id("chosen")}, time.Minute)
	require.NoError(t, err)
	_, err = d.PlaceAs(t.Context(), d.team, state.Order, d.asks("walk-in"))
	require.NoError(t, err)
	_, err = d.once(d.Service, "k")
	requireRule(t, err, orders.IdempotencyInProgress, healthlab.Conflict)
	d.later(time.Minute)
	b, err := d.once(d.Service, "k")
	require.NoError(t, err)
	require.Contains(t, string(b), state.Order.String())
	page, err := d.List(t.Context(), orders.Query{Team: d.team})
	require.NoError(t, err)
	require.Equal(t, 1, page.Total)
}

func TestKeyWithAnotherFingerprintIsRefused(t *testing.T) {
	d := newFixture(t)
	ask := func(print string) error {
		_, err := d.Once(t.Context(), d.store.OrderKeys(), orders.Once{Fingerprint: print,
			KeyScope: orders.KeyScope{Team: d.team, Endpoint: "order", Key: "k"}},
			func(context.Context, orders.OrderID) (orders.Outcome, error) {
				return orders.Outcome{Answer: []byte("a")}, nil
			})
		return err
	}
	require.NoError(t, ask("one"))
	require.NoError(t, ask("one"))
	requireRule(t, ask("two"), orders.IdempotencyKeyReused, healthlab.Conflict)
}

func TestKeyForm(t *testing.T) {
	d := newFixture(t)
	for key, ok := range map[string]bool{"": false, "x": true, strings.Repeat("é", 255): true, strings.Repeat("x", 256): false, "a\xff": false} {
		_, err := d.once(d.Service, key)
		require.Equal(t, !ok, errors.Is(err, healthlab.Invalid))
	}
}
