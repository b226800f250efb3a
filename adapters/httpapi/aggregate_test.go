package httpapi_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/parquet"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// asker is questions over HTTP, and a user to ask about.
type asker struct {
	*contract.Client
	path string
}

func newAsker(t *testing.T, opts *aggregate.Options) asker {
	t.Helper()
	store := memory.New(nil)
	providers, err := healthdata.NewProviders(nil)
	require.NoError(t, err)
	health, err := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
	require.NoError(t, err)
	user, err := health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "patient-77"})
	require.NoError(t, err)
	questions, err := aggregate.New(health, opts)
	require.NoError(t, err)
	h := httpapi.Handler(httpapi.Config{
		Authenticate: func(*http.Request) (httpapi.Caller, error) { return httpapi.Caller{Team: team}, nil },
		ServiceName:  "acme",
		Parquet:      parquet.Writer{},
		Parts:        (&httpapi.Services{Aggregate: questions}).Parts(),
	})
	// The contract under the names of this mount.
	get := contract.NewClient(t, h, httpapi.OpenAPI())
	doc := get.Send(t, "GET", "/openapi.json", nil).Body
	return asker{contract.NewClient(t, h, doc), "/aggregate/v1/user/" + user.ID.String() + "/query"}
}

const goodQuestion = `{"timeframe":{"type":"relative","anchor":"2026-03-01","past":{"unit":"day","value":7}},
	"queries":[{"select":[{"func":"mean","arg":{"sleep":"efficiency"}}],
	"group_by":[{"date_trunc":{"unit":"day","value":1},"arg":{"index":"sleep"}}]},
	{"select":[{"func":"count","arg":{"timeseries":"heartrate","field":"value"}}]}]}`

func TestQuery_isAnsweredAsJSON(t *testing.T) {
	a := newAsker(t, nil)
	r := a.Send(t, "POST", a.path, []byte(goodQuestion)).Want(t, 200)
	require.Equal(t, "application/json", r.Header.Get("Content-Type"))
	require.JSONEq(t, `{"results":[{"table":{"index":[],"mean":[]}},{"table":{"index":[0],"count":[0]}}]}`, string(r.Body))

	var explained struct {
		Explain []map[string]any `json:"explain"`
	}
	a.Send(t, "POST", a.path+"?explain=true", []byte(goodQuestion)).Want(t, 200).JSON(t, &explained)
	require.Equal(t, "rows", explained.Explain[0]["path"])
	require.Equal(t, "buckets", explained.Explain[1]["path"])
}

// A phone counts 8,000 steps on each of 7 days, a watch 9,000 on the last: the days, the
// week, the month and the ungrouped answer say 57,000.
func TestQuery_dayWeekMonthAndUngroupedSumsAgree(t *testing.T) {
	c := newFixture(t, nil)
	steps := func(source string, day, value int) {
		c.post(c.timeseries("steps"), fmt.Sprintf(`{"provider":"manual","source":{"type":%q},"data":[
			{"start":"2026-02-%02dT08:00:00Z","end":"2026-02-%02dT20:00:00Z","unit":"count","value":%d}]}`, source, day, day, value), 200)
	}
	for day := 16; day < 23; day++ {
		steps("phone", day, 8000)
	}
	steps("watch", 22, 9000)
	for _, by := range []string{`"unit":"hour"`, `"unit":"day"`, `"unit":"week"`, `"unit":"month"`, ""} {
		group := ""
		if by != "" {
			group = `,"group_by":[{"date_trunc":{` + by + `},"arg":{"index":"timeseries"}}]`
		}
		var out struct {
			Results []struct {
				Table struct{ Sum []float64 }
			}
			Explain []aggregate.Explanation
		}
		c.post("/aggregate/v1/user/"+c.user.String()+"/query", []byte(`{"timeframe":{"type":"relative","anchor":"2026-02-22","past":{"unit":"day","value":7}},
			"queries":[{"select":[{"func":"sum","arg":{"timeseries":"steps","field":"value"}}]`+group+`}],"config":{"explain":true}}`), 200).JSON(t, &out)
		total := 0.0
		for _, sum := range out.Results[0].Table.Sum {
			total += sum
		}
		require.InDelta(t, 57_000, total, 1e-9, by)
		require.Equal(t, []aggregate.ShareTotal{
			{Recorder: aggregate.Recorder{Source: aggregate.Source{Provider: "manual", Type: "watch"}}, Resource: "steps", Used: 1},
			{Recorder: aggregate.Recorder{Source: aggregate.Source{Provider: "manual", Type: "phone"}}, Resource: "steps", Used: 6, Lost: 1},
		}, out.Explain[0].Merged.Totals)
	}
}

// Two watches of one source send a day, a night, a workout and a weight each: all are listed, and a query counts the
// day and the sessions once.
func TestQuery_countsSummariesOfTwoDevicesOfOneSourceOnce(t *testing.T) {
	now := fixtureNow
	c := newFixture(t, &healthdata.Options{Now: func() time.Time { return now }})
	for resource, items := range map[string][2]string{
		"activity": {`{"calendar_date":"2026-02-22","steps":50}`, `{"calendar_date":"2026-02-22","steps":9000}`},
		"sleep": {
			`{"bedtime_start":"2026-02-21T22:00:00Z","bedtime_stop":"2026-02-22T05:00:00Z","total":20000}`,
			`{"bedtime_start":"2026-02-21T22:00:00Z","bedtime_stop":"2026-02-22T06:00:00Z","total":25000}`,
		},
		"workouts": {
			`{"time_start":"2026-02-22T08:00:00Z","time_end":"2026-02-22T09:00:00Z","sport":{"slug":"running"},"distance":6000}`,
			`{"time_start":"2026-02-22T08:00:00Z","time_end":"2026-02-22T09:10:00Z","sport":{"slug":"running"},"distance":7000}`,
		},
		"body": {`{"measured_at":"2026-02-22T07:00:00Z","fat":20}`, `{"measured_at":"2026-02-22T07:00:00Z","weight":71}`},
	} {
		for i, item := range items {
			now = now.Add(time.Minute) // of days, the origin that was received later counts
			c.post(c.summary(resource), fmt.Sprintf(`{"provider":"manual","source":{"type":"watch","device":{"id":"watch-%d"}},"data":[%s]}`, i, item), 200)
		}
		list := map[string][]json.RawMessage{}
		c.get(c.summary(resource)+"?start_date=2026-02-20&end_date=2026-02-23", 200).JSON(t, &list)
		require.Len(t, list[healthdata.ResourceBySlug(resource).ReadKey], 2, resource)
	}
	for column, want := range map[string]float64{
		`{"activity":"steps"}`: 9000, `{"sleep":"stage_asleep_second"}`: 25000, `{"workout":"distance_meter"}`: 7000,
		`{"body":"weight_kilogram"}`: 71, `{"body":"fat_mass_percentage"}`: 20,
	} {
		var out struct {
			Results []struct{ Table struct{ Sum []float64 } }
		}
		c.post("/aggregate/v1/user/"+c.user.String()+"/query", `{"timeframe":{"type":"relative","anchor":"2026-02-22","past":{"unit":"day","value":7}},
			"queries":[{"select":[{"func":"sum","arg":`+column+`}]}]}`, 200).JSON(t, &out)
		require.Equal(t, []float64{want}, out.Results[0].Table.Sum, column)
	}
}

// Measures of glucose that was sent in mg/dL, over the wire: an hour at 100, then 15 minutes at
// 60, and a day without readings. The explanation has the question as it was asked.
func TestQuery_computesMeasuresOfGlucoseSentInMgPerDl(t *testing.T) {
	c := newFixture(t, nil)
	var items []string
	for i := range 15 {
		value := 100
		if i >= 12 {
			value = 60
		}
		items = append(items, fmt.Sprintf(`{"timestamp":"2026-02-22T%02d:%02d:00Z","unit":"mg/dL","value":%d}`, 8+i/12, i%12*5, value))
	}
	c.post(c.timeseries("glucose"), `{"provider":"manual","source":{"type":"automatic"},"data":[`+strings.Join(items, ",")+`]}`, 200)
	const arg = `"arg":{"timeseries":"glucose","field":"value"}`
	body := `{"timeframe":{"type":"relative","anchor":"%s","past":{"unit":"day","value":1}},"queries":[{"select":[{"func":"gmi",` + arg + `},{"func":"cv",` + arg + `},
		{"func":"gri",` + arg + `},{"func":"mage",` + arg + `},{"func":"modd",` + arg + `},{"func":"sensor_active",` + arg + `},
		{"func":"time_in_range",` + arg + `,"band":"low"},{"func":"episodes",` + arg + `,"band":"below_range"}]}],"config":{"explain":true}}`
	var out struct {
		Results []struct{ Table map[string][]any }
		Explain []aggregate.Explanation
	}
	path := "/aggregate/v1/user/" + c.user.String() + "/query"
	c.post(path, fmt.Sprintf(body, "2026-02-22"), 200).JSON(t, &out)
	table := out.Results[0].Table
	for name, want := range map[string]any{
		"gmi": 3.31 + 0.02392*92, "cv": 100 * 16.5616 / 92, "gri": 2.4 * 20, "mage": 40 / 18.0182, "sensor_active": 100,
		"time_in_range_low": 20, "episodes_below_range": 1,
	} {
		require.InDelta(t, want, table[name][0], 1e-3, name)
	}
	require.Nil(t, table["modd"][0])
	asked, err := json.Marshal(out.Explain[0].Query)
	require.NoError(t, err)
	require.Contains(t, string(asked), `"band":"below_range"`)

	out.Results = nil
	c.post(path, fmt.Sprintf(body, "2026-02-23"), 200).JSON(t, &out)
	for name, values := range out.Results[0].Table {
		if name != "index" {
			require.Equal(t, []any{nil}, values, name)
		}
	}
}

func TestQuery_isAnsweredAsParquetArchive(t *testing.T) {
	a := newAsker(t, nil)
	const kind = "application/vnd.acme.tar+gzip+parquet"
	r := a.With("Accept", kind).Send(t, "POST", a.path, []byte(goodQuestion)).Want(t, 200)
	require.Equal(t, kind, r.Header.Get("Content-Type"))
	zip, err := gzip.NewReader(bytes.NewReader(r.Body))
	require.NoError(t, err)
	archive := tar.NewReader(zip)
	for _, want := range []string{"0.parquet", "1.parquet"} {
		h, err := archive.Next()
		require.NoError(t, err)
		require.Equal(t, want, h.Name)
	}
}

func TestQuery_acceptHeaderChoosesTheFormat(t *testing.T) {
	a := newAsker(t, nil)
	const archive = "application/vnd.acme.tar+gzip+parquet"
	rows := []struct {
		accept, want string
		status       int
	}{
		{"*/*", "application/json", 200},
		{"application/json", "application/json", 200},
		{"text/html, */*;q=0.1", "application/json", 200},
		{"application/json;q=0.5, " + archive, archive, 200},
		{archive + ", application/json", archive, 200},
		{"application/json, " + archive, "application/json", 200},
		{archive + ";q=0.2, application/json;q=0.9", "application/json", 200},
		{"application/*", "application/json", 200},
		{"Application/*;q=0.5, " + archive, archive, 200},
		{"application/*, " + archive, "application/json", 200},
		{"application/json;q=0, application/*", archive, 200},
		{"*/*, application/json;q=0", archive, 200},
		{"text/*", "application/json", 406},
		{"application/vnd*", "application/json", 406},
		{"application/*;q=0", "application/json", 406},
		{"application/*;q=0, */*", "application/json", 406},
		{"application/*;q=0.5, application/json;q=0.4", archive, 200},
		{"*, text/html", "application/json", 200},
		{`application/json;profile="a,b"`, "application/json", 200},
		{`text/html;x="\", application/json"`, "application/json", 406},
		{"application/json;q=2", "application/json", 200},
		{"application/json;q=high", "application/json", 200},
		{"application/json;charset=utf-8;charset=utf-8", "application/json", 200},
		{"APPLICATION/JSON;Q=0.3, " + strings.ToUpper(archive) + ";Q=0.4", archive, 200},
		{" , ,", "application/json", 200},
		{"text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", "application/json", 200},
		{"text/html", "application/json", 406},
		{"application/json;q=0", "application/json", 406},
		{"application/vnd.healthlab.tar+gzip+parquet", "application/json", 406},
	}
	for _, row := range rows {
		t.Run(strings.ReplaceAll(row.accept, "/", "_"), func(t *testing.T) {
			r := a.With("Accept", row.accept).Send(t, "POST", a.path, []byte(goodQuestion)).Want(t, row.status)
			require.Equal(t, row.want, r.Header.Get("Content-Type"))
		})
	}
}

func TestQuery_refusesUnknownUserLargeBodyAndTimeout(t *testing.T) {
	a := newAsker(t, nil)
	nobody := "/aggregate/v1/user/" + uuid.NewString() + "/query"
	require.Equal(t, "USER_NOT_FOUND", a.Send(t, "POST", nobody, []byte(goodQuestion)).Want(t, 404).ErrorType(t))

	large := `{"timeframe":"` + strings.Repeat("x", 256<<10) + `"}`
	require.Equal(t, "BODY_TOO_LARGE", a.Send(t, "POST", a.path, []byte(large)).Want(t, 413).ErrorType(t))

	bad := `{"timeframe":{"type":"relative","anchor":"2026-03-01","past":{"unit":"day","value":7}},"colour":1,
		"queries":[{"select":[{"func":"mean","arg":{"sleep":"eficiency"}}],"where":"score > "}]}`
	r := a.Send(t, "POST", a.path+"?x=1", []byte(bad)).Want(t, 422)
	require.ElementsMatch(t, []string{"query.x", "body.colour", "body.queries.0.where", "body.queries.0.select.0.arg.sleep"}, r.Locs(t))
	require.Contains(t, string(r.Body), `"offset":8`)
	require.Contains(t, string(r.Body), `did you mean efficiency?`)

	a = newAsker(t, &aggregate.Options{Enabled: func(context.Context, healthlab.TeamID) (bool, error) { return false, nil }})
	require.Equal(t, "FEATURE_NOT_ENABLED", a.Send(t, "POST", a.path, []byte(goodQuestion)).Want(t, 403).ErrorType(t))

	a = newAsker(t, &aggregate.Options{Limits: aggregate.Limits{Time: time.Nanosecond}})
	require.Equal(t, "QUERY_TIMEOUT", a.Send(t, "POST", a.path, []byte(goodQuestion)).Want(t, 504).ErrorType(t))
}

// The schema lists what queries can name; names of reads are accepted, too.
func TestQuerySchema_listsTheColumnsAndAliasesOfQueries(t *testing.T) {
	c := newFixture(t, nil)
	var schema aggregate.Schema
	c.get("/aggregate/v1/schema", 200).JSON(t, &schema)
	require.Equal(t, aggregate.Describe(), schema)
	c.app().Send(t, "GET", "/aggregate/v1/schema", nil).Want(t, 401)
	c.post(c.summary("activity"), upload(`{"calendar_date":"2026-03-01","distance":1500}`), 200)
	ask := func(column string, status int) string {
		return string(c.post("/aggregate/v1/user/"+c.user.String()+"/query", []byte(`{"timeframe":{"type":"relative","anchor":"2026-03-02","past":{"unit":"day","value":7}},
			"queries":[{"select":[{"activity":"`+column+`"}]}]}`), status).Body)
	}
	require.Contains(t, ask("distance", 200), `"distance_meter":[1500]`)
	require.Contains(t, ask("distance_metre", 422), "distance_meter")
}
