package healthdata

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/internal/check"
)

// IngestWorkoutStream stores the stream of a stored workout and sends an event with the path of the stream. workout is
// the workout's id. Points with an impossible time are left out, and so are impossible positions and altitudes;
// Counts.Refused names the first 100 points, and Counts.RefusedCount is the number of all. A stream all of whose points
// are left out is refused, and so is one of an Atomic upload of which something is left out.
//
// The errors are those of [Service.IngestSummaries], and healthlab.NotFound if the user has no such workout from this
// provider.
func (s *Service) IngestWorkoutStream(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, workout uuid.UUID, up Upload, stream *WorkoutStream) (Counts, error) {
	in, w, rec, refused, err := s.streamOf(ctx, team, user, workout, up, stream)
	if err == nil && w == nil {
		err = noWorkout(up.Provider)
	}
	if err != nil {
		return Counts{}, fmt.Errorf("ingest workout stream: %w", err)
	}
	if !in.user.inIngestionWindow(w.day()) {
		return Counts{Dropped: 1}, nil
	}
	counts, _, err := in.putStream(ctx, w, rec, stream, nil)
	if err != nil {
		return Counts{}, fmt.Errorf("ingest workout stream: %w", err)
	}
	counts.Refused, counts.RefusedCount = refused.first, refused.count
	return counts, nil
}

// AppendWorkoutStream adds a part to the stream of a workout and sends an event. If the stream has a point at the same
// time, the part's values replace those of the point; values that the part does not have stay. Parts may arrive in any
// order and concurrently. The errors are those of [Service.IngestWorkoutStream].
func (s *Service) AppendWorkoutStream(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, workout uuid.UUID, up Upload, part *WorkoutStream) (Counts, error) {
	in, w, rec, refused, err := s.streamOf(ctx, team, user, workout, up, part)
	if err == nil && w == nil {
		err = noWorkout(up.Provider)
	}
	if err != nil {
		return Counts{}, fmt.Errorf("append workout stream: %w", err)
	}
	if !in.user.inIngestionWindow(w.day()) {
		return Counts{Dropped: 1}, nil
	}
	for {
		whole, replaces, err := s.withPart(ctx, team, workout, part)
		if err != nil {
			return Counts{}, fmt.Errorf("append workout stream: %w", err)
		}
		counts, _, err := in.putStream(ctx, w, rec, whole, replaces)
		if errors.Is(err, healthlab.Precondition) {
			continue // another part was written first
		}
		if err != nil {
			return Counts{}, fmt.Errorf("append workout stream: %w", err)
		}
		counts.Refused, counts.RefusedCount = refused.first, refused.count
		return counts, nil
	}
}

// withPart returns the stored stream of a workout merged with a part, and the stored document that the result replaces;
// an empty document if no stream is stored.
func (s *Service) withPart(ctx context.Context, team healthlab.TeamID, workout uuid.UUID, part *WorkoutStream) (whole *WorkoutStream, replaces []byte, err error) {
	_, rec, err := s.data.Find(ctx, team, streamSlug, workout)
	if errors.Is(err, healthlab.NotFound) {
		return part, []byte{}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	whole = &WorkoutStream{}
	if err := json.Unmarshal(rec.Doc, whole); err != nil {
		return nil, nil, fmt.Errorf("decode workout stream: %w", err)
	}
	for i := range part.Heartrate {
		unmeasured(&part.Heartrate[i]) // it must not replace a measured one
	}
	return whole.mergedWith(part), rec.Doc, nil
}

// mergedWith merges two streams. At a time that both have, a value of part replaces the stored one; what part does not
// have stays.
func (w *WorkoutStream) mergedWith(part *WorkoutStream) *WorkoutStream {
	out := &WorkoutStream{}
	var points []mergedPoint
	for i, k := 0, 0; i < len(w.Time) || k < len(part.Time); {
		switch {
		case k == len(part.Time) || i < len(w.Time) && w.Time[i] < part.Time[k]:
			out.Time, points = append(out.Time, w.Time[i]), append(points, mergedPoint{i, -1})
			i++
		case i == len(w.Time) || part.Time[k] < w.Time[i]:
			out.Time, points = append(out.Time, part.Time[k]), append(points, mergedPoint{-1, k})
			k++
		default:
			out.Time, points = append(out.Time, w.Time[i]), append(points, mergedPoint{i, k})
			i, k = i+1, k+1
		}
	}
	out.Heartrate = mergedColumn(w.Heartrate, part.Heartrate, points)
	columns, stored, added := out.columns(), w.columns(), part.columns()
	for name, column := range columns {
		*column = mergedColumn(*stored[name], *added[name], points)
	}
	return out
}

// mergedPoint is the index of a point in the stored stream and in a part; -1 where there is none.
type mergedPoint struct{ stored, part int }

func mergedColumn[T any](stored, part []*T, points []mergedPoint) []*T {
	if len(stored) == 0 && len(part) == 0 {
		return nil
	}
	out := make([]*T, len(points))
	for n, p := range points {
		out[n] = cmp.Or(valueAt(part, p.part), valueAt(stored, p.stored))
	}
	return out
}

func valueAt[T any](column []*T, i int) *T {
	if i >= 0 && i < len(column) {
		return column[i]
	}
	return nil
}

func noWorkout(provider string) error {
	return fmt.Errorf("%w: the user has no such workout of %s", healthlab.NotFound, provider)
}

// streamOf admits an upload, checks its stream and removes impossible points. w and rec are the stored workout of the
// stream; w is nil if this user and provider have no workout with that id. refused lists what was removed.
func (s *Service) streamOf(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, workout uuid.UUID, up Upload, stream *WorkoutStream) (in *intake, w *Workout, rec Record, refused leftOut, err error) {
	in, err = s.admit(ctx, team, user, up, ResourceBySlug(streamSlug))
	if err != nil {
		return nil, nil, rec, refused, err
	}
	var p healthlab.Problems
	if stream == nil {
		p.Add("missing", "must be set", "stream")
	} else {
		stream.check(&p)
	}
	if err := p.Err(); err != nil {
		return nil, nil, rec, refused, err
	}
	points := len(stream.Time)
	refused = stream.dropImpossible(in.now.Add(futureLimit), &up.Unparsed)
	if !slices.IsSorted(stream.Time) {
		p.Add("order", "must be in ascending order", "time")
	}
	none := points > 0 && len(stream.Time) == 0
	for _, r := range refused.first {
		if problem := r.Problems[0]; up.Atomic || none && problem.Field == "time" {
			p.Add(problem.Type, problem.Msg, problem.Field, r.Index)
		}
	}
	if err := p.Err(); err != nil {
		return nil, nil, rec, refused, err
	}
	owner, rec, err := s.data.Find(ctx, team, "workouts", workout)
	if errors.Is(err, healthlab.NotFound) || err == nil && (owner != user || rec.Provider != up.Provider) {
		return in, nil, rec, refused, nil
	}
	if err != nil {
		return nil, nil, rec, refused, err
	}
	of, err := s.providers.decode(&rec)
	if err != nil {
		return nil, nil, rec, refused, err
	}
	return in, of.(*Workout), rec, refused, nil
}

// putStream writes the stream of a workout and its heart rate zones. It returns the outcome of the write and the number
// of events. workout is the stored record of w. replaces is the document that the stored stream must have, as
// [Record].Replaces.
func (in *intake) putStream(ctx context.Context, w *Workout, workout Record, stream *WorkoutStream, replaces []byte) (counts Counts, sent int, err error) {
	stream.dropUnmeasured()
	stream.complete()
	doc, err := json.Marshal(stream)
	if err != nil {
		return Counts{}, 0, fmt.Errorf("encode workout stream: %w", err)
	}
	record := Record{
		Resource: streamSlug, ID: w.ID, Provider: w.Source.Provider, SourceType: w.Source.Type,
		Index: w.index(), Doc: doc, CreatedAt: in.now.Time, UpdatedAt: in.now.Time, Replaces: replaces,
	}
	if w.TimezoneOffset != nil {
		record.Offset = *w.TimezoneOffset
	}
	notice := appendJSON(nil, StreamNotice{
		UserID: in.user.ID, Source: w.Source, Message: "the stream can be read at " + StreamPath(w.ID),
		ProviderID: w.ProviderID, Sport: w.Sport, WorkoutID: w.ID,
	})
	err = in.data.PutRecords(ctx, in.team, in.user.ID, []Record{record}, func(results []PutResult) ([]healthlab.Event, error) {
		counts, sent = Counts{}, 0
		counts.count(results[0].Outcome)
		if results[0].Outcome == PutSame {
			return nil, nil
		}
		// A stream of a backfill has an event too, because receivers learn the path of the stream from it.
		sent = 1
		return []healthlab.Event{in.event(results[0].Outcome, streamSlug+"/"+w.ID.String(), notice)}, nil
	})
	if err != nil {
		return Counts{}, 0, err
	}
	return counts, sent, in.putZones(ctx, workout, stream)
}

// ReceiveWorkoutStream stores a stream that a provider sent, as [Service.IngestWorkoutStream] does. A refused
// stream is reported in the result. A stream without a stored workout is dropped, because the workout may be
// outside of the ingestion window. The errors are those of [Service.ReceiveSamples].
func (s *Service) ReceiveWorkoutStream(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, workout uuid.UUID, up Upload, stream *WorkoutStream) (Received, error) {
	var got Received
	up.Device = up.Device.normalized()
	in, w, rec, refused, err := s.streamOf(ctx, team, user, workout, up, stream)
	if invalid := (*healthlab.InvalidError)(nil); errors.As(err, &invalid) {
		got.refuseAll(1, invalid.Problems)
		return got, nil
	}
	if err == nil && w != nil && in.user.inIngestionWindow(w.day()) {
		got.addItem(w.TimeStart.Time, w.day())
		got.Counts, got.Sent, err = in.putStream(ctx, w, rec, stream, nil)
		got.Counts.Refused, got.Counts.RefusedCount = refused.first, refused.count
	} else {
		got.Dropped = 1
	}
	if err != nil {
		return Received{}, fmt.Errorf("receive workout stream: %w", err)
	}
	return got, nil
}

// StreamPath returns the URL path of a workout's stream.
func StreamPath(workout uuid.UUID) string {
	return "/v2/timeseries/workouts/" + workout.String() + "/stream"
}

// columns returns the arrays other than Time and Heartrate, by JSON name.
func (w *WorkoutStream) columns() map[string]*[]*float64 {
	return map[string]*[]*float64{
		"cadence": &w.Cadence, "altitude": &w.Altitude, "velocity_smooth": &w.VelocitySmooth,
		"lat": &w.Lat, "lng": &w.Lng, "distance": &w.Distance, "power": &w.Power,
		"resistance": &w.Resistance, "temperature": &w.Temperature,
	}
}

// check reports invalid arrays of a stream.
func (w *WorkoutStream) check(p *healthlab.Problems) {
	const lengths = "must be empty, or as long as time"
	if n := len(w.Heartrate); n != 0 && n != len(w.Time) {
		p.Add("length", lengths, "heartrate")
	}
	cols := w.columns()
	for _, name := range slices.Sorted(maps.Keys(cols)) {
		col := *cols[name]
		if len(col) != 0 && len(col) != len(w.Time) {
			p.Add("length", lengths, name)
		}
		for i, v := range col {
			if v != nil && !check.Finite(*v) {
				check.NotFinite(p, "", name, i)
			}
		}
	}
}

// complete replaces nil arrays by empty ones.
func (w *WorkoutStream) complete() {
	if w.Time == nil {
		w.Time = []int64{}
	}
	if w.Heartrate == nil {
		w.Heartrate = []*int64{}
	}
	for _, col := range w.columns() {
		if *col == nil {
			*col = []*float64{}
		}
	}
}

// WorkoutStream returns the stream of a workout. It returns healthlab.NotFound if the team has no such workout,
// or the workout has no stream yet.
func (s *Service) WorkoutStream(ctx context.Context, team healthlab.TeamID, workout uuid.UUID) (*WorkoutStream, error) {
	owner, rec, err := s.data.Find(ctx, team, streamSlug, workout)
	if err == nil {
		_, err = s.users.live(ctx, team, owner)
	}
	if err != nil {
		return nil, fmt.Errorf("read workout stream: %w", err)
	}
	out := new(WorkoutStream)
	if err := json.Unmarshal(rec.Doc, out); err != nil {
		return nil, fmt.Errorf("decode workout stream: %w", err)
	}
	out.complete()
	return out, nil
}

// WorkoutStreamUser returns the user to whom the stream of [Service.WorkoutStream] belongs. It returns NotFound
// if the team has no such workout.
func (s *Service) WorkoutStreamUser(ctx context.Context, team healthlab.TeamID, workout uuid.UUID) (healthlab.UserID, error) {
	user, _, err := s.data.Find(ctx, team, streamSlug, workout)
	if err != nil {
		return healthlab.UserID{}, fmt.Errorf("read user of workout stream: %w", err)
	}
	return user, nil
}
