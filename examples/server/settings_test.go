package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/orders"
)

// A team changes its settings: from then on linking, pulls and orders follow them, also
// after the program was started again.
func TestTeamSettings_applyAtOnceAndAfterARestart(t *testing.T) {
	t.Parallel()
	const manage = "mk_0123456789abcdef0123456789abcdef"
	args := []string{"-database-url", pgtest.Empty(t), "-files", t.TempDir(), "-secret-file", secretFile(t), "-management-key", manage}
	p := start(t, args...)
	path := "/v1/org/" + orgOf(p) + "/team/" + teamOf(p.key).String() + "/sandbox/settings"
	user := func(name string) string {
		var u struct {
			ID string `json:"user_id"`
		}
		ask(p, "POST", "/v2/user/", fmt.Sprintf(`{"client_user_id":%q}`, name), 200, &u)
		return u.ID
	}
	sources := func(user string) int {
		var list struct {
			Providers []struct{} `json:"providers"`
		}
		p.get("/v2/user/providers/"+user, &list)
		return len(list.Providers)
	}
	order := func(born, status int) (errorType string) {
		var answer struct {
			Detail struct {
				Type string `json:"error_type"`
			} `json:"detail"`
		}
		ask(p, "POST", "/v3/order", fmt.Sprintf(anOrder, user(uuid.NewString()), tourLabTest, born), status, &answer)
		return answer.Detail.Type
	}
	ann, bob, eve := user("ann"), user("bob"), user("eve")
	order(time.Now().Year()-12, 200)
	connect(p, ann, "fern_diary", "ann")
	connect(p, bob, "fern_diary", "ann")
	require.Equal(t, 1, sources(bob), "by default two users may share an account")

	wait(t, func() bool { return historyDays(p, ann) == 28 })
	ask(p, "PATCH", path, `{"reject_duplicate_connection":true}`, 401, nil)
	ask(p, "PATCH", path, `{"reject_duplicate_connection":true,"minor_ordering_enabled":false,
		"brand_information":{"company_name":"Riverside Practice","logo_url":"https://cdn.example/logo.png"},
		"data_pull_preferences":{"fern_diary":{"default":{"historical_days_to_pull":5}}}}`, 200, nil, "x-management-key", manage)
	key := p.key
	p.quit()
	p = start(t, append(args, "-api-key", key)...)
	var now struct {
		Duplicates bool `json:"reject_duplicate_connection"`
		Partial    bool `json:"partial_webhooks_enabled"`
	}
	ask(p, "GET", path, "", 200, &now, "x-management-key", manage)
	require.True(t, now.Duplicates)
	require.True(t, now.Partial, "the deployment's default")

	signIn(p, eve, "fern_diary", "ann", 400)
	require.Zero(t, sources(eve), "the account is another user's")
	connect(p, eve, "fern_diary", "eve")
	require.Equal(t, 1, sources(eve))
	for who, days := range map[string]int{ann: 28, eve: 5} {
		wait(t, func() bool { return historyDays(p, who) > 0 })
		require.Equal(t, days, historyDays(p, who), "a history begun before stays as it was")
	}
	order(time.Now().Year()-40, 200)
	require.Equal(t, orders.MinorNotAllowed, order(time.Now().Year()-12, 400))
	p.quit()
}

// What a team has chosen about events holds for its endpoints.
func TestTeamSettings_eventChoiceAppliesToEndpoints(t *testing.T) {
	t.Parallel()
	const manage = "mk_0123456789abcdef0123456789abcdef"
	got := make(chan string, 100)
	receiver := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		var e struct {
			Type string `json:"event_type"`
		}
		if json.NewDecoder(r.Body).Decode(&e) == nil {
			got <- e.Type
		}
	})
	p := start(t, "-management-key", manage, "-webhook-url", receiver)
	path := "/v1/org/" + orgOf(p) + "/team/" + teamOf(p.key).String() + "/sandbox/settings"
	ask(p, "PATCH", path, `{"event_type_prefixes":["labtest."]}`, 200, nil, "x-management-key", manage)
	var u struct {
		ID string `json:"user_id"`
	}
	ask(p, "POST", "/v2/user/", `{"client_user_id":"ann"}`, 200, &u)
	post(p, "/v2/link/provider/manual/manual", `{"user_id":"`+u.ID+`"}`)
	ask(p, "POST", "/v3/order", fmt.Sprintf(anOrder, u.ID, tourLabTest, time.Now().Year()-40), 200, nil)
	p.quit()
	close(got)
	var types []string
	for name := range got {
		types = append(types, name)
	}
	require.Equal(t, []string{"labtest.order.created"}, types, "and nothing of the connection")
}

// With a speed, the orders of a sandbox go through their steps by themselves, and a team
// has as many users as the flag says.
func TestSandbox_speedAndUserLimitAreSetByFlags(t *testing.T) {
	t.Parallel()
	p := start(t, "-sandbox-speed", "86400", "-sandbox-users", "1") // a step takes a second
	var user struct {
		ID string `json:"user_id"`
	}
	ask(p, "POST", "/v2/user/", `{"client_user_id":"ann"}`, 200, &user)
	ask(p, "POST", "/v2/user/", `{"client_user_id":"bob"}`, 400, nil)
	var placed struct {
		Order struct{ ID string }
	}
	ask(p, "POST", "/v3/order", fmt.Sprintf(anOrder, user.ID, tourLabTest, time.Now().Year()-40), 200, &placed)
	wait(t, func() bool {
		var order struct{ Status string }
		p.get("/v3/order/"+placed.Order.ID, &order)
		return order.Status == "completed"
	})
	var result struct{ Results []struct{ Name string } }
	p.get("/v3/order/"+placed.Order.ID+"/result", &result)
	require.NotEmpty(t, result.Results)
	p.quit()
	for _, bad := range [][]string{{"-sandbox-speed", "-1"}, {"-sandbox-users", "0"}} {
		require.Error(t, run(t.Context(), bad, io.Discard, io.Discard))
	}
}

// anOrder is the format of an order with a medical proxy. Its arguments are the user, the
// test and the patient's year of birth.
var anOrder = `{"user_id":%q,"order_set":{"lab_test_ids":[%q]},"patient_details":{"first_name":"Kim","last_name":"Person","dob":"%d-01-02",
	"gender":"female","phone_number":"+12175550100","email":"kim@example.org","medical_proxy":{"first_name":"Pat","last_name":"Person",
	"phone_number":"+12175550100","email":"pat@example.org","address":` + anAddress + `}},
	"patient_address":{"receiver_name":"Kim Person","phone_number":"+12175550100",` + anAddress[1:] + `}`

const anAddress = `{"first_line":"1 Example Street","city":"Springfield","state":"IL","zip":"62701","country":"US"}`

// historyDays is how many days of the diary's history of meals were wanted at the link.
func historyDays(p *program, user string) int {
	p.Helper()
	var seen struct {
		Data []struct {
			Provider map[string]struct {
				Pulled map[string]struct {
					From time.Time `json:"range_start"`
					To   time.Time `json:"range_end"`
				} `json:"pulled"`
			} `json:"provider"`
		} `json:"data"`
	}
	p.get("/v2/introspect/historical_pull?user_id="+user, &seen)
	meal := seen.Data[0].Provider["fern_diary"].Pulled["meal"]
	return int(meal.To.Sub(meal.From).Round(24*time.Hour).Hours() / 24)
}

// A misspelt source in a query or a preference is refused.
func TestAPI_misspeltProviderIsRefused(t *testing.T) {
	t.Parallel()
	p := start(t)
	var u struct {
		ID string `json:"user_id"`
	}
	ask(p, "POST", "/v2/user/", `{"client_user_id":"ann"}`, 200, &u)
	for slug, status := range map[string]int{"acme_ring": 200, "northlab": 200, "acme_rnig": 422} {
		ask(p, "POST", "/aggregate/v1/user/"+u.ID+"/query", fmt.Sprintf(`{"timeframe":{"type":"relative","anchor":"2026-03-01","past":{"unit":"day"}},
			"queries":[{"select":[{"func":"count","arg":{"index":"sleep"}}]}],"config":{"provider_priority_overrides":[%q]}}`, slug), status, nil)
		ask(p, "PATCH", "/v2/team/source/priorities", fmt.Sprintf(`[{"data_type":null,"provider":%q,"priority":1}]`, slug), status, nil)
	}
}

// The scopes in a team's settings are the ones that a sign-in at the provider asks for.
func TestTeamSettings_scopesAreRequestedAtSignIn(t *testing.T) {
	t.Parallel()
	const manage = "mk_0123456789abcdef0123456789abcdef"
	p := start(t, "-management-key", manage)
	var u struct {
		ID string `json:"user_id"`
	}
	ask(p, "POST", "/v2/user/", `{"client_user_id":"ann"}`, 200, &u)
	asked := func() string {
		var issued struct {
			Token string `json:"link_token"`
		}
		ask(p, "POST", "/v2/link/token", fmt.Sprintf(`{"user_id":%q}`, u.ID), 200, &issued)
		var source struct {
			URL string `json:"oauth_url"`
		}
		ask(p, "GET", "/v2/link/provider/oauth/acme_ring", "", 200, &source, "x-service-link-token", issued.Token)
		to, err := url.Parse(source.URL)
		require.NoError(t, err)
		return to.Query().Get("scope")
	}
	all := asked()
	require.Contains(t, all, "data.heartrate")
	path := "/v1/org/" + orgOf(p) + "/team/" + teamOf(p.key).String() + "/scope_requirements"
	ask(p, "POST", path, `{"acme_ring":{"user_must_grant":["data.sleep"],"user_may_grant":["data.activity"]}}`, 401, nil)
	require.Equal(t, all, asked())
	ask(p, "POST", path, `{"acme_ring":{"user_must_grant":["data.sleep"],"user_may_grant":["data.activity"]}}`, 200, nil, "x-management-key", manage)
	require.Equal(t, "data.activity data.sleep", asked())
	ask(p, "POST", path, `{"acme_ring":null}`, 200, nil, "x-management-key", manage)
	require.Equal(t, all, asked())
}
