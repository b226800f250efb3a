package fileupload

import (
	"context"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/fileimport"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// sink stores the data of a file for a user.
type sink struct {
	health *healthdata.Service
	team   healthlab.TeamID
	user   healthlab.UserID
	counts healthdata.Counts
}

func upload(source healthdata.Source) healthdata.Upload {
	return healthdata.Upload{Provider: source.Provider, Source: source}
}

func (s *sink) add(c healthdata.Counts, err error) error {
	s.counts.New, s.counts.Changed, s.counts.Same = s.counts.New+c.New, s.counts.Changed+c.Changed, s.counts.Same+c.Same
	return fileimport.Refusals(c, err)
}

// Summaries implements [fileimport.Sink].
func (s *sink) Summaries(ctx context.Context, resource string, source healthdata.Source, items []healthdata.Summary) error {
	return s.add(s.health.IngestSummaries(ctx, s.team, s.user, resource, upload(source), items))
}

// Samples implements [fileimport.Sink].
func (s *sink) Samples(ctx context.Context, resource string, source healthdata.Source, samples []healthdata.Sample) error {
	return s.add(s.health.IngestSamples(ctx, s.team, s.user, resource, upload(source), samples))
}

// Stream implements [fileimport.Sink]. The workout has an id, because Summaries has stored it before.
func (s *sink) Stream(ctx context.Context, workout *healthdata.Workout, stream healthdata.WorkoutStream) error {
	c, err := s.health.IngestWorkoutStream(ctx, s.team, s.user, workout.ID, upload(workout.Source), &stream)
	c.New, c.Changed, c.Same = 0, 0, 0 // they count points; the workout is already counted
	return s.add(c, err)
}
