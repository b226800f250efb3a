package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/fileimport"
	"github.com/healthlab-dev/healthlab/adapters/sqlite/healthconnect"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// runImport executes "server import FILE": it stores the contents of a file or folder, as the flag -import does,
// and ends.
func runImport(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		args = append([]string{"-import", args[0]}, args[1:]...)
	}
	return withHost(ctx, args, stderr, func(s *host) error {
		if s.importPath == "" {
			return errors.New("import: the command is: server import FILE|FOLDER [-import-user ID] [flags of the server]")
		}
		return s.importFiles(ctx, stdout)
	})
}

// importFiles stores the contents of the file or folder of -import for the user of -import-user, and prints what
// was stored.
func (s *host) importFiles(ctx context.Context, stdout io.Writer) error {
	user, _, err := s.Health.CreateOrGet(ctx, s.team, healthdata.NewUser{ClientUserID: s.importUser})
	if err != nil {
		return err
	}
	sink := &intake{host: s, user: user.ID, connected: map[string]bool{}, out: stdout, began: time.Now(), shown: time.Now()}
	opts := &fileimport.Options{
		Database: healthconnect.Read, Progress: func(read, size int64) { sink.done = float64(read) / float64(size) },
		FieldNames: map[string]string{"Zone": "-import-zone", "DateOrder": "-import-date-order"},
	}
	if s.importZone != "" {
		if opts.Zone, err = time.LoadLocation(s.importZone); err != nil {
			return errors.New("-import-zone: must be an IANA zone such as Europe/Berlin")
		}
	}
	switch opts.DateOrder = fileimport.DateOrder(s.importDateOrder); opts.DateOrder {
	case "", fileimport.DayFirst, fileimport.MonthFirst:
	default:
		return errors.New("-import-date-order: must be day_first or month_first")
	}
	switch opts.Aggregation = fileimport.Aggregation(s.importAggregation); opts.Aggregation {
	case "", fileimport.AggregateMinutes, fileimport.AggregateHours, fileimport.AggregateDays:
	default:
		return errors.New("-import-aggregation: must be minutes, hours or days")
	}
	reports, err := readFiles(ctx, s.importPath, sink, opts)
	for _, r := range reports {
		fmt.Fprintf(stdout, "imported %v\n", r)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "import: user %s has it\n", user.ID)
	return nil
}

func readFiles(ctx context.Context, path string, sink fileimport.Sink, opts *fileimport.Options) ([]fileimport.Report, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return fileimport.ImportDir(ctx, path, sink, opts)
	}
	r, err := fileimport.ImportFile(ctx, path, sink, opts)
	if err != nil {
		return nil, err
	}
	return []fileimport.Report{r}, nil
}

// intake is a [fileimport.Sink] that stores all imported data as the data of one user.
type intake struct {
	*host
	user      healthlab.UserID
	connected map[string]bool

	out    io.Writer
	stored int     // number of stored items
	done   float64 // share of the files that was read, from 0 to 1
	began  time.Time
	shown  time.Time // the time at which the progress was last printed
}

// progressEvery is the interval at which long commands print their progress.
const progressEvery = 2 * time.Second

// count adds n stored items, and prints the progress of the import at intervals of progressEvery.
func (in *intake) count(n int) {
	in.stored += n
	if now := time.Now(); now.Sub(in.shown) >= progressEvery {
		in.shown = now
		fmt.Fprintf(in.out, "importing: %s, %d items stored\n", progressOf(in.done, now.Sub(in.began)), in.stored)
	}
}

// progressOf returns a text with the finished share (done, 0 to 1) in percent, and the time that the rest will take at
// the present speed. took is the time since the start.
func progressOf(done float64, took time.Duration) string {
	percent := fmt.Sprintf("%.0f %%", math.Floor(100*done))
	if done <= 0 || done >= 1 {
		return percent
	}
	left := time.Duration(float64(took) * (1 - done) / done)
	if left < time.Minute {
		return fmt.Sprintf("%s, %d s left", percent, int(math.Ceil(left.Seconds())))
	}
	return fmt.Sprintf("%s, %d min left", percent, int(math.Ceil(left.Minutes())))
}

// upload returns an empty Upload from src, to which the caller adds data. At the first use of a provider, it connects
// the provider to the user.
func (in *intake) upload(ctx context.Context, src healthdata.Source) (healthdata.Upload, error) {
	if !in.connected[src.Provider] {
		if _, err := in.Health.Connections().Connect(ctx, in.team, in.user, healthdata.NewConnection{Provider: src.Provider}); err != nil {
			return healthdata.Upload{}, err
		}
		in.connected[src.Provider] = true
	}
	return healthdata.Upload{Provider: src.Provider, Source: src}, nil
}

// Summaries implements [fileimport.Sink]. It stores summaries, such as nights and workouts.
func (in *intake) Summaries(ctx context.Context, resource string, src healthdata.Source, items []healthdata.Summary) error {
	up, err := in.upload(ctx, src)
	if err != nil {
		return err
	}
	counts, err := in.Health.IngestSummaries(ctx, in.team, in.user, resource, up, items)
	in.count(len(items) - counts.RefusedCount)
	return fileimport.Refusals(counts, err)
}

// Samples implements [fileimport.Sink]. It stores samples of a resource.
func (in *intake) Samples(ctx context.Context, resource string, src healthdata.Source, samples []healthdata.Sample) error {
	up, err := in.upload(ctx, src)
	if err != nil {
		return err
	}
	counts, err := in.Health.IngestSamples(ctx, in.team, in.user, resource, up, samples)
	in.count(len(samples) - counts.RefusedCount)
	return fileimport.Refusals(counts, err)
}

// Stream implements [fileimport.Sink]. It stores the recording of a workout. Summaries has stored the workout
// before and set its id.
func (in *intake) Stream(ctx context.Context, workout *healthdata.Workout, stream healthdata.WorkoutStream) error {
	up, err := in.upload(ctx, workout.Source)
	if err != nil {
		return err
	}
	counts, err := in.Health.IngestWorkoutStream(ctx, in.team, in.user, workout.ID, up, &stream)
	return fileimport.Refusals(counts, err)
}
