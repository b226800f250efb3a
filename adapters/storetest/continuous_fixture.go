package storetest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/webhook"
)

// ContinuousHarness is a fresh, empty store that keeps health data and continuous
// queries. All fields look at the same store.
type ContinuousHarness struct {
	// Store and Work are the seams that are tested.
	Store aggregate.ContinuousStore
	Work  aggregate.ContinuousWork
	// Data is what schedules tasks, and Users whose it is.
	Data  healthdata.Data
	Users healthdata.Users
	// Messages shows the events that Work wrote.
	Messages webhook.Log
}

// contT is one subtest: a store and the words to talk about it.
type contT struct {
	*testing.T
	ContinuousHarness
}

func (t contT) data() dataT { return dataT{t.T, DataHarness{Data: t.Data, Users: t.Users}} }

// contQuery is an active query about steps with no field at its zero value, but that it
// may be evaluated at any time.
func contQuery(team healthlab.TeamID, slug string) aggregate.ContinuousQuery {
	return aggregate.ContinuousQuery{
		ID: newQueryID(), Status: aggregate.ContinuousActive, Slug: slug, Title: "Steps (per day)", Team: team,
		Query: aggregate.Query{
			Select:  []aggregate.Expr{aggregate.Keys(), aggregate.InRange(aggregate.Samples("steps"), 1, 2.5)},
			GroupBy: []aggregate.Expr{aggregate.By(aggregate.Days(1))},
			Where:   `source_provider = 'räv'`,
			Align:   &aggregate.Align{Mode: aggregate.CarryForward, Limit: &aggregate.Period{Unit: aggregate.Day, Value: 3}},
		},
		Config:      aggregate.Config{ProviderPriorityOverrides: []string{"acme_band"}, OverlapPolicy: aggregate.FillGaps},
		Scheduling:  aggregate.Scheduling{MinimumGap: ptr(0)},
		Schema:      map[string]aggregate.Type{"index": "timestamp", "sum": "float64"},
		Resources:   []string{"steps"},
		Export:      aggregate.Export{DataEvents: aggregate.DataEvents{Enabled: true}},
		FHIRMappers: []string{"reserved"},
		CreatedAt:   noon.Time,
		Revision:    1,
	}
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

func errOf[T any](_ T, err error) error { return err }

func (t contT) insert(q aggregate.ContinuousQuery) aggregate.ContinuousQuery {
	t.Helper()
	require.NoError(t, t.Store.Insert(t.Context(), q))
	return q
}

func (t contT) archive(q aggregate.ContinuousQuery) {
	t.Helper()
	_, err := t.Store.Update(t.Context(), q.Team, q.ID, func(q *aggregate.ContinuousQuery) error {
		q.Status = aggregate.ContinuousArchived
		return nil
	})
	require.NoError(t, err)
}

// user adds a live user to a team.
func (t contT) user(team healthlab.TeamID) healthdata.User {
	t.Helper()
	u := bare(team, newUserID().String())
	require.NoError(t, t.Users.Insert(t.Context(), u, 0))
	return u
}

func (t contT) remove(u healthdata.User) { t.data().remove(u) }

func (t contT) put(u healthdata.User, records ...healthdata.Record) { t.data().put(u, records...) }

func (t contT) merge(u healthdata.User, key healthdata.SeriesKey, samples ...series.Sample) {
	t.data().merge(u, key, samples...)
}

// sample writes samples of one value at some minutes.
func (t contT) sample(u healthdata.User, resource string, minute int, v float64, more ...int) {
	list := []series.Sample{sampleAt(minute, v)}
	for _, m := range more {
		list = append(list, sampleAt(m, v))
	}
	t.merge(u, healthdata.SeriesKey{Resource: resource, Provider: "acme_band", SourceType: "watch"}, list...)
}

// refuseSamples writes samples and refuses what becomes of them.
func (t contT) refuseSamples(u healthdata.User, samples ...series.Sample) error {
	return t.Data.MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{batch(steps, samples...)},
		func([]series.Outcome) ([]healthlab.Event, error) { return nil, errNo })
}

// claim takes n tasks, which must be there, for an hour, and returns the first.
func (t contT) claim(n int) aggregate.ContinuousTask {
	t.Helper()
	tasks, err := t.Work.Claim(t.Context(), n, time.Hour)
	require.NoError(t, err)
	require.Len(t, tasks, n)
	return tasks[0]
}

// drain takes all tasks that are due, ends them, and returns them.
func (t contT) drain() []aggregate.ContinuousTask {
	t.Helper()
	tasks, err := t.Work.Claim(t.Context(), 1000, time.Hour)
	require.NoError(t, err)
	for _, task := range tasks {
		require.NoError(t, t.Work.Finish(t.Context(), task, completed("drained")))
	}
	return tasks
}

func completed(table string) aggregate.TaskOutcome {
	return aggregate.TaskOutcome{Status: aggregate.TaskCompleted, Table: []byte(table)}
}

func (t contT) history(q aggregate.ContinuousQuery, u healthdata.User) []aggregate.HistoryEntry {
	t.Helper()
	page, err := t.Store.History(t.Context(), aggregate.HistoryQuery{Team: u.Team, User: u.ID, Query: q.ID})
	require.NoError(t, err)
	return page.Entries
}

func statuses(entries []aggregate.HistoryEntry) (out []aggregate.TaskStatus) {
	for _, e := range entries {
		out = append(out, e.Status)
	}
	return out
}
