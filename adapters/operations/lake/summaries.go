package lake

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

// indexColumn is the name of the column by which rows of summaries are sorted: the start, or the day.
const indexColumn = "index"

// identifying lists the columns of summaries that are not exported: free text, dates of birth, places and external ids.
var identifying = []string{"birth_date", "title", "name", "map_polyline", "map_summary_polyline", "external_id"}

// idColumns maps the columns of summaries that hold an id to the kind of the id, for Exporter.pseudonym.
var idColumns = map[string]string{"id": "summary", "source_device_id": "device"}

// cycleMargin is the longest time between the index of a sleep cycle's record and that of its sleep session.
const cycleMargin = 24 * time.Hour

const sleepCycleSlug = "sleep_cycle"

func summaryTable(resource string) *tables.Table {
	for _, t := range tables.All() {
		if t.Resource == resource {
			return t
		}
	}
	return nil
}

// exported returns the columns of a table that are exported: with [Options.Identified] all of them.
func (e *Exporter) exported(t *tables.Table) []*tables.Column {
	var out []*tables.Column
	for i := range t.Columns {
		if e.opts.Identified || !slices.Contains(identifying, t.Columns[i].Name) {
			out = append(out, &t.Columns[i])
		}
	}
	return out
}

func (e *Exporter) summaryColumns(t *tables.Table) []Column {
	out := []Column{userDoc, {Name: indexColumn, Type: t.IndexType, Doc: "what rows are sorted by: the start, or the day"}}
	for _, c := range e.exported(t) {
		kind := c.Type
		if kind == tables.TypeList {
			kind = tables.TypeString
		}
		out = append(out, Column{c.Name, kind, c.Unit, c.Doc})
	}
	return out
}

// scanSummaries adds the fingerprints of a user's summaries to prints.
func (x *export) scanSummaries(ctx context.Context, v healthdata.View, user healthlab.UserID, prints map[partition]Fingerprint) error {
	for _, t := range tables.All() {
		records, err := v.Records(ctx, healthdata.RecordQuery{Resource: t.Resource})
		if err != nil {
			return err
		}
		for i := range records {
			p := partition{t.Resource, monthOf(records[i].Index.UnixMicro())}
			sum := prints[p]
			sum.add(recordPrint(user, &records[i]))
			prints[p] = sum
		}
		if !t.Cycles || len(records) == 0 {
			continue
		}
		if records, err = v.Records(ctx, healthdata.RecordQuery{Resource: sleepCycleSlug}); err != nil {
			return err
		}
		for i := range records {
			for _, month := range cycleMonths(&records[i]) {
				p := partition{t.Resource, month}
				if sum, ok := prints[p]; ok {
					sum.add(recordPrint(user, &records[i]))
					prints[p] = sum
				}
			}
		}
	}
	return nil
}

// cycleMonths returns the months in which the sleep session of a sleep cycle may have its index.
func cycleMonths(r *healthdata.Record) []string {
	out := []string{monthOf(r.Index.Add(-cycleMargin).UnixMicro())}
	if next := monthOf(r.Index.Add(cycleMargin).UnixMicro()); next != out[0] {
		out = append(out, next)
	}
	return out
}

// fillSummaries writes to t the summaries of a user in a month, except sessions that another session covers. It adds
// the fingerprints of all of them to print.
func (x *export) fillSummaries(ctx context.Context, t *table, v healthdata.View, s *tables.Table, user healthlab.UserID, from, to time.Time, print *Fingerprint) error {
	records, err := v.Records(ctx, healthdata.RecordQuery{Resource: s.Resource, From: from, To: to.Add(-time.Microsecond)})
	if err != nil || len(records) == 0 {
		return err
	}
	var cycles map[uuid.UUID]*healthdata.SleepCycle
	if s.Cycles {
		if cycles, err = cyclesOf(ctx, v, user, from, to, print); err != nil {
			return err
		}
	}
	columns := x.exported(s)
	for i := range records {
		r := &records[i]
		print.add(recordPrint(user, r))
		if r.CoveredBy != uuid.Nil {
			continue // another session covers it
		}
		summary, err := r.Decode()
		if err != nil {
			return fmt.Errorf("read %s: %w", s.Name, err)
		}
		row := &tables.Row{Record: r, Summary: summary, Cycle: cycles[r.ID]}
		t.set(0, textCell(x.pseudonym("user", user.String())))
		t.set(1, indexCell(s, row))
		for k, c := range columns {
			t.set(2+k, x.summaryCell(c, c.Value(row)))
		}
		if err := t.added(1); err != nil {
			return err
		}
	}
	return nil
}

func indexCell(s *tables.Table, row *tables.Row) tables.Cell {
	at := s.Index(row)
	if s.IndexType == tables.TypeDate {
		at = time.UnixMicro(at).Unix() / (24 * 60 * 60)
	}
	return intCell(at)
}

func (x *export) summaryCell(c *tables.Column, v tables.Cell) tables.Cell {
	if kind := idColumns[c.Name]; kind != "" && v.Valid {
		v.Text = x.pseudonym(kind, v.Text)
	}
	if c.Type == tables.TypeList && v.Valid {
		return textCell(listJSON(c.Fields, v.List))
	}
	return v
}

// cyclesOf returns the sleep cycles of a month by the id of their sleep session, and adds their fingerprints to print.
// Of several cycles of a session it returns the one changed last.
func cyclesOf(ctx context.Context, v healthdata.View, user healthlab.UserID, from, to time.Time, print *Fingerprint) (map[uuid.UUID]*healthdata.SleepCycle, error) {
	records, err := v.Records(ctx, healthdata.RecordQuery{Resource: sleepCycleSlug, From: from.Add(-2 * cycleMargin), To: to.Add(2 * cycleMargin)})
	if err != nil {
		return nil, err
	}
	out := map[uuid.UUID]*healthdata.SleepCycle{}
	changed := map[uuid.UUID]time.Time{}
	for i := range records {
		r := &records[i]
		if slices.Contains(cycleMonths(r), monthOf(from.UnixMicro())) {
			print.add(recordPrint(user, r))
		}
		s, err := r.Decode()
		if err != nil {
			return nil, fmt.Errorf("read sleep cycles: %w", err)
		}
		if c, ok := s.(*healthdata.SleepCycle); ok && !r.UpdatedAt.Before(changed[c.SleepID]) {
			out[c.SleepID], changed[c.SleepID] = c, r.UpdatedAt
		}
	}
	return out, nil
}

// listJSON returns a list as JSON: of values, or of objects if its elements have fields.
func listJSON(fields []tables.ListField, list [][]tables.Cell) string {
	out := make([]any, len(list))
	for i, element := range list {
		if len(fields) == 1 && fields[0].Name == "" {
			out[i] = jsonValue(fields[0].Type, element[0])
			continue
		}
		object := map[string]any{}
		for k, f := range fields {
			object[f.Name] = jsonValue(f.Type, element[k])
		}
		out[i] = object
	}
	var b strings.Builder
	_ = json.NewEncoder(&b).Encode(out) // plain values always encode
	return strings.TrimSpace(b.String())
}

// jsonValue returns a cell as a value that encodes to JSON.
func jsonValue(t tables.ColumnType, c tables.Cell) any {
	if !c.Valid {
		return nil
	}
	switch t {
	case tables.TypeFloat64:
		return c.Float
	case tables.TypeBool:
		return c.Int != 0
	case tables.TypeString:
		return c.Text
	case tables.TypeDate:
		return time.Unix(c.Int*24*60*60, 0).UTC().Format(time.DateOnly)
	case tables.TypeTimestamp:
		return time.UnixMicro(c.Int).UTC().Format("2006-01-02T15:04:05.999999")
	case tables.TypeInstant:
		return time.UnixMicro(c.Int).UTC().Format(time.RFC3339Nano)
	default:
		return c.Int
	}
}
