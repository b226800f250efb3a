package work_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/work"
)

func TestGrace_endsAFixedTimeAfterTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, gone := context.WithCancel(t.Context())
		late, end := work.Grace(ctx, 3*time.Second)
		defer end()
		time.Sleep(time.Hour)
		require.NoError(t, late.Err(), "no limit while the context has not ended")
		gone()
		time.Sleep(3*time.Second - 1)
		require.NoError(t, late.Err())
		time.Sleep(2 * time.Nanosecond)
		synctest.Wait()
		require.Error(t, late.Err())

		ended, stop := work.Grace(t.Context(), time.Second)
		stop()
		require.Error(t, ended.Err())
	})
}
