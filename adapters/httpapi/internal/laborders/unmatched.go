package laborders

import (
	"context"
	"net/http"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/simulation"
)

// exchangeOperations lists the operations that simulate results, and those that decide about results which could not
// be matched to an order with certainty.
func (a API) exchangeOperations() []server.Operation {
	if a.Exchange == nil {
		return nil
	}
	list := []server.Operation{
		{ID: "simulate_order", Pattern: "POST /v3/order/{order_id}/test", Bound: a.ofOrder(), Team: server.AsJSON(a.simulateOrder)},
		{ID: "list_unmatched_results", Pattern: "GET /v3/unmatched_result", Bound: server.TeamOnly, Team: server.AsJSON(a.listUnmatched)},
		{ID: "read_unmatched_result", Pattern: "GET /v3/unmatched_result/{raw_result_id}", Bound: server.TeamOnly, Team: server.ReadOne(rawResultID, a.Exchange.Reviews().Get)},
		{ID: "accept_unmatched_result", Pattern: "POST /v3/unmatched_result/{raw_result_id}/accept", Bound: server.TeamOnly, Team: server.AsJSON(a.acceptUnmatched)},
		{ID: "resolve_unmatched_result", Pattern: "POST /v3/unmatched_result/{raw_result_id}/resolve", Bound: server.TeamOnly, Team: server.AsJSON(a.resolveUnmatched)},
	}
	if a.MatchTests == nil {
		return list
	}
	return append(list, []server.Operation{
		{ID: "list_unmatched_result_cases", Pattern: "GET /v3/unmatched_result_test/case", Bound: server.TeamOnly, Team: server.AsJSON(a.listTestCases)},
		{ID: "start_unmatched_result_test", Pattern: "POST /v3/unmatched_result_test", Bound: server.TeamOnly, Team: a.startMatchTest, Keyed: true},
		{ID: "read_unmatched_result_test", Pattern: "GET /v3/unmatched_result_test/{run_id}", Bound: server.TeamOnly, Team: server.ReadOne(testRunID, a.MatchTests.Get)},
	}...)
}

// UnmatchedPage is one page of results under review.
type UnmatchedPage struct {
	Data       []exchange.UnmatchedResult `json:"data"`
	NextCursor *string                    `json:"next_cursor"`
	Total      int                        `json:"total"`
}

func (a API) listUnmatched(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	q := exchange.ResultQuery{
		Team: team, Status: exchange.MatchStatus(in.ShortText("status")), Decision: exchange.MatchDecision(in.ShortText("decision_code")),
		LabSlug: in.ShortText("lab_slug"), Search: in.ShortText("search_input"), Cursor: in.ShortText("next_cursor"),
		Limit: in.Int("limit", catalogue.DefaultPageSize, 1, catalogue.MaxPageSize),
	}
	if d := in.OptDate("created_at_start"); d != nil {
		q.CreatedFrom = d.At(time.UTC)
	}
	if d := in.OptDate("created_at_end"); d != nil {
		q.CreatedBefore = d.AddDays(1).At(time.UTC) // include the whole day
	}
	in.Range(q.CreatedFrom, q.CreatedBefore, "created_at_start", "created_at_end")
	if err := in.Err(); err != nil {
		return nil, err
	}
	page, err := a.Exchange.Reviews().List(ctx, q)
	if err != nil {
		return nil, err
	}
	out := UnmatchedPage{Data: page.Results, Total: page.Total}
	if page.Next != "" {
		out.NextCursor = &page.Next
	}
	return out, nil
}

func testRunID(in *wire.In) simulation.MatchTestRunID {
	return simulation.MatchTestRunID{UUID: in.PathUUID("run_id")}
}

func rawResultID(in *wire.In) exchange.RawResultID {
	return exchange.RawResultID{UUID: in.PathUUID("raw_result_id")}
}

func (a API) acceptUnmatched(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	id := rawResultID(in)
	var body exchange.AcceptRequest
	in.OptBody(&body)
	if err := in.Err(); err != nil {
		return nil, err
	}
	return a.Exchange.Reviews().Accept(ctx, team, id, body)
}

func (a API) resolveUnmatched(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	id := rawResultID(in)
	var body exchange.ResolveRequest
	in.Body(&body)
	if err := in.ErrAnd(body.Check); err != nil {
		return nil, err
	}
	return a.Exchange.Reviews().Resolve(ctx, team, id, body)
}

// TestCases lists the cases of test runs.
type TestCases struct {
	Data []simulation.MatchTestCase `json:"data"`
}

func (a API) listTestCases(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	if err := in.Err(); err != nil {
		return nil, err
	}
	cases, err := a.MatchTests.Cases(ctx, team)
	if err != nil {
		return nil, err
	}
	return TestCases{cases}, nil
}

// TestRunStarted is the answer to a started test run.
type TestRunStarted struct {
	RunID  simulation.MatchTestRunID  `json:"run_id"`
	Status simulation.MatchTestStatus `json:"status"`
}

func (a API) startMatchTest(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	key := in.Header(server.IdempotencyKey, 255)
	var body simulation.MatchTestRequest
	in.Body(&body)
	if err := in.ErrAnd(body.Check); err != nil {
		return err
	}
	t, err := a.MatchTests.Start(r.Context(), team, key, body)
	if err != nil {
		return err
	}
	return wire.JSON(w, http.StatusAccepted, TestRunStarted{t.RunID, t.Status})
}
