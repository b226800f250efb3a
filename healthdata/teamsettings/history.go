package teamsettings

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/nearest"
)

// PullDays is the number of days of history that are fetched, and the greatest number that a team can choose.
type PullDays struct {
	Days int `json:"historical_days_to_pull"`
	// Limit is the greatest number of days that a team can choose.
	Limit int `json:"historical_days_to_pull_limit"`
}

// PullPreference is how many days of a provider's history are fetched for a team: the team's choice, otherwise
// the deployment's default.
type PullPreference struct {
	Default PullDays `json:"default"`
	// Resources has the resources with another number than Default, by slug.
	Resources map[string]PullDays `json:"resource_overrides,omitempty"`
}

// Pulls returns by slug how many days of history are fetched for a team from the named providers; no name means
// all. Providers without a history are left out. It returns Invalid if there is no such provider.
func (s *Service) Pulls(ctx context.Context, team healthlab.TeamID, providers []string) (map[string]PullPreference, error) {
	if err := s.checkProviders(providers); err != nil {
		return nil, fmt.Errorf("pull preferences: %w", err)
	}
	c, err := s.Of(ctx, team)
	if err != nil {
		return nil, fmt.Errorf("pull preferences: %w", err)
	}
	out := map[string]PullPreference{}
	for _, p := range s.providers.List("") {
		if p.Backfill.DefaultDays <= 0 || p.Backfill.Mode == backfillNone || len(providers) > 0 && !slices.Contains(providers, p.Slug) {
			continue
		}
		want := c.History[p.Slug]
		one := PullPreference{}
		one.Default.Days, one.Default.Limit = p.Backfill.Range("", want)
		for _, r := range p.Resources {
			days, limit := p.Backfill.Range(r.Resource, want)
			if got := (PullDays{days, limit}); got != one.Default {
				if one.Resources == nil {
					one.Resources = map[string]PullDays{}
				}
				one.Resources[r.Resource] = got
			}
		}
		out[p.Slug] = one
	}
	return out, nil
}

// backfillNone is the backfill mode of providers without a history.
const backfillNone = "none"

// SetPulls sets for each team how many days of providers' history are fetched, and leaves other providers
// unchanged. It applies to later connections. Teams are changed one after another: after an error of the store
// some may be changed, and the call can be repeated. It returns Invalid with every invalid field, and then no
// team is changed.
func (s *Service) SetPulls(ctx context.Context, teams []healthlab.TeamID, want map[string]healthdata.HistoryChoice) error {
	var p healthlab.Problems
	for _, slug := range slices.Sorted(maps.Keys(want)) {
		p.Under(historyProblems(want[slug], slug, s.providers), "providers", truncateKey(slug))
	}
	err := p.Err()
	if err == nil {
		err = s.changeTeams(ctx, teams, func(c *Choices) {
			if c.History == nil {
				c.History = map[string]healthdata.HistoryChoice{}
			}
			maps.Copy(c.History, want)
		})
	}
	if err != nil {
		return fmt.Errorf("choose pull preferences: %w", err)
	}
	return nil
}

// ForgetPulls removes the teams' choices about the history of providers; no provider means all. The errors are
// those of [Service.SetPulls].
func (s *Service) ForgetPulls(ctx context.Context, teams []healthlab.TeamID, providers []string) error {
	err := s.checkProviders(providers)
	if err == nil {
		err = s.changeTeams(ctx, teams, func(c *Choices) {
			if len(providers) == 0 {
				c.History = nil
			}
			for _, slug := range providers {
				delete(c.History, slug)
			}
		})
	}
	if err != nil {
		return fmt.Errorf("forget pull preferences: %w", err)
	}
	return nil
}

func (s *Service) changeTeams(ctx context.Context, teams []healthlab.TeamID, edit func(*Choices)) error {
	for _, team := range teams {
		if _, err := s.Change(ctx, team, edit); err != nil {
			return err
		}
	}
	return nil
}

// checkProviders returns an error that lists the providers that are not configured; nil if all are.
func (s *Service) checkProviders(providers []string) error {
	var p healthlab.Problems
	for i, slug := range providers {
		if s.providers.Get(slug) == nil {
			p.Add("unknown_provider", s.providers.Expected(slug), "provider", i)
		}
	}
	return p.Err()
}

// historyProblems returns the invalid fields of a team's choice about the history of a provider.
func historyProblems(h healthdata.HistoryChoice, slug string, providers *healthdata.Providers) healthlab.Problems {
	const field = "historical_days_to_pull"
	var p healthlab.Problems
	of := providers.Get(slug)
	if of == nil {
		p.Add("unknown_provider", providers.Expected(slug))
		return p
	}
	if !of.Backfill.Configurable {
		p.Add("not_configurable", "must be left out: teams cannot choose how much history of "+of.Slug+" is fetched")
	}
	limit := of.Backfill.Limit()
	days := func(n int, path ...any) {
		if n < 1 || n > limit {
			p = append(p, healthlab.Problem{
				Path: append(path, field), Code: "range", Msg: fmt.Sprintf("must be from 1 to %d", limit), Context: map[string]any{"ge": 1, "le": limit},
			})
		}
	}
	days(h.Default, "default")
	var choosable []string
	for _, r := range of.Resources {
		if _, fixed := of.Backfill.Days[r.Resource]; !fixed {
			choosable = append(choosable, r.Resource)
		}
	}
	for _, resource := range slices.Sorted(maps.Keys(h.Resources)) {
		key := truncateKey(resource)
		switch {
		case len(choosable) == 0:
			p.Add("unknown_resource", "must be left out: the days of all resources of "+of.Slug+" are fixed", "resource_overrides", key)
		case !slices.Contains(choosable, resource):
			p.Add("unknown_resource", nearest.Allowed(resource, choosable, "GET /v2/providers"), "resource_overrides", key)
		}
		days(h.Resources[resource], "resource_overrides", key)
	}
	return p
}

func truncateKey(s string) string {
	const most = 64
	return strings.ToValidUTF8(s[:min(len(s), most)], "")
}
