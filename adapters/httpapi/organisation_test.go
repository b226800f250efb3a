package httpapi_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings"
)

func newOrganisations(t *testing.T, store *memory.Store) *organisation.Service {
	t.Helper()
	s, err := organisation.New(store.Organisations(), &organisation.Options{NewKey: httpapi.KeyMaker(rand.Reader, healthlab.Sandbox, httpapi.US)})
	require.NoError(t, err)
	return s
}

// headquarters is an organisation whose people manage its teams over HTTP, and another one.
type headquarters struct {
	*contract.Client
	t     *testing.T
	orgs  *organisation.Service
	store *memory.Store
	teamA healthlab.TeamID // the one that the team's key opens
}

const (
	teamManagementKey  = "mk_team_0123456789abcdef0123456789abcdef"
	otherManagementKey = "mk_other_0123456789abcdef0123456789abcdef"
)

var otherOrg = uuid.MustParse("0199a000-0000-7000-8000-0000000000bb")

func newHeadquarters(t *testing.T) *headquarters {
	t.Helper()
	hq := &headquarters{t: t, store: memory.New(nil), teamA: healthlab.TeamID{UUID: uuid.New()}}
	hq.orgs = newOrganisations(t, hq.store)
	providers, err := healthdata.NewProviders(nil)
	require.NoError(t, err)
	health, err := healthdata.New(hq.store.Users(), hq.store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
	require.NoError(t, err)
	teams, err := teamsettings.New(hq.store.Teams(), providers, teamsettings.Choices{})
	require.NoError(t, err)
	whose, err := httpapi.KeyAuth(httpapi.KeysOf(hq.orgs), healthlab.Sandbox, httpapi.US, nil)
	require.NoError(t, err)
	h := httpapi.Handler(httpapi.Config{
		Authenticate: whose,
		Environment:  healthlab.Sandbox,
		AuthenticateManagement: httpapi.ManagementAuth([]httpapi.ManagementKey{
			{Sum: httpapi.SumKey(managementKey), Mandate: httpapi.OrganisationMandate(org)},
			{Sum: httpapi.SumKey(teamManagementKey), Mandate: httpapi.TeamsMandate(org, hq.teamA)},
			{Sum: httpapi.SumKey(otherManagementKey), Mandate: httpapi.OrganisationMandate(otherOrg)},
		}, nil),
		Parts: (&httpapi.Services{Health: health, Teams: teams, Organisations: hq.orgs}).Parts(),
	})
	hq.Client = contract.NewClient(t, h, httpapi.OpenAPI()).With("x-management-key", managementKey)
	return hq
}

func teamPath(of uuid.UUID, ids ...healthlab.TeamID) string {
	path := "/v1/org/" + of.String() + "/team"
	for _, id := range ids {
		path += "/" + id.String()
	}
	return path
}

const apiKeys = "/team_api_keys/sandbox/us"

func keysPath(of uuid.UUID) string { return "/v1/org/" + of.String() + apiKeys }

type teamSeen struct {
	ID          healthlab.TeamID `json:"id"`
	Org         uuid.UUID        `json:"org_id"`
	Name        string           `json:"name"`
	Integration *string          `json:"integration_team_id"`
	Environment string           `json:"environment"`
	Region      string           `json:"region"`
}

func (hq *headquarters) create(c *contract.Client, of uuid.UUID, body string) (out teamSeen) {
	hq.t.Helper()
	c.Send(hq.t, "POST", teamPath(of), body).Want(hq.t, 200).JSON(hq.t, &out)
	return out
}

type keySeen struct {
	ID    uuid.UUID        `json:"id"`
	Label string           `json:"label"`
	Value string           `json:"value"`
	Team  healthlab.TeamID `json:"team_id"`
}

func (hq *headquarters) key(team healthlab.TeamID, label string) (out keySeen) {
	hq.t.Helper()
	r := hq.Send(hq.t, "POST", keysPath(org), map[string]any{"team_id": team, "label": label}).Want(hq.t, 200)
	require.Equal(hq.t, "no-store", r.Header.Get("Cache-Control"))
	r.JSON(hq.t, &out)
	return out
}

func TestTeams_areManagedOnlyByTheirOrganisation(t *testing.T) {
	hq := newHeadquarters(t)
	const accents = "Łódź (Nord), A/B: l’été d'Åse | R&D_1-2"
	a := hq.create(hq.Client, org, `{"id":"`+hq.teamA.String()+`","name":"`+accents+`","integration_team_id":"crm 1"}`)
	one := "crm 1"
	require.Equal(t, teamSeen{hq.teamA, org, accents, &one, "sandbox", "us"}, a)
	b := hq.create(hq.Client, org, `{"name":"B"}`)
	foreign := hq.create(hq.With("x-management-key", otherManagementKey), otherOrg, `{"name":"Foreign","integration_team_id":"crm 1"}`)

	var page struct {
		Teams []teamSeen `json:"teams"`
		Next  *string    `json:"next_cursor"`
	}
	list := func(c *contract.Client, of uuid.UUID, query string) []teamSeen {
		page.Teams, page.Next = nil, nil
		c.Send(t, "GET", teamPath(of)+query, nil).Want(t, 200).JSON(t, &page)
		return page.Teams
	}
	mine := hq.With("x-management-key", teamManagementKey)
	require.ElementsMatch(t, []teamSeen{a, b}, list(hq.Client, org, ""))
	require.Equal(t, []teamSeen{a}, list(hq.Client, org, "?integration_team_id=crm%201"))
	require.Equal(t, []teamSeen{a}, list(mine, org, ""), "a team's key sees its teams alone")
	require.Empty(t, list(hq.Client, otherOrg, ""))
	require.Len(t, list(hq.Client, org, "?limit=1"), 1)
	require.NotNil(t, page.Next)
	require.Len(t, list(hq.Client, org, "?limit=1&next_cursor="+*page.Next), 1)
	require.Nil(t, page.Next)

	var got teamSeen
	hq.Send(t, "PATCH", teamPath(org, b.ID), `{"name":"Bee","integration_team_id":"crm 2"}`).Want(t, 200).JSON(t, &got)
	require.Equal(t, "Bee", got.Name)
	hq.Send(t, "PATCH", teamPath(org, b.ID), `{}`).Want(t, 200).JSON(t, &got)
	require.Equal(t, "crm 2", *got.Integration, "what is not named stays")
	taken := hq.Send(t, "PATCH", teamPath(org, b.ID), `{"integration_team_id":"crm 1"}`).Want(t, 409)
	require.Contains(t, string(taken.Body), `"team_id":"`+a.ID.String()+`"`)
	taken = hq.Send(t, "POST", teamPath(org), `{"name":"C","integration_team_id":"crm 1"}`).Want(t, 409)
	require.Contains(t, string(taken.Body), `"team_id":"`+a.ID.String()+`"`)
	taken = mine.Send(t, "PATCH", teamPath(org, a.ID), `{"integration_team_id":"crm 2"}`).Want(t, 409)
	require.NotContains(t, string(taken.Body), b.ID.String(), "another team than the key's")
	require.Equal(t, organisation.RuleTeamIDTaken, hq.Send(t, "POST", teamPath(org), `{"id":"`+foreign.ID.String()+`","name":"C"}`).Want(t, 409).ErrorType(t))
	hq.Send(t, "PATCH", teamPath(org, b.ID), `{"integration_team_id":null}`).Want(t, 200).JSON(t, &got)
	require.Nil(t, got.Integration)

	// Who may do what.
	mine.Send(t, "GET", teamPath(org, a.ID), nil).Want(t, 200).JSON(t, &got)
	require.Equal(t, a, got)
	mine.Send(t, "PATCH", teamPath(org, a.ID), `{"name":"A"}`).Want(t, 200)
	require.Equal(t, "FORBIDDEN", mine.Send(t, "POST", teamPath(org), `{"name":"C"}`).Want(t, 403).ErrorType(t))
	require.Equal(t, "FORBIDDEN", mine.Send(t, "DELETE", teamPath(org, a.ID), nil).Want(t, 403).ErrorType(t))
	for _, strange := range []healthlab.TeamID{b.ID, foreign.ID, {UUID: uuid.New()}} {
		for method, body := range map[string]any{"GET": nil, "PATCH": `{"name":"X"}`, "DELETE": nil} {
			require.Equal(t, "NOT_FOUND", mine.Send(t, method, teamPath(org, strange), body).Want(t, 404).ErrorType(t))
			if strange != b.ID {
				require.Equal(t, "NOT_FOUND", hq.Send(t, method, teamPath(org, strange), body).Want(t, 404).ErrorType(t))
			}
			hq.With("x-management-key", "mk_wrong").Send(t, method, teamPath(org, strange), body).Want(t, 401)
		}
	}
	hq.Send(t, "POST", teamPath(otherOrg), `{"name":"C"}`).Want(t, 403)
	hq.Send(t, "GET", "/v1/org/"+org.String()+"/team/"+foreign.ID.String()+"/sandbox/settings", nil).Want(t, 404)
	hq.Send(t, "GET", "/v1/org/"+org.String()+"/team/"+b.ID.String()+"/sandbox/settings", nil).Want(t, 200)
	var pulls struct {
		List []struct{} `json:"data_pull_preferences"`
	}
	hq.Send(t, "GET", "/v1/org/"+org.String()+"/team_data_pull_preferences/sandbox/us", nil).Want(t, 200).JSON(t, &pulls)
	require.Len(t, pulls.List, 2, "those of the organisation")

	for body, locs := range map[string][]string{
		`{"name":""}`:    {"body.name"},
		`{"name":"   "}`: {"body.name"},
		`{"name":"` + strings.Repeat("é", 81) + `"}`:                            {"body.name"},
		`{"name":"MARK;"}`:                                                      {"body.name"},
		`{"name":"Ω"}`:                                                          {"body.name"},
		`{"integration_team_id":"x"}`:                                           {"body.name"},
		`{"name":"A","integration_team_id":""}`:                                 {"body.integration_team_id"},
		`{"name":"A","integration_team_id":"MARK\u0007","x":1}`:                 {"body.x"},
		`{"name":"A","integration_team_id":"MARK\u0007"}`:                       {"body.integration_team_id"},
		`{"name":"A","id":"x"}`:                                                 {"body.id"},
		`{"name":"A","id":"00000000-0000-0000-0000-000000000000"}`:              {"body.id"},
		`{"name":"A","integration_team_id":"` + strings.Repeat("é", 257) + `"}`: {"body.integration_team_id"},
	} {
		r := hq.Send(t, "POST", teamPath(org), body).Want(t, 422)
		require.ElementsMatch(t, locs, r.Locs(t), body)
		require.NotContains(t, string(r.Body), "MARK")
	}
	hq.create(hq.Client, org, `{"name":"`+strings.Repeat("é", 80)+`","integration_team_id":"`+strings.Repeat("é", 256)+`"}`)
}

// Keys open a team from their creation to their end, and are shown once.
func TestAPIKey_authenticatesItsTeamUntilDeletedAndIsShownOnce(t *testing.T) {
	hq := newHeadquarters(t)
	a := hq.create(hq.Client, org, `{"id":"`+hq.teamA.String()+`","name":"A"}`)
	b := hq.create(hq.Client, org, `{"name":"B"}`)
	foreign := hq.create(hq.With("x-management-key", otherManagementKey), otherOrg, `{"name":"Foreign"}`)
	first, second, other := hq.key(a.ID, "backend"), hq.key(a.ID, "mobile"), hq.key(b.ID, "backend")
	require.Regexp(t, `^sk_us_[0-9a-f]{64}$`, first.Value)

	whoami := func(key string, status int) (out struct {
		ID   healthlab.TeamID `json:"id"`
		Org  uuid.UUID        `json:"org_id"`
		Name string           `json:"name"`
	}) {
		t.Helper()
		r := hq.With("x-service-api-key", key).Send(t, "GET", "/v2/team/"+a.ID.String(), nil).Want(t, status)
		if status == 200 {
			r.JSON(t, &out)
			require.NotContains(t, string(r.Body), key)
		}
		return out
	}
	me := whoami(first.Value, 200)
	require.Equal(t, []any{a.ID, org, "A"}, []any{me.ID, me.Org, me.Name})
	whoami(second.Value, 200)
	whoami(other.Value, 404)
	whoami("sk_us_"+strings.Repeat("0", 64), 401)

	mine := hq.With("x-management-key", teamManagementKey)
	list := func(c *contract.Client, query string) (out []keySeen) {
		var page struct {
			Keys []keySeen `json:"api_keys"`
		}
		c.Send(t, "GET", keysPath(org)+query, nil).Want(t, 200).JSON(t, &page)
		return page.Keys
	}
	hidden := func(k keySeen) keySeen {
		k.Value = "sk_us_…" + k.Value[len(k.Value)-4:]
		return k
	}
	require.Equal(t, []keySeen{hidden(first), hidden(second)}, list(hq.Client, "?team_id="+a.ID.String()))
	require.Len(t, list(hq.Client, ""), 3)
	require.Len(t, list(mine, ""), 2)
	mine.Send(t, "GET", keysPath(org)+"?team_id="+b.ID.String(), nil).Want(t, 404)
	hq.Send(t, "GET", keysPath(org)+"?team_id="+foreign.ID.String(), nil).Want(t, 404)

	remove := func(c *contract.Client, ids ...uuid.UUID) string {
		q := "?"
		for _, id := range ids {
			q += "key_id=" + id.String() + "&"
		}
		return string(c.Send(t, "DELETE", keysPath(org)+strings.TrimSuffix(q, "&"), nil).Want(t, 200).Body)
	}
	strange := uuid.New()
	require.JSONEq(t, `{"success":["`+first.ID.String()+`"],"failure":[],"not_found":["`+other.ID.String()+`","`+strange.String()+`"]}`,
		remove(mine, first.ID, other.ID, first.ID, strange), "another team's is not found")
	whoami(first.Value, 401)
	whoami(second.Value, 200)
	require.Equal(t, "UNAUTHORIZED", hq.With("x-management-key", "mk_wrong").Send(t, "DELETE", keysPath(org)+"?key_id="+second.ID.String(), nil).Want(t, 401).ErrorType(t))
	hq.With("x-management-key", otherManagementKey).Send(t, "DELETE", keysPath(otherOrg)+"?key_id="+second.ID.String(), nil).Want(t, 200)
	whoami(second.Value, 200)
	hq.Send(t, "DELETE", strings.Replace(keysPath(org), "sandbox", "production", 1)+"?key_id="+second.ID.String(), nil).Want(t, 404)
	hq.Send(t, "DELETE", strings.Replace(keysPath(org), "/us", "/eu", 1)+"?key_id="+second.ID.String(), nil).Want(t, 404)
	require.Equal(t, []string{"query.key_id"}, hq.Send(t, "DELETE", keysPath(org), nil).Want(t, 422).Locs(t))

	for _, body := range []string{`{"team_id":"` + a.ID.String() + `","label":" "}`, `{"team_id":"` + a.ID.String() + `","label":"` + strings.Repeat("x", 81) + `"}`} {
		require.Equal(t, []string{"body.label"}, hq.Send(t, "POST", keysPath(org), body).Want(t, 422).Locs(t))
	}
	hq.Send(t, "POST", keysPath(org), map[string]any{"team_id": foreign.ID, "label": "x"}).Want(t, 404)
	mine.Send(t, "POST", keysPath(org), map[string]any{"team_id": b.ID, "label": "x"}).Want(t, 404)
	for range organisation.MaxKeys - 1 {
		hq.key(a.ID, "many")
	}
	require.Equal(t, organisation.RuleTooManyKeys,
		hq.Send(t, "POST", keysPath(org), map[string]any{"team_id": a.ID, "label": "one too many"}).Want(t, 400).ErrorType(t))

	// The team ends, and its keys with it.
	user := hq.With("x-service-api-key", second.Value).Send(t, "POST", "/v2/user/", `{"client_user_id":"ann"}`).Want(t, 200)
	var u healthdata.User
	user.JSON(t, &u)
	full := hq.Send(t, "DELETE", teamPath(org, a.ID), nil).Want(t, 400)
	require.Equal(t, organisation.RuleTeamNotEmpty, full.ErrorType(t))
	hq.With("x-service-api-key", second.Value).Send(t, "DELETE", "/v2/user/"+u.ID.String(), nil).Want(t, 200)
	require.JSONEq(t, `{"success":true}`, string(hq.Send(t, "DELETE", teamPath(org, a.ID), nil).Want(t, 200).Body))
	whoami(second.Value, 401)
	hq.Send(t, "DELETE", teamPath(org, a.ID), nil).Want(t, 404)
	mine.Send(t, "GET", teamPath(org, a.ID), nil).Want(t, 404)
	hq.Send(t, "GET", "/v1/org/"+org.String()+"/team/"+a.ID.String()+"/sandbox/settings", nil).Want(t, 404)
	require.Equal(t, organisation.RuleTeamIDTaken, hq.Send(t, "POST", teamPath(org), `{"id":"`+a.ID.String()+`","name":"A"}`).Want(t, 409).ErrorType(t))
}

// stubborn is a store that does not delete one key.
type stubborn struct {
	organisation.Store
	id uuid.UUID
}

var errStubborn = errors.New("stubborn")

func (s *stubborn) DeleteKey(ctx context.Context, team healthlab.TeamID, id uuid.UUID) error {
	if id == s.id {
		return errStubborn
	}
	return s.Store.DeleteKey(ctx, team, id)
}

func TestDeleteTeam_reportsAPIKeysThatCouldNotBeDeleted(t *testing.T) {
	store := &stubborn{Store: memory.New(nil).Organisations()}
	orgs, err := organisation.New(store, &organisation.Options{NewKey: httpapi.KeyMaker(rand.Reader, healthlab.Sandbox, httpapi.US)})
	require.NoError(t, err)
	h := httpapi.Handler(httpapi.Config{
		Authenticate:           byTeamID,
		Environment:            healthlab.Sandbox,
		AuthenticateManagement: func(*http.Request) (httpapi.Manager, error) { return httpapi.Manager{Mandate: httpapi.EveryTeam}, nil },
		Parts:                  (&httpapi.Services{Organisations: orgs}).Parts(),
	})
	c := contract.NewClient(t, h, httpapi.OpenAPI())
	team, err := orgs.CreateTeam(t.Context(), org, organisation.NewTeam{Name: "A"})
	require.NoError(t, err)
	one, _, err := orgs.CreateKey(t.Context(), org, team.ID, organisation.NewKey{Label: "a"})
	require.NoError(t, err)
	two, _, err := orgs.CreateKey(t.Context(), org, team.ID, organisation.NewKey{Label: "b"})
	require.NoError(t, err)
	store.id = one.ID
	r := c.Send(t, "DELETE", keysPath(org)+"?key_id="+one.ID.String()+"&key_id="+two.ID.String(), nil).Want(t, 200)
	require.JSONEq(t, `{"success":["`+two.ID.String()+`"],"failure":["`+one.ID.String()+`"],"not_found":[]}`, string(r.Body))
}
