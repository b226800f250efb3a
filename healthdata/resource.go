package healthdata

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/nearest"
)

// Class is the form of a resource's data.
type Class string

const (
	// ClassSummary is an object with an id: a day, a session, a profile.
	ClassSummary Class = "summary"
	// ClassTimeseries is a sequence of samples.
	ClassTimeseries Class = "timeseries"
	// ClassStream is the detailed recording of one session.
	ClassStream Class = "stream"
	// ClassMetadata describes sources, not people.
	ClassMetadata Class = "metadata"
)

// SampleShape is whether samples are instants or intervals.
type SampleShape uint8

const (
	// Discrete samples are measured at an instant.
	Discrete SampleShape = iota
	// Interval samples cover the half-open time from start to end.
	Interval
	// MaybeInterval samples are instants, with a start and an end if the source sends them.
	MaybeInterval
)

// KeyPart is the part of a sample's identity besides provider, source type and timestamp.
type KeyPart uint8

const (
	// KeyPlain: a sample has no further key. A later sample of the same instant replaces the earlier one.
	KeyPlain KeyPart = iota
	// KeyType: the sample's type. One instant may hold several, such as the four
	// kinds of cholesterol of one blood draw.
	KeyType
	// KeyWorkout: the workout that the sample belongs to.
	KeyWorkout
)

// ValueShape is the form of a sample's value.
type ValueShape uint8

const (
	// ValueNumber is one number.
	ValueNumber ValueShape = iota
	// ValuePressure is a systolic and a diastolic number instead of one value.
	ValuePressure
	// ValueText is a text.
	ValueText
)

// Rate is the expected density of a resource's samples. It decides how a store cuts a series, not what is
// accepted.
type Rate uint8

const (
	// Sparse is up to a few samples a day.
	Sparse Rate = iota
	// Minutes is one sample every 1 to 15 minutes.
	Minutes
	// Seconds is one sample every 1 to 15 seconds, at least in sessions.
	Seconds
)

// Resource is one row of the catalogue: a kind of health data. Immutable.
type Resource struct {
	// Slug names the resource in events, availability and preferences.
	Slug string
	// Path is the name of the resource in read URLs. It differs from the slug for two resources.
	Path string
	// Class is the form of the data.
	Class Class
	// Events reports whether the events daily.data.<slug> and historical.data.<slug> exist.
	Events bool

	// The following fields, up to the last group, are for timeseries.

	// Shape is whether samples are instants or intervals.
	Shape SampleShape
	// Unit is the exact text of the published unit. Values are stored in this unit.
	Unit string
	// Value is the shape of a sample's value.
	Value ValueShape
	// Key is the identity of a sample besides provider, source type and timestamp.
	Key KeyPart
	// Types lists the known sample types. The list is open; empty means that
	// samples of this resource have none.
	Types []string
	// TypeRequired reports whether a sample must have a type.
	TypeRequired bool
	// Fields are the JSON keys that samples of this resource have besides the common ones. They are always written:
	// null if not known, tags as a list.
	Fields []string
	// Legacy reports whether the API also has the deprecated operation that reads samples without grouping them by
	// source.
	Legacy bool
	// Rate is the expected density of samples.
	Rate Rate
	// Additive reports whether the values of intervals add up: half of the time has half of the value.
	Additive bool
	// Spans reports whether a value covers a period, as steps do, so that an interval of length zero is refused.
	// Other resources, such as a temperature, accept it.
	Spans bool
	// Longest is the longest accepted interval; 24 hours unless the catalogue says otherwise.
	Longest time.Duration
	// Difference reports whether a value is the difference of two measurements, which is converted without the zero
	// point of its unit: 1.8 °F of difference are 1 °C.
	Difference bool
	// Movement reports whether samples are parts of a day's activity that several devices may count twice.
	Movement bool

	// ReadKey is the JSON name of the array in the API's response with the summaries of this resource.
	ReadKey string
	// DatesOnly reports whether the API's list of these summaries accepts only dates, without a time of day.
	DatesOnly bool
	// Raw reports whether the provider's payload can be read too.
	Raw bool
	// Table is the name of the summary's table in aggregate queries.
	Table string
	// New returns an empty summary of this resource. New is nil if the resource is not a summary.
	New func() Summary
}

var (
	sensorLocation = []string{"sensor_location"}
	insulinFields  = []string{"delivery_mode", "delivery_form", "bolus_purpose"}
)

// catalogue lists all resources. A new resource is a new row and, for a summary, a struct.
var catalogue = []Resource{
	summary("activity", "activity", newOf[Activity], "activity", false, true),
	summary("sleep", "sleep", newOf[Sleep], "sleep", false, true),
	summary("sleep_cycle", "sleep_cycle", newOf[SleepCycle], "", true, false),
	summary("body", "body", newOf[Body], "body", false, true),
	summary("workouts", "workouts", newOf[Workout], "workout", false, true),
	summary("profile", "profile", newOf[Profile], "profile", false, true),
	summary("meal", "meals", newOf[Meal], "meal", false, false),
	summary("menstrual_cycle", "menstrual_cycle", newOf[MenstrualCycle], "menstrual_cycle", true, false),
	summary("electrocardiogram", "electrocardiogram", newOf[Electrocardiogram], "", true, false),
	{Slug: "workout_stream", Path: "workout_stream", Class: ClassStream, Events: true},
	{Slug: "sleep_stream", Path: "sleep_stream", Class: ClassStream},
	{Slug: "device", Path: "device", Class: ClassMetadata},
	{Slug: "device_legacy", Path: "devices", Class: ClassMetadata, Raw: true},

	{Slug: "heartrate", Unit: "bpm", Legacy: true, Rate: Seconds},
	{Slug: "hrv", Unit: "rmssd", Legacy: true, Rate: Minutes},
	// SDNN is another measure than the RMSSD of hrv: they are not converted.
	{Slug: "hrv_sdnn", Unit: "ms", Rate: Minutes},
	{Slug: "blood_oxygen", Unit: "%", Legacy: true, Rate: Minutes},
	{Slug: "blood_pressure", Unit: "mmHg", Value: ValuePressure, Legacy: true},
	{Slug: "glucose", Unit: "mmol/L", Legacy: true, Rate: Minutes},
	{Slug: "cholesterol", Unit: "mmol/L", Key: KeyType, TypeRequired: true, Legacy: true, Types: []string{
		"cholesterol/ldl", "cholesterol/hdl", "cholesterol/total", "cholesterol/triglycerides",
	}},
	{Slug: "ige", Unit: "FSU", Key: KeyType, TypeRequired: true, Legacy: true},
	{Slug: "igg", Unit: "FSU", Key: KeyType, TypeRequired: true, Legacy: true},
	{Slug: "electrocardiogram_voltage", Unit: "mV", Key: KeyType, TypeRequired: true, Legacy: true, Rate: Seconds},
	{Slug: "respiratory_rate", Unit: "bpm", Legacy: true, Rate: Minutes},
	{Slug: "stress_level", Unit: "%", Legacy: true, Rate: Minutes},
	{Slug: "weight", Path: "body_weight", Unit: "kg", Legacy: true},
	{Slug: "fat", Path: "body_fat", Unit: "%", Legacy: true},
	{Slug: "steps", Additive: true, Spans: true, Shape: Interval, Unit: "count", Legacy: true, Rate: Minutes, Movement: true},
	{Slug: "distance", Additive: true, Spans: true, Shape: Interval, Unit: "m", Legacy: true, Rate: Minutes, Movement: true},
	{Slug: "calories_active", Additive: true, Spans: true, Shape: Interval, Unit: "kcal", Legacy: true, Rate: Seconds, Movement: true},
	{Slug: "calories_basal", Additive: true, Shape: MaybeInterval, Unit: "kcal", Legacy: true, Rate: Minutes, Movement: true},
	{Slug: "floors_climbed", Additive: true, Shape: MaybeInterval, Unit: "count", Legacy: true, Movement: true},
	{Slug: "wheelchair_push", Additive: true, Spans: true, Shape: Interval, Unit: "count", Movement: true},
	{Slug: "stand_hour", Additive: true, Spans: true, Shape: Interval, Unit: "count", TypeRequired: true, Types: []string{"stood", "idle"}},
	{Slug: "stand_duration", Additive: true, Spans: true, Shape: Interval, Unit: "min", Rate: Minutes},
	{Slug: "fall", Additive: true, Shape: Interval, Unit: "count"},
	{Slug: "workout_duration", Additive: true, Spans: true, Shape: Interval, Unit: "min", Fields: []string{"intensity"}},
	{Slug: "workout_distance", Additive: true, Spans: true, Shape: Interval, Unit: "m", Key: KeyWorkout},
	{Slug: "workout_swimming_stroke", Additive: true, Spans: true, Shape: Interval, Unit: "count", Key: KeyWorkout},
	{Slug: "vo2_max", Shape: Interval, Unit: "mL/kg/min", Legacy: true},
	{Slug: "heart_rate_recovery_one_minute", Shape: Interval, Unit: "count"},
	{Slug: "heart_rate_alert", Shape: Interval, Unit: "count", Key: KeyType, TypeRequired: true, Types: []string{
		"low_heart_rate", "high_heart_rate", "irregular_rhythm",
	}},
	{Slug: "afib_burden", Shape: Interval, Unit: "%", Longest: 8 * longestInterval}, // a sample covers a week
	{Slug: "forced_expiratory_volume_1", Shape: Interval, Unit: "L"},
	{Slug: "forced_vital_capacity", Shape: Interval, Unit: "L"},
	{Slug: "peak_expiratory_flow_rate", Shape: Interval, Unit: "L/min"},
	{Slug: "inhaler_usage", Additive: true, Shape: Interval, Unit: "count"},
	{Slug: "body_temperature", Shape: Interval, Unit: "°C", Fields: sensorLocation},
	{Slug: "body_temperature_delta", Difference: true, Shape: Interval, Unit: "°C", Fields: sensorLocation},
	{Slug: "basal_body_temperature", Shape: Interval, Unit: "°C"},
	{Slug: "body_mass_index", Shape: Interval, Unit: "index"},
	{Slug: "lean_body_mass", Shape: Interval, Unit: "kg"},
	{Slug: "waist_circumference", Shape: Interval, Unit: "cm"},
	{Slug: "insulin_injection", Additive: true, Shape: Interval, Unit: "unit", Key: KeyType, TypeRequired: true, Types: []string{
		"rapid_acting", "long_acting",
	}, Fields: insulinFields},
	{Slug: "carbohydrates", Additive: true, Shape: Interval, Unit: "g"},
	{Slug: "caffeine", Additive: true, Shape: Interval, Unit: "g", Legacy: true},
	{Slug: "water", Additive: true, Shape: MaybeInterval, Unit: "ml", Legacy: true},
	{Slug: "mindfulness_minutes", Additive: true, Spans: true, Shape: Interval, Unit: "min", Legacy: true},
	{Slug: "sleep_apnea_alert", Shape: Interval, Unit: "count"},
	{Slug: "sleep_breathing_disturbance", Shape: Interval, Unit: "count", Types: []string{"elevated", "not_elevated"}},
	{Slug: "uv_exposure", Shape: Interval, Unit: "index"},
	{Slug: "daylight_exposure", Additive: true, Spans: true, Shape: Interval, Unit: "min", Rate: Minutes},
	{Slug: "handwashing", Additive: true, Shape: Interval, Unit: "count"},
	{Slug: "note", Shape: Interval, Unit: "text", Value: ValueText, Fields: []string{"tags"}},
	// The deprecated series of sleep stages can be read, but has no events.
	{Slug: "hypnogram", Spans: true, Shape: Interval, Unit: "stage", Legacy: true, Class: ClassTimeseries},
}

// longestInterval is the default of [Resource.Longest].
const longestInterval = 24 * time.Hour

var bySlug, byPath = index(catalogue)

func summary(slug, readKey string, create func() Summary, table string, datesOnly, raw bool) Resource {
	return Resource{
		Slug: slug, Path: slug, Class: ClassSummary, Events: true,
		ReadKey: readKey, DatesOnly: datesOnly, Raw: raw, Table: table, New: create,
	}
}

func newOf[T any, P interface {
	*T
	Summary
}]() Summary {
	return P(new(T))
}

// index sets the defaults of timeseries and returns the resources by slug and by path.
func index(rows []Resource) (slugs, paths map[string]*Resource) {
	slugs, paths = make(map[string]*Resource, len(rows)), make(map[string]*Resource, len(rows))
	for i := range rows {
		r := &rows[i]
		if r.Class == "" {
			r.Class, r.Events = ClassTimeseries, true
		}
		if r.Longest == 0 {
			r.Longest = longestInterval
		}
		if r.Path == "" {
			r.Path = r.Slug
		}
		slugs[r.Slug], paths[r.Path] = r, r
	}
	return slugs, paths
}

// Resources returns the whole catalogue: summaries, streams and metadata first, then
// the timeseries. The order is stable. The rows are shared: do not change them.
func Resources() []*Resource {
	out := make([]*Resource, len(catalogue))
	for i := range catalogue {
		out[i] = &catalogue[i]
	}
	return out
}

// Timeseries returns the resources that are sequences of samples, in the order of the
// catalogue.
func Timeseries() []*Resource { return ofClass(ClassTimeseries) }

// Summaries returns the resources that are summaries, in the order of the catalogue.
func Summaries() []*Resource { return ofClass(ClassSummary) }

func ofClass(c Class) []*Resource {
	return slices.DeleteFunc(Resources(), func(r *Resource) bool { return r.Class != c })
}

// ResourceBySlug returns the resource with this slug in event names, or nil.
func ResourceBySlug(slug string) *Resource { return bySlug[slug] }

// ResourceByPath returns the resource with this name in read URLs, or nil.
func ResourceByPath(path string) *Resource { return byPath[path] }

func unknownResource(name string, of []*Resource) string {
	return "must be a resource of the catalogue; the nearest names are " + NearestNames(name, slugsOf(of))
}

// NearestNames returns the three known names that are nearest to a misspelt one, for errors: "heartrate, hrv, weight".
func NearestNames(name string, known []string) string {
	return strings.Join(nearest.Names(name, known, 3), ", ")
}

// resourceOf returns the resource of a slug and class, or an error that lists the nearest ones.
func resourceOf(slug string, class Class) (*Resource, error) {
	r := ResourceBySlug(slug)
	switch {
	case r == nil:
		return nil, fmt.Errorf("%w: resource: %s", healthlab.NotFound, unknownResource(slug, ofClass(class)))
	case r.Class != class:
		return nil, fmt.Errorf("%w: resource: %s is of class %s, and must be of class %s", healthlab.NotFound, r.Slug, r.Class, class)
	}
	return r, nil
}

func slugsOf(list []*Resource) []string {
	out := make([]string, len(list))
	for i, r := range list {
		out[i] = r.Slug
	}
	return out
}

// HasType reports whether t is one of the known sample types.
func (r *Resource) HasType(t string) bool { return slices.Contains(r.Types, t) }

// Verbs that end the names of health data events, as in daily.data.sleep.created.
const (
	verbCreated = "created"
	verbUpdated = "updated"
	verbDeleted = "deleted"
)

func dailyEvent(slug, verb string) string { return "daily.data." + slug + "." + verb }

func historicalEvent(slug string) string { return "historical.data." + slug + "." + verbCreated }
