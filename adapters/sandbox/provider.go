package sandbox

import (
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Provider invents plausible data of people. Steps, heart rate, sleep, meals and workouts of a day are consistent. The
// same user and day give the same data in every process. The zero value is ready to use. Safe for concurrent use.
type Provider struct {
	// Slug is the provider whose devices measure. The devices of two providers differ in counted steps, in their clocks
	// by up to two minutes, and in when they are not worn. Default: devices without measurement errors.
	Slug string
}

// Day invents the local day date of a user in loc. It costs as much as a few thousand random numbers, so a caller that
// needs several resources of a day should call it once.
func (p Provider) Day(user healthlab.UserID, date healthlab.Date, loc *time.Location) *Day {
	return &Day{dayOf(user, date, loc, p.Slug)}
}

// Samples calls [Day.Samples] of one day.
func (p Provider) Samples(user healthlab.UserID, resource string, date healthlab.Date, loc *time.Location) (healthdata.Source, []healthdata.Sample) {
	return p.Day(user, date, loc).Samples(resource)
}

// Summaries calls [Day.Summaries] of one day.
func (p Provider) Summaries(user healthlab.UserID, resource string, date healthlab.Date, loc *time.Location) (healthdata.Source, []healthdata.Summary) {
	return p.Day(user, date, loc).Summaries(resource)
}

// WorkoutStream calls [Day.WorkoutStream] of one day.
func (p Provider) WorkoutStream(user healthlab.UserID, date healthlab.Date, loc *time.Location) *healthdata.WorkoutStream {
	return p.Day(user, date, loc).WorkoutStream()
}

// Day is one invented day. It is immutable and safe for concurrent use. The caller owns the results of its methods.
type Day struct{ d *day }

// Samples returns the samples of a timeseries, ordered by timestamp, and their source. Rare measurements do not
// exist on every day; then there are none. A resource that is not a timeseries has none either.
//
// The source of a workout's samples names the workout by its external id. A caller that stores the samples should
// replace it by the id that the stored workout got, so that readers find the workout of a sample.
func (d *Day) Samples(resource string) (healthdata.Source, []healthdata.Sample) {
	r := healthdata.ResourceBySlug(resource)
	if r == nil || r.Class != healthdata.ClassTimeseries {
		return healthdata.Source{}, nil
	}
	src := healthdata.Source{Type: sourceTypeOf(r)}
	if r.Key == healthdata.KeyWorkout && d.d.training != nil {
		id, sport := workoutID(d.d.user, d.d.date), d.d.training.sport
		src.WorkoutID, src.Sport = &id, &sport
	}
	return src, d.d.samples(r)
}

// Summaries returns the summaries of a resource that belong to the day: its activity, the sleep that ended on it,
// its workout, its meals. They have no ids; the store assigns them.
func (d *Day) Summaries(resource string) (healthdata.Source, []healthdata.Summary) {
	return healthdata.Source{Type: healthdata.SourceWatch}, d.d.summaries(resource)
}

// WorkoutStream returns the stream of the day's workout, nil if there was none.
func (d *Day) WorkoutStream() *healthdata.WorkoutStream { return d.d.stream() }

// sourceTypeOf returns the source type of a resource's data.
func sourceTypeOf(r *healthdata.Resource) healthdata.SourceType {
	switch r.Slug {
	case "glucose":
		return healthdata.SourceAutomatic
	case "blood_pressure":
		return healthdata.SourceCuff
	case "weight", "fat", "body_mass_index", "lean_body_mass":
		return healthdata.SourceScale
	case "cholesterol", "ige", "igg":
		return healthdata.SourceLab
	case "insulin_injection":
		return healthdata.SourceInsulinPump
	case "caffeine", "water", "carbohydrates", "note", "mindfulness_minutes", "inhaler_usage", "waist_circumference":
		return healthdata.SourceApp
	default:
		return healthdata.SourceWatch
	}
}
