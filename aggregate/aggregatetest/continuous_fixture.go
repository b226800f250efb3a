package aggregatetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/continuous"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/webhook"
)

// ContinuousHarness is a fresh, empty store of health data and continuous queries. All fields are views of the
// same store.
type ContinuousHarness struct {
	// Store and Work are the interfaces under test.
	Store continuous.Store
	Work  continuous.Work
	// Data stores the health data whose writes schedule tasks. Users stores the users that own the data.
	Data  healthdata.Data
	Users healthdata.Users
	// Messages lists the events that Work wrote.
	Messages webhook.Log
}

// contT is one subtest: a store and helper methods.
type contT struct {
	*testing.T
	ContinuousHarness
}

// contQuery returns an active query about steps with a value in every field. Its MinimumGap is 0, so that a task is due
// immediately after the one before it.
func contQuery(team healthlab.TeamID, slug string) continuous.Query {
	return continuous.Query{
		ID: newQueryID(), Status: continuous.Active, Slug: slug, Title: "Steps (per day)", Team: team,
		Query: aggregate.Query{
			Select:  []aggregate.Expr{aggregate.Keys(), aggregate.InRange(aggregate.Samples("steps"), 1, 2.5)},
			GroupBy: []aggregate.Expr{aggregate.By(aggregate.Days(1))},
			Where:   `source_provider = 'räv'`,
			Align:   &aggregate.Align{Mode: aggregate.CarryForward, Limit: &aggregate.Period{Unit: aggregate.Day, Value: 3}},
		},
		Config:      aggregate.Config{ProviderPriorityOverrides: []string{"acme_band"}, OverlapPolicy: aggregate.FillGaps},
		Scheduling:  continuous.Scheduling{MinimumGap: new(0)},
		Schema:      map[string]aggregate.Type{"index": "timestamp", "sum": "float64"},
		Resources:   []string{"steps"},
		Export:      continuous.Export{DataEvents: continuous.DataEvents{Enabled: true}},
		FHIRMappers: []string{"reserved"},
		CreatedAt:   noon.Time,
		Revision:    1,
	}
}

func (t contT) insert(q continuous.Query) continuous.Query {
	t.Helper()
	require.NoError(t, t.Store.Insert(t.Context(), q))
	return q
}

func (t contT) archive(q continuous.Query) {
	t.Helper()
	_, err := t.Store.Update(t.Context(), q.Team, q.ID, func(q *continuous.Query) error {
		q.Status = continuous.Archived
		return nil
	})
	require.NoError(t, err)
}

func (t contT) user(team healthlab.TeamID) healthdata.User {
	t.Helper()
	u := healthdatatest.LiveUser(team, conformance.NewUser().String())
	require.NoError(t, t.Users.Insert(t.Context(), u, 0))
	return u
}

func (t contT) remove(u healthdata.User) { healthdatatest.DeleteUser(t, t.Users, u.Team, u.ID) }

func (t contT) put(u healthdata.User, records ...healthdata.Record) {
	t.Helper()
	require.NoError(t, t.Data.PutRecords(t.Context(), u.Team, u.ID, records,
		func([]healthdata.PutResult) ([]healthlab.Event, error) { return nil, nil }))
}

func (t contT) merge(u healthdata.User, key healthdata.SeriesKey, samples ...series.Sample) {
	t.Helper()
	err := t.Data.MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{healthdatatest.Batch(key, samples...)},
		func([]series.Outcome) ([]healthlab.Event, error) { return nil, nil })
	if err != nil {
		t.Errorf("merge: %v", err)
	}
}

// sample writes samples with the value v, one at minute and one at each minute in more.
func (t contT) sample(u healthdata.User, resource string, minute int, v float64, more ...int) {
	list := []series.Sample{healthdatatest.Sample(minute, v)}
	for _, m := range more {
		list = append(list, healthdatatest.Sample(m, v))
	}
	t.merge(u, healthdata.SeriesKey{Resource: resource, Provider: "acme_band", SourceType: "watch"}, list...)
}

func (t contT) refuseSamples(u healthdata.User, samples ...series.Sample) error {
	return t.Data.MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{healthdatatest.Batch(healthdatatest.Steps, samples...)},
		func([]series.Outcome) ([]healthlab.Event, error) { return nil, conformance.ErrRefused })
}

// claim claims n tasks with a lease of an hour and returns the first. The test fails if fewer than n tasks are due.
func (t contT) claim(n int) continuous.Task {
	t.Helper()
	tasks, err := t.Work.Claim(t.Context(), n, time.Hour)
	require.NoError(t, err)
	require.Len(t, tasks, n)
	return tasks[0]
}

// drain claims and finishes all due tasks, and returns them.
func (t contT) drain() []continuous.Task {
	t.Helper()
	tasks, err := t.Work.Claim(t.Context(), 1000, time.Hour)
	require.NoError(t, err)
	for _, task := range tasks {
		require.NoError(t, t.Work.Finish(t.Context(), task, completed("drained")))
	}
	return tasks
}

func completed(table string) continuous.Outcome {
	return continuous.Outcome{Status: continuous.TaskCompleted, Table: []byte(table)}
}

func (t contT) history(q continuous.Query, u healthdata.User) []continuous.HistoryEntry {
	t.Helper()
	page, err := t.Store.History(t.Context(), continuous.HistoryQuery{Team: u.Team, User: u.ID, Query: q.ID})
	require.NoError(t, err)
	return page.Entries
}

func statuses(entries []continuous.HistoryEntry) (out []continuous.TaskStatus) {
	for _, e := range entries {
		out = append(out, e.Status)
	}
	return out
}

// noon is the time of the records and of the creation of queries in the tests.
var noon = healthlab.At(time.Date(2026, 3, 4, 12, 0, 0, 123_456_000, time.UTC))
