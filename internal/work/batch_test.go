package work_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/work"
)

func TestBatch_callsDuringARunShareTheNextRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs [][]int
		b := work.NewBatch(time.Minute, func(_ context.Context, in []int) ([]int, error) {
			runs = append(runs, in)
			time.Sleep(time.Second)
			out := make([]int, len(in))
			for i, n := range in {
				out[i] = 10 * n
			}
			return out, nil
		})
		var calls sync.WaitGroup
		call := func(n int) {
			calls.Go(func() {
				got, err := b.Do(t.Context(), n)
				require.NoError(t, err)
				require.Equal(t, 10*n, got)
			})
		}
		call(1)
		synctest.Wait()
		for n := 2; n < 9; n++ {
			call(n)
		}
		calls.Wait()
		require.Len(t, runs, 2)
		require.Equal(t, []int{1}, runs[0])
		require.ElementsMatch(t, []int{2, 3, 4, 5, 6, 7, 8}, runs[1])
	})
}

func TestBatch_errorIsReturnedToEachCall(t *testing.T) {
	broken := errors.New("broken")
	b := work.NewBatch(time.Minute, func(context.Context, []int) ([]int, error) { return nil, broken })
	for range 2 {
		_, err := b.Do(t.Context(), 1)
		require.ErrorIs(t, err, broken)
	}
}

func TestBatch_runEndsAtItsTimeoutAfterTheCallerLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 2)
		b := work.NewBatch(time.Minute, func(ctx context.Context, in []int) ([]int, error) {
			<-ctx.Done()
			ended <- ctx.Err()
			return in, ctx.Err()
		})
		begun := time.Now()
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		_, err := b.Do(ctx, 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(begun))
		_, err = b.Do(ctx, 2)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, <-ended, context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(begun))
		_, err = b.Do(t.Context(), 3)
		require.ErrorIs(t, err, context.DeadlineExceeded, "the limit of the run")
	})
}
