package sandbox_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"hash"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/prove"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// people are some invented users.
func people(n int) []healthlab.UserID {
	out := make([]healthlab.UserID, n)
	for i := range out {
		out[i] = healthlab.UserID{UUID: uuid.NewSHA1(uuid.NameSpaceURL, fmt.Appendf(nil, "https://people.example/no-%d", i))}
	}
	return out
}

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	require.NoError(t, err)
	return loc
}

var spring = healthlab.Date{Year: 2026, Month: 3, Day: 1}

func ExampleProvider() {
	user := healthlab.UserID{UUID: uuid.MustParse("6f1c0b52-0000-4000-8000-000000000001")}
	day := healthlab.Date{Year: 2026, Month: 3, Day: 1}
	paris, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		fmt.Println(err)
		return
	}
	var provider sandbox.Provider

	source, steps := provider.Samples(user, "steps", day, paris)
	sum := 0.0
	for _, s := range steps {
		sum += s.Value.Number
	}
	_, activities := provider.Summaries(user, "activity", day, paris)
	activity := activities[0].(*healthdata.Activity)
	fmt.Println("by the", source.Type, "and in sum:", sum == float64(*activity.Steps))

	_, nights := provider.Summaries(user, "sleep", day, paris)
	night := nights[0].(*healthdata.Sleep)
	fmt.Println("awake on", healthlab.DateOf(night.BedtimeStop.In(paris)), "after more than four hours:", night.BedtimeStop.Sub(night.BedtimeStart.Time) >= 4*time.Hour)
	// Output:
	// by the watch and in sum: true
	// awake on 2026-03-01 after more than four hours: true
}

// everything writes down all that a day of a user has.
func everything(t *testing.T, h hash.Hash, user healthlab.UserID, date healthlab.Date, loc *time.Location) {
	t.Helper()
	p := sandbox.Provider{}.Day(user, date, loc)
	e := json.NewEncoder(h)
	for _, r := range healthdata.Timeseries() {
		src, samples := p.Samples(r.Slug)
		require.NoError(t, e.Encode([]any{r.Slug, src, samples}))
	}
	for _, r := range healthdata.Summaries() {
		src, list := p.Summaries(r.Slug)
		require.NoError(t, e.Encode([]any{r.Slug, src, list}))
		for _, s := range list {
			require.NoError(t, e.Encode(healthdata.HeadOf(s)))
		}
	}
	require.NoError(t, e.Encode(p.WorkoutStream()))
}

// The data of a user and a day is the same in every call, process and version, so that hosts
// can test against it.
func TestGeneratedDay_isTheSameInEveryProcessAndVersion(t *testing.T) {
	digest := func() string {
		h := sha256.New()
		for i, user := range people(3) {
			for d := range 5 {
				everything(t, h, user, spring.AddDays(7*d), []*time.Location{time.UTC, zone(t, "America/New_York"), zone(t, "Asia/Kolkata")}[i])
			}
		}
		return hex.EncodeToString(h.Sum(nil)) + "\n"
	}
	got := digest()
	require.Equal(t, got, digest())
	path := filepath.Join("testdata", "days.sha256")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "the invented days are others now: if that is meant, run with -update and say so in the changelog")
}

func TestGeneratedDay_differsByUserAndDate(t *testing.T) {
	seen := map[string]bool{}
	for _, user := range people(20) {
		for d := range 3 {
			h := sha256.New()
			everything(t, h, user, spring.AddDays(d), time.UTC)
			seen[string(h.Sum(nil))] = true
		}
	}
	require.Len(t, seen, 60)
}

// bounds are values that a living person has.
var bounds = map[string][2]float64{
	"heartrate": {36, 220}, "glucose": {2.8, 22}, "hrv": {5, 200}, "hrv_sdnn": {5, 200}, "respiratory_rate": {5, 40}, "blood_oxygen": {85, 100},
	"steps": {0, 3000}, "distance": {0, 6000}, "calories_active": {0, 400}, "calories_basal": {20, 200}, "weight": {35, 200},
	"fat": {3, 60}, "body_mass_index": {15, 50}, "lean_body_mass": {25, 140}, "body_temperature": {35, 38.5},
	"body_temperature_delta": {-1.5, 1.5}, "basal_body_temperature": {35, 38}, "stress_level": {0, 100}, "vo2_max": {15, 80},
	"cholesterol": {0.3, 12}, "caffeine": {0, 0.5}, "water": {0, 1500}, "carbohydrates": {0, 200}, "uv_exposure": {0, 14},
	"stand_duration": {0, 60}, "stand_hour": {1, 1}, "fall": {1, 1}, "heart_rate_alert": {1, 1}, "sleep_apnea_alert": {1, 1},
	"handwashing": {1, 1}, "afib_burden": {0, 100}, "electrocardiogram_voltage": {-1, 2}, "hypnogram": {1, 4},
	"forced_expiratory_volume_1": {1, 7}, "forced_vital_capacity": {1, 8}, "peak_expiratory_flow_rate": {200, 900},
	"inhaler_usage": {1, 10}, "insulin_injection": {0.5, 30}, "mindfulness_minutes": {0.5, 60}, "daylight_exposure": {0, 60},
	"floors_climbed": {0, 30}, "waist_circumference": {50, 150}, "workout_duration": {10, 120}, "workout_distance": {500, 60000},
	"workout_swimming_stroke": {100, 3000}, "wheelchair_push": {1, 2000}, "heart_rate_recovery_one_minute": {5, 70},
	"sleep_breathing_disturbance": {0, 60}, "ige": {0, 100}, "igg": {0, 100},
}

func TestGeneratedDay_valuesArePlausible(t *testing.T) {
	found := map[string]bool{}
	for i, user := range people(prove.Counts(2, 5, 90)) {
		loc := []*time.Location{time.UTC, zone(t, "America/New_York"), zone(t, "Asia/Kolkata")}[i%3]
		for d := range 120 {
			p := sandbox.Provider{}.Day(user, spring.AddDays(d), loc)
			for _, r := range healthdata.Timeseries() {
				_, samples := p.Samples(r.Slug)
				if len(samples) == 0 {
					continue
				}
				found[r.Slug] = true
				checkSamples(t, r, samples)
			}
			for _, r := range healthdata.Summaries() {
				_, list := p.Summaries(r.Slug)
				found[r.Slug] = found[r.Slug] || len(list) > 0
			}
			checkDay(t, p, sandbox.Provider{}.Day(user, spring.AddDays(d-1), loc), spring.AddDays(d), loc)
			if d%10 == 0 {
				own := sandbox.Provider{Slug: []string{"acme_band", "acme_ring"}[i%2]}
				checkSums(t, own.Day(user, spring.AddDays(d), loc), own.Day(user, spring.AddDays(d-1), loc))
			}
			stream := p.WorkoutStream()
			found["workout_stream"] = found["workout_stream"] || stream != nil
		}
	}
	for _, r := range slices.Concat(healthdata.Timeseries(), healthdata.Summaries()) {
		require.True(t, found[r.Slug], "%s never happens", r.Slug)
	}
	require.True(t, found["workout_stream"])
}

// checkSamples requires one day's samples of a resource to be in order, whole, and such
// as a person has.
func checkSamples(t *testing.T, r *healthdata.Resource, samples []healthdata.Sample) {
	t.Helper()
	limits, limited := bounds[r.Slug]
	require.True(t, limited || r.Value != healthdata.ValueNumber, "no bounds for %s", r.Slug)
	type key struct {
		at   int64
		kind string
	}
	keys := make(map[key]bool, len(samples))
	for i, s := range samples {
		k := key{at: s.Timestamp.UnixMicro()}
		if s.Type != nil && r.Key == healthdata.KeyType {
			k.kind = *s.Type
		}
		// Plain comparisons: there are millions.
		believable := true
		switch r.Value {
		case healthdata.ValuePressure:
			believable = *s.Systolic > *s.Diastolic && *s.Systolic > 80 && *s.Systolic < 200 && *s.Diastolic > 40
		case healthdata.ValueNumber:
			believable = s.Value.Number >= limits[0] && s.Value.Number <= limits[1]
		}
		if keys[k] || !believable || i > 0 && s.Timestamp.Before(samples[i-1].Timestamp.Time) {
			require.Fail(t, "twice, out of order, or not believable", "%s, number %d: %+v", r.Slug, i, s.Value)
		}
		keys[k] = true
	}
}

// checkSums requires the summaries of a day to be computed from the samples of the day and the one before.
func checkSums(t *testing.T, p, before *sandbox.Day) {
	t.Helper()
	values := func(resource string, from, to time.Time) (out []float64) {
		for _, day := range []*sandbox.Day{before, p} {
			_, samples := day.Samples(resource)
			for _, s := range samples {
				if from.IsZero() && day == p || !s.Timestamp.Before(from) && s.Timestamp.Before(to) {
					out = append(out, s.Value.Number)
				}
			}
		}
		return out
	}
	sum := func(list []float64) (total float64) {
		for _, v := range list {
			total += v
		}
		return total
	}
	mean := func(list []float64) float64 { return sum(list) / float64(len(list)) }
	lowest := func(list []float64, n int) float64 {
		low := mean(list[:n])
		for i := n; i <= len(list); i++ {
			low = min(low, mean(list[i-n:i]))
		}
		return low
	}
	ofDay := func(resource string) []float64 { return values(resource, time.Time{}, time.Time{}) }
	_, list := p.Summaries("activity")
	a := list[0].(*healthdata.Activity)
	require.InDelta(t, sum(ofDay("steps")), float64(*a.Steps), 0)
	require.InDelta(t, sum(ofDay("floors_climbed")), float64(*a.FloorsClimbed), 0)
	require.InDelta(t, sum(ofDay("distance")), *a.Distance, 0.06)
	require.InDelta(t, sum(ofDay("calories_active")), *a.CaloriesActive, 0.06)
	require.InDelta(t, sum(ofDay("calories_active"))+sum(ofDay("calories_basal")), *a.CaloriesTotal, 0.06)
	bpm := ofDay("heartrate")
	require.InDelta(t, slices.Min(bpm), *a.HeartRate.MinBPM, 0)
	require.InDelta(t, slices.Max(bpm), *a.HeartRate.MaxBPM, 0)
	require.InDelta(t, mean(bpm), *a.HeartRate.AvgBPM, 0.06)
	require.InDelta(t, lowest(bpm, 30), *a.HeartRate.RestingBPM, 0.51)

	_, list = p.Summaries("sleep")
	s := list[0].(*healthdata.Sleep)
	night := func(resource string) []float64 { return values(resource, s.BedtimeStart.Time, s.BedtimeStop.Time) }
	bpm = night("heartrate")
	require.Len(t, bpm, int(math.Ceil(s.BedtimeStop.Sub(s.BedtimeStart.Time).Minutes())), "a minute each")
	require.InDelta(t, lowest(bpm, 5), float64(*s.HRLowest), 0.51)
	require.InDelta(t, lowest(bpm, 30), float64(*s.HRResting), 0.51)
	require.InDelta(t, mean(bpm), float64(*s.HRAverage), 0.51)
	require.GreaterOrEqual(t, float64(*s.HRLowest), slices.Min(bpm))
	require.InDelta(t, mean(night("hrv")), *s.AverageHRV, 0.51)
	require.InDelta(t, mean(night("respiratory_rate")), *s.RespiratoryRate, 0.06)

	_, list = p.Summaries("workouts")
	if len(list) == 0 {
		return
	}
	w := list[0].(*healthdata.Workout)
	bpm = values("heartrate", w.TimeStart.Time, w.TimeEnd.Time)
	require.InDelta(t, mean(bpm), float64(*w.AverageHR), 0.51)
	require.InDelta(t, slices.Max(bpm), float64(*w.MaxHR), 0)
	for _, v := range p.WorkoutStream().Heartrate {
		require.LessOrEqual(t, *v, *w.MaxHR)
	}
}

// checkDay requires what different resources say of one day to agree.
func checkDay(t *testing.T, p, before *sandbox.Day, date healthlab.Date, loc *time.Location) {
	t.Helper()
	checkSums(t, p, before)
	_, list := p.Summaries("activity")
	a := list[0].(*healthdata.Activity)
	minutes := date.AddDays(1).At(loc).Sub(date.At(loc)).Minutes()
	require.LessOrEqual(t, *a.Low+*a.Medium+*a.High, minutes)
	_, beats := p.Samples("heartrate")
	require.Len(t, beats, int(minutes), "a minute each, and as many as the day has")

	_, nights := p.Summaries("sleep")
	s := nights[0].(*healthdata.Sleep)
	require.Equal(t, date, healthlab.DateOf(s.BedtimeStop.In(loc)), "the night ends on its day")
	length := s.BedtimeStop.Sub(s.BedtimeStart.Time)
	require.True(t, length >= 4*time.Hour && length <= 10*time.Hour, "a night of %v", length)
	require.Equal(t, int64(length/time.Second), *s.Light+*s.Deep+*s.REM+*s.Awake)
	_, cycles := p.Summaries("sleep_cycle")
	c := cycles[0].(*healthdata.SleepCycle)
	require.Equal(t, s.BedtimeStart, c.SessionStart)
	require.Equal(t, int64(length/time.Second), c.StageEndOffsetSecond[len(c.StageEndOffsetSecond)-1])

	stream := p.WorkoutStream()
	_, workouts := p.Summaries("workouts")
	src, distances := p.Samples("workout_distance")
	if len(workouts) == 0 {
		require.Empty(t, distances)
		require.Nil(t, stream)
		return
	}
	w := workouts[0].(*healthdata.Workout)
	require.Equal(t, w.Sport.Slug, *src.Sport)
	require.Equal(t, w.TimeStart.Unix(), stream.Time[0])
	require.LessOrEqual(t, stream.Time[len(stream.Time)-1], w.TimeEnd.Unix())
	if w.Distance == nil {
		require.Empty(t, distances)
		require.Empty(t, stream.Distance)
	} else {
		require.InDelta(t, distances[0].Value.Number, *w.Distance, 0)
		require.Equal(t, w.TimeStart, *distances[0].Start)
		require.Equal(t, w.TimeEnd, *distances[0].End)
		require.InDelta(t, *w.Distance, *stream.Distance[len(stream.Distance)-1], 1, "the stream goes as far as the workout")
	}
	require.LessOrEqual(t, *w.AverageHR, *w.MaxHR)
	zones := int64(0)
	for _, z := range w.HRZones {
		zones += z
	}
	require.Equal(t, *w.MovingTime, zones)
}

// Two devices measure one day as real ones do: with clocks, counts and gaps of their own. Both are close to
// the truth, and what a person writes down is the same at each provider.
func TestDevices_measureOneDayWithSmallDifferences(t *testing.T) {
	for i, user := range people(20) {
		clock := map[string]time.Duration{}
		total := map[string]float64{}
		for _, slug := range []string{"", "acme_band", "acme_ring"} {
			p := sandbox.Provider{Slug: slug}
			for d := range 5 {
				_, samples := p.Samples(user, "heartrate", spring.AddDays(d), time.UTC)
				var first time.Time
				for _, s := range samples {
					if first.IsZero() {
						first = s.Timestamp.Time
					}
				}
				clock[slug] = first.Sub(spring.AddDays(d).At(time.UTC))
				if gaps := 1440 - len(samples); slug == "" {
					require.Zero(t, gaps)
				} else {
					require.Less(t, gaps, 181)
				}
				_, samples = p.Samples(user, "steps", spring.AddDays(d), time.UTC)
				for _, s := range samples {
					total[slug] += s.Value.Number
				}
			}
			_, water := p.Samples(user, "water", spring, time.UTC)
			_, truth := sandbox.Provider{}.Samples(user, "water", spring, time.UTC)
			require.Equal(t, truth, water)
		}
		require.Zero(t, clock[""])
		require.NotEqual(t, clock["acme_band"], clock["acme_ring"], i)
		require.NotEqual(t, total["acme_band"], total["acme_ring"])
		for _, slug := range []string{"acme_band", "acme_ring"} {
			require.NotZero(t, clock[slug])
			require.LessOrEqual(t, clock[slug].Abs(), time.Minute)
			require.InEpsilon(t, total[""], total[slug], 0.35)
		}
		require.NotEqual(t, sandbox.Provider{Slug: "acme_band"}.Device(user, healthdata.SourceWatch).ID, sandbox.Provider{Slug: "acme_ring"}.Device(user, healthdata.SourceWatch).ID)
	}
}

// Most people do several sports.
func TestWorkouts_mostPeopleDoSeveralSports(t *testing.T) {
	all := map[string]bool{}
	for _, user := range people(10) {
		own := map[string]bool{}
		for d := range 90 {
			_, list := sandbox.Provider{}.Summaries(user, "workouts", spring.AddDays(d), time.UTC)
			for _, w := range list {
				sport := w.(*healthdata.Workout).Sport.Slug
				own[sport], all[sport] = true, true
			}
		}
		require.GreaterOrEqual(t, len(own), 2)
	}
	require.Len(t, all, 5)
}

// The service accepts and stores all generated data, in all kinds of time zones and over a
// change of the clocks.
func TestService_storesAllGeneratedData(t *testing.T) {
	for name, from := range map[string]healthlab.Date{
		"UTC":              spring,
		"America/New_York": spring,                           // forward on 8 March
		"Europe/Berlin":    {Year: 2026, Month: 10, Day: 10}, // back on 25 October
		"Asia/Kolkata":     spring,
	} {
		t.Run(name, func(t *testing.T) {
			loc := zone(t, name)
			var resources []healthdata.ProviderResource
			for _, r := range healthdata.Resources() {
				resources = append(resources, healthdata.ProviderResource{Resource: r.Slug})
			}
			providers, err := healthdata.NewProviders([]healthdata.Provider{{Slug: "acme_band", Name: "Acme Band", Category: "provider", Class: "cloud", Resources: resources}})
			require.NoError(t, err)
			store := memory.New(nil)
			health, err := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{
				Environment: healthlab.Sandbox,
				Now:         func() time.Time { return time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC) },
			})
			require.NoError(t, err)
			team := healthlab.TeamID{UUID: uuid.New()}
			u, err := health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "member-1", FallbackTimeZone: &name})
			require.NoError(t, err)
			_, err = health.Connections().ConnectLinked(t.Context(), team, u.ID, healthdata.NewConnection{Provider: "acme_band"})
			require.NoError(t, err)
			sent := map[string]int{}
			for d := range 30 {
				takeDay(t, health, team, u.ID, from.AddDays(d), loc, sent)
			}
			for _, r := range healthdata.Timeseries() {
				list, err := health.AllSamples(t.Context(), team, u.ID, healthdata.SampleQuery{Resource: r.Slug})
				require.NoError(t, err)
				require.Len(t, list, sent[r.Slug], r.Slug)
			}
			for _, r := range healthdata.Summaries() {
				list, err := health.Summaries(t.Context(), team, u.ID, healthdata.SummaryQuery{Resource: r.Slug})
				require.NoError(t, err)
				require.Len(t, list, sent[r.Slug], r.Slug)
			}
		})
	}
}

// takeDay sends a day to the service, and adds what was new to sent.
func takeDay(t *testing.T, health *healthdata.Service, team healthlab.TeamID, user healthlab.UserID, date healthlab.Date, loc *time.Location, sent map[string]int) {
	t.Helper()
	p := sandbox.Provider{}.Day(user, date, loc)
	var workout uuid.UUID
	for _, r := range healthdata.Summaries() {
		src, list := p.Summaries(r.Slug)
		counts, err := health.IngestSummaries(t.Context(), team, user, r.Slug, healthdata.Upload{Provider: "acme_band", Source: src}, list)
		require.NoError(t, err, "%s of %v", r.Slug, date)
		sent[r.Slug] += counts.New
		if r.Slug != "profile" {
			require.Equal(t, healthdata.Counts{New: len(list)}, counts, "%s of %v", r.Slug, date)
		}
		if r.Slug == "workouts" && len(list) > 0 {
			workout = healthdata.HeadOf(list[0]).ID
			counts, err := health.IngestWorkoutStream(t.Context(), team, user, workout,
				healthdata.Upload{Provider: "acme_band"}, p.WorkoutStream())
			require.NoError(t, err)
			require.Equal(t, healthdata.Counts{New: 1}, counts)
		}
	}
	for _, r := range healthdata.Timeseries() {
		src, samples := p.Samples(r.Slug)
		if len(samples) == 0 {
			continue
		}
		if r.Key == healthdata.KeyWorkout {
			src.WorkoutID = &workout
		}
		counts, err := health.IngestSamples(t.Context(), team, user, r.Slug, healthdata.Upload{Provider: "acme_band", Source: src}, samples)
		require.NoError(t, err, "%s of %v", r.Slug, date)
		require.Equal(t, healthdata.Counts{New: len(samples)}, counts, "%s of %v", r.Slug, date)
		sent[r.Slug] += counts.New
	}
}

func TestProvider_unknownResourceHasNoData(t *testing.T) {
	var p sandbox.Provider
	user := people(1)[0]
	for _, resource := range []string{"activity", "moonlight", "workout_stream", ""} {
		_, samples := p.Samples(user, resource, spring, time.UTC)
		require.Empty(t, samples, resource)
	}
	for _, resource := range []string{"heartrate", "moonlight", "device"} {
		_, list := p.Summaries(user, resource, spring, time.UTC)
		require.Empty(t, list, resource)
	}
}
