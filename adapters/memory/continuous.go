package memory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/continuous"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/personkey"
)

// continuousTable keeps continuous queries, and by query and user what they came to.
type continuousTable struct {
	queries map[continuous.QueryID]*keptQuery
	tasks   map[taskKey]*keptTask

	priorities map[healthlab.TeamID][]aggregate.Priority
}

// keptQuery is a query as it was written, in bytes that no caller can edit.
type keptQuery struct {
	data     []byte
	read     continuous.Query // never handed out
	backfill bool             // some users may have no task yet
	after    healthlab.UserID // those up to here have
}

type taskKey struct {
	healthdata.UserRef
	query continuous.QueryID
}

// keptTask is a query and user.
type keptTask struct {
	due      time.Time // of the task that waits; zero if none does
	skipped  time.Time // the last change that came while it waited
	waiting  aggregate.Span
	kept     bool // waiting has a range, due or not
	run      int64
	tries    int
	lease    time.Time // of the task that runs; zero if none does
	running  aggregate.Span
	runDue   time.Time
	started  time.Time
	table    []byte
	history  []continuous.HistoryEntry // the oldest first
	forgot   int                       // entries that were before history
	progress int                       // place in history of the one that runs
}

func newContinuousTable() *continuousTable {
	return &continuousTable{queries: map[continuous.QueryID]*keptQuery{}, tasks: map[taskKey]*keptTask{}, priorities: map[healthlab.TeamID][]aggregate.Priority{}}
}

type continuousStore struct {
	*database
	users      *userTable
	outbox     *outbox
	continuous *continuousTable
}

func noQuery() error {
	return fmt.Errorf("%w: the team has no such continuous query", healthlab.NotFound)
}

// keep returns a query in the form in which it is kept.
func (t *continuousTable) keep(q continuous.Query) (*keptQuery, error) {
	q.CreatedAt = instant(q.CreatedAt)
	data, err := json.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("keep continuous query: %w", err)
	}
	if bytes.Contains(data, []byte(`\u0000`)) {
		return nil, fmt.Errorf("%w: text contains no NUL", healthlab.Invalid)
	}
	k := &keptQuery{data: data, read: q}
	k.read, err = k.copy()
	return k, err
}

func (k *keptQuery) copy() (continuous.Query, error) {
	q := continuous.Query{CreatedAt: k.read.CreatedAt, Revision: k.read.Revision}
	if err := json.Unmarshal(k.data, &q); err != nil {
		return continuous.Query{}, fmt.Errorf("read continuous query: %w", err)
	}
	return q, nil
}

// slugTaken reports whether another active query of the team has the slug.
func (t *continuousTable) slugTaken(q *continuous.Query) bool {
	for id, k := range t.queries {
		if id != q.ID && k.read.Team == q.Team && k.read.Slug == q.Slug && k.read.Status == continuous.Active {
			return true
		}
	}
	return false
}

func (v continuousStore) Insert(ctx context.Context, q continuous.Query) error {
	if q.Team.IsZero() || q.ID.UUID == uuid.Nil {
		return fmt.Errorf("%w: a continuous query needs a team and an id", healthlab.Invalid)
	}
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	t := v.continuous
	q.Revision = 1
	k, err := t.keep(q)
	switch {
	case err != nil:
		return err
	case t.queries[q.ID] != nil, q.Status == continuous.Active && t.slugTaken(&q):
		return fmt.Errorf("%w: a continuous query with this id or slug exists", healthlab.Conflict)
	}
	k.backfill = true
	t.queries[q.ID] = k
	return nil
}

// get finds a query of a team. It is called with the lock held.
func (v continuousStore) get(team healthlab.TeamID, id continuous.QueryID) (*keptQuery, error) {
	k := v.continuous.queries[id]
	if k == nil || k.read.Team != team {
		return nil, noQuery()
	}
	return k, nil
}

func (v continuousStore) Get(ctx context.Context, team healthlab.TeamID, id continuous.QueryID) (continuous.Query, error) {
	if err := v.lock(ctx); err != nil {
		return continuous.Query{}, err
	}
	defer v.mu.Unlock()
	k, err := v.get(team, id)
	if err != nil {
		return continuous.Query{}, err
	}
	return k.copy()
}

func (v continuousStore) Find(ctx context.Context, team healthlab.TeamID, slug string) (continuous.Query, error) {
	if err := v.lock(ctx); err != nil {
		return continuous.Query{}, err
	}
	defer v.mu.Unlock()
	if strings.ContainsRune(slug, 0) {
		return continuous.Query{}, fmt.Errorf("%w: text contains no NUL", healthlab.Invalid)
	}
	for _, k := range v.continuous.queries {
		if k.read.Team == team && k.read.Slug == slug && k.read.Status == continuous.Active {
			return k.copy()
		}
	}
	return continuous.Query{}, noQuery()
}

func (v continuousStore) Update(ctx context.Context, team healthlab.TeamID, id continuous.QueryID, change func(*continuous.Query) error) (continuous.Query, error) {
	if err := v.lock(ctx); err != nil {
		return continuous.Query{}, err
	}
	defer v.mu.Unlock()
	was, err := v.get(team, id)
	if err != nil {
		return continuous.Query{}, err
	}
	q, err := was.copy()
	if err != nil {
		return continuous.Query{}, err
	}
	if err := change(&q); err != nil {
		return continuous.Query{}, err
	}
	o := &was.read
	q.ID, q.Team, q.Slug, q.CreatedAt, q.Revision = o.ID, o.Team, o.Slug, o.CreatedAt, o.Revision+1
	if q.Status == continuous.Active && v.continuous.slugTaken(&q) {
		return continuous.Query{}, fmt.Errorf("%w: a continuous query with this slug exists", healthlab.Conflict)
	}
	k, err := v.continuous.keep(q)
	if err != nil {
		return continuous.Query{}, err
	}
	k.backfill, k.after = was.backfill, was.after
	v.continuous.queries[id] = k
	return k.copy()
}

func (v continuousStore) List(ctx context.Context, q continuous.ListQuery) (continuous.Page, error) {
	if err := v.lock(ctx); err != nil {
		return continuous.Page{}, err
	}
	defer v.mu.Unlock()
	after, err := parseCursor(q.Cursor)
	if err != nil {
		return continuous.Page{}, err
	}
	size := q.Size
	if size <= 0 {
		size = defaultPage
	}
	var mine []*keptQuery
	for _, k := range v.continuous.queries {
		if k.read.Team == q.Team && (q.Cursor == "" || after.before(k.read.CreatedAt, k.read.ID.UUID)) {
			mine = append(mine, k)
		}
	}
	slices.SortFunc(mine, func(a, b *keptQuery) int {
		return cmp.Or(b.read.CreatedAt.Compare(a.read.CreatedAt), bytes.Compare(b.read.ID.UUID[:], a.read.ID.UUID[:]))
	})
	page := continuous.Page{Queries: []continuous.Query{}}
	for _, k := range mine[:min(size, len(mine))] {
		c, err := k.copy()
		if err != nil {
			return continuous.Page{}, err
		}
		page.Queries = append(page.Queries, c)
	}
	if len(mine) > size {
		last := &page.Queries[size-1]
		page.Next = cursor{last.CreatedAt, last.ID.UUID}.String()
	}
	return page, nil
}

func (v continuousStore) Result(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, id continuous.QueryID) ([]byte, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	k := v.continuous.tasks[taskKey{healthdata.UserRef{Team: team, User: user}, id}]
	if k == nil || k.table == nil {
		return nil, fmt.Errorf("%w: there is no table yet", healthlab.NotFound)
	}
	table, err := v.keys.Open(ctx, personkey.Ref{Team: team, User: user}, personkey.RowResultTable(id), k.table)
	return bytes.Clone(table), err
}

func (v continuousStore) History(ctx context.Context, q continuous.HistoryQuery) (continuous.HistoryPage, error) {
	if err := v.lock(ctx); err != nil {
		return continuous.HistoryPage{}, err
	}
	defer v.mu.Unlock()
	size := q.Size
	if size <= 0 {
		size = defaultPage
	}
	page := continuous.HistoryPage{Entries: []continuous.HistoryEntry{}}
	before := -1
	if q.Cursor != "" {
		n, err := strconv.Atoi(q.Cursor)
		if err != nil || n < 0 {
			return page, badCursor()
		}
		before = n
	}
	k := v.continuous.tasks[taskKey{healthdata.UserRef{Team: q.Team, User: q.User}, q.Query}]
	if k == nil {
		return page, nil
	}
	if before < 0 {
		before = k.forgot + len(k.history)
		if !k.due.IsZero() {
			page.Entries = append(page.Entries, continuous.HistoryEntry{
				Query: q.Query, User: q.User, Status: continuous.TaskScheduled, ScheduledAt: healthlab.At(k.due),
			})
		}
	}
	for i := min(before-k.forgot, len(k.history)) - 1; i >= 0; i-- {
		if len(page.Entries) == size {
			page.Next = strconv.Itoa(k.forgot + i + 1)
			break
		}
		e := k.history[i]
		e.StartedAt, e.EndedAt, e.Details = clone(e.StartedAt), clone(e.EndedAt), clone(e.Details)
		page.Entries = append(page.Entries, e)
	}
	return page, nil
}

// changedSpans is where a write changed something, by resource.
type changedSpans map[string]aggregate.Span

func (t *changedSpans) add(resource string, from, to int64) {
	span := aggregate.Span{From: from, To: to}
	if *t == nil {
		*t = changedSpans{}
	}
	if was, ok := (*t)[resource]; ok {
		span = union(span, was)
	}
	(*t)[resource] = span
}

// addBatch adds those samples of a batch that are new or changed.
func (t *changedSpans) addBatch(b *healthdata.SampleBatch, o *series.Outcome) {
	if o.Idle() {
		return
	}
	news := func(s series.State) bool { return s != series.Same }
	first := slices.IndexFunc(o.States, news)
	last := len(o.States) - 1
	for !news(o.States[last]) {
		last--
	}
	t.add(b.Key.Resource, b.Samples.Time[first], b.Samples.Time[last])
}

func union(a, b aggregate.Span) aggregate.Span {
	return aggregate.Span{From: min(a.From, b.From), To: max(a.To, b.To)}
}

// scheduleChanged schedules what depends on the data of a user that a write has changed. It is
// called with the lock held, by every such write.
func (t *continuousTable) scheduleChanged(k healthdata.UserRef, news changedSpans, at time.Time) {
	for id, q := range t.queries {
		if q.read.Team != k.Team || q.read.Status != continuous.Active {
			continue
		}
		var span aggregate.Span
		any := false
		for _, resource := range q.read.Resources {
			if one, ok := news[resource]; ok && any {
				span = union(span, one)
			} else if ok {
				span, any = one, true
			}
		}
		if any {
			t.schedule(taskKey{k, id}, q, span, at)
		}
	}
}

func (t *continuousTable) schedule(key taskKey, q *keptQuery, span aggregate.Span, at time.Time) {
	k := t.tasks[key]
	if k == nil {
		k = &keptTask{}
		t.tasks[key] = k
	}
	k.widen(span)
	if !k.due.IsZero() {
		k.skipped = at
		return
	}
	k.due = at
	if next := k.started.Add(q.read.Gap()); k.run > 0 && next.After(at) {
		k.due = next
	}
}

// widen adds a span to what the next task covers.
func (k *keptTask) widen(span aggregate.Span) {
	if k.kept {
		span = union(span, k.waiting)
	}
	k.waiting, k.kept = span, true
}

func (v continuousStore) Backfill(ctx context.Context, n int) (int, error) {
	if err := v.lock(ctx); err != nil {
		return 0, err
	}
	defer v.mu.Unlock()
	at := v.clock()
	for id, q := range v.continuous.queries {
		if !q.backfill || q.read.Status != continuous.Active || n <= 0 {
			continue
		}
		var users []healthlab.UserID
		for _, row := range v.users.of(q.read.Team) {
			if u := row.user.ID; row.user.Live() && bytes.Compare(u.UUID[:], q.after.UUID[:]) > 0 {
				users = append(users, u)
			}
		}
		slices.SortFunc(users, func(a, b healthlab.UserID) int { return bytes.Compare(a.UUID[:], b.UUID[:]) })
		if q.backfill = len(users) > n; q.backfill {
			users = users[:n]
		}
		for _, u := range users {
			v.continuous.schedule(taskKey{healthdata.UserRef{Team: q.read.Team, User: u}, id}, q, aggregate.Always, at)
			q.after = u
		}
		if len(users) > 0 {
			return len(users), nil
		}
	}
	return 0, nil
}

func (v continuousStore) Claim(ctx context.Context, n int, lease time.Duration) ([]continuous.Task, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	now := v.clock()
	type due struct {
		taskKey
		*keptTask
		at time.Time
	}
	var list []due
	for key, k := range v.continuous.tasks {
		at := k.due
		if !k.lease.IsZero() {
			at = k.lease // the next one begins after this one has ended
		}
		if !at.IsZero() && !at.After(now) {
			list = append(list, due{key, k, at})
		}
	}
	slices.SortFunc(list, func(a, b due) int {
		return cmp.Or(a.at.Compare(b.at), bytes.Compare(a.User.UUID[:], b.User.UUID[:]), bytes.Compare(a.query.UUID[:], b.query.UUID[:]))
	})
	var out []continuous.Task
	for _, d := range list[:min(max(n, 0), len(list))] {
		d.begin(&d.taskKey, now)
		d.lease = now.Add(lease)
		out = append(out, continuous.Task{
			Team: d.Team, User: d.User, Query: d.query, Range: d.running, ScheduledAt: d.runDue, StartedAt: d.started, Try: d.tries, Run: d.run,
		})
	}
	return out, nil
}

// begin makes the waiting task the one that runs, or counts one more try.
func (k *keptTask) begin(key *taskKey, now time.Time) {
	k.run++
	k.started = now
	if !k.lease.IsZero() {
		k.tries++
		return
	}
	k.tries, k.running, k.runDue = 1, k.waiting, k.due
	k.kept, k.waiting, k.due = false, aggregate.Span{}, time.Time{}
	at := healthlab.At(now)
	if !k.skipped.IsZero() {
		skipped := healthlab.At(k.skipped)
		k.history = append(k.history, continuous.HistoryEntry{
			Query: key.query, User: key.User, Status: continuous.TaskSkipped, ScheduledAt: skipped, EndedAt: &skipped,
		})
		k.skipped = time.Time{}
	}
	k.history = append(k.history, continuous.HistoryEntry{
		Query: key.query, User: key.User, Status: continuous.TaskStarted, ScheduledAt: healthlab.At(k.runDue), StartedAt: &at,
	})
	if old := len(k.history) - continuous.HistoryKept; old > 0 {
		k.history = slices.Delete(k.history, 0, old)
		k.forgot += old
	}
	k.progress = len(k.history) - 1
}

func (v continuousStore) Finish(ctx context.Context, t continuous.Task, o continuous.Outcome) error {
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	k := v.continuous.tasks[taskKey{healthdata.UserRef{Team: t.Team, User: t.User}, t.Query}]
	if k == nil || k.lease.IsZero() || k.run != t.Run {
		return fmt.Errorf("%w: another worker has the task", healthlab.Precondition)
	}
	if strings.ContainsRune(o.Details, 0) {
		return fmt.Errorf("%w: text contains no NUL", healthlab.Invalid)
	}
	table := bytes.Clone(o.Table)
	if table != nil {
		var err error
		if table, err = v.keys.Seal(ctx, personkey.Ref{Team: t.Team, User: t.User}, personkey.RowResultTable(t.Query), table); err != nil {
			return err
		}
	}
	if err := v.outbox.emit(ctx, o.Events); err != nil {
		return err
	}
	if table != nil {
		k.table = table
	}
	if o.Status == continuous.TaskError {
		k.widen(k.running)
	}
	at := healthlab.At(v.clock())
	e := &k.history[k.progress]
	e.Status, e.EndedAt = o.Status, &at
	if o.Details != "" {
		e.Details = &o.Details
	}
	k.lease = time.Time{}
	return nil
}

// erase forgets what queries came to for a user. It is called with the lock held.
func (t *continuousTable) erase(team healthlab.TeamID, user healthlab.UserID) {
	for key := range t.tasks {
		if key.Team == team && key.User == user {
			delete(t.tasks, key)
		}
	}
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

func (v continuousStore) Priorities(ctx context.Context, team healthlab.TeamID) ([]aggregate.Priority, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	return slices.Clone(v.continuous.priorities[team]), nil
}

func (v continuousStore) UpdatePriorities(ctx context.Context, team healthlab.TeamID,
	change func([]aggregate.Priority) ([]aggregate.Priority, error),
) ([]aggregate.Priority, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	t := v.continuous
	old := t.priorities[team]
	list, err := change(slices.Clone(old))
	if err != nil {
		return nil, err
	}
	list = slices.Clone(list)
	for _, p := range list {
		if err := healthlab.CheckText(p.Provider, p.Data); err != nil {
			return nil, err
		}
	}
	if err := aggregate.SortPriorities(list); err != nil {
		return nil, err
	}
	if !slices.Equal(list, old) {
		t.priorities[team] = list
		for _, q := range t.queries {
			if q.read.Team == team {
				q.backfill, q.after = true, healthlab.UserID{}
			}
		}
	}
	return slices.Clone(list), nil
}
