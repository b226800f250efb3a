package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
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
	"github.com/healthlab-dev/healthlab/aggregate/continuous/ehr"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// pipelineOffice is the management of FHIR servers over HTTP.
type pipelineOffice struct {
	*contract.Client
	t       *testing.T
	base    string
	service *ehr.Service
	health  *healthdata.Service
}

func newPipelineOffice(t *testing.T) *pipelineOffice {
	t.Helper()
	o := &pipelineOffice{t: t, base: "/v1/org/" + org.String() + "/team/" + team.String() + "/sandbox/team_ehr_pipelines"}
	store := memory.New(&memory.Options{Pipelines: true})
	o.health = newHealth(t, store)
	var err error
	o.service, err = ehr.New(store.Pipelines(), newSealer(t), &ehr.Options{
		Resources: []string{"heartrate", "weight"},
		CheckURL: func(raw string) error {
			if !strings.HasPrefix(raw, "https://ehr.example.com") {
				return errors.New("private")
			}
			return nil
		},
	})
	require.NoError(t, err)
	h := httpapi.Handler(httpapi.Config{
		Authenticate: func(*http.Request) (httpapi.Caller, error) { return httpapi.Caller{Team: team}, nil },
		Environment:  healthlab.Sandbox,
		AuthenticateManagement: httpapi.ManagementAuth([]httpapi.ManagementKey{{
			Sum:     httpapi.SumKey(managementKey),
			Mandate: func(which uuid.UUID, tm healthlab.TeamID) bool { return which == org && tm == team },
		}}, nil),
		Parts: (&httpapi.Services{Pipelines: o.service}).Parts(),
	})
	o.Client = contract.NewClient(t, h, httpapi.OpenAPI()).With("x-management-key", managementKey)
	return o
}

// pipelineReply is an answer of the API.
type pipelineReply struct {
	t    *testing.T
	Body string
}

// Text returns a text of the answer by its name.
func (r pipelineReply) Text(name string) string {
	r.t.Helper()
	var all map[string]any
	require.NoError(r.t, json.Unmarshal([]byte(r.Body), &all))
	value, ok := all[name].(string)
	require.True(r.t, ok, name)
	return value
}

// ask sends a request that must be answered with a status.
func (o *pipelineOffice) ask(status int, method, path, body string) pipelineReply {
	o.t.Helper()
	var sent any
	if body != "" {
		sent = body
	}
	return pipelineReply{o.t, string(o.Send(o.t, method, path, sent).Want(o.t, status).Body)}
}

func TestEHRPipeline_isCreatedReadPatchedAndDeleted(t *testing.T) {
	o := newPipelineOffice(t)
	made := o.ask(200, "POST", o.base, `{"title": "clinic", "base_url": "https://ehr.example.com/fhir/", "client_id": "healthlab", "from": "2026-01-01", "resources": ["weight"]}`)
	require.Equal(t, "https://ehr.example.com/fhir", made.Text("base_url"))
	require.Equal(t, "backend_services", made.Text("auth"))
	require.Contains(t, made.Body, `"crv":"P-384"`)
	require.NotContains(t, made.Body, `"d":`)
	one := o.base + "/" + made.Text("id")
	o.ask(200, "POST", o.base, `{"title": "other", "base_url": "https://ehr.example.com/r4", "token": "secret-token", "orders": false}`)

	list := o.ask(200, "GET", o.base, "")
	require.Equal(t, 2, strings.Count(list.Body, `"title"`))
	require.NotContains(t, list.Body, "secret-token")
	require.Equal(t, made.Text("id"), o.ask(200, "GET", one, "").Text("id"))

	changed := o.ask(200, "PATCH", one, `{"title": "ward", "status": "disabled", "resources": ["weight", "heartrate"], "orders": false}`)
	require.Equal(t, "disabled", changed.Text("status"))
	require.Equal(t, "ward", changed.Text("title"))
	o.ask(422, "PATCH", one, `{"token": "another"}`)

	o.ask(200, "DELETE", one, "")
	o.ask(404, "GET", one, "")
	o.ask(404, "PATCH", one, `{}`)
	o.ask(404, "DELETE", one, "")
	o.ask(404, "GET", one+"/dead_letters", "")
	o.ask(404, "GET", one+"/runs", "")
	o.ask(404, "POST", one+"/replay", `{}`)
	require.Equal(t, 1, strings.Count(o.ask(200, "GET", o.base, "").Body, `"title"`))
}

func TestEHRPipeline_refusesInvalidInput(t *testing.T) {
	o := newPipelineOffice(t)
	for _, body := range []string{
		`{"title": "", "base_url": "https://ehr.example.com"}`, `{"title": "a"}`,
		`{"title": "a", "base_url": "http://10.0.0.1/fhir"}`, `{"title": "a", "base_url": "https://ehr.example.com/fhir?a=b"}`,
		`{"title": "a", "base_url": "https://ehr.example.com", "token": "t", "client_id": "c"}`,
		`{"title": "a", "base_url": "https://ehr.example.com", "token": "with space"}`,
		`{"title": "a", "base_url": "https://ehr.example.com", "scope": "system/*.write"}`,
		`{"title": "a", "base_url": "https://ehr.example.com", "client_id": "c", "token_url": "http://169.254.169.254/"}`,
		`{"title": "a", "base_url": "https://ehr.example.com", "client_id": "c", "private_key": "no key"}`,
		`{"title": "a", "base_url": "https://ehr.example.com", "resources": ["nothing"]}`,
		`{"title": "a", "base_url": "https://ehr.example.com", "resources": ["weight"], "unknown": 1}`,
	} {
		r := o.ask(422, "POST", o.base, body)
		require.NotContains(t, r.Body, "169.254")
	}
	for range 10 {
		o.ask(200, "POST", o.base, `{"title": "a", "base_url": "https://ehr.example.com"}`)
	}
	require.Contains(t, o.ask(400, "POST", o.base, `{"title": "a", "base_url": "https://ehr.example.com"}`).Body, ehr.RulePipelineLimit)
}

func TestEHRPipeline_deadLettersAreListedAndReplayed(t *testing.T) {
	o := newPipelineOffice(t)
	ctx := t.Context()
	u, err := o.health.CreateUser(ctx, team, healthdata.NewUser{ClientUserID: "letters"})
	require.NoError(t, err)
	one := o.base + "/" + o.ask(200, "POST", o.base, `{"title": "clinic", "base_url": "https://ehr.example.com/fhir"}`).Text("id")
	rows := o.service.Rows()
	claimed := func() *ehr.Task {
		for more := true; more; {
			more, err = rows.Sweep(context.WithoutCancel(ctx))
			require.NoError(t, err)
		}
		list, err := rows.Claim(ctx, 1, time.Minute)
		require.NoError(t, err)
		require.Len(t, list, 1)
		return &list[0]
	}
	task := claimed()
	var results []ehr.Result
	for _, id := range []string{"a", "b", "c"} {
		results = append(results, ehr.Result{Subject: "data/weight", Month: "2026-03", Type: "Observation", ID: id, Version: "1", Span: aggregate.Always,
			Refused: &ehr.Refusal{Status: 422, Codes: []string{"invalid"}, Expressions: []string{"Observation.code"}}})
	}
	require.NoError(t, rows.Record(ctx, task, time.Minute, results))
	require.NoError(t, rows.Finish(ctx, task, nil, time.Time{}))

	runs := o.ask(200, "GET", one+"/runs", "")
	require.Contains(t, runs.Body, `"transactions":1,"sent":0,"failed":0,"dead_letters":3,"last_error":null}],"next_cursor":null`)
	o.ask(422, "GET", one+"/runs?next_cursor=wrong", "")
	o.ask(422, "GET", one+"/runs?limit=0", "")

	page := o.ask(200, "GET", one+"/dead_letters?limit=2", "")
	require.Equal(t, 2, strings.Count(page.Body, `"resource_id"`))
	rest := o.ask(200, "GET", one+"/dead_letters?limit=2&next_cursor="+page.Text("next_cursor"), "")
	require.Equal(t, 1, strings.Count(rest.Body, `"resource_id"`))
	o.ask(422, "GET", one+"/dead_letters?next_cursor=wrong", "")
	require.Contains(t, o.ask(200, "GET", one, "").Body, `"dead_letters":3`)

	o.ask(404, "POST", one+"/replay", `{"dead_letter_ids": ["`+uuid.NewString()+`"]}`)
	o.ask(422, "POST", one+"/replay", `{"dead_letter_ids": []}`)
	require.Contains(t, o.ask(200, "POST", one+"/replay", `{"dead_letter_ids": ["`+ehr.LetterID(task.Pipeline.ID, u.ID, "Observation", "a").String()+`"]}`).Body, `"replayed":1`)
	require.Contains(t, o.ask(200, "POST", one+"/replay", `{}`).Body, `"replayed":3`)
	require.Equal(t, map[string]ehr.Span{"data/weight": aggregate.Always}, claimed().Marks)
}
