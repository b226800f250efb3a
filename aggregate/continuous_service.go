package aggregate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate/internal/strictjson"
	"github.com/healthlab-dev/healthlab/internal/work"
)

// ContinuousOptions adjusts a [ContinuousService]. The zero value, and nil, mean the
// defaults.
type ContinuousOptions struct {
	// Workers is how many tasks run at a time. Default 2.
	Workers int
	// Lease is how long a task may be left by a process that died. Default twice the
	// time limit of a request, and at least a minute.
	Lease time.Duration
	// Tries is how often a task is begun before it ends with an error. Default 5.
	Tries int
	// Idle is how long to wait when nothing is due. Default 1 s.
	Idle time.Duration
	// Wake ends that wait early. Give it a buffer of one.
	Wake <-chan struct{}
	// Accessed is called before a task reads a user's data. After an error nothing is read and
	// the task is tried again. Nil records nothing.
	Accessed func(ctx context.Context, t ContinuousTask) error
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// NewID makes ids. Default UUID version 7.
	NewID func() uuid.UUID
	// Log receives what went wrong in the background. Default: slog.Default().
	Log *slog.Logger
}

func (o *ContinuousOptions) defaults(limit time.Duration) {
	if o.Accessed == nil {
		o.Accessed = func(context.Context, ContinuousTask) error { return nil }
	}
	if o.Workers <= 0 {
		o.Workers = 2
	}
	if o.Lease <= 0 {
		o.Lease = max(2*limit, time.Minute)
	}
	if o.Tries <= 0 {
		o.Tries = 5
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = func() uuid.UUID { return uuid.Must(uuid.NewV7()) }
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
}

// ContinuousService keeps continuous queries and evaluates them in the background. It
// is safe for concurrent use.
type ContinuousService struct {
	s     *Service
	store ContinuousStore
	tasks ContinuousWork
	opts  ContinuousOptions
}

// The names of rules that continuous queries break.
const (
	// SlugTaken: another active query of the team has the slug. Its kind is
	// healthlab.Conflict.
	SlugTaken = "SLUG_TAKEN"
	// UserNotFound: the team has no such live user. Its kind is healthlab.NotFound.
	UserNotFound = "USER_NOT_FOUND"
)

// NewContinuous returns a service that evaluates with s, under its limits. All but opts
// are required; without them it returns healthlab.Invalid. It starts nothing.
func NewContinuous(s *Service, store ContinuousStore, tasks ContinuousWork, opts *ContinuousOptions) (*ContinuousService, error) {
	if s == nil || store == nil || tasks == nil {
		return nil, fmt.Errorf("%w: continuous queries need a service, a store and its work", healthlab.Invalid)
	}
	c := &ContinuousService{s: s, store: store, tasks: tasks}
	if opts != nil {
		c.opts = *opts
	}
	c.opts.defaults(s.opts.Limits.Time)
	return c, nil
}

// DecodeNew reads the body that creates a continuous query, and checks it. Faults are
// those of [Service.Decode].
func (c *ContinuousService) DecodeNew(data []byte, ignoreUnknown bool) (NewContinuousQuery, error) {
	r := reader{strictjson.Reader{Lenient: ignoreUnknown}}
	n := r.decodeNew(data)
	r.checkStored(&n, &c.s.opts.Limits, c.s.opts.Known)
	if err := r.Problems.Err(); err != nil {
		return NewContinuousQuery{}, err
	}
	return n, nil
}

// DecodePatch reads the body that changes a continuous query.
func (c *ContinuousService) DecodePatch(data []byte, ignoreUnknown bool) (ContinuousPatch, error) {
	r := reader{strictjson.Reader{Lenient: ignoreUnknown}}
	out := r.decodePatch(data)
	r.checkPatch(&out)
	if err := r.Problems.Err(); err != nil {
		return ContinuousPatch{}, err
	}
	return out, nil
}

func (r *reader) checkPatch(p *ContinuousPatch) {
	if p.Title != nil {
		r.checkTitle(*p.Title)
	}
	if p.Scheduling != nil {
		r.checkScheduling(p.Scheduling)
	}
}

// plan checks a continuous query.
func (c *ContinuousService) plan(n *NewContinuousQuery) (*plan, error) {
	var r reader
	p := r.checkStored(n, &c.s.opts.Limits, c.s.opts.Known)
	return p, r.Problems.Err()
}

// Preview checks a continuous query and says what its tables would be. Invalid as
// [Service.Check].
func (c *ContinuousService) Preview(ctx context.Context, team healthlab.TeamID, n *NewContinuousQuery) (ContinuousPreview, error) {
	if err := c.s.enabled(ctx, team); err != nil {
		return ContinuousPreview{}, fmt.Errorf("preview continuous query: %w", err)
	}
	p, err := c.plan(n)
	if err != nil {
		return ContinuousPreview{}, fmt.Errorf("preview continuous query: %w", err)
	}
	return ContinuousPreview{Schema: p.schema(), Resources: p.dependencies(), FHIRPreviews: []string{}}, nil
}

// Create stores a continuous query. Tables for the users that are there follow in the
// background. Invalid as [Service.Check]; Conflict, as a RuleError of type SlugTaken,
// if an active query of the team has the slug; Forbidden as [Service.Query].
func (c *ContinuousService) Create(ctx context.Context, team healthlab.TeamID, n *NewContinuousQuery) (ContinuousQuery, error) {
	preview, err := c.Preview(ctx, team, n)
	if err != nil {
		return ContinuousQuery{}, fmt.Errorf("create: %w", err)
	}
	q := ContinuousQuery{
		ID: QueryID{c.opts.NewID()}, Status: ContinuousActive, Slug: n.Slug, Title: n.Title, Team: team,
		Query: n.Query, Config: n.Config, Scheduling: n.Scheduling, Schema: preview.Schema, Resources: preview.Resources,
		Export: Export{DataEvents: DataEvents{Enabled: !n.Quiet}}, FHIRMappers: []string{},
		CreatedAt: healthlab.At(c.opts.Now()).Time, Revision: 1,
	}
	if err := c.store.Insert(ctx, q); errors.Is(err, healthlab.Conflict) {
		return ContinuousQuery{}, &healthlab.RuleError{Kind: healthlab.Conflict, Type: SlugTaken, Msg: "another continuous query of the team has this slug"}
	} else if err != nil {
		return ContinuousQuery{}, fmt.Errorf("create continuous query: %w", err)
	}
	return q, nil
}

// Update changes a continuous query. NotFound if the team has none of this id.
func (c *ContinuousService) Update(ctx context.Context, team healthlab.TeamID, id QueryID, p ContinuousPatch) (ContinuousQuery, error) {
	var r reader
	r.checkPatch(&p)
	if err := r.Problems.Err(); err != nil {
		return ContinuousQuery{}, fmt.Errorf("update continuous query: %w", err)
	}
	return c.update(ctx, team, id, func(q *ContinuousQuery) error {
		if p.Title != nil {
			q.Title = *p.Title
		}
		if p.Scheduling != nil {
			q.Scheduling = *p.Scheduling
		}
		return nil
	})
}

// Archive ends a continuous query: its tables stay, and are not made again. Its slug is
// free. Archiving it again changes nothing. NotFound if the team has none of this id.
func (c *ContinuousService) Archive(ctx context.Context, team healthlab.TeamID, id QueryID) (ContinuousQuery, error) {
	return c.update(ctx, team, id, func(q *ContinuousQuery) error {
		q.Status = ContinuousArchived
		return nil
	})
}

func (c *ContinuousService) update(ctx context.Context, team healthlab.TeamID, id QueryID, change func(*ContinuousQuery) error) (ContinuousQuery, error) {
	q, err := c.store.Update(ctx, team, id, change)
	if err != nil {
		return ContinuousQuery{}, fmt.Errorf("update continuous query: %w", err)
	}
	return q, nil
}

// List returns one page of a team's continuous queries, archived ones too, the newest
// first.
func (c *ContinuousService) List(ctx context.Context, q ContinuousListQuery) (ContinuousPage, error) {
	p, err := c.store.List(ctx, q)
	if err != nil {
		return ContinuousPage{}, fmt.Errorf("list continuous queries: %w", err)
	}
	return p, nil
}

// find returns the query that an id, or the slug of an active query, names, if the user
// is there and the team may ask.
func (c *ContinuousService) find(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, name string) (ContinuousQuery, error) {
	if err := c.s.enabled(ctx, team); err != nil {
		return ContinuousQuery{}, err
	}
	if _, err := c.s.data.User(ctx, team, user); errors.Is(err, healthlab.NotFound) {
		return ContinuousQuery{}, &healthlab.RuleError{Kind: healthlab.NotFound, Type: UserNotFound, Msg: "the team has no such user"}
	} else if err != nil {
		return ContinuousQuery{}, err
	}
	if id, err := uuid.Parse(name); err == nil && len(name) == 36 {
		q, err := c.store.Get(ctx, team, QueryID{id})
		if !errors.Is(err, healthlab.NotFound) {
			return q, err
		}
	}
	return c.store.Find(ctx, team, name)
}

// Result returns a user's table: that of the last evaluation, without rows before the
// first one. The query is named by its id, or by its slug while it is active.
//
// Faults: NotFound without such a query, or, as a RuleError of type UserNotFound,
// without such a live user; Forbidden as [Service.Query].
func (c *ContinuousService) Result(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, name string) (Frame, error) {
	q, err := c.find(ctx, team, user, name)
	if err != nil {
		return Frame{}, fmt.Errorf("continuous result: %w", err)
	}
	p, err := c.planOf(&q)
	if err != nil {
		return Frame{}, fmt.Errorf("continuous result: %w", err)
	}
	f, _, err := c.stored(ctx, team, user, q.ID, p)
	if err != nil {
		return Frame{}, fmt.Errorf("continuous result: %w", err)
	}
	return f, nil
}

// planOf returns the plan of a stored query, which was valid when it was stored.
func (c *ContinuousService) planOf(q *ContinuousQuery) (*plan, error) {
	var r reader
	config := q.Config
	config.ColumnNaming = QualifiedNames
	p := r.checkQuery(&q.Query, &config, &c.s.opts.Limits, nil)
	p.window = everything
	return p, r.Problems.Err()
}

// stored returns the table of a user, empty if there is none that fits the plan.
func (c *ContinuousService) stored(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, id QueryID, p *plan) (f Frame, found bool, err error) {
	empty := p.frame(p.newGrid())
	data, err := c.store.Result(ctx, team, user, id)
	if errors.Is(err, healthlab.NotFound) {
		return empty, false, nil
	}
	if err != nil {
		return Frame{}, false, err
	}
	f, err = decodeFrame(data, &empty)
	if errors.Is(err, errOtherTable) {
		return empty, false, nil // of an earlier version of the library
	}
	return f, err == nil, err
}

// History returns one page of what became of the tasks of a query and user, the newest
// first. Faults as those of Result; Invalid for a cursor that is none. q.Query is found
// by name and need not be set.
func (c *ContinuousService) History(ctx context.Context, name string, q HistoryQuery) (HistoryPage, error) {
	found, err := c.find(ctx, q.Team, q.User, name)
	if err != nil {
		return HistoryPage{}, fmt.Errorf("continuous history: %w", err)
	}
	q.Query = found.ID
	page, err := c.store.History(ctx, q)
	if err != nil {
		return HistoryPage{}, fmt.Errorf("continuous history: %w", err)
	}
	return page, nil
}

// backfillAtOnce is how many users are given a task at a time.
const backfillAtOnce = 500

// Run evaluates what is due until ctx ends. Any number of processes may run it at the
// same time.
func (c *ContinuousService) Run(ctx context.Context) error {
	loop := work.Loop[ContinuousTask]{
		Name: "continuous queries", Workers: c.opts.Workers, Idle: c.opts.Idle, Wake: c.opts.Wake, Log: c.opts.Log,
		Claim: c.Claim, Do: c.Do,
	}
	if err := loop.Run(ctx); err != nil {
		return fmt.Errorf("run continuous queries: %w", err)
	}
	return nil
}

// Claim schedules some of the users that were there before a query, and takes at most n
// tasks that are due. It is a step of Run, for hosts that have a loop of their own.
func (c *ContinuousService) Claim(ctx context.Context, n int) ([]ContinuousTask, error) {
	for left := backfillAtOnce; left > 0; {
		n, err := c.tasks.Backfill(ctx, left)
		if err != nil {
			return nil, fmt.Errorf("claim continuous queries: %w", err)
		}
		if n == 0 {
			break
		}
		left -= n
	}
	list, err := c.tasks.Claim(ctx, n, c.opts.Lease)
	if err != nil {
		return nil, fmt.Errorf("claim continuous queries: %w", err)
	}
	return list, nil
}

// Do evaluates one task and records what came of it. An error means that nothing was
// recorded and that the task comes back.
func (c *ContinuousService) Do(ctx context.Context, t ContinuousTask) error {
	o, err := c.outcome(ctx, &t)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		details, final := detailsOf(err)
		if !final && t.Try < c.opts.Tries {
			return fmt.Errorf("evaluate continuous query: %w", err)
		}
		o = TaskOutcome{Status: TaskError, Details: details}
	}
	err = c.tasks.Finish(ctx, t, o)
	if errors.Is(err, healthlab.Precondition) {
		return nil // another process has it, or the user was deleted
	}
	if err != nil {
		return fmt.Errorf("finish continuous query: %w", err)
	}
	return nil
}

// detailsOf names a fault in a history, and says whether trying again may help.
func detailsOf(err error) (details string, final bool) {
	var invalid *healthlab.InvalidError
	switch {
	case errors.As(err, &invalid) && len(invalid.Problems) > 0:
		return invalid.Problems[0].Code, true
	case errors.Is(err, healthlab.NotFound):
		return "user_not_found", true
	case errors.Is(err, context.DeadlineExceeded):
		return "query_timeout", true
	default:
		return "internal_error", false
	}
}

// outcome evaluates a task.
func (c *ContinuousService) outcome(ctx context.Context, t *ContinuousTask) (TaskOutcome, error) {
	q, err := c.store.Get(ctx, t.Team, t.Query)
	if err != nil {
		return TaskOutcome{}, err
	}
	if q.Status != ContinuousActive {
		return TaskOutcome{Status: TaskSkipped}, nil
	}
	if t.Try > c.opts.Tries { // its processes died of it
		return TaskOutcome{Status: TaskError, Details: "poison"}, nil
	}
	p, err := c.planOf(&q)
	if err != nil {
		return TaskOutcome{}, err
	}
	if err := c.opts.Accessed(ctx, *t); err != nil {
		return TaskOutcome{}, fmt.Errorf("record access: %w", err)
	}
	before, found, err := c.stored(ctx, t.Team, t.User, t.Query, p)
	if err != nil {
		return TaskOutcome{}, err
	}
	w := p.touched(t.Range)
	if !found {
		w = everything
	}
	limited, cancel := context.WithTimeout(ctx, c.s.opts.Limits.Time)
	defer cancel()
	now, err := c.s.evaluate(limited, t.Team, t.User, p, &q.Config, w)
	if err != nil {
		return TaskOutcome{}, err
	}
	if w != everything {
		now = p.patch(&before, &now, w)
		if now.Len() > c.s.opts.Limits.Rows {
			return TaskOutcome{}, errRows(c.s.opts.Limits.Rows)
		}
	}
	return c.write(&q, t, p, &before, &now, found)
}

// write makes the outcome of a table that was evaluated.
func (c *ContinuousService) write(q *ContinuousQuery, t *ContinuousTask, p *plan, before, now *Frame, found bool) (TaskOutcome, error) {
	o := TaskOutcome{Status: TaskCompleted}
	rows := p.changed(before, now)
	if found && len(rows) == 0 && before.Len() == now.Len() {
		return o, nil
	}
	var err error
	if o.Table, err = encodeFrame(now); err != nil {
		return TaskOutcome{}, err
	}
	if q.Export.DataEvents.Enabled {
		at := healthlab.At(c.opts.Now()).Time
		for _, data := range q.changes(now, rows) {
			o.Events = append(o.Events, healthlab.Event{
				ID: c.opts.NewID(), Type: EventResultTableChanged, Team: t.Team, User: t.User,
				Key: "continuous_query/" + t.Query.String() + "/" + t.User.String(), At: at, Data: data,
			})
		}
	}
	return o, nil
}
