package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/service"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
)

// teamKey is a management key for some teams, with its role.
type teamKey struct {
	key   string
	teams []healthlab.TeamID
	role  httpapi.Role
}

// String returns a constant text, so that the key is not printed by mistake.
func (teamKey) String() string { return "management key" }

func (c *config) readTeamKeys() error {
	for _, text := range c.teamKeyTexts {
		k, err := readTeamKey(text)
		if err != nil {
			return err
		}
		c.teamKeys = append(c.teamKeys, k)
	}
	return nil
}

func readTeamKey(text string) (k teamKey, err error) {
	key, teams, _ := strings.Cut(text, "=")
	teams, role, _ := strings.Cut(teams, "=")
	if k.role = httpapi.Role(role); httpapi.CheckRole(k.role) != nil {
		return teamKey{}, errors.New("-team-management-key must be KEY=TEAM,TEAM=ROLE; the role must be admin, developer, viewer, reviewer or auditor")
	}
	k.key = key
	for _, one := range strings.Split(teams, ",") {
		id, err := uuid.Parse(one)
		if err != nil || key == "" {
			return teamKey{}, errors.New("-team-management-key must be KEY=TEAM,TEAM")
		}
		k.teams = append(k.teams, healthlab.TeamID{UUID: id})
	}
	return k, nil
}

func organisationOf(team healthlab.TeamID) uuid.UUID {
	return uuid.NewSHA1(team.UUID, []byte("organisation"))
}

// admitFirstTeam creates the first team, the one of -api-key, unless it exists, and makes -api-key an API key of this
// team.
func (s *host) admitFirstTeam(ctx context.Context) error {
	org := organisationOf(s.team)
	_, err := s.Organisations.EnsureTeam(ctx, org, organisation.NewTeam{ID: s.team, Name: "First team"})
	if errors.Is(err, healthlab.Conflict) {
		return errors.New("-api-key belongs to a deleted team; use another key")
	}
	if err == nil {
		err = s.Organisations.AdmitKey(ctx, s.team, "of the command line", s.apiKey, httpapi.KeyHint(s.apiKey))
	}
	if err != nil {
		return fmt.Errorf("first team: %w", err)
	}
	return nil
}

// addManagement sets the management keys of the flags as the keys that the management API accepts.
func (s *host) addManagement(c *service.Config) error {
	var keys []httpapi.ManagementKey
	org := organisationOf(s.team)
	if s.managementKey != "" {
		keys = append(keys, httpapi.ManagementKey{Sum: httpapi.SumKey(s.managementKey), Mandate: httpapi.OrganisationMandate(org)})
	}
	for _, k := range s.teamKeys {
		keys = append(keys, httpapi.ManagementKey{Sum: httpapi.SumKey(k.key), Mandate: httpapi.TeamsMandate(org, k.teams...), Role: k.role})
	}
	if len(keys) > 0 {
		c.HTTP.AuthenticateManagement = httpapi.ManagementAuth(keys, nil)
	}
	return nil
}
