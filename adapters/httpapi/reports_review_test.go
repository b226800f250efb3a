package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	"image/png"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/privacy/accesslog"
)

// white is a renderer of files with two pages.
type white struct{}

func (white) RenderPage(_ context.Context, _ labreport.File, page, _ int) (image.Image, error) {
	if page > 2 {
		return nil, healthlab.NotFound
	}
	return image.NewGray(image.Rect(0, 0, 30, 40)), nil
}

// reviewer manages the reports of a team over HTTP.
type reviewer struct {
	*lab
	management *contract.Client
}

func newReviewer(t *testing.T) *reviewer {
	t.Helper()
	v := &reviewer{lab: newLab(t, &labreport.Options{Renderer: white{}})}
	v.config.Environment = healthlab.Production
	v.config.AuthenticateManagement = httpapi.ManagementAuth([]httpapi.ManagementKey{{
		Sum: httpapi.SumKey(managementKey),
		Mandate: func(which uuid.UUID, of healthlab.TeamID) bool {
			return which == org && (of == team || of == otherTeam)
		},
	}}, nil)
	v.Client = contract.NewClient(t, v.handler(), httpapi.OpenAPI()).With("x-service-api-key", goodKey)
	v.management = contract.NewClient(t, v.handler(), httpapi.OpenAPI()).With("x-management-key", managementKey)
	return v
}

func (v *reviewer) path(of healthlab.TeamID, rest string) string {
	return "/v1/org/" + org.String() + "/team/" + of.String() + "/production/lab_report_" + rest
}

func (v *reviewer) send(method, rest string, body any) *contract.Reply {
	v.t.Helper()
	return v.management.Send(v.t, method, v.path(team, rest), body)
}

// wait uploads a report and reads it, and returns the id of the job under review.
func (v *reviewer) wait() string {
	v.t.Helper()
	var made struct{ ID string }
	v.upload(file("application/pdf", reportText), v.whose(), field{"needs_human_review", "", "true"}).Want(v.t, 200).JSON(v.t, &made)
	v.work()
	return made.ID
}

func TestReportReview_approvesCorrectsOrRejectsAJob(t *testing.T) {
	v := newReviewer(t)
	id := v.wait()
	var job struct {
		Status, UserID string
		ReviewedBy     *string `json:"reviewed_by"`
		ReviewedAt     *string `json:"reviewed_at"`
		Draft, Data    *labreport.Data
	}
	v.send("GET", "job/"+id, nil).Want(t, 200).JSON(t, &job)
	require.Equal(t, "pending_review", job.Status)
	require.Nil(t, job.Data)
	require.Equal(t, "112", job.Draft.Results[0].Value)
	require.Equal(t, 1, job.Draft.Results[0].Evidence["value"].Page)
	require.InDelta(t, 0.25, job.Draft.Results[0].Evidence["value"].Box.X, 0.01)

	body := `{"reviewed_by":"dr. example","corrections":[{"action":"change","result":0,"field":"value","value":"88"},` +
		`{"action":"change","result":2,"field":"units","value":null},{"action":"drop","result":1},` +
		`{"action":"add","row":{"test_name":"Chloride","value":"101","units":"mmol/L","reference_range":"98 - 110"}}]}`
	v.send("POST", "job/"+id+"/approve", body).Want(t, 200).JSON(t, &job)
	require.Equal(t, "completed", job.Status)
	require.Equal(t, "dr. example", *job.ReviewedBy)
	require.Equal(t, "112", job.Draft.Results[0].Value)
	require.Len(t, job.Data.Results, 3)
	require.Equal(t, labreport.Normal, *job.Data.Results[0].Interpretation)
	require.Equal(t, "2075-0", job.Data.Results[2].LoincMatches[0].LoincCode)
	published := string(v.get(jobPath+"/"+id, 200).Body)
	require.Contains(t, published, `"value":"88"`)
	require.Contains(t, published, `"is_reviewed":true`)
	require.Equal(t, "JOB_NOT_IN_REVIEW", v.send("POST", "job/"+id+"/approve", body).Want(t, 400).ErrorType(t))

	r := v.send("GET", "correction", nil).Want(t, 200)
	require.Equal(t, "application/x-ndjson", r.Header.Get("Content-Type"))
	lines := strings.Split(strings.TrimSuffix(string(r.Body), "\n"), "\n")
	require.Len(t, lines, 4)
	var example labreport.TrainingExample
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &example))
	require.Equal(t, "112", *example.Read)
	require.Equal(t, "88", *example.Correction.Value)
	require.Equal(t, "Glucose", example.Draft.TestName)

	rejected := v.wait()
	v.send("POST", "job/"+rejected+"/reject", `{"reviewed_by":"dr. example","failure_reason":"low_quality"}`).Want(t, 200).JSON(t, &job)
	require.Equal(t, "failed", job.Status)
	require.Equal(t, "JOB_NOT_IN_REVIEW", v.send("POST", "job/"+rejected+"/reject", `{"reviewed_by":"x","failure_reason":"low_quality"}`).Want(t, 400).ErrorType(t))
}

func TestReportReview_invalidBodyIsRefusedByField(t *testing.T) {
	v := newReviewer(t)
	id := v.wait()
	for body, where := range map[string][]string{
		`{}`:                            {"body.reviewed_by"},
		`{"reviewed_by":""}`:            {"body.reviewed_by"},
		`{"reviewed_by":"x","other":1}`: {"body.other"},
		`{"reviewed_by":"  "}`:          {"body.reviewed_by"},
		`{"reviewed_by":"a\u0000b"}`:    {"body.reviewed_by"},
		`{"reviewed_by":"x","corrections":[{"action":"drop","result":0},{"action":"drop","result":1},{"action":"drop","result":2}]}`: {"body.corrections"},
		`{"reviewed_by":"x","corrections":[{"action":"change","result":7,"field":"value","value":"1"},{"action":"mend"}]}`:           {"body.corrections.0.result", "body.corrections.1.action"},
		`{"reviewed_by":"x","corrections":[{"action":"add","row":{"test_name":"Iron"}}]}`:                                            {"body.corrections.0.row.value"},
	} {
		require.ElementsMatch(t, where, v.send("POST", "job/"+id+"/approve", body).Want(t, 422).Locs(t), body)
	}
	require.Equal(t, []string{"body.failure_reason"}, v.send("POST", "job/"+id+"/reject", `{"reviewed_by":"x","failure_reason":"ugly"}`).Want(t, 422).Locs(t))
	require.Equal(t, "JOB_NOT_FOUND", v.send("POST", "job/"+uuid.NewString()+"/approve", `{"reviewed_by":"x"}`).Want(t, 404).ErrorType(t))
	v.send("GET", "job/x", nil).Want(t, 422)
	require.Equal(t, "UNAUTHORIZED", v.Send(t, "GET", v.path(team, "job"), nil).Want(t, 401).ErrorType(t), "a team's key")
	wrong := strings.Replace(v.path(team, "job"), "/production/", "/sandbox/", 1)
	v.management.Send(t, "GET", wrong, nil).Want(t, 404)
	v.management.Send(t, "GET", v.path(healthlab.TeamID{UUID: uuid.New()}, "job"), nil).Want(t, 404)
	for _, rest := range []string{"job/" + id, "job/" + id + "/page/1"} {
		require.Equal(t, "JOB_NOT_FOUND", v.management.Send(t, "GET", v.path(otherTeam, rest), nil).Want(t, 404).ErrorType(t))
	}
	require.Equal(t, "JOB_NOT_FOUND", v.management.Send(t, "POST", v.path(otherTeam, "job/"+id+"/approve"), `{"reviewed_by":"x"}`).Want(t, 404).ErrorType(t))
	require.Equal(t, "JOB_NOT_FOUND", v.management.Send(t, "POST", v.path(otherTeam, "job/"+id+"/reject"), `{"reviewed_by":"x","failure_reason":"low_quality"}`).Want(t, 404).ErrorType(t))
	require.Empty(t, v.management.Send(t, "GET", v.path(otherTeam, "correction"), nil).Want(t, 200).Body)
	v.send("POST", "job/"+id+"/approve", `{"reviewed_by":"`+strings.Repeat("x", 5<<20)+`"}`).Want(t, http.StatusRequestEntityTooLarge)
	var job struct{ Status string }
	v.send("GET", "job/"+id, nil).Want(t, 200).JSON(t, &job)
	require.Equal(t, "pending_review", job.Status)
}

// Reading a report, its pages or its corrections is in the access log, with the user whose
// report it is.
func TestReportReview_everyReadIsInTheAccessLog(t *testing.T) {
	v := newReviewer(t)
	access := newAccess(t)
	v.config.Access = access
	v.management = contract.NewClient(t, v.handler(), httpapi.OpenAPI()).With("x-management-key", managementKey)
	id := v.wait()
	v.send("GET", "correction", nil).Want(t, 200) // there is none yet
	v.send("GET", "job", nil).Want(t, 200)
	v.send("GET", "job/"+id, nil).Want(t, 200)
	v.send("GET", "job/"+id+"/page/1", nil).Want(t, 200)
	v.send("POST", "job/"+id+"/approve", `{"reviewed_by":"dr. example","corrections":[{"action":"drop","result":1}]}`).Want(t, 200)
	v.send("GET", "correction", nil).Want(t, 200)
	page, err := access.Lines(t.Context(), accesslog.Query{Team: team, N: 50})
	require.NoError(t, err)
	var got []string
	for _, l := range page {
		require.Equal(t, v.user, l.Person, l.Operation)
		got = append(got, l.Operation)
	}
	require.Equal(t, []string{"list_lab_report_jobs", "read_lab_report_review", "read_lab_report_page", "approve_lab_report", "export_lab_report_corrections"}, got)
}

func TestReportJobs_areFilteredAndPaged(t *testing.T) {
	v := newReviewer(t)
	first, second := v.wait(), v.wait()
	v.send("POST", "job/"+first+"/approve", `{"reviewed_by":"dr. example"}`).Want(t, 200)
	list := func(query string) (ids []string, next *string) {
		t.Helper()
		var out struct {
			Data       []struct{ ID string }
			NextCursor *string `json:"next_cursor"`
		}
		v.send("GET", "job"+query, nil).Want(t, 200).JSON(t, &out)
		for _, j := range out.Data {
			ids = append(ids, j.ID)
		}
		return ids, out.NextCursor
	}
	ids, next := list("")
	require.Equal(t, []string{second, first}, ids)
	require.Nil(t, next)
	ids, next = list("?limit=1")
	require.Equal(t, []string{second}, ids)
	ids, next = list("?limit=1&next_cursor=" + *next)
	require.Equal(t, []string{first}, ids)
	require.Nil(t, next)
	ids, _ = list("?status=completed")
	require.Equal(t, []string{first}, ids)
	ids, _ = list("?status=completed&status=pending_review&user_id=" + v.user.String())
	require.Len(t, ids, 2)
	ids, _ = list("?user_id=" + uuid.NewString())
	require.Empty(t, ids)
	for query, where := range map[string]string{"?status=done": "query.status.0", "?user_id=x": "query.user_id", "?limit=0": "query.limit", "?next_cursor=x": "query.next_cursor", "?page=1": "query.page"} {
		require.Equal(t, []string{where}, v.send("GET", "job"+query, nil).Want(t, 422).Locs(t))
	}
}

func TestReportPage_isServedAsAnImage(t *testing.T) {
	v := newReviewer(t)
	id := v.wait()
	r := v.send("GET", "job/"+id+"/page/2", nil).Want(t, 200)
	require.Equal(t, "image/png", r.Header.Get("Content-Type"))
	require.Contains(t, r.Header.Get("Cache-Control"), "no-store")
	c, err := png.DecodeConfig(bytes.NewReader(r.Body))
	require.NoError(t, err)
	require.Equal(t, 30, c.Width)
	for _, page := range []string{"0", "3", "31"} {
		require.Equal(t, "PAGE_NOT_FOUND", v.send("GET", "job/"+id+"/page/"+page, nil).Want(t, 404).ErrorType(t))
	}
	require.Equal(t, []string{"path.page"}, v.send("GET", "job/"+id+"/page/x", nil).Want(t, 422).Locs(t))
	require.Equal(t, "JOB_NOT_FOUND", v.send("GET", "job/"+uuid.NewString()+"/page/1", nil).Want(t, 404).ErrorType(t))

	v.config.Reports = newReports(t, v.store, v.health, nil, v.logs)
	v.management = contract.NewClient(t, v.handler(), httpapi.OpenAPI()).With("x-management-key", managementKey)
	require.Equal(t, "PAGE_NOT_DRAWN", v.send("GET", "job/"+id+"/page/1", nil).Want(t, http.StatusNotImplemented).ErrorType(t))
}
