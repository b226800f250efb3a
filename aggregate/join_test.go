package aggregate_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/queryoracle"
)

// walker is a person with daily steps in three months: 4,000, then 8,000, then 9,000.
func walker(t *testing.T) *queryoracle.Person {
	p := queryoracle.NewPerson()
	for month, steps := range map[time.Month]int64{time.January: 4000, time.February: 8000, time.March: 9000} {
		for day := 1; day <= 28; day++ {
			d := healthlab.Date{Year: 2026, Month: month, Day: day}
			p.Put(t, "activity", "acme_band", healthdata.SourceWatch, d.At(time.UTC), 0, &healthdata.Activity{CalendarDate: d, Steps: ptr(steps)})
		}
	}
	return p
}

// joined answers one query over the first quarter of 2026.
func joined(t *testing.T, p *queryoracle.Person, results []aggregate.LabResult, q aggregate.Query) *aggregate.Result {
	t.Helper()
	s := labsOf(t, p, results...)
	out, err := s.Explain(t.Context(), team, user, aggregate.Ask(aggregate.Timeframe{Anchor: date("2026-03-31"), Past: aggregate.Months(3)}, q))
	require.NoError(t, err)
	return out
}

const monthlySteps = `"select":[{"func":"sum","arg":{"activity":"steps"}}],"group_by":[{"date_trunc":{"unit":"month"},"arg":{"placeholder":true}}]`

// LDL before and after the month in which steps doubled.
func TestJoin_asOfGivesTheLastLabResultOfEachMonth(t *testing.T) {
	s := labsOf(t, walker(t),
		lipid("2025-12-10", "ldl", "2089-1", ptr(4.1)), lipid("2026-02-27", "ldl", "2089-1", ptr(3.0)), lipid("2026-02-03", "ldl", "2089-1", ptr(3.6)),
		lipid("2026-03-01", "hdl", "2085-9", ptr(1.5)), lipid("2026-04-01", "ldl", "2089-1", ptr(1.0)))
	require.JSONEq(t, `{"index":["2026-01-01T00:00:00","2026-02-01T00:00:00","2026-03-01T00:00:00"],"sum":[112000,224000,252000],
		"ldl.value":[4.1,3,3],"ldl.date":["2025-12-10","2026-02-27","2026-02-27"],"ldl.unit":["mmol/L","mmol/L","mmol/L"],
		"all.count":[null,2,1],"low.mean":[null,3.3,null]}`,
		table(t, s, over("90", "2026-03-31", `{`+monthlySteps+`,"join":[
			{"as":"ldl","select":[{"lab_result":"value"},{"lab_result":"date"},{"lab_result":"unit"}],"where":"loinc = '2089-1'","asof":{"max_age":{"unit":"month","value":6}}},
			{"as":"all","select":[{"func":"count","arg":{"lab_result":"id"}}]},
			{"as":"low","select":[{"func":"mean","arg":{"lab_result":"value"}}],"where":"analyte = 'ldl'"}]}`)))
	require.JSONEq(t, `{"index":["2026-01-01T00:00:00","2026-02-01T00:00:00","2026-03-01T00:00:00"],"sum":[112000,224000,252000],"ldl.value":[null,3,null]}`,
		table(t, s, over("90", "2026-03-31", `{`+monthlySteps+`,"join":[
			{"as":"ldl","select":[{"lab_result":"value"}],"where":"loinc = '2089-1'","asof":{"max_age":{"unit":"day","value":30}}}]}`)), "too old")
}

// A join follows the buckets of the query: its other keys, and those that align adds.
func TestJoin_followsTheBucketsOfTheQuery(t *testing.T) {
	p := queryoracle.NewPerson()
	for _, day := range []string{"2026-03-02", "2026-03-05"} {
		p.Put(t, "activity", "acme_band", healthdata.SourceWatch, date(day).At(time.UTC), 0, &healthdata.Activity{CalendarDate: date(day), Steps: ptr(int64(100))})
	}
	results := []aggregate.LabResult{lipid("2026-03-02", "ldl", "2089-1", ptr(2.0)), lipid("2026-03-04", "ldl", "2089-1", ptr(4.0))}
	q := aggregate.Query{
		Select:  []aggregate.Expr{aggregate.Keys(), aggregate.Sum.Of(aggregate.Col("activity", "steps"))},
		GroupBy: []aggregate.Expr{aggregate.Col("activity", "source_type"), aggregate.By(aggregate.Days(1))},
		Align:   &aggregate.Align{Mode: aggregate.CarryForward},
		Joins: []aggregate.Join{
			aggregate.JoinEach("day", aggregate.Max.Of(aggregate.Col("lab_result", "value"))),
			aggregate.JoinLast("last", aggregate.Days(2), aggregate.Col("lab_result", "value")).Of("value < 3"),
		},
	}
	out := joined(t, p, results, q)
	var got [][]any
	for _, row := range out.Frames[0].Rows() {
		got = append(got, []any{row[0].(healthlab.Date).Day, row[3], row[4], row[5]})
	}
	require.Equal(t, [][]any{{2, int64(100), 2.0, 2.0}, {3, int64(100), nil, 2.0}, {4, int64(100), 4.0, nil}, {5, int64(100), nil, nil}}, got)

	// Explained.
	why := out.Explain[0].Joins
	require.Len(t, why, 2)
	require.Equal(t, "day", why[0].As)
	require.Equal(t, "lab_result", why[0].Table)
	require.Equal(t, 2, why[0].Rows)
	require.Equal(t, aggregate.Days(2), *why[1].MaxAge)
	require.Equal(t, "2026-01-01T00:00:00", why[1].From)
	require.Contains(t, out.Explain[0].String(), "join last: table lab_result")
	text, err := json.Marshal(why[1])
	require.NoError(t, err)
	require.Contains(t, string(text), `"as":"last","max_age":{"unit":"day","value":2}`)
}

// Of one day the result that was collected last counts, of one source.
func TestJoin_usesTheLastCollectedResultOfADay(t *testing.T) {
	p := queryoracle.NewPerson()
	p.Put(t, "activity", "acme_band", healthdata.SourceWatch, date("2026-03-02").At(time.UTC), 0, &healthdata.Activity{CalendarDate: date("2026-03-02"), Steps: ptr(int64(100))})
	for _, late := range []int{0, 1, 2} {
		var results []aggregate.LabResult
		for i := range 3 {
			r := lipid("2026-03-02", "ldl", "2089-1", ptr(float64(i)))
			r.CollectedAt = new(healthlab.At(date("2026-03-02").At(time.UTC).Add(time.Duration((i-late+3)%3) * -time.Hour)))
			results = append(results, r)
		}
		for _, j := range []aggregate.Join{
			aggregate.JoinLast("ldl", aggregate.Days(1), aggregate.Col("lab_result", "value")), aggregate.JoinEach("ldl", aggregate.Newest.Of(aggregate.Col("lab_result", "value"))),
		} {
			out := joined(t, p, results, aggregate.Query{
				Select: []aggregate.Expr{aggregate.Sum.Of(aggregate.Col("activity", "steps"))}, GroupBy: []aggregate.Expr{aggregate.By(aggregate.Days(1))}, Joins: []aggregate.Join{j},
			})
			require.Equal(t, float64(late), out.Frames[0].Columns[2].Value(0))
		}
	}
}

// One column has one analyte in one unit, in joins too.
func TestJoin_columnOfMixedAnalytesOrUnitsIsRefused(t *testing.T) {
	s := labsOf(t, walker(t), lipid("2026-03-01", "ldl", "2089-1", ptr(3.5)), lipid("2026-03-02", "hdl", "2085-9", ptr(1.5)))
	for _, j := range []string{
		`"select":[{"func":"mean","arg":{"lab_result":"value"}}]`, `"select":[{"lab_result":"value"},{"lab_result":"analyte"}],"asof":{"max_age":{"unit":"year"}}`,
	} {
		req, err := s.Decode([]byte(over("90", "2026-03-31", `{`+monthlySteps+`,"join":[{"as":"a","select":[{"func":"count","arg":{"sleep":"score"}}]},{"as":"b",`+j+`}]}`)), false)
		require.NoError(t, err)
		require.True(t, req.ReadsLabResults())
		_, err = s.Query(t.Context(), team, user, &req)
		require.Equal(t, []string{"mixed_analytes at queries.0.join.1"}, faults(t, err))
	}
}

func TestJoin_eachInvalidJoinNamesItsField(t *testing.T) {
	query := func(select_, joins string) string {
		return `{` + week + `,"queries":[{` + select_ + `,"join":` + joins + `}]}`
	}
	last := `"asof":{"max_age":{"unit":"day","value":30}}`
	for _, r := range []struct {
		name, body string
		want       []string
	}{
		{"no list", query(monthlySteps, `{}`), []string{"invalid_body at queries.0.join"}},
		{"empty", query(monthlySteps, `[{}]`), []string{"join_invalid at queries.0.join.0.as", "invalid_body at queries.0.join.0.select", "no_table at queries.0.join.0"}},
		{"unknown keys", query(monthlySteps, `[{"as":"a","select":[{"body":"fat"}],"on":1,"asof":{"max_age":{"unit":"day"},"min_age":1}}]`), []string{"unknown_key at queries.0.join.0.on", "unknown_key at queries.0.join.0.asof.min_age"}},
		{"no age", query(monthlySteps, `[{"as":"a","select":[{"body":"fat"}],"asof":{}}]`), []string{"invalid_body at queries.0.join.0.asof.max_age"}},
		{"an age beyond all", query(monthlySteps, `[{"as":"a","select":[{"body":"fat"}],"asof":{"max_age":{"unit":"year","value":11}}}]`), []string{"timeframe_too_long at queries.0.join.0.asof.max_age"}},
		{"no group", query(`"select":[{"activity":"steps"}]`, `[{"as":"a","select":[{"body":"fat"}],`+last+`}]`), []string{"join_invalid at queries.0.join"}},
		{"hours", query(`"select":[{"func":"count","arg":{"activity":"steps"}}],"group_by":[{"date_trunc":{"unit":"hour","value":24},"arg":{"placeholder":true}}]`, `[{"as":"a","select":[{"body":"fat"}],`+last+`}]`), []string{"join_invalid at queries.0.join"}},
		{"names", query(monthlySteps, `[{"as":"A","select":[{"body":"fat"}],`+last+`},{"as":"b.c","select":[{"body":"fat"}],`+last+`},{"as":"b","select":[{"body":"fat"}],`+last+`},{"as":"b","select":[{"body":"weight"}],`+last+`}]`), []string{"join_invalid at queries.0.join.0.as", "join_invalid at queries.0.join.1.as", "join_invalid at queries.0.join.3.as"}},
		{"a plain column", query(monthlySteps, `[{"as":"a","select":[{"body":"fat"}]}]`), []string{"expression_not_allowed at queries.0.join.0.select.0"}},
		{"a group key", query(monthlySteps, `[{"as":"a","select":[{"group_key":0}]}]`), []string{"expression_not_allowed at queries.0.join.0.select.0"}},
		{"a function of one row", query(monthlySteps, `[{"as":"a","select":[{"func":"mean","arg":{"body":"fat"}}],`+last+`}]`), []string{"expression_not_allowed at queries.0.join.0.select.0"}},
		{"two tables", query(monthlySteps, `[{"as":"a","select":[{"body":"fat"},{"sleep":"score"}],`+last+`}]`), []string{"cross_table at queries.0.join.0.select.1"}},
		{"unknown column and where", query(monthlySteps, `[{"as":"a","select":[{"func":"mean","arg":{"body":"fatt"}}],"where":"1"}]`), []string{"unknown_column at queries.0.join.0.select.0.arg.body", "where_syntax at queries.0.join.0.where"}},
		{"everywhere", query(`"select":[{"func":"mean","arg":{"sleep":"scor"}}],"group_by":[{"date_trunc":{"unit":"day"},"arg":{"placeholder":true}}]`, `[{"as":"a","select":[{"body":"fatt"}],`+last+`}]`), []string{"unknown_column at queries.0.select.0.arg.sleep", "unknown_column at queries.0.join.0.select.0.body"}},
		{"same twice", query(monthlySteps, `[{"as":"a","select":[{"body":"fat"},{"body":"fat_mass_percentage"}],`+last+`}]`), []string{"duplicate_output_column at queries.0.join.0.select"}},
		{"the name of another column", query(`"select":[{"func":"mean","arg":{"sleep":"score"}},{"func":"mean","arg":{"sleep":"efficiency"}}],"group_by":[{"date_trunc":{"unit":"day"},"arg":{"placeholder":true}}]`, `[{"as":"mean","select":[{"sleep":"score"}],`+last+`}]`), []string{"duplicate_output_column at queries.0.join"}},
		{"nine", query(monthlySteps, `[{},{},{},{},{},{},{},{},{}]`), nil},
	} {
		t.Run(r.name, func(t *testing.T) {
			_, err := aggregate.Decode([]byte(r.body))
			if r.want == nil {
				require.Contains(t, faults(t, err), "too_many_items at queries.0.join")
				return
			}
			require.ElementsMatch(t, r.want, faults(t, err))
		})
	}
	s := service(t, walker(t), nil)
	_, err := s.DecodeQuery([]byte(`{"select":[{"group_key":0},{"func":"sum","arg":{"activity":"steps"}}],"group_by":[{"date_trunc":{"unit":"month"},"arg":{"placeholder":true}}],"join":[{"as":"a","select":[{"body":"fat"}],`+last+`}]}`), false)
	require.Equal(t, []string{"continuous_query_invalid at join"}, faults(t, err))
	_, err = s.Query(t.Context(), team, user, aggregate.Ask(aggregate.Last(7, date("2026-03-01")), aggregate.Query{
		Select: []aggregate.Expr{aggregate.Sum.Of(aggregate.Col("activity", "steps"))}, GroupBy: []aggregate.Expr{aggregate.By(aggregate.Days(1))},
		Joins: []aggregate.Join{{As: "a", Select: []aggregate.Expr{aggregate.Col("body", "fat")}, AsOf: &aggregate.AsOf{}}},
	}))
	require.Equal(t, []string{"invalid_body at queries.0.join.0.asof.max_age"}, faults(t, err))
}

// Random results beside random days: the last one that a loop over all of them finds.
func TestJoin_asOfEqualsASearchOverAllResults(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	start := date("2026-01-01")
	for range 200 {
		p := queryoracle.NewPerson()
		for d := range 90 {
			if r.IntN(3) == 0 {
				at := start.AddDays(d)
				p.Put(t, "activity", "acme_band", healthdata.SourceWatch, at.At(time.UTC), 0, &healthdata.Activity{CalendarDate: at, Steps: ptr(int64(1))})
			}
		}
		var results []aggregate.LabResult
		days := map[string]float64{}
		for i, d := range r.Perm(130)[:r.IntN(12)] {
			day := start.AddDays(d - 30)
			days[day.String()] = float64(i)
			results = append(results, lipid(day.String(), "ldl", "2089-1", ptr(float64(i))))
		}
		period := []aggregate.Period{aggregate.Days(1), aggregate.Days(5), aggregate.Weeks(1), aggregate.Months(1)}[r.IntN(4)]
		age := int64(1 + r.IntN(40))
		out := joined(t, p, results, aggregate.Query{
			Select: []aggregate.Expr{aggregate.Sum.Of(aggregate.Col("activity", "steps"))}, GroupBy: []aggregate.Expr{aggregate.By(period)},
			Joins: []aggregate.Join{aggregate.JoinLast("ldl", aggregate.Days(age), aggregate.Col("lab_result", "value"))},
		})
		for i, row := range out.Frames[0].Rows() {
			first := row[0].(healthlab.Date)
			last := first
			for d := last; period.Start(d.At(time.UTC)).Equal(first.At(time.UTC)) && d.Compare(date("2026-03-31")) <= 0; d = d.AddDays(1) {
				last = d
			}
			var want any
			for back := range age {
				if v, ok := days[last.AddDays(int(-back)).String()]; ok {
					want = v
					break
				}
			}
			require.Equal(t, want, row[2], "row %d", i)
		}
	}
}

func labsOf(t *testing.T, p *queryoracle.Person, results ...aggregate.LabResult) *aggregate.Service {
	for i := range results {
		results[i].ID = uuid.NewSHA1(uuid.Nil, fmt.Append(nil, i))
	}
	return service(t, p, &aggregate.Options{LabResults: listOf(results)})
}
