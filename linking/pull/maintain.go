package pull

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// maintainLease is how long a process may take for a due connection before another process may process it.
const maintainLease = time.Minute

// maintainConnection processes a due connection: it deletes a user whose demo data has expired, stops the pulls of a
// user whose ingestion window has ended, and plans the pulls of others.
func (s *Service) maintainConnection(ctx context.Context, ref Ref) error {
	at := s.now()
	u, err := s.users.User(ctx, ref.Team, ref.User)
	if errors.Is(err, healthlab.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if end := u.ExpiresAt(); !end.IsZero() && !at.Before(end) {
		return s.expire(ctx, ref)
	}
	if u.Closed(at) {
		return s.stopPulls(ctx, ref)
	}
	settings, err := s.opts.Settings(ctx, ref.Team)
	if err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	err = s.store.Plan(ctx, ref, func(c healthdata.Connection, u healthdata.User, old []Task) (ConnectionPlan, error) {
		switch {
		case c.Status != healthdata.Connected:
			return ConnectionPlan{Tasks: old, Due: u.ExpiresAt()}, nil
		case s.puller(&c) == nil: // the provider pushes its data
			return ConnectionPlan{Tasks: old, Due: u.ExpiresAt()}, nil
		}
		return s.planner.plan(planInput{ref, &c, &u, settings, at}, old)
	})
	if errors.Is(err, healthlab.NotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("plan pulls: %w", err)
	}
	s.Wake()
	return nil
}

// nextMaintenance returns when a connection with pulls is next due: at the end of the user's ingestion window or at the
// expiry of the demo user, whichever is first. It is zero if neither happens.
func nextMaintenance(u *healthdata.User) time.Time {
	closes, expires := u.ClosesAt(), u.ExpiresAt()
	if closes.IsZero() || !expires.IsZero() && expires.Before(closes) {
		return expires
	}
	return closes
}

func (s *Service) expire(ctx context.Context, ref Ref) error {
	if err := s.users.Deletions().Delete(ctx, ref.Team, ref.User); err != nil && !errors.Is(err, healthlab.NotFound) {
		return fmt.Errorf("expire user: %w", err)
	}
	return nil
}

// stopPulls sets the Due of a connection's tasks to zero. The connection and its credential stay: if the end of the
// ingestion window is moved, the pulls continue.
func (s *Service) stopPulls(ctx context.Context, ref Ref) error {
	err := s.store.Plan(ctx, ref, func(_ healthdata.Connection, u healthdata.User, old []Task) (ConnectionPlan, error) {
		for i := range old {
			old[i].stop()
			if u.IngestionEnd != nil && old[i].Kind == News { // later data was dropped
				old[i].Seen = earlier(old[i].Seen, u.IngestionEnd.AddDays(1).At(u.Location()))
			}
		}
		return ConnectionPlan{Tasks: old, Due: u.ExpiresAt()}, nil
	})
	if errors.Is(err, healthlab.NotFound) {
		return nil
	}
	return err
}
