package main

import (
	"fmt"
	"io"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
)

// An organisation creates a team and its keys, the team works beside the first one and
// knows nothing of it, and ends again; all of it outlives a restart.
func TestOrganisation_createsAndDeletesASeparateTeam(t *testing.T) {
	t.Parallel()
	const manage, limited = "mk_0123456789abcdef0123456789abcdef", "mk_team_0123456789abcdef0123456789abcdef"
	second := uuid.NewString()
	for name, args := range map[string]func(t *testing.T) []string{
		"memory": func(*testing.T) []string { return nil },
		"folder": func(t *testing.T) []string { return []string{"-data", t.TempDir()} },
		"postgres": func(t *testing.T) []string {
			return []string{"-database-url", pgtest.Empty(t), "-files", t.TempDir(), "-secret-file", secretFile(t)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := append(args(t), "-management-key", manage, "-team-management-key", limited+"="+second)
			p := start(t, all...)
			org := "/v1/org/" + orgOf(p)
			as := func(key string) []string { return []string{"x-management-key", key} }
			var team struct {
				ID string `json:"id"`
			}
			ask(p, "POST", org+"/team", `{"name":"Clinic 2"}`, 403, nil, as(limited)...)
			ask(p, "POST", org+"/team", fmt.Sprintf(`{"id":%q,"name":"Clinic 2","integration_team_id":"crm 2"}`, second), 200, &team, as(manage)...)
			require.Equal(t, second, team.ID)
			ask(p, "POST", org+"/team", `{"name":"Clinic 3","integration_team_id":"crm 2"}`, 409, nil, as(manage)...)
			var teams struct {
				List []struct {
					ID string `json:"id"`
				} `json:"teams"`
			}
			ask(p, "GET", org+"/team", "", 200, &teams, as(manage)...)
			require.Len(t, teams.List, 2, "the first team and the new one")
			var key struct {
				ID, Value string
			}
			create := fmt.Sprintf(`{"team_id":%q,"label":"backend"}`, second)
			ask(p, "POST", org+"/team_api_keys/sandbox/us", create, 200, &key, as(limited)...)
			first := fmt.Sprintf(`{"team_id":%q,"label":"backend"}`, teamOf(p.key))
			ask(p, "POST", org+"/team_api_keys/sandbox/us", first, 404, nil, as(limited)...)
			if name != "memory" {
				old := p.key
				p.quit()
				p = start(t, append(all, "-api-key", old)...)
				org = "/v1/org/" + orgOf(p)
			}

			var ann, bob struct {
				ID   string `json:"user_id"`
				Team string `json:"team_id"`
			}
			ask(p, "POST", "/v2/user/", `{"client_user_id":"ann"}`, 200, &ann)
			ask(p, "POST", "/v2/user/", `{"client_user_id":"ann"}`, 200, &bob, "x-service-api-key", key.Value)
			require.Equal(t, second, bob.Team)
			ask(p, "GET", "/v2/user/"+ann.ID, "", 404, nil, "x-service-api-key", key.Value)
			brand := func(key, user string) (name string) {
				var token struct {
					Token string `json:"link_token"`
				}
				ask(p, "POST", "/v2/link/token", fmt.Sprintf(`{"user_id":%q}`, user), 200, &token, "x-service-api-key", key)
				var config struct {
					Brand struct {
						CompanyName string `json:"company_name"`
					} `json:"brand"`
				}
				ask(p, "GET", "/v2/team/link/config", "", 200, &config, "x-service-link-token", token.Token)
				return config.Brand.CompanyName
			}
			require.Equal(t, "Example Clinic", brand(p.key, ann.ID))
			require.Equal(t, "Clinic 2", brand(key.Value, bob.ID), "people see the team that invites them")
			ask(p, "GET", "/v2/user/"+bob.ID, "", 404, nil)
			ask(p, "GET", "/v2/team/"+second, "", 200, nil, "x-service-api-key", key.Value)
			ask(p, "GET", "/v2/team/"+second, "", 404, nil)
			ask(p, "GET", org+"/team/"+second+"/sandbox/settings", "", 200, nil, as(limited)...)
			ask(p, "GET", org+"/team/"+teamOf(p.key).String()+"/sandbox/settings", "", 404, nil, as(limited)...)
			ask(p, "GET", "/v1/org/"+uuid.NewString()+"/team/"+second+"/sandbox/settings", "", 404, nil, as(manage)...)

			ask(p, "DELETE", org+"/team/"+second, "", 400, nil, as(manage)...)
			ask(p, "DELETE", "/v2/user/"+bob.ID, "", 200, nil, "x-service-api-key", key.Value)
			ask(p, "DELETE", org+"/team/"+second, "", 403, nil, as(limited)...)
			ask(p, "DELETE", org+"/team/"+second, "", 200, nil, as(manage)...)
			ask(p, "GET", "/v2/team/"+second, "", 401, nil, "x-service-api-key", key.Value)
			ask(p, "GET", org+"/team/"+second, "", 404, nil, as(limited)...)
			ask(p, "GET", "/v2/user/"+ann.ID, "", 200, nil)
			p.quit()
		})
	}
	for _, bad := range []string{"mk_secret", "mk_secret=", "mk_secret=x", "=" + second} {
		_, _, err := flags([]string{"-team-management-key", bad}, io.Discard)
		require.EqualError(t, err, "-team-management-key must be KEY=TEAM,TEAM")
	}
	_, _, err := flags([]string{"-team-management-key", "mk_secret=" + second + "=root"}, io.Discard)
	require.ErrorContains(t, err, "the role must be admin, developer,")
}
