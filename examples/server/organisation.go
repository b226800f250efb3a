package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
)

// teamKey is a management key for some teams.
type teamKey struct {
	key   string
	teams []healthlab.TeamID
}

// String shows no key.
func (teamKey) String() string { return "management key" }

func (c *config) readTeamKeys(texts []string) error {
	for _, text := range texts {
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
	k.key = key
	for _, one := range strings.Split(teams, ",") {
		id, err := uuid.Parse(one)
		if err != nil || key == "" {
			return teamKey{}, errors.New("-team-management-key is KEY=TEAM,TEAM")
		}
		k.teams = append(k.teams, healthlab.TeamID{UUID: id})
	}
	return k, nil
}

// organisationOf is the one organisation of this service, that of its first team.
func organisationOf(team healthlab.TeamID) uuid.UUID {
	return uuid.NewSHA1(team.UUID, []byte("organisation"))
}

// buildOrganisation makes what knows teams and their keys, and sees to it that the first
// team is there, with the key of the flags: after a start, that key works.
func (s *service) buildOrganisation(ctx context.Context) (err error) {
	s.orgs, err = organisation.New(s.store.Organisations(), &organisation.Options{NewKey: httpapi.KeyMaker(rand.Reader, s.environment, region)})
	if err != nil {
		return err
	}
	org := organisationOf(s.team)
	_, err = s.orgs.CreateTeam(ctx, org, organisation.NewTeam{ID: s.team, Name: "First team"})
	if errors.Is(err, healthlab.Conflict) {
		_, err = s.orgs.Team(ctx, org, s.team)
	}
	if errors.Is(err, healthlab.NotFound) {
		return errors.New("the team of -api-key was deleted; take another key")
	}
	if err == nil {
		err = s.orgs.AdmitKey(ctx, s.team, "of the command line", s.apiKey, httpapi.KeyHint(s.apiKey))
	}
	if err != nil {
		return fmt.Errorf("first team: %w", err)
	}
	return nil
}

// managementKeys are those of the flags.
func (s *service) managementKeys() (keys []httpapi.ManagementKey) {
	org := organisationOf(s.team)
	if s.managementKey != "" {
		keys = append(keys, httpapi.ManagementKey{Sum: httpapi.SumKey(s.managementKey), Mandate: httpapi.OrganisationMandate(org)})
	}
	for _, k := range s.teamKeys {
		keys = append(keys, httpapi.ManagementKey{Sum: httpapi.SumKey(k.key), Mandate: httpapi.TeamsMandate(org, k.teams...)})
	}
	return keys
}
