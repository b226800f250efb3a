package fileimport

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// Recording is a workout with its stream.
type Recording struct {
	Workout *healthdata.Workout
	Stream  healthdata.WorkoutStream
}

// Recordings is a [Sink] that collects workouts with streams, in the order of the file.
type Recordings []Recording

// Summaries ignores summaries, because Stream gets each workout.
func (*Recordings) Summaries(context.Context, string, healthdata.Source, []healthdata.Summary) error {
	return nil
}

// Samples ignores samples, because streams contain them.
func (*Recordings) Samples(context.Context, string, healthdata.Source, []healthdata.Sample) error {
	return nil
}

// Stream implements [Sink].
func (r *Recordings) Stream(_ context.Context, w *healthdata.Workout, stream healthdata.WorkoutStream) error {
	*r = append(*r, Recording{w, stream})
	return nil
}

// Nearest returns the recording whose start is nearest to start; nil if there is none.
func (r Recordings) Nearest(start time.Time) *Recording {
	if len(r) == 0 {
		return nil
	}
	found := slices.MinFunc(r, func(a, b Recording) int {
		return cmp.Compare(a.Workout.TimeStart.Sub(start).Abs(), b.Workout.TimeStart.Sub(start).Abs())
	})
	return &found
}
