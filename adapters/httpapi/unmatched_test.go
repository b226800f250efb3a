package httpapi_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/orders/simulation"
)

// unmatchedPairs are the types of results under review and their schemas.
func unmatchedPairs() []contract.Pair {
	return append(httpapi.UnmatchedBodies(), []contract.Pair{
		{Schema: "UnmatchedResult", Value: exchange.UnmatchedResult{}},
		{Schema: "AcceptRequest", Value: exchange.AcceptRequest{}, Input: true},
		{Schema: "ResolveRequest", Value: exchange.ResolveRequest{}, Input: true, Enums: map[string][]string{"action": {"reject", "unsure"}}},
		{Schema: "Trial", Value: simulation.MatchTestRun{}, Enums: map[string][]string{
			"status": {"queued", "running", "succeeded", "failed"},
			"stage": {"queued", "validating", "selecting_configuration", "creating_orders", "transitioning_orders", "writing_result",
				"matching_result", "verifying_review", "succeeded", "failed"},
		}},
		{Schema: "TrialRequest", Value: simulation.MatchTestRequest{}, Input: true, Enums: map[string][]string{
			"case": trialCases(), "order_source": {"managed", "provided"},
		}},
	}...)
}

func trialCases() []string {
	var out []string
	for _, r := range simulation.MatchTestCases() {
		out = append(out, string(r.Case))
	}
	return out
}

// unmatched is a result of an order's patient that names no order.
func (c *fixture) unmatched(o orders.Order, id string) {
	c.t.Helper()
	name := "Iron"
	require.NoError(c.t, c.config.Exchange.Receive(c.t.Context(), exchange.Message{
		ID: id, Team: o.TeamID, On: orders.FinalResult, At: fixtureNow, Lab: o.LabTest.Lab.Slug,
		Patient: &orders.ReportedPatient{FirstName: *o.PatientDetails.FirstName, LastName: *o.PatientDetails.LastName, DOB: o.PatientDetails.DOB},
		Results: &labresult.Report{Results: []labresult.Result{{Name: name, Result: "1", Type: labresult.Numeric, Interpretation: labresult.Normal}}},
	}))
}

func (c *fixture) unmatchedPage(query string) (out struct {
	Data       []exchange.UnmatchedResult
	NextCursor *string `json:"next_cursor"`
	Total      int
}) {
	c.t.Helper()
	c.get("/v3/unmatched_result"+query, 200).JSON(c.t, &out)
	return out
}

func TestUnmatchedResults_areListedAndDecided(t *testing.T) {
	c := newFixture(t, nil)
	o := c.placed()
	for _, id := range []string{"1", "2", "3"} {
		c.unmatched(o, id)
	}
	page := c.unmatchedPage("?limit=2")
	require.Len(t, page.Data, 2)
	require.Equal(t, 3, page.Total)
	rest := c.unmatchedPage("?limit=2&next_cursor=" + *page.NextCursor)
	require.Len(t, rest.Data, 1)
	require.Nil(t, rest.NextCursor)
	require.Equal(t, 3, c.unmatchedPage("?decision_code=match_demo&lab_slug=northlab&search_input=ANA&created_at_start=2026-03-04&created_at_end=2026-03-04").Total)
	require.Equal(t, 3, c.unmatchedPage("?search_input=1988-03").Total)
	for _, none := range []string{"?decision_code=no_match", "?status=resolved", "?created_at_end=2026-03-03", "?lab_slug=x", "?search_input=zzz"} {
		require.Zero(t, c.unmatchedPage(none).Total, none)
	}
	require.ElementsMatch(t, []string{"query.status", "query.decision_code"}, c.get("/v3/unmatched_result?status=x&decision_code=y", 422).Locs(t))
	c.get("/v3/unmatched_result?next_cursor=x", 422)
	c.get("/v3/unmatched_result?limit=101", 422)

	one := page.Data[0]
	path := "/v3/unmatched_result/" + one.ID.String()
	var got exchange.UnmatchedResult
	c.get(path, 200).JSON(t, &got)
	require.Equal(t, o.ID, *got.CandidateGroups[0].Candidates[0].OrderID)
	other := c.With("x-service-api-key", "other")
	require.Equal(t, exchange.ReviewNotEnabled, other.Send(t, "GET", path, nil).Want(t, 400).ErrorType(t))

	c.post(path+"/accept", nil, 422) // it points to no single patient
	c.refused("POST", path+"/accept", object{"order_id": absent}, 404, orders.OrderNotFound)
	c.refused("POST", path+"/accept", object{"user_id": c.foreign.String()}, 404, people.UserNotFound)
	var accepted orders.Order
	c.post(path+"/accept", object{"order_id": o.ID.String(), "user_id": c.user.String(), "note": "sure"}, 200).JSON(t, &accepted)
	require.Equal(t, o.ID, accepted.ID)
	require.Equal(t, orders.Completed, accepted.LowLevel())
	c.refused("POST", path+"/accept", object{"order_id": o.ID.String()}, 404, exchange.RawResultNotFound)
	c.get("/v3/order/"+o.ID.String()+"/result", 200)

	second := "/v3/unmatched_result/" + page.Data[1].ID.String()
	require.Equal(t, []string{"body.action"}, c.post(second+"/resolve", object{"action": "accept"}, 422).Locs(t))
	c.post(second+"/resolve", object{"action": "unsure", "note": "who?"}, 200).JSON(t, &got)
	require.Equal(t, exchange.MatchPendingOps, got.Status)
	c.refused("POST", second+"/resolve", object{"action": "reject"}, 404, exchange.RawResultNotFound)
	c.refused("GET", "/v3/unmatched_result/"+absent, nil, 404, exchange.RawResultNotFound)
	require.Equal(t, []string{"path.raw_result_id"}, c.get("/v3/unmatched_result/7", 422).Locs(t))
}

func TestUnmatchedResultTest_runsEachCaseOncePerIdempotencyKey(t *testing.T) {
	c := newFixture(t, nil)
	var cases struct{ Data []simulation.MatchTestCase }
	c.get("/v3/unmatched_result_test/case", 200).JSON(t, &cases)
	require.Len(t, cases.Data, 8)
	start := func(key string, body object, status int) *contract.Reply {
		return c.With("x-idempotency-key", key).Send(t, "POST", "/v3/unmatched_result_test", body).Want(t, status)
	}
	run := object{"case": "multiple_demo_match", "order_source": "managed"}
	var begun, again struct {
		RunID  simulation.MatchTestRunID `json:"run_id"`
		Status simulation.MatchTestStatus
	}
	start("k1", run, 202).JSON(t, &begun)
	_, err := c.config.MatchTests.Once(t.Context())
	require.NoError(t, err)
	start("k1", run, 202).JSON(t, &again)
	require.Equal(t, begun.RunID, again.RunID)
	require.Equal(t, orders.IdempotencyKeyReused, start("k1", object{"case": "no_match", "order_source": "managed"}, 409).ErrorType(t))
	var got simulation.MatchTestRun
	c.get("/v3/unmatched_result_test/"+begun.RunID.String(), 200).JSON(t, &got)
	require.Nil(t, got.Error)
	require.Equal(t, simulation.MatchTestSucceeded, got.Status)
	require.Len(t, got.Orders, 2)
	require.Equal(t, 1, c.unmatchedPage("?decision_code=multiple_demo_match").Total)
	require.Equal(t, []string{"header.x-idempotency-key"}, c.post("/v3/unmatched_result_test", run, 422).Locs(t))
	require.ElementsMatch(t, []string{"body.case", "body.order_source"}, start("k2", object{"case": "x", "order_source": "y"}, 422).Locs(t))
	c.refused("GET", "/v3/unmatched_result_test/"+absent, nil, 404, simulation.MatchTestNotFound)
	require.Equal(t, catalogue.FeatureNotEnabled, c.With("x-service-api-key", "other").
		Send(t, "GET", "/v3/unmatched_result_test/case", nil).Want(t, 403).ErrorType(t))
}
