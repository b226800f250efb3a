package httpapi

import (
	"net/http"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/aggregate"
)

// priorityOperations are a team's preferences between providers.
func (a api) priorityOperations() []operation {
	if a.Priorities == nil {
		return nil
	}
	const path = " /v2/team/source/priorities"
	return []operation{
		{id: "read_source_priorities", pattern: http.MethodGet + path, team: a.readPriorities},
		{id: "change_source_priorities", pattern: http.MethodPatch + path, team: a.changePriorities},
	}
}

// priorityOut is a preference.
type priorityOut struct {
	// Data is null for everything that has no entry of its own.
	Data     *string `json:"data_type"`
	Provider string  `json:"provider"`
	Number   int     `json:"priority"`
}

func prioritiesOut(list []aggregate.Priority) []priorityOut {
	out := make([]priorityOut, len(list))
	for i, p := range list {
		out[i] = priorityOut{Data: orNull(p.Data), Provider: p.Provider, Number: p.Number}
	}
	return out
}

func (a api) readPriorities(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	data := in.OptText("data_type", 32)
	if err := in.Err(); err != nil {
		return err
	}
	list, err := a.Priorities.About(r.Context(), team, orEmpty(data))
	if err != nil {
		return err
	}
	return wire.JSON(w, http.StatusOK, prioritiesOut(list))
}

// priorityIn sets a preference; a null takes it away.
type priorityIn struct {
	Data     *string `json:"data_type"`
	Provider string  `json:"provider"`
	Number   *int    `json:"priority" wire:"required"`
}

func (a api) changePriorities(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	const most = 1000
	in := wire.From(r)
	var body []priorityIn
	in.Body(&body)
	if len(body) > most {
		in.Problem("too_many_items", "has too many members", "body")
	}
	if err := in.Err(); err != nil {
		return err
	}
	edits := make([]aggregate.PriorityEdit, len(body))
	for i, p := range body {
		edits[i] = aggregate.PriorityEdit{Provider: p.Provider, Data: orEmpty(p.Data), Number: p.Number}
	}
	list, err := a.Priorities.Change(r.Context(), team, edits)
	if err != nil {
		return err
	}
	return wire.JSON(w, http.StatusOK, prioritiesOut(list))
}
