package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// beats are samples of heart rate, one a minute.
func beats(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = `{"timestamp":"` + fixtureNow.Add(-time.Duration(n-i)*time.Minute).Format(time.RFC3339) + `","unit":"bpm","value":60}`
	}
	return out
}

func (c *fixture) stored() int {
	c.t.Helper()
	list, err := c.health.AllSamples(c.t.Context(), team, c.user, healthdata.SampleQuery{Resource: "heartrate"})
	require.NoError(c.t, err)
	return len(list)
}

func TestUpload_responseCountsNewChangedSameAndDroppedItems(t *testing.T) {
	c := newFixture(t, nil)
	path := c.timeseries("heartrate")
	require.JSONEq(t, `{"new":3,"changed":0,"same":0,"dropped":0}`, string(c.post(path, upload(beats(3)...), 200).Body))
	again := beats(3)
	again[0] = strings.Replace(again[0], `"value":60`, `"value":61`, 1)
	require.JSONEq(t, `{"new":0,"changed":1,"same":2,"dropped":0}`, string(c.post(path, upload(again...), 200).Body))
	require.JSONEq(t, `{"new":0,"changed":0,"same":0,"dropped":0}`, string(c.post(path, upload(), 200).Body))
	require.JSONEq(t, `{"new":3,"changed":0,"same":0,"dropped":0}`, string(c.post(path+"/", strings.Replace(upload(beats(3)...), "watch", "phone", 1), 200).Body),
		"with a slash at the end")

	_, err := c.health.PatchUser(t.Context(), team, c.user, healthdata.UserPatch{IngestionStart: healthdata.SetTo(healthlab.Date{Year: 2026, Month: 3, Day: 5})})
	require.NoError(t, err)
	require.JSONEq(t, `{"new":0,"changed":0,"same":0,"dropped":2}`, string(c.post(path, upload(beats(2)...), 200).Body))
}

// ingestPaths are all operations that take data, with a body that each would take.
func (c *fixture) ingestPaths() map[string]string {
	out := map[string]string{c.timeseries("heartrate"): upload(beats(1)...)}
	for _, r := range healthdata.Summaries() {
		out[c.summary(r.Path)] = upload(whole[r.Slug])
	}
	return out
}

func TestUploads_refuseUnknownKeysAndOtherTeams(t *testing.T) {
	c := newFixture(t, nil)
	for path, body := range c.ingestPaths() {
		require.Equal(t, 401, c.With("x-service-api-key", "nobody").Send(t, "POST", path, body).Status, path)
		require.Equal(t, 404, c.With("x-service-api-key", "other").Send(t, "POST", path, body).Status, path)
		for _, user := range []healthlab.UserID{c.foreign, {UUID: uuid.New()}} {
			c.post(strings.ReplaceAll(path, c.user.String(), user.String()), body, 404)
		}
		require.Equal(t, []string{"path.user_id"}, c.post(strings.ReplaceAll(path, c.user.String(), "me"), body, 422).Locs(t))
		require.Equal(t, []string{"query.x"}, c.post(path+"?x=1", body, 422).Locs(t))

		reply := c.post(path, strings.Replace(body, "acme_band", "acme_ring", 1), 422)
		require.Equal(t, []string{"body.provider"}, reply.Locs(t))
		require.Equal(t, "unknown_provider", reply.ErrorType(t))
	}
	for _, name := range []string{"activity", "weight", "moonlight", "workout_stream"} {
		c.post(c.timeseries(name), upload(), 404)
	}
	c.post("/v2/summary/moonlight/"+c.user.String(), upload(), 404)

	require.NoError(t, c.health.Connections().Disconnect(t.Context(), team, c.user, "acme_band"))
	for path, body := range c.ingestPaths() {
		require.Equal(t, "NO_CONNECTION", c.post(path, body, 400).ErrorType(t))
	}
	require.NoError(t, c.health.Deletions().Delete(t.Context(), team, c.user))
	for path, body := range c.ingestPaths() {
		c.post(path, body, 404)
	}
	require.Empty(t, c.logs.Take(), "a refusal is nobody's alarm")
}

// counted counts what was read of it.
type counted struct {
	io.Reader
	n int
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += n
	return n, err
}

// forever is a body of spaces without an end.
type forever struct{}

func (forever) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

func TestBody_beyondTheLimitAnswers413(t *testing.T) {
	c := newFixture(t, nil)
	const limit = 64 << 10
	small := c.config
	small.MaxIngestBody = limit
	for name, conf := range map[string]struct {
		config mount
		limit  int
	}{"a setting": {small, limit}, "the default": {c.config, 16 << 20}} {
		t.Run(name, func(t *testing.T) {
			doc, err := contract.Read(httpapi.OpenAPI())
			require.NoError(t, err)
			require.NotEmpty(t, doc.Operations())
			h := conf.config.handler()
			for path := range c.ingestPaths() {
				body := &counted{Reader: io.MultiReader(strings.NewReader(`{"provider":"acme_band",`), forever{})}
				r := httptest.NewRequestWithContext(t.Context(), "POST", path, body)
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("x-service-api-key", goodKey)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				require.Equal(t, 413, w.Code, w.Body)
				// A byte more tells that it is longer.
				require.LessOrEqual(t, body.n, conf.limit+1)
				require.Contains(t, w.Body.String(), `"error_type"`)
			}
			// Who is not known, and who says how long it is, is not read at all.
			for header, value := range map[string]string{"x-service-api-key": "nobody"} {
				body := &counted{Reader: forever{}}
				r := httptest.NewRequestWithContext(t.Context(), "POST", c.timeseries("heartrate"), body)
				r.Header.Set(header, value)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				require.Equal(t, 401, w.Code)
				require.Zero(t, body.n)
			}
		})
	}
	client := contract.NewClient(t, small.handler(), httpapi.OpenAPI()).With("x-service-api-key", goodKey)
	fits := upload(beats(1)...)
	fits += strings.Repeat(" ", limit-len(fits))
	client.Send(t, "POST", c.timeseries("heartrate"), fits).Want(t, 200)
	client.Send(t, "POST", c.timeseries("heartrate"), fits+" ").Want(t, 413)
	require.Equal(t, 1, c.stored())
}

func TestBody_ofAnotherContentTypeAnswers415(t *testing.T) {
	c := newFixture(t, nil)
	for _, kind := range []string{"text/plain", "application/xml", "application/json; charset=latin1", "json", ""} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", c.timeseries("heartrate"), strings.NewReader(upload(beats(1)...)))
		if kind != "" {
			r.Header.Set("Content-Type", kind)
		}
		reply := c.Do(t, r)
		require.Equal(t, 415, reply.Status, kind)
	}
	require.Zero(t, c.stored())
}

// Clients and gateways write the content type of JSON in several ways.
func TestBody_contentTypeOfJSONIsAcceptedAsClientsWriteIt(t *testing.T) {
	for kind, status := range map[string]int{
		"APPLICATION/JSON":                                200,
		"application/json;":                               200,
		"application/json; charset=UTF-8":                 200,
		`application/json;charset="utf8"`:                 200,
		"application/json; charset='utf-8'":               200,
		"application/json; charset=UTF_8":                 200,
		"application/json; charset=us-ascii":              200,
		"application/json; charset=":                      200,
		"application/json; charset":                       200,
		"application/json; odata=verbose; charset=utf-8":  200,
		"application/json; charset=utf-8; charset=utf-8":  200,
		`application/json; profile="a,b;c"`:               200,
		"application/json, application/json":              200,
		"application/vnd.api+json":                        200,
		"application/ld+json; charset=utf-8":              200,
		"application/json, text/plain":                    415,
		"application/json; charset=utf-8; charset=latin1": 415,
		"application/vnd.api+json; charset=iso-8859-1":    415,
		"application/json; charset=utf-16":                415,
		"text/json":                                       415,
		"image/svg+json":                                  415,
		"application/jsonx":                               415,
		"application/x-www-form-urlencoded":               415,
		"*/*":                                             415,
	} {
		t.Run(strings.ReplaceAll(kind, "/", "_"), func(t *testing.T) {
			c := newFixture(t, nil)
			req := httptest.NewRequestWithContext(t.Context(), "POST", c.timeseries("heartrate"), strings.NewReader(upload(beats(1)...)))
			req.Header.Set("x-service-api-key", goodKey)
			req.Header.Set("Content-Type", kind)
			answer := httptest.NewRecorder()
			c.config.handler().ServeHTTP(answer, req)
			require.Equal(t, status, answer.Code, answer.Body)
		})
	}
}

// refusedItem returns the fields and types of the problems of the only refused item of an answer,
// which stands at index.
func refusedItem(t *testing.T, body []byte, index int) (fields, types []string) {
	t.Helper()
	var got healthdata.Counts
	require.NoError(t, json.Unmarshal(body, &got))
	require.Equal(t, 1, got.RefusedCount, string(body))
	require.Len(t, got.Refused, 1)
	require.Equal(t, index, got.Refused[0].Index)
	for _, p := range got.Refused[0].Problems {
		require.NotEmpty(t, p.Msg)
		fields, types = append(fields, p.Field), append(types, p.Type)
	}
	return fields, types
}

// Of a hundred samples with a bad one, the others are stored, and the answer lists the problems of the
// bad one by their path, without a value. With atomic, nothing is stored.
func TestUpload_invalidSampleIsNamedByPathWithoutItsValue(t *testing.T) {
	const marker = "Qz7Marker9xW"
	at := `"timestamp":"2026-03-01T07:00:00Z","unit":"bpm"`
	for name, c := range map[string]struct {
		bad  string
		want []string
		code string
	}{
		"no timestamp":        {`{"unit":"bpm","value":60}`, []string{"timestamp"}, "missing"},
		"no unit":             {`{"timestamp":"2026-03-01T07:00:00Z","value":60}`, []string{"unit"}, "missing"},
		"no value":            {`{` + at + `}`, []string{"value"}, "missing"},
		"unit":                {`{"timestamp":"2026-03-01T07:00:00Z","unit":"` + marker + `","value":60}`, []string{"unit"}, "unit"},
		"value of a text":     {`{` + at + `,"value":"` + marker + `"}`, []string{"value"}, "type"},
		"value of a list":     {`{` + at + `,"value":["` + marker + `"]}`, []string{"value"}, ""},
		"value beyond":        {`{` + at + `,"value":1e999}`, []string{"value"}, ""},
		"year 0":              {`{"timestamp":"0000-12-31T23:59:59Z","unit":"bpm","value":60}`, []string{"timestamp"}, ""},
		"year 0 by offset":    {`{"timestamp":"0001-01-01T00:00:00+01:00","unit":"bpm","value":60}`, []string{"timestamp"}, ""},
		"year 10000":          {`{"timestamp":"9999-12-31T23:59:59-01:00","unit":"bpm","value":60}`, []string{"timestamp"}, ""},
		"offset of 18:01":     {`{"timestamp":"2026-03-01T07:00:00+18:01","unit":"bpm","value":60}`, []string{"timestamp"}, ""},
		"offset field":        {`{` + at + `,"value":60,"timezone_offset":64801}`, []string{"timezone_offset"}, "range"},
		"offset fraction":     {`{` + at + `,"value":60,"timezone_offset":0.5}`, []string{"timezone_offset"}, "not_integer"},
		"no such day":         {`{"timestamp":"2026-02-29T07:00:00Z","unit":"bpm","value":60}`, []string{"timestamp"}, ""},
		"words":               {`{"timestamp":"` + marker + `","unit":"bpm","value":60}`, []string{"timestamp"}, ""},
		"NUL":                 {`{` + at + `,"value":60,"type":"` + marker + `\u0000"}`, []string{"type"}, "nul"},
		"lone surrogate":      {`{` + at + `,"value":60,"type":"` + marker + `\ud800"}`, []string{"type"}, "not_unicode"},
		"unknown key":         {`{` + at + `,"value":60,"` + strings.ToLower("Pulse") + `":1}`, []string{"pulse"}, "unknown_key"},
		"key in another case": {`{` + at + `,"Value":60,"value":61}`, []string{"Value"}, "key_case"},
		"duplicate key":       {`{` + at + `,"value":60,"value":61}`, []string{"value"}, "duplicate_key"},
		"null":                {`null`, []string{""}, ""},
		"a text":              {`"` + marker + `"`, []string{""}, ""},
		"field of another":    {`{` + at + `,"value":60,"sensor_location":"ear"}`, []string{"sensor_location"}, "not_allowed"},
		"blood pressure":      {`{` + at + `,"value":60,"systolic":1,"diastolic":2}`, []string{"systolic"}, "not_allowed"},
		"several":             {`{"timestamp":"x","unit":7,"value":true}`, []string{"timestamp", "unit", "value"}, ""},
		"several of the rules": {`{"timestamp":"2026-03-09T07:00:00Z","unit":"` + marker + `","value":60,"tags":["food"],"timezone_offset":-64801}`,
			[]string{"timezone_offset", "tags", "unit"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			fixture := newFixture(t, nil)
			data := beats(100)
			data[41] = c.bad
			secret := func(body []byte) {
				require.NotContains(t, string(body), marker)
				require.NotContains(t, string(body), "64801")
				require.Empty(t, fixture.logs.Take())
			}
			reply := fixture.post(fixture.timeseries("heartrate")+"?atomic=true", upload(data...), 422)
			var want []string
			for _, field := range c.want {
				want = append(want, strings.TrimSuffix("body.data.41."+field, "."))
			}
			require.Equal(t, want, reply.Locs(t), string(reply.Body))
			if c.code != "" {
				require.Equal(t, c.code, reply.ErrorType(t))
			}
			secret(reply.Body)
			require.Zero(t, fixture.stored(), "nothing is stored")

			reply = fixture.post(fixture.timeseries("heartrate"), upload(data...), 200)
			fields, types := refusedItem(t, reply.Body, 41)
			require.Equal(t, c.want, fields)
			if c.code != "" {
				require.Equal(t, c.code, types[0])
			}
			secret(reply.Body)
			require.Equal(t, 99, fixture.stored())
			for i := range want {
				want[i] = strings.Replace(want[i], ".41", ".0", 1)
			}
			require.Equal(t, want, fixture.post(fixture.timeseries("heartrate"), upload(c.bad), 422).Locs(t), "no item is left")
		})
	}
}

func TestUpload_namesEveryInvalidSample(t *testing.T) {
	c := newFixture(t, nil)
	data := beats(30)
	var want []string
	for i := 0; i < len(data); i += 7 {
		data[i] = strings.Replace(data[i], `"bpm"`, `"kg"`, 1)
		want = append(want, fmt.Sprintf("body.data.%d.unit", i))
	}
	path := c.timeseries("heartrate")
	require.Equal(t, want, c.post(path+"?atomic=1", upload(data...), 422).Locs(t))
	require.Zero(t, c.stored())
	var got healthdata.Counts
	require.NoError(t, json.Unmarshal(c.post(path+"?atomic=", upload(data...), 200).Body, &got))
	require.Equal(t, []int{len(data) - len(want), len(want)}, []int{got.New, got.RefusedCount})
	for i, item := range got.Refused {
		require.Equal(t, want[i], fmt.Sprintf("body.data.%d.%s", item.Index, item.Problems[0].Field))
	}
	require.Equal(t, len(data)-len(want), c.stored())
}

// At most 100 refused items are named, the first by index, whether their reading or a check finds the
// problem; all are counted. The problems of one item are bounded too.
func TestUpload_namesAtMost100RefusedItems(t *testing.T) {
	c := newFixture(t, nil)
	data := beats(600)
	var named []int
	for i := range data {
		switch i % 4 {
		case 0:
			data[i] = `{"timestamp":7}`
		case 1, 2:
			data[i] = strings.Replace(data[i], `"bpm"`, `"kg"`, 1)
		default:
			continue
		}
		if len(named) < healthdata.MostRefusals {
			named = append(named, i)
		}
	}
	var got healthdata.Counts
	require.NoError(t, json.Unmarshal(c.post(c.timeseries("heartrate"), upload(data...), 200).Body, &got))
	require.Equal(t, []int{150, 450}, []int{got.New, got.RefusedCount})
	var indices []int
	for _, item := range got.Refused {
		indices = append(indices, item.Index)
	}
	require.Equal(t, named, indices)

	// Many items that cannot be read stand before the first that can, and is refused by a check.
	late := append(slices.Repeat([]string{`7`}, 500), strings.Replace(beats(1)[0], `"bpm"`, `"kg"`, 1), beats(1)[0])
	got = healthdata.Counts{}
	require.NoError(t, json.Unmarshal(c.post(c.timeseries("heartrate"), upload(late...), 200).Body, &got))
	require.Equal(t, []int{1, 501, 100, 99}, []int{got.Same, got.RefusedCount, len(got.Refused), got.Refused[99].Index})

	all := c.post(c.timeseries("heartrate"), upload(slices.Repeat([]string{`7`}, 500)...), 422)
	locs := all.Locs(t)
	require.Len(t, locs, 101)
	require.Equal(t, []string{"body.data.0", "body.data.99", "body.data"}, []string{locs[0], locs[99], locs[100]})
	require.Contains(t, string(all.Body), `"ctx":{"refused_count":500}`)

	var keys strings.Builder
	for i := range 300 {
		fmt.Fprintf(&keys, `"k%d":1,`, i)
	}
	reply := c.post(c.timeseries("heartrate"), upload(beats(1)[0], `{`+keys.String()+`"unit":"bpm"}`), 200)
	fields, _ := refusedItem(t, reply.Body, 1)
	require.Len(t, fields, healthdata.MostItemProblems)
}

func TestUpload_malformedBodyIsRefusedByField(t *testing.T) {
	c := newFixture(t, nil)
	for name, tt := range map[string]struct {
		body string
		want []string
	}{
		"nothing":           {``, []string{"body"}},
		"not JSON":          {`{"provider":`, []string{"body.provider"}},
		"NaN":               {`{"provider":"acme_band","data":[{"timestamp":"2026-03-01T07:00:00Z","unit":"bpm","value":NaN}]}`, []string{"body.data.0.value"}},
		"Infinity":          {`{"provider":"acme_band","data":[{"timestamp":"2026-03-01T07:00:00Z","unit":"bpm","value":-Infinity}]}`, []string{"body.data.0.value"}},
		"two values":        {upload() + upload(), []string{"body"}},
		"a list":            {`[]`, []string{"body"}},
		"null":              {`null`, []string{"body"}},
		"empty":             {`{}`, []string{"body.data", "body.provider"}},
		"data is null":      {`{"provider":"acme_band","data":null}`, []string{"body.data"}},
		"data is an object": {`{"provider":"acme_band","data":{}}`, []string{"body.data"}},
		"twice":             {`{"provider":"acme_band","provider":"manual","data":[]}`, []string{"body.provider"}},
		"unknown key":       {`{"provider":"acme_band","data":[],"user":"x"}`, []string{"body.user"}},
		"stage":             {`{"provider":"acme_band","stage":"weekly","data":[]}`, []string{"body.stage"}},
		"zone":              {`{"provider":"acme_band","time_zone":"Mars/Olympus","data":[]}`, []string{"body.time_zone"}},
		"NUL":               {`{"provider":"acme\u0000band","data":[]}`, []string{"body.provider"}},
		"source":            {`{"provider":"acme_band","source":{"type":1,"device_id":"x","logo":"y"},"data":[]}`, []string{"body.source.device_id", "body.source.logo", "body.source.type"}},
		"long source":       {`{"provider":"acme_band","source":{"type":"` + strings.Repeat("x", 257) + `"},"data":[]}`, []string{"body.source.type"}},
		"dates in disorder": {`{"provider":"acme_band","start_date":"2026-03-02T00:00:00Z","end_date":"2026-03-01T23:59:59Z","data":[]}`, []string{"body.end_date"}},
		"dates":             {`{"provider":"acme_band","start_date":"yesterday","end_date":3,"data":[]}`, []string{"body.end_date", "body.start_date"}},
	} {
		t.Run(name, func(t *testing.T) {
			var body any = tt.body
			reply := c.post(c.timeseries("heartrate"), body, 422)
			got := reply.Locs(t)
			slices.Sort(got)
			require.Equal(t, tt.want, got, string(reply.Body))
		})
	}
	bytes := bytes.Replace([]byte(upload(beats(1)...)), []byte("bpm"), []byte("\xff\xfe"), 1)
	require.Equal(t, []string{"body.data.0.unit"}, c.post(c.timeseries("heartrate"), bytes, 422).Locs(t))
	require.Equal(t, []string{"body.source.workout_id", "body.source.sport"},
		c.post(c.timeseries("workout_distance"), upload(), 422).Locs(t), "samples of a workout say which")
	require.Zero(t, c.stored())
}

func TestUpload_invalidSummaryIsRefusedByField(t *testing.T) {
	session := `"time_start":"2026-03-01T07:00:00Z","time_end":"2026-03-01T08:00:00Z"`
	for name, tt := range map[string]struct {
		resource, bad string
		want          []string
	}{
		"what we derive":   {"activity", `{"calendar_date":"2026-03-01","id":"6f1c0b52-0000-4000-8000-000000000001","created_at":"2026-03-01T07:00:00Z"}`, []string{"id", "created_at"}},
		"a date-time":      {"activity", `{"calendar_date":"2026-03-01T00:00:00Z"}`, []string{"calendar_date"}},
		"no day":           {"activity", `{}`, []string{"calendar_date"}},
		"a fraction":       {"activity", `{"calendar_date":"2026-03-01","steps":1.5}`, []string{"steps"}},
		"nested":           {"activity", `{"calendar_date":"2026-03-01","heart_rate":{"avg_bpm":"x","pulse":1}}`, []string{"heart_rate.avg_bpm", "heart_rate.pulse"}},
		"offset":           {"sleep", `{"bedtime_start":"2026-03-01T05:00:00Z","bedtime_stop":"2026-03-01T06:00:00Z","timezone_offset":64801}`, []string{"timezone_offset"}},
		"sport":            {"workouts", `{` + session + `,"sport":"running"}`, []string{"sport"}},
		"sport twice":      {"workouts", `{` + session + `,"sport":{"slug":"a","slug":"b"}}`, []string{"sport.slug"}},
		"zones":            {"workouts", `{` + session + `,"hr_zones":[1,"x",null]}`, []string{"hr_zones.1", "hr_zones.2"}},
		"stages":           {"sleep_cycle", `{"session_start":"2026-03-01T05:00:00Z","session_end":"2026-03-01T06:00:00Z","stage_start_offset_second":[0.5],"stage_end_offset_second":[],"stage_type":["rem"]}`, []string{"stage_start_offset_second.0", "stage_type.0"}},
		"a food":           {"meal", `{"timestamp":"2026-03-01T05:00:00Z","name":"x","data":{"Soup":{"energy":{"unit":"furlong","value":1}}}}`, []string{"data.*.energy.unit"}},
		"a day":            {"menstrual_cycle", `{"period_start":"2026-03-01","ovulation_test":[{"date":"2026-03-01"}]}`, []string{"ovulation_test.0.test_result"}},
		"a cause":          {"electrocardiogram", `{"session_start":"2026-03-01T05:00:00Z","session_end":"2026-03-01T06:00:00Z","voltage_sample_count":1,"inconclusive_cause":"x"}`, []string{"inconclusive_cause"}},
		"a body of no day": {"body", `{"weight":70}`, []string{"measured_at"}},
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			for _, field := range tt.want {
				want = append(want, "body.data.1."+field)
			}
			c := newFixture(t, nil)
			stored := func() int {
				list, err := c.health.Summaries(t.Context(), team, c.user, healthdata.SummaryQuery{Resource: tt.resource})
				require.NoError(t, err)
				return len(list)
			}
			body := upload(least[tt.resource], tt.bad)
			require.Equal(t, want, c.post(c.summary(tt.resource)+"?atomic=true", body, 422).Locs(t))
			require.Zero(t, stored())
			fields, _ := refusedItem(t, c.post(c.summary(tt.resource), body, 200).Body, 1)
			require.Equal(t, tt.want, fields)
			require.Equal(t, 1, stored())
		})
	}
	c := newFixture(t, nil)
	// Some sources write whole numbers with a point.
	c.post(c.summary("activity"), upload(`{"calendar_date":"2026-03-01","steps":78.0}`), 200)
	c.post(c.summary("sleep_cycle"), upload(`{"session_start":"2026-03-01T05:00:00Z","session_end":"2026-03-01T06:00:00Z",
		"stage_start_offset_second":[0.0],"stage_end_offset_second":[60.0],"stage_type":[1]}`), 200)
}

// A sleep over a flight has the offsets of both airports, and the day of its end.
func TestSleep_acrossTimeZonesHasBothOffsetsAndTheDayOfItsEnd(t *testing.T) {
	c := newFixture(t, nil)
	c.post(c.summary("sleep"), upload(`{"bedtime_start":"2026-03-01T22:00:00+09:00","bedtime_stop":"2026-03-01T23:30:00+01:00"}`), 200)
	var got struct{ Sleep []healthdata.Sleep }
	c.get(c.summary("sleep")+year, 200).JSON(t, &got)
	require.Len(t, got.Sleep, 1)
	s := got.Sleep[0]
	require.Equal(t, []int{9 * 3600, 3600, 3600}, []int{*s.StartTimezoneOffset, *s.EndTimezoneOffset, *s.TimezoneOffset})
	require.Equal(t, "2026-03-01", s.CalendarDate.String())
	require.Equal(t, "2026-03-01T13:00:00+00:00", s.BedtimeStart.String())
}

// Uploaded values appear only in reads of the user's data: not in the log, although odd
// values are logged, and not in the answer to a refused request.
func TestUpload_valuesAppearInNoLogOrRefusal(t *testing.T) {
	c := newFixture(t, nil)
	const text, number = "Qz7Marker9xW", "864209.75"
	secret := func(s string) {
		t.Helper()
		require.NotContains(t, s, text)
		require.NotContains(t, s, number)
	}
	at := `"timestamp":"2026-03-01T07:00:00Z","end":"2026-03-01T08:00:00Z"`
	for path, item := range map[string]string{
		c.timeseries("blood_oxygen"): `{` + at + `,"unit":"%","value":` + number + `}`,
		c.timeseries("steps"):        `{` + at + `,"unit":"count","value":-` + number + `}`,
	} {
		secret(string(c.post(path, upload(item), 422).Body))
	}
	for path, item := range map[string]string{
		c.timeseries("note"):  `{` + at + `,"unit":"text","value":"` + text + `","tags":["` + text + `"]}`,
		c.timeseries("ige"):   `{` + at + `,"unit":"FSU","value":` + number + `,"type":"` + text + `"}`,
		c.summary("activity"): `{"calendar_date":"2026-03-01","distance":` + number + `,"external_id":"` + text + `"}`,
		c.summary("workouts"): strings.Replace(whole["workouts"], "Morning run", text, 1),
		c.summary("meal"):     strings.Replace(whole["meal"], "Soup", text, 1),
	} {
		body := strings.Replace(upload(item), `"watch"`, `"`+text+`","app_id":"`+text+`"`, 1)
		c.post(path, body, 200)
		// The same with a refused item, and refused: by a rule of the head, and by none.
		secret(string(c.post(path, strings.Replace(body, item, item+`,{"unit":"`+text+`"}`, 1), 200).Body))
		secret(string(c.post(path+"?atomic=true", strings.Replace(body, item, item+`,{"unit":"`+text+`"}`, 1), 422).Body))
		secret(string(c.post(path, strings.Replace(body, "acme_band", text, 1), 422).Body))
		secret(string(c.post(path, strings.Replace(body, `"data"`, `"time_zone":"`+text+`","data"`, 1), 422).Body))
		secret(string(c.With("x-service-api-key", text).Send(t, "POST", path, body).Body))
		secret(string(c.With("x-service-api-key", "other").Send(t, "POST", path, body).Body))
	}
	logged := c.logs.Take()
	secret(logged)
	for _, path := range healthPaths(c.user) {
		bare, _, _ := strings.Cut(path, "?")
		secret(string(c.get(bare+"?x="+text+"&provider="+text+"%00", 422).Body))
	}
	secret(c.logs.Take())
}

// Samples that a person deletes on the phone are deleted in the store; repeating the request
// changes nothing.
func TestRemoval_deletesSamplesAndIsIdempotent(t *testing.T) {
	c := newFixture(t, nil)
	path := c.timeseries("heartrate")
	c.post(path, upload(beats(5)...), 200)
	at := func(minutes int) string {
		return `"` + fixtureNow.Add(-time.Duration(minutes)*time.Minute).Format(time.RFC3339) + `"`
	}
	body := `{"provider":"acme_band","source":{"type":"watch"},"timestamps":[` + at(2) + `,` + at(4) + `,` + at(2) + `,` + at(900) + `]}`
	require.JSONEq(t, `{"removed":2}`, string(c.post(path+"/remove", body, 200).Body))
	require.JSONEq(t, `{"removed":0}`, string(c.post(path+"/remove", body, 200).Body))
	require.Equal(t, 3, c.stored())
	require.JSONEq(t, `{"removed":0}`, string(c.post(path+"/remove", strings.Replace(body, "watch", "phone", 1), 200).Body), "another source's")
	require.JSONEq(t, `{"new":2,"changed":0,"same":3,"dropped":0}`, string(c.post(path, upload(beats(5)...), 200).Body))

	require.Equal(t, []string{"body.provider"}, c.post(path+"/remove", strings.Replace(body, "acme_band", "acme_ring", 1), 422).Locs(t))
	require.Equal(t, []string{"body.type"}, c.post(path+"/remove", strings.Replace(body, `"timestamps"`, `"type":"x","timestamps"`, 1), 422).Locs(t))
	require.Equal(t, []string{"body.type"}, c.post(c.timeseries("cholesterol/ldl")[:len(c.timeseries(""))]+"cholesterol/remove", body, 422).Locs(t))
	require.Equal(t, []string{"body.timestamps.1"}, c.post(path+"/remove", `{"provider":"acme_band","timestamps":["2026-03-01T07:00:00Z","noon"]}`, 422).Locs(t))
	c.post(strings.ReplaceAll(path, c.user.String(), c.foreign.String())+"/remove", body, 404)
	c.post(c.timeseries("sleep")+"/remove", body, 404)

	nap := strings.Replace(whole["sleep"], `"external_id":"s1"`, `"external_id":"nap-1"`, 1)
	c.post(c.summary("sleep"), upload(nap), 200)
	remove := `{"provider":"acme_band","source":{"type":"watch"},"external_ids":["nap-1","nap-2"]}`
	require.JSONEq(t, `{"removed":1}`, string(c.post(c.summary("sleep")+"/remove", remove, 200).Body))
	require.JSONEq(t, `{"removed":0}`, string(c.post(c.summary("sleep")+"/remove", remove, 200).Body))
	require.JSONEq(t, `{"sleep":[]}`, string(c.get(c.summary("sleep")+"?start_date=2020-01-01", 200).Body))
	require.Equal(t, []string{"body.external_ids"}, c.post(c.summary("activity")+"/remove", remove, 422).Locs(t))
	require.Equal(t, []string{"body.external_ids.1"}, c.post(c.summary("sleep")+"/remove", `{"provider":"acme_band","external_ids":["a",""]}`, 422).Locs(t))
	c.post(c.summary("heartrate")+"/remove", remove, 404)
}

// A removal in a series of several chunks deletes chunks that the request has looked up before.
func TestRemoval_fromALongSeriesDeletesWholeChunks(t *testing.T) {
	const n = 3000
	for name, gone := range map[string]func(i int) bool{
		"one in the middle":   func(i int) bool { return i == n/2 },
		"every second one":    func(i int) bool { return i%2 == 0 },
		"a day in the middle": func(i int) bool { return i >= 1000 && i < 2440 },
		"all but the last":    func(i int) bool { return i < n-1 },
		"all":                 func(int) bool { return true },
	} {
		t.Run(name, func(t *testing.T) {
			c := newFixture(t, nil)
			path, items := c.timeseries("heartrate"), beats(n)
			c.post(path, upload(items...), 200)
			var at, left []string
			for i, item := range items {
				if gone(i) {
					at = append(at, strings.Split(item, `"`)[3])
				} else {
					left = append(left, item)
				}
			}
			body := `{"provider":"acme_band","source":{"type":"watch"},"timestamps":["` + strings.Join(at, `","`) + `"]}`
			require.JSONEq(t, fmt.Sprintf(`{"removed":%d}`, len(at)), string(c.post(path+"/remove", body, 200).Body))
			require.Equal(t, len(left), c.stored())
			require.JSONEq(t, `{"removed":0}`, string(c.post(path+"/remove", body, 200).Body))
			require.JSONEq(t, fmt.Sprintf(`{"new":%d,"changed":0,"same":%d,"dropped":0}`, len(at), len(left)), string(c.post(path, upload(items...), 200).Body))
		})
	}
}

// An upload whose offsets come from the fallback zone looks up the stored offsets, in a series of several chunks too.
func TestUpload_afterAChangeOfTheFallbackZoneReplacesStoredSamples(t *testing.T) {
	now := fixtureNow
	c := newFixture(t, &healthdata.Options{Now: func() time.Time { return now }})
	path, items := c.timeseries("heartrate"), beats(3000)
	c.post(path, upload(items...), 200)
	now = now.Add(time.Minute)
	c.Send(t, "PATCH", "/v2/user/"+c.user.String(), `{"fallback_time_zone":"Asia/Tokyo"}`).Want(t, 204)
	others := strings.Split(strings.ReplaceAll(strings.Join(items, "\n"), `"value":60`, `"value":61`), "\n")
	require.JSONEq(t, `{"new":0,"changed":3000,"same":0,"dropped":0}`, string(c.post(path, upload(others...), 200).Body))
	require.JSONEq(t, `{"new":0,"changed":1,"same":0,"dropped":0}`, string(c.post(path, upload(items[100]), 200).Body))
	require.Equal(t, 3000, c.stored())
}

// Clients whose numbers are all floating point write whole numbers as 3600.0, in every field of an upload.
func TestUploads_acceptWholeNumbersWithAFraction(t *testing.T) {
	var check func(t *testing.T, of reflect.Type, seen map[reflect.Type]bool)
	check = func(t *testing.T, of reflect.Type, seen map[reflect.Type]bool) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || seen[of] || of.PkgPath() != reflect.TypeFor[healthdata.Sample]().PkgPath() {
			return
		}
		seen[of] = true
		for i := range of.NumField() {
			f := of.Field(i)
			words := strings.Split(f.Tag.Get("wire"), ",")
			if f.Tag.Get("json") == "-" || !f.IsExported() || slices.Contains(words, "out") {
				continue
			}
			number := f.Type
			for number.Kind() == reflect.Pointer || number.Kind() == reflect.Slice {
				number = number.Elem()
			}
			if number.Kind() == reflect.Int || number.Kind() == reflect.Int64 {
				require.Contains(t, words, "tolerant", f.Name)
			}
			check(t, f.Type, seen)
		}
	}
	for _, v := range []any{
		healthdata.Sample{}, healthdata.Activity{}, healthdata.Sleep{}, healthdata.SleepCycle{}, healthdata.Body{}, healthdata.Workout{}, healthdata.Profile{},
		healthdata.Meal{}, healthdata.MenstrualCycle{}, healthdata.Electrocardiogram{}, healthdata.WorkoutStream{},
	} {
		t.Run(reflect.TypeOf(v).Name(), func(t *testing.T) { check(t, reflect.TypeOf(v), map[reflect.Type]bool{}) })
	}
	c := newFixture(t, nil)
	c.post(c.timeseries("heartrate"), upload(`{"timestamp":"2026-03-01T07:00:00Z","unit":"bpm","value":60,"timezone_offset":3600.0}`), 200)
	require.Contains(t, string(c.get(c.timeseries("heartrate/grouped"+year), 200).Body), `"timezone_offset":3600`)
}

// A device that an upload names is there to be read, by its id in the data.
func TestDevice_namedByAnUploadIsListedWithItsID(t *testing.T) {
	c := newFixture(t, nil)
	body := strings.Replace(upload(beats(2)...), `"type":"watch"`, `"type":"watch","device":{"id":"serial-1","manufacturer":"Acme","model":"Band 4"}`, 1)
	c.post(c.timeseries("heartrate"), body, 200)
	var list []healthdata.Device
	path := "/v2/user/" + c.user.String() + "/device"
	c.get(path, 200).JSON(t, &list)
	require.Len(t, list, 1)
	require.Equal(t, "Band 4", *list[0].Model)
	require.Contains(t, string(c.get(c.timeseries("heartrate")+"/grouped?start_date=2026-03-01", 200).Body), `"device_id":"`+list[0].ID.String()+`"`)
	var one healthdata.Device
	c.get(path+"/"+list[0].ID.String(), 200).JSON(t, &one)
	require.Equal(t, list[0], one)
	c.get(path+"/"+uuid.NewString(), 404)
	require.Equal(t, []string{"path.device_id"}, c.get(path+"/mine", 422).Locs(t))
	c.get("/v2/user/"+c.foreign.String()+"/device", 404)
	require.Equal(t, []string{"body.source.device"}, c.post(c.timeseries("heartrate"), strings.Replace(body, `"id":"serial-1","manufacturer":"Acme","model":"Band 4"`, "", 1), 422).Locs(t))
}

// A time without an offset is local time in the time_zone of the body, or refused.
func TestTimeWithoutOffset_isLocalInTheBodysTimeZoneOrRefused(t *testing.T) {
	c := newFixture(t, nil)
	body := func(zone, at string) string {
		return `{"provider":"acme_band","source":{"type":"watch"}` + zone + `,"data":[{"timestamp":"` + at + `","unit":"bpm","value":60}]}`
	}
	refused := c.post(c.timeseries("heartrate"), body("", "2026-02-20T10:00:00"), 422)
	require.Equal(t, []string{"body.data.0.timestamp"}, refused.Locs(t))
	// The contract's format date-time has an offset; this client sends none.
	send := func(doc string) {
		req := httptest.NewRequestWithContext(t.Context(), "POST", c.timeseries("heartrate"), strings.NewReader(doc))
		req.Header.Set("x-service-api-key", goodKey)
		req.Header.Set("Content-Type", "application/json")
		answer := httptest.NewRecorder()
		c.config.handler().ServeHTTP(answer, req)
		require.Equal(t, 200, answer.Code, answer.Body.String())
	}
	send(body(`,"time_zone":"America/New_York"`, "2026-02-20T10:00:00"))
	read := string(c.get(c.timeseries("heartrate/grouped"+year), 200).Body)
	require.Contains(t, read, `"timestamp":"2026-02-20T15:00:00+00:00"`)
	require.Contains(t, read, `"timezone_offset":-18000`)
	// The short forms of ISO 8601, too.
	for _, short := range []string{"2026-02-20T10:00", "2026-02-20 9:00", "2026-02-20T10:00:00,5"} {
		require.Equal(t, []string{"body.data.0.timestamp"}, c.post(c.timeseries("heartrate"), body("", short), 422).Locs(t), short)
		for _, offset := range []string{"Z", "+01", "-0530", "+01:00"} {
			send(body("", short+offset))
		}
	}
}

// The answer to an upload with a refused item.
func TestUpload_answerNamesTheRefusedItem(t *testing.T) {
	c := newFixture(t, nil)
	data := beats(3)
	data[1] = `{"timestamp":"2026-03-01T06:00:00Z","unit":"bpm","value":5000}`
	require.JSONEq(t, `{"new":2,"changed":0,"same":0,"dropped":0,"refused":[
		{"index":1,"problems":[{"field":"value","type":"out_of_bounds","msg":"must be 10 to 400 bpm"}]}],"refused_count":1}`,
		string(c.post(c.timeseries("heartrate"), upload(data...), 200).Body))
	require.Equal(t, []string{"body.data.0.value"}, c.post(c.timeseries("heartrate"), upload(data[1]), 422).Locs(t))
}
