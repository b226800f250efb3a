package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

var team = healthlab.TeamID{UUID: uuid.MustParse("2d1f7c3a-0000-4000-8000-000000000001")}

// storage stores fetched data in memory with the rules of the service, to find the items that the service would
// refuse.
type storage struct {
	health  *healthdata.Service
	slug    string
	account string
	user    healthlab.UserID
}

func newStorage(ctx context.Context, record healthdata.Provider, account string, now func() time.Time) (*storage, error) {
	record.Class = "sdk_store" // this class is connected without link pages
	list, err := healthdata.NewProviders([]healthdata.Provider{record})
	if err != nil {
		return nil, err
	}
	store := memory.New(&memory.Options{Now: now})
	health, err := healthdata.New(store.Users(), store.Data(), list, &healthdata.Options{Now: now, Environment: healthlab.Production})
	if err != nil {
		return nil, err
	}
	u, err := health.CreateUser(ctx, team, healthdata.NewUser{ClientUserID: "check"})
	if err != nil {
		return nil, err
	}
	if _, err := health.Connections().Connect(ctx, team, u.ID, healthdata.NewConnection{Provider: record.Slug}); err != nil {
		return nil, err
	}
	return &storage{health, record.Slug, account, u.ID}, nil
}

// storeData stores data, and returns the number of items that could not be read or stored, by a text that has the field
// and the rule.
func (s *storage) storeData(ctx context.Context, data rest.Data) (map[string]int, error) {
	problems := map[string]int{}
	note := func(what string, list []healthlab.Problem) {
		for _, p := range list {
			var path []string
			for _, part := range p.Path {
				path = append(path, fmt.Sprint(part))
			}
			problems[strings.TrimSpace(fmt.Sprintf("%s: %s %s", what, strings.Join(path, "."), p.Msg))]++
		}
	}
	for resource, items := range data {
		var parts []healthdata.SummaryPart
		for i := range items {
			p := &items[i]
			for _, u := range p.Unparsed {
				note("not read", u.Problems)
			}
			if p.Owner != nil && s.account != "" && *p.Owner != s.account {
				note(resource, []healthlab.Problem{{Msg: "is another person's"}})
				continue
			}
			up := healthdata.Upload{Provider: s.slug, Stage: healthdata.StageDaily, Source: p.Source, Device: p.Device, TimeZone: p.TimeZone, Workout: p.Workout}
			if len(p.Summaries) > 0 {
				parts = append(parts, healthdata.SummaryPart{Upload: up, Items: p.Summaries})
			}
			if len(p.Samples) == 0 {
				continue
			}
			got, err := s.health.ReceiveSamples(ctx, team, s.user, resource, up, p.Samples)
			if err != nil {
				return nil, err
			}
			for _, r := range got.Refusals {
				note(resource+" not stored", r.Problems)
			}
		}
		if len(parts) == 0 {
			continue
		}
		of := resource
		if resource == "workout_stream" { // the summary that comes with a stream is a workout
			of = "workouts"
		}
		all, err := s.health.ReceiveSummaries(ctx, team, s.user, of, parts)
		if err != nil {
			return nil, err
		}
		for _, got := range all {
			for _, r := range got.Refusals {
				note(resource+" not stored", r.Problems)
			}
		}
		if err := s.storeStreams(ctx, items, note); err != nil {
			return nil, err
		}
	}
	return problems, nil
}

// storeStreams stores the recordings (streams) of workouts that are already stored. It calls note with the problems of
// each refused stream.
func (s *storage) storeStreams(ctx context.Context, items []linking.PullItem, note func(string, []healthlab.Problem)) error {
	for i := range items {
		p := &items[i]
		if p.Stream == nil || len(p.Summaries) != 1 {
			continue
		}
		id := healthdata.HeadOf(p.Summaries[0]).ID
		if slices.Equal(id[:], uuid.Nil[:]) {
			continue // the workout was not stored, so it has no id
		}
		up := healthdata.Upload{Provider: s.slug, Stage: healthdata.StageDaily, Source: p.Source}
		got, err := s.health.ReceiveWorkoutStream(ctx, team, s.user, id, up, p.Stream)
		if err != nil {
			return err
		}
		for _, r := range got.Refusals {
			note("workout_stream not stored", r.Problems)
		}
	}
	return nil
}
