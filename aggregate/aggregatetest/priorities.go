package aggregatetest

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/internal/conformance"
)

// RunPriorityStore runs the contract tests of [aggregate.PriorityStore] on a store that stores the continuous
// queries too. All cases share one store, and each case has teams of its own.
func RunPriorityStore(t *testing.T, store aggregate.PriorityStore, h ContinuousHarness) {
	for name, run := range conformance.Sorted(priorityCases) {
		t.Run(name, func(t *testing.T) { run(prioT{contT{t, h}, store}) })
	}
}

// prioT is one subtest.
type prioT struct {
	contT
	prefer aggregate.PriorityStore
}

var someOf = []aggregate.Priority{{Provider: "acme_band", Number: -3}, {Provider: "acme_ring", Number: 7}, {Provider: "acme_band", Data: "sleep", Number: 2}}

func (t prioT) set(team healthlab.TeamID, list ...aggregate.Priority) []aggregate.Priority {
	t.Helper()
	got, err := t.prefer.UpdatePriorities(t.Context(), team, func([]aggregate.Priority) ([]aggregate.Priority, error) { return list, nil })
	require.NoError(t, err)
	return got
}

func (t prioT) get(team healthlab.TeamID) []aggregate.Priority {
	t.Helper()
	list, err := t.prefer.Priorities(t.Context(), team)
	require.NoError(t, err)
	return list
}

// backfilled returns the number of tasks that were scheduled for existing users.
func (t prioT) backfilled() (n int) {
	t.Helper()
	for {
		k, err := t.Work.Backfill(t.Context(), 100)
		require.NoError(t, err)
		if n += k; k == 0 {
			return n
		}
	}
}

var priorityCases = map[string]func(t prioT){
	"RoundTrip": func(t prioT) {
		one, two := conformance.NewTeam(), conformance.NewTeam()
		require.Empty(t, t.get(one))
		require.Equal(t, someOf, t.set(one, someOf[2], someOf[1], someOf[0]), "sorted")
		require.Equal(t, someOf, t.get(one))
		require.Empty(t, t.get(two))
		require.Equal(t, someOf[:1], t.set(one, someOf[0]))
		require.Equal(t, someOf[:1], t.get(one))
	},
	"Refused": func(t prioT) {
		team := conformance.NewTeam()
		t.set(team, someOf...)
		own := errors.New("own")
		for _, c := range []struct {
			list []aggregate.Priority
			err  error
			want error
		}{
			{nil, own, own},
			{[]aggregate.Priority{someOf[0], someOf[1], someOf[0]}, nil, healthlab.Invalid},
			{[]aggregate.Priority{{Provider: "a\x00"}}, nil, healthlab.Invalid},
		} {
			_, err := t.prefer.UpdatePriorities(t.Context(), team, func([]aggregate.Priority) ([]aggregate.Priority, error) { return c.list, c.err })
			require.ErrorIs(t, err, c.want)
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		_, err := t.prefer.UpdatePriorities(ctx, team, func([]aggregate.Priority) ([]aggregate.Priority, error) { panic("called") })
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, someOf, t.get(team))
	},
	"Aliasing": func(t prioT) {
		team := conformance.NewTeam()
		list := append([]aggregate.Priority(nil), someOf...)
		t.set(team, list...)
		list[0].Number = 99
		t.get(team)[1].Number = 99
		_, err := t.prefer.UpdatePriorities(t.Context(), team, func(old []aggregate.Priority) ([]aggregate.Priority, error) {
			old[0].Number = 99
			return nil, conformance.ErrRefused
		})
		require.ErrorIs(t, err, conformance.ErrRefused)
		require.Equal(t, someOf, t.get(team))
	},
	"NoLostUpdates": func(t prioT) {
		team := conformance.NewTeam()
		wins := conformance.Successes(conformance.Together(8, func(i int) error {
			_, err := t.prefer.UpdatePriorities(t.Context(), team, func(old []aggregate.Priority) ([]aggregate.Priority, error) {
				return append(old, aggregate.Priority{Provider: string(rune('a' + i)), Number: i}), nil
			})
			return err
		}))
		require.Positive(t, wins)
		require.Len(t, t.get(team), wins)
	},
	"ChangesMakeTablesAnew": func(t prioT) {
		team, other := conformance.NewTeam(), conformance.NewTeam()
		ann, bob, eve := t.user(team), t.user(team), t.user(other)
		t.remove(bob)
		q, old, foreign := t.insert(contQuery(team, "a")), t.insert(contQuery(team, "b")), t.insert(contQuery(other, "a"))
		t.archive(old)
		require.Equal(t, 2, t.backfilled())
		t.drain()
		t.set(team, someOf...)
		require.Equal(t, 1, t.backfilled(), "one user, one active query")
		tasks := t.drain()
		require.Len(t, tasks, 1)
		require.Equal(t, q.ID, tasks[0].Query)
		require.Equal(t, ann.ID, tasks[0].User)
		require.Equal(t, aggregate.Always, tasks[0].Range)
		t.set(team, someOf...)
		require.Zero(t, t.backfilled(), "nothing is different")
		t.set(other, someOf...)
		require.Equal(t, 1, t.backfilled())
		tasks = t.drain()
		require.Equal(t, foreign.ID, tasks[0].Query)
		require.Equal(t, eve.ID, tasks[0].User)
	},
}
