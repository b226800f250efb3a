package aggregate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
	"github.com/healthlab-dev/healthlab/internal/queryoracle"
)

// faults are the codes and places of what is wrong, as "code at path".
func faults(t *testing.T, err error) []string {
	t.Helper()
	var invalid *healthlab.InvalidError
	require.True(t, errors.As(err, &invalid), "%v", err)
	var out []string
	for _, p := range invalid.Problems {
		var place []string
		for _, x := range p.Path {
			place = append(place, fmt.Sprint(x))
		}
		out = append(out, p.Code+" at "+strings.Join(place, "."))
	}
	return out
}

const week = `"timeframe":{"type":"relative","anchor":"2026-03-01","past":{"unit":"week"}}`

func TestDecode_eachInvalidRequestNamesItsField(t *testing.T) {
	query := func(q string) string { return `{` + week + `,"queries":[` + q + `]}` }
	frame := func(f string) string {
		return `{"timeframe":` + f + `,"queries":[{"select":[{"func":"count","arg":{"index":"sleep"}}]}]}`
	}
	mean := `{"func":"mean","arg":{"sleep":"efficiency"}}`
	day := `{"date_trunc":{"unit":"day"},"arg":{"index":"sleep"}}`
	many := strings.TrimSuffix(strings.Repeat(mean+",", 51), ",")
	rows := []struct {
		name, body string
		want       []string
	}{
		{"not JSON", `{"timeframe"`, []string{"invalid_body at "}},
		{"something behind", `{} {}`, []string{"invalid_body at "}},
		{"too deep", strings.Repeat("[", 100) + strings.Repeat("]", 100), []string{"invalid_body at "}},
		{"not an object", `[]`, []string{"invalid_body at "}},
		{"nothing there", `{}`, []string{"invalid_body at timeframe", "invalid_body at queries"}},
		{"no queries", `{` + week + `,"queries":[]}`, []string{"invalid_body at queries"}},
		{"key twice", `{` + week + `,` + week + `,"queries":[{"select":[` + mean + `]}]}`, []string{"invalid_body at timeframe"}},
		{
			"unknown keys everywhere",
			`{"timeframe":{"type":"relative","anchor":"2026-03-01","past":{"unit":"week","x":1},"y":1},"queries":[{"select":[` + mean + `],"z":1}],"config":{"w":1},"v":1}`,
			[]string{"unknown_key at v", "unknown_key at timeframe.y", "unknown_key at timeframe.past.x", "unknown_key at queries.0.z", "unknown_key at config.w"},
		},
		{"placeholder", frame(`{"placeholder":true}`), []string{"timeframe_placeholder at timeframe"}},
		{"absolute", frame(`{"type":"absolute","start":"2026-01-01"}`), []string{"unknown_timeframe_type at timeframe.type"}},
		{"no type", frame(`{"anchor":"2026-01-01","past":{"unit":"day"}}`), []string{"invalid_body at timeframe.type"}},
		{"bad anchor", frame(`{"type":"relative","anchor":"2026-02-30","past":{"unit":"day"}}`), []string{"invalid_body at timeframe.anchor"}},
		{"bad unit", frame(`{"type":"relative","anchor":"2026-02-03","past":{"unit":"days"}}`), []string{"invalid_body at timeframe.past.unit"}},
		{"value 0", frame(`{"type":"relative","anchor":"2026-02-03","past":{"unit":"day","value":0}}`), []string{"invalid_body at timeframe.past.value"}},
		{"value 1.5", frame(`{"type":"relative","anchor":"2026-02-03","past":{"unit":"day","value":1.5}}`), []string{"invalid_body at timeframe.past.value"}},
		{"11 years", frame(`{"type":"relative","anchor":"2026-02-03","past":{"unit":"year","value":11}}`), []string{"timeframe_too_long at timeframe.past"}},
		{"3654 days", frame(`{"type":"relative","anchor":"2026-02-03","past":{"unit":"day","value":3654}}`), []string{"timeframe_too_long at timeframe.past"}},
		{"no expression", query(`{"select":[{"what":1,"ever":2}]}`), []string{"unknown_expression at queries.0.select.0"}},
		{"extra key", query(`{"select":[{"func":"mean","arg":{"sleep":"score"},"x":1}]}`), []string{"unknown_expression at queries.0.select.0"}},
		{"unknown function", query(`{"select":[{"func":"latest","arg":{"sleep":"score"}}]}`), []string{"unknown_func at queries.0.select.0.func"}},
		{"percentile 101", query(`{"select":[{"func":"percentile_101","arg":{"sleep":"score"}}]}`), []string{"unknown_func at queries.0.select.0.func"}},
		{"unknown table", query(`{"select":[{"func":"mean","arg":{"slep":"score"}}]}`), []string{"unknown_table at queries.0.select.0.arg"}},
		{"unknown column", query(`{"select":[{"func":"mean","arg":{"sleep":"scor"}}]}`), []string{"unknown_column at queries.0.select.0.arg.sleep"}},
		{"unknown timeseries", query(`{"select":[{"func":"mean","arg":{"timeseries":"heartrat","field":"value"}}]}`), []string{"unknown_table at queries.0.select.0.arg.timeseries"}},
		{"unknown timeseries beside a macro", query(`{"select":[{"timeseries":"nosuch","field":"value"},{"value_macro":"chronotype"}]}`), []string{"unknown_table at queries.0.select.0.timeseries"}},
		{"unknown field", query(`{"select":[{"func":"mean","arg":{"timeseries":"heartrate","field":"duration"}}]}`), []string{"unknown_column at queries.0.select.0.arg.field"}},
		{"hypnogram is no table", query(`{"select":[{"func":"mean","arg":{"timeseries":"hypnogram","field":"value"}}]}`), []string{"unknown_table at queries.0.select.0.arg.timeseries"}},
		{"no table", query(`{"select":[{"source":"source_type"}]}`), []string{"no_table at queries.0"}},
		{"two tables", query(`{"select":[` + mean + `,{"func":"mean","arg":{"body":"weight_kilogram"}}]}`), []string{"cross_table at queries.0.select.1.arg"}},
		{"macro of another table", query(`{"select":[{"func":"mean","arg":{"activity":"steps"}},{"func":"count","arg":{"value_macro":"chronotype"}}]}`), []string{"cross_table at queries.0.select.1.arg"}},
		{"only the index of samples", query(`{"select":[{"func":"count","arg":{"index":"timeseries"}}]}`), []string{"timeseries_resource_missing at queries.0"}},
		{"plain column in groups", query(`{"select":[{"sleep":"score"}],"group_by":[` + day + `]}`), []string{"ungrouped_column at queries.0.select.0"}},
		{"mixed", query(`{"select":[` + mean + `,{"sleep":"score"}]}`), []string{"mixed_select at queries.0.select"}},
		{"group key without groups", query(`{"select":[{"group_key":0},` + mean + `]}`), []string{"group_key_without_group_by at queries.0.select.0"}},
		{"group key out of range", query(`{"select":[{"group_key":1},` + mean + `],"group_by":[` + day + `]}`), []string{"group_key_out_of_range at queries.0.select.0.group_key"}},
		{"group key -1", query(`{"select":[{"group_key":-1},` + mean + `],"group_by":[` + day + `]}`), []string{"invalid_body at queries.0.select.0.group_key"}},
		{"two truncations", query(`{"select":[` + mean + `],"group_by":[` + day + `,` + day + `]}`), []string{"multiple_date_trunc at queries.0.group_by.1"}},
		{"truncation selected", query(`{"select":[` + mean + `,` + day + `],"group_by":[` + day + `]}`), []string{"expression_not_allowed at queries.0.select.1"}},
		{"grouped by an aggregate", query(`{"select":[` + mean + `],"group_by":[` + mean + `]}`), []string{"expression_not_allowed at queries.0.group_by.0"}},
		{"aggregate of an aggregate", query(`{"select":[{"func":"mean","arg":` + mean + `}]}`), []string{"expression_not_allowed at queries.0.select.0.arg"}},
		{"aggregate of a source", query(`{"select":[` + mean + `,{"func":"count","arg":{"source":"source_type"}}]}`), []string{"expression_not_allowed at queries.0.select.1.arg"}},
		{"unknown macro", query(`{"select":[{"func":"mean","arg":{"value_macro":"sleep_scor"}}]}`), []string{"unknown_value_macro at queries.0.select.0.arg.value_macro"}},
		{"macro version", query(`{"select":[{"func":"mean","arg":{"value_macro":"sleep_score","version":"2"}}]}`), []string{"unknown_value_macro at queries.0.select.0.arg.version"}},
		{"source of readiness", query(`{"select":[{"derived_readiness":"date"},{"source":"source_type"}]}`), []string{"unknown_column at queries.0.select.1.source"}},
		{"sport of a sleep", query(`{"select":[{"sleep":"score"},{"source":"source_sport"}]}`), []string{"unknown_column at queries.0.select.1.source"}},
		{"mean of a text", query(`{"select":[{"func":"mean","arg":{"sleep":"type"}}]}`), []string{"func_type_mismatch at queries.0.select.0"}},
		{"sum of times", query(`{"select":[{"func":"sum","arg":{"sleep":"session_end"}}]}`), []string{"func_type_mismatch at queries.0.select.0"}},
		{"max of booleans", query(`{"select":[{"func":"max","arg":{"activity":"wheelchair_use"}}]}`), []string{"func_type_mismatch at queries.0.select.0"}},
		{"a list", query(`{"select":[{"menstrual_cycle":"menstrual_flow"}]}`), []string{"list_column at queries.0.select.0"}},
		{"time in range of a summary", query(`{"select":[{"func":"time_in_range","arg":{"sleep":"efficiency"},"low":80}]}`), []string{"func_type_mismatch at queries.0.select.0"}},
		{"time in range without bounds", query(`{"select":[{"func":"time_in_range","arg":{"timeseries":"glucose","field":"value"}}]}`), []string{"unknown_expression at queries.0.select.0"}},
		{"a band of a summary", query(`{"select":[{"func":"time_in_range","arg":{"sleep":"efficiency"},"band":"low"}]}`), []string{"func_type_mismatch at queries.0.select.0"}},
		{"a band and bounds", query(`{"select":[{"func":"time_in_range","arg":{"timeseries":"glucose","field":"value"},"band":"low","low":3}]}`), []string{"unknown_expression at queries.0.select.0"}},
		{"a band of another function", query(`{"select":[{"func":"mean","arg":{"timeseries":"glucose","field":"value"},"band":"low"}]}`), []string{"unknown_expression at queries.0.select.0"}},
		{"an unknown band", query(`{"select":[{"func":"time_in_range","arg":{"timeseries":"glucose","field":"value"},"band":"lower"}]}`), []string{"unknown_band at queries.0.select.0.band"}},
		{"an empty band", query(`{"select":[{"func":"time_in_range","arg":{"timeseries":"glucose","field":"value"},"band":"","low":3}]}`), []string{"unknown_band at queries.0.select.0.band"}},
		{"episodes without a band", query(`{"select":[{"func":"episodes","arg":{"timeseries":"glucose","field":"value"}}]}`), []string{"unknown_expression at queries.0.select.0"}},
		{"episodes in range", query(`{"select":[{"func":"episodes","arg":{"timeseries":"glucose","field":"value"},"band":"in_range"}]}`), []string{"unknown_band at queries.0.select.0.band"}},
		{"bounds of a measure of glucose", query(`{"select":[{"func":"gmi","arg":{"timeseries":"glucose","field":"value"},"low":3}]}`), []string{"unknown_expression at queries.0.select.0"}},
		{"gmi of a heart rate", query(`{"select":[{"func":"gmi","arg":{"timeseries":"heartrate","field":"value"}}]}`), []string{"func_type_mismatch at queries.0.select.0"}},
		{"mage of a summary", query(`{"select":[{"func":"mage","arg":{"sleep":"efficiency"}}]}`), []string{"func_type_mismatch at queries.0.select.0"}},
		{"cv of a text", query(`{"select":[{"func":"cv","arg":{"sleep":"type"}}]}`), []string{"func_type_mismatch at queries.0.select.0"}},
		{"same twice", query(`{"select":[` + mean + `,` + mean + `]}`), []string{"duplicate_output_column at queries.0.select"}},
		{"51 items", query(`{"select":[` + many + `]}`), []string{"too_many_items at queries.0.select"}},
		{"empty where", query(`{"select":[` + mean + `],"where":""}`), []string{"where_syntax at queries.0.where"}},
		{"where syntax", query(`{"select":[` + mean + `],"where":"1 < efficiency < 2"}`), []string{"where_syntax at queries.0.where"}},
		{"where type", query(`{"select":[` + mean + `],"where":"efficiency > '90'"}`), []string{"where_type_mismatch at queries.0.where"}},
		{"where columns of two types", query(`{"select":[` + mean + `],"where":"efficiency > type"}`), []string{"where_type_mismatch at queries.0.where"}},
		{"where column", query(`{"select":[` + mean + `],"where":"stage = 1"}`), []string{"unknown_column at queries.0.where"}},
		{"where literal", query(`{"select":[` + mean + `],"where":"session_end >= '2026-13-01'"}`), []string{"where_bad_literal at queries.0.where"}},
		{"where offset on a wall clock", query(`{"select":[` + mean + `],"where":"session_end >= '2026-03-01T00:00:00Z'"}`), []string{"where_bad_literal at queries.0.where"}},
		{"where time on a date", query(`{"select":[{"func":"count","arg":{"index":"activity"}}],"where":"date >= '2026-03-01T00:00'"}`), []string{"where_bad_literal at queries.0.where"}},
		{"where order of booleans", query(`{"select":[{"func":"count","arg":{"index":"activity"}}],"where":"wheelchair_use > true"}`), []string{"where_type_mismatch at queries.0.where"}},
		{"where number alone", query(`{"select":[` + mean + `],"where":"efficiency"}`), []string{"where_type_mismatch at queries.0.where"}},
		{"where of another table", query(`{"select":[` + mean + `],"where":"body.weight_kilogram > 1"}`), []string{"unknown_column at queries.0.where"}},
		{"where list", query(`{"select":[{"menstrual_cycle":"period_start"}],"where":"menstrual_flow IS NULL"}`), []string{"where_type_mismatch at queries.0.where"}},
		{
			"where bare field of two resources",
			query(`{"select":[{"func":"mean","arg":{"timeseries":"glucose","field":"value"}},{"func":"min","arg":{"timeseries":"heartrate","field":"value"}}],"where":"value > 3"}`),
			[]string{"unknown_column at queries.0.where"},
		},
		{"align without a truncation", query(`{"select":[` + mean + `],"align":{"carry":{"mode":"carry_forward"}}}`), []string{"align_invalid at queries.0.align"}},
		{"align without its keys", query(`{"select":[` + mean + `],"group_by":[` + day + `],"align":{"carry":{"mode":"carry_forward"}}}`), []string{"align_invalid at queries.0.align"}},
		{
			"align shorter than a bucket",
			query(`{"select":[{"group_key":"*"},` + mean + `],"group_by":[` + day + `],"align":{"carry":{"mode":"carry_forward","max_age":{"unit":"hour","value":23}}}}`),
			[]string{"align_invalid at queries.0.align.carry"},
		},
		{"align key of another mode", query(`{"select":[` + mean + `],"align":{"carry":{"mode":"carry_nearest","max_age":{"unit":"day"}}}}`), []string{"unknown_key at queries.0.align.carry.max_age", "align_invalid at queries.0.align"}},
		{"subquery of no list", query(`{"select":[{"select":{"func":"count","arg":null},"from":{"unnest":{"sleep":"score"}}}]}`), []string{"not_a_list at queries.0.select.0.from.unnest"}},
		{
			"subquery with another list",
			query(`{"select":[{"select":{"func":"count","arg":{"ovulation_test":"date"}},"from":{"unnest":{"menstrual_cycle":"menstrual_flow"}}}]}`),
			[]string{"not_a_list at queries.0.select.0.select.arg"},
		},
		{
			"newest of a list",
			query(`{"select":[{"select":{"func":"newest","arg":{"menstrual_flow":"date"}},"from":{"unnest":{"menstrual_cycle":"menstrual_flow"}}}]}`),
			[]string{"func_type_mismatch at queries.0.select.0.select"},
		},
		{
			"everything at once",
			`{"timeframe":{"type":"relative","anchor":"x","past":{"unit":"day"}},"queries":[{"select":[{"func":"men","arg":{"sleep":"score"}}]},{"select":[{"func":"mean","arg":{"sleep":"scor"}}],"where":"a ="}]}`,
			[]string{
				"invalid_body at timeframe.anchor", "unknown_func at queries.0.select.0.func",
				"where_syntax at queries.1.where", "unknown_column at queries.1.select.0.arg.sleep",
			},
		},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			_, err := aggregate.Decode([]byte(r.body))
			require.ElementsMatch(t, r.want, faults(t, err))
		})
	}
}

func TestDecode_unknownKeysAreRefusedUnlessAllowed(t *testing.T) {
	s := service(t, queryoracle.NewPerson(), nil)
	body := []byte(`{` + week + `,"colour":1,"queries":[{"select":[{"func":"count","arg":{"index":"sleep"}}],"x":2}]}`)
	_, err := s.Decode(body, false)
	require.Error(t, err)
	_, err = s.Decode(body, true)
	require.NoError(t, err)
}

func TestDecode_priorityOverridesMustBeKnownProviders(t *testing.T) {
	s := service(t, queryoracle.NewPerson(), &aggregate.Options{Known: func(slug string) bool { return slug == "acme_band" }})
	body := `{` + week + `,"queries":[{"select":[{"func":"count","arg":{"index":"sleep"}}]}],"config":{"provider_priority_overrides":["acme_band","nobody"]}}`
	_, err := s.Decode([]byte(body), false)
	require.Equal(t, []string{"unknown_provider at config.provider_priority_overrides.1"}, faults(t, err))
}

func TestDecode_errorNamesTheNearestNameAndNoValue(t *testing.T) {
	_, err := aggregate.Decode([]byte(`{` + week + `,"queries":[{"select":[{"func":"mean","arg":{"sleep":"eficiency"}}],"where":"latency_secnd > 99"}]}`))
	var invalid *healthlab.InvalidError
	require.True(t, errors.As(err, &invalid))
	require.Contains(t, invalid.Problems[0].Msg, "did you mean efficiency?")
	require.Equal(t, map[string]any{"offset": 0, "did_you_mean": "latency_second"}, invalid.Problems[1].Context)
	require.NotContains(t, err.Error(), "eficiency")
	require.NotContains(t, err.Error(), "99")
}

func TestQuery_columnsAreNamedByFunctionOrAlias(t *testing.T) {
	p := queryoracle.NewPerson()
	mean := func(col string) string { return `{"func":"mean","arg":{"sleep":"` + col + `"}}` }
	day := `"group_by":[{"date_trunc":{"unit":"day"},"arg":{"index":"sleep"}},{"source":"source_type"}]`
	split := `"group_by":[{"source":"source_type"},{"sleep":"source_provider"}]`
	rows := []struct{ name, query, config, want string }{
		{
			"one column", `"select":[{"func":"min","arg":{"sleep":"score"}},{"func":"max","arg":{"sleep":"score"}},` + mean("score") + `,{"func":"newest","arg":{"sleep":"score"}}]`, ``,
			"index min max mean newest",
		},
		{
			"shared function", `"select":[` + mean("efficiency") + `,{"func":"mean","arg":{"value_macro":"sleep_score"}},{"func":"newest","arg":{"value_macro":"chronotype"}}]`, ``,
			"index mean.efficiency mean.sleep_score newest",
		},
		{"keys", `"select":[{"group_key":"*"},{"func":"sum","arg":{"sleep":"duration_second"}}],` + day, ``, "index group_key.0 group_key.1 sum"},
		{"split by source", `"select":[{"group_key":1},` + mean("score") + `],` + split, ``, "index group_key.1 mean.score"},
		{"qualified", `"select":[` + mean("score") + `,{"func":"count","arg":{"index":"sleep"}}]`, `"column_naming":"qualified"`, "index mean.score count.timestamp"},
		{"plain", `"select":[{"index":"sleep"},{"sleep":"score"},{"source":"source_type"},{"value_macro":"asleep_at"}]`, ``, "index timestamp score source_type asleep_at"},
		{
			"two spellings of a column", `"select":[{"func":"count","arg":{"timeseries":"glucose","field":"source_type"}},{"func":"max","arg":{"timeseries":"glucose","field":"source_type"}}],` +
				`"group_by":[{"source":"source_type"},{"source":"source_provider"}]`, ``,
			"index count.glucose.source_type max.glucose.source_type",
		},
		{
			"ranges", `"select":[{"func":"time_in_range","arg":{"timeseries":"glucose","field":"value"},"low":3.9,"high":10},` +
				`{"func":"time_in_range","arg":{"timeseries":"glucose","field":"value"},"high":3.9},{"func":"percentile_95","arg":{"timeseries":"glucose","field":"value"}}]`, ``,
			"index time_in_range_from_3.9_to_10 time_in_range_to_3.9 percentile_95",
		},
		{
			"measures of glucose", `"select":[{"func":"gmi","arg":{"timeseries":"glucose","field":"value"}},{"func":"time_in_range","arg":{"timeseries":"glucose","field":"value"},"band":"low"},` +
				`{"func":"time_in_range","arg":{"timeseries":"glucose","field":"value"},"band":"high"},{"func":"episodes","arg":{"timeseries":"glucose","field":"value"},"band":"very_low"},{"func":"cv","arg":{"timeseries":"weight","field":"value"}}]`, ``,
			"index gmi time_in_range_low time_in_range_high episodes_very_low cv",
		},
		{
			"subqueries", `"select":[{"select":{"func":"count","arg":null},"from":{"unnest":{"menstrual_cycle":"menstrual_flow"}}},` +
				`{"select":{"func":"mean","arg":{"field_for":"menstrual_cycle","basal_body_temperature":"value"}},"from":{"unnest":{"menstrual_cycle":"basal_body_temperature"}}}]`, ``,
			"index count.menstrual_flow mean.basal_body_temperature.value",
		},
		{
			"wrapped subquery", `"select":[{"func":"mean","arg":{"select":{"func":"count","arg":{"element":true}},"from":{"unnest":{"timeseries":"note","field":"tags"}}}},` +
				`{"func":"mean","arg":{"select":{"func":"count","arg":null},"from":{"unnest":{"timeseries":"note","field":"tags"}}}}]`, ``,
			"index mean.count.note.tags.element mean.count.note.tags",
		},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			body := `{` + week + `,"queries":[{` + r.query + `}],"config":{` + r.config + `}}`
			s := service(t, p, nil)
			req, err := s.Decode([]byte(body), false)
			require.NoError(t, err)
			out, err := s.Query(t.Context(), team, user, &req)
			require.NoError(t, err)
			var names []string
			for _, c := range out.Frames[0].Columns {
				names = append(names, c.Name)
			}
			require.Equal(t, r.want, strings.Join(names, " "))
		})
	}
}

// Every column can be selected, and asked for with every function that takes its type,
// and grouped and filtered by, unless it is a list. Printed and read again, the
// request is the same.
func TestQuery_everyColumnCanBeSelectedGroupedAndFiltered(t *testing.T) {
	s := service(t, queryoracle.NewPerson(), nil)
	columns, resources := 0, 0
	try := func(e aggregate.Expr, name string, typ tables.ColumnType) {
		frame := aggregate.Last(1, date("2026-03-01"))
		var queries []aggregate.Query
		if typ != tables.TypeList {
			queries = append(queries,
				aggregate.Query{Select: []aggregate.Expr{e}, Where: name + " IS NOT NULL"},
				aggregate.Query{Select: []aggregate.Expr{aggregate.Keys(), aggregate.Count.Of(e)}, GroupBy: []aggregate.Expr{e}})
		}
		queries = append(queries, aggregate.Query{Select: []aggregate.Expr{aggregate.Count.Of(e)}})
		if slices.Contains([]tables.ColumnType{tables.TypeInt64, tables.TypeFloat64}, typ) {
			var fns []aggregate.Expr
			for _, f := range []aggregate.Func{aggregate.Sum, aggregate.Mean, aggregate.Median, aggregate.StdDev, aggregate.Min, aggregate.Max, aggregate.Oldest, aggregate.Newest, aggregate.Percentile(5)} {
				fns = append(fns, f.Of(e))
			}
			queries = append(queries, aggregate.Query{Select: fns})
		}
		req := aggregate.Ask(frame, queries...)
		_, err := s.Query(t.Context(), team, user, req)
		require.NoError(t, err, name)
		text, err := json.Marshal(req)
		require.NoError(t, err)
		again, err := aggregate.Decode(text)
		require.NoError(t, err, string(text))
		require.Equal(t, *req, again)
	}
	for _, table := range tables.All() {
		for _, c := range table.Columns {
			columns++
			try(aggregate.Col(table.Name, c.Name), table.Name+"."+c.Name, c.Type)
		}
	}
	for _, c := range []struct {
		name string
		typ  tables.ColumnType
	}{
		{"date", "date"}, {"chronotype", "string"}, {"sleep_score", "int64"}, {"recovery_score", "int64"}, {"recovery_zone", "string"},
		{"stress_score", "int64"}, {"strain_score", "int64"}, {"strain_zone", "string"},
	} {
		columns++
		try(aggregate.Col("derived_readiness", c.name), c.name, c.typ)
	}
	for _, r := range tables.SampleTimeseries() {
		resources++
		for _, c := range tables.SampleColumns(r) {
			try(aggregate.Field{Resource: r.Slug, Field: c.Name}, r.Slug+"."+c.Name, c.Type)
		}
	}
	require.Equal(t, 190, columns)
	require.Equal(t, 51, resources)
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{` + week + `,"queries":[{"select":[{"group_key":"*"},{"func":"mean","arg":{"sleep":"efficiency"}}],"group_by":[{"date_trunc":{"unit":"day"},"arg":{"placeholder":true}},{"date_part":"hour","arg":{"index":"sleep"}}],"where":"score > 3","align":{"carry":{"mode":"carry_nearest","span":{"unit":"day","value":2}}}}],"config":{"provider_priority_overrides":["a"],"column_naming":"qualified","overlap_policy":"fill"}}`))
	f.Add([]byte(`{` + week + `,"queries":[{"select":[{"select":{"func":"count","arg":{"field_for":"menstrual_cycle","menstrual_flow":"flow"}},"from":{"unnest":{"menstrual_cycle":"menstrual_flow"}},"where":"flow != 'none'"}]}]}`))
	f.Add([]byte(`{` + week + `,"queries":[{"select":[{"func":"time_in_range","arg":{"timeseries":"glucose","field":"value"},"low":3.9,"high":10},{"value_macro":"sleep_score","version":"automatic"},{"source":"source_type"},{"index":"timeseries"}]}]}`))
	f.Add([]byte(over("90", "2026-03-31", `{`+monthlySteps+`,"join":[{"as":"a","select":[{"lab_result":"value"}],"where":"loinc = '2089-1'","asof":{"max_age":{"unit":"month","value":6}}},{"as":"b","select":[{"func":"mean","arg":{"sleep":"score"}}]}]}`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		req, err := aggregate.Decode(data)
		if err != nil {
			require.ErrorIs(t, err, healthlab.Invalid)
			return
		}
		text, err := json.Marshal(req)
		require.NoError(t, err)
		again, err := aggregate.Decode(text)
		require.NoError(t, err, string(text))
		require.Equal(t, req, again)
	})
}
