package aggregate_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/internal/queryoracle"
)

func labs(t *testing.T, results ...aggregate.LabResult) *aggregate.Service {
	return labsOf(t, queryoracle.NewPerson(), results...)
}

func listOf(results []aggregate.LabResult) func(context.Context, healthlab.TeamID, healthlab.UserID) ([]aggregate.LabResult, error) {
	return func(context.Context, healthlab.TeamID, healthlab.UserID) ([]aggregate.LabResult, error) {
		return results, nil
	}
}

func lipid(day, analyte, code string, value *float64) aggregate.LabResult {
	r := aggregate.LabResult{Name: analyte, Analyte: &analyte, LOINC: &code, Value: value, Unit: ptr("mmol/L"), Status: "final", Source: "order"}
	if day != "" {
		r.Date = date(day)
	}
	return r
}

// The columns of a laboratory result, a function over one analyte, and what has no day.
func TestLabResults_areSelectedAndAggregatedWithoutUndatedOnes(t *testing.T) {
	s := labs(t,
		lipid("2026-03-01", "ldl", "2089-1", ptr(3.5)), lipid("2026-03-15", "ldl", "22748-8", ptr(2.5)), lipid("2026-03-20", "ldl", "2089-1", nil),
		lipid("2026-02-28", "ldl", "2089-1", ptr(9.0)), lipid("", "ldl", "2089-1", ptr(9.0)), lipid("2026-03-10", "hdl", "2085-9", ptr(1.5)))
	require.JSONEq(t, `{"index":["2026-03-01T00:00:00","2026-03-10T00:00:00","2026-03-15T00:00:00","2026-03-20T00:00:00"],"analyte":["ldl","hdl","ldl","ldl"],
		"value":[3.5,1.5,2.5,null],"unit":["mmol/L","mmol/L","mmol/L","mmol/L"],"date":["2026-03-01","2026-03-10","2026-03-15","2026-03-20"],"collected_at":[null,null,null,null]}`,
		table(t, s, over("31", "2026-03-31", `{"select":[{"lab_result":"analyte"},{"lab_result":"value"},{"lab_result":"unit"},{"lab_result":"date"},{"lab_result":"collected_at"}]}`)))
	const value = `"arg":{"lab_result":"value"}}`
	require.JSONEq(t, `{"index":["2026-03-01T00:00:00"],"mean":[3],"newest":[2.5],"count":[2]}`, table(t, s, over("31", "2026-03-31",
		`{"select":[{"func":"mean",`+value+`,{"func":"newest",`+value+`,{"func":"count",`+value+`],"where":"analyte = 'ldl'","group_by":[{"date_trunc":{"unit":"month"},"arg":{"placeholder":true}}]}`)))
	require.JSONEq(t, `{"index":[0,1],"group_key.0":["hdl","ldl"],"group_key.1":["mmol/L","mmol/L"],"max":[1.5,3.5]}`, table(t, s, over("31", "2026-03-31",
		`{"select":[{"group_key":"*"},{"func":"max",`+value+`],"group_by":[{"lab_result":"analyte"},{"lab_result":"unit"}]}`)))
	require.JSONEq(t, `{"index":[0],"count":[3]}`, table(t, s, over("31", "2026-03-31", `{"select":[{"func":"count",`+value+`]}`)), "a count mixes nothing")

	// Explained.
	req, err := s.Decode([]byte(over("31", "2026-03-31", `{"select":[{"func":"mean",`+value+`],"where":"loinc = '2089-1'"}`)), false)
	require.NoError(t, err)
	out, err := s.Explain(t.Context(), team, user, &req)
	require.NoError(t, err)
	require.Equal(t, "lab_result", out.Explain[0].Table)
	require.Equal(t, "rows", out.Explain[0].Path)
	require.Equal(t, 4, out.Explain[0].Rows)
	require.True(t, req.ReadsLabResults())
	other, err := s.Decode([]byte(over("1", "2026-03-31", `{"select":[{"sleep":"score"}]}`)), false)
	require.NoError(t, err)
	require.False(t, other.ReadsLabResults())
}

// Numbers of two analytes, and of two units of one, are not put together.
func TestLabResults_mixedAnalytesOrUnitsAreRefused(t *testing.T) {
	perDay := lipid("2026-03-02", "ldl", "2089-1", ptr(2.5))
	perDay.Unit = ptr("mmol/(24.h)")
	for name, second := range map[string]aggregate.LabResult{"analytes": lipid("2026-03-02", "hdl", "2085-9", ptr(1.5)), "units": perDay} {
		s := labs(t, lipid("2026-03-01", "ldl", "2089-1", ptr(3.5)), second)
		for _, f := range []string{"mean", "newest", "min", "median", "cv", "percentile_90"} {
			for _, by := range []string{``, `,"group_by":[{"date_trunc":{"unit":"day"},"arg":{"placeholder":true}}]`, `,"group_by":[{"lab_result":"status"}]`} {
				req, err := s.Decode([]byte(over("31", "2026-03-31", `{"select":[{"func":"`+f+`","arg":{"lab_result":"value"}}]`+by+`}`)), false)
				require.NoError(t, err)
				_, err = s.Query(t.Context(), team, user, &req)
				require.Equal(t, []string{"mixed_analytes at queries.0"}, faults(t, err), "%s %s", name, f)
			}
		}
	}
}

func TestLabResults_withoutASourceAreUnimplemented(t *testing.T) {
	s := service(t, queryoracle.NewPerson(), nil)
	req, err := s.Decode([]byte(over("31", "2026-03-31", `{"select":[{"lab_result":"value"}]}`)), false)
	require.NoError(t, err)
	_, err = s.Query(t.Context(), team, user, &req)
	require.ErrorIs(t, err, healthlab.Unimplemented)
	_, err = s.DecodeQuery([]byte(`{"select":[{"lab_result":"value","body":"weight"}]}`), false)
	require.ErrorIs(t, err, healthlab.Invalid, "a query without a table")
	_, err = s.DecodeQuery([]byte(`{"select":[{"group_key":0},{"func":"count","arg":{"lab_result":"value"}}],"group_by":[{"date_trunc":{"unit":"day"},"arg":{"placeholder":true}}]}`), false)
	require.Equal(t, []string{"continuous_query_invalid at select"}, faults(t, err))
}
