package aggregate_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/queryoracle"
)

// steps is four intervals of one day: a phone and a watch of p1 that overlap, and a
// phone of p2 around midnight.
func steps(t *testing.T) *queryoracle.Person {
	p := queryoracle.NewPerson()
	add := func(provider string, st healthdata.SourceType, from, to string, v float64) {
		p.Measure(t, key("steps", provider, st, ""), series.PerMinute, false, series.Sample{Time: at(from), End: at(to), Value: v})
	}
	add("p1", healthdata.SourcePhone, "2026-03-01T08:00:00Z", "2026-03-01T09:00:00Z", 900)
	add("p1", healthdata.SourcePhone, "2026-03-01T09:00:00Z", "2026-03-01T10:00:00Z", 400)
	add("p1", healthdata.SourceWatch, "2026-03-01T08:30:00Z", "2026-03-01T09:30:00Z", 700)
	add("p2", healthdata.SourcePhone, "2026-03-01T23:30:00Z", "2026-03-02T00:10:00Z", 50)
	return p
}

const (
	sumSteps = `"select":[{"func":"sum","arg":{"timeseries":"steps","field":"value"}}]`
	byDay    = `"group_by":[{"date_trunc":{"unit":"day","value":1},"arg":{"index":"timeseries"}}]`
)

func configured(body, config string) string {
	return body[:len(body)-1] + `,"config":{` + config + `}}`
}

func TestWinnerPolicy_takesOneSourceForEachGroup(t *testing.T) {
	s := service(t, steps(t), nil)
	rows := []struct{ name, query, config, want string }{
		{"watch beats phone", `{` + sumSteps + `,` + byDay + `}`, ``, `{"index":["2026-03-01T00:00:00"],"sum":[700]}`},
		{"override beats type", `{` + sumSteps + `,` + byDay + `}`, `"provider_priority_overrides":["p2"]`, `{"index":["2026-03-01T00:00:00"],"sum":[50]}`},
		{"no groups, all sources", `{` + sumSteps + `}`, ``, `{"index":[0],"sum":[2050]}`},
		{
			"where comes first", `{` + sumSteps + `,` + byDay + `,"where":"source_type != 'watch'"}`, ``,
			`{"index":["2026-03-01T00:00:00"],"sum":[1300]}`,
		},
		{"gaps filled", `{` + sumSteps + `,` + byDay + `}`, `"overlap_policy":"fill"`, `{"index":["2026-03-01T00:00:00"],"sum":[750]}`},
		{
			"split by source",
			`{"select":[{"group_key":"*"},{"func":"sum","arg":{"timeseries":"steps","field":"value"}}],` +
				`"group_by":[{"date_trunc":{"unit":"day","value":1},"arg":{"placeholder":true}},{"source":"source_provider"},{"source":"source_type"}]}`, ``,
			`{"index":["2026-03-01T00:00:00","2026-03-01T00:00:00","2026-03-01T00:00:00"],` +
				`"group_key.0":["2026-03-01T00:00:00","2026-03-01T00:00:00","2026-03-01T00:00:00"],` +
				`"group_key.1":["p1","p1","p2"],"group_key.2":["phone","watch","phone"],"sum.steps.value":[1300,700,50]}`,
		},
		{
			"by provider only",
			`{"select":[{"group_key":0},{"func":"sum","arg":{"timeseries":"steps","field":"value"}}],"group_by":[{"source":"source_provider"}]}`, ``,
			`{"index":[0,1],"group_key.0":["p1","p2"],"sum":[700,50]}`,
		},
		{
			"hours may have different winners",
			`{` + sumSteps + `,"group_by":[{"date_trunc":{"unit":"hour","value":1},"arg":{"index":"timeseries"}}]}`, ``,
			`{"index":["2026-03-01T08:00:00","2026-03-01T09:00:00","2026-03-01T23:00:00"],"sum":[700,400,50]}`,
		},
		{
			"every function at once",
			`{"select":[{"func":"count","arg":{"timeseries":"steps","field":"value"}},{"func":"mean","arg":{"timeseries":"steps","field":"value"}},` +
				`{"func":"median","arg":{"timeseries":"steps","field":"value"}},{"func":"stddev","arg":{"timeseries":"steps","field":"value"}},` +
				`{"func":"min","arg":{"timeseries":"steps","field":"value"}},{"func":"max","arg":{"timeseries":"steps","field":"value"}},` +
				`{"func":"oldest","arg":{"timeseries":"steps","field":"value"}},{"func":"newest","arg":{"timeseries":"steps","field":"value"}}]}`, ``,
			`{"index":[0],"count":[4],"mean":[512.5],"median":[550],"stddev":[370.52890125692846],"min":[50],"max":[900],"oldest":[900],"newest":[50]}`,
		},
		{
			"duration and its filter",
			`{"select":[{"func":"sum","arg":{"timeseries":"steps","field":"duration"}}],"where":"steps.duration > 3000"}`, ``,
			`{"index":[0],"sum":[10800]}`,
		},
		{
			"value filter on the fast way",
			`{"select":[{"func":"count","arg":{"index":"timeseries"}},{"func":"sum","arg":{"timeseries":"steps","field":"value"}}],"where":"value >= 400 AND value < 900"}`, ``,
			`{"index":[0],"count":[2],"sum":[1100]}`,
		},
		{
			"plain rows",
			`{"select":[{"index":"timeseries"},{"source":"source_type"},{"timeseries":"steps","field":"value"}]}`, ``,
			`{"index":["2026-03-01T08:00:00","2026-03-01T08:30:00","2026-03-01T09:00:00","2026-03-01T23:30:00"],` +
				`"timestamp":["2026-03-01T08:00:00","2026-03-01T08:30:00","2026-03-01T09:00:00","2026-03-01T23:30:00"],` +
				`"source_type":["phone","watch","phone","phone"],"steps.value":[900,700,400,50]}`,
		},
		{
			"nothing", `{` + sumSteps + `,"where":"value > 1000"}`, ``, `{"index":[0],"sum":[null]}`,
		},
		{
			"nothing by day", `{` + sumSteps + `,` + byDay + `,"where":"value > 1000"}`, ``, `{"index":[],"sum":[]}`,
		},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			config := row.config
			if !strings.Contains(config, "overlap_policy") {
				config = strings.TrimPrefix(config+`,"overlap_policy":"winner"`, ",")
			}
			require.JSONEq(t, row.want, table(t, s, configured(over("3", "2026-03-02", row.query), config)))
		})
	}
}
