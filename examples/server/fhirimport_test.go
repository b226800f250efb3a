package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/devices/fileupload"
)

func observations(p *program, user, interval string) json.RawMessage {
	p.Helper()
	var out json.RawMessage
	ask(p, "GET", "/fhir/r4/Observation?patient="+user+"&interval="+interval+"&date=ge2026-03-01&date=lt2026-03-02&_count=500", "", http.StatusOK, &out)
	return out
}

// valuesOf returns the values of Observations by time and measurement, but for those that are means of what changes
// within minutes.
func valuesOf(t *testing.T, bundle json.RawMessage, left ...string) map[string]string {
	t.Helper()
	type valued struct {
		Code             struct{ Coding []struct{ Code string } }
		ValueQuantity    json.RawMessage
		ValueSampledData json.RawMessage
	}
	var b struct {
		Entry []struct {
			Resource struct {
				valued
				EffectiveDateTime string
				EffectivePeriod   json.RawMessage
				Component         []valued
			}
		}
	}
	require.NoError(t, json.Unmarshal(bundle, &b))
	out := map[string]string{}
	for _, e := range b.Entry {
		r := &e.Resource
		name := r.Code.Coding[len(r.Code.Coding)-1].Code
		value := string(r.ValueQuantity)
		for _, c := range r.Component {
			value += string(c.ValueQuantity) + string(c.ValueSampledData)
		}
		out[name+" "+r.EffectiveDateTime+string(r.EffectivePeriod)] = value
	}
	for key := range out {
		for _, name := range left {
			if strings.HasPrefix(key, name+" ") {
				delete(out, key)
			}
		}
	}
	return out
}

// What the server gives of a person as FHIR is taken for another one: sums and slow values by hours, the others as
// samples, and days as the day's activity.
func TestFHIRImport_acceptsWhatTheServerExports(t *testing.T) {
	t.Parallel()
	p := start(t)
	ana, ben := userNamed(p, "fhir-ana"), userNamed(p, "fhir-ben")
	at := func(minute int) string {
		return time.Date(2026, 3, 1, 8, minute, 0, 0, time.FixedZone("", 3600)).Format(time.RFC3339)
	}
	send := func(resource, kind, unit string, values ...float64) {
		var items []string
		for i, v := range values {
			when := fmt.Sprintf(`"timestamp":%q`, at(20*i))
			switch kind {
			case "interval":
				when = fmt.Sprintf(`"start":%q,"end":%q`, at(20*i), at(20*i+10))
			case "moment":
				when = fmt.Sprintf(`"start":%q,"end":%q`, at(20*i), at(20*i))
			}
			items = append(items, fmt.Sprintf(`{%s,"value":%v,"unit":%q}`, when, v, unit))
		}
		post(p, "/v2/timeseries/"+ana+"/"+resource, `{"provider":"manual","source":{"type":"watch"},"data":[`+strings.Join(items, ",")+`]}`)
	}
	send("heartrate", "instant", "bpm", 60, 62, 64, 70)
	send("glucose", "instant", "mmol/L", 5.5, 5.6)
	send("respiratory_rate", "instant", "bpm", 14, 15)
	send("blood_oxygen", "instant", "%", 97)
	send("hrv_sdnn", "instant", "ms", 48)
	send("body_temperature", "moment", "°C", 36.9)
	send("body_mass_index", "moment", "index", 23.5)
	send("body_weight", "instant", "kg", 70.5)
	send("steps", "interval", "count", 100, 200, 300, 50)
	send("distance", "interval", "m", 80, 160, 240, 40)
	send("calories_active", "interval", "kcal", 4, 8, 12, 2)
	post(p, "/v2/timeseries/"+ana+"/blood_pressure", `{"provider":"manual","source":{"type":"cuff"},"data":[{"timestamp":"`+at(0)+`","systolic":121,"diastolic":79,"unit":"mmHg"}]}`)
	post(p, "/v2/summary/activity/"+ana, `{"provider":"manual","source":{"type":"watch"},"data":[{"calendar_date":"2026-03-01","calories_total":2300,"heart_rate":{"resting_bpm":52}}]}`)

	upload := func(file json.RawMessage) (out fileupload.Result) {
		ask(p, "POST", fileUploadPath+"/"+ben, string(file), http.StatusOK, &out)
		require.Equal(t, "fhir", string(out.Format))
		require.Empty(t, out.Refused)
		return out
	}
	const mean = " (mean or other statistic of a longer time)"
	hours := observations(p, ana, "hour")
	got := upload(hours)
	require.Equal(t, map[string]int{"steps": 2, "distance": 2, "calories_active": 2, "weight": 1, "body_mass_index": 1}, got.Samples)
	require.Equal(t, map[string]int{
		"heartrate" + mean: 2, "glucose" + mean: 1, "blood_pressure" + mean: 1, "respiratory_rate" + mean: 1, "blood_oxygen" + mean: 1, "hrv_sdnn" + mean: 1, "body_temperature" + mean: 1,
	}, got.LeftOut)
	require.Equal(t, valuesOf(t, hours, "heartrate", "glucose", "blood_pressure", "respiratory_rate", "blood_oxygen", "hrv_sdnn", "body_temperature"), valuesOf(t, observations(p, ben, "hour")))
	again := upload(hours)
	require.Zero(t, again.New+again.Changed)

	sampled := observations(p, ana, "sampled")
	got = upload(sampled)
	require.Equal(t, map[string]int{"heartrate": 4, "glucose": 2, "weight": 1, "body_mass_index": 1, "respiratory_rate": 2, "blood_oxygen": 1, "hrv_sdnn": 1, "body_temperature": 1}, got.Samples)
	require.Empty(t, got.LeftOut)
	require.Equal(t, valuesOf(t, sampled), valuesOf(t, observations(p, ben, "sampled")))

	days := observations(p, ana, "day")
	got = upload(days)
	require.Equal(t, map[string]int{"activity": 1}, got.Summaries)
	require.Empty(t, got.Samples)
	for name, left := range got.LeftOut {
		require.Equal(t, 1, left, name)
	}
	want, is := valuesOf(t, days), valuesOf(t, observations(p, ben, "day"))
	delete(want, "blood_pressure 2026-03-01")
	require.Equal(t, want, is)
}

// One Observation is taken with its origin. A file of two people is refused.
func TestFHIRImport_acceptsOneObservationAndRefusesTwoPeople(t *testing.T) {
	t.Parallel()
	p := start(t)
	user := userNamed(p, "fhir-ana")
	const one = `{"resourceType":"Observation","status":"final","code":{"coding":[{"system":"http://loinc.org","code":"8867-4"}]},
		"subject":{"reference":"Patient/7"},"device":{"reference":"Device/3"},"effectiveDateTime":"2026-03-01T08:00:00+01:00",
		"valueQuantity":{"value":61,"unit":"beats/minute","system":"http://unitsofmeasure.org","code":"/min"}}`
	var out fileupload.Result
	ask(p, "POST", fileUploadPath+"/"+user, one, http.StatusOK, &out, "content-type", "application/fhir+json")
	require.Equal(t, 1, out.New)
	var page struct {
		Groups map[string][]struct {
			Source struct {
				AppID string `json:"app_id"`
			}
		}
	}
	p.get("/v2/timeseries/"+user+"/heartrate/grouped?start_date=2026-03-01&end_date=2026-03-02", &page)
	require.Equal(t, "Device/3", page.Groups["manual"][0].Source.AppID)
	var refused struct{ Detail []struct{ Msg string } }
	ask(p, "POST", fileUploadPath+"/"+user, one+"\n"+strings.Replace(one, "Patient/7", "Patient/8", 1), http.StatusUnprocessableEntity, &refused)
	require.Contains(t, refused.Detail[0].Msg, "more than one subject")
}

func userNamed(p *program, name string) string {
	p.Helper()
	user, _ := postJSON(p, "/v2/user", map[string]any{"client_user_id": name})["user_id"].(string)
	post(p, "/v2/link/provider/manual/manual", `{"user_id":"`+user+`"}`)
	return user
}
