package console

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The columns of an answer have the order, the titles and the units of the query; a column that
// repeats the index is left out.
func TestQueryResult_columnsHaveTitlesAndUnits(t *testing.T) {
	schema := querySchema{
		Timeseries: []queryTable{{Name: "glucose", Columns: []queryColumn{{Name: "value", Type: "float64", Unit: "mmol/L"}}}},
		Tables:     []queryTable{{Name: "sleep", Columns: []queryColumn{{Name: "score", Unit: "1-100"}, {Name: "session_start", Unit: "local"}}}},
	}
	day := []any{"2026-01-01T00:00:00", "2026-01-02T00:00:00"}
	const daily = `"group_by":[{"date_trunc":{"unit":"day","value":1},"arg":{"index":"timeseries"}},{"source":"source_provider"}]`
	const value = `"arg":{"timeseries":"glucose","field":"value"}`
	for name, one := range map[string]struct {
		query string
		table table
		want  []string
		row   []string
	}{
		"by day": {
			`{"queries":[{"select":[{"group_key":"*"},{"func":"mean",` + value + `},{"func":"time_in_range","band":"in_range",` + value + `},{"func":"count",` + value + `}],` + daily + `}]}`,
			table{"index": day, "group_key.0": day, "group_key.1": {"a", "b"}, "mean": {5.5, nil}, "time_in_range_in_range": {81.5, 3.0}, "count": {2.0, 0.0}},
			[]string{"time", "source provider", "mean glucose (mmol/L)", "time in range in range glucose (%)", "count glucose"},
			[]string{"2026-01-01", "a", "5.5", "81.5", "2"},
		},
		"qualified": {
			`{"config":{"column_naming":"qualified"},"queries":[{"select":[{"func":"max",` + value + `}],` + daily + `}]}`,
			table{"index": day, "max.glucose.value": {5.0, 6.0}},
			[]string{"index", "max glucose (mmol/L)"}, []string{"2026-01-01", "5"},
		},
		"a table": {
			`{"queries":[{"select":[{"sleep":"score"},{"sleep":"session_start"},{"source":"source_type"},{"func":"max","arg":{"sleep":"score"}}]}]}`,
			table{"index": {0.0}, "score": {88.0}, "session_start": {"2026-01-01T22:00:00"}, "source_type": {"ring"}, "max.score": {90.0}},
			[]string{"index", "score (1-100)", "session start", "source type", "max score (1-100)"},
			[]string{"0", "88", "2026-01-01 22:00:00", "ring", "90"},
		},
		"what is not understood": {`[]`, table{"index": day, "x": {1.0, 2.0}, "group_key.0": day}, []string{"index", "x"}, []string{"2026-01-01", "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			var columns []resultColumn
			if known := schema.questions(one.query); len(known) > 0 {
				columns = known[0]
			}
			got := tableOf(one.table, columns)
			var titles []string
			for _, c := range got.Columns {
				if c.Unit != "" {
					c.Title += " (" + c.Unit + ")"
				}
				titles = append(titles, c.Title)
			}
			require.Equal(t, one.want, titles)
			require.Equal(t, one.row, got.Rows[0])
		})
	}
}

// A chart of any numbers has texts of a few characters beside its axis, and a bounded table.
func TestChart_axisTextsAreShort(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.5: "0.5", 61.98437: "61.984", 5000: "5000", 12000: "12k", 250000: "250k", 1.5e6: "1.5M", -25000: "-25k"} {
		require.Equal(t, want, shortNumber(v))
	}
	for v, want := range map[float64]string{72: "72", 75.5775: "75.58", 0.59481: "0.5948", 12345.6: "12346"} {
		require.Equal(t, want, number(v))
	}
	low, high := widen(61.96, 62.04)
	require.InDelta(t, 3.1, high-low, 0.01)
	low, high = widen(50, 90)
	require.Equal(t, []float64{50, 90}, []float64{low, high})
}
