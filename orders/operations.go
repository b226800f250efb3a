package orders

import (
	"context"
	"fmt"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

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

func (d Operations) reviewStore() (ReviewStore, error) {
	if d.s.opts.Reviews == nil {
		return nil, rules.Broken(ReviewNotEnabled, "unmatched results are not switched on")
	}
	return d.s.opts.Reviews, nil
}

// Waiting returns a page of a team's results that wait for operations. The query's
// status and Escalated count for nothing. Errors as [Reviews.List].
func (d Operations) Waiting(ctx context.Context, q ResultQuery) (UnmatchedPage, error) {
	store, err := d.reviewStore()
	if err != nil {
		return UnmatchedPage{}, err
	}
	q.Status, q.Escalated = MatchPendingOps, false
	if q, err = q.Normal(); err != nil {
		return UnmatchedPage{}, err
	}
	return d.s.reviewPage(ctx, store, q, MatchPendingOps)
}

// Accept gives a result that waits for operations to an order, as
// [Reviews.Accept] does, with the same errors.
func (d Operations) Accept(ctx context.Context, team healthlab.TeamID, id RawResultID, req AcceptRequest) (Order, error) {
	store, err := d.reviewStore()
	if err != nil {
		return Order{}, err
	}
	return d.s.acceptAs(ctx, store, team, id, req, MatchPendingOps)
}

// Reject decides that a result that waits for operations belongs to no order. A note replaces
// the team's. NotFound if the team has none of this id that waits for operations;
// Invalid for a note that is too long.
func (d Operations) Reject(ctx context.Context, team healthlab.TeamID, id RawResultID, note *string) (UnmatchedResult, error) {
	store, err := d.reviewStore()
	if err != nil {
		return UnmatchedResult{}, err
	}
	req := ResolveRequest{Action: ReviewReject, Note: note}
	if err := req.Check(); err != nil {
		return UnmatchedResult{}, fmt.Errorf("reject unmatched result: %w", err)
	}
	return d.s.resolve(ctx, store, team, id, req, MatchPendingOps)
}
