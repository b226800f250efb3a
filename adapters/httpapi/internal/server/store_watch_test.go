package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
)

const storeTimeout = 6 * time.Second

// pingedStore is a store that hangs, fails or answers.
type pingedStore struct {
	mu            sync.Mutex
	hangs         bool
	err           error
	pings, atOnce int
	most          int // pings at once
}

func (s *pingedStore) set(hangs bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangs, s.err = hangs, err
}

func (s *pingedStore) mostAtOnce() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

func (s *pingedStore) Ping(ctx context.Context) error {
	s.mu.Lock()
	hangs, err := s.hangs, s.err
	s.pings++
	s.atOnce++
	s.most = max(s.most, s.atOnce)
	s.mu.Unlock()
	if hangs {
		<-ctx.Done()
		err = ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.atOnce--
	return err
}

func TestStoreWatch_endsRequestsWhileTheStoreIsUnresponsive(t *testing.T) {
	for _, tt := range []struct {
		name  string
		hangs bool
		err   error
		ends  bool
	}{
		{"answers", false, nil, false},
		{"answers with an error", false, fmt.Errorf("%w: old schema", healthlab.Precondition), false},
		{"hangs", true, nil, true},
		{"is gone", false, fmt.Errorf("%w: refused", healthlab.Unavailable), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &pingedStore{hangs: tt.hangs, err: tt.err}
				w := &server.StoreWatch{Ping: store.Ping, Timeout: storeTimeout, Log: slog.New(slog.DiscardHandler)}
				began := time.Now()
				var requests []context.Context
				for range 50 {
					ctx, free := w.Bound(t.Context())
					defer free()
					requests = append(requests, ctx)
				}
				if !tt.ends {
					time.Sleep(time.Hour)
					for _, ctx := range requests {
						require.NoError(t, ctx.Err(), "it goes on while the store answers")
					}
					require.Equal(t, 1, store.mostAtOnce())
					return
				}
				for _, ctx := range requests {
					<-ctx.Done()
					require.True(t, server.StoreSilent(ctx))
				}
				require.LessOrEqual(t, time.Since(began), storeTimeout)
				synctest.Wait()

				ctx, free := w.Bound(t.Context())
				require.True(t, server.StoreSilent(ctx), "what begins meanwhile ends at once")
				free()
				time.Sleep(5 * time.Minute)
				require.Equal(t, 1, store.mostAtOnce())

				store.set(false, nil)
				time.Sleep(storeTimeout/2 + time.Second) // the ping that hangs, and the next
				ctx, free = w.Bound(t.Context())
				defer free()
				require.NoError(t, ctx.Err())
				time.Sleep(time.Hour)
				require.NoError(t, ctx.Err())
			})
		})
	}
}

// Requests that end in time ask the store nothing, and hold nothing after it.
func TestStoreWatch_doesNotPingForFastRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &pingedStore{hangs: true}
		w := &server.StoreWatch{Ping: store.Ping, Timeout: storeTimeout, Log: slog.New(slog.DiscardHandler)}
		for range 100 {
			ctx, free := w.Bound(t.Context())
			time.Sleep(storeTimeout/2 - time.Millisecond)
			require.NoError(t, ctx.Err())
			free()
			require.False(t, server.StoreSilent(ctx))
		}
		require.Zero(t, store.pings)
	})
}

func TestStoreWatch_withoutPingEndsNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, free := (&server.StoreWatch{Timeout: storeTimeout}).Bound(t.Context())
		defer free()
		time.Sleep(time.Hour)
		require.NoError(t, ctx.Err())
	})
}
