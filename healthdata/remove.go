package healthdata

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/internal/check"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// RemoveSamples removes samples that a person has deleted at their source, all of them or none, and returns their
// number. up describes the source of the samples, as in their upload. If up names an app or a device, samples that
// another app or device has replaced since then stay. kind is the type of the samples for a resource with [KeyType],
// otherwise empty. at are the timestamps of the samples. Missing samples are no error, so a call may be repeated.
// Events report the removed samples.
//
// The errors are those of [Service.IngestSamples].
func (s *Service) RemoveSamples(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, resource string, up Upload, kind string, at []healthlab.Time) (int, error) {
	r, err := resourceOf(resource, ClassTimeseries)
	if err != nil {
		return 0, fmt.Errorf("remove samples: %w", err)
	}
	in, err := s.admit(ctx, team, user, up, r)
	if err != nil {
		return 0, fmt.Errorf("remove samples: %w", err)
	}
	var p healthlab.Problems
	key := SeriesKey{Resource: r.Slug, Provider: in.Provider, SourceType: in.Source.Type}
	switch {
	case r.Key == KeyType && kind == "":
		p.Add("missing", "must be set: samples of "+r.Slug+" are identified by timestamp and type", "type")
	case r.Key != KeyType && kind != "":
		p.Add("not_allowed", "must be left out: samples of "+r.Slug+" are identified without a type", "type")
	case r.Key == KeyType:
		check.Text(&p, kind, check.MaxName, "type")
		key.Part = kind
	case r.Key == KeyWorkout && in.Source.WorkoutID != nil:
		key.Part = in.Source.WorkoutID.String()
	}
	times := make([]int64, 0, len(at))
	for i, t := range at {
		if check.Year(&p, t, "timestamps", i) {
			times = append(times, in.clock.instant(healthlab.At(t.Time)).UnixMicro())
		}
	}
	if err := p.Err(); err != nil {
		return 0, fmt.Errorf("remove samples: %w", err)
	}
	slices.Sort(times)
	keys, err := in.seriesOfOrigins(ctx, key)
	if err != nil {
		return 0, fmt.Errorf("remove samples: %w", err)
	}
	of, out := in.attrs(), Removal{Events: func(gone Removed) ([]healthlab.Event, error) { return in.samplesDeleted(&gone) }}
	times = slices.Compact(times)
	for _, k := range keys {
		out.Samples = append(out.Samples, SampleRemoval{Key: k, Times: times, App: of.App, Device: of.Device, Span: r.Span()})
	}
	n, err := s.data.Remove(ctx, team, user, out)
	if err != nil {
		return 0, fmt.Errorf("remove samples: %w", err)
	}
	return n, nil
}

// seriesOfOrigins returns the keys of the series that may have samples of a published key: one for each app and device
// of the source. It reads only keys, because the removal in the same transaction locks chunks when it first reads them.
func (in *intake) seriesOfOrigins(ctx context.Context, key SeriesKey) (keys []SeriesKey, err error) {
	apart := in.resource.Movement && in.provider.Class == classStore
	err = in.data.View(ctx, in.team, in.user.ID, func(v View) error {
		keys = nil
		all, err := v.Series(ctx, SeriesQuery{Resources: []string{key.Resource}, Provider: key.Provider, KeysOnly: true})
		for i := range all {
			if k := all[i].Key; k.SourceType == key.SourceType && (apart || k.Part == key.Part) {
				keys = append(keys, k)
			}
		}
		return err
	})
	return keys, err
}

// RemoveSummaries removes summaries that a person has deleted at their source, by the source's own ids, as
// [Service.RemoveSamples] does. It also removes the streams of workouts and the stages of nights. If up names a device,
// summaries of other devices stay.
//
// The errors are those of [Service.IngestSummaries], and healthlab.Invalid for a resource whose summaries have no ids
// of the source, such as activity, which has one summary for each day.
func (s *Service) RemoveSummaries(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, resource string, up Upload, external []string) (int, error) {
	r, err := resourceOf(resource, ClassSummary)
	if err != nil {
		return 0, fmt.Errorf("remove summaries: %w", err)
	}
	in, err := s.admit(ctx, team, user, up, r)
	if err != nil {
		return 0, fmt.Errorf("remove summaries: %w", err)
	}
	var p healthlab.Problems
	if !slices.Contains([]string{"sleep", "workouts", "body", "meal", "electrocardiogram"}, r.Slug) {
		p.Add("not_allowed", "must be left out: only summaries of sleep, workouts, body, meal and electrocardiogram have ids of the source", "external_ids")
	}
	out := Removal{Resource: r.Slug, IDs: make([]uuid.UUID, 0, len(external))}
	out.Events = func(gone Removed) ([]healthlab.Event, error) { return in.summariesDeleted(out.Parts, &gone) }
	sources, err := in.removedSources(ctx)
	if err != nil {
		return 0, fmt.Errorf("remove summaries: %w", err)
	}
	for i, id := range external {
		check.Text(&p, id, check.MaxName, "external_ids", i)
		if id == "" {
			p.Add("empty", "must not be empty", "external_ids", i)
		}
		for k := range sources {
			sum := in.summaryIDOf(&sources[k], r.Slug, id)
			out.IDs = append(out.IDs, sum)
			switch r.Slug {
			case "workouts":
				out.Parts, out.PartIDs = streamSlug, append(out.PartIDs, sum)
			case "sleep": // stages have the id of the night, or refer to it
				out.Parts = "sleep_cycle"
				out.PartIDs = append(out.PartIDs, in.summaryIDOf(&sources[k], out.Parts, id), in.summaryIDOf(&sources[k], out.Parts, sum.String()))
			}
		}
	}
	if err := p.Err(); err != nil {
		return 0, fmt.Errorf("remove summaries: %w", err)
	}
	n, err := s.data.Remove(ctx, team, user, out)
	if err != nil {
		return 0, fmt.Errorf("remove summaries: %w", err)
	}
	return n, nil
}

// removedSources returns the sources whose summaries a removal covers: that of the removal, and if it names no device,
// those of all devices that are known for the provider.
func (in *intake) removedSources(ctx context.Context) ([]Source, error) {
	out := []Source{in.Source}
	if in.Source.DeviceID != nil || !in.provider.collectsDevices() {
		return out, nil
	}
	known, err := readDevices(ctx, in.data, in.team, in.user.ID, uuid.Nil)
	for i := range known {
		if known[i].Provider == in.Provider {
			of := in.Source
			of.DeviceID = &known[i].ID
			out = append(out, of)
		}
	}
	return out, err
}

// summariesDeleted returns the deleted events of removed summaries and of their parts, such as the stages of nights,
// and the events of remaining sessions that are no longer covered or became covered. parts is the resource slug of the
// parts.
func (in *intake) summariesDeleted(parts string, gone *Removed) ([]healthlab.Event, error) {
	if !in.emitsEvents() {
		return nil, nil
	}
	var events []healthlab.Event
	add := func(slug, prefix string, ids []uuid.UUID) error {
		for _, id := range ids {
			data, err := json.Marshal(SummaryDeleted{ID: id, UserID: in.user.ID, Source: in.providers.source(in.Source)})
			if err != nil {
				return fmt.Errorf("encode event: %w", err)
			}
			events = append(events, in.deletedEvent(slug, prefix+id.String(), data))
		}
		return nil
	}
	prefix := ""
	if parts == streamSlug {
		prefix = streamSlug + "/"
	}
	seen := slices.DeleteFunc(slices.Clone(gone.IDs), func(id uuid.UUID) bool { return slices.Contains(gone.Hidden, id) })
	if err := add(in.resource.Slug, "", seen); err != nil {
		return nil, err
	}
	for _, r := range gone.Marked {
		item, err := r.Decode()
		if err != nil {
			return nil, err
		}
		covered := r.CoveredBy != uuid.Nil
		more, err := in.sessionEvent(item, PutResult{CreatedAt: r.CreatedAt, Covered: covered, WasCovered: !covered, Record: r})
		if err != nil {
			return nil, err
		}
		events = append(events, more...)
	}
	if err := add(parts, prefix, gone.PartIDs); err != nil {
		return nil, err
	}
	return events, nil
}

// samplesDeleted returns the deleted events of the samples that readers no longer see. For a removed sample in whose
// place readers see the sample of another app or device, it returns an event with that sample. Each event is small
// enough for one message.
func (in *intake) samplesDeleted(gone *Removed) ([]healthlab.Event, error) {
	if !in.emitsEvents() {
		return nil, nil
	}
	all := slices.Clone(gone.Gone)
	slices.SortFunc(all, func(a, b series.Gone) int { return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Type, b.Type)) })
	all = slices.Compact(all) // two devices may have a sample at the same time
	payload := SamplesDeleted{UserID: in.user.ID, SourceID: SourceNumber(in.Provider), Source: in.providers.source(in.Source)}
	perEvent := min(in.opts.BatchSamples, max(1, in.opts.BatchBytes/deletedSampleBytes))
	var events []healthlab.Event
	for part := range slices.Chunk(all, perEvent) {
		payload.Data = make([]DeletedSample, len(part))
		for i, g := range part {
			payload.Data[i] = DeletedSample{Timestamp: healthlab.At(time.UnixMicro(g.Time)), Type: optional(g.Type)}
		}
		data, err := json.Marshal(payload)
		if err != nil {
			return nil, fmt.Errorf("encode event: %w", err)
		}
		events = append(events, in.deletedEvent(in.resource.Slug, in.eventKey(), data))
	}
	for i := 0; i < len(gone.Shown); {
		j, of := i, gone.Shown[i].Key.Origin
		var b series.Builder
		for ; j < len(gone.Shown) && gone.Shown[j].Key == gone.Shown[i].Key; j++ {
			b.Add(gone.Shown[j].Sample)
		}
		theirs := *in
		theirs.Source.AppID, theirs.Source.DeviceID = optional(of.App), optionalID(of.Device)
		block := b.Block()
		events = append(events, theirs.sampleEvents(&changedSamples{blocks: []*series.Block{block}, fresh: [][]bool{make([]bool, block.Len())}})...)
		i = j
	}
	return events, nil
}

// deletedSampleBytes is the estimated size of a removed sample in an event, with a type of usual length.
const deletedSampleBytes = 128

func (in *intake) deletedEvent(slug, key string, data []byte) healthlab.Event {
	return healthlab.Event{
		ID: in.opts.NewID(), Type: dailyEvent(slug, verbDeleted), Team: in.team, User: in.user.ID,
		Key: key, At: in.now.Time, Data: data,
	}
}
