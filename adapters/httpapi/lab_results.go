package httpapi

import (
	"context"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/aggregate/labhistory"
)

func (a api) labResultOperations() []server.Operation {
	return []server.Operation{
		{ID: "list_lab_results", Pattern: "GET /v2/user/{user_id}/lab_result", Bound: server.UserInPath, Team: server.AsJSON(a.listLabResults)},
	}
}

// labResultPage is one page of a person's laboratory results.
type labResultPage struct {
	Data       []labhistory.Result `json:"data"`
	NextCursor *string             `json:"next_cursor"`
}

func (a api) listLabResults(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	user := userID(in)
	q := labhistory.Query{Codes: in.Strings("code"), Size: in.Int("limit", 50, 1, 250)}
	if d := in.OptDate("start_date"); d != nil {
		q.From = *d
	}
	if d := in.OptDate("end_date"); d != nil {
		q.To = *d
	}
	if !q.From.IsZero() && !q.To.IsZero() {
		in.Range(q.From.At(time.UTC), q.To.AddDays(1).At(time.UTC), "start_date", "end_date")
	}
	q.Source = labhistory.Source(in.OneOf("source", "", string(labhistory.FromOrder), string(labhistory.FromReport)))
	if c := in.OptText("next_cursor", maxCursor); c != nil {
		q.Cursor = *c
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	page, err := a.LabHistory.List(ctx, team, user, q)
	if err != nil {
		return nil, err
	}
	return labResultPage{Data: page.Results, NextCursor: next(page.Next)}, nil
}
