package bulk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// throttle limits how often a team can trigger fetches of histories at a provider: n in each period of per, or n at the
// same time.
type throttle struct {
	n   int
	per time.Duration // 0 means that n limits the concurrent fetches
}

// throttles has the throttle of each class that a provider's record can name, and of the default class.
var throttles = map[string]throttle{
	"2_per_minute":      {2, time.Minute},
	"250_at_a_time":     {250, 0},
	"1_per_15_minutes":  {1, 15 * time.Minute},
	"150_per_5_minutes": {150, 5 * time.Minute},
	"8_per_minute":      {8, time.Minute},
}

const defaultThrottle = "8_per_minute"

func throttleOf(p *healthdata.Provider) throttle {
	if t, ok := throttles[p.Throttle]; ok {
		return t
	}
	return throttles[defaultThrottle]
}

// Trigger fetches the history of connections again, within the limits of the provider, the team and the users'
// ingestion windows. The operation is stored at once, and runs in the background at the speed of the provider's class.
// Operations of one team at one provider run one after another. A user counts as processed when the fetch is scheduled.
// At a provider that limits concurrent fetches (250_at_a_time), a user counts as processed when the fetch has ended.
//
// With wait, Trigger returns when all users are processed, or after [Options].Wait with the operation in progress.
//
// Errors: Invalid (the provider is not configured), Forbidden ([RuleNotEnabled]).
func (s *Service) Trigger(ctx context.Context, team healthlab.TeamID, provider string, users []healthlab.UserID, wait bool) (Op, error) {
	op, err := s.trigger(ctx, team, provider, users)
	if err == nil && wait {
		op, err = s.await(ctx, op)
	}
	if err != nil {
		return Op{}, fmt.Errorf("trigger histories: %w", err)
	}
	return op, nil
}

func (s *Service) trigger(ctx context.Context, team healthlab.TeamID, provider string, users []healthlab.UserID) (Op, error) {
	if _, err := s.enabled(ctx, team); err != nil {
		return Op{}, err
	}
	if _, err := s.provider(provider); err != nil {
		return Op{}, err
	}
	users = uniqueUsers(users)
	op := s.op(team, HistoricalTrigger, provider, len(users))
	items := make([]Item, len(users))
	for i, u := range users {
		items[i].User = u
	}
	return op, s.submit(ctx, op, items)
}

// triggerNext starts the fetch of the history for the next users of op, an operation that [Service.Trigger] stored.
func (s *Service) triggerNext(ctx context.Context, op Op) (Op, error) {
	p := s.users.Providers().Get(op.Provider)
	settings, err := s.links.Settings(ctx, op.Team)
	if err != nil {
		return op, err
	}
	if p == nil || !settings.Bulk {
		return op.ended(Aborted, s.now()), nil
	}
	limit := throttleOf(p)
	if op.Running, err = s.unfinished(ctx, &op); err != nil {
		return op, err
	}
	for range turn {
		if limit.per == 0 && len(op.Running) >= limit.n {
			op.Due = s.now().Add(again)
			return op, nil
		}
		items, err := s.store.Items(ctx, op.Team, op.ID, op.Next, 1)
		if err != nil {
			return op, err
		}
		if len(items) == 0 {
			op.Next = op.Total
			return s.finish(op), nil
		}
		if limit.per > 0 {
			wait, err := s.pulls.CountBulkOperation(ctx, op.Team, op.Provider, limit.n, limit.per)
			if err != nil {
				return op, err
			}
			if wait > 0 {
				op.Due = s.now().Add(wait)
				return op, nil
			}
		}
		it := items[0]
		err = s.pulls.Refetch(ctx, pull.Ref{Team: op.Team, User: it.User, Provider: op.Provider}, op.StartedAt)
		switch {
		case errors.Is(err, healthlab.NotFound):
			op.Failed++
		case err != nil:
			return op, err
		case limit.per == 0:
			op.Running = append(op.Running, it.User)
		}
		op.Next = it.N + 1
	}
	op.Due = s.now()
	return op, nil
}

// unfinished returns the running users of an operation whose history has not ended. A connection that no longer
// works has no running history.
func (s *Service) unfinished(ctx context.Context, op *Op) (out []healthlab.UserID, err error) {
	for _, id := range op.Running {
		u, err := s.users.User(ctx, op.Team, id)
		if errors.Is(err, healthlab.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if c := u.Connection(op.Provider); c == nil || c.Status != healthdata.Connected {
			continue
		}
		p, err := s.pulls.Progress(ctx, op.Team, id, op.Provider)
		if err != nil && !errors.Is(err, healthlab.NotFound) {
			return nil, err
		}
		if p.Done < p.Total {
			out = append(out, id)
		}
	}
	return out, nil
}
