package httpapi_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/continuous"
	"github.com/healthlab-dev/healthlab/aggregate/parquet"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// continuousPairs are the published types of continuous queries.
func continuousPairs() []contract.Pair {
	return []contract.Pair{
		{Schema: "ContinuousQueryPreview", Value: continuous.Preview{}},
		{Schema: "ContinuousScheduling", Value: continuous.Scheduling{}},
		{Schema: "ContinuousExport", Value: continuous.Export{}},
		{Schema: "QuerySchema", Value: aggregate.Schema{}},
		{Schema: "QueryTable", Value: aggregate.TableSchema{}},
		{Schema: "QueryColumn", Value: aggregate.ColumnSchema{}},
		{Schema: "ContinuousTask", Value: continuous.HistoryEntry{}},
	}
}

func newContinuous(t *testing.T, store *memory.Store, health *healthdata.Service, now func() time.Time) *continuous.Service {
	t.Helper()
	questions, err := aggregate.New(health, nil)
	require.NoError(t, err)
	c, err := continuous.New(questions, store.Continuous(), store.ContinuousWork(), &continuous.Options{Now: now})
	require.NoError(t, err)
	return c
}

// observatory is continuous queries over HTTP, with a clock of its own.
type observatory struct {
	*contract.Client
	base, table string
	now         time.Time
	store       *memory.Store
	service     *continuous.Service
	user        healthlab.UserID
}

func newObservatory(t *testing.T) *observatory {
	t.Helper()
	o := &observatory{now: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC), base: "/v1/org/" + org.String() + "/team/" + team.String() + "/sandbox"}
	clock := func() time.Time { return o.now }
	o.store = memory.New(&memory.Options{Now: clock})
	health := newHealth(t, o.store)
	u, err := health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "patient-77"})
	require.NoError(t, err)
	o.user, o.table = u.ID, "/aggregate/v1/user/"+u.ID.String()+"/continuous_query/"
	o.service = newContinuous(t, o.store, health, clock)
	h := httpapi.Handler(httpapi.Config{
		Authenticate: func(*http.Request) (httpapi.Caller, error) { return httpapi.Caller{Team: team}, nil },
		Environment:  healthlab.Sandbox, Parquet: parquet.Writer{},
		AuthenticateManagement: httpapi.ManagementAuth([]httpapi.ManagementKey{{
			Sum:     httpapi.SumKey(managementKey),
			Mandate: func(which uuid.UUID, tm healthlab.TeamID) bool { return which == org && tm == team },
		}}, nil),
		Parts: (&httpapi.Services{Continuous: o.service}).Parts(),
	})
	o.Client = contract.NewClient(t, h, httpapi.OpenAPI()).With("x-management-key", managementKey)
	return o
}

// walk stores steps of one day and does what is due.
func (o *observatory) walk(t *testing.T, day int, n float64) {
	t.Helper()
	at := time.Date(2026, 3, day, 8, 0, 0, 0, time.UTC).UnixMicro()
	var b series.Block
	b.Append(series.Sample{Time: at, End: at + 60e6, Value: n})
	require.NoError(t, o.store.Data().MergeSamples(t.Context(), team, o.user, []healthdata.SampleBatch{{
		Key: healthdata.SeriesKey{Resource: "steps", Provider: "acme_band", SourceType: "watch"}, Samples: &b,
	}}, nil))
	tasks, err := o.service.Claim(t.Context(), 9)
	require.NoError(t, err)
	for _, task := range tasks {
		require.NoError(t, o.service.Do(t.Context(), task))
	}
}

func stepsQuery() object {
	return object{
		"select":   []any{object{"group_key": "*"}, object{"func": "sum", "arg": object{"timeseries": "steps", "field": "value"}}},
		"group_by": []any{object{"date_trunc": object{"unit": "day", "value": 1}, "arg": object{"index": "timeseries"}}},
	}
}

func TestContinuousQuery_isValidatedRunListedPatchedAndArchived(t *testing.T) {
	o := newObservatory(t)
	body := object{"slug": "daily-steps", "title": "Daily steps", "query": stepsQuery()}
	schema := object{"index": "timestamp", "group_key.0": "timestamp", "sum.steps.value": "float64"}
	var preview object
	o.Send(t, "POST", o.base+"/validate_continuous_query", body).Want(t, 200).JSON(t, &preview)
	require.Equal(t, object{"result_table_schema": schema, "resource_dependencies": []any{"steps"}, "fhir_observation_previews": []any{}}, preview)

	var q object
	o.Send(t, "POST", o.base+"/continuous_query", body).Want(t, 200).JSON(t, &q)
	id, _ := q["id"].(string)
	require.Equal(t, object{
		"id": id, "status": "active", "slug": "daily-steps", "title": "Daily steps", "team_id": team.String(),
		"query": q["query"], "query_config": map[string]any{}, "scheduling_preferences": map[string]any{"minimum_gap_duration_second": nil},
		"result_table_schema": schema, "resource_dependencies": []any{"steps"},
		"export_preferences":       map[string]any{"data_events": map[string]any{"enabled": true}, "fhir_observations": false},
		"fhir_observation_mappers": []any{},
	}, q)
	require.Equal(t, "SLUG_TAKEN", o.Send(t, "POST", o.base+"/continuous_query", body).Want(t, 400).ErrorType(t))

	require.JSONEq(t, `{"table":{"index":[],"group_key.0":[],"sum.steps.value":[]}}`, string(o.Send(t, "GET", o.table+id+"/result_table", nil).Want(t, 200).Body))
	o.walk(t, 1, 100)
	want := `{"table":{"index":["2026-03-01T00:00:00"],"group_key.0":["2026-03-01T00:00:00"],"sum.steps.value":[100]}}`
	for _, name := range []string{id, "daily-steps"} {
		r := o.Send(t, "GET", o.table+name+"/result_table", nil).Want(t, 200)
		require.Equal(t, "application/json", r.Header.Get("Content-Type"))
		require.JSONEq(t, want, string(r.Body))
	}
	file := o.With("Accept", "application/vnd.apache.parquet").Send(t, "GET", o.table+"daily-steps/result_table", nil).Want(t, 200)
	require.Equal(t, "application/vnd.apache.parquet", file.Header.Get("Content-Type"))
	require.True(t, bytes.HasPrefix(file.Body, []byte("PAR1")))
	o.With("Accept", "application/vnd.healthlab.tar+gzip+parquet").Send(t, "GET", o.table+"daily-steps/result_table", nil).Want(t, 200)
	require.Equal(t, "NOT_ACCEPTABLE", o.With("Accept", "text/html").Send(t, "GET", o.table+"daily-steps/result_table", nil).Want(t, 406).ErrorType(t))

	o.now = o.now.Add(time.Hour)
	o.walk(t, 2, 50)
	var history struct {
		Data []object `json:"data"`
		Next *string  `json:"next_cursor"`
	}
	o.Send(t, "GET", o.table+"daily-steps/task_history?limit=1", nil).Want(t, 200).JSON(t, &history)
	require.Equal(t, []object{{
		"query_id": id, "user_id": o.user.String(), "status": "completed", "scheduled_at": "2026-03-04T13:00:00+00:00",
		"started_at": "2026-03-04T13:00:00+00:00", "ended_at": "2026-03-04T13:00:00+00:00", "error_details": nil,
	}}, history.Data)
	require.NotNil(t, history.Next)
	o.Send(t, "GET", o.table+"daily-steps/task_history?next_cursor="+*history.Next, nil).Want(t, 200).JSON(t, &history)
	require.Equal(t, []any{"completed", "skipped"}, []any{history.Data[0]["status"], history.Data[1]["status"]})
	require.Len(t, history.Data, 2)
	require.Nil(t, history.Next)

	o.Send(t, "PATCH", o.base+"/continuous_query/"+id, object{"title": "Steps", "scheduling_preferences": object{"minimum_gap_duration_second": 3600}}).
		Want(t, 200).JSON(t, &q)
	require.Equal(t, "Steps", q["title"])
	o.Send(t, "DELETE", o.base+"/continuous_query/"+id, nil).Want(t, 200).JSON(t, &q)
	require.Equal(t, "archived", q["status"])
	require.Equal(t, "QUERY_NOT_FOUND", o.Send(t, "GET", o.table+"daily-steps/result_table", nil).Want(t, 404).ErrorType(t))
	o.Send(t, "GET", o.table+id+"/result_table", nil).Want(t, 200)
	o.Send(t, "POST", o.base+"/continuous_query", body).Want(t, 200)
	var page struct {
		Data []object `json:"data"`
		Next *string  `json:"next_cursor"`
	}
	o.Send(t, "GET", o.base+"/continuous_query?limit=1", nil).Want(t, 200).JSON(t, &page)
	require.Equal(t, "active", page.Data[0]["status"])
	o.Send(t, "GET", o.base+"/continuous_query?next_cursor="+*page.Next, nil).Want(t, 200).JSON(t, &page)
	require.Equal(t, []any{id}, []any{page.Data[0]["id"]})
}

func TestContinuousQuery_refusesInvalidInputByField(t *testing.T) {
	o := newObservatory(t)
	all := o.base + "/continuous_query"
	bad := object{"slug": "A", "title": "x", "query": object{"select": []any{object{"func": "sum", "arg": object{"activity": "step"}}}, "where": "steps >"}, "colour": 1}
	r := o.Send(t, "POST", all+"?x=1", bad).Want(t, 422)
	require.ElementsMatch(t, []string{"query.x", "body.slug", "body.query.select.0.arg.activity", "body.query.where", "body.colour"}, r.Locs(t))
	require.Contains(t, string(r.Body), "did you mean steps?")
	require.Equal(t, []string{"body.title"}, o.Send(t, "PATCH", all+"/"+uuid.NewString(), object{"title": "!"}).Want(t, 422).Locs(t))
	require.Equal(t, []string{"query.next_cursor"}, o.Send(t, "GET", all+"?next_cursor=x", nil).Want(t, 422).Locs(t))
	for _, method := range []string{"PATCH", "DELETE"} {
		var body any
		if method == "PATCH" {
			body = object{}
		}
		require.Equal(t, "NOT_FOUND", o.Send(t, method, all+"/"+uuid.NewString(), body).Want(t, 404).ErrorType(t))
	}
	require.Equal(t, "UNAUTHORIZED", o.With("x-management-key", "mk_wrong").Send(t, "GET", all, nil).Want(t, 401).ErrorType(t))
	require.Equal(t, "NOT_FOUND", o.Send(t, "GET", strings.Replace(all, "sandbox", "production", 1), nil).Want(t, 404).ErrorType(t))

	nobody := "/aggregate/v1/user/" + uuid.NewString() + "/continuous_query/daily-steps"
	for _, path := range []string{"/result_table", "/task_history"} {
		require.Equal(t, "USER_NOT_FOUND", o.Send(t, "GET", nobody+path, nil).Want(t, 404).ErrorType(t))
		require.Equal(t, "QUERY_NOT_FOUND", o.Send(t, "GET", o.table+"nothing"+path, nil).Want(t, 404).ErrorType(t))
	}
	o.Send(t, "POST", all, object{"slug": "s", "title": "", "query": stepsQuery()}).Want(t, 200)
	require.Equal(t, []string{"query.next_cursor"}, o.Send(t, "GET", o.table+"s/task_history?next_cursor=x", nil).Want(t, 422).Locs(t))
}
