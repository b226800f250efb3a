package healthdata_test

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// run is a workout of a minute that is stored, and its stream.
func (s *station) run() (uuid.UUID, *healthdata.WorkoutStream) {
	s.Helper()
	w := &healthdata.Workout{TimeStart: ago(time.Hour), TimeEnd: ago(59 * time.Minute), Sport: healthdata.SportOf("running")}
	w.ExternalID = "w-1"
	s.summaries("workouts", band, w)
	s.events()
	start := ago(time.Hour).Unix()
	return w.ID, &healthdata.WorkoutStream{
		Time: []int64{start, start + 5, start + 10}, Heartrate: []*int64{ptr(int64(90)), nil, ptr(int64(110))},
		Lat: []*float64{ptr(12.5), ptr(12.6), nil}, Lng: []*float64{ptr(-38.0), ptr(-38.1), nil},
	}
}

func TestWorkoutStream_isStoredReadAndReplaced(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	id, in := s.run()
	_, err := s.WorkoutStream(t.Context(), s.team, id)
	require.ErrorIs(t, err, healthlab.NotFound, "not there yet")

	put := func(stream *healthdata.WorkoutStream) healthdata.Counts {
		c, err := s.IngestWorkoutStream(t.Context(), s.team, s.user, id, band, stream)
		require.NoError(t, err)
		return c
	}
	require.Equal(t, healthdata.Counts{New: 1}, put(in))
	events := s.events()
	require.Len(t, events, 2)
	require.Equal(t, "daily.data.workout_stream.created", events[0].EventType)
	require.Equal(t, "daily.data.workouts.created", events[1].EventType, "it has heart rate zones")
	sport, err := json.Marshal(healthdata.SportOf("running"))
	require.NoError(t, err)
	require.JSONEq(t, `{"user_id":"`+s.user.String()+`","workout_id":"`+id.String()+`","provider_id":"w-1","sport":`+string(sport)+`,
		"message":"the stream can be read at /v2/timeseries/workouts/`+id.String()+`/stream",
		"source":{"name":"Acme Band","slug":"acme_band","logo":"https://cdn.example/band.png","provider":"acme_band","type":"watch",
			"app_id":null,"device_id":null,"sport":null,"workout_id":null}}`, string(events[0].Data), "the event has none of the arrays")

	got, err := s.WorkoutStream(t.Context(), s.team, id)
	require.NoError(t, err)
	require.Equal(t, in, got)
	require.Equal(t, []*float64{}, got.Power, "an empty array where nothing was measured")

	require.Equal(t, healthdata.Counts{Same: 1}, put(in))
	require.Empty(t, s.events(), "the same again tells nobody")
	in.Heartrate[1] = ptr(int64(100))
	require.Equal(t, healthdata.Counts{Changed: 1}, put(in))
	require.Len(t, s.events(), 2)

	_, err = s.WorkoutStream(t.Context(), healthlab.TeamID{UUID: uuid.New()}, id)
	require.ErrorIs(t, err, healthlab.NotFound, "another team's")
	require.NoError(t, s.Deletions().Delete(t.Context(), s.team, s.user))
	_, err = s.WorkoutStream(t.Context(), s.team, id)
	require.ErrorIs(t, err, healthlab.NotFound)
}

func TestWorkoutStream_refusesUnequalColumnsAndForeignWorkouts(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	id, good := s.run()
	bad := func(change func(*healthdata.WorkoutStream)) *healthdata.WorkoutStream {
		w := *good
		change(&w)
		return &w
	}
	for name, c := range map[string]struct {
		in   *healthdata.WorkoutStream
		want []string
	}{
		"shorter": {bad(func(w *healthdata.WorkoutStream) { w.Heartrate = w.Heartrate[:2] }), []string{"heartrate: length"}},
		"longer": {bad(func(w *healthdata.WorkoutStream) { w.Power = make([]*float64, 4); w.Lat = w.Lat[:1] }), []string{
			"lat: length", "power: length",
		}},
		"unsorted": {bad(func(w *healthdata.WorkoutStream) { w.Time = []int64{w.Time[0], w.Time[2], w.Time[1]} }), []string{"time: order"}},
		"not a day": {bad(func(w *healthdata.WorkoutStream) { w.Time = []int64{math.MinInt64, 0, math.MaxInt64} }), []string{
			"time 0: too_early", "time 1: too_early", "time 2: future",
		}},
		"NaN":     {bad(func(w *healthdata.WorkoutStream) { w.Lng = []*float64{nil, ptr(math.NaN()), nil} }), []string{"lng 1: not_finite"}},
		"nothing": {nil, []string{"stream: missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.IngestWorkoutStream(t.Context(), s.team, s.user, id, band, c.in)
			require.Equal(t, c.want, problems(t, err))
			_, err = s.WorkoutStream(t.Context(), s.team, id)
			require.ErrorIs(t, err, healthlab.NotFound, "nothing is stored")
			require.Empty(t, s.events())
		})
	}
	put := func(user healthlab.UserID, id uuid.UUID, up healthdata.Upload) error {
		_, err := s.IngestWorkoutStream(t.Context(), s.team, user, id, up, good)
		return err
	}
	require.ErrorIs(t, put(s.user, uuid.New(), band), healthlab.NotFound, "no such workout")
	require.ErrorIs(t, put(s.user, id, healthdata.Upload{Provider: "manual"}), healthlab.NotFound, "a workout of another provider")
	mary, err := s.CreateUser(t.Context(), s.team, healthdata.NewUser{ClientUserID: "member-2"})
	require.NoError(t, err)
	_, err = s.Connections().ConnectLinked(t.Context(), s.team, mary.ID, healthdata.NewConnection{Provider: "acme_band"})
	require.NoError(t, err)
	require.ErrorIs(t, put(mary.ID, id, band), healthlab.NotFound, "somebody else's workout")
	require.NoError(t, put(s.user, id, band))
}

func TestWorkoutStream_outsideTheIngestionWindowIsDropped(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	id, in := s.run()
	_, err := s.PatchUser(t.Context(), s.team, s.user, healthdata.UserPatch{IngestionStart: healthdata.SetTo(*day("2026-03-05"))})
	require.NoError(t, err)
	c, err := s.IngestWorkoutStream(t.Context(), s.team, s.user, id, band, in)
	require.NoError(t, err)
	require.Equal(t, healthdata.Counts{Dropped: 1}, c)
	_, err = s.WorkoutStream(t.Context(), s.team, id)
	require.ErrorIs(t, err, healthlab.NotFound)
	require.Empty(t, s.events())
}

func TestSleepStream_isBuiltFromSamplesOfTheNight(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	start, stop := ago(9*time.Hour), ago(time.Hour)
	night := &healthdata.Sleep{BedtimeStart: start, BedtimeStop: stop, TimezoneOffset: ptr(-3600)}
	s.summaries("sleep", band, night)
	read := func() *healthdata.SleepStream {
		out, err := s.SleepStream(t.Context(), s.team, night.ID)
		require.NoError(t, err)
		return out
	}
	require.Equal(t, &healthdata.SleepStream{
		HRV: []healthdata.Sample{}, Heartrate: []healthdata.Sample{}, RespiratoryRate: []healthdata.Sample{}, Hypnogram: []healthdata.Sample{},
	}, read(), "empty arrays, where nothing is known")

	cycle := &healthdata.SleepCycle{
		SessionStart: start, SessionEnd: stop, TimeZone: ptr("Atlantic/Azores"),
		StageStartOffsetSecond: []int64{0, 600}, StageEndOffsetSecond: []int64{600, 1200}, StageType: []healthdata.SleepStage{4, 1},
	}
	s.summaries("sleep_cycle", band, cycle)
	// A nap inside of it has stages of its own.
	s.summaries("sleep_cycle", band, &healthdata.SleepCycle{
		SessionStart: ago(3 * time.Hour), SessionEnd: ago(2 * time.Hour),
		StageStartOffsetSecond: []int64{0}, StageEndOffsetSecond: []int64{60}, StageType: []healthdata.SleepStage{3},
	})
	s.samples("heartrate", band,
		reading("bpm", healthlab.At(start.Add(-time.Second)), 1), reading("bpm", start, 50), reading("bpm", stop, 51), reading("bpm", healthlab.At(stop.Add(time.Second)), 2))
	s.samples("hrv", band, reading("rmssd", ago(5*time.Hour), 40))
	s.samples("respiratory_rate", band, reading("bpm", ago(5*time.Hour), 14))
	phone := band
	phone.Source.Type = healthdata.SourcePhone
	s.samples("hrv", phone, reading("rmssd", ago(5*time.Hour), 99))
	s.samples("hrv", healthdata.Upload{Provider: "manual", Source: band.Source}, reading("rmssd", ago(5*time.Hour), 98))

	got := read()
	values := func(samples []healthdata.Sample) (out []float64) {
		for _, v := range samples {
			out = append(out, v.Value.Number)
		}
		return out
	}
	require.Equal(t, []float64{50, 51}, values(got.Heartrate), "the session's own, both ends included")
	require.Equal(t, []float64{40}, values(got.HRV), "of the source that saw the sleep")
	require.Equal(t, []float64{14}, values(got.RespiratoryRate))
	require.Equal(t, []float64{4, 1}, values(got.Hypnogram))
	first := got.Hypnogram[0]
	require.Equal(t, start, *first.Start)
	require.Equal(t, healthlab.At(start.Add(10*time.Minute)), *first.End)
	require.Equal(t, "stage", first.Unit)
	require.Equal(t, -3600, *first.TimezoneOffset)

	_, err := s.SleepStream(t.Context(), healthlab.TeamID{UUID: uuid.New()}, night.ID)
	require.ErrorIs(t, err, healthlab.NotFound)
	_, err = s.SleepStream(t.Context(), s.team, uuid.New())
	require.ErrorIs(t, err, healthlab.NotFound)
	require.NoError(t, s.Deletions().Delete(t.Context(), s.team, s.user))
	_, err = s.SleepStream(t.Context(), s.team, night.ID)
	require.ErrorIs(t, err, healthlab.NotFound)
}

// A workout without heart rate zones gets those of its stream, by the birth date of the
// source's profile, or else the user's.
func TestWorkoutStream_givesHeartRateZonesIfTheSourceHasNone(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	id, stream := s.run()
	put := func() {
		_, err := s.IngestWorkoutStream(t.Context(), s.team, s.user, id, band, stream)
		require.NoError(t, err)
	}
	zones := func() []int64 {
		w := s.list("workouts")[0].(*healthdata.Workout)
		doc, err := json.Marshal(w)
		require.NoError(t, err)
		require.NotContains(t, string(doc), "zones_of_stream")
		return w.HRZones
	}
	require.Equal(t, []int64{}, zones())
	put()
	// 90 of 190 for 5 s: below half. The second value is not known, the last one has no end.
	require.Equal(t, []int64{5, 0, 0, 0, 0, 0}, zones())
	w := &healthdata.Workout{TimeStart: ago(time.Hour), TimeEnd: ago(59 * time.Minute), Sport: healthdata.SportOf("running")}
	w.ExternalID = "w-1"
	require.Equal(t, healthdata.Counts{Same: 1}, s.summaries("workouts", band, w))
	require.Equal(t, []int64{5, 0, 0, 0, 0, 0}, zones(), "the same workout again has no zones of its own")

	_, err := s.PatchUser(t.Context(), s.team, s.user, healthdata.UserPatch{FallbackBirthDate: healthdata.SetTo(*day("1926-03-01"))})
	require.NoError(t, err)
	stream.Heartrate[1] = ptr(int64(90))
	put()
	require.Equal(t, []int64{0, 0, 0, 10, 0, 0}, zones(), "90 of 120 at the age of a hundred")
	birth := day("1996-03-01")
	s.summaries("profile", band, &healthdata.Profile{BirthDate: birth})
	stream.Heartrate[1] = nil
	put()
	require.Equal(t, []int64{5, 0, 0, 0, 0, 0}, zones(), "the source's own birth date goes first")

	own := &healthdata.Workout{TimeStart: ago(time.Hour), TimeEnd: ago(59 * time.Minute), Sport: healthdata.SportOf("running"), HRZones: []int64{1, 2, 3, 4, 5, 6}}
	own.ExternalID = "w-1"
	s.summaries("workouts", band, own)
	stream.Heartrate[0] = ptr(int64(120))
	put()
	require.Equal(t, []int64{1, 2, 3, 4, 5, 6}, zones(), "the source's own zones stay")
}

func TestWorkoutStream_historicalStreamSendsAnEvent(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	id, stream := s.run()
	stream.Heartrate = nil
	up := band
	up.Stage = healthdata.StageHistorical
	_, err := s.IngestWorkoutStream(t.Context(), s.team, s.user, id, up, stream)
	require.NoError(t, err)
	events := s.events()
	require.Len(t, events, 1)
	require.Equal(t, "daily.data.workout_stream.created", events[0].EventType)
}

// A part sets the values that it has. A moment that is stored keeps the values of columns that the part leaves out, or
// in which it has null.
func TestAppendWorkoutStream_keepsStoredValuesThatThePartDoesNotHave(t *testing.T) {
	start := ago(time.Hour).Unix()
	fields := reflect.VisibleFields(reflect.TypeFor[healthdata.WorkoutStream]())
	set := func(w *healthdata.WorkoutStream, field int, values ...any) {
		column := reflect.ValueOf(w).Elem().FieldByIndex(fields[field].Index)
		for _, v := range values {
			cell := reflect.Zero(column.Type().Elem())
			if v != nil {
				cell = reflect.New(column.Type().Elem().Elem())
				cell.Elem().Set(reflect.ValueOf(v).Convert(cell.Type().Elem()))
			}
			column.Set(reflect.Append(column, cell))
		}
	}
	columns := 0
	for i, f := range fields {
		if f.Name == "Time" || f.Name == "Lat" || f.Name == "Lng" { // a position has two columns
			continue
		}
		columns++
		t.Run(f.Name, func(t *testing.T) {
			o := slices.IndexFunc(fields, func(other reflect.StructField) bool {
				return other.Name != f.Name && (other.Name == "Altitude" || other.Name == "Power")
			})
			s := newStation(t, healthdata.Options{})
			id, _ := s.run()
			send := func(times []int64, fill func(w *healthdata.WorkoutStream)) *healthdata.WorkoutStream {
				part := &healthdata.WorkoutStream{Time: times}
				fill(part)
				_, err := s.AppendWorkoutStream(t.Context(), s.team, s.user, id, band, part)
				require.NoError(t, err)
				got, err := s.WorkoutStream(t.Context(), s.team, id)
				require.NoError(t, err)
				return got
			}
			send([]int64{start, start + 5}, func(w *healthdata.WorkoutStream) { set(w, i, 91, 92) })
			want := &healthdata.WorkoutStream{}
			set(want, i, 91, 92)
			column := func(w *healthdata.WorkoutStream, field int) any {
				return reflect.ValueOf(w).Elem().FieldByIndex(fields[field].Index).Interface()
			}

			got := send([]int64{start, start + 5}, func(w *healthdata.WorkoutStream) { set(w, o, 11, 12) })
			require.Equal(t, column(want, i), column(got, i), "a column that the part leaves out")
			got = send([]int64{start, start + 5}, func(w *healthdata.WorkoutStream) { set(w, i, nil, 93) })
			want = &healthdata.WorkoutStream{Time: []int64{start, start + 5}}
			set(want, i, 91, 93)
			set(want, o, 11, 12)
			require.Equal(t, column(want, i), column(got, i), "null of the part, and a value")
			require.Equal(t, column(want, o), column(got, o))
			got = send([]int64{start + 2}, func(w *healthdata.WorkoutStream) { set(w, i, 95) })
			want = &healthdata.WorkoutStream{}
			set(want, i, 91, 95, 93)
			set(want, o, 11, nil, 12)
			require.Equal(t, []int64{start, start + 2, start + 5}, got.Time)
			require.Equal(t, column(want, i), column(got, i))
			require.Equal(t, column(want, o), column(got, o))
		})
	}
	require.Equal(t, 8, columns)

	s := newStation(t, healthdata.Options{})
	id, whole := s.run()
	for _, part := range []*healthdata.WorkoutStream{whole, {Time: whole.Time[:1], Heartrate: []*int64{ptr(int64(0))}}} {
		_, err := s.AppendWorkoutStream(t.Context(), s.team, s.user, id, band, part)
		require.NoError(t, err)
	}
	got, err := s.WorkoutStream(t.Context(), s.team, id)
	require.NoError(t, err)
	require.Equal(t, int64(90), *got.Heartrate[0], "a heart rate of 0 was not measured")
	require.Equal(t, whole.Lat, got.Lat)
	require.Equal(t, whole.Lng, got.Lng)
}
