package orderstest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
)

// due stores an order whose lab is to be told at an instant; zero means never.
func (s *ordersT) due(t *testing.T, name string, at time.Time) orders.Record {
	t.Helper()
	r := newRecord("a", name)
	r.Lab.Due = at
	return s.place(t, r)
}

func claimed(list []orders.Record) []orders.OrderID {
	out := make([]orders.OrderID, 0, len(list))
	for _, r := range list {
		out = append(out, r.ID)
	}
	return out
}

var orderClaimCases = map[string]func(*testing.T, *ordersT){
	"LongestDueFirst": func(t *testing.T, s *ordersT) {
		now, until := noon, noon.Add(time.Minute)
		late, early := s.due(t, "late", now), s.due(t, "early", now.Add(-time.Hour))
		s.due(t, "future", now.Add(time.Microsecond))
		s.due(t, "never", time.Time{})
		got, err := s.Claim(t.Context(), 10, now, until)
		require.NoError(t, err)
		require.Equal(t, []orders.OrderID{early.ID, late.ID}, claimed(got))
		require.True(t, got[0].Lab.Due.Equal(until))
		require.True(t, got[0].Lab.Lease.Equal(until))
		require.Equal(t, 1, got[0].Lab.Attempts)
		require.True(t, got[0].Lab.Started)
		require.Equal(t, early.Revision, got[0].Revision, "not a new revision")
		kept, err := s.Get(t.Context(), early.TeamID, early.ID)
		require.NoError(t, err)
		sameRecord(t, got[0], kept)
	},
	"Notifications": func(t *testing.T, s *ordersT) {
		now, until := noon, noon.Add(time.Minute)
		later := func(name string, at time.Time) orders.Record {
			r := newRecord("a", name)
			r.Notifications.Due, r.Notifications.Notify = at, true
			return s.place(t, r)
		}
		late, early := later("late", now), later("early", now.Add(-time.Hour))
		later("future", now.Add(time.Microsecond))
		s.due(t, "never", now.Add(-time.Hour)) // the lab is, and nothing else
		got, err := s.ClaimNotifications(t.Context(), 10, now, until)
		require.NoError(t, err)
		require.Equal(t, []orders.OrderID{early.ID, late.ID}, claimed(got))
		require.True(t, got[0].Notifications.Due.Equal(until))
		require.Equal(t, early.Revision, got[0].Revision, "not a new revision")
		require.Zero(t, got[0].Lab.Attempts, "the lab is not told")
		kept, err := s.Get(t.Context(), early.TeamID, early.ID)
		require.NoError(t, err)
		sameRecord(t, got[0], kept)
		got, err = s.ClaimNotifications(t.Context(), 10, now, until)
		require.NoError(t, err)
		require.Empty(t, got)
		got, err = s.ClaimNotifications(t.Context(), 1, until, until.Add(time.Minute))
		require.NoError(t, err)
		require.Len(t, got, 1)
	},
	"AtMostN": func(t *testing.T, s *ordersT) {
		for i := range 5 {
			s.due(t, fmt.Sprint(i), noon)
		}
		got, err := s.Claim(t.Context(), 2, noon, noon.Add(time.Minute))
		require.NoError(t, err)
		require.Len(t, got, 2)
	},
	"LeaseEnds": func(t *testing.T, s *ordersT) {
		s.due(t, "1", noon)
		for i, tc := range []struct {
			now  time.Duration
			want int
		}{{0, 1}, {0, 0}, {59 * time.Second, 0}, {time.Minute, 1}} {
			now := noon.Add(tc.now)
			got, err := s.Claim(t.Context(), 10, now, now.Add(time.Minute))
			require.NoError(t, err)
			require.Len(t, got, tc.want, "claim %d", i)
		}
		got, err := s.Claim(t.Context(), 10, noon.Add(time.Hour), noon.Add(2*time.Hour))
		require.NoError(t, err)
		require.Equal(t, 3, got[0].Lab.Attempts)
	},
	"NobodyTwice": func(t *testing.T, s *ordersT) {
		const all = 40
		for i := range all {
			s.due(t, fmt.Sprint(i), noon)
		}
		var mu sync.Mutex
		var got []orders.OrderID
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range all {
					list, err := s.Claim(t.Context(), 3, noon, noon.Add(time.Hour))
					mu.Lock()
					got = append(got, claimed(list)...)
					if err != nil {
						t.Error(err)
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		require.Len(t, got, all)
		slices.SortFunc(got, func(a, b orders.OrderID) int { return strings.Compare(a.String(), b.String()) })
		require.Len(t, slices.Compact(got), all)
	},
	"ContextEnded": func(t *testing.T, s *ordersT) {
		s.due(t, "1", noon)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := s.Claim(ctx, 1, noon, noon.Add(time.Hour))
		require.ErrorIs(t, err, context.Canceled)
		got, err := s.Claim(t.Context(), 1, noon, noon.Add(time.Hour))
		require.NoError(t, err)
		require.Len(t, got, 1)
	},
}

var orderFeedCases = map[string]func(*testing.T, *ordersT){
	"OneReader": func(t *testing.T, s *ordersT) {
		until := noon.Add(time.Minute)
		cursor, ok, err := s.ClaimFeed(t.Context(), "northlab", noon, until)
		require.NoError(t, err)
		require.True(t, ok)
		require.Empty(t, cursor)
		_, ok, err = s.ClaimFeed(t.Context(), "northlab", noon, until)
		require.NoError(t, err)
		require.False(t, ok, "somebody has it")
		_, ok, err = s.ClaimFeed(t.Context(), "southlab", noon, until)
		require.NoError(t, err)
		require.True(t, ok, "another lab's feed is free")
		require.NoError(t, s.MoveFeed(t.Context(), "northlab", until, "c1"))
		cursor, ok, err = s.ClaimFeed(t.Context(), "northlab", noon, until)
		require.NoError(t, err)
		require.True(t, ok, "given back")
		require.Equal(t, "c1", cursor)
	},
	"LeaseEnds": func(t *testing.T, s *ordersT) {
		first, second := noon.Add(time.Minute), noon.Add(time.Hour)
		_, _, err := s.ClaimFeed(t.Context(), "northlab", noon, first)
		require.NoError(t, err)
		_, ok, err := s.ClaimFeed(t.Context(), "northlab", first, second)
		require.NoError(t, err)
		require.True(t, ok)
		require.ErrorIs(t, s.MoveFeed(t.Context(), "northlab", first, "stale"), healthlab.Precondition)
		require.NoError(t, s.MoveFeed(t.Context(), "northlab", second, "c1"))
		cursor, _, err := s.ClaimFeed(t.Context(), "northlab", second, second.Add(time.Minute))
		require.NoError(t, err)
		require.Equal(t, "c1", cursor)
	},
	"NeverClaimed": func(t *testing.T, s *ordersT) {
		require.ErrorIs(t, s.MoveFeed(t.Context(), "northlab", noon, "c"), healthlab.Precondition)
	},
}
