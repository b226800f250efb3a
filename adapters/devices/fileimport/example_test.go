package fileimport_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/healthlab-dev/healthlab/adapters/devices/fileimport"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// printer is a sink that tells what it is given. A host's sink calls the ingest
// methods of healthdata.Service in the same places.
type printer struct{}

func (printer) Summaries(_ context.Context, resource string, source healthdata.Source, items []healthdata.Summary) error {
	for _, item := range items {
		if w, ok := item.(*healthdata.Workout); ok {
			fmt.Printf("%s of %s: %s, %.0f m in %d s\n", resource, source.Provider, w.Sport.Slug, *w.Distance, *w.MovingTime)
		}
	}
	return nil
}

func (printer) Samples(_ context.Context, resource string, _ healthdata.Source, samples []healthdata.Sample) error {
	fmt.Printf("%d samples of %s, the first %v %s\n", len(samples), resource, samples[0].Value.Number, samples[0].Unit)
	return nil
}

func (printer) Stream(_ context.Context, w *healthdata.Workout, stream healthdata.WorkoutStream) error {
	fmt.Printf("its stream: %d points from %s\n", len(stream.Time), w.TimeStart)
	return nil
}

// A watch has recorded a short run. Its file is imported. Of a copy that ends early,
// what stands before is imported.
func Example() {
	const run = `<gpx version="1.1"><trk><type>running</type><trkseg>
<trkpt lat="47.3700" lon="8.54"><time>2026-04-18T06:30:00Z</time><extensions><hr>118</hr></extensions></trkpt>
<trkpt lat="47.3709" lon="8.54"><time>2026-04-18T06:30:30Z</time><extensions><hr>131</hr></extensions></trkpt>
<trkpt lat="47.3718" lon="8.54"><time>2026-04-18T06:31:00Z</time><extensions><hr>139</hr></extensions></trkpt>
</trkseg></trk></gpx>`

	report, err := fileimport.Import(context.Background(), strings.NewReader(run), printer{}, nil)
	if err != nil {
		fmt.Println(err)
	}
	fmt.Print(report)

	report, err = fileimport.Import(context.Background(), strings.NewReader(run[:300]), printer{}, nil)
	if err != nil {
		fmt.Println(err)
	}
	fmt.Print(report)
	// Output:
	// workouts of manual: running, 200 m in 60 s
	// its stream: 3 points from 2026-04-18T06:30:00+00:00
	// 3 samples of heartrate, the first 118 bpm
	// file (gpx)
	//          1  workouts
	//          1  workout_stream
	//          3  heartrate
	// workouts of manual: running, 100 m in 30 s
	// its stream: 2 points from 2026-04-18T06:30:00+00:00
	// 2 samples of heartrate, the first 118 bpm
	// file (gpx)
	//          1  workouts
	//          1  workout_stream
	//          2  heartrate
	//          1  skipped: the end of the file: it ends before its elements do
	//   note: line 4: left out: the end of the file: it ends before its elements do
}
