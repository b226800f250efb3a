package orders

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// patientMatches returns the team's orders whose patient has the reported name and birth
// date.
func (s *Service) patientMatches(ctx context.Context, team healthlab.TeamID, p ReportedPatient) ([]Order, error) {
	if !p.known() {
		return nil, nil
	}
	const most = 20 // pages
	p.Gender = ""   // the name alone counts
	var out []Order
	q := Query{Team: team, PatientName: strings.Join(strings.Fields(p.FirstName+" "+p.LastName), " "), Size: catalogue.MaxPageSize, Page: 1,
		Sort: SortCreatedAt, Direction: catalogue.Descending, Today: today(s.now())}
	for ; q.Page <= most; q.Page++ {
		page, err := s.store.List(ctx, q)
		if errors.Is(err, healthlab.Invalid) {
			return nil, nil // no patient can have such a name
		}
		if err != nil {
			return nil, fmt.Errorf("find patients: %w", err)
		}
		for _, o := range page.Orders {
			if p.of(o.PatientDetails) == agrees {
				out = append(out, o)
			}
		}
		if len(page.Orders) < q.Size {
			break
		}
	}
	return out, nil
}

// tied returns the order that a message names: by its id, else by its specimen; or the one
// that took its place, and its specimen. Nil if there is none.
func (s *Service) tied(ctx context.Context, m Message) (*Record, error) {
	var r Record
	var err error = healthlab.NotFound
	if !m.Order.IsZero() {
		if r, err = s.store.Get(ctx, m.Team, m.Order); err == nil {
			r, err = s.successor(ctx, m, r)
		}
	}
	if errors.Is(err, healthlab.NotFound) && m.SampleID != "" {
		r, err = s.ofSample(ctx, m)
	}
	if errors.Is(err, healthlab.NotFound) {
		return nil, nil
	}
	return &r, err
}

// evaluation holds what the match of a message with results found.
type evaluation struct {
	judgement
	tied           *Record
	patientMatches []Order
}

// subject is the only user of all candidates; zero if there are none or several.
func (w evaluation) subject() healthlab.UserID {
	var user healthlab.UserID
	all := w.patientMatches
	if w.tied != nil {
		all = append([]Order{w.tied.Order}, all...)
	}
	for i, o := range all {
		if i > 0 && o.UserID != user {
			return healthlab.UserID{}
		}
		user = o.UserID
	}
	return user
}

// lab is the slug of the lab that a message is from: as it says, else that of the order
// which it names. Empty if nothing says.
func (w evaluation) lab(m Message) string {
	if l := w.test().Lab; m.Lab == "" && l != nil {
		return l.Slug
	}
	return m.Lab
}

// test is that of the order which a message names; empty without one.
func (w evaluation) test() catalogue.LabTest {
	if w.tied == nil {
		return catalogue.LabTest{}
	}
	return w.tied.LabTest
}

// evaluate finds the orders that a message with results may belong to and decides the match.
func (s *Service) evaluate(ctx context.Context, m Message) (evaluation, error) {
	tied, err := s.tied(ctx, m)
	if err != nil {
		return evaluation{}, err
	}
	if tied != nil && m.sure(tied) {
		if j := judge(m, tied, nil); !j.to.IsZero() {
			return evaluation{j, tied, nil}, nil
		}
	}
	same, err := s.patientMatches(ctx, m.Team, m.patient())
	if err != nil {
		return evaluation{}, err
	}
	return evaluation{judge(m, tied, same), tied, same}, nil
}

// RawID is what a message with results is called while it is under review, and after. Two
// labs may give their messages the same ids.
func (m Message) RawID() RawResultID {
	return RawResultID{uuid.NewSHA1(m.Team.UUID, []byte("result "+m.Lab+" "+m.ID))}
}

// isHeld reports whether a message was held for review before: whatever its order could
// take by now, and whatever was decided, a person decides.
func (s *Service) isHeld(ctx context.Context, m Message) (bool, error) {
	if s.opts.Reviews == nil {
		return false, nil
	}
	_, err := s.opts.Reviews.Result(ctx, m.Team, m.RawID())
	if errors.Is(err, healthlab.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find result under review: %w", err)
	}
	return true, nil
}

// hold keeps a result for review. One that is held already changes nothing.
func (s *Service) hold(ctx context.Context, m Message, w evaluation, settings Settings) error {
	j := w.judgement
	at := healthlab.At(s.now())
	r := RawResult{Team: m.Team, Message: m, UnmatchedResult: UnmatchedResult{
		ID: m.RawID(), Status: MatchPendingCustomer, DecisionCode: j.code, SubReasonCodes: rules.NonNil(j.sub), Reason: j.reason,
		Lab: MatchLab{Slug: w.lab(m)}, Markers: []MatchMarker{}, CreatedAt: at, UpdatedAt: at,
	}}
	if p := m.patient(); p != (ReportedPatient{}) {
		r.Patient = &ReviewPatient{FirstName: rules.NonEmpty(p.FirstName), LastName: rules.NonEmpty(p.LastName), Gender: rules.NonEmpty(string(p.Gender))}
		if !p.DOB.IsZero() {
			dob := healthlab.At(p.DOB.At(time.UTC))
			r.Patient.DOB = &dob
		}
	}
	labs, err := s.catalogue.Labs(ctx)
	if err != nil {
		return fmt.Errorf("find labs: %w", err)
	}
	if i := slices.IndexFunc(labs, func(l catalogue.Lab) bool { return l.Slug == r.Lab.Slug }); i >= 0 {
		r.Lab.ID, r.Lab.Name = labs[i].ID, labs[i].Name
	}
	for _, one := range m.Results.Results {
		name := one.Name
		r.Markers = append(r.Markers, MatchMarker{ProviderID: one.ProviderID, Name: &name})
	}
	whole, err := s.complete(ctx, m, w.test())
	if err != nil {
		return err
	}
	worst, status := labresult.Worst(whole.Results.Results), labresult.Final
	if m.On == PartialResult {
		status = labresult.Partial
	}
	r.Interpretation, r.ResultStatus, r.Subject = &worst, &status, w.subject()
	var events []healthlab.Event
	if settings.UnmatchedResults {
		if events, err = r.tell(EventMatchReviewCreated, s.opts.NewID(), at); err != nil {
			return err
		}
	} else {
		r.Status = MatchPendingOps
	}
	err = s.opts.Reviews.InsertResult(ctx, r, events)
	switch {
	case errors.Is(err, healthlab.Conflict):
		return nil
	case errors.Is(err, healthlab.Invalid), errors.Is(err, healthlab.NotFound): // erased meanwhile
		s.unkept(m, err)
		return nil
	case err != nil:
		return fmt.Errorf("hold result: %w", err)
	}
	s.opts.Log.Info("result is held for review", "result", r.ID.String(), "decision", string(j.code))
	return nil
}

// Operations has the decisions of the service's operators on held results: those that a team
// hands over, and those of teams that do not review themselves ([Settings].UnmatchedResults).
// It is for the host: no operation of the API calls it. A decision has the same effects as the
// team's own. The team gets the event of the review only if it can read the result, and always
// the events of its orders.
//
// It is safe for concurrent use.
type Operations struct{ s *Service }

// Operations returns the decisions of the service's operators.
func (s *Service) Operations() Operations { return Operations{s} }

func (d Operations) store() (ReviewStore, error) {
	if d.s.opts.Reviews == nil {
		return nil, rules.Broken(ReviewNotEnabled, "unmatched results are not switched on")
	}
	return d.s.opts.Reviews, nil
}

// Waiting returns a page of a team's results that wait for operations. The query's
// status and Escalated count for nothing. Errors as [Reviews.List].
func (d Operations) Waiting(ctx context.Context, q ResultQuery) (UnmatchedPage, error) {
	store, err := d.store()
	if err != nil {
		return UnmatchedPage{}, err
	}
	q.Status, q.Escalated = MatchPendingOps, false
	if q, err = q.Normal(); err != nil {
		return UnmatchedPage{}, err
	}
	return d.s.page(ctx, store, q, MatchPendingOps)
}

// Accept gives a result that waits for operations to an order, as
// [Reviews.Accept] does, with the same errors.
func (d Operations) Accept(ctx context.Context, team healthlab.TeamID, id RawResultID, req AcceptRequest) (Order, error) {
	store, err := d.store()
	if err != nil {
		return Order{}, err
	}
	return d.s.acceptAs(ctx, store, team, id, req, MatchPendingOps)
}

// Reject decides that a result that waits for operations belongs to no order. A note replaces
// the team's. NotFound if the team has none of this id that waits for operations;
// Invalid for a note that is too long.
func (d Operations) Reject(ctx context.Context, team healthlab.TeamID, id RawResultID, note *string) (UnmatchedResult, error) {
	store, err := d.store()
	if err != nil {
		return UnmatchedResult{}, err
	}
	req := ResolveRequest{Action: ReviewReject, Note: note}
	if err := req.Check(); err != nil {
		return UnmatchedResult{}, fmt.Errorf("reject unmatched result: %w", err)
	}
	return d.s.resolve(ctx, store, team, id, req, MatchPendingOps)
}
