package continuous

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/internal/strictjson"
)

// Options are the options of a [Service]. The zero value, and nil, mean the defaults.
type Options struct {
	// Workers is the number of tasks that run at a time. Default 2.
	Workers int
	// Lease is the time after which another process takes over a task. Default twice the time limit of a
	// request, and at least a minute.
	Lease time.Duration
	// Tries is the number of tries after which a task ends with an error. Default 5.
	Tries int
	// Idle is the wait before the next claim if no task is due. Default 1 s.
	Idle time.Duration
	// Wake ends the wait of Idle early when it receives a value. The channel must have a buffer of 1.
	Wake <-chan struct{}
	// Accessed is called before a task reads a user's data. After an error the task reads nothing and is tried again.
	// Default: no call.
	Accessed func(ctx context.Context, t Task) error
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// NewID makes ids. Default UUID version 7.
	NewID func() uuid.UUID
	// Log receives errors of the background work. Default: slog.Default().
	Log *slog.Logger
}

func (o *Options) defaults(limit time.Duration) {
	if o.Accessed == nil {
		o.Accessed = func(context.Context, Task) error { return nil }
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
	o.Log = cmp.Or(o.Log, slog.Default())
}

// Service manages continuous queries and evaluates them in the background. It is safe for concurrent use.
type Service struct {
	questions *aggregate.Service
	store     Store
	tasks     Work
	opts      Options
}

// Error types of continuous queries.
const (
	// SlugTaken: another active query of the team has the slug. The error kind is healthlab.Conflict.
	SlugTaken = "SLUG_TAKEN"
	// UserNotFound: the team has no such live user. The error kind is healthlab.NotFound.
	UserNotFound = "USER_NOT_FOUND"
)

// New returns a Service. questions evaluates the queries and sets the limits of a query; store and tasks are usually
// the same [RowStore]. All arguments but opts are required; the error is healthlab.Invalid if one is nil. New starts no
// goroutine.
func New(questions *aggregate.Service, store Store, tasks Work, opts *Options) (*Service, error) {
	if questions == nil || store == nil || tasks == nil {
		return nil, fmt.Errorf("%w: continuous.New: the aggregate service, the store and the tasks are required", healthlab.Invalid)
	}
	s := &Service{questions: questions, store: store, tasks: tasks}
	if opts != nil {
		s.opts = *opts
	}
	s.opts.defaults(questions.Limits().Time)
	return s, nil
}

// DecodeDefinition reads and checks the request body that creates a continuous query. Unknown keys are handled
// as by [aggregate.Service.Decode]. The error is a [healthlab.InvalidError] with every problem by its path.
func (s *Service) DecodeDefinition(data []byte, ignoreUnknown bool) (Definition, error) {
	d := decoder{strictjson.Reader{Lenient: ignoreUnknown}, s.questions}
	n := d.definition(data)
	if err := d.Problems.Err(); err != nil {
		return Definition{}, err
	}
	return n, nil
}

// DecodePatch reads and checks the request body that changes a continuous query.
func (s *Service) DecodePatch(data []byte, ignoreUnknown bool) (Patch, error) {
	d := decoder{strictjson.Reader{Lenient: ignoreUnknown}, s.questions}
	out := d.patch(data)
	checkPatch(&d.Problems, &out)
	if err := d.Problems.Err(); err != nil {
		return Patch{}, err
	}
	return out, nil
}

// prepare checks a definition and returns its prepared aggregate query. The error is a [healthlab.InvalidError] with
// every problem.
func (s *Service) prepare(n *Definition) (*aggregate.Prepared, error) {
	var problems healthlab.Problems
	checkSlug(&problems, n.Slug)
	checkTitle(&problems, n.Title)
	checkScheduling(&problems, &n.Scheduling)
	note(&problems, s.questions.CheckConfig(&n.Config), "query_config")
	p, err := s.questions.Prepare(&n.Query, &n.Config)
	note(&problems, err, "query")
	if n.FHIR {
		checkMappers(&problems, &n.Query)
	}
	return p, problems.Err()
}

// Preview checks a continuous query and describes its tables. Invalid as [aggregate.Service.Check].
func (s *Service) Preview(ctx context.Context, team healthlab.TeamID, n *Definition) (Preview, error) {
	if err := s.questions.Allowed(ctx, team); err != nil {
		return Preview{}, fmt.Errorf("preview continuous query: %w", err)
	}
	p, err := s.prepare(n)
	if err != nil {
		return Preview{}, fmt.Errorf("preview continuous query: %w", err)
	}
	return Preview{Schema: p.Schema(), Resources: p.Resources(), FHIRPreviews: mapperNames(&n.Query)}, nil
}

// Create stores a continuous query. The tables of existing users follow in the background. Invalid as
// [aggregate.Service.Check]; Conflict, as a RuleError of type SlugTaken, if an active query of the team has the
// slug; Forbidden as [aggregate.Service.Query].
func (s *Service) Create(ctx context.Context, team healthlab.TeamID, n *Definition) (Query, error) {
	preview, err := s.Preview(ctx, team, n)
	if err != nil {
		return Query{}, fmt.Errorf("create continuous query: %w", err)
	}
	q := Query{
		ID: QueryID{s.opts.NewID()}, Status: Active, Slug: n.Slug, Title: n.Title, Team: team,
		Query: n.Query, Config: n.Config, Scheduling: n.Scheduling, Schema: preview.Schema, Resources: preview.Resources,
		Export: Export{DataEvents: DataEvents{Enabled: !n.Quiet}, FHIR: n.FHIR}, FHIRMappers: []string{},
		CreatedAt: healthlab.At(s.opts.Now()).Time, Revision: 1,
	}
	if n.FHIR {
		q.FHIRMappers = preview.FHIRPreviews
	}
	if err := s.store.Insert(ctx, q); errors.Is(err, healthlab.Conflict) {
		return Query{}, &healthlab.RuleError{Kind: healthlab.Conflict, Type: SlugTaken, Msg: "another continuous query of the team has this slug"}
	} else if err != nil {
		return Query{}, fmt.Errorf("create continuous query: %w", err)
	}
	return q, nil
}

// Update changes a continuous query. NotFound if the team has no query with this id.
func (s *Service) Update(ctx context.Context, team healthlab.TeamID, id QueryID, p Patch) (Query, error) {
	var problems healthlab.Problems
	checkPatch(&problems, &p)
	if err := problems.Err(); err != nil {
		return Query{}, fmt.Errorf("update continuous query: %w", err)
	}
	return s.update(ctx, team, id, func(q *Query) error {
		if p.Title != nil {
			q.Title = *p.Title
		}
		if p.Scheduling != nil {
			q.Scheduling = *p.Scheduling
		}
		return nil
	})
}

// Archive ends a continuous query: its tables stay and are not evaluated again, and its slug is free. Archiving
// an archived query is a no-op. NotFound if the team has no query with this id.
func (s *Service) Archive(ctx context.Context, team healthlab.TeamID, id QueryID) (Query, error) {
	return s.update(ctx, team, id, func(q *Query) error {
		q.Status = Archived
		return nil
	})
}

func (s *Service) update(ctx context.Context, team healthlab.TeamID, id QueryID, change func(*Query) error) (Query, error) {
	q, err := s.store.Update(ctx, team, id, change)
	if err != nil {
		return Query{}, fmt.Errorf("update continuous query: %w", err)
	}
	return q, nil
}

// Get returns a continuous query, archived or not. NotFound if the team has no query with this id.
func (s *Service) Get(ctx context.Context, team healthlab.TeamID, id QueryID) (Query, error) {
	q, err := s.store.Get(ctx, team, id)
	if err != nil {
		return Query{}, fmt.Errorf("read continuous query: %w", err)
	}
	return q, nil
}

// List returns one page of a team's continuous queries, archived ones too, the newest
// first.
func (s *Service) List(ctx context.Context, q ListQuery) (Page, error) {
	p, err := s.store.List(ctx, q)
	if err != nil {
		return Page{}, fmt.Errorf("list continuous queries: %w", err)
	}
	return p, nil
}

// find returns the query with an id, or the active query with a slug, if the team has the user and may query.
func (s *Service) find(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, name string) (Query, error) {
	if err := s.questions.Allowed(ctx, team); err != nil {
		return Query{}, err
	}
	if _, err := s.questions.Reader().User(ctx, team, user); errors.Is(err, healthlab.NotFound) {
		return Query{}, &healthlab.RuleError{Kind: healthlab.NotFound, Type: UserNotFound, Msg: "the team has no such user"}
	} else if err != nil {
		return Query{}, err
	}
	if id, err := uuid.Parse(name); err == nil && len(name) == 36 {
		q, err := s.store.Get(ctx, team, QueryID{id})
		if !errors.Is(err, healthlab.NotFound) {
			return q, err
		}
	}
	return s.store.Find(ctx, team, name)
}

// Result returns a user's table of the last evaluation; without rows before the first one. The query is named
// by its id, or by its slug while it is active.
//
// Errors: NotFound without such a query, or, as a RuleError of type UserNotFound, without such a live user;
// Forbidden as [aggregate.Service.Query].
func (s *Service) Result(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, name string) (aggregate.Frame, error) {
	q, err := s.find(ctx, team, user, name)
	if err != nil {
		return aggregate.Frame{}, fmt.Errorf("read result of continuous query: %w", err)
	}
	p, err := s.questions.Prepare(&q.Query, &q.Config)
	if err != nil {
		return aggregate.Frame{}, fmt.Errorf("read result of continuous query: %w", err)
	}
	f, _, err := s.stored(ctx, team, user, q.ID, p)
	if err != nil {
		return aggregate.Frame{}, fmt.Errorf("read result of continuous query: %w", err)
	}
	return f, nil
}

// stored returns the user's table of the last evaluation. It returns an empty table and false if there is none, or if
// an earlier version of the library stored the table with other columns.
func (s *Service) stored(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, id QueryID, p *aggregate.Prepared) (f aggregate.Frame, found bool, err error) {
	empty := p.Empty()
	data, err := s.store.Result(ctx, team, user, id)
	if errors.Is(err, healthlab.NotFound) {
		return empty, false, nil
	}
	if err != nil {
		return aggregate.Frame{}, false, err
	}
	if err := f.UnmarshalBinary(data); err != nil {
		return aggregate.Frame{}, false, err
	}
	same := slices.EqualFunc(f.Columns, empty.Columns, func(a, b aggregate.Column) bool { return a.Name == b.Name && a.Type == b.Type })
	if !same {
		return empty, false, nil
	}
	return f, true, nil
}

// History returns one page of the task outcomes of a query and user, the newest first. Errors as those of
// Result; Invalid for an invalid cursor. q.Query is ignored, because the query is found by its name.
func (s *Service) History(ctx context.Context, name string, q HistoryQuery) (HistoryPage, error) {
	found, err := s.find(ctx, q.Team, q.User, name)
	if err != nil {
		return HistoryPage{}, fmt.Errorf("read history of continuous query: %w", err)
	}
	q.Query = found.ID
	page, err := s.store.History(ctx, q)
	if err != nil {
		return HistoryPage{}, fmt.Errorf("read history of continuous query: %w", err)
	}
	return page, nil
}
