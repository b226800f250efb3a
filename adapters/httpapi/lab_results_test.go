package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// A history has each result of a person once: in the unit of its analyte, as it was corrected, and
// for the codes, days and sources that are asked for.
func TestLabResults_historyHasEachResultOnceFilteredByQuery(t *testing.T) {
	c := newFixture(t, nil)
	path := "/v2/user/" + c.user.String() + "/lab_result"
	type page struct {
		Data []struct {
			ID, Name, Status, Source string
			LOINC, Unit, Comparator  *string
			Value, Bound             *float64
			ReportedValue            string `json:"reported_value"`
			ReportedUnit             *string
		}
		NextCursor *string `json:"next_cursor"`
	}
	ask := func(query string) (p page) {
		c.get(path+query, 200).JSON(t, &p)
		return p
	}
	require.Empty(t, ask("").Data)

	o := c.placed()
	c.Send(t, "POST", "/v3/order/"+o.ID.String()+"/test?final_status=received.walk_in_test.requisition_created", nil).Want(t, 200)
	glucose := func(value string) labresult.Result {
		return labresult.Result{Name: "Glucose", Result: value, Type: labresult.Numeric, Unit: ptr("mg/dL"), ProviderID: ptr("N001-1")}
	}
	creatinine := labresult.Result{Name: "Creatinine", Result: ">20", Type: labresult.Range, Unit: ptr("mg/dL"), LOINC: ptr("2160-0")}
	c.report(o, orders.FinalResult, "1", glucose("900"), creatinine)
	c.report(o, orders.CorrectedResult, "2", glucose("90"), creatinine)

	require.Len(t, ask("").Data, 2)
	sugar := ask("?code=2345-7").Data
	require.Len(t, sugar, 1)
	require.InDelta(t, 4.9957, *sugar[0].Value, 1e-4)
	require.Equal(t, "mmol/L", *sugar[0].Unit)
	require.Equal(t, "90", sugar[0].ReportedValue)
	require.Equal(t, "corrected", sugar[0].Status)
	bound := ask("?code=2160-0&source=order").Data[0]
	require.Nil(t, bound.Value)
	require.Equal(t, ">", *bound.Comparator)
	require.InDelta(t, 1768.07, *bound.Bound, 1e-2)

	// The same in a query, for a key that may read both.
	const question = `{"timeframe":{"type":"relative","anchor":"2026-03-31","past":{"unit":"year","value":5}},
		"queries":[{"select":[{"func":"newest","arg":{"lab_result":"value"}},{"func":"newest","arg":{"lab_result":"unit"}}],"where":"loinc = '2345-7'"}]}`
	query := "/aggregate/v1/user/" + c.user.String() + "/query"
	var answer struct {
		Results []struct{ Table map[string][]any }
	}
	c.post(query, question, 200).JSON(t, &answer)
	require.InDelta(t, 4.9957, answer.Results[0].Table["newest.value"][0], 1e-4)
	require.Equal(t, "mmol/L", answer.Results[0].Table["newest.unit"][0])
	archive := c.With("Accept", "application/vnd.healthlab.tar+gzip+parquet").Send(t, "POST", query, question).Want(t, 200)
	require.NotEmpty(t, archive.Body)
	for missing, scopes := range map[string]organisation.Scopes{
		"orders:read": {"data:read", "reports:read"}, "reports:read": {"data:read", "orders:read"},
	} {
		config := c.config
		config.Authenticate = func(*http.Request) (httpapi.Caller, error) { return httpapi.Caller{Team: team, Scopes: scopes}, nil }
		limited := contract.NewClient(t, config.handler(), httpapi.OpenAPI()).With("x-service-api-key", goodKey)
		require.Contains(t, string(limited.Send(t, "POST", query, question).Want(t, 403).Body), missing)
		require.Contains(t, string(limited.Send(t, "GET", path, nil).Want(t, 403).Body), missing)
		limited.Send(t, "POST", query, goodQuestion).Want(t, 200)
	}

	first := ask("?limit=1")
	require.Len(t, first.Data, 1)
	second := ask("?limit=1&next_cursor=" + *first.NextCursor)
	require.Len(t, second.Data, 1)
	require.Nil(t, second.NextCursor)
	require.NotEqual(t, first.Data[0].ID, second.Data[0].ID)
	require.Empty(t, ask("?source=report").Data)
	require.Empty(t, ask("?end_date=2001-01-01").Data)

	for _, bad := range []string{"?code=2345-6", "?code=glucose", "?source=import", "?next_cursor=1", "?limit=0", "?start_date=tomorrow", "?codes=2345-7"} {
		c.get(path+bad, 422)
	}
	c.get("/v2/user/"+c.foreign.String()+"/lab_result", 404)
}
