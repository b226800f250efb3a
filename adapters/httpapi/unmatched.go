package httpapi

import (
	"net/http"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/matchtest"
)

// unmatchedOperations are about results that match no order for certain.
func (a api) unmatchedOperations() []operation {
	if a.Orders == nil {
		return nil
	}
	list := []operation{
		{id: "list_unmatched_results", pattern: "GET /v3/unmatched_result", team: a.listUnmatched},
		{id: "read_unmatched_result", pattern: "GET /v3/unmatched_result/{raw_result_id}", team: readOne(rawResultID, a.Orders.Reviews().Get)},
		{id: "accept_unmatched_result", pattern: "POST /v3/unmatched_result/{raw_result_id}/accept", team: a.acceptUnmatched},
		{id: "resolve_unmatched_result", pattern: "POST /v3/unmatched_result/{raw_result_id}/resolve", team: a.resolveUnmatched},
	}
	if a.MatchTests == nil {
		return list
	}
	return append(list, []operation{
		{id: "list_unmatched_result_cases", pattern: "GET /v3/unmatched_result_test/case", team: a.listTestCases},
		{id: "start_unmatched_result_test", pattern: "POST /v3/unmatched_result_test", team: a.startMatchTest, keyed: true},
		{id: "read_unmatched_result_test", pattern: "GET /v3/unmatched_result_test/{run_id}", team: readOne(testRunID, a.MatchTests.Get)},
	}...)
}

// unmatchedOut is one page of results under review.
type unmatchedOut struct {
	Data       []orders.UnmatchedResult `json:"data"`
	NextCursor *string                  `json:"next_cursor"`
	Total      int                      `json:"total"`
}

func (a api) listUnmatched(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	q := orders.ResultQuery{
		Team: team, Status: orders.MatchStatus(text(in, "status")), Decision: orders.MatchDecision(text(in, "decision_code")),
		LabSlug: text(in, "lab_slug"), Search: text(in, "search_input"), Cursor: text(in, "next_cursor"),
		Limit: in.Int("limit", catalogue.DefaultPageSize, 1, catalogue.MaxPageSize),
	}
	if d := in.OptDate("created_at_start"); d != nil {
		q.CreatedFrom = d.At(time.UTC)
	}
	if d := in.OptDate("created_at_end"); d != nil {
		q.CreatedBefore = d.AddDays(1).At(time.UTC) // the whole day
	}
	if err := in.Err(); err != nil {
		return err
	}
	page, err := a.Orders.Reviews().List(r.Context(), q)
	if err != nil {
		return err
	}
	out := unmatchedOut{Data: page.Results, Total: page.Total}
	if page.Next != "" {
		out.NextCursor = &page.Next
	}
	return wire.JSON(w, http.StatusOK, out)
}

func testRunID(in *wire.In) matchtest.RunID {
	return matchtest.RunID{UUID: in.PathUUID("run_id")}
}

func rawResultID(in *wire.In) orders.RawResultID {
	return orders.RawResultID{UUID: in.PathUUID("raw_result_id")}
}

func (a api) acceptUnmatched(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	id := rawResultID(in)
	var body orders.AcceptRequest
	in.OptBody(&body)
	if err := in.Err(); err != nil {
		return err
	}
	o, err := a.Orders.Reviews().Accept(r.Context(), team, id, body)
	if err != nil {
		return err
	}
	return wire.JSON(w, http.StatusOK, o)
}

func (a api) resolveUnmatched(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	id := rawResultID(in)
	var body orders.ResolveRequest
	in.Body(&body)
	if err := in.ErrAnd(body.Check); err != nil {
		return err
	}
	result, err := a.Orders.Reviews().Resolve(r.Context(), team, id, body)
	if err != nil {
		return err
	}
	return wire.JSON(w, http.StatusOK, result)
}

// testCasesOut are the cases of test runs.
type testCasesOut struct {
	Data []matchtest.Rule `json:"data"`
}

func (a api) listTestCases(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	if err := wire.From(r).Err(); err != nil {
		return err
	}
	cases, err := a.MatchTests.Cases(r.Context(), team)
	if err != nil {
		return err
	}
	return wire.JSON(w, http.StatusOK, testCasesOut{cases})
}

// testRunStarted says that a test run was taken up.
type testRunStarted struct {
	RunID  matchtest.RunID  `json:"run_id"`
	Status matchtest.Status `json:"status"`
}

func (a api) startMatchTest(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	key := in.Header(idempotencyKey, 255)
	var body matchtest.Request
	in.Body(&body)
	if err := in.ErrAnd(body.Check); err != nil {
		return err
	}
	t, err := a.MatchTests.Start(r.Context(), team, key, body)
	if err != nil {
		return err
	}
	return wire.JSON(w, http.StatusAccepted, testRunStarted{t.RunID, t.Status})
}
