package queryoracle

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// Table is the SQL statement that creates the table into which a test copies the samples of a Data.
const Table = `
create temp table sample (
	resource text, source_provider text collate "C", source_type text collate "C", part text collate "C",
	type text collate "C", source_sport text collate "C", source_workout_id text collate "C",
	timezone_offset bigint, at bigint, index timestamp,
	value float8, systolic float8, diastolic float8, duration float8
)`

// Columns are the column names of the table that [Table] creates.
var Columns = []string{
	"resource", "source_provider", "source_type", "part", "type", "source_sport", "source_workout_id",
	"timezone_offset", "at", "index", "value", "systolic", "diastolic", "duration",
}

// values returns a row of samples as SQL values in the order of [Columns].
func (r *row) values() []any {
	var workout any
	if r.s.Workout != uuid.Nil {
		workout = r.s.Workout.String()
	}
	var duration any
	if r.s.End != series.NoEnd {
		duration = float64(r.s.End-r.s.Time) / 1e6
	}
	return []any{
		r.key.Resource, orNil(r.key.Provider), orNil(string(r.key.SourceType)), r.key.Part, orNil(r.s.Type), orNil(r.s.Sport), workout,
		int64(r.s.Offset), r.s.Time, r.at(), r.s.Value, r.s.Value, r.s.Value2, duration,
	}
}

func truncSQL(unit string, n int) string {
	if n == 1 {
		return "date_trunc('" + unit + "', index)"
	}
	step := strconv.Itoa(n) + " " + unit
	switch unit {
	case "week":
		return fmt.Sprintf("date_bin('%d days', index, '1970-01-05')", 7*n)
	case "month":
		return fmt.Sprintf("date_trunc('month', index) - ((extract(year from index)::int * 12 + extract(month from index)::int - 1) %% %d) * interval '1 month'", n)
	case "year":
		return fmt.Sprintf("date_trunc('year', index) - (extract(year from index)::int %% %d) * interval '1 year'", n)
	default:
		return "date_bin('" + step + "', index, '1970-01-01')"
	}
}

func partSQL(part string) string {
	name := map[string]string{"weekday": "isodow", "day_of_year": "doy"}[part]
	if name == "" {
		name = part
	}
	return "extract(" + name + " from index)::bigint"
}

// SQL returns the query as SQL over the table of [Table]. Its overlap policy must be winner.
func (q *Question) SQL() string {
	types := "array['lab','automatic','insulin_pump','watch','ring','chest_strap','exercise_machine','earphone','scale','cuff','fingerprick','manual_scan','phone','app','multiple_sources']"
	overrides := "array[]::text[]"
	if len(q.overrides) > 0 {
		overrides = "array['" + strings.Join(q.overrides, "','") + "']"
	}
	source := fmt.Sprintf(`coalesce(array_position(%s, source_provider), 1000), coalesce(array_position(%s, source_type), case source_type when 'unknown' then 99 else 50 end), source_type, source_provider`,
		overrides, types)
	where := q.where
	if where == "" {
		where = "true"
	}
	var keys, names, split []string
	chosen := len(q.keys) > 0
	for i, k := range q.keys {
		names = append(names, "k"+strconv.Itoa(i))
		keys = append(keys, k.sql+" as k"+strconv.Itoa(i)+", ")
		if k.name == "source_provider" || k.name == "source_type" {
			split = append(split, k.name)
		}
	}
	if strings.Contains(strings.Join(split, " "), "source_provider") && strings.Contains(strings.Join(split, " "), "source_type") {
		chosen = false
	}
	rank := "1"
	if chosen {
		rank = "rank() over (partition by " + strings.Join(names, ", ") + " order by " + source + ")"
	}
	var fns []string
	for _, f := range q.fns {
		fns = append(fns, f.sql(source))
	}
	cols := strings.Join(append(append([]string{}, names...), fns...), ", ")
	group := ""
	if len(names) > 0 {
		list := strings.Join(names, ", ")
		group = " group by " + list + " order by " + strings.ReplaceAll(list, ",", " nulls last,") + " nulls last"
	}
	return fmt.Sprintf(`
with kept as (
	select %s%s.* from sample %s
	where resource = '%s' and index >= timestamp 'epoch' + %d * interval '1 microsecond' and index < timestamp 'epoch' + %d * interval '1 microsecond' and (%s)
), ranked as (select *, %s as place from kept)
select %s from ranked where place = 1%s`,
		strings.Join(keys, ""), q.resource, q.resource, q.resource, q.from, q.to, where, rank, cols, group)
}

func (f questionFunc) sql(source string) string {
	edge := func(way string) string {
		return fmt.Sprintf("(array_agg(%s order by index %s, %s, part, at %s) filter (where %s is not null))[1]", f.field, way, source, way, f.field)
	}
	switch f.fn {
	case "mean":
		return "avg(" + f.field + ")"
	case "median":
		return "percentile_cont(0.5) within group (order by " + f.field + ")"
	case "percentile_90":
		return "percentile_cont(0.9) within group (order by " + f.field + ")"
	case "stddev":
		return "stddev_samp(" + f.field + ")"
	case "oldest":
		return edge("asc")
	case "newest":
		return edge("desc")
	default:
		return f.fn + "(" + f.field + ")"
	}
}

// Values returns all samples of w as SQL values in the order of [Columns].
func (w *Data) Values() [][]any {
	out := make([][]any, len(w.rows))
	for i := range w.rows {
		out[i] = w.rows[i].values()
	}
	return out
}

// Keys returns the number of group keys, which are the first columns of the SQL answer.
func (q *Question) Keys() int { return len(q.keys) }
