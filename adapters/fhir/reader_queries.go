package fhir

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/continuous"
)

// Queries returns the ids of the continuous queries of a team whose rows are pushed as Observations.
func (r *Reader) Queries(ctx context.Context, team healthlab.TeamID) (out []uuid.UUID, err error) {
	if r.s.Continuous == nil {
		return nil, nil
	}
	for cursor := ""; ; {
		page, err := r.s.Continuous.List(ctx, continuous.ListQuery{Team: team, Cursor: cursor})
		if err != nil {
			return nil, fmt.Errorf("list continuous queries: %w", err)
		}
		for i := range page.Queries {
			if page.Queries[i].Export.FHIR {
				out = append(out, page.Queries[i].ID.UUID)
			}
		}
		if cursor = page.Next; cursor == "" {
			return out, nil
		}
	}
}

// statisticOf maps aggregate functions to the codes of the statistics that they compute.
var statisticOf = map[aggregate.Func]coding{
	aggregate.Mean: {statistics, "average", "Average"}, aggregate.Median: {statistics, "median", "Median"},
	aggregate.Min: {statistics, "minimum", "Minimum"}, aggregate.Max: {statistics, "maximum", "Maximum"},
}

// Rows returns the rows that a continuous query has for a user as Observations: one for each row and mapped column
// with a number. It returns NotFound if the team has no such query or user, or the query's rows are not pushed.
func (r *Reader) Rows(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, id uuid.UUID) ([]Resource, error) {
	if r.s.Continuous == nil {
		return nil, fmt.Errorf("read continuous query: %w", healthlab.NotFound)
	}
	q, err := r.s.Continuous.Get(ctx, team, continuous.QueryID{UUID: id})
	if err == nil && !q.Export.FHIR {
		err = healthlab.NotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read continuous query: %w", err)
	}
	frame, err := r.s.Continuous.Result(ctx, team, user, q.ID.String())
	if err != nil {
		return nil, fmt.Errorf("read rows of continuous query: %w", err)
	}
	var out []Resource
	for _, m := range continuous.Mappers(&q.Query) {
		column, err := frame.Column(m.Column)
		if err != nil {
			return nil, fmt.Errorf("read rows of continuous query: %w", err)
		}
		for row := range frame.Len() {
			if column.Null(row) || frame.Columns[0].Null(row) {
				continue
			}
			one, err := r.rowOf(&q, &m, user, healthlab.DateOf(frame.Columns[0].Time(row)), column.Float(row))
			if err != nil {
				return nil, err
			}
			out = append(out, one)
		}
	}
	return out, nil
}

// rowOf returns a value of a row as a vital sign. Its time is the start of the row's time bucket.
func (r *Reader) rowOf(q *continuous.Query, m *continuous.Mapper, user healthlab.UserID, day healthlab.Date, value float64) (Resource, error) {
	of := measurementOf(m.Resource)
	id := "cq." + hex.EncodeToString(user.UUID[:]) + "." + digest(q.ID.String(), m.Column) + "." + day.String()
	statistic := statisticOf[m.Func]
	out, err := toResource(&observation{
		head:   head{ResourceType: "Observation", ID: id, Meta: meta{Profile: []string{of.profile}}},
		Status: "final", Category: category(of.category), Code: concept{Coding: r.s.codesOf(of, byHour), Text: of.codes[0].Display},
		Subject: personReference(user), Effective: day.String(),
		ValueQuantity: &quantity{Value: number(value), Unit: of.display, System: ucumSystem, Code: of.unit},
		Method:        &concept{Coding: []coding{statistic}, Text: fmt.Sprintf("%s of %d %s", statistic.Display, max(m.Period.Value, 1), m.Period.Unit)},
	})
	out.Day = day
	return out, err
}

func measurementOf(resource string) *measurement {
	for i := range measurements {
		if measurements[i].resource == resource {
			return &measurements[i]
		}
	}
	return nil
}
