package orderstest

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/orders"
)

// RunKeys runs the contract of [orders.Keys]. newKeys returns a fresh, empty one.
func RunKeys(t *testing.T, newKeys func(t testing.TB) orders.Keys) {
	for name, run := range conformance.Sorted(orderKeyCases) {
		t.Run(name, func(t *testing.T) { run(t, keysT{newKeys(t)}) })
	}
}

type keysT struct{ orders.Keys }

func (k keysT) start(t *testing.T, scope orders.KeyScope, order string, after time.Duration) orders.KeyState {
	t.Helper()
	now := noon.Add(after)
	state, err := k.StartKey(t.Context(), scope, "print of "+order, orderID(order), now, now.Add(time.Minute))
	require.NoError(t, err)
	return state
}

func (k keysT) finish(t *testing.T, scope orders.KeyScope, started time.Duration, answer []byte) error {
	t.Helper()
	return k.FinishKey(t.Context(), scope, noon.Add(started+time.Minute), answer, healthlab.UserID{}, noon.Add(24*time.Hour))
}

func scopeOf(team, endpoint, key string) orders.KeyScope {
	return orders.KeyScope{Team: conformance.Team(team), Endpoint: endpoint, Key: key}
}

var orderKeyCases = map[string]func(*testing.T, keysT){
	"AnsweredOnce": func(t *testing.T, k keysT) {
		scope := scopeOf("a", "order", "k")
		require.Equal(t, orders.KeyState{Started: true, Order: orderID("1"), Fingerprint: "print of 1"}, k.start(t, scope, "1", 0))
		require.Equal(t, orders.KeyState{Order: orderID("1"), Fingerprint: "print of 1"}, k.start(t, scope, "2", time.Second), "somebody has it")
		answer := []byte{0, 255, '"'}
		require.NoError(t, k.finish(t, scope, 0, answer))
		answer[0] = 'x'
		state := k.start(t, scope, "3", time.Hour)
		require.Equal(t, orders.KeyState{Answer: []byte{0, 255, '"'}, Order: orderID("1"), Fingerprint: "print of 1"}, state, "byte for byte")
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
		for _, scope := range []orders.KeyScope{scopeOf("a", "order", "k"), scopeOf("b", "order", "k"), scopeOf("a", "other", "k"),
			scopeOf("a", "order", "K"), scopeOf("a", "order", "k "), scopeOf("a", "orde", "rk")} {
			require.True(t, k.start(t, scope, "1", 0).Started)
		}
	},
	"LeaseEnds": func(t *testing.T, k keysT) {
		scope := scopeOf("a", "order", "k")
		k.start(t, scope, "1", 0)
		require.False(t, k.start(t, scope, "2", time.Minute-time.Microsecond).Started)
		require.Equal(t, orders.KeyState{Started: true, Order: orderID("1"), Fingerprint: "print of 1"}, k.start(t, scope, "2", time.Minute),
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
		require.Equal(t, orders.KeyState{Started: true, Order: orderID("1"), Fingerprint: "print of 2"}, k.start(t, scope, "2", time.Second))
	},
	"AnswersGrowOld": func(t *testing.T, k keysT) {
		scope := scopeOf("a", "order", "k")
		k.start(t, scope, "1", 0)
		require.NoError(t, k.finish(t, scope, 0, []byte("old")))
		require.Equal(t, "old", string(k.start(t, scope, "2", 24*time.Hour-time.Microsecond).Answer))
		require.Equal(t, orders.KeyState{Started: true, Order: orderID("2"), Fingerprint: "print of 2"}, k.start(t, scope, "2", 24*time.Hour))
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
			n, err := k.PruneKeys(t.Context(), tc.n, noon.Add(tc.after))
			require.NoError(t, err)
			require.Equal(t, tc.want, n, "at %s", tc.after)
		}
	},
	"OneGetsIt": func(t *testing.T, k keysT) {
		const callers = 16
		started := make([]bool, callers)
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() { started[i] = k.start(t, scopeOf("a", "order", "k"), "1", 0).Started })
		}
		wg.Wait()
		n := 0
		for _, s := range started {
			if s {
				n++
			}
		}
		require.Equal(t, 1, n)
	},
	"ContextEnded": func(t *testing.T, k keysT) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		scope := scopeOf("a", "order", "k")
		_, err := k.StartKey(ctx, scope, "", orderID("1"), noon, noon.Add(time.Minute))
		require.ErrorIs(t, err, context.Canceled)
		require.True(t, k.start(t, scope, "1", 0).Started)
		require.ErrorIs(t, k.FinishKey(ctx, scope, noon.Add(time.Minute), []byte("x"), healthlab.UserID{}, noon.Add(time.Hour)), context.Canceled)
		_, err = k.PruneKeys(ctx, 1, noon)
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
