package sandbox

import (
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Provider makes up the data of people who do not exist: believable days, in which
// steps, heart rate, sleep, meals and workouts agree with each other. The same user and
// day are always the same, in every process. The zero value is ready; it is safe for
// concurrent use.
type Provider struct{}

// Samples returns a day of samples of a timeseries, ascending by timestamp, and who
// recorded them: of the local day date in loc. Sparse things do not happen every day;
// then there are none. A resource that is not a timeseries has none either.
func (Provider) Samples(user healthlab.UserID, resource string, date healthlab.Date, loc *time.Location) (healthdata.Source, []healthdata.Sample) {
	r := healthdata.ResourceBySlug(resource)
	if r == nil || r.Class != healthdata.ClassTimeseries {
		return healthdata.Source{}, nil
	}
	d := dayOf(user, date, loc)
	src := healthdata.Source{Type: sourceTypeOf(r)}
	if r.Key == healthdata.KeyWorkout {
		if d.training == nil || (resource == "workout_swimming_stroke") {
			return src, nil
		}
		id := WorkoutID(user, date)
		src.WorkoutID, src.Sport = &id, &d.training.sport
	}
	return src, d.samples(r)
}

// Summaries returns the summaries of a resource that belong to a local day: the day of
// activity, the sleep that ended on it, its workout, its meals. They have no ids yet:
// storing them gives them one.
func (Provider) Summaries(user healthlab.UserID, resource string, date healthlab.Date, loc *time.Location) (healthdata.Source, []healthdata.Summary) {
	d := dayOf(user, date, loc)
	return healthdata.Source{Type: healthdata.SourceWatch}, d.summaries(resource)
}

// WorkoutStream returns the stream of the workout of a day, nil if there was none.
func (Provider) WorkoutStream(user healthlab.UserID, date healthlab.Date, loc *time.Location) *healthdata.WorkoutStream {
	return dayOf(user, date, loc).stream()
}

// sourceTypeOf says what a person would measure a resource with.
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
