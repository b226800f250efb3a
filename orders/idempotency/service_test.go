package idempotency_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/idempotency"
)

func scopeOf(key string) idempotency.Scope {
	return idempotency.Scope{Team: healthlab.TeamID{UUID: uuid.NewSHA1(uuid.Nil, []byte("team"))}, Endpoint: "order", Key: key}
}

func TestOnce_storesFailuresUnlessSuccessOnly(t *testing.T) {
	s := idempotency.New(memory.New(nil).OrderKeys(), nil)
	runs := 0
	req := idempotency.Request{Scope: scopeOf("no cache"), SuccessOnly: true}
	do := func(failed bool, fault error) func(context.Context, orders.OrderID) (idempotency.Outcome, error) {
		return func(context.Context, orders.OrderID) (idempotency.Outcome, error) {
			runs++
			return idempotency.Outcome{Answer: []byte("answer"), Failed: failed}, fault
		}
	}
	own := errors.New("own")
	for _, tc := range []struct {
		failed bool
		fault  error
		runs   int
	}{{true, nil, 1}, {true, nil, 2}, {false, own, 3}, {false, nil, 4}, {true, nil, 4}, {false, own, 4}} {
		_, err := s.Once(t.Context(), req, do(tc.failed, tc.fault))
		require.Equal(t, tc.runs, runs)
		if runs < 4 {
			require.ErrorIs(t, err, tc.fault)
		} else {
			require.NoError(t, err)
		}
	}
}

func TestOnce_keyWithAnotherFingerprintIsRefused(t *testing.T) {
	s := idempotency.New(memory.New(nil).OrderKeys(), nil)
	ask := func(print string) error {
		_, err := s.Once(t.Context(), idempotency.Request{Fingerprint: print, Scope: scopeOf("k")},
			func(context.Context, orders.OrderID) (idempotency.Outcome, error) {
				return idempotency.Outcome{Answer: []byte("a")}, nil
			})
		return err
	}
	require.NoError(t, ask("one"))
	require.NoError(t, ask("one"))
	var rule *healthlab.RuleError
	err := ask("two")
	require.ErrorIs(t, err, healthlab.Conflict)
	require.ErrorAs(t, err, &rule)
	require.Equal(t, orders.IdempotencyKeyReused, rule.Type)
}

func TestOnce_checksTheFormOfTheKey(t *testing.T) {
	s := idempotency.New(memory.New(nil).OrderKeys(), nil)
	for key, ok := range map[string]bool{"": false, "x": true, strings.Repeat("é", 255): true, strings.Repeat("x", 256): false, "a\xff": false} {
		_, err := s.Once(t.Context(), idempotency.Request{Scope: scopeOf(key)},
			func(context.Context, orders.OrderID) (idempotency.Outcome, error) {
				return idempotency.Outcome{Answer: []byte("a")}, nil
			})
		require.Equal(t, !ok, errors.Is(err, healthlab.Invalid))
	}
}

// silentKeys does not answer when a key is finished.
type silentKeys struct{ idempotency.Keys }

func (silentKeys) FinishKey(ctx context.Context, _ idempotency.Scope, _ time.Time, _ []byte, _ healthlab.UserID, _ time.Duration) error {
	<-ctx.Done()
	return ctx.Err()
}

// A request ends soon after its own time, although the store does not answer any more.
func TestOnce_endsInTimeIfTheStoreHangs(t *testing.T) {
	for _, fault := range []error{nil, errors.New("own")} {
		synctest.Test(t, func(t *testing.T) {
			s := idempotency.New(silentKeys{memory.New(nil).OrderKeys()}, nil)
			began := time.Now()
			ctx, stop := context.WithTimeout(t.Context(), 6*time.Second)
			defer stop()
			_, err := s.Once(ctx, idempotency.Request{Scope: scopeOf("silent")}, func(context.Context, orders.OrderID) (idempotency.Outcome, error) {
				return idempotency.Outcome{Answer: []byte("answer")}, fault
			})
			if fault == nil {
				fault = context.Canceled
			}
			require.ErrorIs(t, err, fault)
			require.Equal(t, 9*time.Second, time.Since(began))
		})
	}
}
