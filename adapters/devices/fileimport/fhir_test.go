package fileimport_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/fileimport"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/prove"
)

// observed writes an Observation: fields come after those that each one has, and replace them.
func observed(loinc string, fields ...string) string {
	all := append([]string{
		`"resourceType":"Observation"`, `"status":"final"`, `"subject":{"reference":"Patient/1"}`, `"effectiveDateTime":"2026-03-01T08:00:00+01:00"`,
		`"code":{"coding":[{"system":"http://loinc.org","code":"` + loinc + `"}]}`,
	}, fields...)
	var merged map[string]json.RawMessage // a later field replaces an earlier one
	if err := json.Unmarshal([]byte("{"+strings.Join(all, ",")+"}"), &merged); err != nil {
		panic(err)
	}
	out, err := json.Marshal(merged)
	if err != nil {
		panic(err)
	}
	return string(out)
}

func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
}

func quantity(value any, code string) string {
	return fmt.Sprintf(`"valueQuantity":{"value":%v,"unit":"as written","system":"http://unitsofmeasure.org","code":%q}`, value, code)
}

func part(loinc, value string) string {
	return `{"code":{"coding":[{"system":"http://loinc.org","code":"` + loinc + `"}]},` + value + `}`
}

func bundle(resources ...string) []byte {
	entries := make([]string, len(resources))
	for i, r := range resources {
		entries[i] = `{"fullUrl":"urn:uuid:` + fmt.Sprint(i) + `","resource":` + r + `}`
	}
	return []byte(`{"resourceType":"Bundle","type":"searchset","total":1,"entry":[` + strings.Join(entries, ",\n") + `]}`)
}

func TestFHIR_eachCodeBecomesItsResourceAndUnit(t *testing.T) {
	const hour = `"effectivePeriod":{"start":"2026-03-01T08:00:00+01:00","end":"2026-03-01T08:59:59+01:00"},"effectiveDateTime":""`
	own := func(name string) string {
		return `"code":{"coding":[{"system":"https://example.org/fhir/r4/CodeSystem/measurement","code":"` + name + `"}]}`
	}
	for name, c := range map[string]struct {
		resource    string
		observation string
		want        []any // value and unit as they are handed over, source type
		length      time.Duration
	}{
		"heart rate":                    {"heartrate", observed("8867-4", quantity(61, "/min")), []any{61.0, "bpm", "unknown"}, 0},
		"heart rate of beats":           {"heartrate", observed("8867-4", quantity(61, "{beats}/min")), []any{61.0, "bpm", "unknown"}, 0},
		"unit as text":                  {"heartrate", observed("8867-4", `"valueQuantity":{"value":61,"unit":"beats/minute"}`), []any{61.0, "bpm", "unknown"}, 0},
		"device is a watch":             {"heartrate", observed("8867-4", quantity(61, "/min"), `"device":{"display":"Ana's Watch"}`), []any{61.0, "bpm", "watch"}, 0},
		"oid of LOINC":                  {"heartrate", strings.Replace(observed("8867-4", quantity(61, "/min")), "http://loinc.org", "urn:oid:2.16.840.1.113883.6.1", 1), []any{61.0, "bpm", "unknown"}, 0},
		"instant":                       {"heartrate", observed("8867-4", quantity(61, "/min"), `"effectiveDateTime":"","effectiveInstant":"2026-03-01T07:00:00Z"`), []any{61.0, "bpm", "unknown"}, 0},
		"period of a minute":            {"heartrate", observed("8867-4", quantity(61, "/min"), `"effectiveDateTime":"","effectivePeriod":{"start":"2026-03-01T07:00:00Z","end":"2026-03-01T07:01:00Z"}`), []any{61.0, "bpm", "unknown"}, 0},
		"amended":                       {"heartrate", observed("8867-4", quantity(61, "/min"), `"status":"amended"`), []any{61.0, "bpm", "unknown"}, 0},
		"breathing rate":                {"respiratory_rate", observed("9279-1", quantity(14, "/min")), []any{14.0, "bpm", "unknown"}, 0},
		"oxygen":                        {"blood_oxygen", observed("2708-6", quantity(97, "%")), []any{97.0, "%", "unknown"}, 0},
		"oxygen as a fraction":          {"blood_oxygen", observed("59408-5", quantity(0.97, "1")), []any{0.97, "1", "unknown"}, 0},
		"fahrenheit":                    {"body_temperature", observed("8310-5", quantity(98.6, "[degF]")), []any{98.6, "[degF]", "unknown"}, 0},
		"celsius in the mouth":          {"body_temperature", observed("8331-1", quantity(36.9, "Cel")), []any{36.9, "°C", "unknown"}, 0},
		"pounds":                        {"weight", observed("29463-7", quantity(150, "[lb_av]")), []any{150.0, "[lb_av]", "unknown"}, 0},
		"mean weight of an hour":        {"weight", observed("29463-7", quantity(70, "kg"), `"method":{"coding":[{"code":"average"}]}`), []any{70.0, "kg", "unknown"}, 0},
		"body mass index":               {"body_mass_index", observed("39156-5", quantity(23.5, "kg/m2")), []any{23.5, "index", "unknown"}, 0},
		"body fat":                      {"fat", observed("41982-0", quantity(21, "%")), []any{21.0, "%", "unknown"}, 0},
		"waist":                         {"waist_circumference", observed("8280-0", quantity(32, "[in_i]")), []any{32.0, "[in_i]", "unknown"}, 0},
		"glucose":                       {"glucose", observed("2339-0", quantity(99, "mg/dL")), []any{99.0, "mg/dL", "unknown"}, 0},
		"glucose of a sensor":           {"glucose", observed("105272-9", quantity(5.5, "mmol/L"), `"category":[{"coding":[{"code":"laboratory"}]}]`), []any{5.5, "mmol/L", "automatic"}, 0},
		"glucose of a fingerprick":      {"glucose", observed("41653-7", quantity(99, "mg/dL"), `"category":[{"coding":[{"code":"laboratory"}]}]`), []any{99.0, "mg/dL", "fingerprick"}, 0},
		"glucose of our own server":     {"glucose", observed("0-0", own("glucose"), quantity(5.5, "mmol/L"), `"category":[{"coding":[{"code":"laboratory"}]}]`), []any{5.5, "mmol/L", "unknown"}, 0},
		"heart rate variability":        {"hrv_sdnn", observed("80404-7", quantity(48, "ms")), []any{48.0, "ms", "unknown"}, 0},
		"steps":                         {"steps", observed("55423-8", hour, quantity(812, "{steps}")), []any{812.0, "count", "unknown"}, time.Hour},
		"steps without a code":          {"steps", observed("55423-8", hour, `"valueQuantity":{"value":812,"unit":"steps"}`), []any{812.0, "count", "unknown"}, time.Hour},
		"sum of steps":                  {"steps", observed("55423-8", hour, quantity(812, "{steps}"), `"method":{"coding":[{"code":"sum"}]}`), []any{812.0, "count", "unknown"}, time.Hour},
		"distance":                      {"distance", observed("55430-3", hour, quantity(1.2, "km")), []any{1.2, "km", "unknown"}, time.Hour},
		"active energy of our own kind": {"calories_active", observed("0-0", own("calories_active"), hour, quantity(100, "kJ")), []any{100.0, "kJ", "unknown"}, time.Hour},
		"component":                     {"heartrate", observed("85353-1", `"component":[`+part("8867-4", quantity(61, "/min"))+`]`), []any{61.0, "bpm", "unknown"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, rep, err := importBytes(t, []byte(c.observation), nil)
			require.NoError(t, err)
			require.Equal(t, fileimport.FHIR, rep.Format)
			require.Empty(t, rep.Skipped)
			require.Empty(t, rep.Notes)
			require.Equal(t, map[string]int{c.resource: 1}, rep.Samples)
			v := s.samples[c.resource][0]
			require.Equal(t, c.want, []any{v.Value.Number, v.Unit, string(v.source.Type)})
			require.Equal(t, healthdata.SlugManual, v.source.Provider)
			require.Equal(t, utc("2026-03-01 07:00:00"), v.Timestamp)
			if c.length > 0 {
				require.Equal(t, c.length, v.End.Sub(v.Start.Time))
			}
		})
	}
}

func TestFHIR_bloodPressureNeedsBothComponents(t *testing.T) {
	pressure := func(parts ...string) []byte {
		return []byte(observed("85354-9", `"component":[`+strings.Join(parts, ",")+`]`))
	}
	s, rep, err := importBytes(t, pressure(part("8480-6", quantity(121, "mm[Hg]")), part("8462-4", quantity(10, "kPa")), part("8867-4", quantity(61, "/min")), part("8478-0", quantity(90, "mm[Hg]"))), nil)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"blood_pressure": 1, "heartrate": 1}, rep.Samples)
	require.Equal(t, map[string]int{"LOINC 8478-0": 1}, rep.Skipped, "a mean pressure has no place")
	v := s.samples["blood_pressure"][0]
	require.Equal(t, 121.0, *v.Systolic)
	require.InDelta(t, 75, *v.Diastolic, 0.1)
	for name, body := range map[string][]byte{
		"blood_pressure (one value only)":          pressure(part("8480-6", quantity(121, "mm[Hg]")), part("8462-4", `"dataAbsentReason":{"text":"error"}`)),
		"blood_pressure (no value)":                []byte(observed("85354-9")),
		"blood_pressure (value with a comparator)": pressure(part("8480-6", `"valueQuantity":{"value":250,"comparator":">","code":"mm[Hg]"}`)),
	} {
		s, rep, err := importBytes(t, body, nil)
		require.NoError(t, err)
		require.Empty(t, s.samples, name)
		require.Equal(t, map[string]int{name: 1}, rep.Skipped)
	}
	s, _, err = importBytes(t, []byte(observed("8480-6", quantity(121, "mm[Hg]"))), nil)
	require.NoError(t, err)
	require.Empty(t, s.samples, "a part alone")
}

// A good Observation beside one that is left out is stored, and the report says why the other is not.
func TestFHIR_unusableObservationIsLeftOutWithAReason(t *testing.T) {
	rate := func(fields ...string) string {
		return observed("8867-4", append([]string{quantity(61234, "/min")}, fields...)...)
	}
	for _, c := range []struct{ what, observation string }{
		{"Observation that is preliminary", rate(`"status":"preliminary"`)},
		{"Observation that is registered", rate(`"status":"registered"`)},
		{"Observation that is cancelled", rate(`"status":"cancelled"`)},
		{"Observation that is unknown", rate(`"status":"unknown"`)},
		{"Observation that is entered-in-error", rate(`"status":"entered-in-error"`)},
		{"Observation without a status of FHIR R4", rate(`"status":""`)},
		{"Observation without a status of FHIR R4", rate(`"status":"Final 61234"`)},
		{"heartrate (value with a comparator)", rate(`"valueQuantity":{"value":61234,"comparator":"<","code":"/min"}`)},
		{"heartrate (no value)", rate(`"dataAbsentReason":{"coding":[{"code":"error"}]}`)},
		{"heartrate (no value)", observed("8867-4")},
		{"heartrate (no value)", observed("8867-4", `"valueString":"61234"`)},
		{"heartrate (no value)", observed("8867-4", `"valueQuantity":{"unit":"/min"}`)},
		{"heartrate (without a unit, or in a unit that cannot be converted to that of the resource)", rate(quantity(61234, "furlong"))},
		{"heartrate (without a unit, or in a unit that cannot be converted to that of the resource)", rate(`"valueQuantity":{"value":61234}`)},
		{"Observation that does not have the form of FHIR R4", rate(`"valueQuantity":{"value":"61234"}`)},
		{"resource that does not have the form of FHIR R4", rate(`"subject":"Ana 61234"`)},
		{"resource that does not have the form of FHIR R4", "61234"},
		{"resource that does not have the form of FHIR R4", `{"status":"final"}`},
		{"entry without a resource", "null"},
		{"LOINC 8302-2", observed("8302-2", quantity(61234, "cm"))},
		{"observation with a code of another system than LOINC", rate(`"code":{"coding":[{"system":"http://snomed.info/sct","code":"364075005"}],"text":"61234"}`)},
		{"observation with a code of another system than LOINC", rate(`"code":{"coding":[{"system":"http://loinc.org","code":"Ana 61234"}]}`)},
		{"Observation of a laboratory", rate(`"category":[{"coding":[{"code":"laboratory"}]}]`)},
		{"Observation that is not about the person", rate(`"focus":[{"reference":"Patient/child"}]`)},
		{"Observation that is not about the person", rate(`"subject":{"reference":"Device/9"}`)},
		{"Observation whose meaning an extension changes", rate(`"modifierExtension":[{"url":"https://example.org/not"}]`)},
		{"Observation without a time", rate(`"effectiveDateTime":"","issued":"2026-03-01T08:00:00Z"`)},
		{"Observation whose time is a schedule", rate(`"effectiveDateTime":"","effectiveTiming":{"event":["2026-03-01"]}`)},
		{"Observation whose time is no time of FHIR R4", rate(`"effectiveDateTime":"2026-03"`)},
		{"Observation whose time is no time of FHIR R4", rate(`"effectiveDateTime":"2026-02-30T08:00:00Z"`)},
		{"Observation whose time has no offset", rate(`"effectiveDateTime":"2026-03-01T08:00:00"`)},
		{"Observation before 1990 or in the future", rate(`"effectiveDateTime":"1970-01-01T00:00:00Z"`)},
		{"Observation before 1990 or in the future", rate(`"effectiveDateTime":"2099-01-01T00:00:00Z"`)},
		{"heartrate (a value of a whole day, where a time of day is required)", rate(`"effectiveDateTime":"2026-03-01"`)},
		{"Observation whose period has no start or no end", rate(`"effectiveDateTime":"","effectivePeriod":{"start":"2026-03-01T08:00:00Z"}`)},
		{"Observation whose period ends before it starts", rate(`"effectiveDateTime":"","effectivePeriod":{"start":"2026-03-01T08:00:00Z","end":"2026-03-01T07:00:00Z"}`)},
		{"Observation whose period is of days", rate(`"effectiveDateTime":"","effectivePeriod":{"start":"2026-03-01","end":"2026-03-02"}`)},
		{"heartrate (mean or other statistic of a longer time)", rate(`"effectiveDateTime":"","effectivePeriod":{"start":"2026-03-01T08:00:00Z","end":"2026-03-01T09:00:00Z"}`)},
		{"heartrate (mean or other statistic of a longer time)", rate(`"method":{"coding":[{"code":"average"}]}`)},
		{"steps (a total without effectivePeriod)", observed("55423-8", quantity(61234, "{steps}"))},
		{"resting_heart_rate (a value at a time of day, where only values of whole days are imported)", observed("40443-4", quantity(61234, "/min"))},
		{"LOINC 85353-1 (a panel, whose members stand alone)", observed("85353-1", `"hasMember":[{"reference":"Observation/2"}]`)},
		{"weight (a measurement that another Observation of the file has too)", observed("29463-7", quantity(70, "kg"), `"id":"other"`)},
		{"resource of a type that is none of FHIR R4", `{"resourceType":"Ana 61234"}`},
		{"Patient", `{"resourceType":"Patient","id":"1","name":[{"text":"Ana 61234"}]}`},
	} {
		t.Run(c.what, func(t *testing.T) {
			good := observed("29463-7", quantity(70, "kg"))
			s, rep, err := importBytes(t, bundle(good, c.observation, observed("9279-1", quantity(14, "/min"))), nil)
			require.NoError(t, err)
			require.Equal(t, map[string]int{c.what: 1}, rep.Skipped)
			require.Equal(t, map[string]int{"weight": 1, "respiratory_rate": 1}, rep.Samples)
			require.Equal(t, map[string]int{"body": 1}, rep.Summaries)
			require.Len(t, s.samples, 2)
			require.NotContains(t, rep.String(), "61234")
			require.NotContains(t, rep.String(), "Ana")
		})
	}
}

// Observations of two people would mix them: nothing of such a file is handed over.
func TestFHIR_observationsOfTwoPeopleAreRefused(t *testing.T) {
	of := func(subject string, at int) string {
		return observed("8867-4", quantity(61, "/min"), `"subject":`+subject, fmt.Sprintf(`"effectiveDateTime":"2026-03-01T08:%02d:00Z"`, at))
	}
	const named, other = `{"identifier":{"system":"https://example.org","value":"7"}}`, `{"identifier":{"system":"https://example.org","value":"8"}}`
	const contained = `{"reference":"#p"},"contained":[{"resourceType":"Patient","id":"p","name":[{"text":"%s"}]}]`
	for name, c := range map[string]struct {
		subjects []string
		good     bool
	}{
		"the same":                   {[]string{`{"reference":"Patient/1"}`, `{"reference":"Patient/1","display":"Ana"}`}, true},
		"a version":                  {[]string{`{"reference":"Patient/1/_history/2"}`, `{"reference":"Patient/1"}`}, true},
		"relative and absolute":      {[]string{`{"reference":"Patient/1"}`, `{"reference":"https://example.org/fhir/Patient/1"}`, `{"reference":"Patient/1"}`}, true},
		"none":                       {[]string{`{}`, `{"reference":"Patient/1"}`}, true},
		"identifiers":                {[]string{named, named}, true},
		"a device beside":            {[]string{`{"reference":"Patient/1"}`, `{"reference":"Device/1"}`}, true},
		"contained":                  {[]string{fmt.Sprintf(contained, "Ana"), fmt.Sprintf(contained, "Ana")}, true},
		"another":                    {[]string{`{"reference":"Patient/1"}`, `{"reference":"Patient/2"}`}, false},
		"another server":             {[]string{`{"reference":"https://a.example/Patient/1"}`, `{"reference":"Patient/1"}`, `{"reference":"https://b.example/Patient/1"}`}, false},
		"an id that ends as another": {[]string{`{"reference":"Patient/1"}`, `{"reference":"Patient/21"}`}, false},
		"another identifier":         {[]string{named, other}, false},
		"another one contained":      {[]string{fmt.Sprintf(contained, "Ana"), fmt.Sprintf(contained, "Ben")}, false},
		"another name":               {[]string{`{"display":"Ana"}`, `{"display":"Ben"}`}, false},
		"another one, left out":      {[]string{`{"reference":"Patient/1"}`, `{"reference":"Patient/2"},"status":"cancelled"`}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var all []string
			for i, subject := range c.subjects {
				all = append(all, of(subject, i))
			}
			for _, body := range [][]byte{bundle(all...), []byte(strings.Join(all, "\n"))} {
				s, _, err := importBytes(t, body, nil)
				if c.good {
					require.NoError(t, err)
					require.NotEmpty(t, s.samples["heartrate"])
					continue
				}
				var bad *fileimport.FileError
				require.ErrorAs(t, err, &bad)
				require.ErrorIs(t, err, healthlab.Invalid)
				require.ErrorContains(t, err, "more than one subject")
				require.Zero(t, s.calls)
			}
		})
	}
	dir := t.TempDir()
	var s recordingSink
	writeFile(t, dir, "a.ndjson", of(`{"reference":"Patient/1"}`, 0))
	writeFile(t, dir, "b.ndjson", of(`{"reference":"Patient/2"}`, 1))
	reports, err := fileimport.ImportDir(t.Context(), dir, &s, nil)
	require.NoError(t, err)
	require.NoError(t, reports[0].Err)
	require.ErrorContains(t, reports[1].Err, "more than one subject", "files of one folder are of one person")
	require.Len(t, s.samples["heartrate"], 1)
}

// Of several versions of one Observation the latest holds, also if it says that the others are wrong.
func TestFHIR_importsTheLatestVersionOfAnObservation(t *testing.T) {
	version := func(value int, more ...string) string {
		return observed("8867-4", append([]string{`"id":"a"`, quantity(value, "/min")}, more...)...)
	}
	for name, c := range map[string]struct {
		versions []string
		want     []float64
	}{
		"the last":         {[]string{version(60), version(61)}, []float64{61}},
		"the last updated": {[]string{version(61, `"meta":{"lastUpdated":"2026-03-02T08:00:00Z"}`), version(60, `"meta":{"lastUpdated":"2026-03-01T08:00:00Z"}`)}, []float64{61}},
		"by version":       {[]string{version(61, `"meta":{"versionId":"10"}`), version(60, `"meta":{"versionId":"9"}`)}, []float64{61}},
		"entered in error": {[]string{version(61, `"meta":{"versionId":"2"}`, `"status":"entered-in-error"`), version(60, `"meta":{"versionId":"1"}`)}, nil},
	} {
		s, rep, err := importBytes(t, bundle(c.versions...), nil)
		require.NoError(t, err)
		var got []float64
		for _, v := range s.samples["heartrate"] {
			got = append(got, v.Value.Number)
		}
		require.Equal(t, c.want, got, name)
		require.Equal(t, 1, rep.Skipped["Observation of which the file has a later version"], name)
	}
}

// A source is told apart by its device, the system that it comes from, or who made it, without names of people.
func TestFHIR_sourceIsTheDeviceSystemOrPerformerWithoutNames(t *testing.T) {
	for name, c := range map[string]struct{ fields, want string }{
		"device":                  {`"device":{"reference":"Device/7"},"meta":{"source":"https://example.org"},"performer":[{"reference":"Organization/1"}]`, "Device/7"},
		"system":                  {`"meta":{"source":"https://example.org#r1"},"performer":[{"reference":"Organization/1"}]`, "https://example.org"},
		"performer":               {`"performer":[{"reference":"Patient/1"},{"reference":"Organization/1"}]`, "Organization/1"},
		"the person":              {`"performer":[{"reference":"Patient/1","display":"Ana Roe"}]`, ""},
		"name of a device":        {`"device":{"display":"Ana's Watch"}`, "*"},
		"identifier of a device":  {`"device":{"identifier":{"system":"urn:serial","value":"Ana 1"}}`, "*"},
		"reference in the bundle": {`"device":{"reference":"urn:uuid:5","display":"Ana's Watch"}`, "*"},
		"long":                    {`"meta":{"source":"https://example.org/` + strings.Repeat("a", 300) + `"}`, "*"},
	} {
		s, _, err := importBytes(t, []byte(observed("8867-4", quantity(61, "/min"), c.fields)), nil)
		require.NoError(t, err)
		app := s.samples["heartrate"][0].source.AppID
		switch c.want {
		case "":
			require.Nil(t, app, name)
		case "*":
			require.Regexp(t, `^[0-9a-f-]{36}$`, *app, name)
		default:
			require.Equal(t, c.want, *app, name)
		}
	}
}

// An explicit offset is that of the sample. Z says only the instant, and a time without one needs a zone.
func TestFHIR_writtenOffsetIsKeptAndLocalTimeNeedsAZone(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	timed := func(text string) []byte {
		return []byte(observed("8867-4", quantity(61, "/min"), `"effectiveDateTime":"`+text+`"`))
	}
	for text, offset := range map[string]*int{
		"2026-03-01T08:00:00+01:00": at(3600), "2026-03-01T07:00:00Z": nil, "2026-03-01T07:00:00.000+00:00": at(0), "2026-03-01T08:00:00": at(3600),
	} {
		s, _, err := importBytes(t, timed(text), &fileimport.Options{Zone: berlin})
		require.NoError(t, err)
		v := s.samples["heartrate"][0]
		require.Equal(t, utc("2026-03-01 07:00:00"), v.Timestamp, text)
		require.Equal(t, offset, v.TimezoneOffset, text)
	}
	_, rep, err := importBytes(t, bundle(string(timed("2026-03-29T02:30:00")), string(timed("2026-10-25T02:30:00"))), &fileimport.Options{Zone: berlin, Now: func() time.Time { return time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC) }})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"Observation of the hour in which the clock changed": 2}, rep.Skipped)
}

// Values of whole days are those of the day's activity.
func TestFHIR_wholeDayValuesBecomeAnActivitySummary(t *testing.T) {
	const day = `"effectiveDateTime":"2026-03-01"`
	const period = `"effectiveDateTime":"","effectivePeriod":{"start":"2026-03-01","end":"2026-03-01"}`
	s, rep, err := importBytes(t, bundle(
		observed("41950-7", day, quantity(9312, "{steps}")), observed("55430-3", period, quantity(6.2, "km")), observed("40443-4", day, quantity(52, "/min"), `"method":{"coding":[{"code":"average"}]}`),
		observed("41979-6", day, quantity(2300, "kcal")), observed("41950-7", day, quantity(100, "{steps}"), `"device":{"reference":"Device/2"}`),
	), nil)
	require.NoError(t, err)
	require.Empty(t, rep.Skipped)
	require.Equal(t, map[string]int{"activity": 2}, rep.Summaries)
	days := summariesOf[*healthdata.Activity](t, s, "activity")
	require.Equal(t, "2026-03-01", days[0].CalendarDate.String())
	require.Equal(t, []any{int64(9312), 6200.0, 52.0, 2300.0}, []any{*days[0].Steps, *days[0].Distance, *days[0].HeartRate.RestingBPM, *days[0].CaloriesTotal})
	require.Equal(t, []any{int64(100), "Device/2"}, []any{*days[1].Steps, *days[1].Source.AppID})
}

func TestFHIR_sampledDataBecomesSamples(t *testing.T) {
	sampled := func(data string) string {
		return `"valueSampledData":{"origin":{"value":10,"code":"/min","system":"http://unitsofmeasure.org"},"period":60000,"factor":2,"dimensions":1,"data":"` + data + `"}`
	}
	s, rep, err := importBytes(t, []byte(observed("8867-4", `"component":[`+part("8867-4", sampled("25 E 26 L x 27"))+`]`)), nil)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"heartrate (sample outside the limits of detection)": 1, "heartrate (sample that is no number)": 1}, rep.Skipped)
	var got []any
	for _, v := range s.samples["heartrate"] {
		got = append(got, v.Timestamp.Format("15:04"), v.Value.Number)
	}
	require.Equal(t, []any{"07:00", 60.0, "07:02", 62.0, "07:05", 64.0}, got)
	for what, bad := range map[string]string{
		"heartrate (sampled data without a period, or of several dimensions)": strings.Replace(sampled("25"), `"dimensions":1`, `"dimensions":2`, 1),
		"heartrate (no value)": strings.Replace(sampled("25"), `"value":10,`, ``, 1),
	} {
		_, rep, err := importBytes(t, []byte(observed("8867-4", bad)), nil)
		require.NoError(t, err)
		require.Equal(t, map[string]int{what: 1}, rep.Skipped)
	}
}

// The form of a file is found by its content, whatever its length and white space.
func TestFHIR_fileIsRecognisedByItsContent(t *testing.T) {
	one := func(i int) string {
		return observed("8867-4", quantity(60+i, "/min"), fmt.Sprintf(`"effectiveDateTime":"2026-03-01T08:%02d:%02dZ"`, i/60, i%60))
	}
	var many []string
	for i := range 1000 {
		many = append(many, one(i))
	}
	pretty := "{\n \"type\": \"collection\",\n \"entry\": [\n  {\n   \"resource\":\n" + one(0) + "\n}],\n \"resourceType\":\n \"Bundle\"\n}\n"
	for name, c := range map[string]struct {
		body string
		want int
	}{
		"one":               {one(0), 1},
		"byte order mark":   {"\ufeff" + one(0), 1},
		"one that is long":  {strings.Replace(one(0), `"status"`, `"text":{"div":"`+strings.Repeat("a", 100_000)+`"},"status"`, 1), 1},
		"bundle":            {string(bundle(many...)), 1000},
		"pretty":            {pretty, 1},
		"bundle in another": {string(bundle(one(0), string(bundle(one(1), one(2))))), 3},
		"NDJSON":            {strings.Join(many, "\n") + "\n", 1000},
		"NDJSON of bundles": {string(bundle(one(0))) + "\n" + strings.ReplaceAll(string(bundle(one(1), one(2))), "\n", "") + "\n", 3},
		"lines of Windows":  {one(0) + "\r\n\r\n" + one(1) + "\r\n", 2},
		"pretty, twice":     {pretty + strings.Replace(pretty, one(0), one(1), 1), 2},
		"cut bundle":        {string(bundle(one(0), one(1)))[:len(bundle(one(0)))+20], 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, rep, err := importBytes(t, []byte(c.body), &fileimport.Options{BatchSize: 100})
			require.NoError(t, err)
			require.Equal(t, fileimport.FHIR, rep.Format)
			require.Len(t, s.samples["heartrate"], c.want)
			require.LessOrEqual(t, s.most, 100)
		})
	}
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	entry, err := w.Create("Observation.ndjson")
	require.NoError(t, err)
	_, err = io.WriteString(entry, strings.Join(many, "\n"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	s, _, err := importBytes(t, archive.Bytes(), nil)
	require.NoError(t, err)
	require.Len(t, s.samples["heartrate"], 1000, "in an archive")
	var piped recordingSink
	_, err = fileimport.Import(t.Context(), struct{ io.Reader }{bytes.NewReader(bundle(many...))}, &piped, &fileimport.Options{TempDir: t.TempDir()})
	require.NoError(t, err)
	require.Len(t, piped.samples["heartrate"], 1000, "from a reader that cannot seek")
	long := strings.Replace(one(0), `"status"`, `"a":"`+strings.Repeat("a", 9000)+`","b":"`+strings.Repeat("b", 9000)+`","status"`, 1)
	_, _, err = importBytes(t, []byte(long), &fileimport.Options{MaxRecordingBytes: 10_000})
	require.ErrorAs(t, err, new(*fileimport.FileError), "a resource that is too long")
	for name, body := range map[string]string{
		"no observation": `{"resourceType":"Patient","id":"1"}`, "empty bundle": `{"resourceType":"Bundle","entry":[]}`, "cut": `{"resourceType":"Observation","status":"fi`,
	} {
		_, _, err := importBytes(t, []byte(body), nil)
		require.ErrorIs(t, err, healthlab.Invalid, name)
		require.ErrorAs(t, err, new(*fileimport.FileError), name)
	}
}

// badFHIR are resources that cost themselves.
var badFHIR = []string{
	"null", "7", `"x"`, "[]", "{}", `{"resourceType":7}`, `{"resourceType":"Observation"}`, `{"resourceType":"Observation","status":["final"]}`,
	observed("8867-4", quantity("1e999", "/min")), observed("8867-4", quantity(99, "/min"), `"status":"entered-in-error"`), observed("8867-4", quantity(99, "kg")),
	observed("8867-4", quantity(99, "/min"), `"effectiveDateTime":"yesterday"`), observed("8867-4", quantity(99, "/min"), `"component":{}`), observed("8867-4", quantity(99, "/min"), `"code":"8867-4"`),
	observed("8867-4", `"valueQuantity":{"value":99,"comparator":"<","code":"/min"}`), observed("718-7", quantity(13, "g/dL"), `"category":[{"coding":[{"code":"laboratory"}]}]`),
}

// A random good file with one random bad resource gives what the good file gives.
func TestFHIR_skipsOnlyTheInvalidResource(t *testing.T) {
	for c := range prove.Sequential(200, 200, 10_000) {
		random := rand.New(rand.NewPCG(uint64(c), 7))
		items := make([]string, 3+random.IntN(20))
		for i := range items {
			items[i] = observed("8867-4", quantity(60+i, "/min"), fmt.Sprintf(`"effectiveDateTime":"2026-03-01T08:00:%02dZ"`, i))
		}
		bad, lines := badFHIR[random.IntN(len(badFHIR))], random.IntN(2) == 0
		write := func(all []string) []byte { return bundle(all...) }
		if lines {
			write = func(all []string) []byte { return []byte(strings.Join(all, "\n")) }
			if random.IntN(3) == 0 {
				bad = []string{"{", "}", "x", items[0] + items[1], items[0][:1+random.IntN(len(items[0])-1)], "\x00", "{\"resourceType\":\"Observation\",\"status\":"}[random.IntN(7)]
			}
		}
		want, _, err := importBytes(t, write(items), nil)
		require.NoError(t, err)
		got, rep, err := importBytes(t, write(slices.Insert(slices.Clone(items), random.IntN(len(items)+1), bad)), nil)
		require.NoError(t, err, "case %d: %s", c, bad)
		require.Equal(t, want.samples, got.samples, "case %d: %s", c, bad)
		require.NotEmpty(t, rep.Skipped, "case %d: it is told", c)
	}
}

// What is handed over a service takes, and the same file again changes nothing.
func TestFHIR_importTwiceThroughAServiceChangesNothing(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "a.json", string(bundle(
		observed("8867-4", quantity(61, "/min"), `"device":{"display":"Ana's Watch"}`), observed("8310-5", quantity(98.6, "[degF]")), observed("29463-7", quantity(150, "[lb_av]")),
		observed("39156-5", quantity(23.5, "kg/m2")), observed("59408-5", quantity(0.97, "1")), observed("105272-9", quantity(99, "mg/dL")),
		observed("85354-9", `"component":[`+part("8480-6", quantity(121, "mm[Hg]"))+`,`+part("8462-4", quantity(79, "mm[Hg]"))+`]`),
		observed("55423-8", `"effectiveDateTime":"","effectivePeriod":{"start":"2026-03-01T08:00:00+01:00","end":"2026-03-01T09:00:00+01:00"}`, quantity(812, "{steps}")),
		observed("41950-7", `"effectiveDateTime":"2026-03-01"`, quantity(9312, "{steps}")),
	)))
	takesTwice(t, dir, nil)
}

func FuzzFHIR(f *testing.F) {
	f.Add(bundle(observed("8867-4", quantity(61, "/min")), observed("85354-9", `"component":[`+part("8480-6", quantity(121, "mm[Hg]"))+`]`)))
	f.Add([]byte(observed("55423-8", quantity(9, "{steps}")) + "\n" + observed("8867-4", `"valueSampledData":{"origin":{"value":0,"code":"/min"},"period":60000,"dimensions":1,"data":"1 E 2"}`)))
	for _, bad := range badFHIR {
		f.Add(bundle(bad))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := newIngestion(t)
		rep, err := fileimport.Import(t.Context(), strings.NewReader(string(data)), s, &fileimport.Options{MaxRecordingBytes: 1 << 20})
		if err != nil {
			require.ErrorIs(t, err, healthlab.Invalid)
			return
		}
		first := s.counts
		_, err = fileimport.Import(t.Context(), strings.NewReader(string(data)), s, &fileimport.Options{MaxRecordingBytes: 1 << 20})
		require.NoError(t, err)
		require.Equal(t, first.New, s.counts.New, "%v", rep)
	})
}

// A body measurement has the local day of its sample: by the written offset, or else by the zone of the user.
func TestFHIR_bodyHasTheLocalDayOfItsSample(t *testing.T) {
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	require.NoError(t, err)
	for at, want := range map[string]struct {
		day    string
		offset int
	}{
		"2026-03-01T23:30:00Z":      {"2026-03-02", 32400},
		"2026-03-01T14:30:00Z":      {"2026-03-01", 32400},
		"2026-03-01T23:30:00+00:00": {"2026-03-01", 0},
		"2026-03-01T23:30:00-05:00": {"2026-03-01", -18000},
		"2026-03-02T08:30:00+09:00": {"2026-03-02", 32400},
		"2026-03-01T23:30:00":       {"2026-03-01", 32400},
	} {
		for name, zone := range map[string]*time.Location{"zone": tokyo, "no zone": nil} {
			t.Run(at+" "+name, func(t *testing.T) {
				if at == "2026-03-01T23:30:00" && zone == nil {
					t.Skip("a time without an offset needs the zone")
				}
				s := newIngestion(t)
				_, err := s.service.PatchUser(t.Context(), s.team, s.user, healthdata.UserPatch{FallbackTimeZone: healthdata.SetTo("Asia/Tokyo")})
				require.NoError(t, err)
				o := `{"resourceType":"Observation","status":"final","subject":{"reference":"Patient/p"},"code":{"coding":[{"system":"http://loinc.org","code":"29463-7"}]},"effectiveDateTime":"` + at + `","valueQuantity":{"value":80,"unit":"kg","system":"http://unitsofmeasure.org","code":"kg"}}`
				_, err = fileimport.Import(t.Context(), strings.NewReader(o), s, &fileimport.Options{Zone: zone})
				require.NoError(t, err)
				page, err := s.service.Samples(t.Context(), s.team, s.user, healthdata.SampleQuery{Resource: "weight"})
				require.NoError(t, err)
				require.NotEmpty(t, page.Groups)
				for v := range page.Groups[0].All() {
					require.Equal(t, want.offset, *v.TimezoneOffset)
				}
				list, err := s.service.Summaries(t.Context(), s.team, s.user, healthdata.SummaryQuery{Resource: "body"})
				require.NoError(t, err)
				body, ok := list[0].(*healthdata.Body)
				require.True(t, ok)
				require.Equal(t, []any{want.day, want.offset}, []any{body.CalendarDate.String(), *body.TimezoneOffset})
			})
		}
	}
}
