package linkingtest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/linking"
)

// judge passes pulled items to a healthdata.Service, as pull.Service does, and fails the test for each refused item.
// Its store does not keep the data.
type judge struct {
	service  *healthdata.Service
	kept     *keptTimes
	user     healthdata.User
	provider string
}

// newJudge returns a judge for the harness's provider. Its clock is at ConnectorHarness.To.
func (h *ConnectorHarness) newJudge(t testing.TB) *judge {
	t.Helper()
	p := h.Record
	if p.Slug == "" {
		p = healthdata.Provider{Slug: "connector", Name: "Connector", Class: "cloud", AuthType: "oauth", Category: "device"}
	}
	providers, err := healthdata.NewProviders([]healthdata.Provider{p})
	require.NoError(t, err, "ConnectorHarness.Record")
	u := healthdata.User{ID: healthlab.UserID{UUID: uuid.New()}, Team: healthlab.TeamID{UUID: uuid.New()}}
	u.Connections = []healthdata.Connection{{Provider: p.Slug, Status: healthdata.Connected, CreatedOn: h.From, LinkedAt: h.From}}
	j := &judge{kept: &keptTimes{}, user: u, provider: p.Slug}
	j.service, err = healthdata.New(oneUser{user: u}, j.kept, providers, &healthdata.Options{
		Environment: healthlab.Production, Now: func() time.Time { return h.To },
	})
	require.NoError(t, err)
	return j
}

// receive fails if the service refuses an item of a resource. It fills in the fields of the summaries that the service
// derives.
func (j *judge) receive(t testing.TB, slug string, items []linking.PullItem) {
	t.Helper()
	var parts []healthdata.SummaryPart
	refused := func(list []healthdata.Refusal) {
		for _, r := range list {
			require.Empty(t, r.Problems, "%s: the service refuses item %d", slug, r.Index)
		}
	}
	for i := range items {
		item := &items[i]
		up := healthdata.Upload{Provider: j.provider, Source: item.Source, Device: item.Device, TimeZone: item.TimeZone, Workout: item.Workout}
		if len(item.Summaries) > 0 {
			parts = append(parts, healthdata.SummaryPart{Upload: up, Items: item.Summaries})
		}
		if len(item.Samples) > 0 {
			got, err := j.service.ReceiveSamples(t.Context(), j.user.Team, j.user.ID, slug, up, item.Samples)
			require.NoError(t, err)
			refused(got.Refusals)
		}
	}
	if len(parts) > 0 {
		got, err := j.service.ReceiveSummaries(t.Context(), j.user.Team, j.user.ID, slug, parts)
		require.NoError(t, err)
		for i := range got {
			refused(got[i].Refusals)
		}
	}
}

// oneUser is a store of users with one user, whom changes do not affect.
type oneUser struct {
	healthdata.Users
	user healthdata.User
}

func (u oneUser) Get(context.Context, healthlab.TeamID, healthlab.UserID) (healthdata.User, error) {
	return u.user, nil
}

// keptTimes is a store that accepts all data and records only the start times.
type keptTimes struct {
	healthdata.Data
	at []time.Time
}

func (k *keptTimes) PutRecords(_ context.Context, _ healthlab.TeamID, _ healthlab.UserID, records []healthdata.Record,
	_ func([]healthdata.PutResult) ([]healthlab.Event, error),
) error {
	for i := range records {
		if records[i].Resource != "device" && records[i].Resource != "profile" { // they have no time
			k.at = append(k.at, records[i].Index)
		}
	}
	return healthdata.CheckRecords(records)
}

func (k *keptTimes) MergeSamples(_ context.Context, _ healthlab.TeamID, _ healthlab.UserID, batches []healthdata.SampleBatch,
	_ func([]series.Outcome) ([]healthlab.Event, error),
) error {
	for i := range batches {
		for _, s := range batches[i].Samples.All() {
			k.at = append(k.at, time.UnixMicro(s.Time).UTC())
		}
	}
	return healthdata.CheckBatches(batches)
}

func (*keptTimes) View(_ context.Context, _ healthlab.TeamID, _ healthlab.UserID, read func(healthdata.View) error) error {
	return read(noData{})
}

func (*keptTimes) Find(context.Context, healthlab.TeamID, string, uuid.UUID) (healthlab.UserID, healthdata.Record, error) {
	return healthlab.UserID{}, healthdata.Record{}, healthlab.NotFound
}

type noData struct{ healthdata.View }

func (noData) Records(context.Context, healthdata.RecordQuery) ([]healthdata.Record, error) {
	return nil, nil
}

func (noData) Series(context.Context, healthdata.SeriesQuery) ([]healthdata.Series, error) {
	return nil, nil
}

var sourceTypeForm = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// checkItem fails if an item has fields that its resource does not have, belongs to another account than the grant g,
// or has an unparsed part, an invalid source type, or an invalid sample, session or deletion.
func checkItem(t testing.TB, slug string, item *linking.PullItem, g linking.Grant) {
	t.Helper()
	r := healthdata.ResourceBySlug(slug)
	require.NotNil(t, r, "%s is no resource", slug)
	if r.Class == healthdata.ClassTimeseries {
		require.Empty(t, item.Summaries, "%s has samples", slug)
	} else {
		require.Empty(t, item.Samples, "%s has summaries", slug)
	}
	require.Empty(t, item.Unparsed, "%s: the connector reads all that the test's provider sends", slug)
	require.Regexp(t, sourceTypeForm, string(item.Source.Type), "the type of a source is a word in lower case")
	if item.Owner != nil {
		require.Equal(t, g.ExternalUserID, *item.Owner, "the data is the person's own: the owner is the grant's ExternalUserID")
	}
	for i := range item.Samples {
		checkSample(t, r, &item.Samples[i])
	}
	for _, s := range item.Summaries {
		checkSession(t, s)
	}
	for _, d := range item.Deleted {
		require.True(t, (d.ID == "") != d.At.IsZero(), "a deleted record has an id, or the time of a sample")
	}
}

func checkSample(t testing.TB, r *healthdata.Resource, s *healthdata.Sample) {
	t.Helper()
	require.False(t, s.Timestamp.IsZero(), "%s: a sample has its timestamp", r.Slug)
	require.NotEmpty(t, s.Unit, "%s: a sample has its unit", r.Slug)
	if r.TypeRequired {
		require.NotNil(t, s.Type, "samples of %s have a type", r.Slug)
		require.True(t, len(r.Types) == 0 || r.HasType(*s.Type), "the type of a sample of %s is one of %v", r.Slug, r.Types)
	}
	if s.TimezoneOffset != nil {
		require.Zero(t, *s.TimezoneOffset%900, "%s: an offset is in seconds, in steps of a quarter of an hour", r.Slug)
	}
	if s.End == nil {
		return
	}
	long := s.End.Sub(s.Timestamp.Time)
	require.LessOrEqual(t, long, r.Longest, "%s: the longest interval", r.Slug)
	if r.Spans {
		require.Positive(t, long, "%s: an interval ends after it starts", r.Slug)
	}
}

// rounding is the largest difference between the sum of a session's parts and the whole, because sources round
// to minutes.
const rounding = 10 * time.Minute

// checkSession fails if the times of a session contradict each other.
func checkSession(t testing.TB, s healthdata.Summary) {
	t.Helper()
	check := func(name string, start, end healthlab.Time, parts ...*int64) {
		bounds, ok := healthdata.ResourceBySlug(name).IntervalBounds()
		require.True(t, ok)
		long := end.Sub(start.Time)
		require.Positive(t, long, "%s: a session ends after it starts", name)
		require.LessOrEqual(t, long, bounds.Longest, "%s: the longest session", name)
		var sum time.Duration
		for _, p := range parts {
			if p != nil {
				sum += time.Duration(*p) * time.Second
			}
		}
		require.LessOrEqual(t, sum, long+rounding, "%s: the seconds of its parts are at most those of the session", name)
	}
	switch s := s.(type) {
	case *healthdata.Sleep:
		check("sleep", s.BedtimeStart, s.BedtimeStop, s.Awake, s.Light, s.REM, s.Deep)
		if s.Duration != 0 {
			require.InDelta(t, s.BedtimeStop.Sub(s.BedtimeStart.Time).Seconds(), s.Duration, rounding.Seconds(), "sleep: the duration is from bedtime_start to bedtime_stop, in seconds")
		}
		require.False(t, s.HRLowest != nil && s.HRAverage != nil && *s.HRLowest > *s.HRAverage, "sleep: the lowest heart rate is at most the average")
	case *healthdata.Activity:
		if hr := s.HeartRate; hr != nil {
			ordered := []*float64{hr.MinBPM, hr.AvgBPM, hr.MaxBPM}
			ordered = slices.DeleteFunc(ordered, func(v *float64) bool { return v == nil })
			require.True(t, slices.IsSortedFunc(ordered, func(a, b *float64) int { return cmp.Compare(*a, *b) }), "activity: min_bpm is at most avg_bpm, which is at most max_bpm")
		}
	case *healthdata.Workout:
		check("workouts", s.TimeStart, s.TimeEnd, s.MovingTime)
		require.False(t, s.AverageHR != nil && s.MaxHR != nil && *s.AverageHR > *s.MaxHR, "workouts: the average heart rate is at most the highest")
		require.False(t, s.AverageSpeed != nil && s.MaxSpeed != nil && *s.AverageSpeed > *s.MaxSpeed, "workouts: the average speed is at most the highest")
	}
}

// totalDays is the number of days, and totalIntervals the number of growing values per day, from which checkTotals
// concludes that the values are running totals.
const totalDays, totalIntervals = 3, 6

// checkTotals fails if the amounts of intervals are running totals, which grow during each day and restart on
// the next.
func checkTotals(t testing.TB, r *healthdata.Resource, items []linking.PullItem) {
	t.Helper()
	if !r.Additive {
		return
	}
	var all []healthdata.Sample
	for i := range items {
		for _, s := range items[i].Samples {
			if s.Value != nil && !s.Value.IsText && s.End != nil {
				all = append(all, s)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b healthdata.Sample) int { return a.Timestamp.Compare(b.Timestamp.Time) })
	days, steps, ends := 0, 0, 0
	for i := 1; i < len(all); i++ {
		switch before, v := all[i-1].Value.Number, all[i].Value.Number; {
		case v > before:
			steps++
		case v == before:
		case steps >= totalIntervals || ends == 0: // the next day; the first day may be incomplete
			days, steps, ends = days+min(1, steps/totalIntervals), 0, ends+1
		default:
			return
		}
	}
	require.Less(t, days, totalDays, "%s: the values of a day only grow; the value of an interval is its own amount, and no running total", r.Slug)
}

// containsSample reports whether items contain the sample want, with its value in any unit, or a summary with its time.
// The items must have passed receive, so that summaries are complete.
func containsSample(t testing.TB, r *healthdata.Resource, items []linking.PullItem, want *healthdata.Sample) bool {
	t.Helper()
	instant, err := json.Marshal(want.Timestamp)
	require.NoError(t, err)
	value := func(s *healthdata.Sample) (float64, bool) {
		if s.Value == nil || s.Value.IsText {
			return 0, false
		}
		kind := ""
		if s.Type != nil {
			kind = *s.Type
		}
		return r.Convert(s.Value.Number, s.Unit, kind)
	}
	known, compared := value(want)
	for i := range items {
		for k := range items[i].Samples {
			s := &items[i].Samples[k]
			got, ok := value(s)
			same := !compared || ok && math.Abs(got-known) <= 1e-6*math.Abs(known)
			if s.Timestamp.Equal(want.Timestamp.Time) && same {
				return true
			}
		}
		for _, s := range items[i].Summaries {
			doc, err := json.Marshal(s)
			require.NoError(t, err)
			if bytes.Contains(doc, instant) {
				return true
			}
		}
	}
	return false
}

// everyday has the usual bounds of an adult's values: of samples, of samples per hour of their interval ("/h"), and of
// fields of summaries. If the median is outside of them, the unit is probably wrong.
var everyday = map[string]healthdata.Bounds{
	"heartrate": {Low: 20, High: 250}, "hrv": {Low: 2, High: 500}, "blood_oxygen": {Low: 50, High: 100},
	"glucose": {Low: 1, High: 40}, "cholesterol": {Low: 0.2, High: 30}, "respiratory_rate": {Low: 3, High: 80},
	"stress_level": {Low: 1, High: 100}, "weight": {Low: 2, High: 500}, "fat": {Low: 1, High: 80},
	"lean_body_mass": {Low: 2, High: 300}, "waist_circumference": {Low: 20, High: 300}, "body_mass_index": {Low: 8, High: 100},
	"body_temperature": {Low: 30, High: 45}, "basal_body_temperature": {Low: 30, High: 45}, "vo2_max": {Low: 5, High: 100},
	"forced_expiratory_volume_1": {Low: 0.2, High: 10}, "forced_vital_capacity": {Low: 0.2, High: 12}, "peak_expiratory_flow_rate": {Low: 20, High: 1200},
	"carbohydrates": {Low: 0.5, High: 1000}, "caffeine": {Low: 0.005, High: 3}, "water": {Low: 5, High: 5000}, "insulin_injection": {Low: 0.05, High: 300},
	"blood_pressure.systolic": {Low: 50, High: 300}, "blood_pressure.diastolic": {Low: 20, High: 200},
	"steps/h": {Low: 1, High: 30_000}, "distance/h": {Low: 1, High: 200_000}, "calories_active/h": {Low: 0.5, High: 5000},
	"calories_basal/h": {Low: 10, High: 400}, "floors_climbed/h": {Low: 0.02, High: 2000}, "wheelchair_push/h": {Low: 1, High: 30_000},
	"daylight_exposure/h": {Low: 0.1, High: 61}, "stand_duration/h": {Low: 0.1, High: 61}, "workout_duration/h": {Low: 0.1, High: 61}, "mindfulness_minutes/h": {Low: 0.1, High: 61},
	"sleep.duration": {Low: 1200, High: 86_400}, "sleep.total": {Low: 1200, High: 86_400}, "sleep.efficiency": {Low: 2, High: 100},
	"sleep.hr_lowest": {Low: 20, High: 200}, "sleep.hr_average": {Low: 20, High: 200}, "sleep.average_hrv": {Low: 2, High: 500}, "sleep.respiratory_rate": {Low: 3, High: 80},
	"activity.steps": {Low: 20, High: 100_000}, "activity.distance": {Low: 20, High: 500_000}, "activity.calories_total": {Low: 200, High: 20_000},
	"activity.calories_active": {Low: 5, High: 15_000}, "activity.heart_rate.avg_bpm": {Low: 20, High: 250}, "activity.heart_rate.resting_bpm": {Low: 20, High: 150},
	"body.weight": {Low: 2, High: 500}, "body.fat": {Low: 1, High: 80}, "body.body_mass_index": {Low: 8, High: 100},
	"workouts.distance": {Low: 50, High: 1_000_000}, "workouts.calories": {Low: 5, High: 20_000}, "workouts.average_hr": {Low: 30, High: 250},
	"workouts.max_hr": {Low: 40, High: 250}, "workouts.moving_time": {Low: 60, High: 200_000}, "workouts.average_speed": {Low: 0.1, High: 40},
}

// checkScale fails if the median of a resource's values is outside of Bounds or, without an entry there, of everyday.
func (h *ConnectorHarness) checkScale(t testing.TB, slug string, items []linking.PullItem) {
	t.Helper()
	for name, list := range values(t, slug, items) {
		b, ok := h.Bounds[name]
		if !ok {
			b, ok = everyday[name]
		}
		if !ok || len(list) == 0 {
			continue
		}
		slices.Sort(list)
		median := list[len(list)/2]
		require.True(t, median >= b.Low && median <= b.High, "%s: the median of the values is not %s: check the unit, or set ConnectorHarness.Bounds", name, b)
	}
}

// values returns the non-zero values of items in the unit of the resource, by the names of everyday.
func values(t testing.TB, slug string, items []linking.PullItem) map[string][]float64 {
	t.Helper()
	out := map[string][]float64{}
	note := func(name string, v float64) {
		if v != 0 {
			out[name] = append(out[name], v)
		}
	}
	r := healthdata.ResourceBySlug(slug)
	for i := range items {
		for k := range items[i].Samples {
			s := &items[i].Samples[k]
			in := func(v float64) float64 {
				kind := ""
				if s.Type != nil {
					kind = *s.Type
				}
				v, _ = r.Convert(v, s.Unit, kind)
				return v
			}
			switch {
			case s.Systolic != nil && s.Diastolic != nil:
				note(slug+".systolic", in(*s.Systolic))
				note(slug+".diastolic", in(*s.Diastolic))
			case s.Value == nil || s.Value.IsText:
			default:
				note(slug, in(s.Value.Number))
				if s.End != nil && s.End.After(s.Timestamp.Time) {
					note(slug+"/h", in(s.Value.Number)/s.End.Sub(s.Timestamp.Time).Hours())
				}
			}
		}
		for _, s := range items[i].Summaries {
			doc, err := json.Marshal(s)
			require.NoError(t, err, "%s: a summary has finite numbers", slug)
			var fields map[string]any
			require.NoError(t, json.Unmarshal(doc, &fields))
			eachNumber(slug, fields, note)
		}
	}
	return out
}

// eachNumber calls note with the path and the value of each number in a JSON object. path is that of the object.
func eachNumber(path string, fields map[string]any, note func(string, float64)) {
	for name, v := range fields {
		switch v := v.(type) {
		case float64:
			note(path+"."+name, v)
		case map[string]any:
			eachNumber(path+"."+name, v, note)
		}
	}
}

// valuesByKey returns the values of items by key, to compare two pulls. The key of a sample is the type of its source,
// its instant and its type. The key of a summary is its ExternalID, and its value is empty; a summary without an
// ExternalID is left out.
func valuesByKey(items []linking.PullItem) map[string]string {
	out := map[string]string{}
	for i := range items {
		for k := range items[i].Samples {
			key, value := sampleRecord(&items[i].Samples[k])
			out[string(items[i].Source.Type)+" "+key] = value
		}
		for _, s := range items[i].Summaries {
			if id := healthdata.HeadOf(s).ExternalID; id != "" {
				out["summary "+id] = ""
			}
		}
	}
	return out
}

func sampleRecord(s *healthdata.Sample) (key, value string) {
	key = "sample " + s.Timestamp.UTC().Format(time.RFC3339Nano)
	if s.Type != nil {
		key += " " + *s.Type
	}
	number := func(p *float64) float64 {
		if p == nil {
			return 0
		}
		return *p
	}
	v := cmp.Or(s.Value, &healthdata.Value{})
	return key, fmt.Sprint(v.Number, v.Text, number(s.Systolic), number(s.Diastolic), s.Unit)
}

// checkOnce fails if one answer has two different values of the same sample. Samples of different source types, owners,
// workouts, apps and sports are different samples.
func checkOnce(t testing.TB, slug string, items []linking.PullItem) {
	t.Helper()
	seen := map[string]string{}
	for i := range items {
		item := &items[i]
		of := []string{string(item.Source.Type)}
		for _, p := range []*string{item.Owner, item.Workout, item.Source.AppID, item.Source.Sport} {
			if p != nil {
				of = append(of, *p)
			}
		}
		for k := range item.Samples {
			key, value := sampleRecord(&item.Samples[k])
			key = strings.Join(of, " ") + " " + key
			was, ok := seen[key]
			require.True(t, !ok || was == value, "%s: two values of one sample; one of them is lost", slug)
			seen[key] = value
		}
	}
}
