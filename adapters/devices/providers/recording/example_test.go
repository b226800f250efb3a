package recording_test

import (
	"fmt"

	"github.com/healthlab-dev/healthlab/adapters/devices/providers/recording"
)

// A file that a provider gave becomes workouts with their recordings.
func Example() {
	list, err := recording.Read("fjord", []byte(`<?xml version="1.0"?>
<gpx version="1.1" creator="Fjord" xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>
<trkpt lat="60.2" lon="25.1"><ele>12</ele><time>2026-03-04T10:00:00Z</time></trkpt>
<trkpt lat="60.3" lon="25.2"><ele>14</ele><time>2026-03-04T10:05:00Z</time></trkpt></trkseg></trk></gpx>`))
	fmt.Println(len(list), err)
	fmt.Println(list[0].Workout.TimeStart, len(list[0].Stream.Lat))
	// Output:
	// 1 <nil>
	// 2026-03-04T10:00:00+00:00 2
}
