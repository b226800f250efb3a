package pull

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// CountUpload counts what was uploaded, for [Service.Resources]: for
// healthdata.Options.Uploaded. NotFound if the user or the connection went away.
func (s *Service) CountUpload(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider, resource string, got healthdata.Received) error {
	now := s.now()
	ref := Ref{team, user, provider}
	key := Key{ref, resource, Uploads}
	_, err := s.store.Update(ctx, key, withoutEvents(func(t *Task) { t.addUpload(&got, now) }))
	if errors.Is(err, healthlab.NotFound) { // it is the first one
		err = s.store.Plan(ctx, ref, func(c healthdata.Connection, _ healthdata.User, old []Task) (ConnectionPlan, error) {
			for i := range old {
				if old[i].Key == key { // another process was first
					old[i].addUpload(&got, now)
					return ConnectionPlan{Tasks: old, Due: c.Due}, nil
				}
			}
			t := Task{Key: key, Linked: c.LinkedAt, Status: Success, ScheduledAt: now}
			t.addUpload(&got, now)
			return ConnectionPlan{Tasks: append(old, t), Due: c.Due}, nil
		})
	}
	if err != nil {
		return fmt.Errorf("count upload: %w", err)
	}
	return nil
}

// addUpload adds what an upload brought.
func (t *Task) addUpload(got *healthdata.Received, now time.Time) {
	t.LastTry, t.LastOK = now, true
	t.Sent += int64(got.Sent)
	if !got.Oldest.IsZero() && (t.Oldest.IsZero() || got.Oldest.Before(t.Oldest)) {
		t.Oldest = got.Oldest
	}
	t.Newest = later(t.Newest, got.Newest)
}
