package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// whole are bodies with a summary of every resource in which no field is left out.
var whole = map[string]string{
	"activity": `{"external_id":"a1","calendar_date":"2026-03-01","calories_total":2300.5,"calories_active":800,"steps":8211,
		"daily_movement":5000,"distance":6100.5,"low":200,"medium":60,"high":30,"floors_climbed":4,"time_zone":"Europe/Paris",
		"timezone_offset":3600,"heart_rate":{"avg_bpm":70,"min_bpm":48,"max_bpm":160,"resting_bpm":55,"avg_walking_bpm":95},
		"wheelchair_use":true,"wheelchair_push":12}`,
	"sleep": `{"external_id":"s1","calendar_date":"2026-03-01","bedtime_start":"2026-02-28T22:30:00Z","bedtime_stop":"2026-03-01T06:30:00+00:00",
		"type":"long_sleep","timezone_offset":3600,"duration":28800,"total":25200,"awake":3600,"light":14400,"rem":5400,"deep":5400,
		"score":80,"recovery_readiness_score":70,"hr_lowest":44,"hr_average":52,"hr_resting":48,"efficiency":87.5,"latency":600,
		"temperature_delta":-0.1,"skin_temperature":35.1,"hr_dip":14,"state":"confirmed","average_hrv":50,"respiratory_rate":14.2}`,
	"sleep_cycle": `{"external_id":"s1","sleep_id":null,"session_start":"2026-02-28T22:30:00Z","session_end":"2026-03-01T06:30:00Z",
		"stage_start_offset_second":[0,600],"stage_end_offset_second":[600,1200],"stage_type":[4,2],"time_zone":"Europe/Paris"}`,
	"body": `{"external_id":"b1","measured_at":"2026-03-01T07:00:00Z","calendar_date":"2026-03-01","weight":70.5,"fat":20,"water_percentage":55,
		"muscle_mass_percentage":40,"visceral_fat_index":5,"bone_mass_percentage":4,"body_mass_index":22.5,"lean_body_mass_kilogram":56,
		"waist_circumference_centimeter":80}`,
	"workouts": `{"external_id":"w1","title":"Morning run","timezone_offset":3600,"average_hr":140,"max_hr":170,"distance":5000,
		"calendar_date":"2026-03-01","time_start":"2026-03-01T07:00:00Z","time_end":"2026-03-01T07:30:00Z","calories":400,
		"sport":{"slug":"running","name":"Running","id":null},"hr_zones":[0,10,20,30,40,50],"moving_time":1700,"total_elevation_gain":20,
		"elev_high":50,"elev_low":-2,"average_speed":2.7,"max_speed":4,"average_watts":200,"device_watts":201,"max_watts":400,
		"weighted_average_watts":220,"steps":4800,"map":{"polyline":"_p~iF~ps|U","summary_polyline":"_p~iF"},"provider_id":"w1"}`,
	"profile": `{"external_id":"p1","height":171,"birth_date":"1990-02-28","wheelchair_use":true,"gender":"female","sex":"female"}`,
	"meal": `{"external_id":"m1","timestamp":"2026-03-01T12:00:00Z","calendar_date":"2026-03-01","name":"Lunch","energy":{"unit":"kcal","value":600},
		"macros":{"carbs":60,"protein":30,"fats":{"saturated":5,"monounsaturated":4,"polyunsaturated":3,"omega3":1,"omega6":1,"total":12},
			"alcohol":0,"water":300,"fibre":8,"sugar":10,"cholesterol":0.1},
		"micros":{"minerals":{"iron":4},"trace_elements":{"copper":1},"vitamins":{"vitamin_d":10}},
		"data":{"Soup":{"energy":{"value":200},"macros":null,"micros":{"minerals":null}}}}`,
	"menstrual_cycle": `{"external_id":"c1","period_start":"2026-02-10","period_end":"2026-02-14","cycle_end":"2026-03-09","is_predicted":false,
		"menstrual_flow":[{"date":"2026-02-10","flow":"light"}],"cervical_mucus":[{"date":"2026-02-20","quality":"creamy"}],
		"intermenstrual_bleeding":[{"date":"2026-02-25"}],"contraceptive":[{"date":"2026-02-10","type":"oral"}],
		"detected_deviations":[{"date":"2026-02-10","deviation":"irregular_menstrual_cycles"}],
		"ovulation_test":[{"date":"2026-02-20","test_result":"positive"}],"home_pregnancy_test":[{"date":"2026-02-20","test_result":"negative"}],
		"home_progesterone_test":[{"date":"2026-02-20","test_result":"negative"}],
		"sexual_activity":[{"date":"2026-02-20","protection_used":null},{"date":"2026-02-21","protection_used":true}],
		"basal_body_temperature":[{"date":"2026-02-20","value":36.4}]}`,
	"electrocardiogram": `{"external_id":"e1","session_start":"2026-03-01T07:00:00Z","session_end":"2026-03-01T07:00:30Z","voltage_sample_count":3840,
		"heart_rate_mean":60,"sampling_frequency_hz":128,"classification":"inconclusive","inconclusive_cause":"poor_reading",
		"algorithm_version":"2","time_zone":"Europe/Paris","source_device_model":"Band 3"}`,
}

// least are bodies with no more than must be there.
var least = map[string]string{
	"activity":          `{"calendar_date":"2026-03-02"}`,
	"sleep":             `{"bedtime_start":"2026-03-01T22:30:00Z","bedtime_stop":"2026-03-02T06:30:00Z"}`,
	"sleep_cycle":       `{"session_start":"2026-03-01T22:30:00Z","session_end":"2026-03-02T06:30:00Z","stage_start_offset_second":[],"stage_end_offset_second":[],"stage_type":[]}`,
	"body":              `{"measured_at":"2026-03-02T07:00:00Z"}`,
	"workouts":          `{"time_start":"2026-03-02T07:00:00Z","time_end":"2026-03-02T07:30:00Z","sport":""}`,
	"profile":           `{}`,
	"meal":              `{"timestamp":"2026-03-02T12:00:00Z","name":""}`,
	"menstrual_cycle":   `{"period_start":"2026-03-02"}`,
	"electrocardiogram": `{"session_start":"2026-03-02T07:00:00Z","session_end":"2026-03-02T07:00:30Z","voltage_sample_count":0}`,
}

func upload(items ...string) string {
	return `{"provider":"acme_band","source":{"type":"watch"},"data":[` + strings.Join(items, ",") + `]}`
}

// year is a range around all that the tests send.
const year = "?start_date=2026-01-01&end_date=2026-12-31"

func TestSummaries_areReadAsTheyWereUploaded(t *testing.T) {
	for _, r := range healthdata.Summaries() {
		t.Run(r.Slug, func(t *testing.T) {
			c := newFixture(t, nil)
			path, query := c.summary(r.Path), year
			if r.Slug == "profile" {
				query = ""
				c.get(path, 404)
			} else {
				require.JSONEq(t, `{"`+r.ReadKey+`":[]}`, string(c.get(path+query, 200).Body))
			}
			var counts healthdata.Counts
			send := func(body string) healthdata.Counts {
				c.post(path, body, 200).JSON(t, &counts)
				return counts
			}
			require.Equal(t, healthdata.Counts{New: 1}, send(upload(whole[r.Slug])))
			require.Equal(t, healthdata.Counts{Same: 1}, send(upload(whole[r.Slug])))
			var sent map[string]any
			require.NoError(t, json.Unmarshal([]byte(whole[r.Slug]), &sent))
			got := items(t, r, c.get(path+query, 200))
			require.Len(t, got, 1)
			agree(t, sent, got[0])
			require.Equal(t, c.user.String(), got[0]["user_id"])
			require.Equal(t, "Acme Band", got[0]["source"].(map[string]any)["name"])
			require.NotContains(t, got[0], "external_id")

			// With the least of it, and by the other provider.
			manual := strings.Replace(upload(least[r.Slug]), "acme_band", "manual", 1)
			require.Equal(t, healthdata.Counts{New: 1}, send(manual))
			require.Equal(t, healthdata.Counts{Same: 1}, send(manual))
			if r.Slug == "profile" {
				c.get(path+"?provider=manual", 200)
				missing := c.get(path+"?provider=nobody", 404)
				require.Contains(t, string(missing.Body), "user "+c.user.String()+" not found, or it has no profile")
				return
			}
			require.Len(t, items(t, r, c.get(path+query, 200)), 2)
			require.Len(t, items(t, r, c.get(path+query+"&provider=manual", 200)), 1)
			require.Len(t, items(t, r, c.get(path+query+"&provider=", 200)), 2)
			require.Empty(t, items(t, r, c.get(path+query+"&provider=nobody", 200)))
			require.Empty(t, send(upload()), "no items are no news")
		})
	}
}

// items lists what a read of a resource answered.
func items(t *testing.T, r *healthdata.Resource, reply *contract.Reply) (out []map[string]any) {
	t.Helper()
	if r.Slug == "profile" {
		var one map[string]any
		reply.JSON(t, &one)
		return []map[string]any{one}
	}
	var wrap map[string][]map[string]any
	reply.JSON(t, &wrap)
	require.Len(t, wrap, 1)
	require.Contains(t, wrap, r.ReadKey)
	return wrap[r.ReadKey]
}

// agree requires every field that was sent in the answer, but for what is not
// published, and times in another spelling.
func agree(t *testing.T, sent, got map[string]any) {
	t.Helper()
	for key, want := range sent {
		switch key {
		case "external_id", "measured_at", "sleep_id", "data", "sport":
			continue
		}
		if text, ok := want.(string); ok {
			if at, err := healthlab.ParseTime(text); err == nil {
				want = at.String()
			}
		}
		require.Equal(t, want, got[key], key)
	}
}

func TestAnswers_haveEmptyListsInsteadOfNull(t *testing.T) {
	c := newFixture(t, nil)
	for _, r := range healthdata.Summaries() {
		c.post(c.summary(r.Path), upload(whole[r.Slug]), 200)
		c.post(c.summary(r.Path), upload(least[r.Slug]), 200)
		list, err := c.health.Summaries(t.Context(), team, c.user, healthdata.SummaryQuery{Resource: r.Slug})
		require.NoError(t, err)
		for _, s := range list {
			require.Empty(t, contract.NilCollections(s), r.Slug)
		}
	}
	c.post(c.summary("meal"), upload(`{"timestamp":"2026-03-02T13:00:00Z","name":"x","micros":{},"macros":{},"energy":null,"data":null}`), 200)
	list, err := c.health.Summaries(t.Context(), team, c.user, healthdata.SummaryQuery{Resource: "meal"})
	require.NoError(t, err)
	require.Empty(t, contract.NilCollections(list))
	var sleep struct{ Sleep []healthdata.Sleep }
	c.get(c.summary("sleep")+year, 200).JSON(t, &sleep)
	stream, err := c.health.SleepStream(t.Context(), team, sleep.Sleep[0].ID)
	require.NoError(t, err)
	require.Empty(t, contract.NilCollections(stream))
}

func TestRead_dateRangeIncludesItsFirstAndLastDay(t *testing.T) {
	c := newFixture(t, nil)
	for _, at := range []string{"2023-02-12T23:59:59.999Z", "2023-02-13T00:00:00Z", "2023-02-13T23:59:59Z", "2023-02-13T23:59:59.999999Z", "2023-02-14T00:00:00Z"} {
		c.post(c.timeseries("heartrate"), upload(`{"timestamp":"`+at+`","unit":"bpm","value":60}`), 200)
		c.post(c.summary("body"), upload(`{"measured_at":"`+at+`","weight":70}`), 200)
		c.post(c.summary("electrocardiogram"), upload(`{"session_start":"`+at+`","session_end":"2023-02-14T00:00:00Z","voltage_sample_count":1}`), 200)
	}
	samples := func(query string) int {
		var list []healthdata.Sample
		c.get(c.timeseries("heartrate")+query, 200).JSON(t, &list)
		var page page
		c.get(c.timeseries("heartrate/grouped")+query, 200).JSON(t, &page)
		require.Len(t, page.samples(), len(list))
		return len(list)
	}
	for query, want := range map[string]int{
		"?start_date=2023-02-13&end_date=2023-02-13":                                 3, // all of the day's last second
		"?start_date=2023-02-13T00:00:00Z&end_date=2023-02-13T23:59:59Z":             2, // an instant is an instant
		"?start_date=2023-02-13":                                                     4,
		"?start_date=2023-02-12":                                                     5,
		"?start_date=2023-02-13T00:00:00%2B01:00&end_date=2023-02-13T01:00:00+01:00": 2,
		"?start_date=2023-02-14&end_date=2023-02-14":                                 1,
		"?start_date=2023-02-15":                                                     0,
	} {
		require.Equal(t, want, samples(query), query)
		var bodies struct{ Body []healthdata.Body }
		c.get(c.summary("body")+query, 200).JSON(t, &bodies)
		require.Len(t, bodies.Body, want, query)
	}
	var cardio struct {
		Electrocardiogram []healthdata.Electrocardiogram
	}
	c.get(c.summary("electrocardiogram")+"?start_date=2023-02-13&end_date=2023-02-13", 200).JSON(t, &cardio)
	require.Len(t, cardio.Electrocardiogram, 3)
	require.Equal(t, []string{"query.start_date"}, c.get(c.summary("electrocardiogram")+"?start_date=2023-02-13T00:00:00Z", 422).Locs(t), "days only")
}

// page is an answer of a grouped read.
type page struct {
	Groups     map[string][]healthdata.Group `json:"groups"`
	NextCursor *string                       `json:"next_cursor"`
	Next       *string                       `json:"next"`
}

func (p *page) samples() (out []healthdata.Sample) {
	for _, groups := range p.Groups {
		for _, g := range groups {
			out = append(out, g.Data...)
		}
	}
	return out
}

func TestGroupedRead_pagesContainEverySampleOnce(t *testing.T) {
	c := newFixture(t, nil)
	var samples []string
	for i := range 12_000 {
		at := fixtureNow.Add(-time.Duration(i+1) * time.Minute).Format(time.RFC3339)
		samples = append(samples, `{"timestamp":"`+at+`","unit":"bpm","value":`+fmt.Sprint(50+i%90)+`}`)
	}
	c.post(c.timeseries("heartrate"), upload(samples...), 200)
	read := func(query string) (p page) {
		c.get(c.timeseries("heartrate/grouped?start_date=2020-01-01")+query, 200).JSON(t, &p)
		require.Equal(t, p.NextCursor, p.Next)
		return p
	}
	var sizes []int
	seen := map[string]bool{}
	query := ""
	for {
		p := read(query)
		sizes = append(sizes, len(p.samples()))
		for _, s := range p.samples() {
			require.False(t, seen[s.Timestamp.String()])
			seen[s.Timestamp.String()] = true
		}
		if p.NextCursor == nil {
			break
		}
		query = "&next_cursor=" + url.QueryEscape(*p.NextCursor)
	}
	require.Equal(t, []int{5000, 5000, 2000}, sizes)
	require.Len(t, seen, 12_000)

	first := *read("").NextCursor
	second := *read("&cursor=" + first).NextCursor
	require.NotEqual(t, first, second)
	require.Equal(t, second, *read("&cursor=wrong&next_cursor=" + first).NextCursor, "the new name wins")
	require.Equal(t, first, *read("&next_cursor=&cursor=").NextCursor, "empty is the first page")
	for _, bad := range []string{"&next_cursor=wrong", "&cursor=" + first[1:], "&provider=manual&next_cursor=" + first} {
		reply := c.get(c.timeseries("heartrate/grouped?start_date=2020-01-01")+bad, 422)
		require.Equal(t, []string{"query.next_cursor"}, reply.Locs(t))
		require.NotContains(t, string(reply.Body), first[1:])
	}
	require.JSONEq(t, `{"groups":{},"next_cursor":null,"next":null}`, string(c.get(c.timeseries("heartrate/grouped?start_date=2026-03-05"), 200).Body))
}

// Texts that need escaping in JSON are returned unchanged, as keys and in cursors too.
func TestGroupedRead_escapesTextsInKeysAndCursors(t *testing.T) {
	c := newFixture(t, &healthdata.Options{PageSize: 1})
	long := strings.Repeat("<", 256)
	kind, err := json.Marshal(long)
	require.NoError(t, err)
	body := `{"provider":"manual","source":{"type":` + string(kind) + `,"app_id":"a\"b\\"},"data":[` +
		`{"timestamp":"2026-03-01T07:00:00Z","unit":"FSU","value":1,"type":` + string(kind) + `},` +
		`{"timestamp":"2026-03-01T07:00:00Z","unit":"FSU","value":2,"type":"\u00e9\""}]}`
	c.post(c.timeseries("ige"), body, 200)
	var values []float64
	query := "?start_date=2026-03-01"
	for {
		var p page
		c.get(c.timeseries("ige/grouped")+query, 200).JSON(t, &p)
		require.Len(t, p.Groups["manual"], 1)
		require.Equal(t, healthdata.SourceType(long), p.Groups["manual"][0].Source.Type)
		require.Equal(t, `a"b\`, *p.Groups["manual"][0].Source.AppID)
		values = append(values, p.samples()[0].Value.Number)
		if p.Next == nil {
			break
		}
		query = "?start_date=2026-03-01&next_cursor=" + url.QueryEscape(*p.Next)
	}
	slices.Sort(values)
	require.Equal(t, []float64{1, 2}, values)
}

func TestTimeseries_areReadAsTheyWereUploaded(t *testing.T) {
	c := newFixture(t, nil)
	for _, r := range healthdata.Timeseries() {
		item := map[string]any{"timestamp": "2026-03-01T07:00:00+00:00", "unit": r.Unit, "value": 12.5, "timezone_offset": 3600, "type": nil}
		if r.Shape != healthdata.Discrete {
			item["start"], item["end"] = item["timestamp"], "2026-03-01T07:10:00+00:00"
		}
		switch {
		case len(r.Types) > 0:
			item["type"] = r.Types[0]
		case r.TypeRequired:
			item["type"] = "some_kind"
		}
		switch r.Value {
		case healthdata.ValuePressure:
			delete(item, "value")
			item["systolic"], item["diastolic"] = 120, 80
		case healthdata.ValueText:
			item["value"] = "tea \"with\" milk"
		}
		for _, f := range r.Fields {
			item[f] = "low"
			if f == "tags" {
				item[f] = []string{"food"}
			}
		}
		body := map[string]any{
			"provider": "acme_band", "stage": "daily", "time_zone": "Europe/Paris", "start_date": nil, "end_date": "2026-03-02T00:00:00Z",
			"source": map[string]any{"type": "watch", "app_id": nil, "device_id": uuid.Nil, "sport": "running", "workout_id": c.user},
			"data":   []any{item},
		}
		require.JSONEq(t, `{"new":1,"changed":0,"same":0,"dropped":0}`, string(c.post(c.timeseries(r.Path), body, 200).Body), r.Slug)
		want, err := json.Marshal(item)
		require.NoError(t, err)

		var p struct {
			Groups map[string][]struct{ Data []json.RawMessage }
		}
		c.get(c.timeseries(r.Path+"/grouped"+year), 200).JSON(t, &p)
		require.JSONEq(t, string(want), string(p.Groups["acme_band"][0].Data[0]), r.Slug)

		// What was read can be sent again, and is nothing new.
		body["data"] = p.Groups["acme_band"][0].Data
		require.JSONEq(t, `{"new":0,"changed":0,"same":1,"dropped":0}`, string(c.post(c.timeseries(r.Path), body, 200).Body), r.Slug)

		if !r.Legacy {
			c.get(c.timeseries(r.Path+year), 404)
			continue
		}
		require.JSONEq(t, "["+string(want)+"]", string(c.get(c.timeseries(r.Path+year), 200).Body), r.Slug)
		require.JSONEq(t, "[]", string(c.get(c.timeseries(r.Path+year+"&provider=manual"), 200).Body), r.Slug)
	}
}

func TestCholesterol_isReadByKindAndTogether(t *testing.T) {
	c := newFixture(t, nil)
	var data []string
	for i, kind := range []string{"ldl", "hdl", "total", "triglycerides"} {
		data = append(data, fmt.Sprintf(`{"timestamp":"2026-03-01T07:00:00Z","unit":"mmol/L","value":%d,"type":"cholesterol/%s"}`, i, kind))
	}
	c.post(c.timeseries("cholesterol"), upload(data...), 200)
	for i, kind := range []string{"ldl", "hdl", "total", "triglycerides"} {
		var list []healthdata.Sample
		c.get(c.timeseries("cholesterol/"+kind+year), 200).JSON(t, &list)
		require.Len(t, list, 1)
		require.InDelta(t, i, list[0].Value.Number, 0)
	}
	c.get(c.timeseries("cholesterol/cholesterol"+year), 404)
	c.get(c.timeseries("cholesterol/vldl"+year), 404)
	var list []healthdata.Sample
	c.get(c.timeseries("cholesterol"+year), 200).JSON(t, &list)
	require.Len(t, list, 4)
}

func TestStream_isReadWithItsWorkoutOrSleep(t *testing.T) {
	c := newFixture(t, nil)
	c.post(c.summary("workouts"), upload(whole["workouts"]), 200)
	c.post(c.summary("sleep"), upload(whole["sleep"]), 200)
	c.post(c.summary("sleep_cycle"), upload(whole["sleep_cycle"]), 200)
	var workouts struct{ Workouts []healthdata.Workout }
	c.get(c.summary("workouts")+year, 200).JSON(t, &workouts)
	var sleep struct{ Sleep []healthdata.Sleep }
	c.get(c.summary("sleep")+year, 200).JSON(t, &sleep)

	run := healthdata.StreamPath(workouts.Workouts[0].ID)
	night := "/v2/timeseries/sleep/" + sleep.Sleep[0].ID.String() + "/stream"
	c.get(run, 404)
	start := workouts.Workouts[0].TimeStart.Unix()
	in := &healthdata.WorkoutStream{Time: []int64{start, start + 1}, Heartrate: []*int64{ptr(int64(90)), nil}, Power: []*float64{nil, ptr(200.5)}}
	_, err := c.health.IngestWorkoutStream(t.Context(), team, c.user, workouts.Workouts[0].ID, healthdata.Upload{Provider: "acme_band"}, in)
	require.NoError(t, err)
	require.JSONEq(t, fmt.Sprintf(`{"time":[%d,%d],"heartrate":[90,null],"cadence":[],"altitude":[],"velocity_smooth":[],"lat":[],"lng":[],
		"distance":[],"power":[null,200.5],"resistance":[],"temperature":[]}`, start, start+1), string(c.get(run, 200).Body))

	var stream healthdata.SleepStream
	c.get(night, 200).JSON(t, &stream)
	require.Len(t, stream.Hypnogram, 2)
	for _, path := range []string{run, night} {
		require.Equal(t, []string{"query.x"}, c.get(path+"?x=1", 422).Locs(t))
		require.Equal(t, 404, c.With("x-service-api-key", "other").Send(t, "GET", path, nil).Status, "another team's")
	}
	require.Equal(t, []string{"path.workout_id"}, c.get("/v2/timeseries/workouts/nonsense/stream", 422).Locs(t))
	require.Equal(t, []string{"path.sleep_id"}, c.get("/v2/timeseries/sleep/nonsense/stream", 422).Locs(t))
}

func TestRawRead_returnsTheStoredProviderData(t *testing.T) {
	for keep, opts := range map[bool]*healthdata.Options{true: keepRaw(), false: nil} {
		t.Run(fmt.Sprint("kept ", keep), func(t *testing.T) {
			c := newFixture(t, opts)
			for _, r := range healthdata.Summaries() {
				path, query := c.summary(r.Path)+"/raw", year
				if !r.Raw {
					c.get(path+query, 404)
					continue
				}
				if r.Slug == "profile" {
					query = ""
					c.get(path, 404)
				} else {
					require.JSONEq(t, `{"`+r.ReadKey+`":[]}`, string(c.get(path+query, 200).Body))
				}
				item := r.New()
				require.NoError(t, json.Unmarshal([]byte(whole[r.Slug]), item))
				healthdata.HeadOf(item).Raw = json.RawMessage(`{"theirs":[1.10,"x"]}`)
				_, err := c.health.IngestSummaries(t.Context(), team, c.user, r.Slug,
					healthdata.Upload{Provider: "acme_band"}, []healthdata.Summary{item})
				require.NoError(t, err)
				if !keep {
					if r.Slug == "profile" {
						c.get(path, 404)
					} else {
						require.JSONEq(t, `{"`+r.ReadKey+`":[]}`, string(c.get(path+query, 200).Body))
					}
					continue
				}
				reply := c.get(path+query, 200)
				require.Contains(t, string(reply.Body), `"data":{"theirs":[1.10,"x"]}`)
				require.Contains(t, string(reply.Body), `"source":{"logo":"https://cdn.example/band.png","name":"Acme Band","slug":"acme_band"}`)
				if r.Slug != "profile" {
					require.Contains(t, string(reply.Body), `"provider_id":"`+healthdata.HeadOf(item).ExternalID)
					require.Equal(t, []string{"query.start_date"}, c.get(path, 422).Locs(t))
				}
				c.get(path+strings.Replace("?"+query+"&provider=nobody", "??", "?", 1), map[bool]int{true: 404, false: 200}[r.Slug == "profile"])
			}
			devices := c.summary("devices") + "/raw?provider="
			require.JSONEq(t, `{"devices":[]}`, string(c.get(devices+"acme_band", 200).Body))
			model := "Band 4"
			_, err := c.health.ReceiveDevice(t.Context(), team, c.user, healthdata.Upload{
				Provider: "acme_band", Device: &healthdata.DeviceInfo{ID: &model, Raw: json.RawMessage(`{"theirs":[1.10,"x"]}`)},
			})
			require.NoError(t, err)
			if keep {
				reply := string(c.get(devices, 200).Body)
				require.Contains(t, reply, `"data":{"theirs":[1.10,"x"]}`)
				require.Contains(t, reply, `"provider_id":"Band 4"`)
				require.NotContains(t, reply, "timestamp")
				require.Contains(t, reply, `"source":{"logo":"https://cdn.example/band.png","name":"Acme Band","slug":"acme_band"}`)
			} else {
				require.JSONEq(t, `{"devices":[]}`, string(c.get(devices, 200).Body))
			}
			require.JSONEq(t, `{"devices":[]}`, string(c.get(devices+"nobody", 200).Body))
			require.Equal(t, []string{"query.start_date"}, c.get(c.summary("devices")+"/raw?start_date=2026-01-01", 422).Locs(t))
			c.get("/v2/summary/devices/"+c.foreign.String()+"/raw", 404)
		})
	}
}

// healthPaths are all reads of health data, of a user.
func healthPaths(user healthlab.UserID) (out []string) {
	id := user.String()
	for _, r := range healthdata.Summaries() {
		query := year
		if r.Slug == "profile" {
			query = ""
		}
		out = append(out, "/v2/summary/"+r.Path+"/"+id+query)
		if r.Raw {
			out = append(out, "/v2/summary/"+r.Path+"/"+id+"/raw"+query)
		}
	}
	for _, r := range healthdata.Timeseries() {
		out = append(out, "/v2/timeseries/"+id+"/"+r.Path+"/grouped"+year)
		if r.Legacy {
			out = append(out, "/v2/timeseries/"+id+"/"+r.Path+year)
		}
	}
	return append(out, "/v2/timeseries/"+id+"/cholesterol/ldl"+year, "/v2/summary/devices/"+id+"/raw")
}

func TestReads_refuseUnknownKeysAndOtherTeams(t *testing.T) {
	c := newFixture(t, nil)
	for _, path := range healthPaths(c.user) {
		require.Equal(t, 401, c.With("x-service-api-key", "nobody").Send(t, "GET", path, nil).Status, path)
		require.Equal(t, 404, c.With("x-service-api-key", "other").Send(t, "GET", path, nil).Status, path)
		bare, query, _ := strings.Cut(path, "?")
		want := c.Send(t, "GET", path, nil)
		slashed := c.Send(t, "GET", bare+"/?"+query, nil)
		require.Equal(t, want.Status, slashed.Status, "with a slash at the end")
		require.Equal(t, want.Body, slashed.Body)
	}
	for _, user := range []healthlab.UserID{c.foreign, {UUID: uuid.New()}} {
		for _, path := range healthPaths(user) {
			c.get(path, 404)
		}
	}
	require.NoError(t, c.health.Deletions().Delete(t.Context(), team, c.user))
	for _, path := range healthPaths(c.user) {
		c.get(path, 404)
	}
}

func TestReads_refuseInvalidQueriesByField(t *testing.T) {
	c := newFixture(t, nil)
	for _, path := range []string{c.summary("activity"), c.summary("activity") + "/raw", c.timeseries("heartrate"), c.timeseries("heartrate/grouped"), c.timeseries("cholesterol/ldl")} {
		for query, want := range map[string][]string{
			"":                                 {"query.start_date"},
			"?start_date=":                     {"query.start_date"},
			"?start_date=yesterday":            {"query.start_date"},
			"?start_date=2026-02-30":           {"query.start_date"},
			"?start_date=2026-02-03T25:00:00Z": {"query.start_date"},
			"?start_date=0000-01-01":           {"query.start_date"},
			"?start_date=2026-01-01T00:00:00%2B18:01":                     {"query.start_date"},
			"?start_date=2026-01-01&end_date=x":                           {"query.end_date"},
			"?start_date=2026-01-02&end_date=2026-01-01":                  {"query.end_date"},
			"?start_date=2026-01-01&start_date=2026-01-01":                {"query.start_date"},
			"?start_date=2026-01-01&End_date=2026-01-02":                  {"query.End_date"},
			"?start_date=2026-01-01&limit=3":                              {"query.limit"},
			"?start_date=2026-01-01&provider=a%00b":                       {"query.provider"},
			"?start_date=2026-01-01&provider=%ff":                         {"query.provider"},
			"?start_date=2026-01-01&provider=" + strings.Repeat("x", 300): {"query.provider"},
			"?start_date=x&end_date=y&z=1":                                {"query.start_date", "query.end_date", "query.z"},
		} {
			require.Equal(t, want, c.get(path+query, 422).Locs(t), path+query)
		}
	}
	require.Equal(t, []string{"path.user_id"}, c.get("/v2/summary/activity/not-a-uuid"+year, 422).Locs(t))
	require.Equal(t, []string{"path.user_id", "query.start_date"}, c.get("/v2/timeseries/not-a-uuid/heartrate", 422).Locs(t))
	for _, name := range []string{"activity", "weight", "fat", "moonlight", "Heartrate"} {
		c.get(c.timeseries(name+year), 404)
		c.get(c.timeseries(name+"/grouped"+year), 404)
	}
	c.get("/v2/summary/moonlight/"+c.user.String()+year, 404)
	require.Equal(t, 405, c.Send(t, "DELETE", c.summary("activity"), nil).Status)
}

// A date in a read is a local day of each item. time_zone makes it a day of that zone.
func TestRead_dateIsALocalDayOfEachItem(t *testing.T) {
	c := newFixture(t, nil)
	zoned := func(items string) string {
		return `{"provider":"acme_band","source":{"type":"watch"},"time_zone":"America/New_York","data":[` + items + `]}`
	}
	// 22:00 of 1 March in New York.
	c.post(c.timeseries("heartrate"), zoned(`{"timestamp":"2026-03-02T03:00:00Z","unit":"bpm","value":60}`), 200)
	c.post(c.summary("workouts"), zoned(`{"time_start":"2026-03-02T03:00:00Z","time_end":"2026-03-02T03:30:00Z","sport":""}`), 200)
	c.post(c.summary("activity"), zoned(`{"calendar_date":"2026-03-01"}`), 200)
	paths := map[string]int{
		c.timeseries("heartrate"): 0, c.timeseries("heartrate") + "/grouped": 0, c.summary("workouts"): 0,
	}
	for path := range paths {
		for query, found := range map[string]bool{
			"?start_date=2026-03-01&end_date=2026-03-01":                           true,
			"?start_date=2026-03-02&end_date=2026-03-02":                           false,
			"?start_date=2026-03-02":                                               false,
			"?start_date=2026-03-01&end_date=2026-03-01&time_zone=UTC":             false,
			"?start_date=2026-03-02&end_date=2026-03-02&time_zone=UTC":             true,
			"?start_date=2026-03-02&end_date=2026-03-02&time_zone=Asia/Tokyo":      true,
			"?start_date=2026-03-02T00:00:00Z&end_date=2026-03-02T04:00:00Z":       true,
			"?start_date=2026-03-02T00:00:00Z&end_date=2026-03-01":                 true,
			"?start_date=2026-03-01&end_date=2026-03-02T02:59:59Z":                 false,
			"?start_date=2026-03-01&end_date=2026-03-01&time_zone=America/Chicago": true,
		} {
			body := string(c.get(path+query, 200).Body)
			require.Equal(t, found, strings.Contains(body, "2026-03-02T03:00:00"), "%s%s: %s", path, query, body)
		}
		c.get(path+"?start_date=2026-03-02&end_date=2026-03-01", 422)
		c.get(path+"?start_date=2026-03-02&time_zone=Mars/Olympus", 422)
		c.get(path+"?start_date=2026-03-02&time_zone=&end_date=&provider=", 200)
	}
	require.Contains(t, string(c.get(c.summary("activity")+"?start_date=2026-03-01&end_date=2026-03-01", 200).Body), "2026-03-01")
}
