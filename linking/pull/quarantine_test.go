package pull_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// answers gives the same answer again and again.
type answers func() []linking.PullItem

func (a answers) Pull(context.Context, linking.PullRequest) (linking.PullPage, error) {
	return linking.PullPage{Items: a()}, nil
}

// kept is what of an answer was stored, and why the rest was not, as introspection tells it.
func (w *fixture) kept(resource string, answer answers) (items int, why map[string]int) {
	w.t.Helper()
	s, err := pull.New(w.spy, w.health, w.refresher, map[string]linking.ProviderConnector{band: {Puller: answer}}, &pull.Options{Now: w.cloud.now})
	require.NoError(w.t, err)
	user := w.person("person " + uuid.NewString())
	w.idle(s)
	why = map[string]int{}
	list, _, err := s.Resources(w.t.Context(), pull.StatusQuery{Team: team, User: user, Limit: 1})
	require.NoError(w.t, err)
	for _, r := range list[0].Providers[band][resource].Refused {
		for _, reason := range r.Reasons {
			require.NotEmpty(w.t, reason.Message)
			why[reason.Field+" "+reason.Code]++
		}
	}
	from, to := noon.AddDate(-1, 0, 0), noon.AddDate(1, 0, 0)
	if healthdata.ResourceBySlug(resource).Class == healthdata.ClassTimeseries {
		all, err := w.health.AllSamples(w.t.Context(), team, user, healthdata.SampleQuery{Resource: resource, From: from, To: to})
		require.NoError(w.t, err)
		return len(all), why
	}
	all, err := w.health.Summaries(w.t.Context(), team, user, healthdata.SummaryQuery{Resource: resource, From: from, To: to})
	require.NoError(w.t, err)
	return len(all), why
}

func fixtureOf(t *testing.T, resource string) *fixture {
	t.Helper()
	return newFixture(t, nil, func(p *healthdata.Provider) { p.Resources = []healthdata.ProviderResource{{Resource: resource}} })
}

// Every invalid sample is quarantined alone, with a reason; the valid samples of the same
// answer are kept.
func TestQuarantine_takesOnlyTheInvalidSamples(t *testing.T) {
	at := healthlab.At(noon.Add(-time.Hour))
	then := func(d time.Duration) *healthlab.Time { v := healthlab.At(at.Add(d)); return &v }
	sample := func(d time.Duration, v float64, unit string) healthdata.Sample {
		return healthdata.Sample{Timestamp: *then(d), Value: healthdata.Number(v), Unit: unit}
	}
	interval := func(from, to time.Duration) healthdata.Sample {
		s := sample(from, 7, "count")
		s.Start, s.End = then(from), then(to)
		return s
	}
	half := 120.0
	workout, sport := uuid.New(), "running"
	somebody := "somebody else"
	of := func(s ...healthdata.Sample) answers {
		return func() []linking.PullItem {
			return []linking.PullItem{{Source: healthdata.Source{Type: healthdata.SourceWatch}, Samples: s}}
		}
	}
	for name, c := range map[string]struct {
		resource string
		answer   answers
		items    int
		why      map[string]int
	}{
		"no timestamp": {"heartrate", of(healthdata.Sample{Value: healthdata.Number(60), Unit: "bpm"}, sample(0, 61, "bpm")), 1, map[string]int{"timestamp missing": 1}},
		"no value":     {"heartrate", of(healthdata.Sample{Timestamp: at, Unit: "bpm"}, sample(1, 61, "bpm")), 1, map[string]int{"value missing": 1}},
		"no unit":      {"heartrate", of(sample(0, 60, ""), sample(1, 61, "bpm")), 1, map[string]int{"unit missing": 1}},
		"not a number": {"heartrate", of(sample(0, math.NaN(), "bpm"), sample(time.Second, math.Inf(1), "bpm"), sample(1, 61, "bpm")), 1, map[string]int{"value not_finite": 2}},
		"a text":       {"heartrate", of(healthdata.Sample{Timestamp: at, Value: healthdata.Text("fast"), Unit: "bpm"}, sample(1, 61, "bpm")), 1, map[string]int{"value type": 1}},
		"no such unit": {"weight", of(sample(0, 80, "stone-ish"), sample(time.Minute, 176.37, "lb")), 1, map[string]int{"unit unit": 1}},
		"the future":   {"heartrate", of(sample(25*time.Hour+time.Microsecond, 60, "bpm"), sample(25*time.Hour, 61, "bpm")), 1, map[string]int{"timestamp future": 1}},
		"backwards":    {"steps", of(interval(0, -time.Second), interval(0, 0), interval(time.Minute, time.Hour)), 1, map[string]int{"end out_of_bounds": 2}},
		"into the future": {
			"steps", of(interval(0, 26*time.Hour), interval(time.Minute, time.Hour)), 1, map[string]int{"end future": 1, "end out_of_bounds": 1},
		},
		"no end": {"steps", of(sample(0, 7, "count"), interval(time.Minute, time.Hour)), 1, map[string]int{"end missing": 1}},
		"half a pressure": {"blood_pressure", of(
			healthdata.Sample{Timestamp: at, Systolic: &half, Unit: "mmHg"}, healthdata.Sample{Timestamp: *then(time.Minute), Systolic: &half, Diastolic: &half, Unit: "mmHg"},
		), 1, map[string]int{"diastolic missing": 1}},
		"no type":    {"cholesterol", of(sample(0, 3, "mmol/L")), 0, map[string]int{"type missing": 1}},
		"no workout": {"workout_distance", of(interval(0, time.Minute)), 0, map[string]int{"source.workout_id missing": 1, "source.sport missing": 1}},
		"cannot be":  {"blood_oxygen", of(sample(0, 140, "%"), sample(time.Minute, -3, "%")), 0, map[string]int{"value out_of_bounds": 2}},
		"of several sources": {"workout_distance", func() []linking.PullItem {
			one := interval(0, time.Minute)
			one.Unit = "m"
			return []linking.PullItem{
				{Source: healthdata.Source{Type: healthdata.SourceWatch, WorkoutID: &workout, Sport: &sport}, Samples: []healthdata.Sample{one}},
				{Source: healthdata.Source{Type: healthdata.SourceWatch, WorkoutID: &workout}, Samples: []healthdata.Sample{one}},
				{Source: healthdata.Source{Type: "a\x00b", WorkoutID: &workout, Sport: &sport}, Samples: []healthdata.Sample{one}},
				{Owner: &somebody, Source: healthdata.Source{Type: healthdata.SourceWatch, WorkoutID: &workout, Sport: &sport}, Samples: []healthdata.Sample{one}},
			}
		}, 1, map[string]int{"source.sport missing": 1, "source.type nul": 1, " other_user": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			items, why := fixtureOf(t, c.resource).kept(c.resource, c.answer)
			require.Equal(t, c.why, why)
			require.Equal(t, c.items, items)
		})
	}
}

// The same of summaries: ids that stand for two different things, wherever in the answer,
// days that have not come, units, sessions that end before they start.
func TestQuarantine_takesOnlyTheInvalidSummaries(t *testing.T) {
	at := func(d time.Duration) healthlab.Time { return healthlab.At(noon.Add(d)) }
	night := func(id string, from, to time.Duration, score int64) *healthdata.Sleep {
		return &healthdata.Sleep{Head: healthdata.Head{ExternalID: id}, BedtimeStart: at(from), BedtimeStop: at(to), Score: &score}
	}
	day := func(offset int) *healthdata.Activity {
		return &healthdata.Activity{CalendarDate: healthlab.DateOf(noon).AddDays(offset)}
	}
	cycle := func(offset int, foreseen bool) *healthdata.MenstrualCycle {
		return &healthdata.MenstrualCycle{PeriodStart: healthlab.DateOf(noon).AddDays(offset), IsPredicted: foreseen}
	}
	meal := func(d time.Duration, unit string) *healthdata.Meal {
		return &healthdata.Meal{Timestamp: at(d), Energy: &healthdata.Energy{Unit: unit, Value: 300}}
	}
	part := func(items ...healthdata.Summary) linking.PullItem {
		return linking.PullItem{Source: healthdata.Source{Type: healthdata.SourceWatch}, Samples: nil, Summaries: items}
	}
	odd := day(0)
	odd.Distance = new(float64)
	*odd.Distance = math.Inf(1)
	somebody := "somebody else"
	for name, c := range map[string]struct {
		resource string
		answer   func() []linking.PullItem
		items    int
		why      map[string]int
	}{
		"one id, two nights": {"sleep", func() []linking.PullItem {
			return []linking.PullItem{part(night("a", -9*time.Hour, -time.Hour, 1), night("b", -33*time.Hour, -25*time.Hour, 2), night("a", -9*time.Hour, -time.Hour, 3))}
		}, 1, map[string]int{"external_id duplicate": 2}},
		"in two parts": {"sleep", func() []linking.PullItem {
			return []linking.PullItem{part(night("a", -9*time.Hour, -time.Hour, 1)), part(night("b", -33*time.Hour, -25*time.Hour, 2), night("a", -9*time.Hour, -time.Hour, 3))}
		}, 1, map[string]int{"external_id duplicate": 2}},
		"the same twice": {"sleep", func() []linking.PullItem {
			return []linking.PullItem{part(night("a", -9*time.Hour, -time.Hour, 1)), part(night("a", -9*time.Hour, -time.Hour, 1))}
		}, 1, map[string]int{}},
		"somebody else's night does not count": {"sleep", func() []linking.PullItem {
			other := part(night("a", -9*time.Hour, -time.Hour, 9))
			other.Owner = &somebody
			return []linking.PullItem{other, part(night("a", -9*time.Hour, -time.Hour, 1))}
		}, 1, map[string]int{" other_user": 1}},
		"backwards": {"sleep", func() []linking.PullItem {
			return []linking.PullItem{part(night("a", -time.Hour, -9*time.Hour, 1), night("b", -33*time.Hour, -25*time.Hour, 2))}
		}, 1, map[string]int{"bedtime_stop out_of_bounds": 1}},
		"the future": {"sleep", func() []linking.PullItem {
			return []linking.PullItem{part(night("a", time.Hour, 25*time.Hour, 1), night("b", -9*time.Hour, 24*time.Hour, 2))}
		}, 1, map[string]int{"bedtime_stop future": 1}},
		"no time": {"sleep", func() []linking.PullItem {
			return []linking.PullItem{part(&healthdata.Sleep{}, night("b", -9*time.Hour, -time.Hour, 2))}
		}, 1, map[string]int{"bedtime_start missing": 1, "bedtime_stop missing": 1}},
		"a day to come":   {"activity", func() []linking.PullItem { return []linking.PullItem{part(day(2), day(1), day(0))} }, 2, map[string]int{"calendar_date future": 1}},
		"not a number":    {"activity", func() []linking.PullItem { v := *odd; return []linking.PullItem{part(&v, day(-1))} }, 1, map[string]int{"distance not_finite": 1}},
		"a cycle to come": {"menstrual_cycle", func() []linking.PullItem { return []linking.PullItem{part(cycle(3, false), cycle(28, true))} }, 1, map[string]int{"period_start future": 1}},
		"a unit of a meal": {"meal", func() []linking.PullItem {
			return []linking.PullItem{part(meal(-time.Hour, "furlong"), meal(-2*time.Hour, "kJ"))}
		}, 1, map[string]int{"energy.unit unit": 1}},
		"of another kind": {"sleep", func() []linking.PullItem {
			return []linking.PullItem{part(day(0), night("b", -9*time.Hour, -time.Hour, 2))}
		}, 1, map[string]int{" type": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			items, why := fixtureOf(t, c.resource).kept(c.resource, c.answer)
			require.Equal(t, c.why, why)
			require.Equal(t, c.items, items)
		})
	}
}

// A recording comes with its workout; one that cannot be kept leaves the workout, and what
// comes without one is refused.
func TestPull_refusesAnInvalidStreamButStoresItsWorkout(t *testing.T) {
	w := newFixture(t, nil, func(p *healthdata.Provider) {
		p.Resources = []healthdata.ProviderResource{{Resource: "workout_stream"}, {Resource: "workouts"}}
	})
	workout := func(id string, from time.Duration) []healthdata.Summary {
		return []healthdata.Summary{&healthdata.Workout{
			Head: healthdata.Head{ExternalID: id}, TimeStart: healthlab.At(noon.Add(from)), TimeEnd: healthlab.At(noon.Add(from + time.Hour)),
		}}
	}
	stream := func(seconds ...int64) *healthdata.WorkoutStream { return &healthdata.WorkoutStream{Time: seconds} }
	begin := noon.Add(-5 * time.Hour).Unix()
	part := func(s []healthdata.Summary, of *healthdata.WorkoutStream) linking.PullItem {
		return linking.PullItem{Source: healthdata.Source{Type: healthdata.SourceWatch}, Summaries: s, Stream: of}
	}
	answer := wide(func() []linking.PullItem {
		return []linking.PullItem{
			part(workout("a", -5*time.Hour), stream(begin, begin+1)),
			part(workout("b", -8*time.Hour), stream(begin, begin-1)),
			part(nil, stream(begin)), part(workout("c", -9*time.Hour), nil), part(nil, nil),
			part(workout("d", -20*time.Hour), stream(begin)), part(workout("d", -20*time.Hour-time.Second), stream(begin)),
		}
	})
	s, err := pull.New(w.spy, w.health, w.refresher, map[string]linking.ProviderConnector{band: {Puller: answer}}, &pull.Options{Now: w.cloud.now})
	require.NoError(t, err)
	ann := w.person("ann")
	w.idle(s)
	list, err := w.health.Summaries(t.Context(), team, ann, healthdata.SummaryQuery{Resource: "workouts", From: noon.AddDate(-1, 0, 0)})
	require.NoError(t, err)
	require.Len(t, list, 2)
	streams := map[string]bool{}
	for _, x := range list {
		_, err := w.health.WorkoutStream(t.Context(), team, healthdata.HeadOf(x).ID)
		streams[x.(*healthdata.Workout).TimeStart.Format("15:04")] = err == nil
	}
	require.Equal(t, map[string]bool{"07:00": true, "04:00": false}, streams)
	seen, _, err := s.Resources(t.Context(), pull.StatusQuery{Team: team, User: ann, Limit: 1})
	require.NoError(t, err)
	why := map[string]int{}
	for _, r := range seen[0].Providers[band]["workout_stream"].Refused {
		why[r.Reasons[0].Field+" "+r.Reasons[0].Code]++
	}
	require.Equal(t, map[string]int{"time order": 1, " shape": 2, "external_id duplicate": 2}, why)
	require.Len(t, w.said(ann, "historical.data.workout_stream.created"), 1)
}

// wide is a puller that gives recordings of workouts, too, and nothing else.
type wide func() []linking.PullItem

func (w wide) Pull(_ context.Context, r linking.PullRequest) (linking.PullPage, error) {
	if r.Resource != "workout_stream" {
		return linking.PullPage{}, nil
	}
	return linking.PullPage{Items: w()}, nil
}

func (w wide) Pulls(resource string) bool { return resource == "workout_stream" }
