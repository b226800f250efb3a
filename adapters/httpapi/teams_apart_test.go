package httpapi_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/linking/pull"
	"github.com/healthlab-dev/healthlab/orders/exchange"
)

// owned makes a thing of each kind for the team of goodKey, and returns their ids by the names
// of the contract.
func (c *fixture) owned() map[string]string {
	c.t.Helper()
	ids := map[string]string{"user_id": c.user.String(), "team_id": team.String(), "org_id": org.String()}
	read := func(r *contract.Reply, field string) string {
		var v map[string]any
		r.JSON(c.t, &v)
		id, ok := v[field].(string)
		require.True(c.t, ok, field)
		return id
	}
	_, err := c.health.CreateUser(c.t.Context(), team, healthdata.NewUser{ClientUserID: "only-here"})
	require.NoError(c.t, err)
	ids["client_user_id"] = "only-here"

	c.post(c.summary("workouts"), upload(whole["workouts"]), 200)
	c.post(c.summary("sleep"), upload(whole["sleep"]), 200)
	var workouts struct{ Workouts []healthdata.Workout }
	c.get(c.summary("workouts")+year, 200).JSON(c.t, &workouts)
	ids["workout_id"] = workouts.Workouts[0].ID.String()
	var sleep struct{ Sleep []healthdata.Sleep }
	c.get(c.summary("sleep")+year, 200).JSON(c.t, &sleep)
	ids["sleep_id"] = sleep.Sleep[0].ID.String()

	o := c.placed()
	ids["order_id"], ids["transaction_id"] = o.ID.String(), o.OrderTransaction.ID.String()
	c.unmatched(o, "1")
	ids["raw_result_id"] = c.unmatchedPage("").Data[0].ID.String()
	body := object{"case": exchange.MatchNone, "order_source": "managed", "result_status": "final", "interpretation": "abnormal"}
	ids["run_id"] = read(c.With("x-idempotency-key", "k").Send(c.t, "POST", "/v3/unmatched_result_test", body).Want(c.t, 202), "run_id")
	ids["lab_test_id"] = read(c.post("/v3/lab_tests", own("Mine", nil), 200), "id")

	ids["export_id"] = read(c.post("/v2/user/"+c.user.String()+"/export", nil, 202), "id")
	kind, text := form(file("application/pdf", reportText), field{"user_id", "", c.user.String()})
	r := httptest.NewRequestWithContext(c.t.Context(), http.MethodPost, jobPath, bytes.NewReader(text))
	r.Header.Set("Content-Type", kind)
	ids["job_id"] = read(c.Do(c.t, r).Want(c.t, 200), "id")

	manage, base := c.manager(), "/v1/org/"+org.String()+"/team/"+team.String()+"/sandbox"
	query := object{"slug": "daily-steps", "title": "Daily steps", "query": stepsQuery()}
	ids["query_id"] = read(manage.Send(c.t, "POST", base+"/continuous_query", query).Want(c.t, 200), "id")
	ids["webhook_id"] = read(manage.Send(c.t, "POST", base+"/webhook", object{"url": "https://one.example/"}).Want(c.t, 200), "id")
	return ids
}

func (c *fixture) manager() *contract.Client {
	return contract.NewClient(c.t, c.config.handler(), httpapi.OpenAPI()).With("x-management-key", "m")
}

// A team that calls every operation with the ids of another team gets the answers that ids
// which do not exist get, and changes nothing.
func TestTeam_cannotReadOrChangeAnotherTeam(t *testing.T) {
	c := fullFixture(t)
	c.config.Organisations = nil // it would have to know the two teams; TestTeams_areManagedOnlyByTheirOrganisation is about it
	c.config.TeamIdentity = func(_ context.Context, of healthlab.TeamID) (httpapi.TeamIdentity, error) {
		if of == team {
			return httpapi.TeamIdentity{Org: org, Name: "Riverside"}, nil
		}
		return httpapi.TeamIdentity{Org: otherOrg, Name: "Lakeside"}, nil
	}
	c.config.AuthenticateManagement = func(r *http.Request) (httpapi.Manager, error) {
		mine, mandated := org, team
		switch r.Header.Get("x-management-key") {
		case "m":
		case "other":
			mine, mandated = otherOrg, otherTeam
		default:
			return httpapi.Manager{}, healthlab.Unauthenticated
		}
		return httpapi.Manager{Name: "m", Role: httpapi.RoleAdmin, Mandate: func(o uuid.UUID, tm healthlab.TeamID) bool { return o == mine && tm == mandated }}, nil
	}
	c.config.Pulls = newPulls(t, memory.New(nil), c.config.Health, nil, &pull.Options{Now: time.Now, Log: c.logs.Logger()})
	h := c.config.handler()
	c.Client = contract.NewClient(t, h, httpapi.OpenAPI()).With("x-service-api-key", goodKey)
	ids := c.owned()
	path := map[string]string{"resource": "heartrate", "environment": "sandbox", "provider": "manual", "region": "us", "oauth_provider": "acme_band"}
	names := []string{}
	for name, id := range ids {
		path[name], names = id, append(names, name)
	}
	manage := c.manager()
	state := func() map[string]string {
		out := map[string]string{}
		for _, op := range httpapi.Routes(c.config.of()) {
			method, target, _ := strings.Cut(strings.TrimSuffix(op.Pattern, "{$}"), " ")
			for name, value := range path {
				target = strings.ReplaceAll(target, "{"+name+"}", value)
			}
			if method == http.MethodGet && !strings.Contains(target, "{") && !strings.Contains(target, "access_log") {
				for name, client := range map[string]*contract.Client{"key": c.Client, "management key": manage} {
					out[op.ID+" by "+name] = string(client.Send(t, "GET", target, nil).Body)
				}
			}
		}
		return out
	}
	before := state()
	except := map[string]string{
		"create_user":          "the other team may use the same client_user_id, once",
		"read_access_log":      "it has what the other team itself has asked for",
		"read_user_access_log": "as read_access_log",
	}
	for _, header := range []string{"X-Service-Api-Key", "X-Management-Key"} {
		found, err := contract.Foreign(t.Context(), h, contract.Probes{
			Document: httpapi.OpenAPI(), Path: path, Header: http.Header{header: {"other"}},
		}, names, except, 1, prove.Count(8, 200))
		require.NoError(t, err)
		require.Empty(t, found)
	}
	require.Equal(t, before, state())
}
