package work_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/work"
)

func TestTogether_endsWhenOnePartFails(t *testing.T) {
	waits := func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	}
	broken := errors.New("broken")
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- work.Together(ctx, []work.Part{{Name: "one", Run: waits}, {Name: "two", Run: waits}}) }()
		synctest.Wait()
		require.Empty(t, ended, "it runs until ctx ends")
		stop()
		require.NoError(t, <-ended)
	})
	err := work.Together(t.Context(), []work.Part{{Name: "one", Run: waits}, {Name: "two", Run: func(context.Context) error { return broken }}})
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "two: broken")
}
