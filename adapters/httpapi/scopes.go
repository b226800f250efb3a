package httpapi

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings"
)

// scopeOperations are what a team asks people to grant at OAuth providers.
func (a api) scopeOperations() []operation {
	if a.Teams == nil {
		return nil
	}
	const path = " /v1/org/{org_id}/team/{team_id}/scope_requirements"
	return []operation{
		{id: "read_scope_requirements", pattern: http.MethodGet + path, handle: a.managingHere(a.readScopes)},
		{id: "change_scope_requirements", pattern: http.MethodPost + path, handle: a.managingHere(a.changeScopes)},
	}
}

// scopesOut are what a team asks for.
type scopesOut struct {
	Requirements []scopeOut `json:"requirements"`
}

// scopeOut is what a team asks for at a provider.
type scopeOut struct {
	Team     healthlab.TeamID `json:"team_id"`
	Provider string           `json:"provider"`
	Must     []string         `json:"user_must_grant"`
	May      []string         `json:"user_may_grant"`
}

// scopesFrom lists what a team asks for by provider; all of them if only is empty.
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

func (a api) readScopes(w http.ResponseWriter, r *http.Request, m *managed) error {
	only := orEmpty(m.OptText("provider", maxPathText))
	team, err := m.open()
	if err != nil {
		return err
	}
	c, err := a.Teams.Of(r.Context(), team)
	if err != nil {
		return err
	}
	return wire.JSON(w, http.StatusOK, scopesFrom(team, &c, only))
}

// scopeIn is what a team asks for at a provider.
type scopeIn struct {
	Must []string `json:"user_must_grant"`
	May  []string `json:"user_may_grant"`
}

func (a api) changeScopes(w http.ResponseWriter, r *http.Request, m *managed) error {
	var body map[string]*scopeIn
	m.Body(&body)
	team, err := m.open()
	if err != nil {
		return err
	}
	c, err := a.Teams.Change(r.Context(), team, func(c *teamsettings.Choices) {
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
		return ofBody(err)
	}
	return wire.JSON(w, http.StatusOK, scopesFrom(team, &c, ""))
}

// ofBody leaves out the name of the setting, which is the whole body here.
func ofBody(err error) error {
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
