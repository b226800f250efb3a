package exchange

import (
	"context"
	"fmt"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// reviews returns the store of results under review. UNMATCHED_RESULTS_NOT_ENABLED if reviews are off for the team.
func (s *Service) reviews(ctx context.Context, team healthlab.TeamID) (ReviewStore, error) {
	settings, err := s.orders.Settings(ctx, team)
	if err != nil {
		return nil, err
	}
	if !settings.UnmatchedResults {
		return nil, rules.Broken(ReviewNotEnabled, "the review of unmatched results is not enabled for the team; ask the operator to enable it")
	}
	return s.reviewStore, nil
}

// reviewFor returns a result under review with the fields that are computed at each read. status is that of the
// results that the reader decides: MatchPendingCustomer for the team, MatchPendingOps for operations.
func (s *Service) reviewFor(ctx context.Context, r RawResult, status MatchStatus) (UnmatchedResult, error) {
	out := r.UnmatchedResult
	out.AllowedActions, out.CandidateGroups = []ReviewAction{}, []CandidateGroup{}
	if r.Status == MatchResolved {
		return out, nil
	}
	switch {
	case r.Status != status:
	case status == MatchPendingOps:
		out.AllowedActions = []ReviewAction{ReviewAccept, ReviewReject}
	default:
		out.AllowedActions = []ReviewAction{ReviewAccept, ReviewReject, ReviewUnsure}
	}
	w, err := s.evaluate(ctx, r.Message)
	if err != nil {
		return UnmatchedResult{}, err
	}
	if w.named != nil && w.named.UserDeleted {
		w.named = nil
	}
	out.CandidateGroups = candidates(&r, w.named, w.patientMatches)
	return out, nil
}

// UnmatchedPage is one page of results under review in the HTTP API.
type UnmatchedPage struct {
	Results []UnmatchedResult
	Next    string
	Total   int
}

// Reviews lets a team decide about results that match no order with certainty. It is safe for concurrent use.
// All methods return UNMATCHED_RESULTS_NOT_ENABLED unless the team has reviews enabled.
type Reviews struct{ s *Service }

// Reviews returns the team's view of results under review; [Service.Operations] returns that of the operators.
func (s *Service) Reviews() Reviews { return Reviews{s} }

// List returns a page of the team's results under review. Invalid for an invalid query;
// UNMATCHED_RESULTS_NOT_ENABLED.
func (v Reviews) List(ctx context.Context, q ResultQuery) (UnmatchedPage, error) {
	store, err := v.s.reviews(ctx, q.Team)
	if err != nil {
		return UnmatchedPage{}, err
	}
	if q, err = q.normalized(); err != nil {
		return UnmatchedPage{}, err
	}
	q.Escalated = true // without results for operations that the team has not passed on itself
	return v.s.reviewPage(ctx, store, q, MatchPendingCustomer)
}

func (s *Service) reviewPage(ctx context.Context, store ReviewStore, q ResultQuery, status MatchStatus) (UnmatchedPage, error) {
	page, err := store.Results(ctx, q)
	if err != nil {
		return UnmatchedPage{}, fmt.Errorf("list unmatched results: %w", err)
	}
	out := UnmatchedPage{Results: []UnmatchedResult{}, Next: page.Next, Total: page.Total}
	for _, r := range page.Results {
		one, err := s.reviewFor(ctx, r, status)
		if err != nil {
			return UnmatchedPage{}, err
		}
		out.Results = append(out.Results, one)
	}
	return out, nil
}

// Get returns a result under review. NotFound if the team has no result with this id, or only operations review
// it.
func (v Reviews) Get(ctx context.Context, team healthlab.TeamID, id RawResultID) (UnmatchedResult, error) {
	store, err := v.s.reviews(ctx, team)
	if err != nil {
		return UnmatchedResult{}, err
	}
	r, err := store.Result(ctx, team, id)
	if err == nil && r.Status == MatchPendingOps && !r.Escalated {
		err = healthlab.NotFound
	}
	if err != nil {
		return UnmatchedResult{}, fmt.Errorf("get unmatched result: %w", rules.NotFound(err, RawResultNotFound, "the team has no such result"))
	}
	return v.s.reviewFor(ctx, r, MatchPendingCustomer)
}

// ResolveRequest rejects a result, or passes it to operations.
type ResolveRequest struct {
	// Action is reject or unsure.
	Action ReviewAction `json:"action"`
	Note   *string      `json:"note"`
}

// Check returns Invalid with every problem of the request.
func (r *ResolveRequest) Check() error {
	var p healthlab.Problems
	rules.OneOf(&p, r.Action, []ReviewAction{ReviewReject, ReviewUnsure}, "action")
	rules.Check{Problems: &p}.Optional(r.Note, "note", rules.MaxNotes)
	return p.Err()
}

func notReviewable() error {
	return rules.Missing(RawResultNotFound, "the result is not open for review; it has been decided, or waits for another reviewer")
}

// Resolve rejects a result, or passes it to operations. It returns the result after the decision. NotFound if the team
// has no open result with this id.
func (v Reviews) Resolve(ctx context.Context, team healthlab.TeamID, id RawResultID, req ResolveRequest) (UnmatchedResult, error) {
	store, err := v.s.reviews(ctx, team)
	if err != nil {
		return UnmatchedResult{}, err
	}
	if err := req.Check(); err != nil {
		return UnmatchedResult{}, err
	}
	return v.s.resolve(ctx, store, team, id, req, MatchPendingCustomer)
}

// resolve rejects a result, or passes it to operations, if its review has the given status. The team gets an event if
// it could read the result before.
func (s *Service) resolve(ctx context.Context, store ReviewStore, team healthlab.TeamID, id RawResultID, req ResolveRequest, status MatchStatus,
) (UnmatchedResult, error) {
	at, event := healthlab.At(s.now()), s.shared.NewID()
	r, err := store.UpdateResult(ctx, team, id, func(r *RawResult) ([]healthlab.Event, error) {
		if r.Status != status {
			return nil, notReviewable()
		}
		shown := r.visibleToTeam()
		r.Status, r.Escalated = MatchResolved, false
		if req.Action == ReviewUnsure {
			r.Status, r.Escalated = MatchPendingOps, true
		}
		action := req.Action
		r.ResolutionAction, r.ReviewedAt, r.UpdatedAt = &action, &at, at
		if req.Note != nil || status == MatchPendingCustomer {
			r.Note = req.Note
		}
		if !shown {
			return nil, nil
		}
		return r.newEvent(EventMatchReviewUpdated, event, at)
	})
	if err != nil {
		return UnmatchedResult{}, fmt.Errorf("resolve unmatched result: %w", rules.NotFound(err, RawResultNotFound, "the team has no such result"))
	}
	if r.Status == MatchResolved {
		s.dropReport(ctx, r.Message)
	}
	return s.reviewFor(ctx, r, status)
}

// Return gives a result that waits for operations back to the team, which then decides. A note replaces the team's
// note. UNMATCHED_RESULTS_NOT_ENABLED for a team without reviews, for which operations decide. The host calls it; no
// operation of the HTTP API does.
func (v Reviews) Return(ctx context.Context, team healthlab.TeamID, id RawResultID, note *string) (UnmatchedResult, error) {
	store, err := v.s.reviews(ctx, team)
	if err != nil {
		return UnmatchedResult{}, err
	}
	at, event := healthlab.At(v.s.now()), v.s.shared.NewID()
	r, err := store.UpdateResult(ctx, team, id, func(r *RawResult) ([]healthlab.Event, error) {
		if r.Status != MatchPendingOps {
			return nil, notReviewable()
		}
		name := EventMatchReviewUpdated
		if !r.Escalated {
			name = EventMatchReviewCreated // the team has had no event about this result yet
		}
		r.Status, r.Escalated, r.ResolutionAction, r.ReviewedAt, r.UpdatedAt = MatchPendingCustomer, false, nil, nil, at
		if note != nil {
			r.Note = note
		}
		return r.newEvent(name, event, at)
	})
	if err != nil {
		return UnmatchedResult{}, fmt.Errorf("return unmatched result: %w", rules.NotFound(err, RawResultNotFound, "the team has no such result"))
	}
	return v.s.reviewFor(ctx, r, MatchPendingCustomer)
}

// Operations makes the decisions of the service's operators on results under review: on those that a team passes on,
// and on those of teams without reviews ([orders.Settings].UnmatchedResults). The host calls it; no operation of the
// HTTP API does. A decision has the same effects as one of the team. The team always gets the events of its orders, but
// the event of the review only if it can read the result.
//
// It is safe for concurrent use.
type Operations struct{ s *Service }

// Operations returns the decisions of the service's operators.
func (s *Service) Operations() Operations { return Operations{s} }

// Waiting returns a page of a team's results that wait for operations. Status and Escalated of the query are
// ignored. Errors as [Reviews.List].
func (d Operations) Waiting(ctx context.Context, q ResultQuery) (UnmatchedPage, error) {
	q.Status, q.Escalated = MatchPendingOps, false
	q, err := q.normalized()
	if err != nil {
		return UnmatchedPage{}, err
	}
	return d.s.reviewPage(ctx, d.s.reviewStore, q, MatchPendingOps)
}

// Accept assigns a result that waits for operations to an order, as [Reviews.Accept] does, with the same
// errors.
func (d Operations) Accept(ctx context.Context, team healthlab.TeamID, id RawResultID, req AcceptRequest) (orders.Order, error) {
	return d.s.acceptAs(ctx, d.s.reviewStore, team, id, req, MatchPendingOps)
}

// Reject decides that a result that waits for operations belongs to no order. A note replaces the team's note.
// NotFound if the team has no such result that waits for operations; Invalid for a note that is too long.
func (d Operations) Reject(ctx context.Context, team healthlab.TeamID, id RawResultID, note *string) (UnmatchedResult, error) {
	req := ResolveRequest{Action: ReviewReject, Note: note}
	if err := req.Check(); err != nil {
		return UnmatchedResult{}, fmt.Errorf("reject unmatched result: %w", err)
	}
	return d.s.resolve(ctx, d.s.reviewStore, team, id, req, MatchPendingOps)
}
