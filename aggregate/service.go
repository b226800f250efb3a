package aggregate

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate/internal/strictjson"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/store"
)

// Reader reads the data of queries. [healthdata.Service] is a Reader. Both methods are safe for concurrent use.
type Reader interface {
	// View calls read with a consistent view of one user's data, and returns the
	// error of read unchanged. healthlab.NotFound if the team has no such live user.
	// The view is used by one goroutine at a time.
	View(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, read func(healthdata.View) error) error
	// User returns a live user of the team, else healthlab.NotFound. The service needs the time zone of the
	// user.
	User(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) (healthdata.User, error)
}

// Service evaluates queries. It is safe for concurrent use.
type Service struct {
	data Reader
	opts Options
}

// Options are the options of a Service. The zero value, and nil, mean the defaults.
type Options struct {
	// Limits are the limits of one request.
	Limits Limits
	// Enabled reports whether a team may query. Default: every team may.
	Enabled func(context.Context, healthlab.TeamID) (bool, error)
	// Priorities returns a team's preferences between providers. Default: none.
	Priorities func(context.Context, healthlab.TeamID) ([]Priority, error)
	// Known reports whether a slug in overrides is that of a configured provider or lab. Default: all are. It
	// must be safe for concurrent use.
	Known func(slug string) bool
	// SleepScore and Readiness are the models of derived values. Defaults HouseSleepScore and HouseReadiness.
	SleepScore SleepScore
	Readiness  Readiness
	// LabResults returns all laboratory results of a person, for the table lab_result. They are read before the
	// other data, and not from the same snapshot. Default: a query over the table is healthlab.Unimplemented.
	LabResults func(context.Context, healthlab.TeamID, healthlab.UserID) ([]LabResult, error)
	// Parallel is the number of goroutines that one query may use if it reads more than about a million
	// samples. Default: the number of processors.
	Parallel int
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// New returns a Service on data, which is required; without it New returns healthlab.Invalid. It starts no
// goroutine.
func New(data Reader, opts *Options) (*Service, error) {
	if data == nil {
		return nil, fmt.Errorf("%w: aggregate.New: the health data is required", healthlab.Invalid)
	}
	s := &Service{data: data}
	if opts != nil {
		s.opts = *opts
	}
	o := &s.opts
	o.Limits.fill()
	if o.Enabled == nil {
		o.Enabled = func(context.Context, healthlab.TeamID) (bool, error) { return true, nil }
	}
	if o.Priorities == nil {
		o.Priorities = func(context.Context, healthlab.TeamID) ([]Priority, error) { return nil, nil }
	}
	if o.Known == nil {
		o.Known = func(string) bool { return true }
	}
	if o.SleepScore == nil {
		o.SleepScore = HouseSleepScore
	}
	if o.Readiness == nil {
		o.Readiness = HouseReadiness
	}
	if o.Parallel <= 0 {
		o.Parallel = runtime.GOMAXPROCS(0)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return s, nil
}

// Limits returns the limits of one request.
func (s *Service) Limits() Limits { return s.opts.Limits }

// Reader returns the reader of the queries' data.
func (s *Service) Reader() Reader { return s.data }

// Decode reads a request from JSON and checks it for unknown keys, unknown names and wrong types. With
// ignoreUnknown, unknown keys are no error, and a misspelt key has no effect. The error is a
// [healthlab.InvalidError] with every problem by its path; for a misspelt name it suggests the right one.
func (s *Service) Decode(data []byte, ignoreUnknown bool) (Request, error) {
	r := reader{strictjson.Reader{Lenient: ignoreUnknown}}
	req := r.decode(data)
	r.check(&req, &s.opts.Limits, s.opts.Known)
	if err := r.Problems.Err(); err != nil {
		return Request{}, err
	}
	return req, nil
}

// Decode reads a request from JSON as [Service.Decode] does, with the default limits.
func Decode(data []byte) (Request, error) {
	s := Service{opts: Options{Known: func(string) bool { return true }}}
	s.opts.Limits.fill()
	return s.Decode(data, false)
}

// Check reports problems in a request, as [Service.Decode] does.
func (s *Service) Check(req *Request) error {
	_, err := s.plans(req)
	return err
}

func (s *Service) plans(req *Request) ([]*plan, error) {
	r := reader{}
	plans := r.check(req, &s.opts.Limits, s.opts.Known)
	return plans, r.Problems.Err()
}

// Query evaluates a request on one snapshot of a user's data. It returns the results of all queries or an
// error.
//
// Errors: healthlab.Invalid for an invalid request, for a result with too many rows and for a sum that its type
// cannot hold; healthlab.NotFound without such a user; healthlab.Forbidden, as a RuleError of type
// FeatureNotEnabled, for a team that may not query. If ctx ends, it returns the error of ctx soon after.
func (s *Service) Query(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, req *Request) (*Result, error) {
	return s.query(ctx, team, user, req, false)
}

// Explain is [Service.Query] with an explanation of each result: the data that was read, and the chosen sources
// with the reasons.
func (s *Service) Explain(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, req *Request) (*Result, error) {
	return s.query(ctx, team, user, req, true)
}

func (s *Service) query(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, req *Request, explain bool) (*Result, error) {
	plans, err := s.plans(req)
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	explain = explain || req.Config.Explain
	ctx, cancel := context.WithTimeout(ctx, s.opts.Limits.Time)
	defer cancel()
	if err := s.Allowed(ctx, team); err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	ctx = store.Ahead(ctx, func() []store.Query { return firstQueries(team, user, plans) })
	u, err := s.data.User(ctx, team, user)
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	priorities, err := s.opts.Priorities(ctx, team)
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	labs, err := s.labResults(ctx, team, user, plans)
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	var out *Result
	err = s.data.View(ctx, team, user, func(v healthdata.View) error {
		out = &Result{Frames: make([]Frame, 0, len(plans))}
		run := func(p *plan) (*grid, *Explanation, error) {
			o := newOrder(req.Config.ProviderPriorityOverrides, priorities, p.table.name)
			if !explain {
				g, err := s.run(ctx, v, p, o, nil, labs)
				return g, nil, err
			}
			t := newTrace(p)
			p.traced = true
			g, err := s.run(ctx, v, p, o, t, labs)
			return g, &t.out, err
		}
		for i, p := range plans {
			g, why, err := run(p)
			if err == nil && p.align != nil {
				err = p.carry(g, s.wall(&u), s.opts.Limits.Rows)
			}
			if err != nil {
				return withPath(err, "queries", i)
			}
			f := p.frame(g)
			if err := p.join(&f, why, run); err != nil {
				return withPath(err, "queries", i)
			}
			out.Frames = append(out.Frames, f)
			if why != nil {
				out.Explain = append(out.Explain, *why)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	return out, nil
}

// firstQueries returns the store queries that a request reads first: the user, the team's preferences, and the data of
// plans.
func firstQueries(team healthlab.TeamID, user healthlab.UserID, plans []*plan) []store.Query {
	q := []store.Query{priorityTable.One(preferencesKey(team), store.Plain)}
	for _, p := range plans {
		switch {
		case p.sampleTable():
			q = append(q, p.seriesQuery().Queries(team, user)...)
		case p.table.summary != nil:
			if pages := recordQueries(p.table.summary, p.readWindow()); len(pages) > 0 {
				q = append(q, pages[0].Queries(team, user)...)
			}
		}
	}
	return append(q, store.User(team, user))
}

// FeatureNotEnabled is the error type for a team that may not query; its kind is healthlab.Forbidden.
const FeatureNotEnabled = "FEATURE_NOT_ENABLED"

// Allowed returns healthlab.Forbidden, as a RuleError of type FeatureNotEnabled, for a team that may not query.
func (s *Service) Allowed(ctx context.Context, team healthlab.TeamID) error {
	ok, err := s.opts.Enabled(ctx, team)
	if err == nil && !ok {
		err = &healthlab.RuleError{Kind: healthlab.Forbidden, Type: FeatureNotEnabled, Msg: "aggregate queries are not enabled for this team"}
	}
	return err
}

func (s *Service) wall(u *healthdata.User) int64 {
	at := s.opts.Now()
	_, offset := at.In(u.Location()).Zone()
	return at.UnixMicro() + int64(offset)*second
}

// withPath returns err with place as prefix of the path of each problem. place is the path of a query or join. An err
// that is no healthlab.InvalidError is returned unchanged.
func withPath(err error, place ...any) error {
	var invalid *healthlab.InvalidError
	if !errors.As(err, &invalid) {
		return err
	}
	var p healthlab.Problems
	p.Under(invalid.Problems, place...)
	return p.Err()
}

// run computes one plan. labs are the rows of lab_result. t collects the explanation; nil if none was requested.
func (s *Service) run(ctx context.Context, v healthdata.View, p *plan, o *order, t *trace, labs []LabResult) (*grid, error) {
	m := &models{score: s.opts.SleepScore, readiness: s.opts.Readiness}
	limit := &s.opts.Limits
	if p.sampleTable() {
		set, err := p.samples(ctx, v, o)
		if err != nil {
			return nil, err
		}
		t.sources(o, set.sources)
		if b, ok := bucketPlanOf(p, set); ok {
			t.path("buckets")
			b.parallel, b.limit, b.trace = s.opts.Parallel, limit.Rows, t
			g, err := b.run(ctx)
			if err == nil {
				t.winners(p, g.wins, set.sources)
			}
			return g, err
		}
		t.path("samples")
		for i := range set.list {
			t.chunks(set.list[i].Chunks, len(set.list[i].Chunks))
		}
		g, err := p.runSamples(ctx, set, limit, s.opts.Parallel)
		if err == nil {
			t.merged(o, g.log, set.sources)
			t.winners(p, g.wins, set.sources)
		}
		return g, err
	}
	t.path("rows")
	var rows []kept
	var err error
	switch {
	case p.table.name == labTable:
		rows, err = p.labRows(labs)
	case p.table.summary == nil:
		rows, err = p.readinessRows(ctx, v, o, m)
	default:
		rows, err = p.summaryRows(ctx, v, m)
	}
	if err != nil {
		return nil, err
	}
	t.rows(len(rows))
	g, sources, err := p.runRows(ctx, rows, o, limit)
	t.sources(o, sources)
	if err == nil {
		t.merged(o, g.log, sources)
		t.winners(p, g.wins, sources)
	}
	return g, err
}
