package fileimport_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// recordingSink is a sink that keeps everything.
type recordingSink struct {
	calls     int
	summaries map[string][]healthdata.Summary
	samples   map[string][]kept
	streams   []healthdata.WorkoutStream
	streamsOf []*healthdata.Workout
	most      int   // items of the largest call
	fail      error // what every call returns
}

// kept is a sample and its source.
type kept struct {
	healthdata.Sample
	source healthdata.Source
}

func (s *recordingSink) Summaries(_ context.Context, resource string, source healthdata.Source, items []healthdata.Summary) error {
	s.calls++
	s.most = max(s.most, len(items))
	if s.summaries == nil {
		s.summaries = map[string][]healthdata.Summary{}
	}
	for _, item := range items {
		if healthdata.HeadOf(item).Source != source {
			return errors.New("a summary of another source")
		}
	}
	s.summaries[resource] = append(s.summaries[resource], items...)
	return s.fail
}

func (s *recordingSink) Samples(_ context.Context, resource string, source healthdata.Source, samples []healthdata.Sample) error {
	s.calls++
	s.most = max(s.most, len(samples))
	if s.samples == nil {
		s.samples = map[string][]kept{}
	}
	for _, v := range samples {
		s.samples[resource] = append(s.samples[resource], kept{v, source})
	}
	return s.fail
}

func (s *recordingSink) Stream(_ context.Context, w *healthdata.Workout, stream healthdata.WorkoutStream) error {
	s.calls++
	s.streams = append(s.streams, stream)
	s.streamsOf = append(s.streamsOf, w)
	return s.fail
}

// summariesOf returns the summaries of a resource as their own type.
func summariesOf[T healthdata.Summary](t testing.TB, s *recordingSink, resource string) []T {
	t.Helper()
	var out []T
	for _, v := range s.summaries[resource] {
		w, ok := v.(T)
		require.True(t, ok, "a summary of another type in %s", resource)
		out = append(out, w)
	}
	return out
}

// realData returns a file or folder of the real recordings, and skips the test where
// they are not.
func realData(t testing.TB, parts ...string) string {
	t.Helper()
	dir := os.Getenv("HEALTHLABTEST_REAL_DATA")
	if dir == "" {
		root, err := os.Getwd()
		require.NoError(t, err)
		for {
			if _, err := os.Stat(filepath.Join(root, "go.work")); err == nil {
				break
			}
			up := filepath.Dir(root)
			require.NotEqual(t, up, root, "no go.work above the test")
			root = up
		}
		dir = filepath.Join(root, "..", "shared", "data", "real")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no real recordings here: set HEALTHLABTEST_REAL_DATA to their folder")
	}
	return filepath.Join(append([]string{dir}, parts...)...)
}

func at[T any](v T) *T { return &v }

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// nowhere is a sink that keeps nothing.
type nowhere struct{}

func (nowhere) Summaries(context.Context, string, healthdata.Source, []healthdata.Summary) error {
	return nil
}

func (nowhere) Samples(context.Context, string, healthdata.Source, []healthdata.Sample) error {
	return nil
}

func (nowhere) Stream(context.Context, *healthdata.Workout, healthdata.WorkoutStream) error {
	return nil
}
