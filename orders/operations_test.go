package orders_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/exchange"
)

// reviewsTold are the types of the events about a result.
func (d *fixture) reviewsTold(r exchange.RawResultID) []string {
	d.t.Helper()
	var out []string
	for _, one := range d.ids {
		if m, err := d.store.WebhookLog().Message(d.t.Context(), d.team, one); err == nil && m.Key == r.String() {
			out = append(out, m.Type)
		}
	}
	return out
}

// waitingForOperations returns the only result that waits for operations.
func (d *fixture) waitingForOperations() exchange.UnmatchedResult {
	d.t.Helper()
	page, err := d.Operations().Waiting(d.t.Context(), exchange.ResultQuery{Team: d.team, Status: exchange.MatchResolved})
	require.NoError(d.t, err)
	require.Len(d.t, page.Results, 1)
	require.Equal(d.t, 1, page.Total)
	return page.Results[0]
}

func nobodys(m *exchange.Message) { m.SampleID, m.Patient.LastName = "", "Moe" }

func TestOperationsReview_decidesForTeamsWithoutReviews(t *testing.T) {
	d := newReviewFixture(t)
	d.settings.UnmatchedResults = false
	o := d.requisitioned("walk-in")
	require.NoError(t, d.Receive(t.Context(), d.report(o, bySample, func(m *exchange.Message) { m.SampleID = "" })))
	r := d.waitingForOperations()
	require.Equal(t, []exchange.ReviewAction{exchange.ReviewAccept, exchange.ReviewReject}, r.AllowedActions)
	require.Equal(t, o.ID, *r.CandidateGroups[0].Candidates[0].OrderID)
	_, err := d.Reviews().Accept(t.Context(), d.team, r.ID, exchange.AcceptRequest{OrderID: &o.ID})
	requireRule(t, err, exchange.ReviewNotEnabled, healthlab.Precondition)
	_, err = d.Operations().Accept(t.Context(), healthlab.TeamID{UUID: id("other team")}, r.ID, exchange.AcceptRequest{OrderID: &o.ID})
	requireRule(t, err, exchange.RawResultNotFound, healthlab.NotFound)
	_, err = d.Operations().Accept(t.Context(), d.team, r.ID, exchange.AcceptRequest{})
	requireRule(t, err, exchange.ReviewNeedsChoice, healthlab.Invalid)
	got, err := d.Operations().Accept(t.Context(), d.team, r.ID, exchange.AcceptRequest{OrderID: &o.ID, Note: ptr("hers")})
	require.NoError(t, err)
	require.Equal(t, orders.Completed, got.LowLevel())
	results, err := d.Results(t.Context(), d.team, o.ID)
	require.NoError(t, err)
	require.Len(t, results.Results, 1)
	require.Empty(t, d.reviewsTold(r.ID), "the team never heard of the result")
	require.Contains(t, d.notified(got), "completed")
	_, err = d.Operations().Accept(t.Context(), d.team, r.ID, exchange.AcceptRequest{OrderID: &o.ID})
	requireRule(t, err, exchange.RawResultNotFound, healthlab.NotFound)
	_, err = d.Operations().Reject(t.Context(), d.team, r.ID, nil)
	requireRule(t, err, exchange.RawResultNotFound, healthlab.NotFound)
	kept, err := d.store.Reviews().Result(t.Context(), d.team, r.ID)
	require.NoError(t, err)
	require.Equal(t, exchange.MatchResolved, kept.Status)
	require.Equal(t, o.ID, *kept.ResolvedOrderID)
	require.Equal(t, "hers", *kept.Note)
}

func TestOperationsReview_decidesResultsThatTeamsHandOver(t *testing.T) {
	d := newReviewFixture(t)
	o := d.requisitioned("walk-in")
	r := d.held(d.report(o, bySample, nobodys))
	_, err := d.Operations().Reject(t.Context(), d.team, r.ID, nil)
	requireRule(t, err, exchange.RawResultNotFound, healthlab.NotFound) // it waits for the team
	_, err = d.Operations().Accept(t.Context(), d.team, r.ID, exchange.AcceptRequest{OrderID: &o.ID})
	requireRule(t, err, exchange.RawResultNotFound, healthlab.NotFound)
	_, err = d.Reviews().Resolve(t.Context(), d.team, r.ID, exchange.ResolveRequest{Action: exchange.ReviewUnsure, Note: ptr("who?")})
	require.NoError(t, err)
	_, err = d.Reviews().Accept(t.Context(), d.team, r.ID, exchange.AcceptRequest{OrderID: &o.ID})
	requireRule(t, err, exchange.RawResultNotFound, healthlab.NotFound) // it waits for operations
	require.Equal(t, "who?", *d.waitingForOperations().Note)
	got, err := d.Operations().Reject(t.Context(), d.team, r.ID, nil)
	require.NoError(t, err)
	require.Equal(t, exchange.MatchResolved, got.Status)
	require.Equal(t, exchange.ReviewReject, *got.ResolutionAction)
	require.Equal(t, "who?", *got.Note, "without another note, the team's stays")
	require.Empty(t, got.AllowedActions)
	require.Empty(t, d.waiting())
	seen, err := d.Reviews().Get(t.Context(), d.team, r.ID)
	require.NoError(t, err)
	require.Equal(t, got, seen)
	require.Equal(t, []string{exchange.EventMatchReviewCreated, exchange.EventMatchReviewUpdated, exchange.EventMatchReviewUpdated}, d.reviewsTold(r.ID))
}
