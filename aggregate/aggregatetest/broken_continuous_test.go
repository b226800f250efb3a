package aggregatetest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/aggregatetest"
	"github.com/healthlab-dev/healthlab/aggregate/continuous"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/conformance"
)

// brokenContinuousStores are stores that break one promise each.
var brokenContinuousStores = []conformance.Broken{
	{Name: "reaches into other teams", Suite: spoiltContinuous(func(b *brokenContinuous) { b.anyTeam = true }), Subtest: "Query/Teams"},
	{Name: "takes a slug twice", Suite: spoiltContinuous(func(b *brokenContinuous) { b.anySlug = true }), Subtest: "Query/Slugs"},
	{Name: "takes everything", Suite: spoiltContinuous(func(b *brokenContinuous) { b.anySlug = true }), Subtest: "Query/Refused"},
	{Name: "keeps the caller's slices", Suite: spoiltContinuous(func(b *brokenContinuous) { b.aliases = true }), Subtest: "Query/Aliasing"},
	{Name: "drops a field", Suite: spoiltContinuous(func(b *brokenContinuous) { b.onInsert = func(q *continuous.Query) { q.Query.Align = nil } }), Subtest: "Query/RoundTrip"},
	{Name: "lets change change the slug", Suite: spoiltContinuous(func(b *brokenContinuous) { b.freeSlug = true }), Subtest: "Query/Update"},
	{Name: "writes what change refused", Suite: spoiltContinuous(func(b *brokenContinuous) { b.writesAnyway = true }), Subtest: "Query/UpdateError"},
	{Name: "loses updates", Suite: spoiltContinuous(func(b *brokenContinuous) { b.loses = true }), Subtest: "Query/NoLostUpdates"},
	{Name: "lists the oldest first", Suite: spoiltContinuous(func(b *brokenContinuous) { b.backwards = true }), Subtest: "Query/List"},
	{Name: "works without its caller", Suite: spoiltContinuous(func(b *brokenContinuous) { b.alone = true }), Subtest: "Query/Context"},
	{Name: "passes over who was there", Suite: spoiltContinuous(func(b *brokenContinuous) { b.backfill = func(int) int { return 0 } }), Subtest: "Backfill/EveryLiveUser"},
	{Name: "schedules all at once", Suite: spoiltContinuous(func(b *brokenContinuous) { b.backfill = func(int) int { return 1000 } }), Subtest: "Backfill/InSteps"},
	{Name: "covers too little of samples", Suite: spoiltContinuous(func(b *brokenContinuous) { b.onClaim = lastInstant }), Subtest: "Schedule/Samples"},
	{Name: "covers too little of records", Suite: spoiltContinuous(func(b *brokenContinuous) { b.onClaim = lastInstant }), Subtest: "Schedule/Records"},
	{Name: "forgets who was there", Suite: spoiltContinuous(func(b *brokenContinuous) {
		b.onInsert = func(q *continuous.Query) { q.Resources = []string{"sleep"} }
	}), Subtest: "Schedule/WhoWasThere"},
	{Name: "schedules what does not depend", Suite: spoiltContinuous(func(b *brokenContinuous) {
		b.onInsert = func(q *continuous.Query) { q.Resources = append(q.Resources, "heartrate") }
	}), Subtest: "Schedule/OnlyWhatDepends"},
	{Name: "schedules what is archived", Suite: spoiltContinuous(func(b *brokenContinuous) { b.neverArchives = true }), Subtest: "Schedule/OnlyWhatDepends"},
	{Name: "schedules for what is the same", Suite: spoiltContinuous(func(b *brokenContinuous) { b.writesMore = true }), Subtest: "Schedule/NothingForTheSame"},
	{Name: "schedules what was refused", Suite: spoiltContinuous(func(b *brokenContinuous) { b.writesMore = true }), Subtest: "Schedule/NothingForRefused"},
	{Name: "knows no gap", Suite: spoiltContinuous(func(b *brokenContinuous) {
		b.onInsert = func(q *continuous.Query) { q.Scheduling.MinimumGap = new(int) }
	}), Subtest: "Schedule/Gap"},
	{Name: "forgets what came while it ran", Suite: spoiltContinuous(func(b *brokenContinuous) { b.onClaim = always }), Subtest: "Schedule/WhileRunning"},
	{Name: "hands out tasks again", Suite: spoiltContinuous(func(b *brokenContinuous) { b.again = true }), Subtest: "Claim/Once"},
	{Name: "hands out tasks twice", Suite: spoiltContinuous(func(b *brokenContinuous) { b.again = true }), Subtest: "Claim/NoTaskTwice"},
	{Name: "leases for ever", Suite: spoiltContinuous(func(b *brokenContinuous) { b.lease = 1000 * time.Hour }), Subtest: "Claim/LeaseEnds"},
	{Name: "keeps the caller's table", Suite: spoiltContinuous(func(b *brokenContinuous) { b.aliases = true }), Subtest: "Finish/Result"},
	{Name: "drops events", Suite: spoiltContinuous(func(b *brokenContinuous) { b.onFinish = func(o *continuous.Outcome) { o.Events = nil } }), Subtest: "Finish/Events"},
	{Name: "keeps a table without its events", Suite: spoiltContinuous(func(b *brokenContinuous) { b.onFinish = func(o *continuous.Outcome) { o.Events = nil } }), Subtest: "Finish/AllOrNothing"},
	{Name: "takes late outcomes", Suite: spoiltContinuous(func(b *brokenContinuous) { b.late = true }), Subtest: "Finish/LostLease"},
	{Name: "forgets the range of what failed", Suite: spoiltContinuous(func(b *brokenContinuous) { b.onFinish = fine }), Subtest: "Finish/ErrorKeepsRange"},
	{Name: "tells the oldest first", Suite: spoiltContinuous(func(b *brokenContinuous) { b.backwards = true }), Subtest: "History/Order"},
	{Name: "ends after one page", Suite: spoiltContinuous(func(b *brokenContinuous) { b.onePage = true }), Subtest: "History/Pages"},
	{Name: "keeps too little", Suite: spoiltContinuous(func(b *brokenContinuous) { b.onePage = true }), Subtest: "History/Kept"},
	{Name: "tells other teams", Suite: spoiltContinuous(func(b *brokenContinuous) { b.anyTeam = true }), Subtest: "History/Teams"},
	{Name: "keeps tables of the erased", Suite: spoiltContinuous(func(b *brokenContinuous) { b.aliases = true }), Subtest: "Erase/LeavesNothing"},
}

func lastInstant(t *continuous.Task) { t.Range.From = t.Range.To }

func always(t *continuous.Task) { t.Range = aggregate.Always }

func fine(o *continuous.Outcome) { o.Status, o.Details = continuous.TaskCompleted, "" }

// spoiltContinuous returns the suite over stores that were broken in one way.
func spoiltContinuous(how func(*brokenContinuous)) func(*testing.T) {
	return func(t *testing.T) {
		aggregatetest.RunContinuous(t, func(testing.TB) aggregatetest.ContinuousHarness {
			s := memory.New(nil)
			b := &brokenContinuous{
				Store: s.Continuous(), work: s.ContinuousWork(), data: s.Data(),
				given: map[continuous.QueryID]continuous.Query{}, tables: map[continuous.QueryID][]byte{},
			}
			how(b)
			return aggregatetest.ContinuousHarness{Store: b, Work: brokenWork{b}, Data: brokenWriter{b.data, b}, Users: s.Users(), Messages: s.WebhookLog()}
		})
	}
}

// brokenContinuous is a store that may be broken in many ways.
type brokenContinuous struct {
	continuous.Store
	work continuous.Work
	data healthdata.Data

	anyTeam, anySlug, aliases, freeSlug, writesAnyway, loses, backwards, alone bool
	neverArchives, writesMore, again, late, onePage                            bool
	onInsert                                                                   func(*continuous.Query)
	onClaim                                                                    func(*continuous.Task)
	onFinish                                                                   func(*continuous.Outcome)
	backfill                                                                   func(int) int
	lease                                                                      time.Duration

	mu     sync.Mutex
	given  map[continuous.QueryID]continuous.Query
	tables map[continuous.QueryID][]byte
	tasks  []continuous.Task
}

func (b *brokenContinuous) context(ctx context.Context) context.Context {
	if b.alone {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

func (b *brokenContinuous) team(team healthlab.TeamID, id continuous.QueryID) healthlab.TeamID {
	if q, ok := b.given[id]; ok && b.anyTeam {
		return q.Team
	}
	return team
}

func (b *brokenContinuous) Insert(ctx context.Context, q continuous.Query) error {
	b.given[q.ID] = q
	if b.onInsert != nil {
		b.onInsert(&q)
	}
	err := b.Store.Insert(b.context(ctx), q)
	if b.anySlug && errors.Is(err, healthlab.Conflict) {
		return nil
	}
	return err
}

func (b *brokenContinuous) Get(ctx context.Context, team healthlab.TeamID, id continuous.QueryID) (continuous.Query, error) {
	q, err := b.Store.Get(b.context(ctx), b.team(team, id), id)
	if given, ok := b.given[id]; ok && b.aliases {
		given.CreatedAt, given.Revision = q.CreatedAt, q.Revision
		return given, err
	}
	return q, err
}

func (b *brokenContinuous) Update(ctx context.Context, team healthlab.TeamID, id continuous.QueryID, change func(*continuous.Query) error) (continuous.Query, error) {
	var refused error
	how := change
	switch {
	case b.neverArchives:
		how = func(*continuous.Query) error { return nil }
	case b.writesAnyway:
		how = func(q *continuous.Query) error {
			refused = change(q)
			return nil
		}
	case b.loses:
		q, err := b.Get(ctx, team, id)
		if err != nil {
			return q, err
		}
		refused = change(&q)
		conformance.Pause()
		how = func(c *continuous.Query) error {
			*c = q
			return nil
		}
	}
	q, err := b.Store.Update(b.context(ctx), b.team(team, id), id, how)
	if b.freeSlug {
		q.Slug = "b"
	}
	return q, errors.Join(err, refused)
}

func (b *brokenContinuous) List(ctx context.Context, q continuous.ListQuery) (continuous.Page, error) {
	page, err := b.Store.List(ctx, q)
	if b.backwards {
		slices.Reverse(page.Queries)
	}
	return page, err
}

func (b *brokenContinuous) Result(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, id continuous.QueryID) ([]byte, error) {
	if table, ok := b.tables[id]; ok && b.aliases {
		return table, nil
	}
	return b.Store.Result(ctx, team, user, id)
}

func (b *brokenContinuous) History(ctx context.Context, q continuous.HistoryQuery) (continuous.HistoryPage, error) {
	q.Team = b.team(q.Team, q.Query)
	page, err := b.Store.History(ctx, q)
	if b.backwards {
		slices.Reverse(page.Entries)
	}
	if b.onePage {
		page.Next = ""
	}
	return page, err
}

type brokenWork struct{ *brokenContinuous }

func (b brokenWork) Backfill(ctx context.Context, n int) (int, error) {
	if b.backfill != nil {
		if n = b.backfill(n); n == 0 {
			return 0, nil
		}
	}
	return b.work.Backfill(ctx, n)
}

func (b brokenWork) Claim(ctx context.Context, n int, lease time.Duration) ([]continuous.Task, error) {
	list, err := b.work.Claim(ctx, n, lease+b.lease)
	if b.onClaim != nil {
		for i := range list {
			b.onClaim(&list[i])
		}
	}
	if b.again {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.tasks = append(b.tasks, list...)
		return slices.Clone(b.tasks), err
	}
	return list, err
}

func (b brokenWork) Finish(ctx context.Context, t continuous.Task, o continuous.Outcome) error {
	if b.onFinish != nil {
		b.onFinish(&o)
	}
	if o.Table != nil {
		b.tables[t.Query] = o.Table
	}
	err := b.work.Finish(ctx, t, o)
	if b.late && errors.Is(err, healthlab.Precondition) {
		return nil
	}
	return err
}

// brokenWriter writes data.
type brokenWriter struct {
	healthdata.Data
	*brokenContinuous
}

func (b brokenWriter) MergeSamples(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, batches []healthdata.SampleBatch, events mergeEvents) error {
	err := b.Data.MergeSamples(ctx, team, user, batches, events)
	if b.writesMore {
		more := batches[0]
		more.Samples = new(series.Block)
		more.Samples.Append(series.Sample{Time: time.Now().UnixMicro(), End: series.NoEnd})
		return errors.Join(err, b.Data.MergeSamples(ctx, team, user, []healthdata.SampleBatch{more}, nil))
	}
	return err
}

type mergeEvents = func([]series.Outcome) ([]healthlab.Event, error)
