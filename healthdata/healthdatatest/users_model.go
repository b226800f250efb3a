package healthdatatest

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/conformance"
)

// RunUsersModel compares a store with a plain map under random calls. Every sequence uses its own team, so one
// store is enough.
func RunUsersModel(t *testing.T, newStore func(t testing.TB) UsersHarness) {
	store := newStore(t)
	rapid.Check(t, func(rt *rapid.T) {
		m := usersModel{T: rt, t: t, store: store.Users, team: conformance.NewTeam(), users: map[healthlab.UserID]healthdata.User{}}
		// Some calls are more frequent, so that queries find users.
		rt.Repeat(map[string]func(*rapid.T){
			"insert": m.insert, "insert 2": m.insert, "insert 3": m.insert, "insert 4": m.insert,
			"list": m.list, "list 2": m.list, "list 3": m.list,
			"update": m.update,
			"delete": m.delete, "delete 2": m.delete,
			"restore": m.restore,
			"erase":   m.erase,
			"":        m.check,
		})
	})
}

// usersModel is the expected state of a team.
type usersModel struct {
	*rapid.T
	t     *testing.T
	store healthdata.Users
	team  healthlab.TeamID
	users map[healthlab.UserID]healthdata.User
	known []healthlab.UserID // includes erased users
}

// A few names and instants, so that users often share them.
var (
	modelNames = rapid.SampledFrom([]string{"a", "A", "ab", "aB1", "aBc", "AB1", "á", "a%", "b", "b1", "B"})
	modelTimes = rapid.Map(rapid.IntRange(0, 2), func(n int) time.Time {
		return noon.Add(time.Duration(n) * time.Microsecond)
	})
)

func (m *usersModel) anyone(t *rapid.T) healthlab.UserID {
	if len(m.known) == 0 {
		t.Skip("nobody yet")
	}
	return rapid.SampledFrom(m.known).Draw(t, "user")
}

// findByName returns the live user, other than the user by, whose client user id is name; nil if there is none.
func (m *usersModel) findByName(name string, by healthlab.UserID) *healthdata.User {
	for _, u := range m.users {
		if u.Live() && u.ClientUserID == name && u.ID != by {
			return &u
		}
	}
	return nil
}

func (m *usersModel) live() (n int) {
	for _, u := range m.users {
		if u.Live() {
			n++
		}
	}
	return n
}

func (m *usersModel) insert(t *rapid.T) {
	u := person(m.team, modelNames.Draw(t, "name"))
	u.CreatedOn = healthlab.At(modelTimes.Draw(t, "created"))
	limit := rapid.SampledFrom([]int{0, 0, 0, 5, 8}).Draw(t, "limit")
	err := m.store.Insert(m.t.Context(), u, limit)
	if other := m.findByName(u.ClientUserID, u.ID); other != nil {
		requireTaken(t, *other, err)
		return
	}
	if limit > 0 && m.live() >= limit {
		require.ErrorIs(t, err, healthlab.Exhausted)
		return
	}
	require.NoError(t, err)
	m.users[u.ID] = u
	m.known = append(m.known, u.ID)
}

// edit makes one change in the store and in the model.
func (m *usersModel) edit(t *rapid.T, id healthlab.UserID, change func(*healthdata.User)) {
	got, err := m.store.Update(m.t.Context(), m.team, id, func(u *healthdata.User) ([]healthlab.Event, error) {
		change(u)
		return nil, nil
	})
	want, ok := m.users[id]
	if !ok {
		require.ErrorIs(t, err, healthlab.NotFound)
		return
	}
	want.Connections = slices.Clone(want.Connections)
	change(&want)
	if other := m.findByName(want.ClientUserID, id); want.Live() && other != nil {
		requireTaken(t, *other, err)
		return
	}
	require.NoError(t, err)
	want.Revision++
	require.Equal(t, want, got)
	m.users[id] = want
}

func (m *usersModel) update(t *rapid.T) {
	name := modelNames.Draw(t, "name")
	status := rapid.SampledFrom([]healthdata.ConnectionStatus{
		healthdata.Connected, healthdata.ConnectionError, healthdata.Deregistered,
	}).Draw(t, "status")
	m.edit(t, m.anyone(t), func(u *healthdata.User) {
		u.ClientUserID = name
		u.Connections[0].Status = status
	})
}

func (m *usersModel) delete(t *rapid.T) {
	at := modelTimes.Draw(t, "deleted")
	m.edit(t, m.anyone(t), func(u *healthdata.User) { u.DeletedAt = at })
}

func (m *usersModel) restore(t *rapid.T) {
	m.edit(t, m.anyone(t), func(u *healthdata.User) { u.DeletedAt = time.Time{} })
}

func (m *usersModel) erase(t *rapid.T) {
	id := m.anyone(t)
	err := m.store.Erase(m.t.Context(), m.team, id)
	switch u, ok := m.users[id]; {
	case !ok:
		require.ErrorIs(t, err, healthlab.NotFound)
	case u.Live():
		require.ErrorIs(t, err, healthlab.Precondition)
	default:
		require.NoError(t, err)
		delete(m.users, id)
	}
}

func (m *usersModel) list(t *rapid.T) {
	q := healthdata.UserQuery{
		Team: m.team, Deleted: rapid.Bool().Draw(t, "of the deleted"),
		Offset: rapid.IntRange(0, 4).Draw(t, "offset"), Limit: rapid.IntRange(0, 3).Draw(t, "limit"),
	}
	if rapid.Bool().Draw(t, "by name") {
		q.ClientUserID = modelNames.Draw(t, "name")
	}
	if rapid.Bool().Draw(t, "by prefix") {
		q.Prefix = rapid.SampledFrom([]string{"a", "AB", "á", "Á", "%", "a%", "4"}).Draw(t, "prefix")
	}
	page, err := m.store.List(m.t.Context(), q)
	require.NoError(t, err)
	want := m.matching(q)
	require.Equal(t, len(want), page.Total)
	want = want[min(q.Offset, len(want)):]
	want = want[:min(cmp.Or(q.Limit, 100), len(want))]
	require.Equal(t, len(want), len(page.Users))
	for i, u := range want {
		require.Equal(t, u, page.Users[i])
	}
}

// matching returns the users that List must return for q, in that order.
func (m *usersModel) matching(q healthdata.UserQuery) []healthdata.User {
	ascii := strings.NewReplacer("B", "b", "A", "a", "á", "a", "Á", "a") // the letters of the names
	var out []healthdata.User
	for _, u := range m.users {
		if u.Live() != q.Deleted && (q.ClientUserID == "" || q.ClientUserID == u.ClientUserID) &&
			(strings.HasPrefix(ascii.Replace(u.ClientUserID), ascii.Replace(q.Prefix)) ||
				strings.HasPrefix(u.ID.String(), ascii.Replace(q.Prefix))) {
			out = append(out, u)
		}
	}
	slices.SortFunc(out, func(a, b healthdata.User) int {
		if q.Deleted {
			return cmp.Or(b.DeletedAt.Compare(a.DeletedAt), strings.Compare(a.ID.String(), b.ID.String()))
		}
		return cmp.Or(a.CreatedOn.Compare(b.CreatedOn.Time), strings.Compare(a.ID.String(), b.ID.String()))
	})
	return out
}

// check compares all users and the counts after every step.
func (m *usersModel) check(t *rapid.T) {
	for _, id := range m.known {
		got, err := m.store.Get(m.t.Context(), m.team, id)
		want, ok := m.users[id]
		if !ok {
			require.ErrorIs(t, err, healthlab.NotFound)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	counts, err := m.store.Metrics(m.t.Context(), m.team)
	require.NoError(t, err)
	require.Equal(t, m.live(), counts.Users)
	sources := 0
	for u := range maps.Values(m.users) {
		for _, c := range u.Connections {
			if u.Live() && c.Status != healthdata.Deregistered {
				sources++
			}
		}
	}
	require.Equal(t, sources, counts.ConnectedSources)
}

// BenchUsers measures Insert, Update with an event, and List for a client user id, for a prefix and for the last page.
func BenchUsers(b *testing.B, newStore func(t testing.TB) UsersHarness) {
	ctx := b.Context()
	fill := func(b *testing.B, n int) (UsersHarness, []healthdata.User) {
		h, team := newStore(b), conformance.NewTeam()
		users := make([]healthdata.User, n)
		for i := range users {
			users[i] = person(team, conformance.NewUser().String())
			users[i].CreatedOn = healthlab.At(noon.Add(time.Duration(i) * time.Second))
			if err := h.Users.Insert(ctx, users[i], 0); err != nil {
				b.Fatal(err)
			}
		}
		return h, users
	}
	for _, size := range []struct {
		name string
		n    int
	}{{"n=100", 100}, {"n=10k", 10_000}} {
		h, users := fill(b, size.n)
		team := users[0].Team
		run := func(name string, call func(u healthdata.User) error) {
			b.Run(name+"/"+size.name, func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if err := call(users[i%len(users)]); err != nil && !errors.Is(err, healthlab.Conflict) {
						b.Fatal(err)
					}
				}
			})
		}
		list := func(q healthdata.UserQuery) error {
			_, err := h.Users.List(ctx, q)
			return err
		}
		run("Resolve", func(u healthdata.User) error {
			return list(healthdata.UserQuery{Team: team, ClientUserID: u.ClientUserID, Limit: 1})
		})
		run("LastPage", func(healthdata.User) error {
			return list(healthdata.UserQuery{Team: team, Offset: size.n - 100, Limit: 100})
		})
		run("Search", func(u healthdata.User) error {
			return list(healthdata.UserQuery{Team: team, Prefix: u.ClientUserID[:4], Limit: 50})
		})
		run("Update", func(u healthdata.User) error {
			_, err := h.Users.Update(ctx, team, u.ID, func(u *healthdata.User) ([]healthlab.Event, error) {
				u.FallbackTimeZone.ID = "Asia/Tokyo"
				return []healthlab.Event{Event(*u, u.ID.String(), 1)}, nil
			})
			return err
		})
		run("Insert", func(u healthdata.User) error {
			u.ID, u.ClientUserID = conformance.NewUser(), conformance.NewUser().String()
			return h.Users.Insert(ctx, u, 0)
		})
	}
}
