package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
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
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/bulk"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// registry is a provider that knows clients, and gives grants to the client that asks.
type registry struct {
	secrets map[string]string // by client id
	revoked []string
}

// registered is the provider as one client knows it.
type registered struct {
	*registry
	id, secret string
	key        string
}

var errUnknownClient = errors.New("unknown client")

func (r registered) trusted() error {
	if r.secrets[r.id] != r.secret {
		return errUnknownClient
	}
	return nil
}

func (r registered) Authorize(_ context.Context, q linking.AuthorizeRequest) (string, error) {
	return "https://provider.example/?" + url.Values{"state": {q.State}, "client_id": {r.id}, "redirect_uri": {q.RedirectURL}}.Encode(), nil
}

// Exchange takes a code that is its client and its redirect URL.
func (r registered) Exchange(_ context.Context, q linking.ExchangeRequest) (linking.Grant, error) {
	if q.Code != r.id+" "+q.RedirectURL {
		return linking.Grant{}, &linking.Error{Type: linking.ProviderCredentialError}
	}
	return linking.Grant{ExternalUserID: "account", Secret: []byte(r.id), ExpiresAt: tokenEnd}, r.trusted()
}

func (r registered) Refresh(_ context.Context, secret []byte) (linking.Renewal, error) {
	if string(secret) != r.id {
		return linking.Renewal{}, &linking.GrantError{}
	}
	return linking.Renewal{Secret: secret, ExpiresAt: tokenEnd.Add(24 * time.Hour)}, r.trusted()
}

func (r registered) Revoke(_ context.Context, secret []byte) error {
	r.revoked = append(r.revoked, r.id+" gave back "+string(secret))
	return r.trusted()
}

func (r registered) Listen(_ context.Context, m linking.Message) (linking.ListenResult, error) {
	if string(m.Body) != "by "+r.key {
		return linking.ListenResult{}, healthlab.Unauthenticated
	}
	return linking.ListenResult{Notifications: []linking.Notification{{ID: "1", ExternalUserID: "account"}}}, nil
}

func (r registered) Pull(context.Context, linking.PullRequest) (linking.PullPage, error) {
	return linking.PullPage{}, nil
}

func (registered) Encode(t linking.Tokens) ([]byte, error) { return []byte(t.Access), nil }

func (registered) Decode(secret []byte) (linking.Tokens, error) {
	return linking.Tokens{Access: string(secret)}, nil
}

func (r *registry) flows(client linking.OAuthClient) linking.ProviderConnector {
	one := registered{r, client.ID, client.Secret, client.Details["push_key"]}
	out := linking.ProviderConnector{OAuth: one, Refresher: one, Revoker: one, Puller: one, TokenCodec: one, ForClient: r.as, ClientListener: true}
	if one.key != "" {
		out.Listener = one
	}
	return out
}

func (r *registry) as(c linking.OAuthClient) (linking.ProviderConnector, error) {
	var p healthlab.Problems
	if c.Secret == "" {
		p.Add("missing", "a secret is needed", "client_secret")
	}
	for name := range c.Details {
		if name != "push_key" {
			p.Add("unknown", "no such detail", "details", name)
		}
	}
	return r.flows(c), p.Err()
}

// credOffice manages the credentials of two teams, and their people link.
type credOffice struct {
	*contract.Client
	t         *testing.T
	provider  *registry
	store     *memory.Store
	health    *healthdata.Service
	links     *linking.Service
	refresher *linking.CredentialRefresher
	pulls     *pull.Service
	bulk      *bulk.Service
	now       time.Time
	handler   http.Handler
}

const (
	ourID, ourSecret   = "ours", "secret of the deployment"
	callbackOfOurs     = "http://localhost:8080/v2/link/connect/acme_band"
	secretOne          = "first secret 1111"
	secretTwo          = "second secret 2222"
	credentialsPath    = "/v1/org/0199a000-0000-7000-8000-0000000000aa/team_custom_credentials/sandbox/us"
	credentialsOrgText = "0199a000-0000-7000-8000-0000000000aa"
)

func newCredOffice(t *testing.T) *credOffice {
	t.Helper()
	o := &credOffice{t: t, now: tokenEnd.Add(-time.Hour), provider: &registry{secrets: map[string]string{ourID: ourSecret, "one": secretOne, "two": secretTwo}}}
	clock := func() time.Time { return o.now }
	list := []healthdata.Provider{
		{Slug: "acme_band", Name: "Acme Band", AuthType: "oauth", Category: "provider", Class: "cloud", Resources: []healthdata.ProviderResource{{Resource: "steps"}}, Backfill: healthdata.Backfill{DefaultDays: 3}},
		{Slug: "acme_own", Name: "Acme Own", AuthType: "team_oauth", Category: "provider", Class: "cloud"},
		{Slug: "cedar_sleep", Name: "Cedar Sleep", AuthType: "password", Category: "provider", Class: "cloud"},
		{Slug: "acme_fixed", Name: "Acme Fixed", AuthType: "oauth", Category: "provider", Class: "cloud"},
	}
	providers, err := healthdata.NewProviders(list)
	require.NoError(t, err)
	o.store = memory.New(&memory.Options{Now: clock})
	o.health, err = healthdata.New(o.store.Users(), o.store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox, Now: clock})
	require.NoError(t, err)
	seal, err := healthlab.NewAESSealer("k", map[string][]byte{"k": bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	flows := o.provider.flows(linking.OAuthClient{ID: ourID, Secret: ourSecret})
	fixed := flows
	fixed.ForClient = nil
	connectors := map[string]linking.ProviderConnector{"acme_band": flows, "acme_own": flows, "acme_fixed": fixed}
	clients := o.store.TeamClients()
	o.links, err = linking.New(o.store.Linking(), o.health, connectors, seal, &linking.Options{
		SigningKeys: [][]byte{bytes.Repeat([]byte{2}, 32)},
		Environment: healthlab.Sandbox,
		Now:         clock, Clients: clients,
		Settings: func(context.Context, healthlab.TeamID) (linking.TeamSettings, error) {
			return linking.TeamSettings{Bulk: true}, nil
		},
	})
	require.NoError(t, err)
	o.refresher, err = linking.NewCredentialRefresher(o.store.Credentials(), o.health, connectors, seal, &linking.CredentialRefresherOptions{Now: clock, Clients: clients})
	require.NoError(t, err)
	o.pulls, err = pull.New(o.store.Pulls(), o.health, o.refresher, connectors, &pull.Options{Now: clock})
	require.NoError(t, err)
	o.bulk, err = bulk.New(o.store.Bulk(), o.links, o.pulls, seal, &bulk.Options{Now: clock})
	require.NoError(t, err)
	h := httpapi.Handler(httpapi.Config{
		Authenticate: byTeamID,
		Environment:  healthlab.Sandbox,
		AuthenticateManagement: httpapi.ManagementAuth([]httpapi.ManagementKey{{
			Sum: httpapi.SumKey(managementKey),
			Mandate: func(which uuid.UUID, tm healthlab.TeamID) bool {
				return which == uuid.MustParse(credentialsOrgText) && (tm == team || tm == otherTeam)
			},
		}}, nil),
		Parts: (&httpapi.Services{Health: o.health, Linking: o.links, Pulls: o.pulls, Bulk: o.bulk}).Parts(),
	})
	o.handler = h
	o.Client = contract.NewClient(t, h, httpapi.OpenAPI()).With("x-management-key", managementKey)
	return o
}

func (o *credOffice) set(body string) *contract.Reply {
	o.t.Helper()
	return o.Send(o.t, "POST", credentialsPath, body)
}

func (o *credOffice) give(of healthlab.TeamID, id, secret, more string) {
	o.t.Helper()
	o.set(`{"team_id":"`+of.String()+`","provider":"acme_band","client_id":"`+id+`","client_secret":"`+secret+`"`+more+`}`).Want(o.t, 200)
}

type listedCredentials struct {
	List []struct {
		Team        healthlab.TeamID `json:"team_id"`
		ClientID    string           `json:"client_id"`
		Secret      string           `json:"client_secret"`
		Status      string           `json:"status"`
		Connections int              `json:"connections"`
		ProvenAt    *string          `json:"proven_at"`
	} `json:"custom_credentials"`
}

func (o *credOffice) credentials(of healthlab.TeamID) (out listedCredentials) {
	o.t.Helper()
	o.Send(o.t, "GET", credentialsPath+"?team_id="+of.String(), nil).Want(o.t, 200).JSON(o.t, &out)
	return out
}

// leave begins a sign-in, and returns the token and what the provider is asked.
func (o *credOffice) leave(of healthlab.TeamID, name string) (healthlab.UserID, string, url.Values) {
	o.t.Helper()
	u, err := o.health.CreateUser(o.t.Context(), of, healthdata.NewUser{ClientUserID: name})
	require.NoError(o.t, err)
	token, err := o.links.CreateToken(o.t.Context(), of, linking.NewToken{User: u.ID})
	require.NoError(o.t, err)
	away, err := o.links.Authorize(o.t.Context(), token.Token, linking.OAuthSignIn{Provider: "acme_band"})
	require.NoError(o.t, err)
	page, err := url.Parse(away.URL)
	require.NoError(o.t, err)
	return u.ID, token.Token, page.Query()
}

func (o *credOffice) back(token string, q url.Values) linking.Result {
	o.t.Helper()
	r, err := o.links.Callback(o.t.Context(), linking.Callback{Provider: "acme_band", State: token, Code: q.Get("client_id") + " " + q.Get("redirect_uri")})
	require.NoError(o.t, err)
	return r
}

func (o *credOffice) link(of healthlab.TeamID, name string) (healthlab.UserID, url.Values) {
	o.t.Helper()
	u, token, q := o.leave(of, name)
	require.Equal(o.t, linking.ResultSuccess, o.back(token, q).State)
	return u, q
}

// A connection that was made with a team's own client uses that client for the sign-in, the
// exchange, renewals and the revocation, whatever the team sets later.
func TestOwnCredentials_connectionKeepsTheClientItWasMadeWith(t *testing.T) {
	o := newCredOffice(t)
	ann, q := o.link(team, "ann")
	require.Equal(t, []string{ourID, callbackOfOurs}, []string{q.Get("client_id"), q.Get("redirect_uri")})
	_, afar, begun := o.leave(team, "begun") // with the deployment's client
	o.give(team, "one", secretOne, `,"redirect_url_override":"https://clinic.example/back","details":{"push_key":"a key of sixteen 42"}`)
	bob, q := o.link(team, "bob")
	require.Equal(t, []string{"one", "https://clinic.example/back"}, []string{q.Get("client_id"), q.Get("redirect_uri")})
	require.Equal(t, linking.ResultSuccess, o.back(afar, begun).State, "whoever had left comes back to what they left with")
	foreign, q := o.link(otherTeam, "foreign")
	require.Equal(t, ourID, q.Get("client_id"), "another team's people are not asked by it")
	list := o.credentials(team)
	require.Len(t, list.List, 1)
	require.Equal(t, []any{"one", "…1111", "active", 1}, []any{list.List[0].ClientID, list.List[0].Secret, list.List[0].Status, list.List[0].Connections})
	require.NotNil(t, list.List[0].ProvenAt)

	// The team replaces its client while a person is at the provider's sign-in page.
	_, away, left := o.leave(team, "away")
	o.give(team, "two", secretTwo, "")
	require.Equal(t, linking.ResultSuccess, o.back(away, left).State)
	eve, q := o.link(team, "eve")
	require.Equal(t, []string{"two", callbackOfOurs}, []string{q.Get("client_id"), q.Get("redirect_uri")}, "no override is left over")
	list = o.credentials(team)
	require.Equal(t, []any{"two", "active", 1, "one", "retired", 2},
		[]any{list.List[0].ClientID, list.List[0].Status, list.List[0].Connections, list.List[1].ClientID, list.List[1].Status, list.List[1].Connections})

	renew := func(of healthlab.TeamID, u healthlab.UserID) error {
		a, err := o.refresher.Secret(t.Context(), of, u, "acme_band")
		if err == nil {
			_, err = o.refresher.Renew(t.Context(), of, u, "acme_band", a)
		}
		return err
	}
	o.now = tokenEnd.Add(time.Second)
	for who, of := range map[healthlab.UserID]healthlab.TeamID{ann: team, bob: team, eve: team, foreign: otherTeam} {
		require.NoError(t, renew(of, who), "each by the client that connected it")
	}
	// The secret of a client is changed at the provider, and here.
	o.provider.secrets["two"] = "third secret 3333"
	require.ErrorIs(t, renew(team, eve), healthlab.Unavailable, "no connection ends for it")
	o.now = o.now.Add(time.Hour)
	o.give(team, "two", "third secret 3333", "")
	require.NoError(t, renew(team, eve))

	// Deleted, it keeps what it connected.
	gone := o.Send(t, "DELETE", credentialsPath+"?provider=acme_band&team_id="+team.String(), nil).Want(t, 200)
	require.JSONEq(t, `{"success":true,"connections":1}`, string(gone.Body))
	o.Send(t, "DELETE", credentialsPath+"?provider=acme_band&team_id="+team.String(), nil).Want(t, 404)
	require.NoError(t, renew(team, eve))
	_, q = o.link(team, "fay")
	require.Equal(t, ourID, q.Get("client_id"))
	require.NoError(t, o.links.Disconnect(t.Context(), team, eve, "acme_band"))
	require.NoError(t, o.links.Disconnect(t.Context(), team, ann, "acme_band"))
	require.Equal(t, []string{"two gave back two", "ours gave back ours"}, o.provider.revoked)
	o.now = o.now.Add(2 * time.Hour)
	list = o.credentials(team)
	require.Len(t, list.List, 1, "nobody needs it any more")
	require.Equal(t, "one", list.List[0].ClientID)

	// Erased, it ends what it connected, and tells so.
	gone = o.Send(t, "DELETE", credentialsPath+"?erase=true&provider=acme_band&team_id="+team.String(), nil).Want(t, 200)
	require.JSONEq(t, `{"success":true,"connections":2}`, string(gone.Body))
	var over *linking.GrantError
	require.ErrorAs(t, renew(team, bob), &over)
	u, err := o.health.User(t.Context(), team, bob)
	require.NoError(t, err)
	require.Equal(t, healthdata.ConnectionError, u.Connection("acme_band").Status)
	require.Equal(t, healthdata.FailureCredential, u.Connection("acme_band").Failure.Type)
	require.NoError(t, renew(otherTeam, foreign))
	require.Empty(t, o.credentials(team).List)
}

// Connections move with the credentials that they are bound to.
func TestOwnCredentials_bulkExportOmitsConnectionsOfOtherClients(t *testing.T) {
	o := newCredOffice(t)
	c := o.With("x-service-api-key", team.String())
	o.link(team, "ann")
	export := map[string]any{"provider": "acme_band"}
	require.Equal(t, bulk.RuleOtherCredentials, c.Send(t, "POST", "/v2/link/bulk_export", export).Want(t, 400).ErrorType(t))
	o.give(team, "one", secretOne, "")
	bob, _ := o.link(team, "bob")
	u, err := o.health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "eve"})
	require.NoError(t, err)
	c.Send(t, "POST", "/v2/link/bulk_import", map[string]any{"provider": "acme_band", "connections": []bulk.ConnectionTokens{
		{UserID: u.ID, AccessToken: "one", ProviderID: "account of eve", ExpiresAt: tokenEnd.Unix()},
	}}).Want(t, 202)
	o.give(team, "two", secretTwo, "") // before it is done: the tokens are the first client's
	for n := 1; n > 0; {
		n, err = o.bulk.Step(t.Context())
		require.NoError(t, err)
	}
	var out bulk.Export
	c.Send(t, "POST", "/v2/link/bulk_export", export).Want(t, 200).JSON(t, &out)
	var whose []healthlab.UserID
	for _, r := range out.Data {
		whose = append(whose, r.UserID)
	}
	require.ElementsMatch(t, []healthlab.UserID{bob, u.ID}, whose, "but not what is bound to the deployment's")
	o.now = tokenEnd.Add(time.Second)
	_, err = o.refresher.Secret(t.Context(), team, u.ID, "acme_band")
	require.NoError(t, err, "renewed by the first client")
}

func TestOwnCredentials_prepareListsTheURLsToRegister(t *testing.T) {
	o := newCredOffice(t)
	prepare := func(more string) string {
		body := `{"team_id":"` + team.String() + `","provider":"acme_band"` + more + `}`
		return string(o.Send(t, "POST", credentialsPath+"/prepare", body).Want(t, 200).Body)
	}
	push := `{"type":"webhook_uri","key":"webhook_uri","value":"http://localhost:8080/v2/link/push/acme_band/` + team.String() + `",
		"description":"Register this address with your client at the provider, as the one that it sends its messages to."}`
	redirect := func(value, more string) string {
		return `{"type":"redirect_uri","key":"redirect_uri","value":"` + value + `",
			"description":"Register this address with your client at the provider, as one that people may be sent back to.` + more + `"}`
	}
	forward := " It is yours: send whoever comes there on to " + callbackOfOurs + ", with everything behind the question mark."
	required := func(steps string) string { return `{"status":"preparations_required","steps":[` + steps + `]}` }
	require.JSONEq(t, required(redirect(callbackOfOurs, "")+","+push), prepare(""))
	require.JSONEq(t, required(redirect("https://clinic.example/back", forward)+","+push), prepare(`,"redirect_url_override":"https://clinic.example/back"`))
	o.give(team, "one", secretOne, `,"redirect_url_override":"https://clinic.example/back"`)
	require.JSONEq(t, required(redirect("https://clinic.example/back", forward)+","+push), prepare(""))
	require.JSONEq(t, required(redirect(callbackOfOurs, "")+","+push), prepare(`,"redirect_url_override":null`))
	o.link(team, "ann")
	require.JSONEq(t, required(push), prepare(""), "somebody came back through it")
	require.JSONEq(t, required(redirect(callbackOfOurs, "")+","+push), prepare(`,"redirect_url_override":null`))
	o.give(team, "one", secretOne, "")
	require.JSONEq(t, required(redirect(callbackOfOurs, "")+","+push), prepare(""), "not to this address")
	require.Equal(t, []string{"body.redirect_url_override"},
		o.Send(t, "POST", credentialsPath+"/prepare", `{"team_id":"`+team.String()+`","provider":"acme_band","redirect_url_override":"ftp://x"}`).Want(t, 422).Locs(t))
}

// A provider's message to a team's client is verified with the key of that client, and
// concerns only the connections of that client.
func TestOwnCredentials_pushIsVerifiedWithTheTeamsKey(t *testing.T) {
	o := newCredOffice(t)
	o.give(team, "one", secretOne, `,"details":{"push_key":"first key of one 42"}`)
	bob, _ := o.link(team, "bob")
	foreign, _ := o.link(otherTeam, "foreign")
	_, err := o.pulls.Step(t.Context())
	require.NoError(t, err)
	announced := func(of healthlab.TeamID, u healthlab.UserID) (n int) {
		tasks, err := o.store.Pulls().Tasks(t.Context(), of, u)
		require.NoError(t, err)
		for _, k := range tasks {
			if !k.Announced.IsZero() {
				n++
			}
		}
		return n
	}
	post := func(path, body string, status int) {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), "POST", path, strings.NewReader(body))
		r.Header.Set("Content-Type", "text/plain")
		w := httptest.NewRecorder()
		o.handler.ServeHTTP(w, r)
		require.Equal(t, status, w.Code)
	}
	mine := "/v2/link/push/acme_band/" + team.String()
	post(mine, "by nobody", 401)
	post("/v2/link/push/acme_band/"+otherTeam.String(), "by first key of one 42", 401)
	post("/v2/link/push/acme_band/"+uuid.NewString(), "by first key of one 42", 401)
	require.Zero(t, announced(team, bob)+announced(otherTeam, foreign))
	post(mine, "by first key of one 42", 204)
	require.Equal(t, 1, announced(team, bob))
	require.Zero(t, announced(otherTeam, foreign), "the same account, connected by another client")
}

func TestOwnCredentials_invalidInputIsRefusedByField(t *testing.T) {
	o := newCredOffice(t)
	id := team.String()
	for body, locs := range map[string][]string{
		`{"team_id":"` + id + `","provider":"acme_band","client_id":"a b\u0007MARK","client_secret":"MARK\n","redirect_url_override":"https://u:MARK@x.example/","details":{"push_key":""}}`: {
			"body.client_id", "body.client_secret", "body.redirect_url_override", "body.details.push_key",
		},
		`{"team_id":"` + id + `","provider":"acme_band","client_id":"","client_secret":"x"}`:                                           {"body.client_id"},
		`{"team_id":"` + id + `","provider":"acme_band","client_id":"x"}`:                                                              {"body.client_secret"},
		`{"team_id":"` + id + `","provider":"acme_band","client_id":"x","client_secret":"","redirect_url_override":""}`:                {"body.client_secret", "body.redirect_url_override"},
		`{"team_id":"` + id + `","provider":"acme_band","client_id":"x","client_secret":"y","details":{"color":"MARK"}}`:               {"body.details.color"},
		`{"team_id":"` + id + `","provider":"acme_band","client_id":"x","client_secret":"y","redirect_url_override":"https://x/?a=b"}`: {"body.redirect_url_override"},
		`{"team_id":"` + id + `","provider":"acme_band","client_id":"x","client_secret":"y","redirect_url_override":"http://x.example"}`: {
			"body.redirect_url_override",
		},
		`{"team_id":"` + id + `","provider":"moon","client_id":"x","client_secret":"y"}`:   {"body.provider"},
		`{"team_id":"x","provider":"acme_band","client_id":"x","client_secret":"y","x":1}`: {"body.team_id", "body.x"},
	} {
		r := o.set(body).Want(t, 422)
		require.ElementsMatch(t, locs, r.Locs(t), body)
		require.NotContains(t, string(r.Body), "MARK")
	}
	for _, provider := range []string{"cedar_sleep", "acme_fixed"} {
		r := o.set(`{"team_id":"`+id+`","provider":"`+provider+`","client_id":"x","client_secret":"y"}`).Want(t, 400)
		require.Equal(t, linking.RuleNoOwnClient, r.ErrorType(t))
	}
	require.Empty(t, o.credentials(team).List)
	o.give(team, "one", secretOne, "")
	require.Empty(t, o.credentials(otherTeam).List, "another team's")
	o.Send(t, "DELETE", credentialsPath+"?provider=acme_band&team_id="+otherTeam.String(), nil).Want(t, 404)
	stranger := uuid.NewString()
	for _, call := range []struct{ method, path, body string }{
		{"GET", credentialsPath + "?team_id=" + stranger, ""},
		{"POST", credentialsPath, `{"team_id":"` + stranger + `","provider":"acme_band","client_id":"x","client_secret":"y"}`},
		{"POST", credentialsPath + "/prepare", `{"team_id":"` + stranger + `","provider":"acme_band"}`},
		{"DELETE", credentialsPath + "?provider=acme_band&team_id=" + stranger, ""},
	} {
		var body any
		if call.body != "" {
			body = call.body
		}
		o.Send(t, call.method, call.path, body).Want(t, 404)
		o.With("x-management-key", "mk_wrong").Send(t, call.method, call.path, body).Want(t, 401)
	}
	o.Send(t, "GET", credentialsPath, nil).Want(t, 422) // the request must name a team: the teams are not listed

	// A provider that wants the team's own can be linked once it has them.
	u, err := o.health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "own"})
	require.NoError(t, err)
	_, err = o.links.CreateToken(t.Context(), team, linking.NewToken{User: u.ID, Provider: "acme_own"})
	require.Error(t, err)
	o.set(`{"team_id":"`+id+`","provider":"acme_own","client_id":"one","client_secret":"`+secretOne+`"}`).Want(t, 200)
	_, err = o.links.CreateToken(t.Context(), team, linking.NewToken{User: u.ID, Provider: "acme_own"})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, o.Send(t, "GET", credentialsPath+"?team_id="+id+"&provider=acme_own", nil).Status)
}
