package pull

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// storeItems stores items for t, the job's task or one of its followers (see setLeads), and quarantines refused ones.
// It returns the counts. allRefused reports whether there were items and all of them were refused.
func (j *job) storeItems(ctx context.Context, t *Task, items []linking.PullItem) (sum healthdata.Received, allRefused bool, err error) {
	s := j.service
	r := receiver{users: s.users, task: t, connection: j.connection, now: s.now}
	if err := r.receive(ctx, items); err != nil || len(r.refused) == 0 {
		return r.sum, false, err
	}
	if err := s.store.Quarantine(ctx, t.Ref, mergeRefused(r.refused)); err != nil {
		return r.sum, false, fmt.Errorf("quarantine: %w", err)
	}
	allRefused = len(r.refused) >= t.count(items)
	s.logRefused(ctx, t, r.refused, allRefused)
	return r.sum, allRefused, nil
}

// storePage stores a page of the provider, and the progress of the job's task and its followers (see setLeads).
func (j *job) storePage(ctx context.Context, followers []Task, page linking.PullPage) error {
	s := j.service
	if !j.connection.Demo {
		if _, err := s.limits.apply(ctx, &j.Task, page.RateLimits, nil); err != nil {
			return err
		}
	}
	brings := func(r linking.ResourceData) bool { return len(r.Items) > 0 }
	if s.opts.Accessed != nil && (len(page.Items) > 0 || slices.ContainsFunc(page.With, brings)) {
		if err := s.opts.Accessed(ctx, j.Team, j.User); err != nil {
			return fmt.Errorf("record access: %w", err)
		}
	}
	sum, allRefused, err := j.storeItems(ctx, &j.Task, page.Items)
	if err == nil {
		err = j.storeFollowerPages(ctx, followers, &page)
	}
	if err != nil {
		return j.recordFailure(ctx, err)
	}
	now := s.now()
	var done []healthlab.Event
	if j.Kind == History {
		e, ok, err := s.users.HistoricalEvent(j.Team, j.User, j.Provider, j.Resource, j.From, j.To)
		if err != nil {
			return err
		}
		if ok {
			done = []healthlab.Event{e}
		}
	}
	fetched := false
	err = j.update(ctx, func(t *Task) ([]healthlab.Event, error) {
		refusedBefore := t.refused()
		t.From, t.To, t.Until, t.StartedAt, t.EndedAt, t.Swept = j.From, j.To, j.Until, j.StartedAt, j.EndedAt, j.Swept
		t.addReceived(&sum, now)
		ended := t.advance(page.Next, now, &s.opts)
		t.noteRefused(allRefused, refusedBefore, ended)
		if fetched = ended && t.Status == Success; !fetched {
			return nil, nil
		}
		return done, nil
	})
	if err == nil && fetched && j.Kind == History {
		s.opts.Log.InfoContext(ctx, "history fetched", "task", j.Key, "trace", j.trace())
	}
	s.Wake()
	return err
}

// storeFollowerPages stores the items of followers (see setLeads) that are on the job's page, and the progress of the
// followers. If the process stops before it is complete, the page is stored again, which changes nothing more.
func (j *job) storeFollowerPages(ctx context.Context, followers []Task, page *linking.PullPage) error {
	s, t := j.service, &j.Task
	for _, f := range followers {
		var items []linking.PullItem
		for _, of := range page.With {
			if of.Resource == f.Resource {
				items = append(items, of.Items...)
			}
		}
		got, allRefused, err := j.storeItems(ctx, &f, items)
		if err != nil {
			return err
		}
		e, announced, err := s.users.HistoricalEvent(f.Team, f.User, f.Provider, f.Resource, t.From, t.To)
		if err != nil {
			return err
		}
		now := s.now()
		_, err = s.store.Update(ctx, f.Key, func(stored *Task) ([]healthlab.Event, error) {
			if !stored.follows(&f, t) || stored.Status == Success {
				return nil, nil
			}
			refusedBefore := stored.refused()
			stored.From, stored.To, stored.Until, stored.Cursor, stored.StartedAt, stored.EndedAt = t.From, t.To, t.Until, t.Cursor, t.StartedAt, t.EndedAt
			stored.addReceived(&got, now)
			ended := stored.advance(page.Next, now, &s.opts)
			stored.noteRefused(allRefused, refusedBefore, ended)
			if !ended {
				stored.Due = time.Time{}
				return nil, nil
			}
			stored.Lead = ""
			if announced && stored.Status == Success {
				return []healthlab.Event{e}, nil
			}
			return nil, nil
		})
		if err != nil && !errors.Is(err, healthlab.NotFound) {
			return err
		}
	}
	return nil
}
