// Package lake exports the data of teams as Parquet files in Hive layout, for queries over
// many people with DuckDB, Spark or Athena:
//
//	team=<id>/resource=heartrate/month=2026-03/part-….parquet
//	team=<id>/manifest.json
//
// An [Exporter] compares fingerprints of what the store holds with those in the manifest. It
// writes a month of a resource that changed as one new part, then replaces the manifest, and
// removes the old part after [Options.Grace]. A reader that takes the paths from the manifest
// sees each row once. An interrupted export leaves the previous manifest and its parts.
//
// The files have pseudonyms in place of ids, and no names, dates of birth or free text, unless
// [Options.Identified] is set. Users that are deleted are left out of the next export.
//
// The names to know: [New], [Exporter.Run], [Exporter.Export], [Place] and [Manifest].
// docs/lake.md has the schemas and how to read them.
package lake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/orders"
)

// Place stores the files: a blob.Directory that was opened with Plain, or a blob.Bucket.
//
// Write stores the whole content under a name, replacing existing content, or changes nothing. Open of a missing
// name returns [healthlab.NotFound]; Remove of one returns nil. List calls name for each file, in any order.
// Implementations are safe for concurrent use.
type Place interface {
	Write(ctx context.Context, name string, content io.Reader) error
	Open(ctx context.Context, name string) (io.ReadCloser, error)
	Remove(ctx context.Context, name string) error
	List(ctx context.Context, name func(string) error) error
}

// Health reads users and their data. [healthdata.Service] implements it.
type Health interface {
	Users(ctx context.Context, team healthlab.TeamID, offset, limit int) (healthdata.UserPage, error)
	View(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, read func(healthdata.View) error) error
}

// Orders reads lab orders and their results. [orders.Service] implements it.
type Orders interface {
	List(ctx context.Context, q orders.Query) (orders.Page, error)
	Results(ctx context.Context, team healthlab.TeamID, id orders.OrderID) (orders.OrderResults, error)
}

// Options adjusts an Exporter. The zero value, and nil, mean the defaults.
type Options struct {
	// Orders are exported if set. Default: none.
	Orders Orders
	// Identified exports ids of users, orders, devices and workouts unchanged, with dates of birth and free text.
	// Default: pseudonyms, without dates of birth and free text.
	Identified bool
	// Every is the time from the start of one export to the next. Default 1 hour.
	Every time.Duration
	// Grace is how long a file stays after the manifest no longer names it, for readers that have the previous
	// manifest. Default 1 hour. If negative, files are removed at once.
	Grace time.Duration
	// Verify is the interval after which an export reads all stored samples to find changes. Other exports compare the
	// headers of chunks, which do not change if a change keeps the count, sum, extremes and ends of a chunk. Default 20
	// hours.
	Verify time.Duration
	// Workers is the number of months that are written concurrently. Default: the number of processors.
	Workers int
	// Accessed is called before a user's data is written to the lake, at least once for each export. If it returns an
	// error, the export ends with it. Nil: nothing is called.
	Accessed func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Log receives the exported amounts, the progress once a minute, and failures. Default slog.Default().
	Log *slog.Logger
}

// keyBytes is the least length of the key of pseudonyms.
const keyBytes = 32

// orphanAge is the age at which a file that no manifest names is removed. It is longer than any export.
const orphanAge = 6 * time.Hour

// Exporter exports teams. Only one process at a time should export a team. If two do, no data is lost, but one
// overwrites the manifest of the other until the next export.
type Exporter struct {
	place  Place
	health Health
	teams  func(context.Context) ([]healthlab.TeamID, error)
	key    []byte
	opts   Options
}

// New returns an Exporter. teams lists the teams to export. key has at least 32 random bytes and makes the
// pseudonyms: as long as it stays the same, pseudonyms do too. New returns Invalid if an argument is missing.
func New(place Place, health Health, teams func(context.Context) ([]healthlab.TeamID, error), key []byte, opts *Options) (*Exporter, error) {
	if place == nil || health == nil || teams == nil || len(key) < keyBytes {
		return nil, fmt.Errorf("%w: place, health and teams must not be nil, and key must have at least %d bytes", healthlab.Invalid, keyBytes)
	}
	e := &Exporter{place: place, health: health, teams: teams, key: key}
	if opts != nil {
		e.opts = *opts
	}
	for _, d := range []struct {
		value    *time.Duration
		standard time.Duration
	}{{&e.opts.Every, time.Hour}, {&e.opts.Grace, time.Hour}, {&e.opts.Verify, 20 * time.Hour}} {
		if *d.value == 0 {
			*d.value = d.standard
		}
	}
	if e.opts.Accessed == nil {
		e.opts.Accessed = func(context.Context, healthlab.TeamID, healthlab.UserID) error { return nil }
	}
	if e.opts.Workers <= 0 {
		e.opts.Workers = runtime.GOMAXPROCS(0)
	}
	if e.opts.Now == nil {
		e.opts.Now = time.Now
	}
	e.opts.Log = cmp.Or(e.opts.Log, slog.Default())
	return e, nil
}

// Run exports all teams, at once and then every [Options.Every], until ctx ends, and returns
// nil. A failed export is logged, and the next one continues from the last manifest.
func (e *Exporter) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		timer.Reset(e.opts.Every)
		if err := e.exportAll(ctx); err != nil && ctx.Err() == nil {
			e.opts.Log.ErrorContext(ctx, "export to the lake failed", "error", err)
		}
	}
}

func (e *Exporter) exportAll(ctx context.Context) error {
	teams, err := e.teams(ctx)
	if err != nil {
		return fmt.Errorf("list teams: %w", err)
	}
	var failed error
	for _, team := range teams {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if _, err := e.Export(ctx, team); err != nil {
			failed = errors.Join(failed, fmt.Errorf("team %s: %w", team, err))
		}
	}
	return failed
}

// Export updates the files of one team and returns the manifest. After an error, the stored manifest is the previous
// one or has some of the changes; the call may be repeated.
func (e *Exporter) Export(ctx context.Context, team healthlab.TeamID) (Manifest, error) {
	x, err := e.begin(ctx, team)
	if err == nil {
		err = x.export(ctx)
	}
	if err != nil {
		return Manifest{}, fmt.Errorf("export to the lake: %w", err)
	}
	return x.manifest, nil
}
