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

// Refetch fetches the history of a connection again, as if the connection had just been linked. It does nothing if the
// history was already scheduled again at or after since. Fetches of new data continue, except for providers whose
// history arrives as new data. If a request is running, its data is stored. It returns NotFound if the team has no such
// user, or the user has no such working connection whose data is pulled.
func (s *Service) Refetch(ctx context.Context, ref Ref, since time.Time) error {
	at := s.now()
	settings, err := s.opts.Settings(ctx, ref.Team)
	if err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	err = s.store.Plan(ctx, ref, func(c healthdata.Connection, u healthdata.User, old []Task) (ConnectionPlan, error) {
		if c.Status != healthdata.Connected || s.puller(&c) == nil {
			return ConnectionPlan{}, healthlab.NotFound
		}
		asNews := s.users.Providers().Get(ref.Provider).Backfill.Mode == modePushIncremental
		var kept, again []Task
		for _, t := range old {
			if t.ScheduledAt.Before(since) && (t.Kind == History || asNews && t.Kind == News) {
				again = append(again, t)
			} else {
				kept = append(kept, t)
			}
		}
		out, err := s.planner.plan(planInput{ref, &c, &u, settings, at}, kept)
		if err != nil {
			return ConnectionPlan{}, err
		}
		for _, was := range again {
			i := slices.IndexFunc(out.Tasks, func(t Task) bool { return t.Key == was.Key })
			if i < 0 {
				was.stop()
				out.Tasks = append(out.Tasks, was)
				continue
			}
			t := &out.Tasks[i]
			t.Fence = was.Fence + 1 // a process that works on the old one loses its claim
			t.LastTry, t.LastOK, t.Oldest, t.Newest, t.Ended = was.LastTry, was.LastOK, was.Oldest, was.Newest, was.Ended
			t.Sent, t.Stored = was.Sent, was.Stored
		}
		return out, nil
	})
	if err != nil {
		if errors.Is(err, healthlab.NotFound) {
			return err
		}
		return fmt.Errorf("plan history again: %w", err)
	}
	s.Wake()
	return nil
}

// CountBulkOperation counts a bulk operation of a team at a provider, of which n are allowed in any period of per, over
// all processes. If n were counted already, it counts nothing and returns how long to wait.
func (s *Service) CountBulkOperation(ctx context.Context, team healthlab.TeamID, provider string, n int, per time.Duration) (wait time.Duration, err error) {
	now := s.now()
	err = s.store.UpdateBudgets(ctx, []BudgetKey{{Team: team, Provider: provider, Name: "bulk"}}, func(b []Budget) error {
		wait = b[0].countUse(now, n, per)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("spread: %w", err)
	}
	return wait, nil
}
