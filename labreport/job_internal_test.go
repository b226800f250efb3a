package labreport

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// An event has the whole job as long as a message has room for it, which is a mebibyte
// with its envelope.
func TestJobEvent_omitsDataAboveOneMebibyte(t *testing.T) {
	for size, omitted := range map[int]bool{100_000: false, 900_000: false, 1_000_000: true, 5_000_000: true} {
		j := &Job{ID: JobID{uuid.New()}, Status: Completed, Draft: &Data{Results: []Result{{TestName: strings.Repeat("a", size)}}}}
		e, err := j.event(EventJobUpdated, uuid.New(), time.Time{})
		require.NoError(t, err)
		require.LessOrEqual(t, len(e.Data), 1_000_000)
		var got PublishedJob
		require.NoError(t, json.Unmarshal(e.Data, &got))
		require.Equal(t, omitted, got.DataOmitted, size)
		require.Equal(t, omitted, got.Data == nil, size)
	}
}
