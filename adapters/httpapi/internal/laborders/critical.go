package laborders

import (
	"context"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/critical"
)

// criticalOperations lists the operations on critical results.
func (a API) criticalOperations() []server.Operation {
	if a.Critical == nil {
		return nil
	}
	return []server.Operation{
		{ID: "list_critical_results", Pattern: "GET /v3/critical_result", Bound: server.UserInQuery, Team: server.AsJSON(a.listCritical)},
		{ID: "read_critical_result", Pattern: "GET /v3/critical_result/{critical_result_id}", Bound: a.ofCritical(), Team: server.ReadOne(criticalID, a.Critical.Get)},
		{ID: "acknowledge_critical_result", Pattern: "POST /v3/critical_result/{critical_result_id}/acknowledge", Bound: a.ofCritical(), Team: server.AsJSON(a.acknowledgeCritical)},
	}
}

// CriticalPage is one page of critical results.
type CriticalPage struct {
	Data       []critical.Loop `json:"data"`
	NextCursor *string         `json:"next_cursor"`
	Total      int             `json:"total"`
}

func (a API) listCritical(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	q := critical.Query{
		Team: team, Status: critical.Status(in.ShortText("status")), Cursor: in.ShortText("next_cursor"),
		Limit: in.Int("limit", catalogue.DefaultPageSize, 1, catalogue.MaxPageSize),
	}
	if id := in.OptUUID("user_id"); id != nil {
		q.User = healthlab.UserID{UUID: *id}
	}
	if id := in.OptUUID("order_id"); id != nil {
		q.Order = *id
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	page, err := a.Critical.List(ctx, q)
	if err != nil {
		return nil, err
	}
	out := CriticalPage{Data: page.Loops, Total: page.Total}
	if page.Next != "" {
		out.NextCursor = &page.Next
	}
	return out, nil
}

func criticalID(in *wire.In) critical.LoopID {
	return critical.LoopID{UUID: in.PathUUID("critical_result_id")}
}

func (a API) acknowledgeCritical(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	id := criticalID(in)
	var body critical.Request
	in.Body(&body)
	if err := in.ErrAnd(body.Check); err != nil {
		return nil, err
	}
	return a.Critical.Acknowledge(ctx, team, id, body)
}
