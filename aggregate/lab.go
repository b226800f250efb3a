package aggregate

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate/internal/vector"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

// labTable is the table of laboratory results.
const labTable = "lab_result"

// LabResult is a row of the table lab_result: a laboratory result of a person. A nil field is null.
// Values of one analyte have one unit.
type LabResult struct {
	ID uuid.UUID
	// Date is the day of the collection, or of the report if that is unknown. A result without either is in no
	// query result.
	Date healthlab.Date
	// Source is order or report.
	Source string
	// Name is the laboratory's name of the test, ReportedValue the value as the laboratory wrote it.
	Name, ReportedValue, Interpretation, Status    string
	LOINC, Analyte, Unit, Comparator, ReportedUnit *string
	ReferenceRange, RangeSource, RangeGroup        *string
	Specimen, Laboratory                           *string
	Value, Bound, RangeLow, RangeHigh              *float64
	SourceID                                       uuid.UUID
	CollectedDate, ReportedDate                    *healthlab.Date
	CollectedAt, ReportedAt, CorrectedAt           *healthlab.Time
}

// labColumn is a column of the table, with the function that reads its value from a row.
type labColumn struct {
	name, unit, doc string
	typ             Type
	value           func(*LabResult) tables.Cell
}

var labColumns = []labColumn{
	{"date", "", "day of the collection, else of the report; also the index", typeDate, func(r *LabResult) tables.Cell { return dateCell(&r.Date) }},
	{"id", "uuid", "", typeText, func(r *LabResult) tables.Cell { return vector.TextCell(r.ID.String()) }},
	{"loinc", "", "null where no code is known without doubt", typeText, func(r *LabResult) tables.Cell { return optText(r.LOINC) }},
	{"name", "", "what the laboratory calls it", typeText, func(r *LabResult) tables.Cell { return vector.TextCell(r.Name) }},
	{"analyte", "", "the LOINC component of a code that is known, with the specimen if that is not blood", typeText, func(r *LabResult) tables.Cell { return optText(r.Analyte) }},
	{"value", "that of `unit`", "null of a bound, of words, and where it cannot be converted", typeFloat, func(r *LabResult) tables.Cell { return optFloat(r.Value) }},
	{"unit", "", "UCUM; one of an analyte", typeText, func(r *LabResult) tables.Cell { return optText(r.Unit) }},
	{"comparator", "", "<, <=, > or >= of a bound", typeText, func(r *LabResult) tables.Cell { return optText(r.Comparator) }},
	{"bound", "that of `unit`", "the number of a bound", typeFloat, func(r *LabResult) tables.Cell { return optFloat(r.Bound) }},
	{"reported_value", "", "what the laboratory wrote", typeText, func(r *LabResult) tables.Cell { return vector.TextCell(r.ReportedValue) }},
	{"reported_unit", "", "what the laboratory wrote", typeText, func(r *LabResult) tables.Cell { return optText(r.ReportedUnit) }},
	{"interpretation", "", "normal, abnormal, critical or unknown", typeText, func(r *LabResult) tables.Cell { return vector.TextCell(r.Interpretation) }},
	{"reference_range", "", "what the laboratory wrote", typeText, func(r *LabResult) tables.Cell { return optText(r.ReferenceRange) }},
	{"range_low", "that of `unit`", "null is open, or not known", typeFloat, func(r *LabResult) tables.Cell { return optFloat(r.RangeLow) }},
	{"range_high", "that of `unit`", "null is open, or not known", typeFloat, func(r *LabResult) tables.Cell { return optFloat(r.RangeHigh) }},
	{"range_source", "", "laboratory, with the result; catalogue, where the result brings none; null without a range", typeText, func(r *LabResult) tables.Cell { return optText(r.RangeSource) }},
	{"range_group", "", "the group of a list by sex, age, pregnancy or fasting that the person is of; else null", typeText, func(r *LabResult) tables.Cell { return optText(r.RangeGroup) }},
	{"specimen", "", "what was examined", typeText, func(r *LabResult) tables.Cell { return optText(r.Specimen) }},
	{"collected_date", "", "", typeDate, func(r *LabResult) tables.Cell { return dateCell(r.CollectedDate) }},
	{"collected_at", "UTC", "null where the laboratory gives a day or less", typeInstant, func(r *LabResult) tables.Cell { return timeCell(r.CollectedAt) }},
	{"reported_date", "", "", typeDate, func(r *LabResult) tables.Cell { return dateCell(r.ReportedDate) }},
	{"reported_at", "UTC", "null where the laboratory gives a day or less", typeInstant, func(r *LabResult) tables.Cell { return timeCell(r.ReportedAt) }},
	{"status", "", "partial, final or corrected", typeText, func(r *LabResult) tables.Cell { return vector.TextCell(r.Status) }},
	{"corrected_at", "UTC", "", typeInstant, func(r *LabResult) tables.Cell { return timeCell(r.CorrectedAt) }},
	{"source", "", "order or report", typeText, func(r *LabResult) tables.Cell { return vector.TextCell(r.Source) }},
	{"source_id", "uuid", "the order or the parsing job", typeText, func(r *LabResult) tables.Cell { return vector.TextCell(r.SourceID.String()) }},
	{"laboratory", "", "", typeText, func(r *LabResult) tables.Cell { return optText(r.Laboratory) }},
}

func optText(s *string) tables.Cell {
	if s == nil {
		return tables.Cell{}
	}
	return tables.Cell{Valid: true, Text: *s}
}

func optFloat(v *float64) tables.Cell {
	if v == nil {
		return tables.Cell{}
	}
	return vector.FloatCell(*v)
}

func dateCell(d *healthlab.Date) tables.Cell {
	if d == nil || d.IsZero() {
		return tables.Cell{}
	}
	return vector.IntCell(dayOf(*d))
}

func dayOf(d healthlab.Date) int64 { return floorDiv(dayStart(d), day) }

func timeCell(t *healthlab.Time) tables.Cell {
	if t == nil {
		return tables.Cell{}
	}
	return vector.IntCell(t.UnixMicro())
}

// instant returns the time by which results of one day are ordered, in microseconds since 1970: the time of the
// collection, or of the report; 0 if both are unknown.
func (r *LabResult) instant() int64 {
	switch {
	case r.CollectedAt != nil:
		return r.CollectedAt.UnixMicro()
	case r.ReportedAt != nil:
		return r.ReportedAt.UnixMicro()
	}
	return 0
}

func labTableOf() *table {
	t := &table{name: labTable, indexType: typeDate}
	for i, c := range labColumns {
		t.columns = append(t.columns, column{name: c.name, base: c.name, typ: c.typ, unit: c.unit, doc: c.doc, from: fromLab, number: i})
	}
	return t
}

// ReadsLabResults reports whether a query of the checked request uses the table lab_result, which has data of
// orders and lab reports. A caller who may read health data may lack the permission for lab results.
func (r *Request) ReadsLabResults() bool {
	var check reader
	for i := range r.Queries {
		c := compiler{r: &check, q: &r.Queries[i], plan: &plan{}}
		m := mentions{c: &c, resources: map[string]*healthdata.Resource{}}
		lists := [][]Expr{r.Queries[i].Select, r.Queries[i].GroupBy}
		for _, j := range r.Queries[i].Joins {
			lists = append(lists, j.Select)
		}
		for _, list := range lists {
			for _, e := range list {
				m.expr(e, nil)
			}
		}
		if slices.ContainsFunc(m.tables, func(m mention) bool { return m.table == labTable }) {
			return true
		}
	}
	return false
}

// labResults reads the rows of the table lab_result, if a query of the request uses it.
func (s *Service) labResults(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, plans []*plan) ([]LabResult, error) {
	reads := false
	for _, p := range plans {
		p.each(func(p *plan) { reads = reads || p.table.name == labTable })
	}
	if !reads {
		return nil, nil
	}
	if s.opts.LabResults == nil {
		return nil, fmt.Errorf("read table %s: %w: aggregate.Options.LabResults is not set", labTable, healthlab.Unimplemented)
	}
	return s.opts.LabResults(ctx, team, user)
}

// labRows returns the rows of lab_result in the window of the plan. Invalid if a function over numbers would mix
// analytes or units among the rows that the condition selects.
func (p *plan) labRows(list []LabResult) ([]kept, error) {
	var out []kept
	of := map[uuid.UUID]*LabResult{}
	for i := range list {
		r := &list[i]
		at := dayStart(r.Date)
		if r.Date.IsZero() || at < p.window.from || at >= p.window.to {
			continue
		}
		k := kept{
			source: Source{Provider: r.Source, Type: healthdata.SourceLab}, index: at, updated: r.instant(), id: r.ID, cells: make([]tables.Cell, len(p.slots)),
		}
		for n := range p.slots {
			switch s := &p.slots[n]; s.from {
			case fromLab:
				k.cells[n] = labColumns[s.number].value(r)
			case fromIndex:
				k.cells[n] = indexCell(s.typ, at)
			}
		}
		of[r.ID] = r
		out = append(out, k)
	}
	counted := out
	if p.where != nil {
		counted = p.filtered(out)
	}
	return out, p.checkAnalytes(counted, of)
}

// errAnalytes is the error for a function over numbers of several analytes or units.
var errAnalytes = healthlab.Problems{{
	Code: "mixed_analytes", Msg: "must have numbers of one analyte and unit in each column: name one loinc in where, or group by analyte and unit",
}}.Err()

// checkAnalytes returns Invalid if a function over numbers, or a column of a join with AsOf, would use values of
// several analytes or units. Rows are compared if they have the same values of the group keys that are columns; group
// keys of time are ignored. of has the results by the id of the row.
func (p *plan) checkAnalytes(rows []kept, of map[uuid.UUID]*LabResult) error {
	var numbers []int
	for _, a := range p.aggs {
		if a.fn != Count {
			numbers = append(numbers, a.slot)
		}
	}
	if p.latest {
		for _, o := range p.outs {
			numbers = append(numbers, o.n)
		}
	}
	for _, slot := range numbers {
		if s := &p.slots[slot]; s.from != fromLab || s.typ != typeFloat {
			continue
		}
		seen := map[string][2]string{}
		for i := range rows {
			if !rows[i].cells[slot].Valid {
				continue
			}
			var key []byte
			for _, k := range p.keys {
				if k.kind == keySlot {
					key = fmt.Appendf(key, "%v\x00", rows[i].cells[k.slot])
				}
			}
			r := of[rows[i].id]
			is := [2]string{deref(r.Analyte), deref(r.Unit)}
			if was, ok := seen[string(key)]; ok && was != is {
				return errAnalytes
			}
			seen[string(key)] = is
		}
	}
	return nil
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
