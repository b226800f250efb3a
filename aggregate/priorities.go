package aggregate

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/healthlab-dev/healthlab"
)

// PriorityStore stores the preferences of teams between providers. Methods are safe for concurrent use and
// atomic; text that contains NUL is refused with [healthlab.Invalid].
type PriorityStore interface {
	// Priorities returns a team's preferences, sorted by data, then provider.
	Priorities(ctx context.Context, team healthlab.TeamID) ([]Priority, error)

	// UpdatePriorities calls change with the stored preferences, stores its result and returns it. An error of
	// change is returned unchanged, and nothing is written. change may run more than once, so it must be pure.
	// Concurrent updates behave as if they ran one after another. Two entries with the same provider and data
	// are healthlab.Invalid.
	//
	// If the preferences have changed, the store starts to schedule a task for every live user of the team and
	// every active continuous query of it, in the same transaction, as continuous.Store.Insert does: every
	// table may have another result.
	UpdatePriorities(ctx context.Context, team healthlab.TeamID, change func([]Priority) ([]Priority, error)) ([]Priority, error)
}

// priorityData are the kinds of data of a preference.
var priorityData = []string{"workouts", "activity", "sleep", "body", "timeseries"}

// maxPriority is the highest number of a preference; its negative is the lowest.
const maxPriority = 1_000_000

// Preferences reads and changes teams' preferences between providers. Safe for concurrent use.
type Preferences struct {
	store PriorityStore
	known func(slug string) bool
}

// NewPreferences returns Preferences on a store. known reports whether a slug is that of a configured provider
// or lab; nil accepts all slugs. Invalid without a store.
func NewPreferences(store PriorityStore, known func(slug string) bool) (*Preferences, error) {
	if store == nil {
		return nil, fmt.Errorf("%w: aggregate.NewPreferences: the store is required", healthlab.Invalid)
	}
	if known == nil {
		known = func(string) bool { return true }
	}
	return &Preferences{store, known}, nil
}

// Of returns a team's preferences, sorted by data, then provider. [Options.Priorities] accepts the method.
func (s *Preferences) Of(ctx context.Context, team healthlab.TeamID) ([]Priority, error) {
	list, err := s.store.Priorities(ctx, team)
	if err != nil {
		return nil, fmt.Errorf("read priorities: %w", err)
	}
	return list, nil
}

// About returns a team's preferences about a kind of data; all of them for the empty text. Invalid for an
// unknown kind of data.
func (s *Preferences) About(ctx context.Context, team healthlab.TeamID, data string) ([]Priority, error) {
	if data != "" && !slices.Contains(priorityData, data) {
		var p healthlab.Problems
		p.AddEnum(priorityData, "data_type")
		return nil, fmt.Errorf("read priorities: %w", p.Err())
	}
	list, err := s.Of(ctx, team)
	return slices.DeleteFunc(list, func(p Priority) bool { return data != "" && p.Data != data }), err
}

// Profiles returns the Number of each provider for which the team has a preference without Data.
// healthdata.Options.Preference accepts the method.
func (s *Preferences) Profiles(ctx context.Context, team healthlab.TeamID) (map[string]int, error) {
	list, err := s.Of(ctx, team)
	out := map[string]int{}
	for _, p := range list {
		if p.Data == "" {
			out[p.Provider] = p.Number
		}
	}
	return out, err
}

// PriorityEdit sets or deletes a preference.
type PriorityEdit struct {
	// Provider and Data identify the [Priority].
	Provider, Data string
	// Number is the new number; nil deletes the preference.
	Number *int
}

// Change changes some of a team's preferences and returns all of them. Other preferences stay. Invalid with
// every problem by position and field.
func (s *Preferences) Change(ctx context.Context, team healthlab.TeamID, edits []PriorityEdit) ([]Priority, error) {
	var p healthlab.Problems
	for i, e := range edits {
		if !s.known(e.Provider) {
			p.Add("unknown_provider", "must be the slug of a provider or lab; GET /v2/providers lists the providers", i, "provider")
		}
		if e.Data != "" && !slices.Contains(priorityData, e.Data) {
			p.AddEnum(priorityData, i, "data_type")
		}
		if e.Number != nil && (*e.Number < -maxPriority || *e.Number > maxPriority) {
			p.Add("range", "must be from -1,000,000 to 1,000,000", i, "priority")
		}
		if slices.ContainsFunc(edits[:i], func(o PriorityEdit) bool { return o.Provider == e.Provider && o.Data == e.Data }) {
			p.Add("duplicate", "must have each provider and kind of data at most once", i)
		}
	}
	if err := p.Err(); err != nil {
		return nil, fmt.Errorf("change priorities: %w", err)
	}
	list, err := s.store.UpdatePriorities(ctx, team, func(old []Priority) ([]Priority, error) {
		out := slices.Clone(old)
		for _, e := range edits {
			out = slices.DeleteFunc(out, func(p Priority) bool { return p.Provider == e.Provider && p.Data == e.Data })
			if e.Number != nil {
				out = append(out, Priority{Provider: e.Provider, Data: e.Data, Number: *e.Number})
			}
		}
		return out, nil
	})
	if err != nil {
		return nil, fmt.Errorf("change priorities: %w", err)
	}
	return list, nil
}

// sortPriorities sorts preferences in the order in which a store returns them. Invalid if two have the same
// provider and data.
func sortPriorities(list []Priority) error {
	slices.SortFunc(list, func(a, b Priority) int {
		return cmp.Or(cmp.Compare(a.Data, b.Data), cmp.Compare(a.Provider, b.Provider))
	})
	for i := 1; i < len(list); i++ {
		if list[i].Data == list[i-1].Data && list[i].Provider == list[i-1].Provider {
			return fmt.Errorf("%w: priorities: each provider and kind of data must come at most once", healthlab.Invalid)
		}
	}
	return nil
}
