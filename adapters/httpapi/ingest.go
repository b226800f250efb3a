package httpapi

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// ingestOperations lists the uploads of health data: one operation for samples, and one for each summary of the
// catalogue, because their bodies differ.
func (a api) ingestOperations() []server.Operation {
	if a.Health == nil {
		return nil
	}
	ops := []server.Operation{{
		ID: "ingest_samples", Pattern: "POST /v2/timeseries/{user_id}/{resource}",
		Bound: server.UserInPath, Change: a.ingestSamples, MaxBody: a.MaxIngestBody,
	}, {
		ID: "remove_samples", Pattern: "POST /v2/timeseries/{user_id}/{resource}/remove", Bound: server.UserInPath, Change: a.removeSamples, MaxBody: a.MaxIngestBody,
	}, {
		ID: "remove_summaries", Pattern: "POST /v2/summary/{resource}/{user_id}/remove", Bound: server.UserInPath, Change: a.removeSummaries, MaxBody: a.MaxIngestBody,
	}, {
		ID: "ingest_workout_stream", Pattern: "POST /v2/timeseries/{user_id}/workouts/{workout_id}/stream",
		Bound: server.UserInPath, Change: a.ingestWorkoutStream, MaxBody: maxStreamBody,
	}}
	for slug, handle := range map[string]func(*wire.In, healthlab.TeamID) (*server.Change, error){
		"activity":          ingest[healthdata.Activity](a, "activity"),
		"sleep":             ingest[healthdata.Sleep](a, "sleep"),
		"sleep_cycle":       ingest[healthdata.SleepCycle](a, "sleep_cycle"),
		"body":              ingest[healthdata.Body](a, "body"),
		"workouts":          ingest[healthdata.Workout](a, "workouts"),
		"profile":           ingest[healthdata.Profile](a, "profile"),
		"meal":              ingest[healthdata.Meal](a, "meal"),
		"menstrual_cycle":   ingest[healthdata.MenstrualCycle](a, "menstrual_cycle"),
		"electrocardiogram": ingest[healthdata.Electrocardiogram](a, "electrocardiogram"),
	} {
		ops = append(ops, server.Operation{
			ID: "ingest_" + slug, Pattern: "POST /v2/summary/" + slug + "/{user_id}",
			Bound: server.UserInPath, Change: handle, MaxBody: a.MaxIngestBody, BodyCost: summaryCost,
		})
	}
	return ops
}

// summaryCost is the memory of a body of summaries as a multiple of its size, measured with the smallest items.
const summaryCost = 50

// maxAtomicSummaries is the largest number of summaries in an atomic upload, because one transaction stores all records
// and events.
const maxAtomicSummaries = 10_000

// maxStreamBody is the largest body of a stream, in bytes. A longer stream is uploaded in parts.
const maxStreamBody = 10 << 20

// streamIn is the body of a stream, or of a part of a stream.
type streamIn struct {
	uploadIn
	// Mode is replace, which is the default, or append.
	Mode   string                   `json:"mode" wire:"opt"`
	Stream healthdata.WorkoutStream `json:"stream"`
}

func (a api) ingestWorkoutStream(in *wire.In, team healthlab.TeamID) (*server.Change, error) {
	user, workout := userID(in), in.PathUUID("workout_id")
	var body streamIn
	unparsed := in.Items(&body)
	atomic := in.Bool("atomic", false)
	body.check(in)
	if body.Mode != "" && body.Mode != "replace" && body.Mode != "append" {
		in.Problem("enum", "must be one of: replace, append", "body", "mode")
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	put := a.Health.IngestWorkoutStream
	if body.Mode == "append" {
		put = a.Health.AppendWorkoutStream
	}
	fresh := bodyRereader(in, &body)
	return &server.Change{Do: func(ctx context.Context) (any, error) {
		if err := fresh(); err != nil {
			return nil, err
		}
		up := body.upload()
		up.Atomic, up.Unparsed = atomic, *unparsed
		return put(ctx, team, user, workout, up, &body.Stream)
	}}, nil
}

// bodyRereader returns a function that a change must call at the start of each of its runs. From the second run on, the
// function decodes the body again, because a service may have changed the items.
func bodyRereader[T any](in *wire.In, body *T) func() error {
	used := false
	return func() error {
		if !used {
			used = true
			return nil
		}
		*body = *new(T)
		return in.BodyAgain(body)
	}
}

// uploadIn holds the fields that all uploads share.
type uploadIn struct {
	Provider string           `json:"provider"`
	Stage    healthdata.Stage `json:"stage" wire:"opt"`
	Source   *sourceIn        `json:"source"`
	TimeZone *string          `json:"time_zone"`
	// StartDate and EndDate bound the time range in which the source has searched for data. It may have found none.
	StartDate *healthlab.Time `json:"start_date"`
	EndDate   *healthlab.Time `json:"end_date"`
}

type sourceIn struct {
	Type      healthdata.SourceType `json:"type" wire:"opt"`
	AppID     *string               `json:"app_id"`
	DeviceID  *uuid.UUID            `json:"device_id"`
	Sport     *string               `json:"sport"`
	WorkoutID *uuid.UUID            `json:"workout_id"`
	Device    *deviceIn             `json:"device"`
}

// deviceIn describes the device that recorded the data.
type deviceIn struct {
	// ID is the source's own id of the device.
	ID           *string `json:"id"`
	Manufacturer *string `json:"manufacturer"`
	Model        *string `json:"model"`
	Version      *string `json:"version"`
}

func (u *uploadIn) check(in *wire.In) {
	if u.StartDate != nil && u.EndDate != nil && u.EndDate.Before(u.StartDate.Time) {
		in.Problem("order", "must not be before start_date", "body", "end_date")
	}
}

func (u *uploadIn) upload() healthdata.Upload {
	out := healthdata.Upload{Provider: u.Provider, Stage: u.Stage}
	if u.TimeZone != nil {
		out.TimeZone = *u.TimeZone
	}
	if s := u.Source; s != nil {
		out.Source = healthdata.Source{Type: s.Type, AppID: s.AppID, DeviceID: s.DeviceID, Sport: s.Sport, WorkoutID: s.WorkoutID}
		if d := s.Device; d != nil {
			out.Device = &healthdata.DeviceInfo{ID: d.ID, Manufacturer: d.Manufacturer, Model: d.Model, Version: d.Version}
		}
	}
	return out
}

type samplesIn struct {
	uploadIn
	Data []healthdata.Sample `json:"data" wire:"items"`
}

func (a api) ingestSamples(in *wire.In, team healthlab.TeamID) (*server.Change, error) {
	user := userID(in)
	path := in.PathText("resource", 256)
	atomic := in.Bool("atomic", false)
	var body samplesIn
	unparsed := in.Items(&body)
	body.check(in)
	if err := in.Err(); err != nil {
		return nil, err
	}
	res, err := resourceAt(path, healthdata.Timeseries())
	if err != nil {
		return nil, err
	}
	return &server.Change{Do: func(ctx context.Context) (any, error) {
		up := body.upload()
		up.Atomic, up.Unparsed = atomic, *unparsed
		return a.Health.IngestSamples(ctx, team, user, res.Slug, up, body.Data)
	}}, nil
}

type summariesIn[T any] struct {
	uploadIn
	Data []T `json:"data" wire:"items"`
}

// ingest answers the upload of summaries of type T.
func ingest[T any, P interface {
	*T
	healthdata.Summary
}](a api, resource string) func(*wire.In, healthlab.TeamID) (*server.Change, error) {
	return func(in *wire.In, team healthlab.TeamID) (*server.Change, error) {
		user := userID(in)
		atomic := in.Bool("atomic", false)
		var body summariesIn[T]
		unparsed := in.Items(&body)
		body.check(in)
		if atomic && len(body.Data) > maxAtomicSummaries {
			in.Problem("too_many_items", fmt.Sprintf("must have at most %d items with atomic=true", maxAtomicSummaries), "body", "data")
		}
		if err := in.Err(); err != nil {
			return nil, err
		}
		ingest := func(ctx context.Context, within func(context.Context, func(context.Context) error) error) (any, error) {
			items := make([]healthdata.Summary, len(body.Data))
			for i := range body.Data {
				items[i] = P(&body.Data[i])
			}
			up := body.upload()
			up.Atomic, up.Unparsed, up.Within = atomic, *unparsed, within
			return a.Health.IngestSummaries(ctx, team, user, resource, up, items)
		}
		fresh := bodyRereader(in, &body)
		change := &server.Change{Do: func(ctx context.Context) (any, error) {
			if err := fresh(); err != nil {
				return nil, err
			}
			return ingest(ctx, nil)
		}}
		if len(body.Data) > healthdata.SummariesOfPart && !atomic {
			change.InParts = ingest
		}
		return change, nil
	}
}

// removalIn holds the fields that all removals share.
type removalIn struct {
	Provider string    `json:"provider"`
	Source   *sourceIn `json:"source"`
}

func (r *removalIn) upload() healthdata.Upload {
	return (&uploadIn{Provider: r.Provider, Source: r.Source}).upload()
}

// sampleRemovalIn is the body that removes samples which the person has deleted.
type sampleRemovalIn struct {
	removalIn
	// Type is the type of the samples, for resources whose samples are identified by their type too.
	Type       *string          `json:"type"`
	Timestamps []healthlab.Time `json:"timestamps"`
	TimeZone   *string          `json:"time_zone"`
}

// removedOut says how many of the named items existed and were removed.
type removedOut struct {
	Removed int `json:"removed"`
}

func (a api) removeSamples(in *wire.In, team healthlab.TeamID) (*server.Change, error) {
	user := userID(in)
	path := in.PathText("resource", 256)
	var body sampleRemovalIn
	in.Body(&body)
	if err := in.Err(); err != nil {
		return nil, err
	}
	res, err := resourceAt(path, healthdata.Timeseries())
	if err != nil {
		return nil, err
	}
	up := body.upload()
	up.TimeZone = orEmpty(body.TimeZone)
	return &server.Change{Do: func(ctx context.Context) (any, error) {
		n, err := a.Health.RemoveSamples(ctx, team, user, res.Slug, up, orEmpty(body.Type), body.Timestamps)
		return removedOut{n}, err
	}}, nil
}

// summaryRemovalIn is the body that removes summaries which the person has deleted.
type summaryRemovalIn struct {
	removalIn
	ExternalIDs []string `json:"external_ids" wire:"max=5000"`
}

func (a api) removeSummaries(in *wire.In, team healthlab.TeamID) (*server.Change, error) {
	user := userID(in)
	path := in.PathText("resource", 256)
	var body summaryRemovalIn
	in.Body(&body)
	if err := in.Err(); err != nil {
		return nil, err
	}
	res, err := resourceAt(path, healthdata.Summaries())
	if err != nil {
		return nil, err
	}
	return &server.Change{Do: func(ctx context.Context) (any, error) {
		n, err := a.Health.RemoveSummaries(ctx, team, user, res.Slug, body.upload(), body.ExternalIDs)
		return removedOut{n}, err
	}}, nil
}
