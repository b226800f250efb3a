package continuous

import (
	"context"
	"errors"
	"fmt"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/internal/work"
)

// backfillAtOnce is the highest number of existing users for which one Claim schedules tasks.
const backfillAtOnce = 500

// Run evaluates due tasks until ctx ends. Any number of processes may run it at the same time.
func (s *Service) Run(ctx context.Context) error {
	loop := work.Loop[Task]{
		Name: "continuous queries", Workers: s.opts.Workers, Idle: s.opts.Idle, Wake: s.opts.Wake, Log: s.opts.Log,
		Claim: s.Claim, Do: s.Do,
	}
	if err := loop.Run(ctx); err != nil {
		return fmt.Errorf("run continuous queries: %w", err)
	}
	return nil
}

// Claim schedules tasks for some users that existed before a query, and claims at most n due tasks. Hosts with
// a loop of their own call it in place of Run.
func (s *Service) Claim(ctx context.Context, n int) ([]Task, error) {
	for left := backfillAtOnce; left > 0; {
		n, err := s.tasks.Backfill(ctx, left)
		if err != nil {
			return nil, fmt.Errorf("claim continuous queries: %w", err)
		}
		if n == 0 {
			break
		}
		left -= n
	}
	list, err := s.tasks.Claim(ctx, n, s.opts.Lease)
	if err != nil {
		return nil, fmt.Errorf("claim continuous queries: %w", err)
	}
	return list, nil
}

// Do evaluates one task and records its outcome. After an error nothing is recorded, and the task is claimed
// again later.
func (s *Service) Do(ctx context.Context, t Task) error {
	o, err := s.outcome(ctx, &t)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		details, final := detailsOf(err)
		if !final && t.Try < s.opts.Tries {
			return fmt.Errorf("evaluate continuous query: %w", err)
		}
		o = Outcome{Status: TaskError, Details: details}
	}
	err = s.tasks.Finish(ctx, t, o)
	if errors.Is(err, healthlab.Precondition) {
		return nil // another process has it, or the user was deleted
	}
	if err != nil {
		return fmt.Errorf("finish continuous query: %w", err)
	}
	return nil
}

// detailsOf returns the code of an error for the history. final is true if another try would have the same error.
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

// outcome evaluates a task and returns its outcome.
func (s *Service) outcome(ctx context.Context, t *Task) (Outcome, error) {
	q, err := s.store.Get(ctx, t.Team, t.Query)
	if err != nil {
		return Outcome{}, err
	}
	if q.Status != Active {
		return Outcome{Status: TaskSkipped}, nil
	}
	if t.Try > s.opts.Tries { // earlier tries did not end, perhaps because the process crashed
		return Outcome{Status: TaskError, Details: "poison"}, nil
	}
	p, err := s.questions.Prepare(&q.Query, &q.Config)
	if err != nil {
		return Outcome{}, err
	}
	if err := s.opts.Accessed(ctx, *t); err != nil {
		return Outcome{}, fmt.Errorf("record access: %w", err)
	}
	before, found, err := s.stored(ctx, t.Team, t.User, t.Query, p)
	if err != nil {
		return Outcome{}, err
	}
	was := &before
	if !found {
		was = nil
	}
	now, err := p.Refresh(ctx, t.Team, t.User, was, t.Range)
	if err != nil {
		return Outcome{}, err
	}
	if found && len(now.Changed) == 0 && before.Len() == now.Frame.Len() {
		return Outcome{Status: TaskCompleted}, nil
	}
	return s.write(&q, t, &now)
}

// write returns the outcome of a task with a changed table: the encoded table, and the events about its changed rows if
// the query has events.
func (s *Service) write(q *Query, t *Task, now *aggregate.Refreshed) (Outcome, error) {
	o := Outcome{Status: TaskCompleted, FHIR: q.Export.FHIR}
	var err error
	if o.Table, err = now.Frame.MarshalBinary(); err != nil {
		return Outcome{}, err
	}
	if q.Export.DataEvents.Enabled {
		at := healthlab.At(s.opts.Now()).Time
		for _, data := range q.changes(&now.Frame, now.Changed) {
			o.Events = append(o.Events, healthlab.Event{
				ID: s.opts.NewID(), Type: EventResultTableChanged, Team: t.Team, User: t.User,
				Key: "continuous_query/" + t.Query.String() + "/" + t.User.String(), At: at, Data: data,
			})
		}
	}
	return o, nil
}
