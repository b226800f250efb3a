package pull

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Histories of resources that one request returns are fetched together. The first of a set is the lead; the
// tasks of the others leave the queue and follow it.

// setLeads makes tasks of histories follow another one of the same set (resources that one request returns): the
// requests of the first task, the lead, then also fetch their data. Only tasks that have not begun, and that have the
// range of the lead, follow it.
func setLeads(sets [][]string, tasks []Task) {
	for _, set := range sets {
		var lead *Task
		for i := range tasks {
			t := &tasks[i]
			// A task that was claimed once is fetched alone, because its lease may still be valid on the store's
			// clock.
			begun := t.Status != Scheduled || !t.StartedAt.IsZero() || !t.Lease.IsZero()
			if t.Kind != History || begun || t.Lead != "" || t.Due.IsZero() || !slices.Contains(set, t.Resource) {
				continue
			}
			if lead == nil {
				lead = t
			} else if t.From.Equal(lead.From) && t.To.Equal(lead.To) {
				t.Lead, t.Due = lead.Resource, time.Time{}
			}
		}
	}
}

// clearLeads makes tasks that follow a lead (see setLeads) due at an instant, if the lead is no longer due or has
// another range.
func clearLeads(tasks []Task, at time.Time) {
	for i := range tasks {
		t := &tasks[i]
		led := func(l Task) bool {
			return l.Kind == History && l.Ref == t.Ref && l.Resource == t.Lead && l.Lead == "" && !l.Due.IsZero() &&
				l.From.Equal(t.From) && l.To.Equal(t.To)
		}
		if t.Lead != "" && !slices.ContainsFunc(tasks, led) {
			t.Lead = ""
			if t.Status != Success && t.Status != Failure {
				t.Due = at
			}
		}
	}
}

func (t *Task) follows(read, lead *Task) bool {
	return t.ScheduledAt.Equal(read.ScheduledAt) && t.Lead == lead.Resource
}

// followers returns the tasks that follow the job's history (see setLeads), so that its requests also fetch their data.
// It returns none if another process has claimed the job's task.
func (j *job) followers(ctx context.Context) ([]Task, error) {
	if j.Kind != History || len(j.service.planner.together[j.Provider]) == 0 {
		return nil, nil
	}
	all, err := j.service.store.Tasks(ctx, j.Team, j.User)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(all, func(l Task) bool { return l.Key == j.Key && l.Fence == j.Fence }) {
		return nil, nil
	}
	return slices.DeleteFunc(all, func(f Task) bool {
		return f.Ref != j.Ref || f.Kind != History || f.Lead != j.Resource || f.Status == Success
	}), nil
}

// releaseFollowers makes the followers of the job's history (see setLeads) due, so that each is fetched alone.
func (j *job) releaseFollowers(ctx context.Context) error {
	followers, err := j.followers(ctx)
	for _, f := range followers {
		now := j.service.now()
		_, failed := j.service.store.Update(ctx, f.Key, withoutEvents(func(stored *Task) {
			if stored.follows(&f, &j.Task) {
				stored.Lead, stored.Due = "", now
			}
		}))
		if !errors.Is(failed, healthlab.NotFound) {
			err = errors.Join(err, failed)
		}
	}
	return err
}
