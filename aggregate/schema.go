package aggregate

import (
	"maps"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

// Schema lists the names that queries can use.
type Schema struct {
	// Tables are the tables of summaries and of derived values, by name.
	Tables []TableSchema `json:"tables"`
	// Timeseries are the resources with samples, by name. Together they are the table timeseries, whose columns
	// are written {"timeseries":NAME,"field":COLUMN}.
	Timeseries []TableSchema `json:"timeseries"`
	// ValueMacros are derived values of a sleep session: {"value_macro":NAME}.
	ValueMacros []ColumnSchema `json:"value_macros"`
	// Functions are the names of all functions other than percentile_0 to percentile_100, which exist too.
	Functions []string `json:"functions"`
	// Bands are the bands of glucose that time_in_range and episodes accept.
	Bands []BandSchema `json:"bands"`
}

// BandSchema is a band of glucose.
type BandSchema struct {
	Name Band `json:"name"`
	// Functions are the functions that accept the band.
	Functions []Func `json:"functions"`
	// Low and High are the limits of the band in the consensus, in whole mg/dL, both inclusive; nil is open.
	Low  *int `json:"low_mg_dl"`
	High *int `json:"high_mg_dl"`
	// LowMmol and HighMmol are the limits in mmol/L.
	LowMmol  *float64 `json:"low_mmol_l"`
	HighMmol *float64 `json:"high_mmol_l"`
}

// TableSchema is a table, or a timeseries.
type TableSchema struct {
	Name string `json:"name"`
	// Aliases are other names that queries may use. Never nil.
	Aliases []string `json:"aliases"`
	// IndexType is the type of the column index.
	IndexType Type `json:"index_type"`
	// Additive is true if the values of a timeseries can be added up, such as steps. Others, such as a
	// temperature, are levels. False for tables.
	Additive bool           `json:"additive"`
	Columns  []ColumnSchema `json:"columns"`
}

// ColumnSchema is a column.
type ColumnSchema struct {
	Name string `json:"name"`
	// Aliases are other names that queries may use. Never nil.
	Aliases []string `json:"aliases"`
	Type    Type     `json:"type"`
	// Unit is the unit of the values; "local" for a local time of the person. Empty for values without a unit.
	Unit string `json:"unit"`
	// Doc describes the values, if name and unit are not enough.
	Doc string `json:"description"`
}

// Describe returns the names that queries can use, sorted; columns are in the order of the documentation.
func Describe() Schema {
	var out Schema
	for _, name := range tableNames {
		if name == samplesTable {
			continue
		}
		t := catalogue()[name]
		one := TableSchema{Name: name, Aliases: aliasesOf(tableAliases, name), IndexType: t.indexType}
		for i := range t.columns {
			one.Columns = append(one.Columns, describe(&t.columns[i], aliasesOf(columnAliases[name], t.columns[i].name)))
		}
		out.Tables = append(out.Tables, one)
	}
	resources := tables.SampleTimeseries()
	slices.SortFunc(resources, func(a, b *healthdata.Resource) int { return strings.Compare(a.Slug, b.Slug) })
	for _, r := range resources {
		one := TableSchema{Name: r.Slug, Aliases: []string{}, IndexType: typeTime, Additive: r.Additive}
		for _, name := range sampleColumnNames(r) {
			c, _ := sampleColumn(r, name)
			one.Columns = append(one.Columns, describe(&c, []string{}))
		}
		out.Timeseries = append(out.Timeseries, one)
	}
	for _, name := range macroNames {
		c := macroColumn(name)
		one := describe(&c, []string{})
		one.Name = name
		out.ValueMacros = append(out.ValueMacros, one)
	}
	for _, f := range funcs {
		out.Functions = append(out.Functions, string(f))
	}
	for _, b := range consensusBands {
		b.Functions = []Func{TimeInRange}
		if slices.Contains(Episodes.bands(), string(b.Name)) {
			b.Functions = append(b.Functions, Episodes)
		}
		out.Bands = append(out.Bands, b)
	}
	return out
}

func describe(c *column, aliases []string) ColumnSchema {
	return ColumnSchema{Name: c.name, Aliases: aliases, Type: c.typ, Unit: c.unit, Doc: c.doc}
}

// aliasesOf returns the aliases of a name, sorted.
func aliasesOf(all map[string]string, name string) []string {
	out := []string{}
	for _, alias := range slices.Sorted(maps.Keys(all)) {
		if all[alias] == name {
			out = append(out, alias)
		}
	}
	return out
}
