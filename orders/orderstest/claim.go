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

// claimCall is a method of a store that claims due orders.
type claimCall = func(ctx context.Context, n int, now time.Time, lease time.Duration) ([]orders.Record, error)

// callersClocks tests that the lease of a claimed order ends by the store's clock. The store has one order, which has
// been due for two hours; the clocks of the callers are an hour fast and an hour slow.
func callersClocks(t *testing.T, setClock func(time.Time), claim claimCall) {
	t.Helper()
	fast, slow := noon.Add(time.Hour), noon.Add(-time.Hour)
	claims := func(now time.Time, want int) {
		t.Helper()
		got, err := claim(t.Context(), 10, now, time.Minute)
		require.NoError(t, err)
		require.Len(t, got, want)
	}
	for i, first := range []time.Time{fast, slow} {
		at := noon.Add(time.Duration(i) * time.Minute)
		setClock(at)
		claims(first, 1)
		setClock(at.Add(time.Minute - time.Microsecond))
		claims(fast, 0)
		claims(slow, 0)
	}
}

// earlierWhileLeased tests an order that becomes due earlier while a process has its lease: it can be claimed only
// after the process releases the lease. The functions earlier and free edit the order in these two ways.
func earlierWhileLeased(t *testing.T, s orders.Store, r orders.Record, claim claimCall, earlier, free func(*orders.Record)) {
	t.Helper()
	for i, tc := range []struct {
		edit func(*orders.Record)
		want int
	}{{func(*orders.Record) {}, 1}, {earlier, 0}, {free, 1}} {
		_, err := s.Update(t.Context(), r.TeamID, r.ID, edits(tc.edit))
		require.NoError(t, err)
		got, err := claim(t.Context(), 10, noon, time.Minute)
		require.NoError(t, err)
		require.Len(t, got, tc.want, "claim %d", i)
	}
}

var orderClaimCases = map[string]func(*testing.T, *ordersT){
	"LongestDueFirst": func(t *testing.T, s *ordersT) {
		now, until := noon, noon.Add(time.Minute)
		late, early := s.due(t, "late", now), s.due(t, "early", now.Add(-time.Hour))
		s.due(t, "future", now.Add(time.Microsecond))
		s.due(t, "never", time.Time{})
		got, err := s.Claim(t.Context(), 10, now, time.Minute)
		require.NoError(t, err)
		require.Equal(t, []orders.OrderID{early.ID, late.ID}, claimed(got))
		require.True(t, got[0].Lab.Due.Equal(early.Lab.Due))
		require.True(t, got[0].Lab.Lease.Equal(until))
		require.Equal(t, 1, got[0].Lab.Attempts)
		require.True(t, got[0].Lab.Started)
		require.Equal(t, early.Revision, got[0].Revision, "not a new revision")
		kept, err := s.Get(t.Context(), early.TeamID, early.ID)
		require.NoError(t, err)
		requireRecord(t, got[0], kept)
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
		s.due(t, "never", now.Add(-time.Hour)) // only its work for the lab is due
		got, err := s.ClaimNotifications(t.Context(), 10, now, time.Minute)
		require.NoError(t, err)
		require.Equal(t, []orders.OrderID{early.ID, late.ID}, claimed(got))
		require.True(t, got[0].Notifications.Due.Equal(early.Notifications.Due))
		require.True(t, got[0].Notifications.Lease.Equal(until))
		require.Equal(t, early.Revision, got[0].Revision, "not a new revision")
		require.Zero(t, got[0].Lab.Attempts, "the lab is not told")
		kept, err := s.Get(t.Context(), early.TeamID, early.ID)
		require.NoError(t, err)
		requireRecord(t, got[0], kept)
		got, err = s.ClaimNotifications(t.Context(), 10, now, time.Minute)
		require.NoError(t, err)
		require.Empty(t, got)
		s.setClock(until)
		got, err = s.ClaimNotifications(t.Context(), 1, now, time.Minute)
		require.NoError(t, err)
		require.Len(t, got, 1)
	},
	"AtMostN": func(t *testing.T, s *ordersT) {
		for i := range 5 {
			s.due(t, fmt.Sprint(i), noon)
		}
		got, err := s.Claim(t.Context(), 2, noon, time.Minute)
		require.NoError(t, err)
		require.Len(t, got, 2)
	},
	"LeaseEnds": func(t *testing.T, s *ordersT) {
		s.due(t, "1", noon)
		for i, tc := range []struct {
			now  time.Duration
			want int
		}{{0, 1}, {0, 0}, {59 * time.Second, 0}, {time.Minute, 1}} {
			s.setClock(noon.Add(tc.now))
			got, err := s.Claim(t.Context(), 10, noon, time.Minute)
			require.NoError(t, err)
			require.Len(t, got, tc.want, "claim %d", i)
		}
		s.setClock(noon.Add(time.Hour))
		got, err := s.Claim(t.Context(), 10, noon, time.Hour)
		require.NoError(t, err)
		require.Equal(t, 3, got[0].Lab.Attempts)
	},
	"CallersClocks": func(t *testing.T, s *ordersT) {
		s.due(t, "1", noon.Add(-2*time.Hour))
		callersClocks(t, s.setClock, s.Claim)
	},
	"CallersClocksOfNotifications": func(t *testing.T, s *ordersT) {
		r := newRecord("a", "1")
		r.Notifications.Due = noon.Add(-2 * time.Hour)
		s.place(t, r)
		callersClocks(t, s.setClock, s.ClaimNotifications)
	},
	"EarlierWhileLeased": func(t *testing.T, s *ordersT) {
		earlierWhileLeased(t, s, s.due(t, "1", noon), s.Claim, func(r *orders.Record) { r.Lab.Due = noon.Add(-time.Hour) },
			func(r *orders.Record) { r.Lab.Lease = time.Time{} })
	},
	"NotificationsEarlierWhileLeased": func(t *testing.T, s *ordersT) {
		r := newRecord("a", "1")
		r.Notifications.Due = noon
		earlierWhileLeased(t, s, s.place(t, r), s.ClaimNotifications, func(r *orders.Record) { r.Notifications.Due = noon.Add(-time.Hour) },
			func(r *orders.Record) { r.Notifications.Lease = time.Time{} })
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
					list, err := s.Claim(t.Context(), 3, noon, time.Hour)
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
		_, err := s.Claim(ctx, 1, noon, time.Hour)
		require.ErrorIs(t, err, context.Canceled)
		got, err := s.Claim(t.Context(), 1, noon, time.Hour)
		require.NoError(t, err)
		require.Len(t, got, 1)
	},
}

var orderFeedCases = map[string]func(*testing.T, *ordersT){
	"OneReader": func(t *testing.T, s *ordersT) {
		cursor, until, err := s.ClaimFeed(t.Context(), "northlab", time.Minute)
		require.NoError(t, err)
		require.Equal(t, noon.Add(time.Minute), until)
		require.Empty(t, cursor)
		_, other, err := s.ClaimFeed(t.Context(), "northlab", time.Minute)
		require.NoError(t, err)
		require.Zero(t, other, "another process has it")
		_, other, err = s.ClaimFeed(t.Context(), "southlab", time.Minute)
		require.NoError(t, err)
		require.NotZero(t, other, "another lab's feed is free")
		require.NoError(t, s.MoveFeed(t.Context(), "northlab", until, "c1"))
		cursor, until, err = s.ClaimFeed(t.Context(), "northlab", time.Minute)
		require.NoError(t, err)
		require.NotZero(t, until, "given back")
		require.Equal(t, "c1", cursor)
	},
	"LeaseEnds": func(t *testing.T, s *ordersT) {
		_, first, err := s.ClaimFeed(t.Context(), "northlab", time.Minute)
		require.NoError(t, err)
		s.setClock(first.Add(-time.Microsecond))
		_, second, err := s.ClaimFeed(t.Context(), "northlab", time.Hour)
		require.NoError(t, err)
		require.Zero(t, second)
		s.setClock(first)
		_, second, err = s.ClaimFeed(t.Context(), "northlab", time.Hour)
		require.NoError(t, err)
		require.Equal(t, first.Add(time.Hour), second)
		require.ErrorIs(t, s.MoveFeed(t.Context(), "northlab", first, "stale"), healthlab.Precondition)
		require.NoError(t, s.MoveFeed(t.Context(), "northlab", second, "c1"))
		cursor, _, err := s.ClaimFeed(t.Context(), "northlab", time.Minute)
		require.NoError(t, err)
		require.Equal(t, "c1", cursor)
	},
	"NeverClaimed": func(t *testing.T, s *ordersT) {
		require.ErrorIs(t, s.MoveFeed(t.Context(), "northlab", noon, "c"), healthlab.Precondition)
	},
}
