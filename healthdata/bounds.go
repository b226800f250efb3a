package healthdata

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/internal/check"
)

// Bounds are the least and the greatest value that a measurement can have. They are wide: they limit what a body
// or a device can do, not what is healthy. A value outside of them is an error of the source.
type Bounds struct {
	Low, High float64
	// Unit is the unit of Low and High.
	Unit string
}

// String returns the bounds with their unit, such as "10 to 400 bpm".
func (b Bounds) String() string {
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	return strings.TrimSpace(number(b.Low) + " to " + number(b.High) + " " + b.Unit)
}

// sampleBounds has the least and the greatest value of timeseries by slug, in the unit of the resource. A
// resource that is not listed accepts every finite number.
var sampleBounds = map[string][2]float64{
	"heartrate":                      {10, 400},
	"hrv":                            {0.1, 2000},
	"hrv_sdnn":                       {0.1, 2000},
	"blood_oxygen":                   {10, 100},
	"glucose":                        {0.1, 150},
	"cholesterol":                    {0, 300},
	"ige":                            {0, 1e6},
	"igg":                            {0, 1e6},
	"electrocardiogram_voltage":      {-1000, 1000},
	"respiratory_rate":               {0.1, 200},
	"stress_level":                   {0, 100},
	"weight":                         {0.1, 800},
	"fat":                            {0.1, 100},
	"steps":                          {0, 500_000},
	"distance":                       {0, 2e6},
	"calories_active":                {0, 50_000},
	"calories_basal":                 {0, 50_000},
	"floors_climbed":                 {0, 10_000},
	"wheelchair_push":                {0, 500_000},
	"stand_hour":                     {0, 24},
	"stand_duration":                 {0, 10_080},
	"fall":                           {0, 10_000},
	"workout_duration":               {0, 10_080},
	"workout_distance":               {0, 2e6},
	"workout_swimming_stroke":        {0, 500_000},
	"vo2_max":                        {1, 150},
	"heart_rate_recovery_one_minute": {-200, 300},
	"heart_rate_alert":               {0, 10_000},
	"afib_burden":                    {0, 100},
	"forced_expiratory_volume_1":     {0, 20},
	"forced_vital_capacity":          {0, 20},
	"peak_expiratory_flow_rate":      {0, 2000},
	"inhaler_usage":                  {0, 10_000},
	"body_temperature":               {10, 50},
	"body_temperature_delta":         {-40, 40},
	"basal_body_temperature":         {10, 50},
	"body_mass_index":                {1, 300},
	"lean_body_mass":                 {0.1, 800},
	"waist_circumference":            {1, 500},
	"insulin_injection":              {0, 5000},
	"carbohydrates":                  {0, 10_000},
	"caffeine":                       {0, 100},
	"water":                          {0, 100_000},
	"mindfulness_minutes":            {0, 10_080},
	"sleep_apnea_alert":              {0, 10_000},
	"sleep_breathing_disturbance":    {0, 10_000},
	"uv_exposure":                    {0, 50},
	"daylight_exposure":              {0, 10_080},
	"handwashing":                    {0, 10_000},
}

// pressureBounds has the bounds of the systolic and the diastolic number, in mmHg.
var pressureBounds = map[string]Bounds{
	"systolic":  {20, 400, "mmHg"},
	"diastolic": {10, 300, "mmHg"},
}

// summaryBounds are the bounds of fields of summaries, by resource and path of JSON names. An asterisk stands for the
// index of an element, and for the key of a map.
var summaryBounds = map[string]map[string]Bounds{
	"sleep": {
		"duration": {0, 36 * 3600, "s"}, "total": {0, 36 * 3600, "s"}, "awake": {0, 36 * 3600, "s"},
		"light": {0, 36 * 3600, "s"}, "rem": {0, 36 * 3600, "s"}, "deep": {0, 36 * 3600, "s"}, "latency": {0, 36 * 3600, "s"},
		"efficiency": {0, 100, "%"}, "score": {0, 100, ""}, "recovery_readiness_score": {0, 100, ""},
		"hr_lowest": {0, 400, "bpm"}, "hr_average": {0, 400, "bpm"}, "hr_resting": {0, 400, "bpm"},
		"average_hrv": {0, 2000, "ms"}, "respiratory_rate": {0, 200, "/min"},
		"skin_temperature": {0, 60, "°C"}, "temperature_delta": {-40, 40, "°C"}, "hr_dip": {-300, 100, "%"},
	},
	"activity": {
		"steps": {0, 500_000, "count"}, "calories_total": {0, 100_000, "kcal"}, "calories_active": {0, 100_000, "kcal"},
		"distance": {0, 2e6, "m"}, "daily_movement": {0, 2e6, "m"}, "floors_climbed": {0, 10_000, "count"}, "wheelchair_push": {0, 500_000, "count"},
		"low": {0, 1500, "min"}, "medium": {0, 1500, "min"}, "high": {0, 1500, "min"},
		"heart_rate.avg_bpm": {0, 400, "bpm"}, "heart_rate.min_bpm": {0, 400, "bpm"}, "heart_rate.max_bpm": {0, 400, "bpm"},
		"heart_rate.resting_bpm": {0, 400, "bpm"}, "heart_rate.avg_walking_bpm": {0, 400, "bpm"},
	},
	"body": {
		"weight": {0.1, 800, "kg"}, "fat": {0, 100, "%"}, "water_percentage": {0, 100, "%"}, "muscle_mass_percentage": {0, 100, "%"},
		"bone_mass_percentage": {0, 100, "%"}, "visceral_fat_index": {0, 100, ""}, "body_mass_index": {1, 300, ""},
		"lean_body_mass_kilogram": {0.1, 800, "kg"}, "waist_circumference_centimeter": {1, 500, "cm"},
	},
	"workouts": {
		"average_hr": {0, 400, "bpm"}, "max_hr": {0, 400, "bpm"}, "distance": {0, 5e6, "m"}, "calories": {0, 100_000, "kcal"},
		"moving_time": {0, 30 * 86_400, "s"}, "steps": {0, 2e6, "count"},
		"average_speed": {0, 500, "m/s"}, "max_speed": {0, 500, "m/s"},
		"average_watts": {0, 10_000, "W"}, "max_watts": {0, 10_000, "W"}, "device_watts": {0, 10_000, "W"}, "weighted_average_watts": {0, 10_000, "W"},
		"total_elevation_gain": {0, 100_000, "m"}, "elev_high": {-1000, 20_000, "m"}, "elev_low": {-1000, 20_000, "m"},
		"hr_zones.*": {0, 7 * 86_400, "s"},
	},
	"electrocardiogram": {
		"heart_rate_mean": {0, 400, "bpm"}, "sampling_frequency_hz": {0, 100_000, "Hz"}, "voltage_sample_count": {0, 1e9, "count"},
	},
	"menstrual_cycle": {"basal_body_temperature.*.value": {10, 50, "°C"}},
	"profile":         {"height": {10, 300, "cm"}},
	"meal": withFoods(map[string]Bounds{
		"energy.value": {0, 50_000, energyUnit},
		"macros.carbs": {0, 10_000, "g"}, "macros.protein": {0, 10_000, "g"}, "macros.alcohol": {0, 10_000, "g"},
		"macros.water": {0, 100_000, "g"}, "macros.fibre": {0, 10_000, "g"}, "macros.sugar": {0, 10_000, "g"}, "macros.cholesterol": {0, 10_000, "g"},
		"macros.fats.saturated": {0, 10_000, "g"}, "macros.fats.monounsaturated": {0, 10_000, "g"}, "macros.fats.polyunsaturated": {0, 10_000, "g"},
		"macros.fats.omega3": {0, 10_000, "g"}, "macros.fats.omega6": {0, 10_000, "g"}, "macros.fats.total": {0, 10_000, "g"},
		"micros.minerals.*": {0, 1e7, "mg or µg"}, "micros.trace_elements.*": {0, 1e7, "mg or µg"}, "micros.vitamins.*": {0, 1e7, "mg or µg"},
	}),
}

// withFoods returns the bounds of a meal, which are those of each of its foods too.
func withFoods(meal map[string]Bounds) map[string]Bounds {
	out := maps.Clone(meal)
	for name, b := range meal {
		out["data.*."+name] = b
	}
	return out
}

// Bounds returns the least and the greatest accepted value of a sample, in the resource's unit. It returns false if
// every finite number is accepted. For the two numbers of a blood pressure see [Resource.PartBounds].
func (r *Resource) Bounds() (Bounds, bool) {
	b, ok := sampleBounds[r.Slug]
	return Bounds{b[0], b[1], r.Unit}, ok
}

// IntervalBounds are the limits of the time between the start and the end of an item.
type IntervalBounds struct {
	// Start and End are the JSON names of the two times.
	Start, End string
	// Required reports whether an item must have a start and an end. The start of a sample may be its timestamp.
	Required bool
	// Positive reports whether the end must be after the start. Otherwise both may be the same instant.
	Positive bool
	// Longest is the longest accepted interval.
	Longest time.Duration
}

// sessionBounds are the bounds of the summaries that are sessions.
var sessionBounds = map[string]IntervalBounds{
	"sleep":       {"bedtime_start", "bedtime_stop", true, true, longestSleep},
	"sleep_cycle": {"session_start", "session_end", true, true, longestSleep},
	"workouts":    {"time_start", "time_end", true, true, longestWorkout},
}

// IntervalBounds returns the accepted lengths of an interval or a session of the resource. It returns false for
// a resource of instants or days.
func (r *Resource) IntervalBounds() (IntervalBounds, bool) {
	if r.Class == ClassTimeseries && r.Shape != Discrete {
		return IntervalBounds{"start", "end", r.Shape == Interval, r.Spans, r.Longest}, true
	}
	b, ok := sessionBounds[r.Slug]
	return b, ok
}

// PartBounds returns the bounds of the fields of a summary or of a blood pressure by JSON name; of an inner field by its
// path, with dots. An asterisk in a path stands for the index of an element, and for the key of a map. The map belongs
// to the caller.
func (r *Resource) PartBounds() map[string]Bounds {
	from := summaryBounds[r.Slug]
	if r.Value == ValuePressure {
		from = pressureBounds
	}
	if from == nil {
		return map[string]Bounds{}
	}
	return maps.Clone(from)
}

func (b Bounds) check(p *healthlab.Problems, v float64, path ...any) {
	if check.Finite(v) && (v < b.Low || v > b.High) {
		p.Add(check.CodeBounds, "must be "+b.String(), path...)
	}
}

// checkBounds reports the numbers of a summary that are outside of their bounds.
func checkBounds(p *healthlab.Problems, resource string, item Summary) {
	bounds := summaryBounds[resource]
	check.EachField(reflect.ValueOf(item), nil, func(v reflect.Value, path []any) {
		b, ok := bounds[boundsName(path)]
		if !ok || slices.ContainsFunc(*p, func(q healthlab.Problem) bool { return slices.Equal(q.Path, path) }) {
			return
		}
		switch {
		case v.CanInt():
			b.check(p, float64(v.Int()), slices.Clone(path)...)
		case v.CanFloat():
			b.check(p, v.Float(), slices.Clone(path)...)
		}
	})
	if len(*p) > 0 {
		return
	}
	switch v := item.(type) {
	case *Sleep:
		v.checkParts(p)
	case *Workout:
		v.checkZones(p)
	}
}

// boundsName returns the key of a field in [summaryBounds].
func boundsName(path []any) string {
	names := make([]string, len(path))
	for i, part := range path {
		name, ok := part.(string)
		if !ok {
			name = "*"
		}
		names[i] = name
	}
	return strings.Join(names, ".")
}

// roundingSeconds is by how much a part of a session may be longer than the session, because a source may round its
// times to minutes.
const roundingSeconds = 60

// checkParts reports the parts of a night that are longer than its session.
func (s *Sleep) checkParts(p *healthlab.Problems) {
	longest := wholeSeconds(s.BedtimeStop.Sub(s.BedtimeStart.Time))
	asleep := s.staged()
	if s.Total != nil {
		asleep = max(asleep, *s.Total)
	}
	report := func(v *int64, name, more string) {
		if v != nil && *v > longest+roundingSeconds {
			p.Add(check.CodeBounds, "must be at most the time from bedtime_start to bedtime_stop"+more, name)
		}
	}
	report(&asleep, "total", "; it is the sum of light, rem and deep if there are stages")
	report(s.Awake, "awake", "")
	report(s.Latency, "latency", "")
}

// checkZones reports heart rate zones that together are longer than the workout.
func (w *Workout) checkZones(p *healthlab.Problems) {
	longest := wholeSeconds(w.TimeEnd.Sub(w.TimeStart.Time)) + roundingSeconds
	for _, seconds := range w.HRZones {
		longest -= seconds
	}
	if longest < 0 {
		p.Add(check.CodeBounds, "must together be at most the time from time_start to time_end", "hr_zones")
	}
}
