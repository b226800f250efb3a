package aggregatetest

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate/continuous"
	"github.com/healthlab-dev/healthlab/internal/conformance"
)

// RunContinuous runs the contract tests of continuous.Store and continuous.Work. newStore returns a fresh,
// empty store and registers its own cleanup on t.
func RunContinuous(t *testing.T, newStore func(t testing.TB) ContinuousHarness) {
	run := func(name string, test func(t contT)) {
		t.Run(name, func(t *testing.T) { test(contT{t, newStore(t)}) })
	}
	run("Query/RoundTrip", queryRoundTrip)
	run("Query/Refused", queryRefused)
	run("Query/Slugs", querySlugs)
	run("Query/Teams", queryTeams)
	run("Query/Aliasing", queryAliasing)
	run("Query/Update", queryUpdate)
	run("Query/UpdateError", queryUpdateError)
	run("Query/NoLostUpdates", queryNoLostUpdates)
	run("Query/List", queryList)
	run("Query/Context", queryContext)

	run("Backfill/EveryLiveUser", backfillEveryLiveUser)
	run("Backfill/InSteps", backfillInSteps)

	run("Schedule/Samples", scheduleSamples)
	run("Schedule/Records", scheduleRecords)
	run("Schedule/WhoWasThere", scheduleExistingUser)
	run("Schedule/OnlyWhatDepends", scheduleOnlyWhatDepends)
	run("Schedule/NothingForTheSame", scheduleNothingForTheSame)
	run("Schedule/NothingForRefused", scheduleNothingForRefused)
	run("Schedule/Gap", scheduleGap)
	run("Schedule/WhileRunning", scheduleWhileRunning)

	run("Claim/Once", claimOnce)
	run("Claim/LeaseEnds", claimLeaseEnds)
	run("Claim/NoTaskTwice", claimNoTaskTwice)

	run("Finish/Result", finishResult)
	run("Finish/Events", finishEvents)
	run("Finish/AllOrNothing", finishAllOrNothing)
	run("Finish/LostLease", finishLostLease)
	run("Finish/ErrorKeepsRange", finishErrorKeepsRange)

	run("History/Order", historyOrder)
	run("History/Pages", historyPages)
	run("History/Kept", historyKept)
	run("History/Teams", historyTeams)

	run("Erase/LeavesNothing", continuousErase)
}

func (t contT) requireQuery(want, got continuous.Query) {
	t.Helper()
	require.Equal(t, want.CreatedAt, got.CreatedAt)
	require.Equal(t, want.Revision, got.Revision)
	require.Equal(t, conformance.JSON(t, want), conformance.JSON(t, got))
}

func queryRoundTrip(t contT) {
	q := contQuery(conformance.NewTeam(), "a-slug")
	q.CreatedAt = noon.Add(300 * time.Nanosecond).In(time.FixedZone("", 3600))
	t.insert(q)
	q.CreatedAt, q.Revision = noon.Time, 1
	got, err := t.Store.Get(t.Context(), q.Team, q.ID)
	require.NoError(t, err)
	t.requireQuery(q, got)
	require.Equal(t, time.UTC, got.CreatedAt.Location())
	got, err = t.Store.Find(t.Context(), q.Team, "a-slug")
	require.NoError(t, err)
	t.requireQuery(q, got)
}

func queryRefused(t contT) {
	q := contQuery(conformance.NewTeam(), "one")
	require.NoError(t, t.Store.Insert(t.Context(), q))
	bad := map[string]continuous.Query{"no team": q, "no id": q, "NUL": q}
	none := bad["no team"]
	none.Team = healthlab.TeamID{}
	bad["no team"] = none
	none = bad["no id"]
	none.ID, none.Slug = continuous.QueryID{}, "two"
	bad["no id"] = none
	none = bad["NUL"]
	none.ID, none.Slug, none.Title = newQueryID(), "three", "a\x00b"
	bad["NUL"] = none
	for name, b := range bad {
		require.ErrorIs(t, t.Store.Insert(t.Context(), b), healthlab.Invalid, name)
	}
	twin := contQuery(conformance.NewTeam(), "other")
	twin.ID = q.ID
	require.ErrorIs(t, t.Store.Insert(t.Context(), twin), healthlab.Conflict)
	_, err := t.Store.Find(t.Context(), q.Team, "a\x00")
	require.ErrorIs(t, err, healthlab.Invalid)
}

func querySlugs(t contT) {
	team := conformance.NewTeam()
	first := t.insert(contQuery(team, "weekly"))
	second := contQuery(team, "weekly")
	require.ErrorIs(t, t.Store.Insert(t.Context(), second), healthlab.Conflict)
	t.insert(contQuery(conformance.NewTeam(), "weekly"))
	t.insert(contQuery(team, "Weekly"))
	t.archive(first)
	t.insert(second)
	got, err := t.Store.Find(t.Context(), team, "weekly")
	require.NoError(t, err)
	require.Equal(t, second.ID, got.ID)
	_, err = t.Store.Update(t.Context(), team, first.ID, func(q *continuous.Query) error {
		q.Status = continuous.Active
		return nil
	})
	require.ErrorIs(t, err, healthlab.Conflict)
	_, err = t.Store.Find(t.Context(), team, "week")
	require.ErrorIs(t, err, healthlab.NotFound)
}

func queryTeams(t contT) {
	q := t.insert(contQuery(conformance.NewTeam(), "mine"))
	other := conformance.NewTeam()
	_, err := t.Store.Get(t.Context(), other, q.ID)
	require.ErrorIs(t, err, healthlab.NotFound)
	_, err = t.Store.Find(t.Context(), other, "mine")
	require.ErrorIs(t, err, healthlab.NotFound)
	_, err = t.Store.Update(t.Context(), other, q.ID, func(*continuous.Query) error { return nil })
	require.ErrorIs(t, err, healthlab.NotFound)
	page, err := t.Store.List(t.Context(), continuous.ListQuery{Team: other})
	require.NoError(t, err)
	require.Empty(t, page.Queries)
}

func queryAliasing(t contT) {
	q := contQuery(conformance.NewTeam(), "a")
	was := conformance.JSON(t, q)
	t.insert(q)
	q.Resources[0], q.Schema["index"] = "edited", "edited"
	got, err := t.Store.Get(t.Context(), q.Team, q.ID)
	require.NoError(t, err)
	require.Equal(t, was, conformance.JSON(t, got))
	got.Resources[0] = "edited"
	got, err = t.Store.Get(t.Context(), q.Team, q.ID)
	require.NoError(t, err)
	require.Equal(t, was, conformance.JSON(t, got))
	// A change of the caller's copies does not change which data makes tasks.
	u := t.user(q.Team)
	t.sample(u, "steps", 0, 1)
	require.Len(t, t.drain(), 1)
}

func queryUpdate(t contT) {
	q := t.insert(contQuery(conformance.NewTeam(), "a"))
	got, err := t.Store.Update(t.Context(), q.Team, q.ID, func(c *continuous.Query) error {
		t.requireQuery(q, *c)
		c.Title, c.Scheduling.MinimumGap = "Other", new(9000)
		c.ID, c.Team, c.Slug, c.CreatedAt, c.Revision = newQueryID(), conformance.NewTeam(), "b", time.Time{}, 77
		return nil
	})
	require.NoError(t, err)
	want := q
	want.Title, want.Scheduling.MinimumGap, want.Revision = "Other", new(9000), 2
	t.requireQuery(want, got)
	got, err = t.Store.Get(t.Context(), q.Team, q.ID)
	require.NoError(t, err)
	t.requireQuery(want, got)
	_, err = t.Store.Update(t.Context(), q.Team, newQueryID(), func(*continuous.Query) error { return nil })
	require.ErrorIs(t, err, healthlab.NotFound)
}

func queryUpdateError(t contT) {
	q := t.insert(contQuery(conformance.NewTeam(), "a"))
	_, err := t.Store.Update(t.Context(), q.Team, q.ID, func(c *continuous.Query) error {
		c.Title = "Other"
		return conformance.ErrRefused
	})
	require.ErrorIs(t, err, conformance.ErrRefused)
	got, err := t.Store.Get(t.Context(), q.Team, q.ID)
	require.NoError(t, err)
	t.requireQuery(q, got)
}

func queryNoLostUpdates(t contT) {
	q := contQuery(conformance.NewTeam(), "a")
	q.Scheduling.MinimumGap = new(1800)
	t.insert(q)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			_, err := t.Store.Update(t.Context(), q.Team, q.ID, func(c *continuous.Query) error {
				*c.Scheduling.MinimumGap++
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	got, err := t.Store.Get(t.Context(), q.Team, q.ID)
	require.NoError(t, err)
	require.Equal(t, 1816, *got.Scheduling.MinimumGap)
	require.EqualValues(t, 17, got.Revision)
}

func queryList(t contT) {
	team := conformance.NewTeam()
	var made []continuous.QueryID
	for i := range 5 {
		q := contQuery(team, string(rune('a'+i)))
		q.CreatedAt = noon.Add(time.Duration(i/2) * time.Hour)
		t.insert(q)
		made = append(made, q.ID)
		if i == 3 {
			t.archive(q)
		}
	}
	// The newest is first; of two queries of equal age, the one with the larger id.
	want := []continuous.QueryID{made[4]}
	for _, pair := range [][]continuous.QueryID{made[2:4], made[0:2]} {
		slices.SortFunc(pair, func(a, b continuous.QueryID) int { return slices.Compare(b.UUID[:], a.UUID[:]) })
		want = append(want, pair...)
	}
	var got []continuous.QueryID
	cursor := ""
	for i := 0; ; i++ {
		page, err := t.Store.List(t.Context(), continuous.ListQuery{Team: team, Cursor: cursor, Size: 2})
		require.NoError(t, err)
		for _, q := range page.Queries {
			got = append(got, q.ID)
		}
		if i == 0 { // a query that is added between two pages is on neither
			late := contQuery(team, "late")
			late.CreatedAt = noon.Add(24 * time.Hour)
			t.insert(late)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	require.Equal(t, want, got)
	_, err := t.Store.List(t.Context(), continuous.ListQuery{Team: team, Cursor: "nonsense"})
	require.ErrorIs(t, err, healthlab.Invalid)
	page, err := t.Store.List(t.Context(), continuous.ListQuery{Team: team})
	require.NoError(t, err)
	require.Len(t, page.Queries, 6)
	require.Empty(t, page.Next)
}

func queryContext(t contT) {
	ctx := conformance.Ended(t.T)
	q := contQuery(conformance.NewTeam(), "a")
	require.ErrorIs(t, t.Store.Insert(ctx, q), ctx.Err())
	_, err := t.Store.Get(t.Context(), q.Team, q.ID)
	require.ErrorIs(t, err, healthlab.NotFound)
	t.insert(q)
	u := t.user(q.Team)
	t.sample(u, "steps", 0, 1)
	_, err = t.Store.Update(ctx, q.Team, q.ID, func(*continuous.Query) error { return nil })
	require.ErrorIs(t, err, ctx.Err())
	_, err = t.Work.Claim(ctx, 1, time.Hour)
	require.ErrorIs(t, err, ctx.Err())
	_, err = t.Work.Backfill(ctx, 1)
	require.ErrorIs(t, err, ctx.Err())
	task := t.claim(1)
	require.ErrorIs(t, t.Work.Finish(ctx, task, completed("x")), ctx.Err())
	require.NoError(t, t.Work.Finish(t.Context(), task, completed("x")))
	for _, err := range []error{
		conformance.ErrOf(t.Store.Get(ctx, q.Team, q.ID)), conformance.ErrOf(t.Store.Find(ctx, q.Team, "a")), conformance.ErrOf(t.Store.List(ctx, continuous.ListQuery{Team: q.Team})),
		conformance.ErrOf(t.Store.Result(ctx, q.Team, u.ID, q.ID)), conformance.ErrOf(t.Store.History(ctx, continuous.HistoryQuery{Team: q.Team, User: u.ID, Query: q.ID})),
	} {
		require.ErrorIs(t, err, ctx.Err())
	}
}

func newQueryID() continuous.QueryID { return continuous.QueryID{UUID: uuid.New()} }
