package bulktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/linking/bulk"
)

// submitOp submits an operation for users that starts and is due at an instant. Its fields are not zero, except times
// that mean never.
func (h StoreHarness) submitOp(t *testing.T, team, name string, at time.Time, users ...healthlab.UserID) bulk.Op {
	t.Helper()
	op := bulk.Op{
		ID: conformance.Named(team + name), Team: conformance.Team(team), Type: bulk.HistoricalTrigger, Provider: "acme " + team, Status: bulk.InProgress,
		Total: len(users), Next: 1, Failed: 2, StartedAt: at, Due: at, Fence: 3,
	}
	require.NoError(t, h.Bulk.Submit(t.Context(), op, bulkItems(users...)))
	return op
}

func bulkItems(users ...healthlab.UserID) (out []bulk.Item) {
	for i, u := range users {
		out = append(out, bulk.Item{N: i, User: u})
	}
	return out
}

func (h StoreHarness) requireOp(t *testing.T, want bulk.Op) {
	t.Helper()
	got, err := h.Bulk.Op(t.Context(), want.Team, want.ID)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// claimForTeam sets the store's clock to an instant, claims all due operations, and returns those of one team.
func (h StoreHarness) claimForTeam(t *testing.T, team string, at time.Time) (out []bulk.Op) {
	t.Helper()
	h.SetClock(at)
	all, err := h.Bulk.Claim(t.Context(), 1000, at, time.Minute)
	require.NoError(t, err)
	for _, op := range all {
		if op.Team == conformance.Team(team) {
			out = append(out, op)
		}
	}
	return out
}

func (h StoreHarness) change(t *testing.T, op bulk.Op, change func(*bulk.Op)) bulk.Op {
	t.Helper()
	got, err := h.Bulk.UpdateOp(t.Context(), op.Team, op.ID, func(op *bulk.Op) error {
		change(op)
		return nil
	})
	require.NoError(t, err)
	return got
}

var bulkOpCases = map[string]func(t *testing.T, h StoreHarness, x string){
	"OpRoundTrip": func(t *testing.T, h StoreHarness, x string) {
		ann, bob, cyd := conformance.User(x+"ann"), conformance.User(x+"bob"), conformance.User(x+"cyd")
		op := h.submitOp(t, x, "op", noon.In(time.FixedZone("x", 3600)).Add(123*time.Nanosecond), ann, bob, cyd)
		op.StartedAt, op.Due = noon, noon
		h.requireOp(t, op)
		for _, running := range [][]healthlab.UserID{{ann, cyd}, {bob, cyd}, nil} {
			got := h.change(t, op, func(op *bulk.Op) {
				*op = bulk.Op{
					Status: bulk.Failure, Next: 7, Failed: 8, Running: running,
					EndedAt: noon.Add(time.Hour), Due: noon.Add(time.Minute), Lease: noon.Add(2 * time.Minute), Fence: 9,
				}
			})
			want := bulk.Op{
				ID: op.ID, Team: op.Team, Type: op.Type, Provider: op.Provider, Total: 3, StartedAt: noon, Status: bulk.Failure, Next: 7, Failed: 8,
				Running: running, EndedAt: noon.Add(time.Hour), Due: noon.Add(time.Minute), Lease: noon.Add(2 * time.Minute), Fence: 9,
			}
			require.Equal(t, want, got)
			h.requireOp(t, want)
		}
	},
	"OpRefused": func(t *testing.T, h StoreHarness, x string) {
		op := h.submitOp(t, x, "op", noon, conformance.User(x+"ann"))
		require.ErrorIs(t, h.Bulk.Submit(t.Context(), op, nil), healthlab.Conflict)
		foreign := op
		foreign.Team = conformance.Team(x + "b")
		require.ErrorIs(t, h.Bulk.Submit(t.Context(), foreign, nil), healthlab.Conflict)
		for _, spoil := range []func(*bulk.Op){
			func(op *bulk.Op) { op.ID = uuid.Nil },
			func(op *bulk.Op) { op.Team = healthlab.TeamID{} },
			func(op *bulk.Op) { op.Provider = "a\x00b" },
		} {
			bad := op
			bad.ID = conformance.Named(x + "bad")
			spoil(&bad)
			require.ErrorIs(t, h.Bulk.Submit(t.Context(), bad, nil), healthlab.Invalid)
		}
	},
	"OpOtherTeam": func(t *testing.T, h StoreHarness, x string) {
		op := h.submitOp(t, x, "op", noon, conformance.User(x+"ann"))
		other := conformance.Team(x + "b")
		_, err := h.Bulk.Op(t.Context(), other, op.ID)
		require.ErrorIs(t, err, healthlab.NotFound)
		_, err = h.Bulk.UpdateOp(t.Context(), other, op.ID, func(*bulk.Op) error { panic("called") })
		require.ErrorIs(t, err, healthlab.NotFound)
		items, err := h.Bulk.Items(t.Context(), other, op.ID, 0, 10)
		require.NoError(t, err)
		require.Empty(t, items)
		list, err := h.Bulk.Ops(t.Context(), other, bulk.ListPosition{}, 10)
		require.NoError(t, err)
		require.Empty(t, list)
	},
	"OpErrorWritesNothing": func(t *testing.T, h StoreHarness, x string) {
		op := h.submitOp(t, x, "op", noon, conformance.User(x+"ann"))
		own := errors.New("own")
		_, err := h.Bulk.UpdateOp(t.Context(), op.Team, op.ID, func(op *bulk.Op) error {
			op.Next = 99
			return own
		})
		require.ErrorIs(t, err, own)
		h.requireOp(t, op)
	},
	"Items": func(t *testing.T, h StoreHarness, x string) {
		var users []healthlab.UserID
		for _, name := range []string{"ann", "bob", "cyd"} {
			users = append(users, conformance.User(x+name))
		}
		op := h.submitOp(t, x, "op", noon, users...)
		for from, want := range [][]bulk.Item{
			0: {{N: 0, User: users[0]}, {N: 1, User: users[1]}}, 1: {{N: 1, User: users[1]}, {N: 2, User: users[2]}}, 2: {{N: 2, User: users[2]}}, 3: nil,
		} {
			t.Run(fmt.Sprint("from ", from), func(t *testing.T) {
				got, err := h.Bulk.Items(t.Context(), op.Team, op.ID, from, 2)
				require.NoError(t, err)
				require.Equal(t, want, got)
			})
		}
	},
	"Claims": func(t *testing.T, h StoreHarness, x string) {
		at := noon.Add(time.Hour)
		op := h.submitOp(t, x, "op", at, conformance.User(x+"ann"))
		require.Empty(t, h.claimForTeam(t, x, at.Add(-time.Microsecond)), "not due")
		got := h.claimForTeam(t, x, at)
		op.Lease, op.Fence = at.Add(time.Minute), 4
		require.Equal(t, []bulk.Op{op}, got)
		require.Empty(t, h.claimForTeam(t, x, at.Add(59*time.Second)), "leased")
		op.Lease, op.Fence = at.Add(2*time.Minute), 5
		require.Equal(t, []bulk.Op{op}, h.claimForTeam(t, x, at.Add(time.Minute)))
		h.change(t, op, func(op *bulk.Op) { op.Status, op.Lease = bulk.Success, time.Time{} })
		require.Empty(t, h.claimForTeam(t, x, at.Add(time.Hour)), "over")
	},
	"CallersClocks": func(t *testing.T, h StoreHarness, x string) {
		op := h.submitOp(t, x, "op", noon.Add(-2*time.Hour), conformance.User(x+"ann"))
		fast, slow := noon.Add(time.Hour), noon.Add(-time.Hour)
		claims := func(now time.Time, want bool) {
			t.Helper()
			all, err := h.Bulk.Claim(t.Context(), 1000, now, time.Minute)
			require.NoError(t, err)
			require.Equal(t, want, slices.ContainsFunc(all, func(o bulk.Op) bool { return o.ID == op.ID }))
		}
		for i, first := range []time.Time{fast, slow} {
			at := noon.Add(time.Duration(i) * time.Minute)
			h.SetClock(at)
			claims(first, true)
			h.SetClock(at.Add(time.Minute - time.Microsecond))
			claims(fast, false)
			claims(slow, false)
		}
	},
	"OneAfterAnother": func(t *testing.T, h StoreHarness, x string) {
		first := h.submitOp(t, x, "first", noon, conformance.User(x+"ann"))
		second := h.submitOp(t, x, "second", noon.Add(time.Second), conformance.User(x+"ann"))
		elsewhere := second
		elsewhere.ID, elsewhere.Provider = conformance.Named(x+"elsewhere"), "another "+x
		require.NoError(t, h.Bulk.Submit(t.Context(), elsewhere, nil))
		at := noon.Add(time.Minute)
		got := h.claimForTeam(t, x, at)
		require.Len(t, got, 2)
		require.Equal(t, []uuid.UUID{first.ID, elsewhere.ID}, []uuid.UUID{got[0].ID, got[1].ID}, "the longest due first")
		require.Empty(t, h.claimForTeam(t, x, at), "the first is under way")
		h.change(t, first, func(op *bulk.Op) { op.Status = bulk.Success })
		got = h.claimForTeam(t, x, at)
		require.Len(t, got, 1)
		require.Equal(t, second.ID, got[0].ID)
	},
	"List": func(t *testing.T, h StoreHarness, x string) {
		a, b := h.submitOp(t, x, "a", noon), h.submitOp(t, x, "b", noon.Add(time.Second))
		c := h.submitOp(t, x, "c", noon.Add(2*time.Second))
		for name, page := range conformance.Sorted(map[string]struct {
			before bulk.ListPosition
			n      int
			want   []bulk.Op
		}{
			"first page":     {bulk.ListPosition{}, 2, []bulk.Op{c, b}},
			"last page":      {bulk.ListPosition{StartedAt: b.StartedAt, ID: b.ID}, 2, []bulk.Op{a}},
			"after the last": {bulk.ListPosition{StartedAt: a.StartedAt, ID: a.ID}, 2, nil},
			"no operations":  {bulk.ListPosition{}, 0, nil},
		}) {
			t.Run(name, func(t *testing.T) {
				got, err := h.Bulk.Ops(t.Context(), conformance.Team(x), page.before, page.n)
				require.NoError(t, err)
				if len(page.want) == 0 {
					require.Empty(t, got)
					return
				}
				require.Equal(t, page.want, got)
			})
		}
	},
	"Prune": func(t *testing.T, h StoreHarness, x string) {
		then := noon.AddDate(-20, 0, 0) // no other case has operations from that time
		over := func(name string, status bulk.Status, at time.Time) bulk.Op {
			op := h.submitOp(t, x, name, then.Add(-time.Hour), conformance.User(x+"ann"), conformance.User(x+"bob"))
			return h.change(t, op, func(op *bulk.Op) { op.Status, op.EndedAt = status, at })
		}
		third, first := over("third", bulk.Failure, then), over("first", bulk.Success, then.Add(-time.Second))
		second, kept := over("second", bulk.Aborted, then.Add(-time.Microsecond)), over("kept", bulk.Success, then.Add(time.Second))
		still, never := over("still", bulk.InProgress, then.Add(-time.Hour)), over("never", bulk.Success, time.Time{})
		there := func() (out []bulk.Op) {
			for _, op := range []bulk.Op{first, second, third, kept, still, never} {
				got, err := h.Bulk.Op(t.Context(), op.Team, op.ID)
				items, noItems := h.Bulk.Items(t.Context(), op.Team, op.ID, 0, 10)
				require.NoError(t, noItems)
				if err == nil {
					require.Equal(t, op, got)
					require.Len(t, items, 2)
					out = append(out, op)
					continue
				}
				require.ErrorIs(t, err, healthlab.NotFound)
				require.Empty(t, items)
			}
			return out
		}
		prune := func(n, want int, before time.Time) {
			got, err := h.Bulk.Prune(t.Context(), n, before)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		prune(0, 0, then)
		require.Len(t, there(), 6)
		prune(1, 1, then)
		require.Equal(t, []bulk.Op{second, third, kept, still, never}, there(), "what ended first")
		prune(10, 1, then)
		require.Equal(t, []bulk.Op{third, kept, still, never}, there(), "that instant is not before itself")
		prune(10, 1, then.Add(time.Second))
		require.Equal(t, []bulk.Op{kept, still, never}, there())
		list, err := h.Bulk.Ops(t.Context(), conformance.Team(x), bulk.ListPosition{}, 10)
		require.NoError(t, err)
		require.Len(t, list, 3)
		ctx, stop := context.WithCancel(t.Context())
		stop()
		_, err = h.Bulk.Prune(ctx, 10, noon)
		require.ErrorIs(t, err, context.Canceled)
		require.Len(t, there(), 3)
		again := h.submitOp(t, x, "first", then, conformance.User(x+"ann")) // its id is free
		h.requireOp(t, again)
	},
	"ItemsGoWithTheirUser": func(t *testing.T, h StoreHarness, x string) {
		ann, bob := h.Linking.AddUser(t, x, x+"ann"), h.Linking.AddUser(t, x, x+"bob")
		op := h.submitOp(t, x, "op", noon, ann, bob)
		op = h.change(t, op, func(op *bulk.Op) { op.Running = []healthlab.UserID{ann, bob} })
		h.Linking.EraseUser(t, x, ann)
		items, err := h.Bulk.Items(t.Context(), op.Team, op.ID, 0, 10)
		require.NoError(t, err)
		require.Equal(t, []bulk.Item{{N: 1, User: bob}}, items)
		op.Running = []healthlab.UserID{bob}
		h.requireOp(t, op)
	},
	"OpEnded": func(t *testing.T, h StoreHarness, x string) {
		op := h.submitOp(t, x, "op", noon, conformance.User(x+"ann"))
		ctx, stop := context.WithCancel(t.Context())
		stop()
		again := op
		again.ID = conformance.Named(x + "again")
		require.ErrorIs(t, h.Bulk.Submit(ctx, again, nil), context.Canceled)
		_, err := h.Bulk.UpdateOp(ctx, op.Team, op.ID, func(*bulk.Op) error { panic("called") })
		require.ErrorIs(t, err, context.Canceled)
		_, err = h.Bulk.Claim(ctx, 10, noon, time.Minute)
		require.ErrorIs(t, err, context.Canceled)
		h.requireOp(t, op)
	},
}
