package continuous_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/continuous"
)

// A task reads data once its access is recorded, and is tried again otherwise.
func TestTask_recordsAccessBeforeItReadsData(t *testing.T) {
	w := newWatch(t.Context(), t, nil)
	ask, err := aggregate.New(w.health, nil)
	require.NoError(t, err)
	var tasks []continuous.Task
	fault := errors.New("not recorded")
	w.Service, err = continuous.New(ask, w.store.Continuous(), w.store.ContinuousWork(), &continuous.Options{
		Now: func() time.Time { return w.now },
		Accessed: func(_ context.Context, task continuous.Task) error {
			tasks = append(tasks, task)
			return fault
		},
	})
	require.NoError(t, err)
	q := w.create("steps", stepsPerDay())
	w.measure(stepsKey, walked("2026-03-01T08:00:00Z", 5))
	list, err := w.Claim(w.ctx, 1)
	require.NoError(t, err)
	require.ErrorIs(t, w.Do(w.ctx, list[0]), fault)
	require.Equal(t, q.ID, tasks[0].Query)
	require.NotContains(t, w.table("steps"), "5")

	fault = nil
	w.now = w.now.Add(time.Hour)
	require.Equal(t, 1, w.work())
	require.Contains(t, w.table("steps"), "5")
}
