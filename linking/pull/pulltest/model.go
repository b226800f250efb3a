package pulltest

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// RunStoreModel compares a [pull.Store] with a simple model under sequences of random calls. All sequences use one
// store, each with users and providers of its own. A plain go test runs fewer than the hundred sequences that rapid
// makes by default.
func RunStoreModel(t *testing.T, newStore func(t testing.TB) StoreHarness) {
	h := newStore(t)
	left, failed := prove.Counts(15, 40, 400), false
	sequence := func(rt *rapid.T) {
		if left--; left < 0 && !failed { // rapid repeats a failing sequence to make it smaller
			return
		}
		failed = true
		m := &pullModel{
			StoreHarness: h, t: t, now: noon, provider: "acme_" + uuid.NewString()[:8], tasks: map[pull.Key]pull.Task{},
			budgets: map[pull.BudgetKey]pull.Budget{}, refused: map[healthlab.UserID]map[uuid.UUID]pull.RefusedItem{}, known: map[byte]bool{},
		}
		m.SetClock(m.now)
		defer m.eraseUsers()
		for i := range 3 {
			m.addUser(i)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"":            m.check,
			"Plan":        m.planSome,
			"Claim":       m.claimSome,
			"Update":      m.updateOne,
			"Notify":      m.notifySome,
			"Budgets":     m.spend,
			"Quarantine":  m.refuse,
			"Connections": m.claimConnections,
			"Leave":       m.changeStatus,
			"Wait":        m.wait,
		})
		failed = false
	}
	for left > 0 {
		rapid.Check(t, sequence)
	}
}

// pullModel is a simple model of the store.
type pullModel struct {
	StoreHarness
	t        *testing.T
	now      time.Time
	provider string
	people   []pullPerson
	tasks    map[pull.Key]pull.Task
	budgets  map[pull.BudgetKey]pull.Budget
	refused  map[healthlab.UserID]map[uuid.UUID]pull.RefusedItem
	known    map[byte]bool
}

type pullPerson struct {
	pull.Ref
	status healthdata.ConnectionStatus
	due    time.Time
	gone   bool
}

var modelResources = []string{"activity", "heartrate", "sleep"}

// addUser adds a user with a connection. i is the number of the user; users 2n and 2n+1 share an account.
func (m *pullModel) addUser(i int) {
	account := m.provider + fmt.Sprint(" account ", i/2)
	p := pullPerson{
		Ref:    pull.Ref{Team: healthlab.TeamID{UUID: uuid.New()}, User: healthlab.UserID{UUID: uuid.New()}, Provider: m.provider},
		status: healthdata.Connected, due: m.now.Add(time.Duration(i) * time.Minute),
	}
	u := healthdata.User{
		ID: p.User, Team: p.Team, ClientUserID: p.User.String(), CreatedOn: healthlab.At(noon),
		FallbackTimeZone: healthdata.FallbackTimeZone{ID: "UTC", SourceSlug: "default", UpdatedAt: healthlab.At(noon)},
		Connections: []healthdata.Connection{{
			Provider: m.provider, Status: p.status, CreatedOn: noon, LinkedAt: noon, Due: p.due, ExternalUserID: &account,
		}},
	}
	require.NoError(m.t, m.Users.Insert(m.t.Context(), u, 0))
	m.people = append(m.people, p)
}

// eraseUsers erases the users, so that the next sequence claims none of their tasks.
func (m *pullModel) eraseUsers() {
	for _, p := range m.people {
		if !p.gone {
			m.remove(m.t, p.Ref)
		}
		require.NoError(m.t, m.Users.Erase(m.t.Context(), p.Team, p.User))
	}
}

func (m *pullModel) pick(rt *rapid.T) *pullPerson {
	return &m.people[rapid.IntRange(0, len(m.people)-1).Draw(rt, "person")]
}

func (m *pullModel) minutes(rt *rapid.T, name string) time.Duration {
	return time.Duration(rapid.IntRange(-3, 3).Draw(rt, name)) * time.Minute
}

// sorted returns the tasks for which fits returns true, by their keys.
func (m *pullModel) sorted(fits func(pull.Task) bool) (out []pull.Task) {
	for _, t := range m.tasks {
		if fits(t) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, compareModelTasks)
	return out
}

func compareModelTasks(a, b pull.Task) int {
	return cmp.Or(slices.Compare(a.User.UUID[:], b.User.UUID[:]), cmp.Compare(a.Provider, b.Provider),
		cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Kind, b.Kind))
}

func (m *pullModel) check(rt *rapid.T) {
	for _, p := range m.people {
		got, err := m.Pulls.Tasks(m.t.Context(), p.Team, p.User)
		require.NoError(rt, err)
		want := m.sorted(func(t pull.Task) bool { return t.User == p.User && !p.gone })
		require.Equal(rt, want, got)
		people, err := m.Pulls.UserStatuses(m.t.Context(), pull.UserStatusQuery{Team: p.Team, N: 9})
		require.NoError(rt, err)
		if p.gone || p.status == healthdata.Deregistered {
			require.Empty(rt, people)
			continue
		}
		require.Len(rt, people, 1)
		require.Equal(rt, want, people[0].Tasks)
		require.Equal(rt, m.refusals(p.User), people[0].Refused)
		bad, err := m.Pulls.Quarantined(m.t.Context(), p.Team, p.User, 100)
		require.NoError(rt, err)
		require.Equal(rt, m.refusals(p.User), bad)
	}
}

func (m *pullModel) refusals(user healthlab.UserID) (out []pull.RefusedItem) {
	for _, r := range m.refused[user] {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b pull.RefusedItem) int {
		return cmp.Or(b.At.Compare(a.At.Time), slices.Compare(a.ID[:], b.ID[:]))
	})
	return out
}

// randomTask returns a task with random values in some fields.
func (m *pullModel) randomTask(rt *rapid.T, key pull.Key) pull.Task {
	t := pull.Task{Key: key, Turn: rapid.Int64Range(-1, 2).Draw(rt, "turn"), Cursor: rapid.SampledFrom([]string{"", "2", "ü"}).Draw(rt, "cursor")}
	if rapid.IntRange(0, 3).Draw(rt, "queued") > 0 {
		t.Due = m.now.Add(m.minutes(rt, "due"))
	}
	return t
}

func (m *pullModel) planSome(rt *rapid.T) {
	p := m.pick(rt)
	var next []pull.Task
	for _, r := range modelResources {
		for _, kind := range []pull.TaskKind{pull.History, pull.News} {
			key := pull.Key{Ref: p.Ref, Resource: r, Kind: kind}
			switch rapid.IntRange(0, 2).Draw(rt, "what") {
			case 0:
				next = append(next, m.randomTask(rt, key))
			case 1:
				if old, ok := m.tasks[key]; ok {
					next = append(next, old)
				}
			}
		}
	}
	due := m.now.Add(m.minutes(rt, "look"))
	err := m.Pulls.Plan(m.t.Context(), p.Ref, func(c healthdata.Connection, u healthdata.User, old []pull.Task) (pull.ConnectionPlan, error) {
		require.Equal(rt, p.status, c.Status)
		require.Equal(rt, p.User, u.ID)
		require.Equal(rt, m.sorted(func(t pull.Task) bool { return t.User == p.User }), old)
		return pull.ConnectionPlan{Tasks: next, Due: due}, nil
	})
	if p.gone {
		require.ErrorIs(rt, err, healthlab.NotFound)
		return
	}
	require.NoError(rt, err)
	for k := range m.tasks {
		if k.User == p.User {
			delete(m.tasks, k)
		}
	}
	for _, t := range next {
		m.tasks[t.Key] = t
	}
	p.due = due
}

func (m *pullModel) claimSome(rt *rapid.T) {
	q := pull.ClaimQuery{N: rapid.IntRange(0, 4).Draw(rt, "n"), Now: m.now, Lease: 2 * time.Minute}
	if rapid.IntRange(0, 4).Draw(rt, "without") == 0 {
		q.Without = []string{"acme_other", m.provider}
	}
	due := m.sorted(func(t pull.Task) bool {
		return q.Without == nil && !t.Due.IsZero() && !t.Due.After(m.now) && !t.Lease.After(m.now)
	})
	slices.SortFunc(due, func(a, b pull.Task) int {
		return cmp.Or(cmp.Compare(a.Turn, b.Turn), a.Due.Compare(b.Due), compareModelTasks(a, b))
	})
	got, err := m.Pulls.Claim(m.t.Context(), q)
	require.NoError(rt, err)
	var want []pull.Task
	for _, t := range due[:min(q.N, len(due))] {
		t.Lease = m.now.Add(q.Lease)
		t.Fence++
		m.tasks[t.Key] = t
		want = append(want, t)
	}
	require.Equal(rt, want, slices.Clip(got))
}

func (m *pullModel) updateOne(rt *rapid.T) {
	p := m.pick(rt)
	key := pull.Key{Ref: p.Ref, Resource: rapid.SampledFrom(modelResources).Draw(rt, "resource"), Kind: rapid.SampledFrom([]pull.TaskKind{pull.History, pull.News}).Draw(rt, "kind")}
	want := m.randomTask(rt, key)
	got, err := m.Pulls.Update(m.t.Context(), key, func(t *pull.Task) ([]healthlab.Event, error) {
		require.Equal(rt, m.tasks[key], *t)
		fence := t.Fence
		*t = want
		t.Fence = fence
		return nil, nil
	})
	old, ok := m.tasks[key]
	if !ok || p.gone {
		require.ErrorIs(rt, err, healthlab.NotFound)
		return
	}
	require.NoError(rt, err)
	want.Fence = old.Fence
	require.Equal(rt, want, got)
	m.tasks[key] = want
}

func (m *pullModel) notifySome(rt *rapid.T) {
	id, who := rapid.Byte().Draw(rt, "id")%16, rapid.IntRange(0, 1).Draw(rt, "account")
	n := pull.Notice{
		ID: [32]byte{id}, Provider: m.provider, ExternalUserID: m.provider + fmt.Sprint(" account ", who), At: m.now,
		Resources: rapid.SliceOfNDistinct(rapid.SampledFrom(modelResources), 0, 2, rapid.ID).Draw(rt, "resources"),
	}
	got, err := m.Pulls.Notify(m.t.Context(), n, noon.Add(-time.Hour), func(t *pull.Task) { t.Announced = m.now })
	require.NoError(rt, err)
	want := 0
	for k, t := range m.tasks {
		i := slices.IndexFunc(m.people, func(p pullPerson) bool { return p.User == k.User })
		if m.known[id] || i/2 != who || m.people[i].gone || m.people[i].status != healthdata.Connected || t.Kind != pull.News || t.Due.IsZero() ||
			len(n.Resources) > 0 && !slices.Contains(n.Resources, k.Resource) {
			continue
		}
		t.Announced = m.now
		m.tasks[k] = t
		want++
	}
	m.known[id] = true
	require.Equal(rt, want, got)
}

func (m *pullModel) spend(rt *rapid.T) {
	p := m.pick(rt)
	keys := []pull.BudgetKey{{Provider: m.provider, Name: "app"}, {Team: p.Team, User: p.User, Provider: m.provider, Name: "user"}}
	if rapid.Bool().Draw(rt, "turned") {
		slices.Reverse(keys)
	}
	next := []pull.Budget{{Refusals: rapid.IntRange(0, 3).Draw(rt, "a")}, {Next: m.now, Pace: m.minutes(rt, "pace")}}
	err := m.Pulls.UpdateBudgets(m.t.Context(), keys, func(b []pull.Budget) error {
		require.Equal(rt, []pull.Budget{m.budgets[keys[0]], m.budgets[keys[1]]}, b)
		copy(b, next)
		return nil
	})
	if p.gone {
		require.ErrorIs(rt, err, healthlab.NotFound)
		return
	}
	require.NoError(rt, err)
	m.budgets[keys[0]], m.budgets[keys[1]] = next[0], next[1]
}

func (m *pullModel) refuse(rt *rapid.T) {
	p := m.pick(rt)
	r := pull.RefusedItem{
		ID: uuid.UUID{15: rapid.Byte().Draw(rt, "id") % 4}, Provider: m.provider, Resource: "sleep", At: healthlab.At(m.now), Count: 1,
		Reasons: []pull.Reason{{Code: "unit", Message: "not a unit"}},
	}
	err := m.Pulls.Quarantine(m.t.Context(), p.Ref, []pull.RefusedItem{r})
	if p.gone {
		require.ErrorIs(rt, err, healthlab.NotFound)
		return
	}
	require.NoError(rt, err)
	all := m.refused[p.User]
	if all == nil {
		all = map[uuid.UUID]pull.RefusedItem{}
		m.refused[p.User] = all
	}
	r.Count += all[r.ID].Count
	all[r.ID] = r
}

func (m *pullModel) claimConnections(rt *rapid.T) {
	var due []*pullPerson
	for i := range m.people {
		if p := &m.people[i]; !p.gone && !p.due.After(m.now) {
			due = append(due, p)
		}
	}
	slices.SortFunc(due, func(a, b *pullPerson) int {
		return cmp.Or(a.due.Compare(b.due), slices.Compare(a.User.UUID[:], b.User.UUID[:]))
	})
	n := rapid.IntRange(0, 3).Draw(rt, "n")
	got, err := m.Pulls.ClaimConnections(m.t.Context(), n, m.now, m.now.Add(time.Minute))
	require.NoError(rt, err)
	var want []pull.Ref
	for _, p := range due[:min(n, len(due))] {
		p.due = m.now.Add(time.Minute)
		want = append(want, p.Ref)
	}
	require.Equal(rt, want, got)
}

// changeStatus changes the status of a connection, and sometimes deletes its user.
func (m *pullModel) changeStatus(rt *rapid.T) {
	p := m.pick(rt)
	if p.gone {
		return
	}
	p.status = rapid.SampledFrom([]healthdata.ConnectionStatus{
		healthdata.Connected, healthdata.ConnectionError, healthdata.Paused, healthdata.Deregistered,
	}).Draw(rt, "status")
	m.setStatus(m.t, p.Ref, p.status)
	if p.gone = rapid.IntRange(0, 9).Draw(rt, "gone") == 0; p.gone {
		m.remove(m.t, p.Ref)
	}
}

func (m *pullModel) wait(rt *rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.IntRange(0, 3).Draw(rt, "minutes")) * time.Minute)
	m.SetClock(m.now)
}
