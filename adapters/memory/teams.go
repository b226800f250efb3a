package memory

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings"
)

type teamStore struct {
	*database
	teams map[healthlab.TeamID][]byte
}

// choices reads what a team has chosen; the result shares no memory with what is kept.
func (v teamStore) choices(team healthlab.TeamID) (c teamsettings.Choices, err error) {
	if doc := v.teams[team]; doc != nil {
		err = json.Unmarshal(doc, &c)
	}
	return c, err
}

func (v teamStore) Choices(ctx context.Context, team healthlab.TeamID) (teamsettings.Choices, error) {
	if err := v.lock(ctx); err != nil {
		return teamsettings.Choices{}, err
	}
	defer v.mu.Unlock()
	return v.choices(team)
}

func (v teamStore) UpdateChoices(ctx context.Context, team healthlab.TeamID,
	change func(teamsettings.Choices) (teamsettings.Choices, error),
) (teamsettings.Choices, error) {
	if err := v.lock(ctx); err != nil {
		return teamsettings.Choices{}, err
	}
	defer v.mu.Unlock()
	old, err := v.choices(team)
	if err != nil {
		return teamsettings.Choices{}, err
	}
	next, err := change(old)
	if err != nil {
		return teamsettings.Choices{}, err
	}
	doc, err := json.Marshal(next)
	if err != nil {
		return teamsettings.Choices{}, fmt.Errorf("encode team settings: %w", err)
	}
	v.teams[team] = doc
	return v.choices(team)
}
