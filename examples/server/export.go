package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/nearest"
)

// sampleLine is one sample, as one line of JSON.
type sampleLine struct {
	Provider   string                `json:"provider"`
	SourceType healthdata.SourceType `json:"source_type"`
	Part       string                `json:"part,omitempty"`
	At         time.Time             `json:"at"`
	End        *time.Time            `json:"end,omitempty"`
	Value      float64               `json:"value"`
	Value2     float64               `json:"value2,omitempty"`
	Unit       string                `json:"unit"`
	sentNumbers
	attributes
}

// sentNumbers is what the source sent in another unit than that of the resource, under the names of the HTTP API.
type sentNumbers struct {
	SourceUnit      string   `json:"source_unit,omitempty"`
	SourceValue     *float64 `json:"source_value,omitempty"`
	SourceSystolic  *float64 `json:"source_systolic,omitempty"`
	SourceDiastolic *float64 `json:"source_diastolic,omitempty"`
}

// attributes has the fields of [series.Attrs] under their names in the export.
type attributes struct {
	healthlab.Private

	Offset       int32     `json:"utc_offset"`
	Type         string    `json:"type,omitempty"`
	Unit         string    `json:"-"` // see sentNumbers
	App          string    `json:"app,omitempty"`
	Device       uuid.UUID `json:"device,omitzero"`
	Workout      uuid.UUID `json:"workout,omitzero"`
	Sport        string    `json:"sport,omitempty"`
	Location     string    `json:"location,omitempty"`
	Intensity    string    `json:"intensity,omitempty"`
	DeliveryMode string    `json:"delivery_mode,omitempty"`
	DeliveryForm string    `json:"delivery_form,omitempty"`
	BolusPurpose string    `json:"bolus_purpose,omitempty"`
	Text         string    `json:"text,omitempty"`
	Tags         string    `json:"tags,omitempty"`
	Rank         uint32    `json:"-"`
}

// runExport executes "server export": it writes the samples of one user and resource, one JSON object on each line,
// ordered by series and time.
func runExport(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	f := flag.NewFlagSet("server export", flag.ContinueOnError)
	address := f.String("database-url", "", "postgres://… as the server has it")
	dir := f.String("data", "", "`folder` as the server has it, while no server uses it")
	var team healthlab.TeamID
	var user healthlab.UserID
	f.TextVar(&team.UUID, "team", uuid.Nil, "`id` of the team")
	f.TextVar(&user.UUID, "user", uuid.Nil, "`id` of the user")
	secretFile := f.String("secret-file", "", "`file` as the server has it, if samples are encrypted")
	sealingFile := f.String("sealing-keys", "", "`file` as the server has it, if samples are encrypted")
	keysURL := f.String("keys-url", "", "postgres://… as the server has it, if samples are encrypted")
	resource := f.String("resource", "", "`slug` of a timeseries resource, such as heartrate")
	if done, err := parseOwn(f, args, stdout); done || err != nil {
		return err
	}
	if (*address == "") == (*dir == "") || team.IsZero() || user.IsZero() || *resource == "" {
		return errors.New("export needs -team, -user, -resource, and one of -data and -database-url")
	}
	timeseries, err := timeseriesOf(*resource)
	if err != nil {
		return err
	}
	at := keysAt{address: *keysURL}
	if *dir != "" && *secretFile == "" && *sealingFile == "" {
		*secretFile = filepath.Join(*dir, secretName)
	}
	if *secretFile != "" || *sealingFile != "" {
		if *secretFile != "" { // refuse a missing file, which newMaster would create
			if _, err := os.Stat(*secretFile); err != nil {
				return fmt.Errorf("-secret-file: %w", err)
			}
		}
		secret, err := newMaster(*secretFile)
		if err != nil {
			return fmt.Errorf("-secret-file: %w", err)
		}
		if at.sealer, err = secret.sealer(*sealingFile, *secretFile != ""); err != nil {
			return err
		}
	}
	kept, err := openStorage(ctx, storeAt{dir: *dir, database: *address, keys: at}, nil)
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), storageGrace)
		defer cancel()
		err = errors.Join(err, kept.close(closing))
	}()
	return exportSamples(ctx, kept.Data(), team, user, timeseries, &exported{to: json.NewEncoder(stdout), progress: stderr})
}

// timeseriesOf returns the timeseries resource of a slug, or an error that names the nearest ones.
func timeseriesOf(slug string) (*healthdata.Resource, error) {
	var slugs []string
	for _, r := range healthdata.Timeseries() {
		if r.Slug == slug {
			return r, nil
		}
		slugs = append(slugs, r.Slug)
	}
	return nil, errors.New("-resource: " + nearest.Allowed(slug, slugs, "docs/bounds.md"))
}

// exported writes the lines of an export, and prints the progress to another writer.
type exported struct {
	to            *json.Encoder
	progress      io.Writer
	samples, size int // number of written samples, and of samples in all series
	began, shown  time.Time
}

// write writes a line.
func (e *exported) write(line *sampleLine) error {
	if e.samples++; e.samples%1000 == 0 {
		if now := time.Now(); now.Sub(e.shown) >= progressEvery {
			e.shown = now
			done := min(1, float64(e.samples)/float64(max(1, e.size)))
			fmt.Fprintf(e.progress, "exporting: %s, %d samples written\n", progressOf(done, now.Sub(e.began)), e.samples)
		}
	}
	return e.to.Encode(line)
}

// exportSamples writes all samples of a user and resource to lines, as they are at one instant.
func exportSamples(ctx context.Context, data healthdata.Data, team healthlab.TeamID, user healthlab.UserID, resource *healthdata.Resource, lines *exported) error {
	lines.began, lines.shown = time.Now(), time.Now()
	return data.View(ctx, team, user, healthdata.Once(func(v healthdata.View) error {
		all, err := v.Series(ctx, healthdata.SeriesQuery{Resources: []string{resource.Slug}})
		if err != nil {
			return err
		}
		for _, s := range all {
			for i := range s.Chunks {
				lines.size += s.Chunks[i].N
			}
			for i := range s.Pending {
				lines.size += s.Pending[i].N
			}
		}
		for _, s := range all {
			if err := exportSeries(ctx, v, s, resource, lines); err != nil {
				return fmt.Errorf("export %s of %s: %w", resource.Slug, s.Key.Provider, err)
			}
		}
		return nil
	}))
}

func exportSeries(ctx context.Context, v healthdata.View, s healthdata.Series, resource *healthdata.Resource, lines *exported) error {
	starts := make([]int64, len(s.Chunks))
	for i := range s.Chunks {
		starts[i] = s.Chunks[i].Start
	}
	chunks, err := v.Load(ctx, s.Key, starts)
	if err != nil {
		return err
	}
	var scan series.Scanner
	for block, err := range scan.Blocks(chunks, s.Pending, series.Range{From: series.MinTime, To: series.MaxTime}) {
		if err != nil {
			return err
		}
		for _, x := range block.All() {
			line := sampleLine{
				Provider: s.Key.Provider, SourceType: s.Key.SourceType, Part: s.Key.Part,
				At: time.UnixMicro(x.Time).UTC(), Value: x.Value, Value2: x.Value2,
				Unit: resource.Unit, sentNumbers: sentNumbersOf(resource, &x), attributes: attributes(x.Attrs),
			}
			if x.End != series.NoEnd {
				line.End = new(time.UnixMicro(x.End).UTC())
			}
			if err := lines.write(&line); err != nil {
				return err
			}
		}
	}
	return nil
}

func sentNumbersOf(resource *healthdata.Resource, x *series.Sample) sentNumbers {
	unit, first, second := resource.SentNumbers(x)
	switch {
	case unit == "":
		return sentNumbers{}
	case resource.Value == healthdata.ValuePressure:
		return sentNumbers{SourceUnit: unit, SourceSystolic: &first, SourceDiastolic: &second}
	}
	return sentNumbers{SourceUnit: unit, SourceValue: &first}
}
