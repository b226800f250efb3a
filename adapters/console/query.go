package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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

// resultTable is the answer to one query.
type resultTable struct {
	Columns []string
	Rows    [][]string
	Chart   *chart
}

// query runs a query on a user's data. The body goes to the API as it was typed.
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
	path := "/aggregate/v1/user/" + url.PathEscape(data.User) + "/query"
	status := http.StatusOK
	var failed *apiError
	switch {
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
	for _, result := range answer.Results {
		data.Tables = append(data.Tables, tableOf(result.Table))
	}
	s.render(w, r, on, status, "query", "Query", data)
	return nil
}

// parquet answers with the archive of Parquet files of a query.
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
	return passOn(w, a, parquetFile)
}

// parquetFile is the name of the archive of Parquet files.
const parquetFile = "query.tar.gz"

// parquetType returns the media type of Parquet answers, "" if the API has none.
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

// address is the API's address as the browser reaches it.
func (s *Console) address(r *http.Request) string {
	if s.Secure {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// asCurl returns a query as a command with more options. The key is a variable of the shell.
func (s *Console) asCurl(r *http.Request, path, text, options string) string {
	return fmt.Sprintf("curl %s%s%s \\\n  -H \"%s: $API_KEY\" -H 'content-type: application/json' \\\n  -d '%s'",
		s.address(r), path, options, s.KeyHeader, strings.ReplaceAll(text, "'", `'\''`))
}

// asGo returns a query as a program. The key is a variable of the environment.
func (s *Console) asGo(r *http.Request, path, text string) string {
	var body bytes.Buffer
	_ = json.Compact(&body, []byte(text)) // the text is JSON, and the API took it
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

// tableOf returns columns as rows, and a chart if the index holds times.
func tableOf(columns table) resultTable {
	t := resultTable{Columns: []string{"index"}}
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
		at, err := parseIndex(text)
		for k, name := range t.Columns {
			if i >= len(columns[name]) || columns[name][i] == nil {
				continue
			}
			v := columns[name][i]
			row[k] = fmt.Sprint(v)
			if f, ok := v.(float64); ok && k > 0 && err == nil && !math.IsInf(f, 0) {
				lines[k-1].name, lines[k-1].colour = name, k-1
				lines[k-1].points = append(lines[k-1].points, point{at, f})
			}
		}
		t.Rows = append(t.Rows, row)
	}
	lines = slices.DeleteFunc(lines, func(l line) bool { return len(l.points) == 0 })
	t.Chart = draw("result", panel{title: "result", lines: lines})
	return t
}

// parseIndex reads the time or the date of an index.
func parseIndex(text string) (at time.Time, err error) {
	for _, layout := range []string{floating, time.RFC3339, time.DateOnly} {
		if at, err = time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return at, err
}
