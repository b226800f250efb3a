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

// Read returns the recordings in a file, in their order. A file without recordings is not an error. An unreadable
// file is a [*fileimport.FileError] or wraps [fileimport.ErrFormat].
func Read(provider string, file []byte) (fileimport.Recordings, error) {
	var s fileimport.Recordings
	if _, err := fileimport.Import(context.Background(), bytes.NewReader(file), &s, &fileimport.Options{Provider: provider}); err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	return s, nil
}

// Add adds the recording of a workout to out. If the file contains several, it takes the one whose start is nearest
// to the workout's. of returns the workout and its source; if the workout is nil, nothing is added. For a stored
// page, of is not called: all recordings and their workouts are added, with the source type stored. A file that
// cannot be read is reported to out.
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
