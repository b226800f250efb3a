package catalogue

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/internal/textsearch"
)

// ReadContents reads the JSON of [ReadStaticCatalog] and checks its form only, so that the caller can add
// contents before it calls [NewStaticCatalog].
func ReadContents(r io.Reader) (StaticCatalogContents, error) {
	var c StaticCatalogContents
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, fmt.Errorf("%w: catalogue at byte %d: %v", healthlab.Invalid, d.InputOffset(), err)
	}
	return c, nil
}

// markerRow is one line of a CSV file of markers.
type markerRow struct {
	marker MarkerComplete
	result ExpectedResult
	// found is true if the line has a result.
	found bool
}

// markerColumns are the columns of a CSV file of markers. Each function reads a cell that is not empty. If the cell is
// invalid, it returns what the column allows, otherwise an empty text.
var markerColumns = map[string]func(r *markerRow, cell string) (allowed string){
	"id": func(r *markerRow, s string) string {
		return rules.Expect(rules.ParseInt(&r.marker.ID, s), rules.WholeNumber)
	},
	"name":                func(r *markerRow, s string) string { r.marker.Name = s; return "" },
	"slug":                func(r *markerRow, s string) string { r.marker.Slug = s; return "" },
	"description":         func(r *markerRow, s string) string { r.marker.Description = &s; return "" },
	"lab_id":              func(r *markerRow, s string) string { return optional(&r.marker.LabID, s) },
	"provider_id":         func(r *markerRow, s string) string { r.marker.ProviderID = &s; return "" },
	"type":                func(r *markerRow, s string) string { return markerType(r, s) },
	"unit":                func(r *markerRow, s string) string { r.marker.Unit = &s; return "" },
	"price":               func(r *markerRow, s string) string { r.marker.Price = &s; return "" },
	"a_la_carte_enabled":  func(r *markerRow, s string) string { return truth(&r.marker.ALaCarteEnabled, s) },
	"is_orderable":        func(r *markerRow, s string) string { return truth(r.marker.IsOrderable, s) },
	"common_tat_days":     func(r *markerRow, s string) string { return optional(&r.marker.CommonTATDays, s) },
	"worst_case_tat_days": func(r *markerRow, s string) string { return optional(&r.marker.WorstCaseTATDays, s) },
	"result_id": func(r *markerRow, s string) string {
		r.found = true
		return rules.Expect(rules.ParseInt(&r.result.ID, s), rules.WholeNumber)
	},
	"result_name":            func(r *markerRow, s string) string { r.found = true; r.result.Name = s; return "" },
	"result_slug":            func(r *markerRow, s string) string { r.found = true; r.result.Slug = s; return "" },
	"result_provider_id":     func(r *markerRow, s string) string { r.found = true; r.result.ProviderID = &s; return "" },
	"result_required":        func(r *markerRow, s string) string { return truth(&r.result.Required, s) },
	"result_reference_range": func(r *markerRow, s string) string { r.found = true; r.result.ReferenceRange = &s; return "" },
	"loinc_code":             func(r *markerRow, s string) string { r.loinc().Code = s; return "" },
	"loinc_name":             func(r *markerRow, s string) string { r.loinc().Name = s; return "" },
	"loinc_unit":             func(r *markerRow, s string) string { r.loinc().Unit = &s; return "" },
}

func (r *markerRow) loinc() *LOINC {
	if r.result.LOINC == nil {
		r.result.LOINC = &LOINC{}
	}
	r.found = true
	return r.result.LOINC
}

func optional(into **int, s string) string {
	*into = new(int)
	return rules.Expect(rules.ParseInt(*into, s), rules.WholeNumber)
}

func truth(into *bool, s string) string {
	*into = s == "true"
	return rules.Expect(s == "true" || s == "false", rules.TrueOrFalse)
}

func markerType(r *markerRow, s string) string {
	t := MarkerType(s)
	r.marker.Type = &t
	return rules.Expect(t == Biomarker || t == Panel, string(Biomarker)+" or "+string(Panel))
}

// ReadMarkersCSV reads markers from a CSV table: a line with the column names, in any order, then one line for
// each expected result of a marker. The columns id, name and lab_id are required; the others are slug,
// description, provider_id, type, unit, price, a_la_carte_enabled, is_orderable, common_tat_days,
// worst_case_tat_days, and of the result, result_id, result_name, result_slug, result_provider_id,
// result_required, result_reference_range, loinc_code, loinc_name and loinc_unit. Empty cells have defaults: a
// marker is a biomarker that can be ordered, but not outside of a lab test; a result is required; a slug is
// made from the name. A line with the id of an earlier line adds a result to that marker, and its other cells
// are ignored. Questions at order entry have no columns.
//
// Invalid lists every problem by line (from 1, the column names) and column.
func ReadMarkersCSV(r io.Reader) ([]MarkerComplete, error) {
	var out []MarkerComplete
	place := map[int]int{}
	err := rules.ReadTable(r, "markers", func(name string) bool { return markerColumns[name] != nil }, func(columns, cells []string, c rules.Check) {
		row := readMarker(columns, cells, c)
		at, known := place[row.marker.ID]
		if !known {
			at = len(out)
			place[row.marker.ID] = at
			out = append(out, row.complete(c))
		}
		if row.found {
			out[at].ExpectedResults = append(out[at].ExpectedResults, row.resultOf(&out[at], c))
		}
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// readMarker returns the row with the given cells. columns are the names of the columns; c collects the problems.
func readMarker(columns, cells []string, c rules.Check) markerRow {
	yes := true
	kind := Biomarker
	row := markerRow{result: ExpectedResult{Required: true}}
	row.marker.Type, row.marker.IsOrderable, row.marker.ExpectedResults = &kind, &yes, []ExpectedResult{}
	for i, cell := range cells {
		if cell = strings.TrimSpace(cell); cell == "" {
			continue
		}
		if allowed := markerColumns[columns[i]](&row, cell); allowed != "" {
			c.Add("cell", "must be "+allowed, columns[i])
		}
	}
	if row.marker.ID <= 0 {
		c.Add("missing", "must be a whole number above 0", "id")
	}
	return row
}

// complete returns the row's marker with its required fields checked and its defaults set. It is called for the first
// row with the id of a marker.
func (r *markerRow) complete(c rules.Check) MarkerComplete {
	m := r.marker
	if m.Name == "" {
		c.Add("missing", "is required", "name")
	}
	if m.LabID == nil {
		c.Add("missing", "is required", "lab_id")
	}
	if m.Slug == "" {
		m.Slug = slugOf(m.Name)
	}
	return m
}

// resultOf returns the row's expected result of the marker m, with its required fields checked and its defaults set.
func (r *markerRow) resultOf(m *MarkerComplete, c rules.Check) ExpectedResult {
	out := r.result
	out.LabID = m.LabID
	if out.ID <= 0 {
		c.Add("missing", "must be a whole number above 0", "result_id")
	}
	if out.Name == "" {
		out.Name = m.Name
	}
	if out.Slug == "" {
		out.Slug = slugOf(out.Name)
	}
	if l := out.LOINC; l != nil {
		if l.Code == "" {
			c.Add("missing", "is required", "loinc_code")
		}
		if l.Name == "" {
			l.Name = out.Name
		}
		l.ID, l.Slug = out.ID, slugOf(l.Name)
	}
	return out
}

func slugOf(name string) string { return strings.Join(textsearch.Words(name), "-") }
