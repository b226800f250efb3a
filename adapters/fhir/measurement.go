package fhir

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// measurement defines one kind of Observation of devices and apps, made from a timeseries or a summary of the
// resource catalogue, with its codes.
type measurement struct {
	key      string // distinguishes measurements in ids of Observations
	resource string // slug of the timeseries, or the code of a column of a summary
	profile  string // URL of the FHIR profile; empty for none
	category string
	codes    []coding
	// dayCodes precede codes in Observations of a whole day. sampleCodes replace codes in Observations of interval
	// sampled.
	dayCodes, sampleCodes []coding
	text                  string
	unit                  string // UCUM code
	display               string // text of the unit
	scale                 float64
	// function combines the values of a day or an hour.
	function aggregate.Func
	where    string
	// table and column name the source of a summary, which has one value a day; empty for a timeseries.
	table, column string
	// period is true if the time of a day's observation is written as a period.
	period bool
	// parts become components, each with a number. The parts of a timeseries replace the value of the Observation.
	parts []part
}

type part struct {
	field string // field of a sample, or column of a summary
	code  coding
}

const (
	cgmMean = "http://hl7.org/fhir/uv/cgm/StructureDefinition/cgm-summary-mean-glucose-moles-per-volume"
	// The types of sources that read glucose in interstitial fluid.
	sensors = "'automatic', 'insulin_pump', 'manual_scan'"
)

var measurements = []measurement{
	{key: "hr", resource: "heartrate", profile: usCore + "heart-rate", category: vitalSigns, codes: []coding{{loinc, "8867-4", "Heart rate"}}, unit: "/min", display: "beats/minute"},
	{key: "rr", resource: "respiratory_rate", profile: usCore + "respiratory-rate", category: vitalSigns, codes: []coding{{loinc, "9279-1", "Respiratory rate"}}, unit: "/min", display: "breaths/minute"},
	{key: "so", resource: "blood_oxygen", profile: usCore + "pulse-oximetry", category: vitalSigns, codes: []coding{
		{loinc, "59408-5", "Oxygen saturation in Arterial blood by Pulse oximetry"}, {loinc, "2708-6", "Oxygen saturation in Arterial blood"},
	}, unit: "%", display: "%"},
	{key: "bt", resource: "body_temperature", profile: usCore + "body-temperature", category: vitalSigns, codes: []coding{{loinc, "8310-5", "Body temperature"}}, unit: "Cel", display: "°C"},
	{key: "bw", resource: "weight", profile: usCore + "body-weight", category: vitalSigns, codes: []coding{{loinc, "29463-7", "Body weight"}}, unit: "kg", display: "kg"},
	{key: "mi", resource: "body_mass_index", profile: usCore + "bmi", category: vitalSigns, codes: []coding{{loinc, "39156-5", "Body mass index (BMI) [Ratio]"}}, unit: "kg/m2", display: "kg/m2"},
	{key: "bp", resource: "blood_pressure", profile: usCore + "blood-pressure", category: vitalSigns, codes: []coding{{loinc, "85354-9", "Blood pressure panel with all children optional"}},
		unit: "mm[Hg]", display: "mmHg", parts: []part{
			{"systolic", coding{loinc, "8480-6", "Systolic blood pressure"}}, {"diastolic", coding{loinc, "8462-4", "Diastolic blood pressure"}},
		}},
	{key: "gs", resource: "glucose", profile: cgmMean, category: laboratory, period: true, where: "source_type IN (" + sensors + ")",
		codes:       []coding{{loinc, "105273-7", "Average glucose [Moles/volume] in Interstitial fluid during Reporting Period"}},
		sampleCodes: []coding{{loinc, "105272-9", "Glucose [Moles/volume] in Interstitial fluid"}}, text: "Glucose of a sensor", unit: "mmol/L", display: "mmol/L"},
	{key: "gf", resource: "glucose", category: laboratory, where: "source_type = 'fingerprick'",
		codes: []coding{{loinc, "14743-9", "Glucose [Moles/volume] in Capillary blood by Glucometer"}}, text: "Glucose of a fingerprick", unit: "mmol/L", display: "mmol/L"},
	{key: "gu", resource: "glucose", category: laboratory, where: "source_type NOT IN (" + sensors + ", 'fingerprick')", text: "Glucose", unit: "mmol/L", display: "mmol/L"},
	{key: "hv", resource: "hrv_sdnn", category: activityKind, codes: []coding{{loinc, "80404-7", "R-R interval.standard deviation (Heart rate variability)"}},
		text: "Heart rate variability (SDNN)", unit: "ms", display: "ms"},
	{key: "st", resource: "steps", category: activityKind, codes: []coding{{loinc, "55423-8", "Number of steps in unspecified time Pedometer"}},
		dayCodes: []coding{{loinc, "41950-7", "Number of steps in 24 hour Measured"}}, text: "Steps", unit: "{steps}", display: "steps", function: aggregate.Sum},
	{key: "ds", resource: "distance", category: activityKind, text: "Distance", unit: "m", display: "m", function: aggregate.Sum},
	{key: "ca", resource: "calories_active", category: activityKind, text: "Active energy", unit: "kcal", display: "kcal", function: aggregate.Sum},
	{key: "hs", resource: "resting_heart_rate", table: "activity", column: "heart_rate_resting", category: activityKind,
		codes: []coding{{loinc, "40443-4", "Heart rate --resting"}}, text: "Resting heart rate", unit: "/min", display: "beats/minute"},
	{key: "ct", resource: "calories_total", table: "activity", column: "calories_total", category: activityKind,
		codes: []coding{{loinc, "41979-6", "Calories burned in 24 hour Calculated"}}, text: "Energy of a day", unit: "kcal", display: "kcal"},
	{key: "sl", resource: "sleep", table: "sleep", column: "stage_asleep_second", category: activityKind, function: aggregate.Sum, scale: 3600,
		codes: []coding{{loinc, "93832-4", "Sleep duration"}}, text: "Sleep", unit: "h", display: "h", parts: []part{
			{"stage_light_second", coding{loinc, "93830-8", "Light sleep duration"}}, {"stage_deep_second", coding{loinc, "93831-6", "Deep sleep duration"}},
			{"stage_rem_second", coding{loinc, "93829-0", "REM sleep duration"}},
		}},
}

// interval is what one Observation covers: an hour, a day, or a day of sampled values.
type interval string

const (
	byDay  interval = "day"
	byHour interval = "hour"
	// sampled is a day with one number for each minute.
	sampled interval = "sampled"
)

func (m *measurement) hasInterval(i interval) bool {
	// The profile of blood pressure cannot hold samples.
	return i == byDay || m.table == "" && (i == byHour || m.parts == nil && m.function != aggregate.Sum)
}

// codesOf returns the codes of a measurement for an interval. The last code is the measurement's own code at this
// service.
func (s *server) codesOf(m *measurement, i interval) []coding {
	out := slices.Clone(m.codes)
	switch {
	case i == byDay:
		out = append(slices.Clone(m.dayCodes), out...)
	case i == sampled && m.sampleCodes != nil:
		out = slices.Clone(m.sampleCodes)
	}
	return append(out, coding{System: s.URL + "/CodeSystem/measurement", Code: m.resource})
}

// measurementID holds the parts of the id of an Observation that is made from data of devices and apps.
type measurementID struct {
	user healthlab.UserID
	of   *measurement
	by   interval
	day  healthlab.Date
	hour int
}

var intervalKeys = map[interval]string{byDay: "vs", byHour: "vh", sampled: "sd"}

// String returns the id: vs.<user>.<kind>.<day> for a day, with vh and T<hour> for an hour, and sd for samples.
func (v measurementID) String() string {
	at := v.day.String()
	if v.by == byHour {
		at += fmt.Sprintf("T%02d", v.hour)
	}
	return intervalKeys[v.by] + "." + hex.EncodeToString(v.user.UUID[:]) + "." + v.of.key + "." + at
}

func parseMeasurementID(id string) (measurementID, bool) {
	parts := strings.Split(id, ".")
	if len(parts) != 4 || len(parts[1]) != 32 {
		return measurementID{}, false
	}
	v := measurementID{}
	for by, key := range intervalKeys {
		if key == parts[0] {
			v.by = by
		}
	}
	day, hour, _ := strings.Cut(parts[3], "T")
	if v.by == byHour {
		if _, err := fmt.Sscanf(hour, "%02d", &v.hour); err != nil {
			return measurementID{}, false
		}
	}
	user, err := uuid.Parse(parts[1])
	date, wrong := healthlab.ParseDate(day)
	if err != nil || wrong != nil || v.by == "" {
		return measurementID{}, false
	}
	v.user, v.day = healthlab.UserID{UUID: user}, date
	for i := range measurements {
		if measurements[i].key == parts[2] {
			v.of = &measurements[i]
		}
	}
	return v, v.of != nil && v.of.hasInterval(v.by) && v.String() == id
}

// pastYears is the number of past years whose measurements are served.
const pastYears = 10

func (s *server) firstDay() healthlab.Date { return s.lastDay().AddDays(-pastYears * 365) }

func (s *server) lastDay() healthlab.Date { return healthlab.DateOf(s.Now().UTC()).AddDays(1) }

func (s *server) readMeasurement(ctx context.Context, by caller, v measurementID) (resource, error) {
	if _, err := s.user(ctx, by, v.user); err != nil {
		return nil, err
	}
	if v.day.After(s.lastDay()) {
		return nil, healthlab.NotFound
	}
	all, err := s.queryMeasurements(ctx, by.Team, v.user, []*measurement{v.of}, v.by, v.day, v.day)
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		if m.start().ID == v.String() {
			return m.resource, nil
		}
	}
	return nil, healthlab.NotFound
}

// days returns the first and the last day, of those from first to last, that the date bounds of a search allow.
func days(bounds [][]moment, first, last healthlab.Date) (from, to healthlab.Date) {
	for _, either := range bounds {
		from, to := last.AddDays(1), first.AddDays(-1) // range of all alternatives of one parameter
		for _, b := range either {
			least, most := first, last
			if b.prefix == "eq" || b.prefix == "gt" || b.prefix == "ge" || b.prefix == "sa" {
				least = later(first, healthlab.DateOf(b.from).AddDays(-1))
			}
			if b.prefix == "eq" || b.prefix == "lt" || b.prefix == "le" || b.prefix == "eb" {
				most = earlier(last, healthlab.DateOf(b.to).AddDays(1))
			}
			if !most.Before(least) {
				from, to = earlier(from, least), later(to, most)
			}
		}
		first, last = later(first, from), earlier(last, to)
	}
	return first, last
}

// windows holds the number of days that one query reads, which limits the memory.
var windows = map[interval]int{byDay: 366, byHour: 16, sampled: 2}

// eachMeasurement calls use with the observations that a search may match, window of days by window, the earliest
// first. The observations within a window are not ordered.
func (s *server) eachMeasurement(ctx context.Context, u *healthdata.User, q *query, use func([]match) error) error {
	by := q.interval
	if by == "" {
		by = byDay
	}
	var kinds []*measurement
	for i := range measurements {
		m := &measurements[i]
		if m.hasInterval(by) && hasToken(q.code, s.codesOf(m, by)) && hasToken(q.category, category(m.category)[0].Coding) {
			kinds = append(kinds, m)
		}
	}
	first, last := days(q.date, s.firstDay(), s.lastDay())
	known, err := s.sampledDays(ctx, u, kinds, first, last)
	if err != nil {
		return err
	}
	for ; !last.Before(first); first = first.AddDays(windows[by]) {
		to := earlier(last, first.AddDays(windows[by]-1))
		there := slices.DeleteFunc(slices.Clone(kinds), func(m *measurement) bool {
			d, ok := known[m.resource]
			return m.table == "" && (!ok || d.first.After(to) || d.last.Before(first))
		})
		if len(there) == 0 {
			continue
		}
		all, err := s.queryMeasurements(ctx, u.Team, u.ID, there, by, first, to)
		if err != nil {
			return err
		}
		if err := use(all); err != nil {
			return err
		}
	}
	return nil
}

// dayRange is a range of days, both inclusive.
type dayRange struct{ first, last healthlab.Date }

// sampledDays maps the slugs of timeseries to the days from first to last between which they can have samples. The
// timeseries are those of kinds. A timeseries without samples is not in the map.
func (s *server) sampledDays(ctx context.Context, u *healthdata.User, kinds []*measurement, first, last healthlab.Date) (map[string]dayRange, error) {
	var q healthdata.SeriesQuery
	for _, m := range kinds {
		if m.table == "" {
			q.Resources = append(q.Resources, m.resource)
		}
	}
	out := map[string]dayRange{}
	if len(q.Resources) == 0 {
		return out, nil
	}
	const atOnce = 366 // days of one query, which limits the memory
	for ; !last.Before(first); first = first.AddDays(atOnce) {
		// In the person's time zone a time may fall on the day before or after its day in UTC.
		q.From, q.To = first.AddDays(-1).At(time.UTC).UnixMicro(), first.AddDays(atOnce+1).At(time.UTC).UnixMicro()
		err := s.Health.View(ctx, u.Team, u.ID, func(v healthdata.View) error {
			all, err := v.Series(ctx, q)
			for i := range all {
				slug := all[i].Key.Resource
				for _, c := range slices.Concat(all[i].Chunks, all[i].Pending) {
					from, to := utcDay(c.Start).AddDays(-1), utcDay(c.Stop).AddDays(1)
					if d, ok := out[slug]; ok {
						from, to = earlier(from, d.first), later(to, d.last)
					}
					out[slug] = dayRange{from, to}
				}
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read series: %w", err)
		}
	}
	return out, nil
}

func utcDay(micro int64) healthlab.Date { return healthlab.DateOf(time.UnixMicro(micro).UTC()) }

func later(a, b healthlab.Date) healthlab.Date {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b healthlab.Date) healthlab.Date {
	if a.Before(b) {
		return a
	}
	return b
}

// fields returns the columns that a query selects for a measurement: the value, if it has one, and the parts.
func (m *measurement) fields() (out []aggregate.Expr) {
	switch {
	case m.table != "":
		out = append(out, aggregate.Col(m.table, m.column))
	case m.parts == nil:
		out = append(out, aggregate.Samples(m.resource))
	}
	for _, p := range m.parts {
		if m.table != "" {
			out = append(out, aggregate.Col(m.table, p.field))
		} else {
			out = append(out, aggregate.Field{Resource: m.resource, Field: p.field})
		}
	}
	return out
}

// queryMeasurements returns the Observations of kinds for each interval of the days from first to last, both inclusive.
func (s *server) queryMeasurements(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, kinds []*measurement, by interval, first, last healthlab.Date) ([]match, error) {
	period := map[interval]aggregate.Period{byDay: aggregate.Days(1), byHour: aggregate.Hours(1), sampled: aggregate.Minutes(1)}[by]
	queries := make([]aggregate.Query, len(kinds))
	for i, m := range kinds {
		function := m.function
		if function == "" {
			function = aggregate.Mean
		}
		for _, f := range m.fields() {
			queries[i].Select = append(queries[i].Select, aggregate.Aggregate{Func: function, Arg: f})
		}
		if by != byDay {
			queries[i].Select = append(queries[i].Select, aggregate.Oldest.Of(aggregate.Field{Resource: m.resource, Field: "timezone_offset"}))
		}
		queries[i].GroupBy, queries[i].Where = []aggregate.Expr{aggregate.By(period)}, m.where
	}
	count := int64(last.At(time.UTC).Sub(first.At(time.UTC))/(24*time.Hour)) + 1
	res, err := s.Aggregate.Query(ctx, team, user, aggregate.Ask(aggregate.Last(count, last), queries...))
	if err != nil {
		return nil, fmt.Errorf("aggregate measurements: %w", err)
	}
	var out []match
	for i, m := range kinds {
		f := &res.Frames[i]
		rows := rows{of: m, user: user, by: by, at: &f.Columns[0], values: f.Columns[len(f.Columns)-len(queries[i].Select):], fields: len(m.fields()), same: s.baseObservation(m, user, by), now: s.Now()}
		if by == sampled {
			out = append(out, rows.samples(f.Len())...)
			continue
		}
		for row := range f.Len() {
			if o, ok := rows.observation(row); ok {
				out = append(out, o)
			}
		}
	}
	return out, nil
}

// rows holds the result rows of a query about one measurement.
type rows struct {
	of     *measurement
	user   healthlab.UserID
	by     interval
	at     *aggregate.Column
	values []aggregate.Column // fields in order, then the UTC offset if it is selected
	fields int                // number of fields in values
	same   observation        // elements that all observations share
	now    time.Time
}

// instant returns the start of a row, in the person's time zone.
func (r *rows) instant(row int) time.Time {
	local := r.at.Time(row)
	offset := &r.values[len(r.values)-1]
	zone := time.UTC
	if !offset.Null(row) {
		zone = time.FixedZone("", int(offset.Int(row)))
	}
	return time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute(), 0, 0, zone)
}

func (r *rows) quantity(column, row int) *quantity {
	c := &r.values[column]
	if c.Null(row) {
		return nil
	}
	var v float64
	if n, ok := c.Value(row).(int64); ok {
		v = float64(n)
	} else {
		v = c.Float(row)
	}
	if r.of.scale != 0 {
		v /= r.of.scale
	}
	return &quantity{Value: number(v), Unit: r.of.display, System: ucumSystem, Code: r.of.unit}
}

// baseObservation returns the elements that all Observations of a measurement, a person and an interval share.
func (s *server) baseObservation(m *measurement, user healthlab.UserID, by interval) observation {
	o := observation{
		head: head{ResourceType: "Observation"}, Status: "final", Category: category(m.category),
		Code: concept{Coding: s.codesOf(m, by), Text: m.text}, Subject: personReference(user),
	}
	if m.text == "" {
		o.Code.Text = m.codes[0].Display
	}
	if m.profile != "" && (by != sampled || m.category == vitalSigns) {
		o.Meta.Profile = []string{m.profile}
	}
	if by == sampled {
		return o
	}
	code, display := "average", "Average"
	if m.function == aggregate.Sum {
		code, display = "sum", "Sum"
	}
	o.Method = &concept{Coding: []coding{{statistics, code, display}}, Text: display + " of the " + string(by)}
	return o
}

// newObservation returns an observation with an id and a status, but without a value and a time.
func (r *rows) newObservation(day healthlab.Date, hour int) *observation {
	o := r.same
	o.ID = measurementID{r.user, r.of, r.by, day, hour}.String()
	if r.now.Before(final(day)) {
		o.Status = "preliminary"
	}
	return &o
}

func final(day healthlab.Date) time.Time {
	const west = 12 * time.Hour // behind UTC: the zone in which a day ends last
	return day.AddDays(1).At(time.UTC).Add(west)
}

// observation returns the Observation of a row; false if the row has no number.
func (r *rows) observation(row int) (match, bool) {
	local := r.at.Time(row)
	day := healthlab.DateOf(local)
	o := r.newObservation(day, local.Hour())
	when := daySpan(day)
	switch {
	case r.by == byHour:
		from := r.instant(row)
		when = span{from.UTC(), from.Add(time.Hour).UTC()}
		r.setEffective(o, from, from.Add(time.Hour))
	case r.of.period:
		o.EffectivePeriod = &period{Start: day.String(), End: day.String()}
	default:
		o.Effective = day.String()
	}
	known, parts := false, r.values[:r.fields]
	if r.of.table != "" || r.of.parts == nil {
		o.ValueQuantity = r.quantity(0, row)
		if o.ValueQuantity == nil {
			return match{}, false
		}
		known, parts = true, parts[1:]
	}
	first := r.fields - len(parts)
	for i := range parts {
		c := component{Code: concept{Coding: []coding{r.of.parts[i].code}}, ValueQuantity: r.quantity(first+i, row)}
		if c.ValueQuantity == nil {
			if r.of.table != "" {
				continue
			}
			c.DataAbsentReason = absence("unknown", "Unknown")
		}
		known = known || c.ValueQuantity != nil
		o.Component = append(o.Component, c)
	}
	return o.match(when), known
}

// setEffective sets the effective time of an observation; to is exclusive. A vital sign gets only the start, because
// validators read the rule vs-1 of its profile as if it forbade a period.
func (r *rows) setEffective(o *observation, from, to time.Time) {
	if r.of.category == vitalSigns {
		o.Effective = from.Format(time.RFC3339)
		return
	}
	o.EffectivePeriod = &period{Start: from.Format(time.RFC3339), End: to.Add(-time.Second).Format(time.RFC3339)}
}

// samples returns an observation for each day of the first n rows, with one number for each minute from the first to
// the last sample of the day, or E for a minute without samples.
func (r *rows) samples(n int) (out []match) {
	for from := 0; from < n; {
		day := healthlab.DateOf(r.at.Time(from))
		to := from
		var data strings.Builder
		var begin, end time.Time
		for ; to < n && healthlab.DateOf(r.at.Time(to)) == day; to++ {
			v := r.quantity(0, to)
			if v == nil {
				continue
			}
			at := r.instant(to)
			if begin.IsZero() {
				begin = at
			} else if !at.After(end) {
				continue // the day has two UTC offsets
			} else {
				data.WriteString(strings.Repeat(" E", int(at.Sub(end)/time.Minute)-1) + " ")
			}
			data.WriteString(v.Value.String())
			end = at
		}
		from = to
		if begin.IsZero() {
			continue
		}
		o := r.newObservation(day, 0)
		r.setEffective(o, begin, end.Add(time.Minute))
		o.Component = []component{{Code: o.Code, ValueSampledData: &sampledData{
			Origin: quantity{Value: "0", Unit: r.of.display, System: ucumSystem, Code: r.of.unit}, Period: json.Number("60000"), Dimensions: 1, Data: data.String(),
		}}}
		out = append(out, o.match(span{begin.UTC(), end.Add(time.Minute).UTC()}))
	}
	return out
}

func absence(code, display string) *concept {
	c := conceptOf(absentReasons, code, display)
	return &c
}
