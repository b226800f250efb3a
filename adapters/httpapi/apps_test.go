package httpapi_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

func appPairs() []contract.Pair {
	return append(httpapi.AppBodies(),
		contract.Pair{Schema: "SignInToken", Value: linking.IssuedSignInToken{}},
		contract.Pair{Schema: "UserTokens", Value: linking.UserTokens{}},
	)
}

func newApps(t *testing.T, store *memory.Store, health *healthdata.Service) *linking.Apps {
	t.Helper()
	apps, err := linking.NewApps(store.Apps(), health, bytes.Repeat([]byte{3}, 32), &linking.AppOptions{})
	require.NoError(t, err)
	return apps
}

func (c *fixture) app() *contract.Client {
	own := *c.Client
	own.Header = http.Header{}
	return &own
}

// signedIn are the tokens of an app of the fixture's user.
func (c *fixture) signedIn() linking.UserTokens {
	c.t.Helper()
	var issued linking.IssuedSignInToken
	reply := c.post("/v2/user/"+c.user.String()+"/sign_in_token", nil, 200)
	reply.JSON(c.t, &issued)
	require.Equal(c.t, "no-store", reply.Header.Get("Cache-Control"))
	var tokens linking.UserTokens
	c.app().Send(c.t, "POST", "/v2/app/sign_in", `{"sign_in_token":"`+issued.Token+`"}`).Want(c.t, 200).JSON(c.t, &tokens)
	require.Equal(c.t, c.user, tokens.UserID)
	c.app().Send(c.t, "POST", "/v2/app/sign_in", `{"sign_in_token":"`+issued.Token+`"}`).Want(c.t, 401)
	return tokens
}

// A companion app exchanges a code without a key, once, and signs in with the answer.
func TestLinkCode_isExchangedOnceWithoutAKey(t *testing.T) {
	c := newFixture(t, nil)
	create := func(query string) string {
		var code linking.IssuedCode
		c.post("/v2/link/code/create?user_id="+c.user.String()+query, nil, 200).JSON(t, &code)
		return code.Code
	}
	exchange := func(code string, status int) *contract.Reply {
		return c.app().Send(t, "POST", "/v2/link/code/exchange", `{"code":"`+code+`"}`).Want(t, status)
	}
	code := create("&expires_at=null")
	var issued linking.IssuedSignInToken
	reply := exchange(code, 200)
	reply.JSON(t, &issued)
	require.Equal(t, "no-store", reply.Header.Get("Cache-Control"))
	require.Equal(t, c.user, issued.UserID)
	var tokens linking.UserTokens
	c.app().Send(t, "POST", "/v2/app/sign_in", `{"sign_in_token":"`+issued.Token+`"}`).Want(t, 200).JSON(t, &tokens)
	require.Equal(t, c.user, tokens.UserID)
	require.Contains(t, string(exchange(code, 400).Body), "CODE_CONSUMED")
	c.app().Send(t, "POST", "/v2/link/code/exchange", `{}`).Want(t, 422)

	open := create("")
	for range linking.MaxWrongPerClient { // the code that was used is no wrong try
		require.Contains(t, string(exchange("skus00000000", 400).Body), "CODE_INVALID")
	}
	require.NotEmpty(t, exchange(open, 429).Header.Get("Retry-After"), "no code is looked at for a client that guesses")
	c.config.ClientAddress = func(*http.Request) string { return "another client" }
	other := contract.NewClient(t, c.config.handler(), httpapi.OpenAPI())
	other.Send(t, "POST", "/v2/link/code/exchange", `{"code":"`+open+`"}`).Want(t, 200)
}

func TestAppToken_accessesOnlyDataOfItsUser(t *testing.T) {
	c := newFixture(t, nil)
	tokens := c.signedIn()
	app := c.app().With("Authorization", "Bearer "+tokens.AccessToken)
	stranger, err := c.health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "patient-78"})
	require.NoError(t, err)

	app.Send(t, "POST", c.timeseries("heartrate"), upload(beats(3)...)).Want(t, 200)
	app.Send(t, "GET", c.timeseries("heartrate")+"?start_date=2026-03-01", nil).Want(t, 200)
	app.Send(t, "GET", "/v2/user/"+c.user.String(), nil).Want(t, 200)
	app.Send(t, "GET", "/v2/providers", nil).Want(t, 200)
	app.Send(t, "POST", "/v2/link/provider/manual/manual", `{"user_id":"`+c.user.String()+`"}`).Want(t, 200)
	app.Send(t, "DELETE", "/v2/user/"+c.user.String()+"/manual", nil).Want(t, 200)

	for _, other := range []string{stranger.ID.String(), c.foreign.String(), uuid.NewString()} {
		app.Send(t, "POST", strings.ReplaceAll(c.timeseries("heartrate"), c.user.String(), other), upload(beats(3)...)).Want(t, 404)
		app.Send(t, "GET", "/v2/user/"+other, nil).Want(t, 404)
		app.Send(t, "POST", "/v2/link/provider/manual/manual", `{"user_id":"`+other+`"}`).Want(t, 404)
		app.Send(t, "DELETE", "/v2/user/"+other+"/manual", nil).Want(t, 404)
	}
	require.Equal(t, []string{"path.user_id"}, app.Send(t, "GET", "/v2/user/me", nil).Want(t, 422).Locs(t))
	for _, path := range []string{"GET /v2/user/", "GET /v2/user/metrics", "DELETE /v2/user/" + c.user.String(), "POST /v2/user/" + c.user.String() + "/sign_in_token"} {
		method, path, _ := strings.Cut(path, " ")
		app.Send(t, method, path, nil).Want(t, 401)
	}
	// Of two credentials the key counts.
	app.With("x-service-api-key", "nobody").Send(t, "GET", "/v2/user/"+c.user.String(), nil).Want(t, 401)
	app.With("x-service-api-key", goodKey).Send(t, "GET", "/v2/user/"+stranger.ID.String(), nil).Want(t, 200)
	c.app().With("Authorization", "Bearer uat_nothing").Send(t, "GET", "/v2/user/"+c.user.String(), nil).Want(t, 401)
}

func TestAppToken_isRefreshedAndRevokedBySignOut(t *testing.T) {
	c := newFixture(t, nil)
	first := c.signedIn()
	send := func(path, token string, status int) (got linking.UserTokens) {
		t.Helper()
		body, err := json.Marshal(map[string]string{"refresh_token": token})
		require.NoError(t, err)
		reply := c.app().Send(t, "POST", "/v2/app/"+path, body).Want(t, status)
		if status == 200 && path == "refresh" {
			reply.JSON(t, &got)
		}
		return got
	}
	works := func(access string, status int) {
		t.Helper()
		c.app().With("Authorization", "Bearer "+access).Send(t, "GET", "/v2/user/"+c.user.String(), nil).Want(t, status)
	}
	second := send("refresh", first.RefreshToken, 200)
	works(second.AccessToken, 200)
	send("refresh", "urt_x", 401)
	send("sign_out", second.RefreshToken, 200)
	send("sign_out", second.RefreshToken, 200)
	works(second.AccessToken, 401)
	send("refresh", second.RefreshToken, 401)

	third := c.signedIn()
	c.post("/v2/user/"+c.user.String()+"/sign_out", nil, 200)
	works(third.AccessToken, 401)
	for _, user := range []string{c.foreign.String(), uuid.NewString()} {
		c.post("/v2/user/"+user+"/sign_in_token", nil, 404)
		c.post("/v2/user/"+user+"/sign_out", nil, 404)
	}
	require.Empty(t, c.logs.Take())
}

// What an app may call is what the contract says it may.
func TestAppToken_allowedOperationsEqualThoseOfTheContract(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]struct {
			ID       string                `json:"operationId"`
			Security []map[string][]string `json:"security"`
		} `json:"paths"`
	}
	require.NoError(t, json.Unmarshal(httpapi.OpenAPI(), &doc))
	var want []string
	for _, methods := range doc.Paths {
		for _, op := range methods {
			if slices.ContainsFunc(op.Security, func(s map[string][]string) bool { return s["UserToken"] != nil }) {
				want = append(want, op.ID)
			}
		}
	}
	c, _ := full(t)
	got := httpapi.OwnOperations(c.of())
	slices.Sort(want)
	slices.Sort(got)
	require.Equal(t, want, got)
	require.Contains(t, got, "ingest_samples")
	require.NotContains(t, got, "delete_user")
}
