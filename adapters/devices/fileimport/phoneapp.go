package fileimport

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// phoneAppHead reports whether head begins like the JSON of Health Auto Export: an object data with one of the app's
// lists.
func phoneAppHead(head []byte) bool {
	dec := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(head, utf8BOM)))
	for _, want := range []json.Token{json.Delim('{'), "data", json.Delim('{')} {
		if t, err := dec.Token(); err != nil || t != want {
			return false
		}
	}
	t, err := dec.Token()
	key, ok := t.(string)
	return err == nil && ok && slices.Contains(phoneAppLists, key)
}

// phoneAppLists names the lists that the app writes. Only the first two are read.
var phoneAppLists = []string{"metrics", "workouts", "stateOfMind", "medications", "symptoms", "cycleTracking", "ecg", "heartRateNotifications"}

// Aggregation is the interval that the totals of a file cover.
type Aggregation string

// Intervals of totals.
const (
	// AggregateMinutes means totals of a minute.
	AggregateMinutes Aggregation = "minutes"
	// AggregateHours means totals of an hour.
	AggregateHours Aggregation = "hours"
	// AggregateDays means totals of a day.
	AggregateDays Aggregation = "days"
)

// AggregationOf returns the aggregation that a request of Health Auto Export names in its header
// automation-aggregation; empty for another text. Package fileupload receives such requests.
func AggregationOf(header string) Aggregation {
	a := Aggregation(strings.ToLower(strings.TrimSpace(header)))
	if _, known := aggregationLengths[a]; !known {
		return ""
	}
	return a
}

var aggregationLengths = map[Aggregation]time.Duration{AggregateMinutes: time.Minute, AggregateHours: time.Hour, AggregateDays: day}

const day = 24 * time.Hour

// appMetric maps a metric of the app to a resource.
type appMetric struct {
	resource string
	// total means that a value is the sum of an interval, such as steps.
	total bool
	// slow means that the quantity changes slowly, so that a mean of an hour or day is accepted as a value.
	slow bool
	// sensor is the sensor location.
	sensor string
	body   bodyPart
}

// appMetrics maps metric names of the app to resources. Values of other metrics, except sleep_analysis, are left out
// and counted.
var appMetrics = map[string]appMetric{
	"heart_rate":                       {resource: "heartrate"},
	"heart_rate_variability":           {resource: "hrv_sdnn"},
	"heart_rate_variability_sdnn":      {resource: "hrv_sdnn"},
	"respiratory_rate":                 {resource: "respiratory_rate"},
	"blood_oxygen_saturation":          {resource: "blood_oxygen"},
	"oxygen_saturation":                {resource: "blood_oxygen"},
	"blood_glucose":                    {resource: "glucose"},
	"blood_pressure":                   {resource: "blood_pressure"},
	"body_temperature":                 {resource: "body_temperature"},
	"basal_body_temperature":           {resource: "basal_body_temperature", slow: true},
	"apple_sleeping_wrist_temperature": {resource: "body_temperature", sensor: "wrist", slow: true},
	"vo2_max":                          {resource: "vo2_max", slow: true},
	"cardio_recovery":                  {resource: "heart_rate_recovery_one_minute", slow: true},
	"weight_body_mass":                 {resource: "weight", slow: true, body: bodyWeight},
	"body_mass":                        {resource: "weight", slow: true, body: bodyWeight},
	"body_fat_percentage":              {resource: "fat", slow: true, body: bodyFat},
	"body_mass_index":                  {resource: "body_mass_index", slow: true, body: bodyBMI},
	"lean_body_mass":                   {resource: "lean_body_mass", slow: true, body: bodyLean},
	"waist_circumference":              {resource: "waist_circumference", slow: true, body: bodyWaist},
	"step_count":                       {resource: "steps", total: true},
	"walking_running_distance":         {resource: "distance", total: true},
	"active_energy":                    {resource: "calories_active", total: true},
	"active_energy_burned":             {resource: "calories_active", total: true},
	"basal_energy_burned":              {resource: "calories_basal", total: true},
	"flights_climbed":                  {resource: "floors_climbed", total: true},
	"push_count":                       {resource: "wheelchair_push", total: true},
	"apple_stand_time":                 {resource: "stand_duration", total: true},
	"apple_exercise_time":              {resource: "workout_duration", total: true},
	"time_in_daylight":                 {resource: "daylight_exposure", total: true},
	"carbohydrates":                    {resource: "carbohydrates", total: true},
	"dietary_carbohydrates":            {resource: "carbohydrates", total: true},
	"caffeine":                         {resource: "caffeine", total: true},
	"dietary_caffeine":                 {resource: "caffeine", total: true},
	"dietary_water":                    {resource: "water", total: true},
	"mindful_minutes":                  {resource: "mindfulness_minutes", total: true},
}

// phoneApp reads the JSON of Health Auto Export, an app that exports a phone's health store.
type phoneApp struct {
	*jsonFile
	store   *export // combines nights and body measurements
	batches batches
	remarks remarks
}

// importPhoneApp stores metrics, nights and workouts.
func importPhoneApp(out *output, r io.Reader) error {
	a := &phoneApp{
		jsonFile: newJSONFile(out, HealthAutoExport, r), remarks: remarks{out: out},
		store: &export{out: out, origins: origins{}},
	}
	a.batches = batches{out: out, provider: a.store.provider()}
	err := a.object(func(key string) error {
		if key != "data" {
			return a.skip()
		}
		return a.object(a.part)
	})
	if err := a.result(err); err != nil {
		return err
	}
	if err := a.batches.flush(); err != nil {
		return err
	}
	if err := a.store.finishSleep(); err != nil {
		return err
	}
	return a.store.finishBodies()
}

// part reads the list under a key of the file. Lists other than metrics and workouts are skipped and counted.
func (a *phoneApp) part(key string) error {
	switch key {
	case "metrics":
		return a.list(a.metric)
	case "workouts":
		return a.list(a.workout)
	}
	return a.list(func(int) error {
		a.out.skip(key)
		return a.skip()
	})
}

// origin returns the source for a source name of the app. The app joins the names of several devices with a vertical
// bar.
func (a *phoneApp) origin(name string) *origin {
	var from *origin
	from, a.store.key = a.store.origins.get([]byte(name), nil, a.store.key)
	if strings.Contains(name, "|") {
		several := *from
		several.kind = healthdata.SourceMultiple
		return &several
	}
	return from
}

// appItem is a value of a metric.
type appItem struct {
	Date                string
	Qty, Avg, Min, Max  *float64
	Systolic, Diastolic *float64
	Source              string

	at time.Time
}

// metric reads the n-th metric of the file, from 1.
func (a *phoneApp) metric(n int) error {
	var m struct {
		Name, Units string
		Data        []json.RawMessage
	}
	if err := a.value(&m); errors.Is(err, errShape) {
		a.remarks.add(fmt.Sprintf("metric %d", n), "metric", "an object with name, units and data")
		return nil
	} else if err != nil {
		return err
	}
	if m.Name == "sleep_analysis" {
		return a.nights(m.Units, m.Data)
	}
	kind, known := appMetrics[m.Name]
	if !known {
		for range m.Data {
			a.out.skip(m.Name)
		}
		return nil
	}
	var items []*appItem
	for i, raw := range m.Data {
		place := fmt.Sprintf("%s, item %d", m.Name, i+1)
		item := itemOf[appItem](raw)
		if item == nil {
			a.remarks.add(place, "item", "an object with a date and numbers")
			continue
		}
		var ok bool
		if item.at, ok = a.time(place, "date", item.Date); !ok {
			continue
		}
		items = append(items, item)
	}
	days := a.dayStarts(items)
	length, ok := a.lengthOf(&kind, items, days)
	if !ok {
		for range items {
			a.out.skip(m.Name + " (a mean or total of an interval of unknown length)")
		}
		return nil
	}
	for _, item := range items {
		if length > 0 && !days.onGrid(length, item.at) {
			a.out.skip(m.Name + " (at another time than the others)")
			continue
		}
		if err := a.sample(m.Name, m.Units, &kind, item, days.end(item.at, length)); err != nil {
			return err
		}
	}
	return nil
}

// time reads a time with its offset. If the time is malformed, has no offset, or is before 1990 or in the future, it
// returns false and adds a note that begins with place and names field.
func (a *phoneApp) time(place, field, text string) (time.Time, bool) {
	at, zoned, ok := readTime(text)
	if !ok || !zoned || !a.out.inTime(at.UnixMicro()) {
		a.remarks.add(place, field, "a time such as 2026-03-01 22:50:05 +0100, from 1990 to a day ahead")
		return time.Time{}, false
	}
	return at.Truncate(time.Second), true
}

func secondOfDay(t time.Time) int {
	h, m, s := t.Clock()
	return 3600*h + 60*m + s
}

// dayStarts are the starts of the local days that a list of items shows.
type dayStarts struct {
	of   map[healthlab.Date]time.Time
	zone *time.Location // of the person; nil if unknown
}

// dayStarts collects the items at a midnight. A day whose midnight is skipped starts later: in the zone of the person,
// or 24 hours after the midnight before.
func (a *phoneApp) dayStarts(items []*appItem) dayStarts {
	days := dayStarts{of: map[healthlab.Date]time.Time{}}
	if a.out.opts.zoned {
		days.zone = a.out.opts.Zone
	}
	for _, item := range items {
		if date := healthlab.DateOf(item.at); secondOfDay(item.at) == 0 || days.zone != nil && date.At(days.zone).Equal(item.at) {
			days.of[date] = item.at
		}
	}
	for _, item := range items {
		date := healthlab.DateOf(item.at)
		_, known := days.of[date]
		if before, ok := days.of[date.AddDays(-1)]; ok && !known && before.Add(day).Equal(item.at) {
			days.of[date] = item.at
		}
	}
	return days
}

func (d *dayStarts) onGrid(grid time.Duration, t time.Time) bool {
	return secondOfDay(t)%int(grid/time.Second) == 0 || grid == day && d.of[healthlab.DateOf(t)].Equal(t)
}

// end returns the end of an interval of a length that starts at t; zero for an instant. A day ends where the next one
// starts in the list, or else in the zone of the person if t is written in that zone. If neither is known, it has 24
// hours.
func (d *dayStarts) end(t time.Time, length time.Duration) time.Time {
	if length == 0 {
		return time.Time{}
	}
	next := healthlab.DateOf(t).AddDays(1)
	_, offset := t.Zone()
	switch start, ok := d.of[next]; {
	case length != day:
	case ok && start.After(t):
		return start
	case d.zone != nil && offsetIn(d.zone, t.Unix()) == offset:
		return next.At(d.zone)
	}
	return t.Add(length)
}

// lengthOf returns the length of the interval that each value of a metric covers; 0 for values of an instant. The file
// does not state the length. If most times are full minutes, but not full hours, the length is a minute. If most are
// full hours, Options.Aggregation decides, except days for times that are not midnights; without it, the times show
// hours or successive days. days are the starts of days among items. lengthOf returns false if the length is unknown, or
// if the values are means of intervals where an instant is required.
func (a *phoneApp) lengthOf(kind *appMetric, items []*appItem, days dayStarts) (time.Duration, bool) {
	spread := false // some heart rate has a minimum and a maximum that differ
	for _, item := range items {
		spread = spread || item.Min != nil && item.Max != nil && *item.Min != *item.Max
	}
	on := func(grid time.Duration) bool {
		n := 0
		for _, item := range items {
			if days.onGrid(grid, item.at) {
				n++
			}
		}
		return 2*n > len(items)
	}
	said := a.out.opts.Aggregation
	if !kind.total {
		coarse := on(time.Hour) && (len(items) > 1 || spread || said == AggregateHours || said == AggregateDays)
		return 0, kind.slow || !coarse
	}
	onDay := on(day)
	switch {
	case !on(time.Minute):
	case !on(time.Hour):
		return time.Minute, true
	case said != "" && (onDay || said != AggregateDays):
		return aggregationLengths[said], true
	case !onDay && len(items) > 1:
		return time.Hour, true
	case onDay && days.successive():
		return day, true
	}
	return 0, false
}

// successive reports whether the list has the starts of two successive days.
func (d *dayStarts) successive() bool {
	for date := range d.of {
		if _, ok := d.of[date.AddDays(1)]; ok {
			return true
		}
	}
	return false
}

// sample stores one value of the metric name, converted from units. end is the end of the interval that the value
// covers; zero for an instant.
func (a *phoneApp) sample(name, units string, kind *appMetric, item *appItem, end time.Time) error {
	resource := healthdata.ResourceBySlug(kind.resource)
	s := sampleAt(item.at, nil)
	if !end.IsZero() {
		s.Start, s.End = &s.Timestamp, &healthlab.Time{Time: end} // a day of 25 hours ends at another offset
	}
	from := a.origin(item.Source)
	b, err := a.batches.batchOf(from)
	if err != nil {
		return err
	}
	if kind.resource == "blood_pressure" {
		if item.Systolic == nil || item.Diastolic == nil {
			a.out.skip(name + " (one value only)")
			return nil
		}
		if _, ok := healthdata.ConvertUnit(1, cmp.Or(units, resource.Unit), resource.Unit); !ok {
			a.out.skip(name + " (in " + units + ")")
			return nil
		}
		s.Systolic, s.Diastolic, s.Unit = item.Systolic, item.Diastolic, units
		return b.sample(kind.resource, s)
	}
	number := item.Qty
	if number == nil {
		number = item.Avg
	}
	if number == nil || *number == 0 && kind.resource == "heartrate" { // 0 means not measured
		a.out.skip(name + " (no value)")
		return nil
	}
	converted, ok := appUnit(*number, units, resource)
	if !ok {
		a.out.skip(name + " (in " + units + ")")
		return nil
	}
	s.Value = healthdata.Number(*number)
	if s.Unit = units; converted == *number {
		s.Unit = resource.Unit
	}
	if kind.sensor != "" {
		s.SensorLocation = &kind.sensor
	}
	if kind.body != bodyNone {
		a.store.bodies = append(a.store.bodies, bodyRecord{at: item.at.Unix(), offset: s.TimezoneOffset, part: kind.body, value: converted, from: from})
		if len(a.store.bodies) >= mostBodyHeld {
			if err := a.store.finishBodies(); err != nil {
				return err
			}
		}
	}
	return b.sample(kind.resource, s)
}

// appUnit converts a number to the unit of a resource. The app writes percentages as numbers up to 100.
func appUnit(v float64, units string, to *healthdata.Resource) (float64, bool) {
	switch {
	case units == "" && to.Unit == "index":
		return v, true
	case units == "":
		return 0, false
	case to.Unit == "%":
		return healthdata.ConvertUnit(v, units, to.Unit)
	}
	return inUnit(v, []byte(units), to.Unit)
}

// appNight is a night or one interval of a night. The app writes a file with one of these two forms.
type appNight struct {
	StartDate, EndDate, Value string // set for an interval only

	SleepStart, SleepEnd, InBedStart, InBedEnd        string
	TotalSleep, Asleep, Core, Deep, REM, Awake, InBed *float64
	Source, SleepSource                               string
}

// appStages maps the app's names of sleep stages to stages.
var appStages = map[string]sleepStage{
	"in bed": stageInBed, "inbed": stageInBed,
	"asleep": sleepStage(healthdata.SleepStageMissing), "unspecified": sleepStage(healthdata.SleepStageMissing),
	"core": sleepStage(healthdata.SleepStageLight), "deep": sleepStage(healthdata.SleepStageDeep),
	"rem": sleepStage(healthdata.SleepStageREM), "awake": sleepStage(healthdata.SleepStageAwake),
}

// nights stores nights, and collects intervals, which are joined to nights at the end of the file.
func (a *phoneApp) nights(units string, data []json.RawMessage) error {
	for i, raw := range data {
		place := fmt.Sprintf("sleep_analysis, item %d", i+1)
		v := itemOf[appNight](raw)
		if v == nil {
			a.remarks.add(place, "item", "an object with times and lengths")
			continue
		}
		if v.StartDate != "" {
			if err := a.sleepInterval(place, v); err != nil {
				return err
			}
			continue
		}
		if err := a.night(place, units, v); err != nil {
			return err
		}
	}
	return nil
}

// sleepInterval collects one interval of a sleep stage. place is the position of the interval in the file, as a text
// for notes.
func (a *phoneApp) sleepInterval(place string, v *appNight) error {
	stage, known := appStages[strings.ToLower(v.Value)]
	if !known {
		a.remarks.add(place, "value", "a stage of sleep such as Core")
		return nil
	}
	start, ok1 := a.time(place, "startDate", v.StartDate)
	end, ok2 := a.time(place, "endDate", v.EndDate)
	if !ok1 || !ok2 {
		return nil
	}
	if !end.After(start) || end.Sub(start) > longestNight*time.Second {
		a.remarks.add(place, "endDate", "a time after the startDate, by at most 36 hours")
		return nil
	}
	_, offset := start.Zone()
	_, endOffset := end.Zone()
	a.store.sleep = append(a.store.sleep, sleepRecord{
		start: start.Unix(), end: end.Unix(), offset: int32(offset), endOffset: int32(endOffset), stage: stage, from: a.origin(v.Source),
	})
	if len(a.store.sleep) >= mostSleepHeld {
		return a.store.finishSleep()
	}
	return nil
}

// night stores a night with the sums of its stages. Sums that are all 0 are left out, because they were not measured.
// A sum that is missing or cannot be read is null.
func (a *phoneApp) night(place, units string, v *appNight) error {
	from, to := v.SleepStart, v.SleepEnd
	if from == "" || to == "" {
		from, to = v.InBedStart, v.InBedEnd
	}
	start, ok1 := a.time(place, "sleepStart", from)
	end, ok2 := a.time(place, "sleepEnd", to)
	if !ok1 || !ok2 {
		return nil
	}
	if bed, _, ok := parseStamp([]byte(v.InBedStart)); ok && bed < start.Unix() && start.Unix()-bed < int64(24*time.Hour/time.Second) {
		start = time.Unix(bed, 0).In(start.Location())
	}
	if bed, _, ok := parseStamp([]byte(v.InBedEnd)); ok && bed > end.Unix() && bed-end.Unix() < int64(24*time.Hour/time.Second) {
		end = time.Unix(bed, 0).In(end.Location())
	}
	if !end.After(start) {
		a.remarks.add(place, "sleepEnd", "a time after the sleepStart")
		return nil
	}
	bad := false
	seconds := func(field string, n *float64) *int64 {
		if n == nil {
			return nil
		}
		length, ok := healthdata.ConvertUnit(*n, cmp.Or(units, "hr"), "min")
		if !ok || length < 0 || length > 36*60 {
			bad = true
			a.remarks.add(place, field, "a length of at most 36 hours, in hr or min")
			return nil
		}
		return new(int64(math.Round(60 * length)))
	}
	origin := a.origin(cmp.Or(v.Source, v.SleepSource))
	s := &healthdata.Sleep{
		Head: a.store.head(origin), BedtimeStart: healthlab.At(start), BedtimeStop: healthlab.At(end), TimezoneOffset: offsetOf(end),
		SessionOffsets: healthdata.SessionOffsets{StartTimezoneOffset: offsetOf(start), EndTimezoneOffset: offsetOf(end)},
	}
	s.ExternalID = uuid.NewSHA1(origin.id, []byte("sleep "+s.BedtimeStart.String())).String()
	s.Light, s.Deep, s.REM, s.Awake = seconds("core", v.Core), seconds("deep", v.Deep), seconds("rem", v.REM), seconds("awake", v.Awake)
	if secondsOf(s.Light)+secondsOf(s.Deep)+secondsOf(s.REM) == 0 {
		s.Light, s.Deep, s.REM, s.Awake = nil, nil, nil, seconds("awake", positive(v.Awake))
	}
	s.Total = cmp.Or(seconds("totalSleep", positive(v.TotalSleep)), seconds("asleep", positive(v.Asleep)))
	s.Partial = bad
	return a.out.summaries("sleep", s)
}
