package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"time"
)

const exampleQuery = `{
  "timeframe": {"type": "relative", "anchor": "%s", "past": {"unit": "day", "value": 7}},
  "queries": [{
    "select": [{"group_key": "*"}, {"func": "mean", "arg": {"timeseries": "heartrate", "field": "value"}}],
    "group_by": [{"arg": {"index": "timeseries"}, "date_trunc": {"unit": "day", "value": 1}}]
  }]
}`

// queryTable is the answer to one query.
type queryTable struct {
	Columns []string
	Rows    [][]string
	Chart   *chart
}

// query runs a query on a user's data. The body goes to the API as it was typed.
func (s *console) query(w http.ResponseWriter, r *http.Request, on *session) error {
	var data struct {
		User, Text, Problem string
		Tables              []queryTable
	}
	data.User, data.Text = r.FormValue("user"), r.FormValue("text")
	if r.Method != http.MethodPost {
		data.Text = fmt.Sprintf(exampleQuery, s.Now().UTC().Format(time.DateOnly))
		return s.show(w, r, on, "query", "Query", data)
	}
	var answer struct {
		Results []struct {
			Table map[string][]any `json:"table"`
		} `json:"results"`
	}
	status := http.StatusOK
	var failed *apiError
	if !json.Valid([]byte(data.Text)) {
		status, data.Problem = http.StatusUnprocessableEntity, "query: must be JSON"
	} else if err := s.post(r, "/aggregate/v1/user/"+url.PathEscape(data.User)+"/query", json.RawMessage(data.Text), &answer); errors.As(err, &failed) {
		status, data.Problem = failed.Status, failed.Message
	} else if err != nil {
		return err
	}
	for _, result := range answer.Results {
		data.Tables = append(data.Tables, tableOf(result.Table))
	}
	s.render(w, r, on, status, "query", "Query", data)
	return nil
}

// tableOf returns columns as rows, and a chart if the index holds times.
func tableOf(columns map[string][]any) queryTable {
	t := queryTable{Columns: []string{"index"}}
	for name := range columns {
		if name != "index" {
			t.Columns = append(t.Columns, name)
		}
	}
	slices.Sort(t.Columns[1:])
	index := columns["index"]
	lines := make([]line, len(t.Columns)-1)
	for i := range index {
		row := make([]string, len(t.Columns))
		text, _ := index[i].(string)
		at, err := time.Parse(time.RFC3339, text)
		for k, name := range t.Columns {
			if i >= len(columns[name]) || columns[name][i] == nil {
				continue
			}
			v := columns[name][i]
			row[k] = fmt.Sprint(v)
			if f, ok := v.(float64); ok && k > 0 && err == nil && !math.IsInf(f, 0) {
				lines[k-1].name = name
				lines[k-1].points = append(lines[k-1].points, point{at, f})
			}
		}
		t.Rows = append(t.Rows, row)
	}
	lines = slices.DeleteFunc(lines, func(l line) bool { return len(l.points) == 0 })
	t.Chart = draw("result", lines, nil, "Jan 2")
	return t
}
