package pull_test

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
	"github.com/healthlab-dev/healthlab/linking/pull"
	"github.com/healthlab-dev/healthlab/linking/pull/pulltest"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
	"github.com/healthlab-dev/healthlab/store"
)

// rowsHarness returns pulls over an encrypted store in memory, the store, and the keys of the users.
func rowsHarness(t testing.TB) (pulltest.StoreHarness, store.Store, *personkey.Keys) {
	t.Helper()
	tables := slices.Concat(healthdata.UserTables(), healthdata.DataTables(false), eventlog.Tables(), linking.Tables(), pull.Tables())
	clock := conformance.NewClock(time.Now())
	engine, err := memstore.New(tables, &memstore.Options{Now: clock.Now})
	require.NoError(t, err)
	sealer, err := healthlab.NewAESSealer("host", map[string][]byte{"host": bytes.Repeat([]byte{7}, 32)})
	require.NoError(t, err)
	keys := personkey.New(memory.NewPersonKeys(), sealer, nil)
	s := personkey.Encrypt(engine, keys, tables)
	log := eventlog.New(s)
	return pulltest.StoreHarness{
		Pulls: pull.NewStore(s, &pull.StoreOptions{Events: log}), Users: healthdata.NewUsers(s, &healthdata.UserOptions{Events: log}), Messages: log,
		Data:        healthdata.NewData(s, &healthdata.DataOptions{Events: log}),
		Credentials: linking.NewStore(s, &linking.StoreOptions{Events: log}), SetClock: clock.Set,
	}, s, keys
}

func newRows(t testing.TB) pulltest.StoreHarness {
	h, _, _ := rowsHarness(t)
	return h
}

func TestStore_overRowsPassesTheSuite(t *testing.T) { pulltest.RunStore(t, newRows) }

func TestStore_overRowsPassesTheModelSuite(t *testing.T) { pulltest.RunStoreModel(t, newRows) }

func TestStore_overRowsSurvivesCrashes(t *testing.T) { pulltest.RunCrashes(t, newRows) }

// connect adds a user with a connection, and its tasks.
func connect(t *testing.T, h pulltest.StoreHarness, team, name, provider string, tasks ...pull.Task) pull.Ref {
	t.Helper()
	ref := pull.Ref{Team: conformance.Team(team), User: conformance.User(name), Provider: provider}
	now := time.Now()
	require.NoError(t, h.Users.Insert(t.Context(), healthdata.User{
		ID: ref.User, Team: ref.Team, ClientUserID: name, CreatedOn: healthlab.At(now),
		Connections: []healthdata.Connection{{Provider: provider, Status: healthdata.Connected, CreatedOn: now, LinkedAt: now, Due: now}},
	}, 0))
	for i := range tasks {
		tasks[i].Ref = ref
	}
	require.NoError(t, h.Pulls.Plan(t.Context(), ref, func(healthdata.Connection, healthdata.User, []pull.Task) (pull.ConnectionPlan, error) {
		return pull.ConnectionPlan{Tasks: tasks, Due: now}, nil
	}))
	return ref
}

// tasksAt returns n tasks of ascending turns from first on, the longest due last.
func tasksAt(due time.Time, n int, first int64) (out []pull.Task) {
	for i := range n {
		out = append(out, pull.Task{
			Key: pull.Key{Resource: fmt.Sprintf("resource %04d", i), Kind: pull.History}, Turn: first + int64(i),
			Due: due.Add(-time.Duration(i) * time.Second),
		})
	}
	return out
}

func turns(tasks []pull.Task) (out []int64) {
	for _, t := range tasks {
		out = append(out, t.Turn)
	}
	return out
}

// The turn counts before the due time among more tasks than are read at once, of several applications,
// and however many tasks of applications that are left out come before.
func TestClaim_fairOrderPrecedesDueTimeInLongQueues(t *testing.T) {
	h, _, _ := rowsHarness(t)
	start := time.Now().UTC().Truncate(time.Second)
	h.SetClock(start.Add(-time.Hour)) // so that the claim finds out what is due
	const many = 250
	connect(t, h, "a", "ann", "acme_band", tasksAt(start, many, 0)...)
	connect(t, h, "a", "bob", "acme_scale", tasksAt(start, many, 0)...)
	connect(t, h, "b", "cyd", "acme_ring", tasksAt(start, many, many-2)...)
	h.SetClock(start)
	claim := func(n int, without ...string) []pull.Task {
		got, err := h.Pulls.Claim(t.Context(), pull.ClaimQuery{N: n, Now: start, Lease: time.Minute, Without: without})
		require.NoError(t, err)
		return got
	}
	require.Equal(t, []int64{0, 1, 2}, turns(claim(3, "acme_scale", "acme_ring")))
	require.Equal(t, []int64{0, 1, 2, 3}, turns(claim(4, "acme_ring", "acme_band")))
	require.Equal(t, []int64{3, 4, 4, 5, 5}, turns(claim(5)))
	require.Equal(t, []int64{many - 2, many - 1}, turns(claim(2, "acme_band", "acme_scale")))
	seen := map[pull.Key]bool{}
	for _, task := range claim(2 * many) {
		seen[task.Key] = true
	}
	require.Len(t, seen, 2*many)
	require.Len(t, claim(2*many), many-14)
	require.Empty(t, claim(1))
}

// Tasks of a user whose key is deleted and whose rows are not erased yet do not keep others from being
// claimed.
func TestClaim_skipsTasksOfUsersWhoseKeyIsDeleted(t *testing.T) {
	h, _, keys := rowsHarness(t)
	start := time.Now().UTC().Truncate(time.Second)
	h.SetClock(start)
	gone := connect(t, h, "a", "ann", "acme_band", tasksAt(start, 3, 0)...)
	connect(t, h, "a", "bob", "acme_band", tasksAt(start, 1, 9)...)
	require.NoError(t, keys.Delete(t.Context(), personkey.Ref{Team: gone.Team, User: gone.User}))
	got, err := h.Pulls.Claim(t.Context(), pull.ClaimQuery{N: 1, Now: start, Lease: time.Minute})
	require.NoError(t, err)
	require.Equal(t, []int64{9}, turns(got))
}

// Of more connections than one claim takes, each is claimed once, the longest due first.
func TestClaimConnections_takesEachOnceAndTheLongestDueFirst(t *testing.T) {
	h, _, _ := rowsHarness(t)
	const many = 30
	for i := range many {
		connect(t, h, fmt.Sprint("team ", i%3), fmt.Sprint("user ", i), "acme_band")
	}
	now := time.Now()
	seen := map[pull.Ref]bool{}
	for range many / 10 {
		got, err := h.Pulls.ClaimConnections(t.Context(), 10, now, now.Add(time.Minute))
		require.NoError(t, err)
		require.Len(t, got, 10)
		for _, ref := range got {
			seen[ref] = true
		}
	}
	require.Len(t, seen, many)
	got, err := h.Pulls.ClaimConnections(t.Context(), 10, now, now.Add(time.Minute))
	require.NoError(t, err)
	require.Empty(t, got)
}

// rowsOf counts the rows of the tables of pulls that a query finds.
func rowsOf(t *testing.T, s store.Store, q store.Query) (n int) {
	t.Helper()
	for _, table := range pull.Tables() {
		q.Table = table.Name
		got, err := s.Read(t.Context(), q)
		require.NoError(t, err)
		n += len(got[0])
	}
	return n
}

func TestEraseUser_removesTasksQuarantineAndBudgets(t *testing.T) {
	h, s, _ := rowsHarness(t)
	now := time.Now()
	ref := connect(t, h, "a", "ann", "acme_band", tasksAt(now, 2, 0)...)
	require.NoError(t, h.Pulls.Quarantine(t.Context(), ref, []pull.RefusedItem{{ID: conformance.Named("item"), Resource: "sleep", At: healthlab.At(now)}}))
	own := pull.BudgetKey{Team: ref.Team, User: ref.User, Provider: ref.Provider, Name: "user"}
	require.NoError(t, h.Pulls.UpdateBudgets(t.Context(), []pull.BudgetKey{own}, func([]pull.Budget) error { return nil }))
	all := store.Query{Key: store.Key{User: ref.User}, By: store.ByUser}
	require.Equal(t, 2+2+1+1, rowsOf(t, s, all))
	_, err := h.Users.Update(t.Context(), ref.Team, ref.User, func(u *healthdata.User) ([]healthlab.Event, error) {
		u.DeletedAt = now
		return nil, nil
	})
	require.NoError(t, err)
	require.NoError(t, h.Users.Erase(t.Context(), ref.Team, ref.User))
	require.Zero(t, rowsOf(t, s, all))
}

func TestDeleteTeam_removesBudgetsOfTheTeamOnly(t *testing.T) {
	h, s, _ := rowsHarness(t)
	ref := connect(t, h, "a", "ann", "acme_band")
	keys := []pull.BudgetKey{
		{Team: ref.Team, Provider: "acme_band", Name: "app"}, {Team: conformance.Team("b"), Provider: "acme_band", Name: "app"},
		{Team: ref.Team, User: ref.User, Provider: "acme_band", Name: "user"}, {Provider: "acme_band", Name: "app"},
	}
	require.NoError(t, h.Pulls.UpdateBudgets(t.Context(), keys, func(b []pull.Budget) error {
		for i := range b {
			b[i].Refusals = 1
		}
		return nil
	}))
	require.NoError(t, s.Update(t.Context(), func(ctx context.Context, tx store.Tx) error { return pull.DeleteTeam(ctx, tx, ref.Team) }))
	require.NoError(t, h.Pulls.UpdateBudgets(t.Context(), keys, func(b []pull.Budget) error {
		require.Equal(t, []pull.Budget{{}, {Refusals: 1}, {Refusals: 1}, {Refusals: 1}}, b)
		return nil
	}))
}
