package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const exampleQuery = `{
  "timeframe": {"type": "relative", "anchor": "%s", "past": {"unit": "day", "value": 7}},
  "queries": [{
    "select": [{"group_key": "*"}, {"func": "mean", "arg": {"timeseries": "heartrate", "field": "value"}}],
    "group_by": [{"arg": {"index": "timeseries"}, "date_trunc": {"unit": "day", "value": 1}}]
  }]
}`

// resultTable is the result of one query.
type resultTable struct {
	Columns []resultColumn
	Rows    [][]string
	Chart   *chart
}

// resultColumn is a column of a result. Unit may be empty.
type resultColumn struct {
	name, Title, Unit string
	bars              bool // draw bars: the column is a sum or a count
}

// query shows the page of queries, and runs a query on a user's data. It sends the entered JSON as the body.
func (s *Console) query(w http.ResponseWriter, r *http.Request, on *session) error {
	var data struct {
		User, Text, Problem string
		Curl, Parquet, Go   string
		Tables              []resultTable
		Schema              querySchema
	}
	var err error
	if data.Schema, err = s.schema(r); err != nil {
		return err
	}
	data.User, data.Text = r.FormValue("user"), r.FormValue("text")
	if r.Method != http.MethodPost {
		data.Text = fmt.Sprintf(exampleQuery, s.Now().UTC().Format(time.DateOnly))
		return s.show(w, r, on, "query", "Query", data)
	}
	var answer struct {
		Results []struct {
			Table table `json:"table"`
		} `json:"results"`
	}
	status := http.StatusOK
	var failed *apiError
	id, err := s.userID(r, data.User)
	path := "/aggregate/v1/user/" + url.PathEscape(id) + "/query"
	switch {
	case errors.As(err, &failed):
		status, data.Problem = failed.Status, failed.Message
	case err != nil:
		return err
	case !json.Valid([]byte(data.Text)):
		status, data.Problem = http.StatusUnprocessableEntity, "query: must be JSON"
	case r.PostFormValue("as") == "parquet":
		return s.parquet(w, r, path, data.Text)
	default:
		err := s.post(r, path, json.RawMessage(data.Text), &answer)
		if errors.As(err, &failed) {
			status, data.Problem = failed.Status, failed.Message
		} else if err != nil {
			return err
		}
	}
	if status == http.StatusOK {
		kind, err := s.parquetType(r)
		if err != nil {
			return err
		}
		data.Curl, data.Go = s.asCurl(r, path, data.Text, ""), s.asGo(r, path, data.Text)
		if kind != "" {
			data.Parquet = s.asCurl(r, path, data.Text, " -H 'accept: "+kind+"' -o "+parquetFile)
		}
	}
	questions := data.Schema.questions(data.Text)
	for i, result := range answer.Results {
		var columns []resultColumn
		if i < len(questions) {
			columns = questions[i]
		}
		data.Tables = append(data.Tables, tableOf(result.Table, columns))
	}
	s.render(w, r, on, status, "query", "Query", data)
	return nil
}

// parquet runs a query and answers with an archive of Parquet files. path is the API path of queries of the user, and
// text the query.
func (s *Console) parquet(w http.ResponseWriter, r *http.Request, path, text string) error {
	kind, err := s.parquetType(r)
	if err != nil {
		return err
	}
	if kind == "" {
		return &apiError{Status: http.StatusNotFound, Message: "the API has no Parquet answers"}
	}
	a, err := s.send(r, http.MethodPost, path, nil, s.teamKeys(r, kind), json.RawMessage(text))
	if err != nil {
		return err
	}
	return sendFile(w, a, parquetFile)
}

// parquetFile is the name of the archive of Parquet files.
const parquetFile = "query.tar.gz"

// parquetType returns the media type of Parquet answers; "" if the API offers none.
func (s *Console) parquetType(r *http.Request) (string, error) {
	c, err := s.contract(r)
	if err != nil {
		return "", err
	}
	for kind := range c.Paths["/aggregate/v1/user/{user_id}/query"]["post"].Responses["200"].Content {
		if strings.HasSuffix(kind, "parquet") {
			return kind, nil
		}
	}
	return "", nil
}

func (s *Console) address(r *http.Request) string {
	if s.Secure {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

func (s *Console) asCurl(r *http.Request, path, text, options string) string {
	return fmt.Sprintf("curl %s%s%s \\\n  -H \"%s: $API_KEY\" -H 'content-type: application/json' \\\n  -d '%s'",
		s.address(r), path, options, s.KeyHeader, strings.ReplaceAll(text, "'", `'\''`))
}

func (s *Console) asGo(r *http.Request, path, text string) string {
	var body bytes.Buffer
	_ = json.Compact(&body, []byte(text)) // the API has accepted the text, so it is JSON
	return fmt.Sprintf(goProgram, strconv.Quote(body.String()), strconv.Quote(s.address(r)+path), strconv.Quote(s.KeyHeader))
}

const goProgram = `package main

import (
	"io"
	"log"
	"net/http"
	"os"
	"strings"
)

func main() {
	body := strings.NewReader(%s)
	r, err := http.NewRequest("POST", %s, body)
	if err != nil {
		log.Fatal(err)
	}
	r.Header.Set(%s, os.Getenv("API_KEY"))
	r.Header.Set("content-type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	io.Copy(os.Stdout, answer.Body)
}
`

// selection is one entry of select or group_by in a query.
type selection struct {
	Func, Band  string
	Arg         map[string]json.RawMessage
	Source      string `json:"source"`
	ValueMacro  string `json:"value_macro"`
	DateTrunc   any    `json:"date_trunc"`
	column, tbl string // set if the selection names a column
}

// UnmarshalJSON also sets s.tbl and s.column, for a column of a table, {"TABLE":"COLUMN"}, and for a field of a
// timeseries.
func (s *selection) UnmarshalJSON(b []byte) error {
	type plainSelection selection
	if err := json.Unmarshal(b, (*plainSelection)(s)); err != nil {
		return err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	s.tbl, s.column = columnOf(all)
	if s.Arg != nil {
		s.tbl, s.column = columnOf(s.Arg)
	}
	return nil
}

// columnOf returns the table, or the timeseries, and the column that an expression names; "" if it names none.
func columnOf(all map[string]json.RawMessage) (tbl, column string) {
	text := func(name string) (out string) {
		_ = json.Unmarshal(all[name], &out) // another type names no column
		return out
	}
	if name := text("timeseries"); name != "" {
		return name, text("field")
	}
	for name := range all {
		if v := text(name); v != "" && name != "func" && name != "band" && name != "source" {
			tbl, column = name, v
		}
	}
	return tbl, column
}

// questions returns, for each query in the JSON text, the columns of its result with titles and units. It returns nil
// for a text that it cannot parse.
func (q *querySchema) questions(text string) (out [][]resultColumn) {
	var in struct {
		Queries []struct {
			Select  []selection `json:"select"`
			GroupBy []selection `json:"group_by"`
		} `json:"queries"`
	}
	if json.Unmarshal([]byte(text), &in) != nil {
		return nil
	}
	for _, one := range in.Queries {
		var list []resultColumn
		for i, key := range one.GroupBy {
			title := cmp.Or(key.Source, key.column, "group "+strconv.Itoa(i+1))
			if key.DateTrunc != nil {
				title = "time"
			}
			list = append(list, resultColumn{name: fmt.Sprintf("group_key.%d", i), Title: words(title)})
		}
		for _, s := range one.Select {
			list = append(list, q.columns(s)...)
		}
		out = append(out, list)
	}
	return out
}

// columns returns the columns that an entry of select produces. A column may occur under several names, because its
// name depends on the other columns.
func (q *querySchema) columns(s selection) []resultColumn {
	if s.Func == "" {
		name := cmp.Or(s.Source, s.ValueMacro, s.column)
		return []resultColumn{{name: name, Title: words(name), Unit: q.unit(s.tbl, s.column)}}
	}
	label, unit := s.Func, q.unit(s.tbl, s.column)
	if s.Band != "" {
		label += "_" + s.Band
	}
	switch s.Func {
	case "count", "episodes", "lbgi", "hbgi", "gri":
		unit = ""
	case "cv", "gmi", "time_in_range", "sensor_active":
		unit = "%"
	}
	of := s.column
	if of == "value" {
		of = s.tbl // a timeseries
	}
	one := resultColumn{Title: words(label + " " + of), Unit: unit, bars: s.Func == "sum" || s.Func == "count"}
	var list []resultColumn
	for _, name := range []string{label, label + "." + s.column, label + "." + s.tbl + "." + s.column} {
		one.name = name
		list = append(list, one)
	}
	return list
}

// unit returns the unit of a column of a table or a timeseries.
func (q *querySchema) unit(tbl, column string) string {
	for _, t := range slices.Concat(q.Timeseries, q.Tables) {
		if t.Name != tbl {
			continue
		}
		for _, c := range t.Columns {
			if c.Name == column && c.Unit != "local" {
				return c.Unit
			}
		}
	}
	return ""
}

// tableOf converts the columns of a result to rows. It sorts the columns in known first, in that order. It omits a
// column that repeats the index. If the index holds times, it adds a chart.
func tableOf(columns table, known []resultColumn) resultTable {
	index := columns["index"]
	doubled := func(name string) bool {
		return name != "index" && slices.EqualFunc(columns[name], index, func(a, b any) bool { return a != nil && fmt.Sprint(a) == fmt.Sprint(b) })
	}
	title := "index"
	var rest []resultColumn
	listed := map[string]bool{"index": true}
	for _, c := range known {
		_, there := columns[c.name]
		switch {
		case !there || listed[c.name]:
		case doubled(c.name):
			title = c.Title
		default:
			rest = append(rest, c)
		}
		listed[c.name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(columns)) {
		if !listed[name] && !doubled(name) {
			rest = append(rest, resultColumn{name: name, Title: name})
		}
	}
	t := resultTable{Columns: append([]resultColumn{{name: "index", Title: title}}, rest...)}
	lines := make([]line, len(t.Columns))
	for i := range index {
		row := make([]string, len(t.Columns))
		text, _ := index[i].(string)
		at, err := parseIndex(text)
		for k, c := range t.Columns {
			if i >= len(columns[c.name]) || columns[c.name][i] == nil {
				continue
			}
			v := columns[c.name][i]
			row[k] = cellText(v)
			if f, ok := v.(float64); ok && k > 0 && err == nil && !math.IsInf(f, 0) {
				lines[k].name, lines[k].colour = c.Title, k-1
				lines[k].points = append(lines[k].points, point{at, f})
			}
		}
		t.Rows = append(t.Rows, row)
	}
	t.Chart = draw("result", t.panels(lines)...)
	return t
}

// panels groups lines into panels: one for each unit, with separate panels for bars and lines.
func (t *resultTable) panels(lines []line) (list []panel) {
	step := shortestStep(lines)
	for k, l := range lines {
		if len(l.points) == 0 {
			continue
		}
		column := t.Columns[k]
		if l.dots = len(l.points) <= 60; column.bars && step > 0 {
			l.bars = step
		}
		at := slices.IndexFunc(list, func(p panel) bool { return p.unit == column.Unit && p.lines[0].bars == l.bars })
		if at < 0 {
			list = append(list, panel{title: column.Title, unit: column.Unit, lines: []line{l}})
			continue
		}
		list[at].title = "result"
		list[at].lines = append(list[at].lines, l)
	}
	for i := range list {
		if len(list[i].lines) == 1 {
			list[i].lines[0].name = "" // the title says it
		}
	}
	return list
}

// shortestStep returns the shortest time between two consecutive points of any line; 0 if no line has two.
func shortestStep(lines []line) (step time.Duration) {
	for _, l := range lines {
		for i := 1; i < len(l.points); i++ {
			if d := l.points[i].at.Sub(l.points[i-1].at); d > 0 && (step == 0 || d < step) {
				step = d
			}
		}
	}
	return step
}

// cellText formats a value of a result. Numbers have at most six digits after the point.
func cellText(v any) string {
	switch x := v.(type) {
	case float64:
		return strconv.FormatFloat(math.Round(x*1e6)/1e6, 'f', -1, 64)
	case string:
		if at, err := time.Parse(floating, x); err == nil {
			if at.Equal(at.Truncate(day)) {
				return at.Format(time.DateOnly)
			}
			return at.Format("2006-01-02 15:04:05")
		}
	}
	return fmt.Sprint(v)
}

// parseIndex reads a value of the column index: a date, or a time with or without an offset.
func parseIndex(text string) (at time.Time, err error) {
	for _, layout := range []string{floating, time.RFC3339, time.DateOnly} {
		if at, err = time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return at, err
}
