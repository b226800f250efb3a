package httpapi_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/linking/pull"
	"github.com/healthlab-dev/healthlab/orders"
)

// boundFixture is a full service where one user of the team, the fixture's, has a thing of each
// kind, and a caller is bound to another user of the team.
type boundFixture struct {
	*fixture
	own   healthlab.UserID
	bound *contract.Client
	// ids of the fixture's user, by the names of the contract, and what else paths need.
	ids, path map[string]string
}

const boundKey = "bound"

func newBoundFixture(t *testing.T) *boundFixture {
	t.Helper()
	c := fullFixture(t)
	c.config.Organisations = nil // it would have to know the team
	c.config.Pulls = newPulls(t, memory.New(nil), c.config.Health, nil, &pull.Options{Now: time.Now, Log: c.logs.Logger()})
	own, err := c.health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "bound-1"})
	require.NoError(t, err)
	_, err = c.health.Connections().ConnectLinked(t.Context(), team, own.ID, healthdata.NewConnection{Provider: "manual"})
	require.NoError(t, err)
	c.config.AuthenticateManagement = func(r *http.Request) (httpapi.Manager, error) {
		if r.Header.Get("x-management-key") != "m" {
			return httpapi.Manager{}, healthlab.Unauthenticated
		}
		return httpapi.Manager{Mandate: httpapi.EveryTeam}, nil
	}
	byKey := c.config.Authenticate
	c.config.Authenticate = func(r *http.Request) (httpapi.Caller, error) {
		if r.Header.Get("x-service-api-key") == boundKey {
			return httpapi.Caller{Team: team, User: own.ID}, nil
		}
		return byKey(r)
	}
	c.Client = contract.NewClient(t, c.config.handler(), httpapi.OpenAPI()).With("x-service-api-key", goodKey)
	out := &boundFixture{fixture: c, own: own.ID, bound: c.With("x-service-api-key", boundKey), ids: c.owned()}
	delete(out.ids, "team_id") // the caller's too
	delete(out.ids, "org_id")
	out.ids["client_user_id"] = "patient-77"
	out.ids["critical_result_id"] = criticalLoop(t, c.config, c.user).ID.String()
	out.path = map[string]string{"resource": "heartrate", "environment": "sandbox", "provider": "manual", "region": "us", "oauth_provider": "acme_band", "team_id": team.String(), "org_id": org.String()}
	for name, id := range out.ids {
		out.path[name] = id
	}
	return out
}

// state is what the team reads of everything of the fixture's user.
func (c *boundFixture) state() map[string]string {
	out := map[string]string{}
	manage := c.manager()
	for _, op := range httpapi.Routes(c.config.of()) {
		method, target, _ := strings.Cut(strings.TrimSuffix(op.Pattern, "{$}"), " ")
		for name, value := range c.path {
			target = strings.ReplaceAll(target, "{"+name+"}", value)
		}
		// The number of users and orders of the team is not the user's.
		if method == http.MethodGet && !strings.Contains(target, "{") && !strings.Contains(target, "access_log") && !slices.Contains(teamReads, op.ID) {
			out[op.ID] = string(c.Send(c.t, method, target, nil).Body)
			out[op.ID+" by management key"] = string(manage.Send(c.t, method, target, nil).Body)
		}
	}
	return out
}

var teamReads = []string{"list_users", "read_team_metrics", "list_orders", "count_orders", "introspect_resources", "introspect_historical_pull", "list_lab_report_jobs"}

// Every operation that takes a caller says what it is for one that is bound to a user, as the
// contract names users: in the path, in the query, in the body.
func TestOperations_userBindingsEqualThoseOfTheContract(t *testing.T) {
	c, _ := full(t)
	bounds := httpapi.Bounds(c.of())
	var doc struct {
		Paths map[string]map[string]struct {
			ID         string                `json:"operationId"`
			Security   []map[string][]string `json:"security"`
			Parameters []struct {
				In, Name string
				Required bool
			} `json:"parameters"`
		} `json:"paths"`
	}
	require.NoError(t, json.Unmarshal(httpapi.OpenAPI(), &doc))
	for path, methods := range doc.Paths {
		for _, op := range methods {
			if !slices.ContainsFunc(op.Security, func(s map[string][]string) bool { return s["TeamKey"] != nil }) {
				require.NotContains(t, bounds, op.ID)
				continue
			}
			stated := bounds[op.ID]
			require.True(t, stated.Stated(), op.ID)
			if stated.String() == server.TeamOnly.String() {
				continue
			}
			if strings.Contains(path, "{user_id}") {
				require.Equal(t, server.UserInPath.String(), stated.String(), op.ID)
			}
			for _, p := range op.Parameters {
				if p.In == "query" && p.Name == "user_id" {
					want := server.UserInQuery
					if p.Required {
						want = server.RequiredInQuery
					}
					require.Equal(t, want.String(), stated.String(), op.ID)
				}
			}
			for _, name := range []string{"order_id", "transaction_id", "job_id", "critical_result_id", "workout_id", "sleep_id", "client_user_id"} {
				if strings.Contains(path, "{"+name+"}") && !strings.Contains(path, "{user_id}") {
					require.Equal(t, "owned "+name, stated.String(), op.ID)
				}
			}
		}
	}
}

// A caller that is bound to a user calls every operation with the ids of another user of its team,
// in paths, queries and bodies. It gets the answers that ids which do not exist get, and changes
// nothing.
func TestUserBoundCaller_cannotReadOrChangeAnotherUser(t *testing.T) {
	c := newBoundFixture(t)
	before := c.state()
	names := []string{}
	for name := range c.ids {
		if name != "lab_test_id" { // of the team's catalogue
			names = append(names, name)
		}
	}
	found, err := contract.Foreign(t.Context(), c.config.handler(), contract.Probes{
		Document: httpapi.OpenAPI(), Path: c.path, Header: http.Header{"X-Service-Api-Key": {boundKey}},
	}, names, map[string]string{"read_access_log": "it has what the caller itself has asked for"}, 1, prove.Count(8, 200))
	require.NoError(t, err)
	require.Empty(t, found)
	require.Equal(t, before, c.state())

	// Reads with another user's ids in the path find nothing; no answer has an id of that user.
	answered := 0
	bounds := httpapi.Bounds(c.config.of())
	for _, op := range httpapi.Routes(c.config.of()) {
		method, target, _ := strings.Cut(strings.TrimSuffix(op.Pattern, "{$}"), " ")
		stated, takesCaller := bounds[op.ID]
		if !takesCaller {
			continue
		}
		for name, value := range c.path {
			target = strings.ReplaceAll(target, "{"+name+"}", value)
		}
		for _, query := range []string{"", "?user_id=" + c.user.String(), "?start_date=2020-01-01", "?client_user_id=patient-77&user_id=" + strings.ToUpper(c.user.String())} {
			body := any(nil)
			if method != http.MethodGet {
				body = map[string]any{"user_id": c.user}
			}
			reply := c.bound.Send(t, method, target+query, body)
			text := string(reply.Body)
			for _, id := range append([]string{"patient-77"}, c.user.String(), c.ids["order_id"], c.ids["job_id"]) {
				// An error repeats the id that was asked for; Foreign compares errors.
				if reply.Status < 400 && strings.Contains(text, id) && op.ID != "read_access_log" {
					t.Errorf("%s%s: the answer %d has an id of another user", op.ID, query, reply.Status)
					answered++
				}
			}
			switch {
			case op.ID == "read_user_access_log" && reply.Status == 200: // as for a user who does not exist: what this caller has tried
				require.NotContains(t, text, c.user.String())
			case stated.String() == server.TeamOnly.String():
				require.Equal(t, 403, reply.Status, op.ID)
			case reply.Status < 300 && strings.HasPrefix(stated.String(), "owned"), reply.Status < 300 && stated.String() == server.UserInPath.String():
				t.Errorf("%s%s: %d for a thing of another user", op.ID, query, reply.Status)
				answered++
			case method == http.MethodGet && (strings.HasPrefix(stated.String(), "owned") || stated.String() == server.UserInPath.String()):
				require.Contains(t, []int{404, 422}, reply.Status, "%s%s: a read of a thing of another user finds nothing, or lacks a parameter", op.ID, query)
			}
		}
	}
	require.Zero(t, answered, "operations answer a user-bound caller for another user")
	require.Equal(t, before, c.state())
}

// The lists and counts of a bound caller hold the things of its user alone.
func TestUserBoundCaller_listsContainOnlyItsUser(t *testing.T) {
	c := newBoundFixture(t)
	var page struct {
		Users  []healthdata.User
		Total  int
		Orders []any
	}
	c.bound.Send(t, "GET", "/v2/user/", nil).Want(t, 200).JSON(t, &page)
	require.Equal(t, 1, page.Total)
	require.Equal(t, c.own, page.Users[0].ID)
	c.bound.Send(t, "GET", "/v2/user/?offset=1", nil).Want(t, 200).JSON(t, &page)
	require.Empty(t, page.Users)
	c.bound.Send(t, "GET", "/v3/orders", nil).Want(t, 200).JSON(t, &page)
	require.Zero(t, page.Total)
	c.bound.Send(t, "GET", "/v3/orders/count", nil).Want(t, 200).JSON(t, &page)
	require.Zero(t, page.Total)
	c.get("/v3/orders/count", 200).JSON(t, &page)
	require.NotZero(t, page.Total, "the team counts the orders of all")

	of := c.With("x-service-api-key", boundKey)
	of.Send(t, "GET", "/v2/user/"+c.own.String(), nil).Want(t, 200)
	of.Send(t, "GET", "/v2/user/resolve/bound-1", nil).Want(t, 200)
	of.Send(t, "GET", "/v2/user/resolve/patient-77", nil).Want(t, 404)
	of.Send(t, "GET", "/v3/order/"+c.ids["order_id"], nil).Want(t, 404)
	c.user = c.own
	mine := c.placed()
	of.Send(t, "GET", "/v3/order/"+mine.ID.String(), nil).Want(t, 200)
	of.Send(t, "GET", "/v3/order_transaction/"+mine.OrderTransaction.ID.String(), nil).Want(t, 200)
	of.Send(t, "GET", "/v3/orders", nil).Want(t, 200).JSON(t, &page)
	require.Equal(t, 1, page.Total)
	of.Send(t, "GET", "/v3/orders/count", nil).Want(t, 200).JSON(t, &page)
	require.Equal(t, 1, page.Total)
	of.Send(t, "POST", "/v2/link/token", map[string]any{"user_id": c.own}).Want(t, 200)
	of.Send(t, "POST", "/v2/link/token", map[string]any{"user_id": uuid.New()}).Want(t, 400)
	of.Send(t, "POST", "/v2/user/", map[string]any{"client_user_id": "x"}).Want(t, 403)
}

// A bound caller registers the kits of its user alone.
func TestUserBoundCaller_registersOnlyKitsOfItsUser(t *testing.T) {
	c := newBoundFixture(t)
	register := func(o orders.Order, status int) {
		c.bound.Send(t, "POST", "/v3/order/testkit/register", object{"sample_id": *o.SampleID, "patient_details": aPatient(), "patient_address": anAddress()}).Want(t, status)
	}
	kit := func() orders.Order {
		o := c.order("POST", "/v3/order/testkit", c.aKit())
		c.Send(t, "POST", "/v3/order/"+o.ID.String()+"/test", nil).Want(t, 200)
		c.get("/v3/order/"+o.ID.String(), 200).JSON(t, &o)
		return o
	}
	register(kit(), 404)
	c.user = c.own
	register(kit(), 200)
}

// A caller without a team is refused, with what is missing, and the log says so.
func TestAuthenticate_callerWithoutATeamIsRefused(t *testing.T) {
	c := newFixture(t, nil)
	c.config.Authenticate = func(*http.Request) (httpapi.Caller, error) { return httpapi.Caller{}, nil }
	client := contract.NewClient(t, c.config.handler(), httpapi.OpenAPI())
	c.logs.Take()
	reply := client.Send(t, "GET", "/v2/user/", nil).Want(t, 401)
	require.Contains(t, string(reply.Body), "Caller.Team")
	require.Contains(t, c.logs.Take(), "Caller whose Team is zero")
}
