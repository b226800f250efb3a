package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings"
)

// pullPreferenceOperations lists the operations that read and set, for several teams, how many days of history are
// pulled from each provider.
func (a api) pullPreferenceOperations() []server.Operation {
	if a.Teams == nil {
		return nil
	}
	const path = " /v1/org/{org_id}/team_data_pull_preferences/{environment}/{region}"
	return []server.Operation{
		{ID: "read_pull_preferences", Pattern: "GET" + path, Handle: a.managingTeams(asJSON(a.readPullPreferences))},
		{ID: "set_pull_preferences", Pattern: "POST" + path, Handle: a.managingTeams(asJSON(a.setPullPreferences))},
		{ID: "delete_pull_preferences", Pattern: "DELETE" + path, Handle: a.managingTeams(asJSON(a.deletePullPreferences))},
	}
}

// mostTeams is the largest number of teams in one request.
const mostTeams = 100

// managedTeams is a management request about several teams of an organisation.
type managedTeams struct {
	*wire.In
	mandate Mandate
	here    bool // true if the path names the environment and region of this deployment
	belongs func(uuid.UUID, healthlab.TeamID) error

	org uuid.UUID
}

// managingTeams returns a handler that authenticates a management request and calls do. do must first call
// authorizedTeams, or a function that calls it, because authorizedTeams checks the caller's mandate.
func (a api) managingTeams(do func(http.ResponseWriter, *http.Request, *managedTeams) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		by, err := a.manager(r)
		if err != nil {
			return err
		}
		in := wire.From(r)
		m := &managedTeams{In: in, mandate: by.Mandate, belongs: a.belongs(r.Context()), org: in.PathUUID("org_id")}
		env, region := in.PathText("environment", wire.MaxPathText), in.PathText("region", wire.MaxPathText)
		m.here = env == string(a.Environment) && region == string(a.Region)
		return do(w, r, m)
	}
}

// authorizedTeams returns the distinct teams of a request, or the problems of the request. It returns NotFound if a
// team is in another environment or region, or outside of the caller's mandate.
func (m *managedTeams) authorizedTeams(ids []uuid.UUID) ([]healthlab.TeamID, error) {
	if err := m.Err(); err != nil {
		return nil, err
	}
	if !m.here {
		return nil, fmt.Errorf("%w: environment or region: must be those of this deployment", healthlab.NotFound)
	}
	var out []healthlab.TeamID
	for _, id := range ids {
		team := healthlab.TeamID{UUID: id}
		if team.IsZero() || !m.mandate(m.org, team) {
			return nil, fmt.Errorf("%w: team", healthlab.NotFound)
		}
		if err := m.belongs(m.org, team); err != nil {
			return nil, err
		}
		if !slices.Contains(out, team) {
			out = append(out, team)
		}
	}
	return out, nil
}

// queryTeamIDs returns the team ids in the query of a request.
func (m *managedTeams) queryTeamIDs() []uuid.UUID {
	ids := m.UUIDs("team_id")
	if len(ids) > mostTeams {
		m.Problem("too_long", fmt.Sprintf("must list at most %d team ids", mostTeams), "query", "team_id")
	}
	return ids
}

// pullPreferencesOut is a page of the history settings of teams.
type pullPreferencesOut struct {
	Preferences []teamPullsOut `json:"data_pull_preferences"`
	NextCursor  *string        `json:"next_cursor"`
}

type teamPullsOut struct {
	Team      healthlab.TeamID                       `json:"team_id"`
	Providers map[string]teamsettings.PullPreference `json:"providers"`
}

// pullPreferences returns the effective history settings of teams.
func (a api) pullPreferences(ctx context.Context, teams []healthlab.TeamID, providers []string, next string) (any, error) {
	out := pullPreferencesOut{Preferences: make([]teamPullsOut, 0, len(teams)), NextCursor: orNull(next)}
	for _, team := range teams {
		of, err := a.Teams.Pulls(ctx, team, providers)
		if err != nil {
			return nil, err
		}
		out.Preferences = append(out.Preferences, teamPullsOut{team, of})
	}
	return out, nil
}

func (a api) readPullPreferences(ctx context.Context, m *managedTeams) (any, error) {
	ids, providers := m.queryTeamIDs(), m.Strings("provider")
	teams, next, err := a.teamsPage(ctx, m, ids, 5)
	if err != nil {
		return nil, err
	}
	return a.pullPreferences(ctx, teams, providers, next)
}

// teamsPage returns a page of teams sorted by id: the teams in the request, or all teams of the organisation that the
// key may manage. It must be called after all parameters were read.
func (a api) teamsPage(ctx context.Context, m *managedTeams, ids []uuid.UUID, size int) (teams []healthlab.TeamID, next string, err error) {
	limit, after := m.Int("limit", size, 1, mostTeams), m.OptUUID("next_cursor")
	if len(ids) == 0 && a.TeamsOf == nil && a.Organisations == nil {
		m.Problem("missing", "must list at least one team id", "query", "team_id")
	}
	if teams, err = m.authorizedTeams(ids); err != nil {
		return nil, "", err
	}
	if len(ids) == 0 {
		if teams, err = a.teamsOf(ctx, m.org); err != nil {
			return nil, "", err
		}
		teams = slices.DeleteFunc(slices.Clone(teams), func(t healthlab.TeamID) bool { return !m.mandate(m.org, t) })
	}
	slices.SortFunc(teams, func(a, b healthlab.TeamID) int { return bytes.Compare(a.UUID[:], b.UUID[:]) })
	if after != nil {
		teams = slices.DeleteFunc(teams, func(t healthlab.TeamID) bool { return bytes.Compare(t.UUID[:], after[:]) <= 0 })
	}
	if len(teams) > limit {
		teams = teams[:limit]
		next = teams[limit-1].String()
	}
	return teams, next, nil
}

// pullPreferencesIn sets how much of a provider's history is pulled for several teams.
type pullPreferencesIn struct {
	Teams     []uuid.UUID            `json:"team_ids"`
	Providers map[string]historyWire `json:"providers"`
}

func (a api) setPullPreferences(ctx context.Context, m *managedTeams) (any, error) {
	var body pullPreferencesIn
	m.Body(&body)
	if n := len(body.Teams); n > mostTeams {
		m.Problem("too_long", fmt.Sprintf("must list at most %d team ids", mostTeams), "body", "team_ids")
	} else if n == 0 && m.Err() == nil {
		m.Problem("missing", "must list at least one team id", "body", "team_ids")
	}
	teams, err := m.authorizedTeams(body.Teams)
	if err != nil {
		return nil, err
	}
	want, slugs := map[string]healthdata.HistoryChoice{}, []string{}
	for slug, h := range body.Providers {
		want[slug], slugs = h.choice(), append(slugs, slug)
	}
	if err := a.Teams.SetPulls(ctx, teams, want); err != nil {
		return nil, err
	}
	return a.pullPreferences(ctx, teams, slugs, "")
}

func (a api) deletePullPreferences(ctx context.Context, m *managedTeams) (any, error) {
	ids, providers := m.queryTeamIDs(), m.Strings("provider")
	if len(ids) == 0 {
		m.Problem("missing", "must list at least one team id", "query", "team_id")
	}
	teams, err := m.authorizedTeams(ids)
	if err != nil {
		return nil, err
	}
	if err := a.Teams.ForgetPulls(ctx, teams, providers); err != nil {
		return nil, err
	}
	return a.pullPreferences(ctx, teams, providers, "")
}

// scopeOperations lists the operations on the OAuth scopes that a team requires.
func (a api) scopeOperations() []server.Operation {
	if a.Teams == nil {
		return nil
	}
	const path = " /v1/org/{org_id}/team/{team_id}/scope_requirements"
	return []server.Operation{
		{ID: "read_scope_requirements", Pattern: http.MethodGet + path, Handle: a.managingHere(asJSON(a.readScopes))},
		{ID: "change_scope_requirements", Pattern: http.MethodPost + path, Handle: a.managingHere(asJSON(a.changeScopes))},
	}
}

// scopesOut lists the scopes that a team requires, by provider.
type scopesOut struct {
	Requirements []scopeOut `json:"requirements"`
}

// scopeOut lists the scopes that a team requires at one provider.
type scopeOut struct {
	Team     healthlab.TeamID `json:"team_id"`
	Provider string           `json:"provider"`
	Must     []string         `json:"user_must_grant"`
	May      []string         `json:"user_may_grant"`
}

// scopesFrom returns the scopes that a team requires, at the provider only or, if only is empty, at all providers.
func scopesFrom(team healthlab.TeamID, c *teamsettings.Choices, only string) scopesOut {
	out := scopesOut{Requirements: []scopeOut{}}
	for _, slug := range slices.Sorted(maps.Keys(c.Scopes)) {
		if only == "" || slug == only {
			x := c.Scopes[slug]
			out.Requirements = append(out.Requirements, scopeOut{
				Team: team, Provider: slug, Must: append([]string{}, x.Must...), May: append([]string{}, x.May...),
			})
		}
	}
	return out
}

func (a api) readScopes(ctx context.Context, m *managed) (any, error) {
	only := orEmpty(m.OptText("provider", wire.MaxPathText))
	team, err := m.authorizedTeam()
	if err != nil {
		return nil, err
	}
	c, err := a.Teams.Of(ctx, team)
	if err != nil {
		return nil, err
	}
	return scopesFrom(team, &c, only), nil
}

// scopeIn sets the scopes that a team requires at one provider.
type scopeIn struct {
	Must []string `json:"user_must_grant"`
	May  []string `json:"user_may_grant"`
}

func (a api) changeScopes(ctx context.Context, m *managed) (any, error) {
	var body map[string]*scopeIn
	m.Body(&body)
	team, err := m.authorizedTeam()
	if err != nil {
		return nil, err
	}
	c, err := a.Teams.Change(ctx, team, func(c *teamsettings.Choices) {
		for slug, x := range body {
			if x == nil {
				delete(c.Scopes, slug)
				continue
			}
			if c.Scopes == nil {
				c.Scopes = map[string]teamsettings.ScopeChoice{}
			}
			c.Scopes[slug] = teamsettings.ScopeChoice{Must: x.Must, May: x.May}
		}
	})
	if err != nil {
		return nil, withoutSettingName(err)
	}
	return scopesFrom(team, &c, ""), nil
}

// withoutSettingName removes the name of the setting from the paths of problems, because the body of the request is the
// setting itself.
func withoutSettingName(err error) error {
	var invalid *healthlab.InvalidError
	if !errors.As(err, &invalid) {
		return err
	}
	var p healthlab.Problems
	for _, q := range invalid.Problems {
		if len(q.Path) > 0 {
			q.Path = q.Path[1:]
		}
		p = append(p, q)
	}
	return fmt.Errorf("change scope requirements: %w", p.Err())
}
