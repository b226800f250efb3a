package labhistory

import (
	"context"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
)

// Rows returns the rows of the table lab_result, for aggregate.Options.LabResults. NotFound if the team has
// no such user.
func (s *Service) Rows(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) ([]aggregate.LabResult, error) {
	all, err := s.allHistories(ctx, team, user)
	if err != nil {
		return nil, err
	}
	out := make([]aggregate.LabResult, len(all))
	for i := range all {
		r := &all[i]
		out[i] = aggregate.LabResult{
			ID: r.ID, Date: r.Date(), Source: string(r.Source), SourceID: r.SourceID, Name: r.Name, ReportedValue: r.ReportedValue,
			Interpretation: r.Interpretation, Status: r.Status, LOINC: r.LOINC, Analyte: r.Analyte, Unit: r.Unit,
			Comparator: r.Comparator, ReportedUnit: r.ReportedUnit, ReferenceRange: r.ReferenceRange, RangeSource: r.RangeSource, RangeGroup: r.RangeGroup,
			Specimen: r.Specimen, Laboratory: r.Laboratory, Value: r.Value, Bound: r.Bound, RangeLow: r.RangeLow, RangeHigh: r.RangeHigh,
			CollectedDate: r.CollectedDate, ReportedDate: r.ReportedDate, CollectedAt: r.CollectedAt, ReportedAt: r.ReportedAt,
			CorrectedAt: r.CorrectedAt,
		}
	}
	return out, nil
}
