package memory

import (
	"context"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
)

func (v continuousStore) Priorities(ctx context.Context, team healthlab.TeamID) ([]aggregate.Priority, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	return slices.Clone(v.continuous.priorities[team]), nil
}

func (v continuousStore) UpdatePriorities(ctx context.Context, team healthlab.TeamID,
	change func([]aggregate.Priority) ([]aggregate.Priority, error),
) ([]aggregate.Priority, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	t := v.continuous
	old := t.priorities[team]
	list, err := change(slices.Clone(old))
	if err != nil {
		return nil, err
	}
	list = slices.Clone(list)
	for _, p := range list {
		if err := healthlab.CheckText(p.Provider, p.Data); err != nil {
			return nil, err
		}
	}
	if err := aggregate.SortPriorities(list); err != nil {
		return nil, err
	}
	if !slices.Equal(list, old) {
		t.priorities[team] = list
		for _, q := range t.queries {
			if q.read.Team == team {
				q.backfill, q.after = true, healthlab.UserID{}
			}
		}
	}
	return slices.Clone(list), nil
}
