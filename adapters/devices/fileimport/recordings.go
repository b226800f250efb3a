package fileimport

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// Recording is a workout of a file with its stream.
type Recording struct {
	Workout *healthdata.Workout
	Stream  healthdata.WorkoutStream
}

// Recordings is a [Sink] that keeps the workouts that have streams, in the order of the file.
type Recordings []Recording

// Summaries is [Sink]: workouts come with their streams.
func (*Recordings) Summaries(context.Context, string, healthdata.Source, []healthdata.Summary) error {
	return nil
}

// Samples is [Sink]: they are in the streams.
func (*Recordings) Samples(context.Context, string, healthdata.Source, []healthdata.Sample) error {
	return nil
}

// Stream is [Sink].
func (r *Recordings) Stream(_ context.Context, w *healthdata.Workout, stream healthdata.WorkoutStream) error {
	*r = append(*r, Recording{w, stream})
	return nil
}

// Nearest returns the recording that begins nearest to an instant; nil if there is none.
func (r Recordings) Nearest(start time.Time) *Recording {
	if len(r) == 0 {
		return nil
	}
	found := slices.MinFunc(r, func(a, b Recording) int {
		return cmp.Compare(a.Workout.TimeStart.Sub(start).Abs(), b.Workout.TimeStart.Sub(start).Abs())
	})
	return &found
}
