package pulltest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// StoreHarness is a fresh, empty store for the suite of pulls. All interfaces are of the same store.
type StoreHarness struct {
	// Pulls is the interface under test.
	Pulls pull.Store
	Users healthdata.Users
	// Messages lists the events that were written.
	Messages healthdatatest.Messages
	// Data and Credentials are the other interfaces that a pull.Service needs.
	Data        healthdata.Data
	Credentials linking.CredentialStore
	// SetClock sets the store's clock to an instant, at which it stops.
	SetClock func(now time.Time)
}

// RunStore runs the contract of [pull.Store]. newStore returns a fresh, empty store and
// registers its own cleanup on t.
func RunStore(t *testing.T, newStore func(t testing.TB) StoreHarness) {
	for _, cases := range []map[string]func(*testing.T, StoreHarness){pullCases, noticeCases, peopleCases} {
		for name, run := range conformance.Sorted(cases) {
			t.Run(name, func(t *testing.T) {
				h := newStore(t)
				h.SetClock(noon)
				run(t, h)
			})
		}
	}
}

// connectBand adds a user with a connection to the provider acme_band that is due at an instant.
func (h StoreHarness) connectBand(t *testing.T, team, name string, due time.Time) pull.Ref {
	t.Helper()
	account := "account of " + name
	u := healthdata.User{
		ID: conformance.User(name), Team: conformance.Team(team), ClientUserID: name, CreatedOn: healthlab.At(noon),
		FallbackTimeZone: healthdata.FallbackTimeZone{ID: "UTC", SourceSlug: "default", UpdatedAt: healthlab.At(noon)},
		Connections: []healthdata.Connection{{
			Provider: "acme_band", Status: healthdata.Connected, CreatedOn: noon, LinkedAt: noon, Due: due,
			ExternalUserID: &account,
		}},
	}
	require.NoError(t, h.Users.Insert(t.Context(), u, 0))
	return pull.Ref{Team: u.Team, User: u.ID, Provider: "acme_band"}
}

// pullTask returns a task in which every field is set.
func pullTask(ref pull.Ref, resource string) pull.Task {
	at := func(h int) time.Time { return noon.Add(time.Duration(h) * time.Hour) }
	return pull.Task{
		Key: pull.Key{Ref: ref, Resource: resource, Kind: pull.History}, Linked: at(-1), Client: "client räv", Status: pull.Retrying,
		From: at(-100), To: at(-2), Until: at(-50), Cursor: "page 7", Turn: 3, Step: 2, Due: at(0), Lease: at(-3), Fence: 5,
		Failures: 4, Error: pull.ProviderDown, Ended: 6, Seen: at(-4), Swept: at(-5), Floor: at(-11), Announced: at(-12), Reach: at(-13), ScheduledAt: at(-6), StartedAt: at(-7), EndedAt: at(-8),
		LastTry: at(-9), LastOK: true, Oldest: at(-99), Newest: at(-10), Sent: 11, Days: []byte{1, 255},
	}
}

func (h StoreHarness) plan(t *testing.T, ref pull.Ref, tasks ...pull.Task) {
	t.Helper()
	require.NoError(t, h.Pulls.Plan(t.Context(), ref, func(healthdata.Connection, healthdata.User, []pull.Task) (pull.ConnectionPlan, error) {
		return pull.ConnectionPlan{Tasks: tasks}, nil
	}))
}

func (h StoreHarness) tasks(t *testing.T, ref pull.Ref) []pull.Task {
	t.Helper()
	list, err := h.Pulls.Tasks(t.Context(), ref.Team, ref.User)
	require.NoError(t, err)
	return list
}

func (h StoreHarness) claim(t *testing.T, n int, now time.Time, without ...string) (names []string) {
	t.Helper()
	h.SetClock(now)
	list, err := h.Pulls.Claim(t.Context(), pull.ClaimQuery{N: n, Without: without, Now: now, Lease: time.Minute})
	require.NoError(t, err)
	for _, x := range list {
		require.Equal(t, now.Add(time.Minute), x.Lease)
		names = append(names, x.Resource)
	}
	return names
}

func (h StoreHarness) remove(t *testing.T, ref pull.Ref) {
	t.Helper()
	_, err := h.Users.Update(t.Context(), ref.Team, ref.User, func(u *healthdata.User) ([]healthlab.Event, error) {
		u.DeletedAt = noon
		return nil, nil
	})
	require.NoError(t, err)
}

func pullEvent(ref pull.Ref) healthlab.Event {
	return healthlab.Event{
		ID: uuid.New(), Type: "historical.data.steps.created", Team: ref.Team, User: ref.User, At: noon, Data: []byte(`{"n":1}`),
	}
}

var pullCases = map[string]func(*testing.T, StoreHarness){
	"ConnectionsThatAreDue": func(t *testing.T, h StoreHarness) {
		late, early := h.connectBand(t, "a", "ann", noon), h.connectBand(t, "b", "bob", noon.Add(-time.Hour))
		h.connectBand(t, "a", "never", time.Time{})
		h.connectBand(t, "a", "future", noon.Add(time.Microsecond))
		h.remove(t, h.connectBand(t, "a", "gone", noon))
		claim := func(n int, now time.Time) []pull.Ref {
			got, err := h.Pulls.ClaimConnections(t.Context(), n, now, now.Add(time.Minute))
			require.NoError(t, err)
			return got
		}
		require.Empty(t, claim(0, noon))
		require.Equal(t, []pull.Ref{early}, claim(1, noon))
		require.Equal(t, []pull.Ref{late}, claim(9, noon))
		require.Empty(t, claim(9, noon))
		require.Len(t, claim(9, noon.Add(time.Minute)), 3)
		u, err := h.Users.Get(t.Context(), late.Team, late.User)
		require.NoError(t, err)
		require.EqualValues(t, 1, u.Revision)
		require.Equal(t, noon.Add(2*time.Minute), u.Connections[0].Due)
	},
	"Count": func(t *testing.T, h StoreHarness) {
		ref := h.connectBand(t, "a", "ann", noon)
		key := pull.Key{Ref: ref, Resource: "steps", Kind: pull.Uploads}
		another := key
		another.Kind = pull.News // not written: the key cannot be changed
		count := func(key pull.Key) error {
			return h.Pulls.Count(t.Context(), key, func(c *pull.Task) {
				c.Status, c.Key = pull.Success, another
				c.Sent++
			})
		}
		u, err := h.Users.Get(t.Context(), ref.Team, ref.User)
		require.NoError(t, err)
		want := pull.Task{Key: key, Linked: u.Connections[0].LinkedAt, Status: pull.Success, Sent: 1}
		require.NoError(t, count(key))
		require.Equal(t, []pull.Task{want}, h.tasks(t, ref))
		require.Equal(t, 8, conformance.Successes(conformance.Together(8, func(int) error { return count(key) })))
		want.Sent = 9
		require.Equal(t, []pull.Task{want}, h.tasks(t, ref))
		after, err := h.Users.Get(t.Context(), ref.Team, ref.User)
		require.NoError(t, err)
		require.Equal(t, u, after)

		none := key
		none.Provider = "acme_scale"
		require.ErrorIs(t, count(none), healthlab.NotFound, "no such connection")
		none = key
		none.Resource = "a\x00"
		require.ErrorIs(t, count(none), healthlab.Invalid)
		h.remove(t, ref)
		require.ErrorIs(t, count(key), healthlab.NotFound, "a deleted user")
	},
	"PlanRoundTrip": func(t *testing.T, h StoreHarness) {
		ref := h.connectBand(t, "a", "ann", noon)
		want := []pull.Task{pullTask(ref, "sleep"), {Key: pull.Key{Ref: ref, Resource: "steps", Kind: pull.News}, Status: pull.Scheduled}}
		e := pullEvent(ref)
		require.NoError(t, h.Pulls.Plan(t.Context(), ref, func(c healthdata.Connection, u healthdata.User, old []pull.Task) (pull.ConnectionPlan, error) {
			require.Equal(t, "acme_band", c.Provider)
			require.Equal(t, "ann", u.ClientUserID)
			require.Empty(t, old)
			return pull.ConnectionPlan{Tasks: want, Due: noon.Add(time.Hour), Events: []healthlab.Event{e}}, nil
		}))
		require.Equal(t, want, h.tasks(t, ref))
		u, err := h.Users.Get(t.Context(), ref.Team, ref.User)
		require.NoError(t, err)
		require.Equal(t, noon.Add(time.Hour), u.Connections[0].Due)
		require.EqualValues(t, 1, u.Revision)
		_, err = h.Messages.Message(t.Context(), ref.Team, e.ID)
		require.NoError(t, err)
		require.NoError(t, h.Pulls.Plan(t.Context(), ref, func(_ healthdata.Connection, _ healthdata.User, old []pull.Task) (pull.ConnectionPlan, error) {
			require.Equal(t, want, old)
			return pull.ConnectionPlan{Tasks: old[1:]}, nil
		}))
		require.Equal(t, want[1:], h.tasks(t, ref))
	},
	"PlanErrorWritesNothing": func(t *testing.T, h StoreHarness) {
		ref := h.connectBand(t, "a", "ann", noon)
		h.plan(t, ref, pullTask(ref, "sleep"))
		own := errors.New("own")
		other, twice := pullTask(ref, "steps"), pullTask(ref, "body")
		other.Provider = "acme_scale"
		bad := pullEvent(ref)
		bad.ID = uuid.Nil
		for name, c := range conformance.Sorted(map[string]struct {
			planned pull.ConnectionPlan
			err     error
			want    error
		}{
			"error of the plan":        {pull.ConnectionPlan{}, own, own},
			"task of another provider": {pull.ConnectionPlan{Tasks: []pull.Task{other}}, nil, healthlab.Invalid},
			"one task twice":           {pull.ConnectionPlan{Tasks: []pull.Task{twice, twice}}, nil, healthlab.Invalid},
			"event without an id":      {pull.ConnectionPlan{Events: []healthlab.Event{bad}}, nil, healthlab.Invalid},
		}) {
			t.Run(name, func(t *testing.T) {
				err := h.Pulls.Plan(t.Context(), ref, func(healthdata.Connection, healthdata.User, []pull.Task) (pull.ConnectionPlan, error) {
					return c.planned, c.err
				})
				require.ErrorIs(t, err, c.want)
				require.Equal(t, []pull.Task{pullTask(ref, "sleep")}, h.tasks(t, ref))
			})
		}
	},
	"ClaimWithoutApps": func(t *testing.T, h StoreHarness) {
		ann, bob := h.connectBand(t, "a", "ann", time.Time{}), h.connectBand(t, "b", "bob", time.Time{})
		task := func(ref pull.Ref, resource, client string) pull.Task {
			k := pullTask(ref, resource)
			k.Client, k.Due, k.Lease = client, noon, time.Time{}
			return k
		}
		one, two, ours := task(ann, "steps", "id 1"), task(ann, "sleep", "id 2"), task(ann, "body", "")
		foreign := task(bob, "fat", "id 1") // another team's client of the same id
		h.plan(t, ann, one, two, ours)
		h.plan(t, bob, foreign)
		for _, without := range [][]string{
			{ours.App(), one.App(), two.App(), foreign.App()}, {"acme_band", one.App(), two.App(), foreign.App(), "acme_scale"},
		} {
			require.Empty(t, h.claim(t, 9, noon, without...))
		}
		require.Equal(t, []string{"fat"}, h.claim(t, 9, noon, "acme_band", one.App(), two.App()))
		require.Equal(t, []string{"sleep"}, h.claim(t, 9, noon, one.App(), "acme_band"))
		_, err := h.Pulls.Update(t.Context(), one.Key, func(k *pull.Task) ([]healthlab.Event, error) { k.Client = ""; return nil, nil })
		require.NoError(t, err)
		require.Empty(t, h.claim(t, 9, noon, "acme_band"), "it is the deployment's now")
		require.ElementsMatch(t, []string{"steps", "body"}, h.claim(t, 9, noon, one.App()))
	},
	"ClaimOrder": func(t *testing.T, h StoreHarness) {
		ref := h.connectBand(t, "a", "ann", time.Time{})
		var all []pull.Task
		for i, x := range []struct {
			name string
			turn int64
			due  time.Duration
		}{{"body", 1, 0}, {"steps", 0, 0}, {"sleep", 0, -time.Hour}, {"weight", 0, time.Microsecond}, {"fat", -1, -time.Minute}} {
			k := pullTask(ref, x.name)
			k.Turn, k.Due, k.Lease, k.Fence, k.Client = x.turn, noon.Add(x.due), time.Time{}, int64(i), ""
			all = append(all, k)
		}
		never := pullTask(ref, "glucose")
		never.Due = time.Time{}
		h.plan(t, ref, append(all, never)...)
		require.Empty(t, h.claim(t, 9, noon, "acme_scale", "acme_band"))
		require.Equal(t, []string{"fat", "sleep"}, h.claim(t, 2, noon, "acme_scale"))
		require.Equal(t, []string{"steps", "body"}, h.claim(t, 9, noon))
		require.Empty(t, h.claim(t, 9, noon))
		require.Equal(t, []string{"weight"}, h.claim(t, 9, noon.Add(59*time.Second)))
		require.Equal(t, []string{"fat", "sleep", "steps", "body"}, h.claim(t, 9, noon.Add(time.Minute)), "the leases are over")
		for _, x := range h.tasks(t, ref) {
			if x.Resource == "fat" {
				require.EqualValues(t, 4+2, x.Fence)
			}
		}
	},
	"CallersClocks": func(t *testing.T, h StoreHarness) {
		ref := h.connectBand(t, "a", "ann", time.Time{})
		k := pullTask(ref, "sleep")
		k.Due, k.Lease = noon.Add(-2*time.Hour), time.Time{}
		h.plan(t, ref, k)
		fast, slow := noon.Add(time.Hour), noon.Add(-time.Hour)
		claims := func(now time.Time, want int) {
			t.Helper()
			got, err := h.Pulls.Claim(t.Context(), pull.ClaimQuery{N: 9, Now: now, Lease: time.Minute})
			require.NoError(t, err)
			require.Len(t, got, want)
		}
		for i, first := range []time.Time{fast, slow} {
			at := noon.Add(time.Duration(i) * time.Minute)
			h.SetClock(at)
			claims(first, 1)
			h.SetClock(at.Add(time.Minute - time.Microsecond))
			claims(fast, 0)
			claims(slow, 0)
		}
	},
	"ClaimNobodyTwice": func(t *testing.T, h StoreHarness) {
		const all = 40
		ref := h.connectBand(t, "a", "ann", time.Time{})
		var tasks []pull.Task
		for i := range all {
			k := pullTask(ref, fmt.Sprint("resource ", i))
			k.Lease = time.Time{}
			tasks = append(tasks, k)
		}
		h.plan(t, ref, tasks...)
		got := make([][]string, 8)
		for _, err := range conformance.Together(8, func(i int) error {
			list, err := h.Pulls.Claim(t.Context(), pull.ClaimQuery{N: 7, Now: noon, Lease: time.Minute})
			for _, x := range list {
				got[i] = append(got[i], x.Resource)
			}
			return err
		}) {
			require.NoError(t, err)
		}
		seen := map[string]bool{}
		for _, list := range got {
			for _, name := range list {
				require.False(t, seen[name], name)
				seen[name] = true
			}
		}
	},
	"UpdatedTasksWait": func(t *testing.T, h StoreHarness) {
		ref := h.connectBand(t, "a", "ann", time.Time{})
		k := pullTask(ref, "sleep")
		k.Lease = time.Time{}
		h.plan(t, ref, k)
		require.Len(t, h.claim(t, 1, noon), 1)
		_, err := h.Pulls.Update(t.Context(), k.Key, func(t *pull.Task) ([]healthlab.Event, error) {
			t.Due, t.Lease = noon.Add(time.Hour), time.Time{}
			return nil, nil
		})
		require.NoError(t, err)
		require.Empty(t, h.claim(t, 1, noon.Add(59*time.Minute)))
		require.Len(t, h.claim(t, 1, noon.Add(time.Hour)), 1)
	},
	"Update": func(t *testing.T, h StoreHarness) {
		ref := h.connectBand(t, "a", "ann", time.Time{})
		h.plan(t, ref, pull.Task{Key: pullTask(ref, "sleep").Key})
		want := pullTask(ref, "sleep")
		e := pullEvent(ref)
		got, err := h.Pulls.Update(t.Context(), want.Key, func(k *pull.Task) ([]healthlab.Event, error) {
			*k = want
			k.Key = pull.Key{}
			k.From = k.From.Add(123 * time.Nanosecond).In(time.FixedZone("x", 3600))
			return []healthlab.Event{e}, nil
		})
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, []pull.Task{want}, h.tasks(t, ref))
		_, err = h.Messages.Message(t.Context(), ref.Team, e.ID)
		require.NoError(t, err)

		own := errors.New("own")
		bad := pullEvent(ref)
		bad.ID = uuid.Nil
		for name, c := range conformance.Sorted(map[string]struct {
			err, want error
			events    []healthlab.Event
		}{"error of the change": {own, own, nil}, "event without an id": {nil, healthlab.Invalid, []healthlab.Event{bad}}}) {
			t.Run(name, func(t *testing.T) {
				_, err := h.Pulls.Update(t.Context(), want.Key, func(k *pull.Task) ([]healthlab.Event, error) {
					k.Cursor, k.Days[0] = "other", 9
					return c.events, c.err
				})
				require.ErrorIs(t, err, c.want)
				require.Equal(t, []pull.Task{want}, h.tasks(t, ref))
			})
		}
	},
	"NoLostUpdates": func(t *testing.T, h StoreHarness) {
		ref := h.connectBand(t, "a", "ann", time.Time{})
		k := pullTask(ref, "sleep")
		h.plan(t, ref, k)
		wins := conformance.Successes(conformance.Together(16, func(int) error {
			_, err := h.Pulls.Update(t.Context(), k.Key, func(t *pull.Task) ([]healthlab.Event, error) { t.Sent++; return nil, nil })
			return err
		}))
		require.EqualValues(t, k.Sent+int64(wins), h.tasks(t, ref)[0].Sent)
	},
	"NotThere": func(t *testing.T, h StoreHarness) {
		ref := h.connectBand(t, "a", "ann", noon)
		k := pullTask(ref, "sleep")
		h.plan(t, ref, k)
		never := func(*pull.Task) ([]healthlab.Event, error) { panic("called") }
		plan := func(healthdata.Connection, healthdata.User, []pull.Task) (pull.ConnectionPlan, error) {
			panic("called")
		}
		foreign := k.Key
		foreign.Team = conformance.Team("b")
		_, err := h.Pulls.Update(t.Context(), foreign, never)
		require.ErrorIs(t, err, healthlab.NotFound)
		require.ErrorIs(t, h.Pulls.Plan(t.Context(), foreign.Ref, plan), healthlab.NotFound)
		nothing := ref
		nothing.Provider = "acme_scale"
		require.ErrorIs(t, h.Pulls.Plan(t.Context(), nothing, plan), healthlab.NotFound)
		list, err := h.Pulls.Tasks(t.Context(), conformance.Team("b"), ref.User)
		require.NoError(t, err)
		require.Empty(t, list)
		h.remove(t, ref)
		_, err = h.Pulls.Update(t.Context(), k.Key, never)
		require.ErrorIs(t, err, healthlab.NotFound)
		require.ErrorIs(t, h.Pulls.Plan(t.Context(), ref, plan), healthlab.NotFound)
		require.Empty(t, h.tasks(t, ref))
	},
	"Budgets": func(t *testing.T, h StoreHarness) {
		ref := h.connectBand(t, "a", "ann", noon)
		app := pull.BudgetKey{Provider: "acme_band", Name: "app"}
		own := pull.BudgetKey{Team: ref.Team, User: ref.User, Provider: "acme_band", Name: "user"}
		full := pull.Budget{
			Next: noon, Blocked: noon.Add(time.Hour), Pace: time.Second, PaceEnd: noon.Add(time.Minute), Refusals: 3,
			Recent: []time.Time{noon, noon.Add(time.Second)},
		}
		look := func(keys ...pull.BudgetKey) (got []pull.Budget) {
			require.NoError(t, h.Pulls.UpdateBudgets(t.Context(), keys, func(b []pull.Budget) error {
				got = append([]pull.Budget{}, b...)
				return nil
			}))
			return got
		}
		require.Equal(t, []pull.Budget{{}, {}}, look(app, own))
		require.NoError(t, h.Pulls.UpdateBudgets(t.Context(), []pull.BudgetKey{own, app}, func(b []pull.Budget) error {
			b[0], b[1].Refusals = full, 7
			return nil
		}))
		own2 := errors.New("own")
		require.ErrorIs(t, h.Pulls.UpdateBudgets(t.Context(), []pull.BudgetKey{own, app}, func(b []pull.Budget) error {
			b[0].Refusals, b[1].Refusals = 99, 99
			return own2
		}), own2)
		require.Equal(t, []pull.Budget{{Refusals: 7}, full}, look(app, own))
		none := func([]pull.Budget) error { panic("called") }
		require.ErrorIs(t, h.Pulls.UpdateBudgets(t.Context(), []pull.BudgetKey{app, app}, none), healthlab.Invalid)
		foreign := own
		foreign.Team = conformance.Team("b")
		require.ErrorIs(t, h.Pulls.UpdateBudgets(t.Context(), []pull.BudgetKey{foreign}, none), healthlab.NotFound)
		before := look(app)[0].Refusals
		wins := conformance.Successes(conformance.Together(16, func(int) error {
			return h.Pulls.UpdateBudgets(t.Context(), []pull.BudgetKey{app, own}, func(b []pull.Budget) error { b[0].Refusals++; return nil })
		}))
		require.Equal(t, before+wins, look(app)[0].Refusals)
	},
	"Quarantine": func(t *testing.T, h StoreHarness) {
		ref := h.connectBand(t, "a", "ann", noon)
		refused := func(n byte, at time.Time) pull.RefusedItem {
			return pull.RefusedItem{
				ID: uuid.UUID{15: n}, Provider: ref.Provider, Resource: "steps", At: healthlab.At(at), Count: 2,
				Reasons: []pull.Reason{{Field: "value", Code: "unit", Message: "not a unit"}},
			}
		}
		one, two := refused(1, noon), refused(2, noon)
		require.NoError(t, h.Pulls.Quarantine(t.Context(), ref, []pull.RefusedItem{two, one}))
		look := func(team string, n int) []pull.RefusedItem {
			got, err := h.Pulls.Quarantined(t.Context(), conformance.Team(team), ref.User, n)
			require.NoError(t, err)
			return got
		}
		require.Equal(t, []pull.RefusedItem{one, two}, look("a", 9))
		require.Equal(t, []pull.RefusedItem{one}, look("a", 1))
		require.Empty(t, look("b", 9))
		require.NoError(t, h.Pulls.Quarantine(t.Context(), ref, []pull.RefusedItem{refused(2, noon.Add(time.Hour))}))
		again := refused(2, noon.Add(time.Hour))
		again.Count = 4
		require.Equal(t, []pull.RefusedItem{again, one}, look("a", 9))
		foreign := ref
		foreign.Team = conformance.Team("b")
		require.ErrorIs(t, h.Pulls.Quarantine(t.Context(), foreign, []pull.RefusedItem{one}), healthlab.NotFound)
		nul := one
		nul.Resource = "x\x00"
		require.ErrorIs(t, h.Pulls.Quarantine(t.Context(), ref, []pull.RefusedItem{nul}), healthlab.Invalid)
		h.remove(t, ref)
		require.Empty(t, look("a", 9))
	},
	"QuarantineIsBounded": func(t *testing.T, h StoreHarness) {
		ref := h.connectBand(t, "a", "ann", noon)
		list := make([]pull.RefusedItem, pull.MaxRefusedPerUser)
		for i := range list {
			list[i] = pull.RefusedItem{
				ID: uuid.UUID{0: byte(i >> 8), 1: byte(i)}, Resource: "sleep", Count: 1,
				At: healthlab.At(noon.Add(time.Duration(i) * time.Second)),
			}
		}
		require.NoError(t, h.Pulls.Quarantine(t.Context(), ref, list))
		other := h.connectBand(t, "a", "bob", noon)
		require.NoError(t, h.Pulls.Quarantine(t.Context(), other, list[:1]))
		list[0].At = healthlab.At(noon.AddDate(0, 0, 1)) // it is the latest refusal now
		fresh := pull.RefusedItem{ID: uuid.UUID{15: 1}, Resource: "sleep", Count: 1, At: list[0].At}
		require.NoError(t, h.Pulls.Quarantine(t.Context(), ref, []pull.RefusedItem{list[0], fresh}))
		got, err := h.Pulls.Quarantined(t.Context(), ref.Team, ref.User, 2*pull.MaxRefusedPerUser)
		require.NoError(t, err)
		require.Len(t, got, pull.MaxRefusedPerUser)
		require.Equal(t, []uuid.UUID{list[0].ID, fresh.ID}, []uuid.UUID{got[0].ID, got[1].ID})
		require.Equal(t, list[2].ID, got[len(got)-1].ID)
		got, err = h.Pulls.Quarantined(t.Context(), other.Team, other.User, 9)
		require.NoError(t, err)
		require.Len(t, got, 1)
	},
	"ErasedWithItsUser": func(t *testing.T, h StoreHarness) {
		ref := h.connectBand(t, "a", "ann", noon)
		h.plan(t, ref, pullTask(ref, "sleep"))
		own := pull.BudgetKey{Team: ref.Team, User: ref.User, Provider: "acme_band", Name: "user"}
		set := func(n int) (was int) {
			require.NoError(t, h.Pulls.UpdateBudgets(t.Context(), []pull.BudgetKey{own}, func(b []pull.Budget) error {
				was, b[0].Refusals = b[0].Refusals, n
				return nil
			}))
			return was
		}
		set(7)
		require.NoError(t, h.Pulls.Quarantine(t.Context(), ref, []pull.RefusedItem{{ID: uuid.UUID{1}, Resource: "sleep", At: healthlab.At(noon)}}))
		h.remove(t, ref)
		require.NoError(t, h.Users.Erase(t.Context(), ref.Team, ref.User))
		h.connectBand(t, "a", "ann", noon) // the tasks of an erased connection do not come back
		require.Empty(t, h.tasks(t, ref))
		require.Zero(t, set(1))
		bad, err := h.Pulls.Quarantined(t.Context(), ref.Team, ref.User, 9)
		require.NoError(t, err)
		require.Empty(t, bad)
	},
	"Ended": func(t *testing.T, h StoreHarness) {
		ref := h.connectBand(t, "a", "ann", noon)
		k := pullTask(ref, "sleep")
		h.plan(t, ref, k)
		ctx, stop := context.WithCancel(t.Context())
		stop()
		_, err := h.Pulls.Update(ctx, k.Key, func(*pull.Task) ([]healthlab.Event, error) { panic("called") })
		require.ErrorIs(t, err, context.Canceled)
		_, err = h.Pulls.Claim(ctx, pull.ClaimQuery{N: 1, Now: noon, Lease: time.Minute})
		require.ErrorIs(t, err, context.Canceled)
		_, err = h.Pulls.ClaimConnections(ctx, 1, noon, noon)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, h.Pulls.UpdateBudgets(ctx, nil, func([]pull.Budget) error { panic("called") }), context.Canceled)
		require.Equal(t, []pull.Task{k}, h.tasks(t, ref))
	},
}

// noon is the time of most calls.
var noon = time.Now().UTC().Truncate(time.Second).Add(123456 * time.Microsecond)
