// Package recording reads the files of recorded workouts of providers: FIT, TCX and GPX.
package recording

import (
	"bytes"
	"context"
	"fmt"

	"github.com/healthlab-dev/healthlab/adapters/devices/fileimport"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Read returns the recordings in a FIT, TCX or GPX file, in the order of the file. provider is the slug for their
// source. A file without recordings is not an error. The error for an unreadable file wraps a [*fileimport.FileError]
// or [fileimport.ErrFormat].
func Read(provider string, file []byte) (fileimport.Recordings, error) {
	var s fileimport.Recordings
	if _, err := fileimport.Import(context.Background(), bytes.NewReader(file), &s, &fileimport.Options{Provider: provider}); err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	return s, nil
}

// Add adds the recording of a workout to out. of returns the source type and the workout; if the workout is nil,
// nothing is added. If the file contains several recordings, Add takes the one whose start is nearest to that of the
// workout.
//
// For a stored page, of is not called: all recordings and their workouts are added, with the source type stored. A file
// that cannot be read is reported to out.
func Add(out *rest.Batch, provider string, file []byte, stored healthdata.SourceType, of func() (healthdata.SourceType, *healthdata.Workout)) {
	list, err := Read(provider, file)
	if err != nil {
		out.Problem("file", "must be a FIT, TCX or GPX file that can be read")
		return
	}
	if out.Stored() {
		for i := range list {
			out.Stream(stored, list[i].Workout, &list[i].Stream)
		}
		return
	}
	if source, w := of(); w != nil && len(list) > 0 {
		out.Stream(source, w, &list.Nearest(w.TimeStart.Time).Stream)
	}
}
