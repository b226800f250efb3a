package pull

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// FinishedHistory describes the history that an app has uploaded.
type FinishedHistory struct {
	// Provider is an on-device store, or another source that pushes its data.
	Provider string
	// Resource is the slug of the resource.
	Resource string
	// From and To are the limits of the time that the app searched, even if it found nothing.
	From, To time.Time
}

// FinishHistory records that an app has uploaded all of the history of a resource, and sends an event, once per
// connection of the source. A repeated call changes nothing. [Service.Histories] shows it. It returns NotFound
// if the team has no such user, Invalid with every invalid field, or a [*healthlab.RuleError] of type
// healthdata.RuleNoConnection.
func (s *Service) FinishHistory(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, f FinishedHistory) error {
	at := s.now()
	var p healthlab.Problems
	provider := s.users.Providers().Get(f.Provider)
	switch {
	case provider == nil:
		p.Add("unknown_provider", s.users.Providers().Expected(f.Provider), "provider")
	case provider.Class == classCloud:
		p.Add("not_pushed", "must be a provider whose history the app pushes, not one whose history the service fetches", "provider")
	}
	if r := healthdata.ResourceBySlug(f.Resource); r == nil || !r.Events {
		var known []string
		for _, r := range healthdata.Resources() {
			if r.Events {
				known = append(known, r.Slug)
			}
		}
		p.Add("unknown_resource", "must be a resource that has a history; the nearest names are "+healthdata.NearestNames(f.Resource, known), "resource")
	}
	switch {
	case f.To.Before(f.From):
		p.Add("order", "must not be before start_date", "end_date")
	case f.To.After(at.Add(24 * time.Hour)):
		p.Add("future", "must be at most 24 hours in the future", "end_date")
	}
	err := p.Err()
	if err == nil {
		err = s.store.Plan(ctx, Ref{team, user, f.Provider}, func(c healthdata.Connection, _ healthdata.User, old []Task) (ConnectionPlan, error) {
			return s.planner.planFinishedHistory(&c, old, Key{Ref{team, user, f.Provider}, f.Resource, History}, f, at)
		})
	}
	if errors.Is(err, healthlab.NotFound) {
		if ok, has := s.users.HasUser(ctx, team, user); has != nil {
			err = has
		} else if ok {
			err = noConnection(f.Provider)
		}
	}
	if err != nil {
		return fmt.Errorf("finish history: %w", err)
	}
	return nil
}

// classCloud is the class of providers that are pulled.
const classCloud = "cloud"

func noConnection(provider string) error {
	return &healthlab.RuleError{Type: healthdata.RuleNoConnection, Msg: "the user has not connected " + provider + "; connect it first"}
}

// planFinishedHistory returns the plan of a connection whose app has uploaded the history f: the tasks in old, of which
// the one with this key has succeeded at the instant at, and the event. If that task has already succeeded, nothing
// changes.
func (l *planner) planFinishedHistory(c *healthdata.Connection, old []Task, key Key, f FinishedHistory, at time.Time) (ConnectionPlan, error) {
	if c.Status != healthdata.Connected {
		return ConnectionPlan{}, noConnection(key.Provider)
	}
	out := ConnectionPlan{Tasks: slices.Clone(old), Due: c.Due}
	done := Task{
		Key: key, Linked: c.LinkedAt, Status: Success, From: healthlab.At(f.From).Time, To: healthlab.At(f.To).Time,
		ScheduledAt: c.LinkedAt, StartedAt: c.LinkedAt, EndedAt: at, Ended: 1, LastTry: at, LastOK: true,
	}
	i := slices.IndexFunc(old, func(t Task) bool { return t.Key == key })
	switch {
	case i < 0:
		out.Tasks = append(out.Tasks, done)
	case old[i].Linked.Equal(c.LinkedAt) && old[i].Status == Success:
		return out, nil
	default:
		done.Fence = old[i].Fence
		out.Tasks[i] = done
	}
	e, _, err := l.users.HistoricalEvent(key.Team, key.User, key.Provider, key.Resource, f.From, f.To)
	out.Events = []healthlab.Event{e}
	return out, err
}
