package bulk_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/memory/memstore"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/internal/eventlog"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/bulk"
	"github.com/healthlab-dev/healthlab/linking/bulk/bulktest"
	"github.com/healthlab-dev/healthlab/linking/linkingtest"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
	"github.com/healthlab-dev/healthlab/store"
)

// rowsHarness returns bulk operations over an encrypted store in memory, and the store.
func rowsHarness(t testing.TB) (bulktest.StoreHarness, store.Store) {
	t.Helper()
	tables := slices.Concat(healthdata.UserTables(), eventlog.Tables(), linking.Tables(), bulk.Tables())
	clock := conformance.NewClock(time.Now())
	engine, err := memstore.New(tables, &memstore.Options{Now: clock.Now})
	require.NoError(t, err)
	sealer, err := healthlab.NewAESSealer("host", map[string][]byte{"host": bytes.Repeat([]byte{7}, 32)})
	require.NoError(t, err)
	s := personkey.Encrypt(engine, personkey.New(memory.NewPersonKeys(), sealer, nil), tables)
	log := eventlog.New(s)
	links := linking.NewStore(s, &linking.StoreOptions{Events: log})
	return bulktest.StoreHarness{Bulk: bulk.NewStore(s, links), SetClock: clock.Set, Linking: linkingtest.StoreHarness{
		Linking: links, Credentials: links, Second: links, Messages: log, SetClock: clock.Set,
		Users: healthdata.NewUsers(s, &healthdata.UserOptions{Events: log, OnErase: []healthdata.UserHook{bulk.EraseItems}}),
	}}, s
}

func TestStore_overRowsPassesTheSuite(t *testing.T) {
	h, _ := rowsHarness(t)
	bulktest.RunStore(t, h)
}

// submit adds an operation whose items have grants.
func submit(t *testing.T, b bulk.Store, team, name string, at time.Time, users ...healthlab.UserID) bulk.Op {
	t.Helper()
	op := bulk.Op{
		ID: conformance.Named(team + name), Team: conformance.Team(team), Type: bulk.ConnectionImport, Provider: "acme_scale",
		Status: bulk.InProgress, Total: len(users), StartedAt: at, Due: at,
	}
	var items []bulk.Item
	for _, u := range users {
		items = append(items, bulk.Item{User: u, Grant: healthlab.Sealed{KeyID: "k", Box: []byte{1}}})
	}
	require.NoError(t, b.Submit(t.Context(), op, items))
	return op
}

// Users who are running are kept by place, and only those of the operation.
func TestOp_runningUsersAreLimitedToTheOperationAndSorted(t *testing.T) {
	h, _ := rowsHarness(t)
	ann, bob, cyd := conformance.User("ann"), conformance.User("bob"), conformance.User("cyd")
	op := submit(t, h.Bulk, "a", "op", time.Now(), ann, bob)
	submit(t, h.Bulk, "a", "other", time.Now(), cyd)
	got, err := h.Bulk.UpdateOp(t.Context(), op.Team, op.ID, func(op *bulk.Op) error {
		op.Running = []healthlab.UserID{bob, cyd, ann, bob}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []healthlab.UserID{ann, bob}, got.Running)
}

// An erased user leaves the operations of all teams, also those of a team that never had the user.
func TestEraseUser_removesTheUserFromEveryOperation(t *testing.T) {
	h, _ := rowsHarness(t)
	ann, bob := h.Linking.AddUser(t, "a", "ann"), h.Linking.AddUser(t, "a", "bob")
	ops := []bulk.Op{
		submit(t, h.Bulk, "a", "op", time.Now(), ann, bob), submit(t, h.Bulk, "a", "second", time.Now(), bob, ann), submit(t, h.Bulk, "b", "op", time.Now(), ann),
	}
	for _, op := range ops {
		_, err := h.Bulk.UpdateOp(t.Context(), op.Team, op.ID, func(op *bulk.Op) error {
			op.Running = []healthlab.UserID{ann, bob}
			return nil
		})
		require.NoError(t, err)
	}
	h.Linking.EraseUser(t, "a", ann)
	for i, want := range [][]healthlab.UserID{{bob}, {bob}, nil} {
		op, err := h.Bulk.Op(t.Context(), ops[i].Team, ops[i].ID)
		require.NoError(t, err)
		require.Equal(t, want, op.Running)
		items, err := h.Bulk.Items(t.Context(), ops[i].Team, ops[i].ID, 0, 10)
		require.NoError(t, err)
		require.Len(t, items, len(want))
	}
}

func TestDeleteTeam_removesOperationsOfTheTeamOnly(t *testing.T) {
	h, s := rowsHarness(t)
	submit(t, h.Bulk, "a", "op", time.Now(), conformance.User("ann"), conformance.User("bob"))
	kept := submit(t, h.Bulk, "b", "op", time.Now(), conformance.User("ann"))
	require.NoError(t, s.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		return bulk.DeleteTeam(ctx, tx, conformance.Team("a"))
	}))
	for _, table := range bulk.Tables() {
		got, err := s.Read(t.Context(), store.Query{Key: store.Key{Table: table.Name, Team: conformance.Team("a")}, By: store.ByID})
		require.NoError(t, err)
		require.Empty(t, got[0], table.Name)
	}
	submit(t, h.Bulk, "a", "op", time.Now()) // its id is free
	items, err := h.Bulk.Items(t.Context(), kept.Team, kept.ID, 0, 10)
	require.NoError(t, err)
	require.Len(t, items, 1)
}

// Operations that wait for another one, and those that a process has, do not keep others from being
// claimed, however long they are due.
func TestClaim_skipsWaitingAndClaimedOperations(t *testing.T) {
	h, _ := rowsHarness(t)
	start := time.Now().UTC().Truncate(time.Second)
	h.SetClock(start)
	for i := range 50 {
		submit(t, h.Bulk, "a", fmt.Sprint("op ", i), start.Add(-time.Hour))
	}
	for _, n := range []int{1, 0} {
		got, err := h.Bulk.Claim(t.Context(), 1, start, time.Minute)
		require.NoError(t, err)
		require.Len(t, got, n)
	}
	late := submit(t, h.Bulk, "b", "op", start)
	got, err := h.Bulk.Claim(t.Context(), 1, start, time.Minute)
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, late.ID, got[0].ID)
}

// Connections are read page by page.
func TestConnections_areReadBeyondOnePage(t *testing.T) {
	h, _ := rowsHarness(t)
	const many = 401
	var users []healthlab.UserID
	for i := range many {
		users = append(users, h.Linking.AddConnection(t, "a", fmt.Sprint("user ", i)).User)
	}
	for name, asked := range map[string][]healthlab.UserID{"all": nil, "named": append(users, users...)} {
		t.Run(name, func(t *testing.T) {
			q := bulk.ConnectionQuery{Team: conformance.Team("a"), Provider: "acme_scale", Users: asked, N: 150}
			seen := map[healthlab.UserID]bool{}
			for range 3 {
				got, err := h.Bulk.Connections(t.Context(), q)
				require.NoError(t, err)
				for _, c := range got {
					seen[c.User] = true
				}
				q.After = got[len(got)-1].User
			}
			require.Len(t, seen, many)
			q.N, q.After = 1000, healthlab.UserID{}
			got, err := h.Bulk.Connections(t.Context(), q)
			require.NoError(t, err)
			require.Len(t, got, many)
		})
	}
}
