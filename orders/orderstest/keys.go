package orderstest

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/orders/idempotency"
)

// KeysHarness is a fresh, empty store of idempotency keys.
type KeysHarness struct {
	Keys idempotency.Keys
	// SetClock sets the store's clock to an instant, at which it stops.
	SetClock func(now time.Time)
}

// RunKeys runs the contract tests of [idempotency.Keys]. newKeys returns a new, empty store for each case.
func RunKeys(t *testing.T, newKeys func(t testing.TB) KeysHarness) {
	for name, run := range conformance.Sorted(orderKeyCases) {
		t.Run(name, func(t *testing.T) {
			h := newKeys(t)
			run(t, keysT{h.Keys, h.SetClock})
		})
	}
}

type keysT struct {
	idempotency.Keys
	setClock func(now time.Time)
}

func (k keysT) start(t *testing.T, scope idempotency.Scope, order string, after time.Duration) idempotency.State {
	t.Helper()
	k.setClock(noon.Add(after))
	state, err := k.StartKey(t.Context(), scope, "print of "+order, orderID(order), time.Minute)
	require.NoError(t, err)
	return state
}

func (k keysT) finish(t *testing.T, scope idempotency.Scope, after time.Duration, answer []byte) error {
	t.Helper()
	return k.FinishKey(t.Context(), scope, noon.Add(after+time.Minute), answer, healthlab.UserID{}, 24*time.Hour)
}

func started(order string, after time.Duration) idempotency.State {
	return idempotency.State{Started: true, Until: noon.Add(after + time.Minute), Order: orderID(order), Fingerprint: "print of " + order}
}

func scopeOf(team, endpoint, key string) idempotency.Scope {
	return idempotency.Scope{Team: conformance.Team(team), Endpoint: endpoint, Key: key}
}

var orderKeyCases = map[string]func(*testing.T, keysT){
	"AnsweredOnce": func(t *testing.T, k keysT) {
		scope := scopeOf("a", "order", "k")
		require.Equal(t, started("1", 0), k.start(t, scope, "1", 0))
		require.Equal(t, idempotency.State{Order: orderID("1"), Fingerprint: "print of 1"}, k.start(t, scope, "2", time.Second), "somebody has it")
		answer := []byte{0, 255, '"'}
		require.NoError(t, k.finish(t, scope, 0, answer))
		answer[0] = 'x'
		state := k.start(t, scope, "3", time.Hour)
		require.Equal(t, idempotency.State{Answer: []byte{0, 255, '"'}, Order: orderID("1"), Fingerprint: "print of 1"}, state, "byte for byte")
		state.Answer[0] = 'x'
		require.Equal(t, []byte{0, 255, '"'}, k.start(t, scope, "3", time.Hour).Answer)
	},
	"EmptyAnswer": func(t *testing.T, k keysT) {
		scope := scopeOf("a", "order", "k")
		k.start(t, scope, "1", 0)
		require.NoError(t, k.finish(t, scope, 0, []byte{}))
		state := k.start(t, scope, "2", time.Second)
		require.False(t, state.Started)
		require.NotNil(t, state.Answer)
	},
	"ScopesAreApart": func(t *testing.T, k keysT) {
		for _, scope := range []idempotency.Scope{scopeOf("a", "order", "k"), scopeOf("b", "order", "k"), scopeOf("a", "other", "k"),
			scopeOf("a", "order", "K"), scopeOf("a", "order", "k "), scopeOf("a", "orde", "rk")} {
			require.True(t, k.start(t, scope, "1", 0).Started)
		}
	},
	"LeaseEnds": func(t *testing.T, k keysT) {
		scope := scopeOf("a", "order", "k")
		k.start(t, scope, "1", 0)
		require.False(t, k.start(t, scope, "2", time.Minute-time.Microsecond).Started)
		require.Equal(t, started("1", time.Minute), k.start(t, scope, "2", time.Minute),
			"the work goes on with the same id")
		require.ErrorIs(t, k.finish(t, scope, 0, []byte("stale")), healthlab.Precondition)
		require.NoError(t, k.finish(t, scope, time.Minute, []byte("good")))
		require.ErrorIs(t, k.finish(t, scope, time.Minute, []byte("again")), healthlab.Precondition)
		require.Equal(t, "good", string(k.start(t, scope, "3", time.Hour).Answer))
	},
	"GivenBack": func(t *testing.T, k keysT) {
		scope := scopeOf("a", "order", "k")
		k.start(t, scope, "1", 0)
		require.NoError(t, k.finish(t, scope, 0, nil))
		want := started("1", time.Second)
		want.Fingerprint = "print of 2"
		require.Equal(t, want, k.start(t, scope, "2", time.Second))
	},
	"AnswersGrowOld": func(t *testing.T, k keysT) {
		scope := scopeOf("a", "order", "k")
		k.start(t, scope, "1", 0)
		require.NoError(t, k.finish(t, scope, 0, []byte("old")))
		require.Equal(t, "old", string(k.start(t, scope, "2", 24*time.Hour-time.Microsecond).Answer))
		require.Equal(t, started("2", 24*time.Hour), k.start(t, scope, "2", 24*time.Hour))
	},
	"NeverStarted": func(t *testing.T, k keysT) {
		require.ErrorIs(t, k.finish(t, scopeOf("a", "order", "k"), 0, []byte("x")), healthlab.Precondition)
	},
	"Prune": func(t *testing.T, k keysT) {
		for _, key := range []string{"1", "2", "3"} {
			k.start(t, scopeOf("a", "order", key), key, 0)
			require.NoError(t, k.finish(t, scopeOf("a", "order", key), 0, []byte("x")))
		}
		k.start(t, scopeOf("a", "order", "abandoned"), "4", 0)
		for _, tc := range []struct {
			n     int
			after time.Duration
			want  int
		}{{10, 24*time.Hour - time.Microsecond, 0}, {2, 24 * time.Hour, 2}, {2, 24 * time.Hour, 1}, {2, 24 * time.Hour, 0}, {2, 25 * time.Hour, 1}, {2, 25 * time.Hour, 0}} {
			k.setClock(noon.Add(tc.after))
			n, err := k.PruneKeys(t.Context(), tc.n)
			require.NoError(t, err)
			require.Equal(t, tc.want, n, "at %s", tc.after)
		}
	},
	"OneGetsIt": func(t *testing.T, k keysT) {
		const callers = 16
		var started atomic.Int64
		for _, err := range conformance.Together(callers, func(int) error {
			state, err := k.StartKey(t.Context(), scopeOf("a", "order", "k"), "print of 1", orderID("1"), time.Minute)
			if state.Started {
				started.Add(1)
			}
			return err
		}) {
			require.NoError(t, err)
		}
		require.EqualValues(t, 1, started.Load())
	},
	"ContextEnded": func(t *testing.T, k keysT) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		scope := scopeOf("a", "order", "k")
		_, err := k.StartKey(ctx, scope, "", orderID("1"), time.Minute)
		require.ErrorIs(t, err, context.Canceled)
		require.True(t, k.start(t, scope, "1", 0).Started)
		require.ErrorIs(t, k.FinishKey(ctx, scope, noon.Add(time.Minute), []byte("x"), healthlab.UserID{}, time.Hour), context.Canceled)
		_, err = k.PruneKeys(ctx, 1)
		require.ErrorIs(t, err, context.Canceled)
		require.Nil(t, k.start(t, scope, "1", 0).Answer)
	},
	"LongAnswer": func(t *testing.T, k keysT) {
		scope := scopeOf("a", "order", "k")
		k.start(t, scope, "1", 0)
		long := bytes.Repeat([]byte("0123456789"), 100_000)
		require.NoError(t, k.finish(t, scope, 0, long))
		require.True(t, bytes.Equal(long, k.start(t, scope, "1", 0).Answer))
	},
}
