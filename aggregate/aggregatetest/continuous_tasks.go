package aggregatetest

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/continuous"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/internal/conformance"
)

func backfillEveryLiveUser(t contT) {
	team := conformance.NewTeam()
	ann, bob, gone := t.user(team), t.user(team), t.user(team)
	t.user(conformance.NewTeam())
	t.remove(gone)
	q := t.insert(contQuery(team, "a"))
	t.insert(contQuery(conformance.NewTeam(), "nobody"))
	archived := t.insert(contQuery(team, "archived"))
	t.archive(archived)
	require.Empty(t, t.drain())
	n, err := t.Work.Backfill(t.Context(), 10)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	n, err = t.Work.Backfill(t.Context(), 10)
	require.NoError(t, err)
	require.Zero(t, n)
	tasks := t.drain()
	require.Len(t, tasks, 2)
	for _, task := range tasks {
		require.Equal(t, team, task.Team)
		require.Equal(t, q.ID, task.Query)
		require.Equal(t, aggregate.Always, task.Range)
		require.Equal(t, 1, task.Try)
	}
	require.ElementsMatch(t, []healthlab.UserID{ann.ID, bob.ID}, []healthlab.UserID{tasks[0].User, tasks[1].User})
}

func backfillInSteps(t contT) {
	team := conformance.NewTeam()
	want := map[healthlab.UserID]bool{}
	for range 5 {
		want[t.user(team).ID] = true
	}
	t.insert(contQuery(team, "a"))
	var counts []int
	for {
		n, err := t.Work.Backfill(t.Context(), 2)
		require.NoError(t, err)
		if n == 0 {
			break
		}
		counts = append(counts, n)
	}
	require.Equal(t, []int{2, 2, 1}, counts)
	for _, task := range t.drain() {
		require.True(t, want[task.User])
		delete(want, task.User)
	}
	require.Empty(t, want)
}

func scheduleSamples(t contT) {
	team := conformance.NewTeam()
	q := t.insert(contQuery(team, "a"))
	u := t.user(team)
	t.sample(u, "steps", 5, 1)
	t.sample(u, "steps", 2, 1) // earlier than the range so far
	t.sample(u, "steps", 7, 1) // later than the range so far
	tasks := t.drain()
	require.Len(t, tasks, 1)
	require.Equal(t, continuous.Task{
		Team: team, User: u.ID, Query: q.ID, Range: aggregate.Span{From: healthdatatest.Sample(2, 0).Time, To: healthdatatest.Sample(7, 0).Time},
		ScheduledAt: tasks[0].ScheduledAt, StartedAt: tasks[0].StartedAt, Try: 1, Run: tasks[0].Run,
	}, tasks[0])
	require.False(t, tasks[0].StartedAt.Before(tasks[0].ScheduledAt))
	require.Equal(t, time.UTC, tasks[0].StartedAt.Location())

	// Only changed samples are in the range: the first of these is stored already.
	t.merge(u, healthdatatest.Steps, healthdatatest.Sample(2, 1), healthdatatest.Sample(3, 1), healthdatatest.Sample(9, 2))
	tasks = t.drain()
	require.Len(t, tasks, 1)
	require.Equal(t, aggregate.Span{From: healthdatatest.Sample(3, 0).Time, To: healthdatatest.Sample(9, 0).Time}, tasks[0].Range)

	// A batch that is large enough for a chunk of its own.
	many := make([]int, 3000)
	for i := range many {
		many[i] = 100 + i
	}
	t.sample(u, "steps", many[0], 1, many[1:]...)
	tasks = t.drain()
	require.Len(t, tasks, 1)
	require.Equal(t, aggregate.Span{From: healthdatatest.Sample(100, 0).Time, To: healthdatatest.Sample(3099, 0).Time}, tasks[0].Range)

	// Many callers write at the same time.
	var all sync.WaitGroup
	people := make([]healthlab.UserID, 24)
	for i := range people {
		p := t.user(team)
		people[i] = p.ID
		all.Go(func() { t.sample(p, "steps", i, 1) })
	}
	all.Wait()
	var got []healthlab.UserID
	for _, task := range t.drain() {
		got = append(got, task.User)
	}
	require.ElementsMatch(t, people, got)
}

// scheduleExistingUser tests queries that are created after the user and the user's series. Backfill schedules the
// first task of the user. After that each write schedules a task, except while the query is archived.
func scheduleExistingUser(t contT) {
	team := conformance.NewTeam()
	u, other := t.user(team), t.user(conformance.NewTeam())
	write := func(minute int) {
		for _, w := range []healthdata.User{u, other} {
			t.sample(w, "steps", minute, 1)
			t.sample(w, "heartrate", minute, 60)
		}
	}
	for minute := range 3 {
		write(minute)
	}
	q := t.insert(contQuery(team, "a"))
	n, err := t.Work.Backfill(t.Context(), 10)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Len(t, t.drain(), 1)
	watched := func(minute int) {
		write(minute)
		tasks := t.drain()
		require.Len(t, tasks, 1)
		require.Equal(t, u.ID, tasks[0].User)
		require.Equal(t, aggregate.Span{From: healthdatatest.Sample(minute, 0).Time, To: healthdatatest.Sample(minute, 0).Time}, tasks[0].Range)
	}
	watched(3)
	watched(4)
	t.archive(q)
	for minute := 5; minute < 8; minute++ {
		write(minute)
		require.Empty(t, t.drain())
	}
	_, err = t.Store.Update(t.Context(), team, q.ID, func(q *continuous.Query) error {
		q.Status = continuous.Active
		return nil
	})
	require.NoError(t, err)
	watched(8)
	_, err = t.Store.Update(t.Context(), team, q.ID, func(q *continuous.Query) error {
		q.Resources[0] = "heartrate"
		return nil
	})
	require.NoError(t, err)
	watched(9)
}

func scheduleRecords(t contT) {
	team := conformance.NewTeam()
	q := contQuery(team, "a")
	q.Resources = []string{"sleep", "steps"}
	t.insert(q)
	u := t.user(team)
	first, second := healthdatatest.Record("sleep", noon.Time), healthdatatest.Record("sleep", noon.Add(48*time.Hour))
	t.put(u, first, second)
	tasks := t.drain()
	require.Len(t, tasks, 1)
	require.Equal(t, aggregate.Span{From: noon.UnixMicro(), To: noon.Add(48 * time.Hour).UnixMicro()}, tasks[0].Range)

	// A record whose Index changes makes a task over its former and its new Index.
	first.Index = noon.Add(72 * time.Hour)
	t.put(u, first, second)
	tasks = t.drain()
	require.Len(t, tasks, 1)
	require.Equal(t, aggregate.Span{From: noon.UnixMicro(), To: noon.Add(72 * time.Hour).UnixMicro()}, tasks[0].Range)
}

func scheduleOnlyWhatDepends(t contT) {
	team := conformance.NewTeam()
	archived := t.insert(contQuery(team, "archived"))
	t.archive(archived)
	q := t.insert(contQuery(team, "a"))
	t.insert(contQuery(conformance.NewTeam(), "a"))
	u := t.user(team)
	t.sample(u, "heartrate", 0, 60)
	t.put(u, healthdatatest.Record("sleep", noon.Time))
	require.Empty(t, t.drain())
	t.sample(u, "steps", 0, 60)
	tasks := t.drain()
	require.Len(t, tasks, 1)
	require.Equal(t, q.ID, tasks[0].Query)
}

func scheduleNothingForTheSame(t contT) {
	team := conformance.NewTeam()
	q := contQuery(team, "a")
	q.Resources = []string{"sleep", "steps"}
	t.insert(q)
	u := t.user(team)
	r := healthdatatest.Record("sleep", noon.Time)
	t.put(u, r)
	t.sample(u, "steps", 3, 1, 4)
	require.Len(t, t.drain(), 1)
	t.put(u, r)
	t.sample(u, "steps", 3, 1, 4)
	t.sample(u, "steps", 4, 1)
	require.Empty(t, t.drain())
}

func scheduleNothingForRefused(t contT) {
	team := conformance.NewTeam()
	t.insert(contQuery(team, "a"))
	u := t.user(team)
	err := t.refuseSamples(u, healthdatatest.Sample(0, 1))
	require.ErrorIs(t, err, conformance.ErrRefused)
	require.Empty(t, t.drain())
}

func scheduleGap(t contT) {
	team := conformance.NewTeam()
	q := contQuery(team, "a")
	q.Scheduling.MinimumGap = new(3600)
	t.insert(q)
	u := t.user(team)
	t.sample(u, "steps", 0, 1)
	task := t.claim(1)
	require.NoError(t, t.Work.Finish(t.Context(), task, completed("x")))
	t.sample(u, "steps", 1, 1)
	t.sample(u, "steps", 2, 1)
	require.Empty(t, t.drain())
	entries := t.history(q, u)
	require.Equal(t, []continuous.TaskStatus{continuous.TaskScheduled, continuous.TaskCompleted}, statuses(entries))
	require.Equal(t, task.StartedAt.Add(time.Hour), entries[0].ScheduledAt.Time)
	require.Nil(t, entries[0].StartedAt)
	require.Nil(t, entries[0].EndedAt)

	// A shorter gap does not move a waiting task to an earlier time. It applies from the first change after that task
	// has begun.
	_, err := t.Store.Update(t.Context(), team, q.ID, func(c *continuous.Query) error {
		c.Scheduling.MinimumGap = new(0)
		return nil
	})
	require.NoError(t, err)
	t.sample(u, "steps", 3, 1)
	require.Empty(t, t.drain())
}

func scheduleWhileRunning(t contT) {
	team := conformance.NewTeam()
	q := t.insert(contQuery(team, "a"))
	u := t.user(team)
	t.sample(u, "steps", 0, 1)
	task := t.claim(1)
	t.sample(u, "steps", 9, 1) // the task may not have seen it
	require.Empty(t, t.drain(), "one at a time")
	require.Equal(t, []continuous.TaskStatus{continuous.TaskScheduled, continuous.TaskStarted}, statuses(t.history(q, u)))
	require.NoError(t, t.Work.Finish(t.Context(), task, completed("x")))
	tasks := t.drain()
	require.Len(t, tasks, 1)
	require.Equal(t, aggregate.Span{From: healthdatatest.Sample(9, 0).Time, To: healthdatatest.Sample(9, 0).Time}, tasks[0].Range)
}

func claimOnce(t contT) {
	team := conformance.NewTeam()
	t.insert(contQuery(team, "a"))
	first, second := t.user(team), t.user(team)
	t.sample(first, "steps", 0, 1)
	t.sample(second, "steps", 0, 1)
	require.Equal(t, first.ID, t.claim(1).User, "the longest due first")
	require.Equal(t, second.ID, t.claim(1).User)
	tasks, err := t.Work.Claim(t.Context(), 9, time.Hour)
	require.NoError(t, err)
	require.Empty(t, tasks)
	tasks, err = t.Work.Claim(t.Context(), 0, time.Hour)
	require.NoError(t, err)
	require.Empty(t, tasks)
}

func claimLeaseEnds(t contT) {
	team := conformance.NewTeam()
	q := t.insert(contQuery(team, "a"))
	u := t.user(team)
	t.sample(u, "steps", 4, 1)
	first, err := t.Work.Claim(t.Context(), 1, 0)
	require.NoError(t, err)
	require.Len(t, first, 1)
	t.sample(u, "steps", 8, 1)
	again := t.claim(1)
	require.Equal(t, first[0].Range, again.Range)
	require.Equal(t, first[0].ScheduledAt, again.ScheduledAt)
	require.Equal(t, 2, again.Try)
	require.NotEqual(t, first[0].Run, again.Run)
	require.ErrorIs(t, t.Work.Finish(t.Context(), first[0], completed("old")), healthlab.Precondition)
	require.NoError(t, t.Work.Finish(t.Context(), again, completed("new")))
	require.Equal(t, []continuous.TaskStatus{continuous.TaskScheduled, continuous.TaskCompleted}, statuses(t.history(q, u)))
	tasks := t.drain()
	require.Len(t, tasks, 1)
	require.Equal(t, 1, tasks[0].Try)
	require.Equal(t, healthdatatest.Sample(8, 0).Time, tasks[0].Range.From)
}

func claimNoTaskTwice(t contT) {
	team := conformance.NewTeam()
	t.insert(contQuery(team, "a"))
	for range 20 {
		t.sample(t.user(team), "steps", 0, 1)
	}
	var mu sync.Mutex
	seen := map[healthlab.UserID]int{}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			tasks, err := t.Work.Claim(t.Context(), 5, time.Hour)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, task := range tasks {
				seen[task.User]++
			}
		})
	}
	all.Wait()
	for _, n := range seen {
		require.Equal(t, 1, n)
	}
}

func finishResult(t contT) {
	team := conformance.NewTeam()
	q := t.insert(contQuery(team, "a"))
	ann, bob := t.user(team), t.user(team)
	_, err := t.Store.Result(t.Context(), team, ann.ID, q.ID)
	require.ErrorIs(t, err, healthlab.NotFound)
	for _, table := range []string{"one\x00\xff", "two"} {
		t.sample(ann, "steps", 0, float64(len(table)))
		task := t.claim(1)
		o := completed(table)
		require.NoError(t, t.Work.Finish(t.Context(), task, o))
		o.Table[0] = 'x'
		got, err := t.Store.Result(t.Context(), team, ann.ID, q.ID)
		require.NoError(t, err)
		require.Equal(t, table, string(got))
	}
	// An outcome without a table keeps the old table.
	t.sample(ann, "steps", 1, 1)
	require.NoError(t, t.Work.Finish(t.Context(), t.claim(1), continuous.Outcome{Status: continuous.TaskCompleted}))
	got, err := t.Store.Result(t.Context(), team, ann.ID, q.ID)
	require.NoError(t, err)
	require.Equal(t, "two", string(got))
	for name, err := range conformance.Sorted(map[string]error{
		"user": conformance.ErrOf(t.Store.Result(t.Context(), team, bob.ID, q.ID)), "team": conformance.ErrOf(t.Store.Result(t.Context(), conformance.NewTeam(), ann.ID, q.ID)),
		"query": conformance.ErrOf(t.Store.Result(t.Context(), team, ann.ID, newQueryID())),
	}) {
		t.Run(name, func(sub *testing.T) {
			require.ErrorIs(sub, err, healthlab.NotFound)
		})
	}
}

func finishEvents(t contT) {
	team := conformance.NewTeam()
	t.insert(contQuery(team, "a"))
	u := t.user(team)
	for i := range 2 {
		t.sample(u, "steps", i, 1)
		e := healthdatatest.Event(u, "key", i)
		o := completed("x")
		o.Events = []healthlab.Event{e}
		require.NoError(t, t.Work.Finish(t.Context(), t.claim(1), o))
		m, err := t.Messages.Message(t.Context(), team, e.ID)
		require.NoError(t, err)
		require.EqualValues(t, i+1, m.Seq)
		require.Equal(t, u.ID, m.User)
	}
}

func finishAllOrNothing(t contT) {
	team := conformance.NewTeam()
	q := t.insert(contQuery(team, "a"))
	u := t.user(team)
	t.sample(u, "steps", 0, 1)
	task := t.claim(1)
	bad := completed("x")
	e := healthdatatest.Event(u, "key", 0)
	bad.Events = []healthlab.Event{e, e} // one id twice
	require.ErrorIs(t, t.Work.Finish(t.Context(), task, bad), healthlab.Conflict)
	_, err := t.Store.Result(t.Context(), team, u.ID, q.ID)
	require.ErrorIs(t, err, healthlab.NotFound)
	_, err = t.Messages.Message(t.Context(), team, e.ID)
	require.ErrorIs(t, err, healthlab.NotFound)
	require.Equal(t, []continuous.TaskStatus{continuous.TaskStarted}, statuses(t.history(q, u)))
	require.NoError(t, t.Work.Finish(t.Context(), task, completed("x")))
}

func finishLostLease(t contT) {
	team := conformance.NewTeam()
	q := t.insert(contQuery(team, "a"))
	u := t.user(team)
	t.sample(u, "steps", 0, 1)
	task := t.claim(1)
	require.NoError(t, t.Work.Finish(t.Context(), task, completed("first")))
	e := healthdatatest.Event(u, "key", 0)
	late := completed("late")
	late.Events = []healthlab.Event{e}
	require.ErrorIs(t, t.Work.Finish(t.Context(), task, late), healthlab.Precondition)
	other := task
	other.Team = conformance.NewTeam()
	require.ErrorIs(t, t.Work.Finish(t.Context(), other, late), healthlab.Precondition)
	got, err := t.Store.Result(t.Context(), team, u.ID, q.ID)
	require.NoError(t, err)
	require.Equal(t, "first", string(got))
	_, err = t.Messages.Message(t.Context(), team, e.ID)
	require.ErrorIs(t, err, healthlab.NotFound)
}

func finishErrorKeepsRange(t contT) {
	team := conformance.NewTeam()
	q := t.insert(contQuery(team, "a"))
	u := t.user(team)
	t.sample(u, "steps", 3, 1)
	require.NoError(t, t.Work.Finish(t.Context(), t.claim(1), continuous.Outcome{Status: continuous.TaskError, Details: "too_many_rows"}))
	entries := t.history(q, u)
	require.Len(t, entries, 1)
	require.Equal(t, continuous.TaskError, entries[0].Status)
	require.Equal(t, new("too_many_rows"), entries[0].Details)
	require.NotNil(t, entries[0].EndedAt)
	require.Empty(t, t.drain(), "nothing is due before the next change")
	t.sample(u, "steps", 8, 1)
	tasks := t.drain()
	require.Len(t, tasks, 1)
	require.Equal(t, aggregate.Span{From: healthdatatest.Sample(3, 0).Time, To: healthdatatest.Sample(8, 0).Time}, tasks[0].Range)
}

func historyOrder(t contT) {
	team := conformance.NewTeam()
	q := t.insert(contQuery(team, "a"))
	u := t.user(team)
	require.Empty(t, t.history(q, u))
	t.sample(u, "steps", 0, 1)
	t.sample(u, "steps", 1, 1)
	t.sample(u, "steps", 2, 1)
	task := t.claim(1)
	require.NoError(t, t.Work.Finish(t.Context(), task, completed("x")))
	t.sample(u, "steps", 3, 1)
	entries := t.history(q, u)
	require.Equal(t, []continuous.TaskStatus{continuous.TaskScheduled, continuous.TaskCompleted, continuous.TaskSkipped}, statuses(entries))
	done := entries[1]
	require.Equal(t, q.ID, done.Query)
	require.Equal(t, u.ID, done.User)
	require.Equal(t, task.ScheduledAt, done.ScheduledAt.Time)
	require.Equal(t, task.StartedAt, done.StartedAt.Time)
	require.False(t, done.EndedAt.Before(done.StartedAt.Time))
	require.Nil(t, done.Details)
	require.Nil(t, entries[2].StartedAt)
	require.Equal(t, entries[2].ScheduledAt, *entries[2].EndedAt)
	require.NoError(t, t.Work.Finish(t.Context(), t.claim(1), continuous.Outcome{Status: continuous.TaskSkipped}))
	require.Equal(t, continuous.TaskSkipped, t.history(q, u)[0].Status)
}

func historyPages(t contT) {
	team := conformance.NewTeam()
	q := t.insert(contQuery(team, "a"))
	u := t.user(team)
	for i := range 4 {
		t.sample(u, "steps", i, 1)
		require.NoError(t, t.Work.Finish(t.Context(), t.claim(1), continuous.Outcome{Status: continuous.TaskError, Details: string(rune('a' + i))}))
	}
	t.sample(u, "steps", 9, 1)
	var got []string
	cursor := ""
	for i := 0; ; i++ {
		page, err := t.Store.History(t.Context(), continuous.HistoryQuery{Team: team, User: u.ID, Query: q.ID, Cursor: cursor, Size: 1 + i%2})
		require.NoError(t, err)
		for _, e := range page.Entries {
			if e.Details != nil {
				got = append(got, *e.Details)
				continue
			}
			got = append(got, string(e.Status))
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	require.Equal(t, []string{"scheduled", "d", "c", "b", "a"}, got)
	_, err := t.Store.History(t.Context(), continuous.HistoryQuery{Team: team, User: u.ID, Query: q.ID, Cursor: "x"})
	require.ErrorIs(t, err, healthlab.Invalid)
}

func historyKept(t contT) {
	team := conformance.NewTeam()
	q := t.insert(contQuery(team, "a"))
	u := t.user(team)
	const n = continuous.HistoryKept + 20
	for i := range n {
		t.sample(u, "steps", i, 1)
		require.NoError(t, t.Work.Finish(t.Context(), t.claim(1), continuous.Outcome{Status: continuous.TaskCompleted}))
	}
	count, cursor := 0, ""
	for {
		page, err := t.Store.History(t.Context(), continuous.HistoryQuery{Team: team, User: u.ID, Query: q.ID, Cursor: cursor, Size: 70})
		require.NoError(t, err)
		count += len(page.Entries)
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	require.GreaterOrEqual(t, count, continuous.HistoryKept)
	require.Less(t, count, n, "the history does not grow for ever")
}

func historyTeams(t contT) {
	team := conformance.NewTeam()
	q := t.insert(contQuery(team, "a"))
	u := t.user(team)
	t.sample(u, "steps", 0, 1)
	require.NoError(t, t.Work.Finish(t.Context(), t.claim(1), completed("x")))
	t.sample(u, "steps", 1, 1)
	for name, h := range conformance.Sorted(map[string]continuous.HistoryQuery{
		"team":  {Team: conformance.NewTeam(), User: u.ID, Query: q.ID},
		"user":  {Team: team, User: conformance.NewUser(), Query: q.ID},
		"query": {Team: team, User: u.ID, Query: newQueryID()},
	}) {
		t.Run(name, func(sub *testing.T) {
			page, err := t.Store.History(t.Context(), h)
			require.NoError(sub, err)
			require.Empty(sub, page.Entries)
		})
	}
}

func continuousErase(t contT) {
	team := conformance.NewTeam()
	q := t.insert(contQuery(team, "a"))
	u, other := t.user(team), t.user(team)
	for _, p := range []int{0, 1} {
		t.sample(u, "steps", p, 1)
		t.sample(other, "steps", p, 1)
	}
	var mine continuous.Task
	for range 2 {
		task := t.claim(1)
		require.NoError(t, t.Work.Finish(t.Context(), task, completed("x")))
	}
	t.sample(u, "steps", 5, 1)
	mine = t.claim(1)
	t.sample(u, "steps", 6, 1)
	t.remove(u)
	require.NoError(t, t.Users.Erase(t.Context(), team, u.ID))
	_, err := t.Store.Result(t.Context(), team, u.ID, q.ID)
	require.ErrorIs(t, err, healthlab.NotFound)
	require.Empty(t, t.history(q, u))
	require.ErrorIs(t, t.Work.Finish(t.Context(), mine, completed("x")), healthlab.Precondition)
	require.Empty(t, t.drain())
	_, err = t.Store.Result(t.Context(), team, other.ID, q.ID)
	require.NoError(t, err)
	require.NotEmpty(t, t.history(q, other))
}
