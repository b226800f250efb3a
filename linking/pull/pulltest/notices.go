package pulltest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// planNews plans tasks of kind News, due in an hour, for these resources of a connection, and one history.
func (h StoreHarness) planNews(t *testing.T, ref pull.Ref, resources ...string) {
	t.Helper()
	var tasks []pull.Task
	for _, r := range resources {
		tasks = append(tasks, pull.Task{Key: pull.Key{Ref: ref, Resource: r, Kind: pull.News}, Due: noon.Add(time.Hour), Status: pull.Success})
	}
	history := tasks[0]
	history.Kind = pull.History
	h.plan(t, ref, append(tasks, history)...)
}

func noticeOf(id byte, account string, resources ...string) pull.Notice {
	return pull.Notice{ID: [32]byte{id, 31: 0}, Provider: "acme_band", ExternalUserID: account, Resources: resources, At: noon}
}

// notify passes a notice to Store.Notify and requires that it changes want tasks.
func (h StoreHarness) notify(t *testing.T, n pull.Notice, want int) {
	t.Helper()
	got, err := h.Pulls.Notify(t.Context(), n, n.At.Add(-time.Hour), func(k *pull.Task) {
		k.Key = pull.Key{}
		k.Due, k.Announced, k.Reach = n.At, n.At.Add(123*time.Nanosecond), n.At.Add(-time.Minute)
	})
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// announced returns "RESOURCE KIND" for each task of a connection that notify has changed.
func (h StoreHarness) announced(t *testing.T, ref pull.Ref) (out []string) {
	t.Helper()
	for _, k := range h.tasks(t, ref) {
		if !k.Announced.IsZero() {
			require.Equal(t, noon, k.Announced)
			require.Equal(t, noon.Add(-time.Minute), k.Reach)
			out = append(out, k.Resource+" "+string(k.Kind))
		}
	}
	return out
}

func (h StoreHarness) setStatus(t *testing.T, ref pull.Ref, s healthdata.ConnectionStatus) {
	t.Helper()
	_, err := h.Users.Update(t.Context(), ref.Team, ref.User, func(u *healthdata.User) ([]healthlab.Event, error) {
		for i := range u.Connections {
			u.Connections[i].Status = s
		}
		return nil, nil
	})
	require.NoError(t, err)
}

var noticeCases = map[string]func(*testing.T, StoreHarness){
	"NotifyOfTeam": func(t *testing.T, h StoreHarness) {
		bound := func(team, name, client string) pull.Ref {
			ref := h.connectBand(t, team, name, time.Time{})
			_, err := h.Users.Update(t.Context(), ref.Team, ref.User, func(u *healthdata.User) ([]healthlab.Event, error) {
				account := "shared"
				u.Connections[0].ExternalUserID, u.Connections[0].Client = &account, client
				return nil, nil
			})
			require.NoError(t, err)
			h.planNews(t, ref, "sleep")
			return ref
		}
		ann, bob := bound("a", "ann", "id"), bound("a", "bob", "other")
		eve, foreign := bound("a", "eve", ""), bound("b", "foreign", "id")
		n := noticeOf(1, "shared")
		n.Team, n.Client = ann.Team, "id"
		h.notify(t, n, 1)
		require.Equal(t, []string{"sleep news"}, h.announced(t, ann))
		for _, ref := range []pull.Ref{bob, eve, foreign} {
			require.Empty(t, h.announced(t, ref))
		}
		h.notify(t, noticeOf(2, "shared"), 4)
		n = noticeOf(3, "shared")
		n.Team, n.Client = ann.Team, "x\x00"
		_, err := h.Pulls.Notify(t.Context(), n, time.Time{}, func(*pull.Task) { panic("called") })
		require.ErrorIs(t, err, healthlab.Invalid)
	},
	"Notify": func(t *testing.T, h StoreHarness) {
		ann, other := h.connectBand(t, "a", "ann", time.Time{}), h.connectBand(t, "a", "bob", time.Time{})
		h.planNews(t, ann, "sleep", "steps", "weight")
		h.planNews(t, other, "sleep")
		require.Empty(t, h.claim(t, 9, noon))
		h.notify(t, noticeOf(1, "account of ann", "sleep", "weight", "glucose"), 2)
		require.Equal(t, []string{"sleep news", "weight news"}, h.announced(t, ann))
		require.Empty(t, h.announced(t, other))
		require.Equal(t, []string{"sleep", "weight"}, h.claim(t, 9, noon))
		h.notify(t, noticeOf(2, "account of ann"), 3)
		require.Equal(t, []string{"sleep news", "steps news", "weight news"}, h.announced(t, ann))
	},
	"NotifyOnce": func(t *testing.T, h StoreHarness) {
		ann := h.connectBand(t, "a", "ann", time.Time{})
		h.planNews(t, ann, "sleep")
		h.notify(t, noticeOf(1, "account of ann"), 1)
		h.notify(t, noticeOf(1, "account of ann"), 0)
		elsewhere := noticeOf(1, "account of ann")
		elsewhere.Provider = "acme_scale"
		h.notify(t, elsewhere, 0)
		later := noticeOf(2, "account of ann")
		later.At = noon.Add(2 * time.Hour)
		h.notify(t, later, 1)
		later = noticeOf(1, "account of ann")
		later.At = noon.Add(2 * time.Hour)
		h.notify(t, later, 1) // the notice was deleted
		again := noticeOf(2, "account of ann")
		again.At = noon.Add(3*time.Hour - time.Microsecond)
		h.notify(t, again, 0) // not deleted yet
	},
	"NotifyOnceTogether": func(t *testing.T, h StoreHarness) {
		ann := h.connectBand(t, "a", "ann", time.Time{})
		h.planNews(t, ann, "sleep")
		found := make([]int, 8)
		for i, err := range conformance.Together(len(found), func(i int) (err error) {
			found[i], err = h.Pulls.Notify(t.Context(), noticeOf(1, "account of ann"), time.Time{}, func(k *pull.Task) { k.Sent++ })
			return err
		}) {
			require.NoError(t, err, i)
		}
		slices.Sort(found)
		require.Equal(t, []int{0, 0, 0, 0, 0, 0, 0, 1}, found)
		require.EqualValues(t, 1, h.tasks(t, ann)[1].Sent)
	},
	"NotifyAllTeams": func(t *testing.T, h StoreHarness) {
		ann := h.connectBand(t, "a", "ann", time.Time{})
		h.planNews(t, ann, "sleep")
		shared := h.connectBand(t, "b", "shared", time.Time{}) // the same person's account
		h.planNews(t, shared, "sleep")
		_, err := h.Users.Update(t.Context(), shared.Team, shared.User, func(u *healthdata.User) ([]healthlab.Event, error) {
			account := "account of ann"
			u.Connections[0].ExternalUserID = &account
			return nil, nil
		})
		require.NoError(t, err)
		h.notify(t, noticeOf(1, "account of ann"), 2)
		require.NotEmpty(t, h.announced(t, shared))
	},
	"NotifyNobody": func(t *testing.T, h StoreHarness) {
		for i, account := range []string{"Account of ann", "account of ann ", "account of an", ""} {
			ann := h.connectBand(t, "a", fmt.Sprint("ann", i), time.Time{})
			h.planNews(t, ann, "sleep")
			h.notify(t, noticeOf(byte(i), account), 0)
		}
		for i, status := range []healthdata.ConnectionStatus{healthdata.ConnectionError, healthdata.Paused, healthdata.Deregistered} {
			name := "person " + string(status)
			ref := h.connectBand(t, "a", name, time.Time{})
			h.planNews(t, ref, "sleep")
			h.setStatus(t, ref, status)
			h.notify(t, noticeOf(byte(10+i), "account of "+name), 0)
		}
		gone := h.connectBand(t, "a", "gone", time.Time{})
		h.planNews(t, gone, "sleep")
		h.remove(t, gone)
		h.notify(t, noticeOf(20, "account of gone"), 0)
		off := h.connectBand(t, "a", "off", time.Time{})
		h.plan(t, off, pull.Task{Key: pull.Key{Ref: off, Resource: "sleep", Kind: pull.News}})
		h.notify(t, noticeOf(21, "account of off"), 0)
	},
	"NotifyBad": func(t *testing.T, h StoreHarness) {
		ann := h.connectBand(t, "a", "ann", time.Time{})
		h.planNews(t, ann, "sleep")
		never := func(*pull.Task) { panic("called") }
		for _, n := range []pull.Notice{noticeOf(1, "a\x00"), noticeOf(1, "a\xff"), noticeOf(1, "account of ann", "\x00")} {
			_, err := h.Pulls.Notify(t.Context(), n, time.Time{}, never)
			require.ErrorIs(t, err, healthlab.Invalid)
		}
		_, err := h.Pulls.Notify(t.Context(), noticeOf(1, "account of ann"), time.Time{}, func(k *pull.Task) { k.Cursor = "\x00" })
		require.ErrorIs(t, err, healthlab.Invalid)
		ctx, stop := context.WithCancel(t.Context())
		stop()
		_, err = h.Pulls.Notify(ctx, noticeOf(1, "account of ann"), time.Time{}, never)
		require.ErrorIs(t, err, context.Canceled)
		h.notify(t, noticeOf(1, "account of ann"), 1) // none of these notices was stored
	},
	"NotifyLosesNoUpdates": func(t *testing.T, h StoreHarness) {
		ann := h.connectBand(t, "a", "ann", time.Time{})
		h.planNews(t, ann, "sleep")
		key := h.tasks(t, ann)[1].Key
		// Each change is made, and the next one sees it; a plan also keeps the tasks that it changes.
		for _, err := range conformance.Together(24, func(i int) error {
			switch i % 3 {
			case 0:
				_, err := h.Pulls.Notify(t.Context(), noticeOf(byte(i), "account of ann"), time.Time{}, func(k *pull.Task) { k.Sent++ })
				return err
			case 1:
				_, err := h.Pulls.Update(t.Context(), key, func(k *pull.Task) ([]healthlab.Event, error) { k.Sent++; return nil, nil })
				return err
			}
			return h.Pulls.Plan(t.Context(), ann, func(_ healthdata.Connection, _ healthdata.User, old []pull.Task) (pull.ConnectionPlan, error) {
				for i := range old {
					if old[i].Kind == pull.News {
						old[i].Sent++
					}
				}
				return pull.ConnectionPlan{Tasks: old}, nil
			})
		}) {
			require.NoError(t, err)
		}
		require.EqualValues(t, 24, h.tasks(t, ann)[1].Sent)
	},
}

// userStatuses returns the statuses of team a.
func (h StoreHarness) userStatuses(t *testing.T, q pull.UserStatusQuery) []pull.UserStatus {
	t.Helper()
	q.Team = conformance.Team("a")
	list, err := h.Pulls.UserStatuses(t.Context(), q)
	require.NoError(t, err)
	return list
}

var peopleCases = map[string]func(*testing.T, StoreHarness){
	"People": func(t *testing.T, h StoreHarness) {
		ann := h.connectBand(t, "a", "ann", time.Time{})
		_, err := h.Users.Update(t.Context(), ann.Team, ann.User, func(u *healthdata.User) ([]healthlab.Event, error) {
			for _, c := range []healthdata.Connection{
				{Provider: "acme_zebra", Status: healthdata.Paused}, {Provider: "acme_scale", Status: healthdata.ConnectionError},
				{Provider: "acme_gone", Status: healthdata.Deregistered},
			} {
				c.CreatedOn, c.LinkedAt = noon, noon
				u.Connections = append(u.Connections, c)
			}
			return nil, nil
		})
		require.NoError(t, err)
		scale := ann
		scale.Provider = "acme_scale"
		refused := func(ref pull.Ref, n byte, at time.Duration) pull.RefusedItem {
			r := pull.RefusedItem{ID: uuid.UUID{15: n}, Provider: ref.Provider, Resource: "weight", At: healthlab.At(noon.Add(at)), Count: 2,
				Reasons: []pull.Reason{{Field: "unit", Code: "unit", Message: "not a unit"}}}
			require.NoError(t, h.Pulls.Quarantine(t.Context(), ref, []pull.RefusedItem{r}))
			return r
		}
		h.plan(t, ann, pullTask(ann, "steps"), pullTask(ann, "sleep"))
		h.plan(t, scale, pullTask(scale, "weight"))
		r1, r2, r3 := refused(ann, 1, 0), refused(scale, 2, time.Hour), refused(ann, 3, 0)
		refused(h.connectBand(t, "b", "foreign", time.Time{}), 4, 0)
		require.Equal(t, []pull.UserStatus{{
			User: ann.User, Providers: []string{"acme_band", "acme_scale", "acme_zebra"},
			Tasks: []pull.Task{pullTask(ann, "sleep"), pullTask(ann, "steps"), pullTask(scale, "weight")}, Refused: []pull.RefusedItem{r2, r1, r3},
		}}, h.userStatuses(t, pull.UserStatusQuery{N: 9}))
		require.Equal(t, []pull.UserStatus{{
			User: ann.User, Providers: []string{"acme_scale"}, Tasks: []pull.Task{pullTask(scale, "weight")}, Refused: []pull.RefusedItem{r2},
		}}, h.userStatuses(t, pull.UserStatusQuery{N: 9, Provider: "acme_scale"}))
		for _, none := range []string{"acme_gone", "nobody"} {
			require.Empty(t, h.userStatuses(t, pull.UserStatusQuery{N: 9, Provider: none}), none)
		}
	},
	"PeopleInOrder": func(t *testing.T, h StoreHarness) {
		var want []healthlab.UserID
		for i := range 7 {
			want = append(want, h.connectBand(t, "a", fmt.Sprint("person ", i), time.Time{}).User)
		}
		h.remove(t, h.connectBand(t, "a", "gone", time.Time{}))
		h.setStatus(t, h.connectBand(t, "a", "left", time.Time{}), healthdata.Deregistered)
		foreign := h.connectBand(t, "b", "foreign", time.Time{})
		slices.SortFunc(want, func(a, b healthlab.UserID) int { return slices.Compare(a.UUID[:], b.UUID[:]) })
		var got []healthlab.UserID
		for q := (pull.UserStatusQuery{N: 3}); ; {
			list := h.userStatuses(t, q)
			for _, p := range list {
				got = append(got, p.User)
			}
			if len(list) < q.N {
				break
			}
			q.After = list[len(list)-1].User
		}
		require.Equal(t, want, got)
		one := h.userStatuses(t, pull.UserStatusQuery{N: 9, User: want[3]})
		require.Len(t, one, 1)
		require.Equal(t, want[3], one[0].User)
		require.Empty(t, h.userStatuses(t, pull.UserStatusQuery{N: 9, User: foreign.User}))
		require.Empty(t, h.userStatuses(t, pull.UserStatusQuery{N: 9, User: want[3], After: want[3]}))
		require.Empty(t, h.userStatuses(t, pull.UserStatusQuery{}))
	},
	"PeopleAndManyRefusals": func(t *testing.T, h StoreHarness) {
		ann := h.connectBand(t, "a", "ann", time.Time{})
		var list []pull.RefusedItem
		for i := range pull.MaxRefusedPerStatus + 1 {
			list = append(list, pull.RefusedItem{
				ID: uuid.UUID{0: byte(i)}, Resource: "sleep", Reasons: []pull.Reason{}, At: healthlab.At(noon.Add(time.Duration(i) * time.Second)), Count: 1,
			})
		}
		require.NoError(t, h.Pulls.Quarantine(t.Context(), ann, list))
		p := h.userStatuses(t, pull.UserStatusQuery{N: 1})
		require.Len(t, p[0].Refused, pull.MaxRefusedPerStatus)
		require.Equal(t, list[len(list)-1].ID, p[0].Refused[0].ID)
	},
}
