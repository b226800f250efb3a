package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
)

// A team brings its own OAuth client: people are asked by it, their grants are renewed by
// it, and neither another client nor its deletion breaks what it connected.
func TestTeamClient_signInAndRenewalUseTheTeamsOAuthClient(t *testing.T) {
	t.Parallel()
	for name, args := range map[string]func(t *testing.T) []string{
		"memory": func(*testing.T) []string { return nil },
		"folder": func(t *testing.T) []string { return []string{"-data", t.TempDir()} },
		"postgres": func(t *testing.T) []string {
			return []string{"-database-url", pgtest.Empty(t), "-files", t.TempDir(), "-secret-file", secretFile(t)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const manage = "mk_0123456789abcdef0123456789abcdef"
			// A grant lives for less than the credential refresher looks ahead, so every pull renews it.
			ownCredentials(start(t, append(args(t), "-management-key", manage, "-sandbox-grant-life", "1s")...), manage)
		})
	}
}

func ownCredentials(p *program, manage string) {
	const provider = "fern_diary"
	team := teamOf(p.key).String()
	path := "/v1/org/" + orgOf(p) + "/team_custom_credentials/sandbox/us"
	set := func(client, secret string) {
		p.Helper()
		ask(p, "POST", path, fmt.Sprintf(`{"team_id":%q,"provider":%q,"client_id":%q,"client_secret":%q}`, team, provider, client, secret), 200, nil, "x-management-key", manage)
	}
	user := func(name string) string {
		var u struct {
			ID string `json:"user_id"`
		}
		ask(p, "POST", "/v2/user/", fmt.Sprintf(`{"client_user_id":%q}`, name), 200, &u)
		return u.ID
	}
	asked := func(user string) string { // which client the provider's page is asked by
		p.Helper()
		var token struct {
			Token string `json:"link_token"`
		}
		ask(p, "POST", "/v2/link/token", fmt.Sprintf(`{"user_id":%q}`, user), 200, &token)
		var source struct {
			URL string `json:"oauth_url"`
		}
		ask(p, "GET", "/v2/link/provider/oauth/"+provider, "", 200, &source, "x-service-link-token", token.Token)
		u, err := url.Parse(source.URL)
		require.NoError(p, err)
		return u.Query().Get("client_id")
	}
	refresh := func(user string) (failed int) {
		p.Helper()
		var got struct {
			Failed []string `json:"failed_sources"`
		}
		r, err := http.NewRequestWithContext(p.Context(), http.MethodPost, p.url+"/v2/user/refresh/"+user+"?timeout=10", http.NoBody)
		require.NoError(p, err)
		r.Header.Set("x-service-api-key", p.key)
		p.do(r, &got)
		return len(got.Failed)
	}

	ann, bob := user("ann"), user("bob")
	require.Equal(p, "sandbox", asked(ann))
	set("clinic", "a secret of the clinic 1111+refused")
	signIn(p, ann, provider, "ann", 503) // the provider does not take the secret
	set("clinic", "a secret of the clinic 2222")
	require.Equal(p, "clinic", asked(ann))
	connect(p, ann, provider, "ann")
	wait(p.T, func() bool { return historyDays(p, ann) == 28 })
	require.Zero(p, refresh(ann))

	set("clinic-2", "another secret of the clinic")
	connect(p, bob, provider, "bob")
	for _, u := range []string{ann, bob} {
		require.Zero(p, refresh(u), "each by the client that connected it")
		require.Equal(p, "connected", status(p, u))
	}
	var list struct {
		List []struct {
			ClientID    string `json:"client_id"`
			Secret      string `json:"client_secret"`
			Status      string `json:"status"`
			Connections int    `json:"connections"`
		} `json:"custom_credentials"`
	}
	ask(p, "GET", path+"?team_id="+team, "", 200, &list, "x-management-key", manage)
	require.Len(p, list.List, 2)
	require.Equal(p, []any{"clinic-2", "…inic", "active", 1, "clinic", "…2222", "retired", 1}, []any{
		list.List[0].ClientID, list.List[0].Secret, list.List[0].Status, list.List[0].Connections,
		list.List[1].ClientID, list.List[1].Secret, list.List[1].Status, list.List[1].Connections,
	})

	gone := path + "?provider=" + provider + "&team_id=" + team
	ask(p, "DELETE", gone, "", 200, nil, "x-management-key", manage)
	eve := user(uuid.NewString())
	require.Equal(p, "sandbox", asked(eve))
	require.Zero(p, refresh(ann))
	require.Zero(p, refresh(bob))
	require.Equal(p, "connected", status(p, bob))

	ask(p, "DELETE", "/v2/user/"+bob+"/"+provider, "", 200, nil)
	ask(p, "DELETE", gone+"&erase=true", "", 200, nil, "x-management-key", manage)
	require.NotZero(p, refresh(ann))
	wait(p.T, func() bool { return status(p, ann) == "error" })
	ask(p, "GET", path+"?team_id="+team, "", 200, &list, "x-management-key", manage)
	require.Empty(p, list.List)
	connect(p, ann, provider, "ann")
	require.Equal(p, "connected", status(p, ann), "by the deployment's client again")
	p.quit()
}

// do sends a request, and reads whatever the answer is.
func (p *program) do(r *http.Request, out any) {
	p.Helper()
	answer, err := http.DefaultClient.Do(r)
	require.NoError(p, err)
	defer answer.Body.Close()
	require.NoError(p, json.NewDecoder(answer.Body).Decode(out))
}

func orgOf(p *program) string {
	return uuid.NewSHA1(teamOf(p.key).UUID, []byte("organisation")).String()
}
