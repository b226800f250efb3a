package accesslog_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/privacy/accesslog"
)

// silentStore does not answer.
type silentStore struct{ accesslog.Store }

func (silentStore) Append(ctx context.Context, _ []accesslog.Entry, _ func()) error {
	<-ctx.Done()
	return ctx.Err()
}

// No caller waits longer for a store that does not answer than its own context says, whether it
// writes the batch or waits for it.
func TestRecord_waitsNoLongerThanItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := accesslog.New(silentStore{}, ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize)), nil)
		require.NoError(t, err)
		const wait = time.Second
		ctx, stop := context.WithTimeout(t.Context(), wait)
		defer stop()
		began := time.Now()
		ended := make(chan error, 3)
		for range cap(ended) {
			go func() {
				ended <- s.Record(ctx, accesslog.Entry{Team: healthlab.TeamID{UUID: uuid.New()}, Operation: "op"})
			}()
		}
		for range cap(ended) {
			require.ErrorIs(t, <-ended, context.DeadlineExceeded)
		}
		require.Equal(t, wait, time.Since(began))
		time.Sleep(time.Minute) // the write ends by itself
	})
}
