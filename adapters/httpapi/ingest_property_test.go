package httpapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/prove"
)

// uploads makes random uploads of one resource.
type uploads struct {
	*rand.Rand
	resource *healthdata.Resource
	made     int // items so far; each has a time of its own
}

// times are the fields of summaries that say when, by the resource; of a session both ends.
var times = map[string][]string{
	"sleep": {"bedtime_start", "bedtime_stop"}, "sleep_cycle": {"session_start", "session_end"}, "workouts": {"time_start", "time_end"},
	"electrocardiogram": {"session_start", "session_end"}, "body": {"measured_at"}, "meal": {"timestamp"},
}

// days are the fields of summaries of days.
var days = map[string]string{"activity": "calendar_date", "menstrual_cycle": "period_start"}

// item returns a good item.
func (u *uploads) item() map[string]any {
	u.made++
	at := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(u.made) * 10 * time.Hour)
	if u.resource.Class == healthdata.ClassTimeseries {
		return u.sample(at)
	}
	slug := u.resource.Slug
	item, all := map[string]any{}, map[string]any{}
	if err := json.Unmarshal([]byte(least[slug]), &item); err != nil {
		panic(err)
	}
	if err := json.Unmarshal([]byte(whole[slug]), &all); err != nil {
		panic(err)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name != "calendar_date" && !strings.HasPrefix(name, "stage_") && !slices.Contains(times[slug], name) && u.IntN(2) == 0 {
			item[name] = all[name]
		}
	}
	if item["classification"] == nil {
		delete(item, "inconclusive_cause")
	}
	item["external_id"] = fmt.Sprint("item ", u.made)
	for i, name := range times[slug] {
		item[name] = at.Add(time.Duration(i) * 8 * time.Hour).Format(time.RFC3339)
	}
	if day := days[slug]; day != "" {
		item[day] = time.Date(2019, 1, 1+u.made, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
		delete(item, "period_end")
		delete(item, "cycle_end")
	}
	return item
}

func (u *uploads) sample(at time.Time) map[string]any {
	r := u.resource
	item := map[string]any{"timestamp": at.Format(time.RFC3339), "unit": r.Unit}
	switch r.Value {
	case healthdata.ValuePressure:
		item["systolic"], item["diastolic"] = 110+u.IntN(20), 70+u.IntN(10)
	case healthdata.ValueText:
		item["value"] = "words"
	default:
		item["value"] = 1
		if b, ok := r.Bounds(); ok {
			item["value"] = b.Low + (b.High-b.Low)*u.Float64()
		}
	}
	if r.Shape == healthdata.Interval {
		item["end"] = at.Add(time.Duration(1+u.IntN(50)) * time.Minute).Format(time.RFC3339)
		if u.IntN(2) == 0 {
			item["start"] = item["timestamp"]
		}
	}
	if len(r.Types) > 0 {
		item["type"] = r.Types[u.IntN(len(r.Types))]
	} else if r.TypeRequired {
		item["type"] = "some"
	}
	if u.IntN(2) == 0 {
		item["timezone_offset"] = 3600 * (u.IntN(25) - 12)
	}
	return item
}

// text returns an item as JSON.
func text(item any) string {
	b, err := json.Marshal(item)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// bad returns an item that cannot be read or cannot be true, and what is wrong with it.
func (u *uploads) bad() (kind, item string) {
	good := u.item()
	with := func(name string, v any) string {
		good[name] = v
		return text(good)
	}
	raw := func(name, v string) string { // instead of a field, or beside the others
		delete(good, name)
		rest := strings.TrimPrefix(text(good), "{")
		if rest != "}" {
			rest = "," + rest
		}
		return `{` + text(name) + `:` + v + rest
	}
	names := slices.Sorted(maps.Keys(good))
	any := names[u.IntN(len(names))]
	kinds := map[string]func() string{
		"another JSON type": func() string { return []string{`null`, `"text"`, `7`, `[]`, `true`, `[{}]`}[u.IntN(6)] },
		"unknown key":       func() string { return with("no_such_key", 1) },
		"key twice": func() string {
			return strings.TrimSuffix(text(good), "}") + `,` + text(any) + `:` + text(good[any]) + `}`
		},
		"key in capitals": func() string { return with(strings.ToUpper(any), good[any]) },
		"wrong type":      func() string { return raw(any, wrongType(good[any])) },
		"NUL":             func() string { return raw("external_id", `"a\u0000b"`) },
		"lone surrogate":  func() string { return raw("external_id", `"a\ud800b"`) },
	}
	if u.resource.Class == healthdata.ClassTimeseries {
		delete(kinds, "NUL")
		delete(kinds, "lone surrogate")
		u.badSamples(kinds, good, with, raw)
	} else {
		u.badSummaries(kinds, good, with)
	}
	all := slices.Sorted(maps.Keys(kinds))
	kind = all[u.IntN(len(all))]
	return kind, kinds[kind]()
}

func wrongType(v any) string {
	if _, isText := v.(string); isText {
		return []string{`7`, `{}`, `[]`, `true`}[len(text(v))%4]
	}
	return `"text"`
}

func (u *uploads) badSamples(kinds map[string]func() string, good map[string]any, with func(string, any) string, raw func(name, v string) string) {
	r := u.resource
	kinds["no timestamp"] = func() string { delete(good, "timestamp"); delete(good, "start"); return text(good) }
	kinds["no unit"] = func() string { delete(good, "unit"); return text(good) }
	kinds["unit of nothing"] = func() string { return with("unit", "furlong") }
	kinds["empty unit"] = func() string { return with("unit", "") }
	kinds["unit with NUL"] = func() string { return raw("unit", `"\u0000"`) }
	kinds["type with a surrogate"] = func() string { return raw("type", `"\udfff"`) }
	kinds["no such day"] = func() string { return with("timestamp", "2026-02-30T07:00:00Z") }
	kinds["local time"] = func() string { return with("timestamp", "2026-02-03T07:00:00") }
	kinds["before 1900"] = func() string { return with("timestamp", "1899-12-31T23:59:59Z") }
	kinds["future"] = func() string { return with("timestamp", "2026-03-06T12:00:01Z") }
	kinds["offset of no zone"] = func() string { return with("timezone_offset", 18*3600+1+u.IntN(9)) }
	kinds["part of an offset"] = func() string { return with("timezone_offset", 0.5) }
	kinds["start elsewhere"] = func() string { return with("start", "2019-01-01T00:00:00Z") }
	if !slices.Contains(r.Fields, "sensor_location") {
		kinds["field of another resource"] = func() string { return with("sensor_location", "ear") }
	}
	if r.Shape == healthdata.Interval {
		kinds["no end"] = func() string { delete(good, "end"); return text(good) }
		kinds["end before start"] = func() string { return with("end", "2019-12-31T00:00:00Z") }
		kinds["too long"] = func() string { return with("end", "2026-03-01T00:00:00Z") }
	}
	value := "value"
	if r.Value == healthdata.ValuePressure {
		value = "diastolic"
	} else {
		kinds["two numbers"] = func() string { return with("systolic", 100) }
	}
	kinds["no value"] = func() string { delete(good, value); return text(good) }
	kinds["value of a list"] = func() string { return with(value, []int{1}) }
	kinds["value beyond numbers"] = func() string { return raw(value, "1e999") }
	if b, ok := r.Bounds(); ok {
		kinds["out of bounds"] = func() string { return with(value, []float64{b.Low - 1, b.High*2 + 1}[u.IntN(2)]) }
	}
}

func (u *uploads) badSummaries(kinds map[string]func() string, good map[string]any, with func(string, any) string) {
	for _, name := range times[u.resource.Slug] {
		kinds["no "+name] = func() string { delete(good, name); return text(good) }
		kinds["no such day in "+name] = func() string { return with(name, "2026-02-30T07:00:00Z") }
		kinds["local "+name] = func() string { return with(name, "2026-02-03T07:00:00") }
		kinds["future "+name] = func() string { return with(name, "2026-03-06T12:00:01Z") }
		kinds["early "+name] = func() string { return with(name, "1899-12-31T23:59:59Z") }
	}
	if both := times[u.resource.Slug]; len(both) == 2 {
		kinds["end before start"] = func() string { return with(both[1], "2019-12-31T00:00:00Z") }
	}
	if day := days[u.resource.Slug]; day != "" {
		kinds["no day"] = func() string { delete(good, day); return text(good) }
		kinds["no such day"] = func() string { return with(day, "2026-13-01") }
		kinds["early day"] = func() string { return with(day, "1899-12-31") }
		kinds["instant for a day"] = func() string { return with(day, "2026-01-01T00:00:00Z") }
	}
	if u.resource.Slug == "meal" {
		kinds["unit of nothing"] = func() string { return with("energy", map[string]any{"unit": "furlong", "value": 1}) }
	}
}

// Of a random good upload with one bad item, everything else is stored, and the answer names the bad
// one. With atomic, nothing is. It holds for all resources.
func TestUpload_refusesOnlyTheInvalidItemUnlessAtomic(t *testing.T) {
	r := rand.New(rand.NewPCG(34, 44))
	cases := prove.Sequential(300, 800, 10_000)
	var fixture *fixture
	var makers []*uploads
	for n := range cases {
		if n%1000 == 0 {
			fixture, makers = newFixture(t, nil), nil
			for _, resource := range healthdata.Resources() {
				if resource.Class == healthdata.ClassTimeseries || resource.New != nil && resource.Slug != "workout_stream" {
					makers = append(makers, &uploads{Rand: r, resource: resource})
				}
			}
		}
		u := makers[n%len(makers)]
		items := make([]string, 1+r.IntN(5))
		for i := range items {
			items[i] = text(u.item())
		}
		at := r.IntN(len(items) + 1)
		kind, bad := u.bad()
		body, rest := upload(slices.Insert(slices.Clone(items), at, bad)...), upload(items...)
		path := fixture.summary(u.resource.Slug)
		if u.resource.Class == healthdata.ClassTimeseries {
			path = fixture.timeseries(u.resource.Path)
			if u.resource.Key == healthdata.KeyWorkout {
				of := strings.NewReplacer(`"type":"watch"`, `"type":"watch","sport":"running","workout_id":"6f1c0b52-0000-4000-8000-000000000001"`)
				body, rest = of.Replace(body), of.Replace(rest)
			}
		}
		what := u.resource.Slug + ": " + kind + ": " + body
		reply := fixture.Send(t, "POST", path+"?atomic=true", body)
		require.Equal(t, 422, reply.Status, what)
		for _, loc := range reply.Locs(t) {
			require.True(t, strings.HasPrefix(loc+".", fmt.Sprintf("body.data.%d.", at)), loc+" of "+what)
		}
		reply = fixture.Send(t, "POST", path, body)
		require.Equal(t, 200, reply.Status, what+string(reply.Body))
		var got healthdata.Counts
		require.NoError(t, json.Unmarshal(reply.Body, &got))
		require.Equal(t, 1, got.RefusedCount, what)
		require.Len(t, got.Refused, 1, what)
		require.Equal(t, at, got.Refused[0].Index, what)
		require.NotEmpty(t, got.Refused[0].Problems, what)
		if u.resource.Slug == "profile" { // a person has one
			require.Equal(t, len(items), got.New+got.Changed+got.Same, what)
			continue
		}
		require.Equal(t, len(items), got.New, what+string(reply.Body))
		reply = fixture.Send(t, "POST", path, rest)
		require.NoError(t, json.Unmarshal(reply.Body, &got))
		require.Equal(t, len(items), got.Same, "each good item is stored as it was sent: "+what)
	}
}
