package aggregate

import (
	"context"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// Tables declares the tables of [NewPriorityStore].
func Tables() []store.Definition { return []store.Definition{priorityTable.Definition()} }

// PriorityStoreOptions are the options of NewPriorityStore. The zero value, and nil, mean the defaults.
type PriorityStoreOptions struct {
	// Changed is called in the transaction that changes the preferences of a team. RowStore.Restart of package
	// continuous has this signature and evaluates the team's continuous queries again. Default: nothing is scheduled.
	Changed func(ctx context.Context, tx store.Tx, team healthlab.TeamID) error
}

// NewPriorityStore returns a PriorityStore that stores its rows in s, whose tables must include [Tables].
func NewPriorityStore(s store.Store, opts *PriorityStoreOptions) PriorityStore {
	p := priorityRows{s: s}
	if opts != nil {
		p.opts = *opts
	}
	return p
}

// preferences are the stored preferences of a team.
type preferences struct {
	Team healthlab.TeamID
	List []Priority
}

func preferencesKey(team healthlab.TeamID) store.Key {
	return store.Key{Team: team, ID: store.UUID(team.UUID)}
}

var priorityTable = store.Table[preferences]{Name: "provider_priority", Row: func(p *preferences) store.Row {
	return store.Row{Key: preferencesKey(p.Team)}
}}

type priorityRows struct {
	s    store.Store
	opts PriorityStoreOptions
}

// Priorities implements [PriorityStore].
func (p priorityRows) Priorities(ctx context.Context, team healthlab.TeamID) ([]Priority, error) {
	e, err := priorityTable.LookOne(ctx, p.s, preferencesKey(team))
	if err != nil || e == nil {
		return nil, err
	}
	return e.Value.List, nil
}

// UpdatePriorities implements [PriorityStore].
func (p priorityRows) UpdatePriorities(ctx context.Context, team healthlab.TeamID, change func([]Priority) ([]Priority, error)) (list []Priority, err error) {
	err = p.s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		e, err := priorityTable.Get(tx, preferencesKey(team), store.Held)
		if err != nil {
			return err
		}
		if e == nil {
			e = &store.Entry[preferences]{Value: preferences{Team: team}}
		}
		old := e.Value.List
		if list, err = change(slices.Clone(old)); err != nil {
			return err
		}
		list = slices.Clone(list)
		for _, p := range list {
			if err := healthlab.CheckText(p.Provider, p.Data); err != nil {
				return err
			}
		}
		if err := sortPriorities(list); err != nil || slices.Equal(list, old) {
			return err
		}
		e.Value.List = slices.Clone(list)
		if err := priorityTable.Put(tx, e); err != nil || p.opts.Changed == nil {
			return err
		}
		return p.opts.Changed(ctx, tx, team)
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}
