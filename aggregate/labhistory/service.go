package labhistory

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/labreport/loinc"
	"github.com/healthlab-dev/healthlab/labreport/refrange"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

// Users looks up users of a team. Implementations are safe for concurrent use.
type Users interface {
	// HasUser reports whether the team has this user and the user is not deleted.
	HasUser(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) (bool, error)
}

// Orders reads orders, as [orders.Service] does.
type Orders interface {
	List(ctx context.Context, q orders.Query) (orders.Page, error)
	Results(ctx context.Context, team healthlab.TeamID, id orders.OrderID) (orders.OrderResults, error)
}

// Reports reads lab reports, as [labreport.Service] does.
type Reports interface {
	Jobs(ctx context.Context, team healthlab.TeamID, q labreport.JobsQuery) (labreport.JobPage, error)
	JobReview(ctx context.Context, team healthlab.TeamID, id labreport.JobID) (labreport.JobReview, error)
}

// Facts are the facts about a person on a day that select a reference range by group. A zero or nil field is
// unknown.
type Facts struct {
	Sex       refrange.Sex
	BirthDate healthlab.Date
	// Pregnant and Fasting are the state on that day.
	Pregnant, Fasting *bool
}

// Options are the options of a Service. The zero value, and nil, mean the defaults.
type Options struct {
	// Facts returns the facts that the host knows about a person on a day. Sex, birth date and fasting in the
	// order or report take precedence. It is called for results whose range is a list by group, and must be
	// safe for concurrent use. Default: no facts are known.
	Facts func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, day healthlab.Date) (Facts, error)
	// Catalogue has the reference ranges for results without one. Default: none.
	Catalogue Catalogue
}

// Catalogue reads a lab catalogue, as [catalogue.Service] does. Implementations are safe for concurrent use.
type Catalogue interface {
	// ExpectedResults returns the expected results of each marker, by marker id.
	ExpectedResults(ctx context.Context, markers []int) (map[int][]catalogue.ExpectedResult, error)
}

// Service reads the laboratory histories of people. It is safe for concurrent use.
type Service struct {
	users   Users
	orders  Orders
	reports Reports
	facts   func(context.Context, healthlab.TeamID, healthlab.UserID, healthlab.Date) (Facts, error)
	ranges  Catalogue
}

// New returns a Service. A nil orders or reports counts as one without results.
func New(users Users, o Orders, r Reports, opts *Options) (*Service, error) {
	if users == nil {
		return nil, fmt.Errorf("%w: labhistory.New: users are required", healthlab.Invalid)
	}
	s := &Service{users: users, orders: o, reports: r}
	if opts != nil {
		s.facts, s.ranges = opts.Facts, opts.Catalogue
	}
	return s, nil
}

// Query selects results of one person.
type Query struct {
	// Codes are LOINC codes; empty means any, results without a code included.
	Codes []string
	// From and To are the limits of [Result.Date], both inclusive; zero is open. A query with a limit excludes
	// results without a day.
	From, To healthlab.Date
	// Source selects the results of one source; empty for all.
	Source Source
	// Cursor is the Next of an earlier page. Empty for the first page.
	Cursor string
	// Size is the highest number of results to return. Default 50.
	Size int
}

// Page is one page of results: the newest day first, results without a day last, then by id.
type Page struct {
	Results []Result
	// Next is the cursor of the next page; empty after the last.
	Next string
}

// List returns a page of a person's results. NotFound if the team has no such user; Invalid for an invalid code
// or cursor.
func (s *Service) List(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, q Query) (Page, error) {
	after, err := q.check()
	if err != nil {
		return Page{}, fmt.Errorf("list laboratory results: %w", err)
	}
	all, err := s.allHistories(ctx, team, user)
	if err != nil {
		return Page{}, err
	}
	page := Page{Results: []Result{}}
	for i := range all {
		r := &all[i]
		if !q.matches(r) || after != nil && order(r.Date(), r.ID, after.day, after.id) <= 0 {
			continue
		}
		if len(page.Results) == q.Size {
			last := &page.Results[q.Size-1]
			page.Next = position{last.Date(), last.ID}.cursor()
			break
		}
		page.Results = append(page.Results, *r)
	}
	return page, nil
}

// allHistories returns all results of a person, in the order of [Page]. NotFound if the team has no such
// user.
func (s *Service) allHistories(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) ([]Result, error) {
	ok, err := s.users.HasUser(ctx, team, user)
	if err == nil && !ok {
		err = fmt.Errorf("user %s %w", user, healthlab.NotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("read laboratory results: %w", err)
	}
	ofOrders, err1 := s.fromOrders(ctx, team, user)
	ofReports, err2 := s.fromReports(ctx, team, user)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("read laboratory results: %w", err)
	}
	var out []Result
	for _, r := range append(ofOrders, ofReports...) {
		if err := s.applyRange(ctx, team, user, &r); err != nil {
			return nil, fmt.Errorf("read laboratory results: %w", err)
		}
		out = append(out, r.Result)
	}
	slices.SortFunc(out, func(a, b Result) int { return order(a.Date(), a.ID, b.Date(), b.ID) })
	return out, nil
}

// pageSize is the number of orders or reports that are read at a time.
const pageSize = 100

func (s *Service) fromOrders(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) (out []found, err error) {
	if s.orders == nil {
		return nil, nil
	}
	for n := 1; ; n++ {
		page, err := s.orders.List(ctx, orders.Query{Team: team, User: user, Direction: "asc", Page: n, Size: pageSize})
		if err != nil {
			return nil, err
		}
		for i := range page.Orders {
			o := &page.Orders[i]
			if o.Interpretation == nil {
				continue // no results yet
			}
			res, err := s.orders.Results(ctx, team, o.ID)
			if errors.Is(err, healthlab.NotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
			results := ofOrder(o, &res)
			if err := s.addCatalogueRanges(ctx, o.LabTest.MarkerIDs(), results); err != nil {
				return nil, err
			}
			out = append(out, results...)
		}
		if len(page.Orders) < pageSize {
			return out, nil
		}
	}
}

func (s *Service) fromReports(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) (out []found, err error) {
	if s.reports == nil {
		return nil, nil
	}
	q := labreport.JobsQuery{User: user, Status: []labreport.Status{labreport.Completed}, Size: pageSize}
	for {
		page, err := s.reports.Jobs(ctx, team, q)
		if err != nil {
			return nil, err
		}
		for _, j := range page.Jobs {
			if !j.IsReviewed {
				continue // a person has to approve it
			}
			review, err := s.reports.JobReview(ctx, team, j.ID)
			if errors.Is(err, healthlab.NotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if review.Data != nil {
				out = append(out, ofReport(j.ID.UUID, review.Data)...)
			}
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return out, nil
		}
	}
}

func order(a healthlab.Date, idA uuid.UUID, b healthlab.Date, idB uuid.UUID) int {
	return cmp.Or(-strings.Compare(dayText(a), dayText(b)), bytes.Compare(idA[:], idB[:]))
}

func dayText(d healthlab.Date) string {
	if d.IsZero() {
		return ""
	}
	return d.String()
}

// matches reports whether the query selects a result.
func (q *Query) matches(r *Result) bool {
	day := r.Date()
	switch {
	case len(q.Codes) > 0 && (r.LOINC == nil || !slices.Contains(q.Codes, *r.LOINC)),
		q.Source != "" && r.Source != q.Source,
		!q.From.IsZero() && (day.IsZero() || day.Compare(q.From) < 0),
		!q.To.IsZero() && (day.IsZero() || day.Compare(q.To) > 0):
		return false
	}
	return true
}

// check sets the defaults, reports all problems, and returns the position in the cursor; nil without a cursor.
func (q *Query) check() (*position, error) {
	var bad healthlab.Problems
	if q.Size <= 0 {
		q.Size = 50
	}
	for i, code := range q.Codes {
		if !loinc.ValidCode(code) {
			bad.Add("code", "must be a LOINC code with its check digit, such as 2345-7", "code", i)
		}
	}
	if q.Source != "" && q.Source != FromOrder && q.Source != FromReport {
		bad.Add("source", "must be order or report", "source")
	}
	if q.Cursor == "" {
		return nil, bad.Err()
	}
	p, ok := positionOf(q.Cursor)
	if !ok {
		bad.Add("cursor", "must be the next_cursor of an earlier page", "next_cursor")
	}
	return &p, bad.Err()
}

// position is the position of a result in the history.
type position struct {
	day healthlab.Date
	id  uuid.UUID
}

func (p position) cursor() string { return dayText(p.day) + "." + p.id.String() }

func positionOf(cursor string) (p position, ok bool) {
	day, id, _ := strings.Cut(cursor, ".")
	var err1, err2 error
	if day != "" {
		p.day, err1 = healthlab.ParseDate(day)
	}
	p.id, err2 = uuid.Parse(id)
	return p, err1 == nil && err2 == nil && p.cursor() == cursor
}
