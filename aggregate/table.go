package aggregate

import (
	"slices"
	"sync"

	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

// Type is the type of a column, in tables and in results.
type Type = tables.ColumnType

// Short names of the types.
const (
	typeInt     = tables.TypeInt64
	typeFloat   = tables.TypeFloat64
	typeBool    = tables.TypeBool
	typeText    = tables.TypeString
	typeDate    = tables.TypeDate
	typeTime    = tables.TypeTimestamp
	typeInstant = tables.TypeInstant
	typeList    = tables.TypeList
)

// Tables other than summaries of one resource.
const (
	samplesTable   = "timeseries"
	readinessTable = "derived_readiness"
)

// table is a table that queries can name.
type table struct {
	name      string
	indexType Type
	summary   *tables.Table // nil for samples, readiness and laboratory results
	columns   []column
	byName    map[string]int
}

// column is a named value of the rows of a table.
type column struct {
	name   string
	base   string // name in result columns
	typ    Type
	fields []tables.ListField
	unit   string
	doc    string

	from     origin
	summary  *tables.Column       // set if from is fromSummary
	resource *healthdata.Resource // set if from is fromSample
	field    sampleField          // set if from is fromSample
	number   int                  // index of the value, if from is fromReadiness, fromLab or fromMacro
}

// origin is the kind of data from which the values of a column come: a field of a summary, a sample, a laboratory
// result and so on.
type origin uint8

const (
	fromSummary origin = iota
	fromMacro
	fromReadiness
	fromSample
	fromLab
	fromIndex
	fromList // a subquery
)

// sampleField is a field of a sample.
type sampleField uint8

const (
	fieldNone sampleField = iota
	fieldProvider
	fieldSourceType
	fieldApp
	fieldWorkout
	fieldSport
	fieldOffset
	fieldType
	fieldValue
	fieldSecond
	fieldDuration
	fieldContent
	fieldTags
	fieldLocation
	fieldIntensity
	fieldMode
	fieldForm
	fieldPurpose
)

var sampleFields = map[string]sampleField{
	"source_provider": fieldProvider, "source_type": fieldSourceType, "source_app_id": fieldApp,
	"source_workout_id": fieldWorkout, "source_sport": fieldSport,
	"timezone_offset": fieldOffset, "type": fieldType, "value": fieldValue,
	"systolic": fieldValue, "diastolic": fieldSecond, "duration": fieldDuration,
	"content": fieldContent, "tags": fieldTags, "sensor_location": fieldLocation,
	"intensity": fieldIntensity, "delivery_mode": fieldMode, "delivery_form": fieldForm,
	"bolus_purpose": fieldPurpose,
}

// sourceNames are the columns about the source of a row.
var sourceNames = []string{"source_provider", "source_type", "source_app_id", "source_workout_id", "source_sport"}

// catalogue returns the tables by name. They are derived from the catalogue of healthdata, once.
var catalogue = sync.OnceValue(func() map[string]*table {
	out := map[string]*table{}
	for _, h := range tables.All() {
		t := &table{name: h.Name, indexType: h.IndexType, summary: h}
		for i := range h.Columns {
			c := &h.Columns[i]
			t.columns = append(t.columns, column{
				name: c.Name, base: c.Name, typ: c.Type, fields: c.Fields, unit: c.Unit, doc: c.Doc,
				from: fromSummary, summary: c,
			})
		}
		out[h.Name] = t
	}
	out[readinessTable] = &table{name: readinessTable, indexType: typeDate, columns: readinessColumns()}
	out[labTable] = labTableOf()
	out[samplesTable] = &table{name: samplesTable, indexType: typeTime, columns: sampleSourceColumns()}
	for _, t := range out {
		t.byName = make(map[string]int, len(t.columns))
		for i := range t.columns {
			t.byName[t.columns[i].name] = i
		}
		for alias, of := range columnAliases[t.name] {
			t.byName[alias] = t.byName[of]
		}
	}
	return out
})

// tableNames lists the tables.
var tableNames = func() []string {
	out := []string{labTable, readinessTable, samplesTable}
	for _, t := range tables.All() {
		out = append(out, t.Name)
	}
	slices.Sort(out)
	return out
}()

// sampleSourceColumns are the columns about the source that samples of every resource have.
func sampleSourceColumns() []column {
	var out []column
	for _, n := range sourceNames {
		out = append(out, column{name: n, base: n, typ: typeText, from: fromSample, field: sampleFields[n]})
	}
	return out
}

func (t *table) find(name string) *column {
	if i, ok := t.byName[name]; ok {
		return &t.columns[i]
	}
	return nil
}

func (t *table) names() []string {
	out := make([]string, len(t.columns))
	for i := range t.columns {
		out[i] = t.columns[i].name
	}
	return out
}

func (t *table) index() column {
	return column{name: "index", base: "timestamp", typ: t.indexType, from: fromIndex}
}

// sampleResource returns the resource of a timeseries, or nil.
func sampleResource(slug string) *healthdata.Resource {
	r := healthdata.ResourceBySlug(slug)
	if r == nil || r.Class != healthdata.ClassTimeseries || !r.Events {
		return nil
	}
	return r
}

func sampleResourceNames() []string {
	var out []string
	for _, r := range tables.SampleTimeseries() {
		out = append(out, r.Slug)
	}
	return out
}

// sampleColumn returns the column of a field of the resource's samples; false if there is no field with the name.
func sampleColumn(r *healthdata.Resource, name string) (column, bool) {
	for _, c := range tables.SampleColumns(r) {
		if c.Name != name {
			continue
		}
		return column{
			name: name, base: r.Slug + "." + name, typ: c.Type, fields: c.Fields, unit: c.Unit, doc: c.Doc,
			from: fromSample, resource: r, field: sampleFields[name],
		}, true
	}
	return column{}, false
}

func sampleColumnNames(r *healthdata.Resource) []string {
	var out []string
	for _, c := range tables.SampleColumns(r) {
		out = append(out, c.Name)
	}
	return out
}

// Queries also accept the names that the read operations of the API use for tables and columns, if they mean the same
// value in the same unit. Results use the names of this package.

var tableAliases = map[string]string{"workouts": "workout"}

var columnAliases = map[string]map[string]string{
	"activity": {"calendar_date": "date", "distance": "distance_meter", "timezone_offset": "time_zone_offset"},
	"sleep": {
		"bedtime_start": "session_start", "bedtime_stop": "session_end", "duration": "duration_second",
		"total": "stage_asleep_second", "awake": "stage_awake_second", "light": "stage_light_second",
		"rem": "stage_rem_second", "deep": "stage_deep_second", "latency": "latency_second",
		"hr_lowest": "heart_rate_minimum", "hr_average": "heart_rate_mean", "hr_resting": "heart_rate_resting",
		"hr_dip": "heart_rate_dip", "average_hrv": "hrv_mean_rmssd", "temperature_delta": "skin_temperature_delta",
	},
	"body": {"weight": "weight_kilogram", "fat": "fat_mass_percentage"},
	"workout": {
		"time_start": "session_start", "time_end": "session_end", "average_hr": "heart_rate_mean", "max_hr": "heart_rate_maximum",
		"distance": "distance_meter", "total_elevation_gain": "elevation_gain_meter", "elev_high": "elevation_maximum_meter",
		"elev_low": "elevation_minimum_meter", "average_speed": "speed_mean", "max_speed": "speed_maximum",
		"average_watts": "power_mean", "device_watts": "power_source", "max_watts": "power_maximum",
		"weighted_average_watts": "power_weighted_mean", "sport": "sport_slug", "moving_time": "duration_active_second",
		"provider_id": "external_id",
	},
	"profile": {"height": "height_centimeter"},
	"meal":    {"calendar_date": "date"},
}

func tableName(name string) string {
	if of, ok := tableAliases[name]; ok {
		return of
	}
	return name
}

func fieldOf(fields []tables.ListField, name string) int {
	for i, f := range fields {
		if f.Name == name && name != "" {
			return i
		}
	}
	return -1
}

func fieldNames(fields []tables.ListField) []string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = f.Name
		if f.Name == "" {
			out[i] = "element"
		}
	}
	return out
}
