package httpapi_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/critical"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

func criticalPairs() []contract.Pair {
	statuses := []string{"open", "escalated", "acknowledged", "withdrawn"}
	interpretations := []string{"normal", "abnormal", "critical", "unknown"}
	return append(httpapi.CriticalBodies(), []contract.Pair{
		{Schema: "CriticalResultLoop", Value: critical.Loop{}, Enums: map[string][]string{"status": statuses}},
		{Schema: "CriticalSnapshot", Value: critical.Snapshot{}, Enums: map[string][]string{"interpretation": interpretations}},
		{Schema: "CriticalDeadline", Value: critical.Deadline{}},
		{Schema: "CriticalAcknowledgement", Value: critical.Acknowledgement{}},
		{Schema: "CriticalEntry", Value: critical.Entry{}, Enums: map[string][]string{
			"event": {"announced", "corrected", "unacknowledged", "acknowledged", "withdrawn"},
		}},
		{Schema: "AcknowledgeCriticalResult", Value: critical.Request{}, Input: true},
		{Schema: "OrderCriticalEntry", Value: critical.OrderEntry{}, Enums: map[string][]string{
			"event": {"announced", "corrected", "unacknowledged", "acknowledged", "withdrawn"},
		}},
		{Schema: "CriticalReadBack", Value: critical.ReadBack{}, Input: true},
	}...)
}

func lowGlucose(value string) labresult.Result {
	return labresult.Result{
		Name: "Glucose", Slug: "glucose", Result: value, Type: labresult.Numeric, Unit: ptr("mg/dL"), ReferenceRange: ptr("70-99"),
		LOINC: ptr("2345-7"), ProviderID: ptr("N001-1"), Interpretation: labresult.Critical,
	}
}

// criticalLoop places an order with the critical glucose of the examples, and returns its loop.
func criticalLoop(t *testing.T, config mount, user healthlab.UserID) critical.Loop {
	t.Helper()
	c := &fixture{t: t, config: config, user: user}
	c.Client = contract.NewClient(t, config.handler(), httpapi.OpenAPI()).With("x-service-api-key", goodKey)
	o := c.accepted(walkInTest, nil)
	c.report(o, orders.FinalResult, "critical", lowGlucose("31"))
	page := c.criticals("?order_id=" + o.ID.String())
	require.Len(t, page.Data, 1)
	return page.Data[0]
}

type criticalPage struct {
	Data  []critical.Loop `json:"data"`
	Next  *string         `json:"next_cursor"`
	Total int             `json:"total"`
}

func (c *fixture) criticals(query string) (page criticalPage) {
	c.t.Helper()
	require.NoError(c.t, json.Unmarshal(c.get("/v3/critical_result"+query, http.StatusOK).Body, &page))
	return page
}

func (c *fixture) critical(id critical.LoopID) (l critical.Loop) {
	c.t.Helper()
	require.NoError(c.t, json.Unmarshal(c.get("/v3/critical_result/"+id.String(), http.StatusOK).Body, &l))
	return l
}

func kindsOf(l critical.Loop) (out []critical.EntryKind) {
	for _, e := range l.History {
		out = append(out, e.Event)
	}
	return out
}

func TestCriticalResult_isAcknowledgedWithReadBack(t *testing.T) {
	c := newFixture(t, nil)
	l := criticalLoop(t, c.config, c.user)
	require.Equal(t, critical.Open, l.Status)
	require.Equal(t, critical.Snapshot{Code: ptr("2345-7"), Name: "Glucose", Value: "31", Unit: ptr("mg/dL"), ReferenceRange: ptr("70-99"), Interpretation: labresult.Critical}, l.Result)
	require.Equal(t, c.user, l.UserID)
	path := "/v3/critical_result/" + l.ID.String()
	said := func(value string, more object) object {
		back := object{"value": value}
		for k, v := range more {
			back[k] = v
		}
		return object{"acknowledged_by": "Dr. Ada Roe", "read_back": back}
	}
	for field, back := range map[string]object{
		"read_back.value": said("13", nil), "read_back.unit": said("31", object{"unit": "mmol/L"}),
	} {
		reply := c.post(path+"/acknowledge", back, http.StatusBadRequest)
		require.Equal(t, critical.ReadBackMismatch, reply.ErrorType(t))
		require.Contains(t, string(reply.Body), field)
		require.NotContains(t, string(reply.Body), "31")
	}
	require.Equal(t, []string{"body.acknowledged_by", "body.read_back.value"},
		c.post(path+"/acknowledge", object{"acknowledged_by": " ", "read_back": object{"value": ""}}, 422).Locs(t))
	require.Equal(t, l, c.critical(l.ID), "a refused read-back changes nothing")

	for range 2 { // a repeated request changes nothing
		c.post(path+"/acknowledge", said(" 31 ", object{"unit": "mg/dL"}), http.StatusOK)
	}
	got := c.critical(l.ID)
	require.Equal(t, critical.Acknowledged, got.Status)
	require.Equal(t, critical.Acknowledgement{By: "Dr. Ada Roe", At: healthlab.At(fixtureNow), Revision: 1}, *got.Acknowledgement)
	require.Equal(t, []critical.EntryKind{critical.Announced, critical.WasAcknowledged}, kindsOf(got))
	require.Equal(t, critical.AlreadyClosed, c.post(path+"/acknowledge", object{"acknowledged_by": "B", "read_back": object{"value": "31"}}, http.StatusConflict).ErrorType(t))
	require.Empty(t, c.criticals("").Data)
	require.Len(t, c.criticals("?status=acknowledged").Data, 1)
	require.Len(t, c.criticals("?order_id="+l.OrderID.String()).Data, 1, "all of the order")

	var o orders.Order
	require.NoError(t, json.Unmarshal(c.get("/v3/order/"+l.OrderID.String(), http.StatusOK).Body, &o))
	require.Len(t, o.CriticalHistory, 2)
	require.Equal(t, critical.WasAcknowledged, o.CriticalHistory[1].Event)
	require.Equal(t, "Dr. Ada Roe", o.CriticalHistory[1].By)
}

func TestCriticalResults_areListedRevisedAndWithdrawn(t *testing.T) {
	c := newFixture(t, nil)
	o := c.accepted(walkInTest, nil)
	second := lowGlucose("500")
	second.LOINC, second.Name = ptr("2160-0"), "Creatinine"
	normal := lowGlucose("80")
	normal.LOINC, normal.Interpretation = ptr("2951-2"), labresult.Normal
	c.report(o, orders.PartialResult, "1", lowGlucose("31"), second, normal)
	all := c.criticals("")
	require.Equal(t, 2, all.Total)
	first := c.criticals("?limit=1")
	require.Equal(t, all.Data[:1], first.Data)
	require.Equal(t, 2, first.Total)
	rest := c.criticals("?limit=1&next_cursor=" + *first.Next)
	require.Equal(t, all.Data[1:], rest.Data)
	require.Nil(t, rest.Next)
	require.Len(t, c.criticals("?user_id="+c.user.String()).Data, 2)
	require.Empty(t, c.criticals("?user_id="+uuid.NewString()).Data)
	require.Empty(t, c.criticals("?status=withdrawn").Data)
	require.Equal(t, []string{"query.limit"}, c.get("/v3/critical_result?limit=0", 422).Locs(t))
	require.Equal(t, []string{"query.status"}, c.get("/v3/critical_result?status=lost", 422).Locs(t))
	require.Equal(t, []string{"query.next_cursor"}, c.get("/v3/critical_result?next_cursor=no", 422).Locs(t))
	c.refused("GET", "/v3/critical_result/"+uuid.NewString(), nil, 404, critical.NotFound)

	other := *c
	other.Client = c.With("x-service-api-key", "other")
	require.Empty(t, other.criticals("").Data)
	other.refused("GET", "/v3/critical_result/"+all.Data[0].ID.String(), nil, 404, critical.NotFound)

	second.Interpretation = labresult.Abnormal
	c.report(o, orders.FinalResult, "2", lowGlucose("29"), second, normal)
	byName := map[string]critical.LoopID{}
	for _, l := range all.Data {
		byName[l.Result.Name] = l.ID
	}
	got := c.critical(byName["Glucose"])
	require.Equal(t, []critical.EntryKind{critical.Announced, critical.Corrected}, kindsOf(got))
	require.Equal(t, "29", got.Result.Value)
	require.Equal(t, 2, got.Revision)
	got = c.critical(byName["Creatinine"])
	require.Equal(t, critical.Withdrawn, got.Status)
	require.Equal(t, "corrected_to_abnormal", got.History[1].Reason)
}

// Nothing of a deleted user is listed or found.
func TestCriticalResults_ofADeletedUserAreNotFound(t *testing.T) {
	c := newFixture(t, nil)
	l := criticalLoop(t, c.config, c.user)
	require.NoError(t, c.health.Deletions().Delete(t.Context(), team, c.user))
	require.Empty(t, c.criticals("").Data)
	require.Zero(t, c.criticals("").Total)
	path := "/v3/critical_result/" + l.ID.String()
	c.refused("GET", path, nil, 404, critical.NotFound)
	c.refused("POST", path+"/acknowledge", object{"acknowledged_by": "A", "read_back": object{"value": "31"}}, 404, critical.NotFound)
}

// A result that no person acknowledges passes each step of the ladder once, and stays listed.
func TestCriticalResult_unacknowledgedPassesEachEscalationStepOnce(t *testing.T) {
	at := fixtureNow
	c := newFixture(t, nil)
	var err error
	c.config.Critical, err = critical.New(c.store.CriticalResults(), &critical.Options{Now: func() time.Time { return at }})
	require.NoError(t, err)
	c.Client = contract.NewClient(t, c.config.handler(), httpapi.OpenAPI()).With("x-service-api-key", goodKey)
	l := criticalLoop(t, c.config, c.user)
	for _, minutes := range []int{0, 15, 15, 30, 60, 600} {
		at = fixtureNow.Add(time.Duration(minutes) * time.Minute)
		_, err := c.config.Critical.EscalateDue(t.Context())
		require.NoError(t, err)
		l = c.critical(l.ID)
	}
	require.Equal(t, critical.Escalated, l.Status)
	require.Equal(t, []critical.EntryKind{critical.Announced, critical.StepPassed, critical.StepPassed, critical.StepPassed}, kindsOf(l))
	for i, step := range critical.DefaultLadder() {
		require.Equal(t, step.To, l.Escalation[i].To)
		require.Equal(t, step.To, l.History[i+1].To)
		require.Equal(t, fixtureNow.Add(step.After), l.Escalation[i].PassedAt.Time)
	}
	require.Nil(t, l.NextStepAt)
	require.Equal(t, []critical.Loop{l}, c.criticals("").Data)
	require.Equal(t, []critical.Loop{l}, c.criticals("?status=escalated").Data)
	require.Empty(t, c.criticals("?status=open").Data)
	c.post("/v3/critical_result/"+l.ID.String()+"/acknowledge", object{"acknowledged_by": "A", "read_back": object{"value": "31"}}, 200)
}
