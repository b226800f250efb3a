package httpapi

import (
	"context"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/labhistory"
)

func (a api) labResultOperations() []server.Operation {
	if a.LabHistory == nil {
		return nil
	}
	return []server.Operation{
		{ID: "list_lab_results", Pattern: "GET /v2/user/{user_id}/lab_result", Bound: server.UserInPath, Team: server.AsJSON(a.listLabResults)},
	}
}

// labResultPage is a page of results on the wire.
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

// LabResults returns what package aggregate reads the rows of the table lab_result from.
func LabResults(h *labhistory.Service) func(context.Context, healthlab.TeamID, healthlab.UserID) ([]aggregate.LabResult, error) {
	return func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) ([]aggregate.LabResult, error) {
		all, err := h.All(ctx, team, user)
		if err != nil {
			return nil, err
		}
		out := make([]aggregate.LabResult, len(all))
		for i := range all {
			r := &all[i]
			out[i] = aggregate.LabResult{
				ID: r.ID, Date: r.Date(), Source: string(r.Source), SourceID: r.SourceID, Name: r.Name, ReportedValue: r.ReportedValue,
				Interpretation: r.Interpretation, Status: r.Status, LOINC: r.LOINC, Analyte: r.Analyte, Unit: r.Unit,
				Comparator: r.Comparator, ReportedUnit: r.ReportedUnit, ReferenceRange: r.ReferenceRange, RangeSource: r.RangeSource,
				Specimen: r.Specimen, Laboratory: r.Laboratory, Value: r.Value, Bound: r.Bound, RangeLow: r.RangeLow, RangeHigh: r.RangeHigh,
				CollectedDate: r.CollectedDate, ReportedDate: r.ReportedDate, CollectedAt: r.CollectedAt, ReportedAt: r.ReportedAt,
				CorrectedAt: r.CorrectedAt,
			}
		}
		return out, nil
	}
}
