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
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
)

// securedOperation is what the contract says of the credentials of an operation.
type securedOperation struct {
	id, method, path string
	security         []map[string][]string
	body             any // empty, nil if the operation takes none
}

func securedOperations(t *testing.T) (out []securedOperation) {
	t.Helper()
	var doc struct {
		Paths map[string]map[string]struct {
			ID       string                `json:"operationId"`
			Security []map[string][]string `json:"security"`
			Body     *struct{}             `json:"requestBody"`
		} `json:"paths"`
	}
	require.NoError(t, json.Unmarshal(httpapi.OpenAPI(), &doc))
	for path, methods := range doc.Paths {
		for method, op := range methods {
			secured := securedOperation{op.ID, strings.ToUpper(method), path, op.Security, nil}
			if op.Body != nil {
				secured.body = "{}"
			}
			out = append(out, secured)
		}
	}
	slices.SortFunc(out, func(a, b securedOperation) int { return strings.Compare(a.id, b.id) })
	return out
}

// fillPath gives the parameters of a path values.
func fillPath(path string, user healthlab.UserID) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		switch {
		case part == "{user_id}":
			parts[i] = user.String()
		case part == "{org_id}":
			parts[i] = org.String()
		case part == "{team_id}":
			parts[i] = team.String()
		case part == "{environment}":
			parts[i] = "sandbox"
		case part == "{region}":
			parts[i] = "us"
		case strings.HasPrefix(part, "{") && strings.HasSuffix(part, "_id}"):
			parts[i] = uuid.NewString()
		case strings.HasPrefix(part, "{"):
			parts[i] = "x"
		}
	}
	return strings.Join(parts, "/")
}

// Every operation that takes an API key is refused to a key without its scope, and not to a
// key with the scopes that it names alone.
func TestAPIKey_eachOperationRequiresItsScope(t *testing.T) {
	c, user := full(t)
	var scopes organisation.Scopes
	c.Authenticate = func(*http.Request) (httpapi.Caller, error) { return httpapi.Caller{Team: team, Scopes: scopes}, nil }
	client := contract.NewClient(t, c.handler(), httpapi.OpenAPI()).With("x-service-api-key", goodKey)
	tested := 0
	for _, op := range securedOperations(t) {
		for _, scheme := range op.security {
			needed, ok := scheme["TeamKey"]
			if !ok {
				continue
			}
			tested++
			t.Run(op.id, func(t *testing.T) {
				require.NotEmpty(t, needed)
				path := fillPath(op.path, user)
				var sufficient organisation.Scopes
				for _, name := range needed {
					scope := organisation.Scope(name)
					sufficient = append(sufficient, scope)
					require.Contains(t, organisation.AllScopes(), scope)
					if op.method == http.MethodGet {
						require.True(t, strings.HasSuffix(name, ":read"), "a GET needs a scope to read")
					}
					scopes = slices.DeleteFunc(organisation.AllScopes(), func(s organisation.Scope) bool { return s == scope })
					refused := client.Send(t, op.method, path, op.body).Want(t, http.StatusForbidden)
					require.Equal(t, "SCOPE_MISSING", refused.ErrorType(t))
					require.Contains(t, string(refused.Body), name)
				}
				for _, scopes = range []organisation.Scopes{sufficient, nil} {
					passed := client.Send(t, op.method, path, op.body)
					require.NotEqual(t, http.StatusUnauthorized, passed.Status)
					require.NotContains(t, string(passed.Body), "SCOPE_MISSING")
				}
			})
		}
	}
	require.Greater(t, tested, 100)
}

// Every operation of the management is refused to a key whose role does not suffice.
func TestManagementKey_eachOperationRequiresItsRole(t *testing.T) {
	c, user := full(t)
	var role httpapi.Role
	c.AuthenticateManagement = func(*http.Request) (httpapi.Manager, error) {
		return httpapi.Manager{Mandate: httpapi.EveryTeam, Role: role}, nil
	}
	client := contract.NewClient(t, c.handler(), httpapi.OpenAPI()).With("x-management-key", managementKey)
	includes := map[httpapi.Role][]httpapi.Role{
		httpapi.RoleViewer:    {"", httpapi.RoleAdmin, httpapi.RoleDeveloper, httpapi.RoleViewer},
		httpapi.RoleDeveloper: {"", httpapi.RoleAdmin, httpapi.RoleDeveloper},
		httpapi.RoleReviewer:  {"", httpapi.RoleAdmin, httpapi.RoleReviewer},
		httpapi.RoleAuditor:   {"", httpapi.RoleAdmin, httpapi.RoleAuditor},
		httpapi.RoleAdmin:     {"", httpapi.RoleAdmin},
	}
	for _, op := range securedOperations(t) {
		for _, scheme := range op.security {
			needed, ok := scheme["ManagementKey"]
			if !ok {
				continue
			}
			t.Run(op.id, func(t *testing.T) {
				if len(needed) == 0 { // every role may
					role = httpapi.RoleAuditor
					client.Send(t, op.method, fillPath(op.path, user), op.body).Want(t, http.StatusNotFound) // the team is no one's
					return
				}
				require.Len(t, needed, 1)
				may := includes[httpapi.Role(needed[0])]
				require.NotEmpty(t, may)
				for _, role = range []httpapi.Role{"", httpapi.RoleAdmin, httpapi.RoleDeveloper, httpapi.RoleViewer, httpapi.RoleReviewer, httpapi.RoleAuditor} {
					require.NoError(t, httpapi.CheckRole(role))
					r := client.Send(t, op.method, fillPath(op.path, user), op.body)
					if slices.Contains(may, role) {
						require.NotContains(t, string(r.Body), "ROLE_MISSING", role)
						continue
					}
					require.Equal(t, http.StatusForbidden, r.Status, role)
					require.Equal(t, "ROLE_MISSING", r.ErrorType(t))
				}
			})
		}
	}
	require.ErrorIs(t, httpapi.CheckRole("root"), healthlab.Invalid)
}

// Operations without a key are these alone: those of link tokens, of apps that sign in, of
// providers, and public ones.
func TestOperations_withoutAKeyAreExactlyTheListedOnes(t *testing.T) {
	var open []string
	for _, op := range securedOperations(t) {
		keyed := slices.ContainsFunc(op.security, func(s map[string][]string) bool { return s["TeamKey"] != nil || s["ManagementKey"] != nil })
		token := slices.ContainsFunc(op.security, func(s map[string][]string) bool { return s["LinkTokenKey"] != nil })
		if !keyed && !token {
			open = append(open, op.id)
		}
	}
	require.Equal(t, []string{
		"check_link_token", "exchange_link_code", "finish_oauth", "get_contract", "push_from_provider", "push_to_team_client", "read_provider_logo",
		"read_requisition_form", "refresh_app", "sign_in_app", "sign_out_app", "start_link", "verify_push_from_provider", "verify_push_to_team_client",
	}, open)
}

// A management key tells its own role. Beside an API key it must be an admin's for the team, and
// the access log names it.
func TestManagementKey_besideAnAPIKeyMustBeAnAdminsOfTheTeam(t *testing.T) {
	c, user := full(t)
	_, err := c.Organisations.CreateTeam(t.Context(), org, organisation.NewTeam{ID: team, Name: "A"})
	require.NoError(t, err)
	keys := map[httpapi.Role]string{httpapi.RoleAdmin: managementKey, httpapi.RoleViewer: teamManagementKey, httpapi.RoleReviewer: otherManagementKey}
	var list []httpapi.ManagementKey
	for role, key := range keys {
		list = append(list, httpapi.ManagementKey{Sum: httpapi.SumKey(key), Mandate: httpapi.TeamsMandate(org, team), Role: role, Name: string(role) + " key"})
	}
	const stranger = "mk_stranger_0123456789abcdef0123456789ab"
	list = append(list, httpapi.ManagementKey{Sum: httpapi.SumKey(stranger), Mandate: httpapi.OrganisationMandate(otherOrg)})
	c.AuthenticateManagement = httpapi.ManagementAuth(list, nil)
	client := contract.NewClient(t, c.handler(), httpapi.OpenAPI()).With("x-service-api-key", goodKey)
	at := "/v2/user/" + user.String()
	for role, key := range keys {
		beside := client.With("x-management-key", key)
		var own struct{ Name, Role string }
		beside.Send(t, "GET", teamPath(org, team)+"/management_key", nil).Want(t, 200).JSON(t, &own)
		require.Equal(t, string(role), own.Role)
		require.Equal(t, string(role)+" key", own.Name)
		if role != httpapi.RoleAdmin {
			require.Equal(t, "ROLE_MISSING", beside.Send(t, "GET", at, nil).Want(t, 403).ErrorType(t))
		}
	}
	client.With("x-management-key", stranger).Send(t, "GET", teamPath(org, team)+"/management_key", nil).Want(t, 404)
	client.With("x-management-key", stranger).Send(t, "GET", at, nil).Want(t, 401)
	client.With("x-management-key", "wrong").Send(t, "GET", at, nil).Want(t, 401)
	client.With("x-management-key", managementKey).Send(t, "GET", at, nil).Want(t, 200)
	var page struct{ Lines []struct{ Actor string } }
	client.Send(t, "GET", "/v2/access_log", nil).Want(t, 200).JSON(t, &page)
	require.Equal(t, "management:admin key", page.Lines[len(page.Lines)-1].Actor)
}

// A key has the scopes that it was made with, expires, shows its last use, and is rotated with
// an overlap.
func TestAPIKey_hasScopesExpiresAndIsRotatedWithAnOverlap(t *testing.T) {
	hq := newHeadquarters(t)
	a := hq.create(hq.Client, org, `{"id":"`+hq.teamA.String()+`","name":"A"}`)
	type scoped struct {
		keySeen
		Scopes    []string   `json:"scopes"`
		ExpiresAt *time.Time `json:"expires_at"`
		LastUsed  *time.Time `json:"last_used_at"`
	}
	expires := time.Now().Add(48 * time.Hour).UTC().Truncate(time.Second)
	var key scoped
	hq.Send(t, "POST", keysPath(org), map[string]any{
		"team_id": a.ID, "label": "reader", "scopes": []string{"data:read", "admin:read", "data:read"}, "expires_at": expires,
	}).Want(t, 200).JSON(t, &key)
	require.Equal(t, []string{"admin:read", "data:read"}, key.Scopes)
	require.True(t, expires.Equal(*key.ExpiresAt))
	require.Nil(t, key.LastUsed)
	use := func(value, method, path string, status int) *contract.Reply {
		var body any
		if method == "POST" {
			body = `{"client_user_id":"ann"}`
		}
		return hq.With("x-service-api-key", value).Send(t, method, path, body).Want(t, status)
	}
	use(key.Value, "GET", "/v2/user/", 200)
	require.Equal(t, "SCOPE_MISSING", use(key.Value, "POST", "/v2/user/", 403).ErrorType(t))
	list := func() (out []scoped) {
		var page struct {
			Keys []scoped `json:"api_keys"`
		}
		hq.Send(t, "GET", keysPath(org)+"?team_id="+a.ID.String(), nil).Want(t, 200).JSON(t, &page)
		return page.Keys
	}
	require.WithinDuration(t, time.Now(), *list()[0].LastUsed, time.Minute)

	rotate := keysPath(org) + "/" + key.ID.String() + "/rotate"
	var next scoped
	hq.Send(t, "POST", rotate, `{"overlap_hours":2}`).Want(t, 200).JSON(t, &next)
	require.Equal(t, key.Scopes, next.Scopes)
	require.Equal(t, "reader", next.Label)
	require.NotEqual(t, key.ID, next.ID)
	require.WithinDuration(t, time.Now().Add(2*time.Hour), *list()[0].ExpiresAt, time.Minute)
	use(key.Value, "GET", "/v2/user/", 200)
	use(next.Value, "GET", "/v2/user/", 200)
	hq.Send(t, "POST", rotate, `{"overlap_hours":0}`).Want(t, 200)
	use(key.Value, "GET", "/v2/user/", 401)
	use(next.Value, "GET", "/v2/user/", 200)
	require.Equal(t, organisation.RuleKeyExpired, hq.Send(t, "POST", rotate, `{}`).Want(t, 400).ErrorType(t))
	require.Equal(t, []string{"body.overlap_hours"}, hq.Send(t, "POST", rotate, `{"overlap_hours":721}`).Want(t, 422).Locs(t))
	hq.Send(t, "POST", keysPath(org)+"/"+uuid.NewString()+"/rotate", `{}`).Want(t, 404)
	hq.With("x-management-key", otherManagementKey).Send(t, "POST", keysPath(otherOrg)+"/"+next.ID.String()+"/rotate", `{}`).Want(t, 404)

	for field, value := range map[string]any{"expires_at": time.Now().Add(-time.Minute), "scopes": []string{}} {
		bad := map[string]any{"team_id": a.ID, "label": "x", field: value}
		require.Equal(t, []string{"body." + field}, hq.Send(t, "POST", keysPath(org), bad).Want(t, 422).Locs(t))
	}
	bad := hq.Send(t, "POST", keysPath(org), map[string]any{"team_id": a.ID, "label": "x", "scopes": []string{"data:read", "everything"}}).Want(t, 422)
	require.Equal(t, []string{"body.scopes.1"}, bad.Locs(t))
	require.Contains(t, string(bad.Body), "must be one of data:read, data:write,")
}
