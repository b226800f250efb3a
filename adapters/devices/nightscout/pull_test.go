package nightscout_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

func at(s string) healthlab.Time {
	t, err := healthlab.ParseTime(s)
	if err != nil {
		panic(err)
	}
	return t
}

// Documents in the shape of the published API, as uploaders of several kinds write them.
const someEntries = `[
	{"_id":"65e5a1","type":"sgv","sgv":104,"date":1772618400000,"dateString":"2026-03-04T10:00:00.000Z","trend":4,"direction":"Flat","device":"sensor","utcOffset":60,"sysTime":"2026-03-04T10:00:00.000Z"},
	{"_id":"65e5a2","type":"sgv","sgv":"98","date":1772618100000.0,"dateString":"2026-03-04T09:55:00.000Z","utcOffset":0},
	{"_id":"65e5a3","type":"sgv","sgv":10,"date":1772617800000,"dateString":"2026-03-04T09:50:00.000Z"},
	{"_id":"65e5a4","type":"mbg","mbg":112,"date":1772617500000,"dateString":"2026-03-04T09:45:00.000Z","utcOffset":-210},
	{"_id":"65e5a5","type":"cal","slope":1,"date":1772617200000},
	{"_id":"65e5a6","type":"sgv","sgv":130,"date":1772616900000,"isValid":false},
	{"_id":"65e5a7","type":"sgv","sgv":{"a":1},"date":1772616600000}]`

const someTreatments = `[
	{"_id":"75e5a1","eventType":"Bolus Wizard","created_at":"2026-03-04T07:00:00.000Z","insulin":4.5,"carbs":60,"utcOffset":60,"pumpType":"pump","pumpSerial":7001,"notes":" porridge "},
	{"_id":"75e5a2","identifier":"i-2","eventType":"Correction Bolus","created_at":"2026-03-04T07:00:00.000Z","insulin":0.5,"carbs":null},
	{"_id":"75e5a3","identifier":"i-3","eventType":"Correction Bolus","created_at":"2026-03-04T08:00:00Z","insulin":1,"isSMB":true},
	{"_id":"75e5a4","identifier":"i-3","eventType":"Correction Bolus","created_at":"2026-03-04T08:00:00Z","insulin":1.2,"isSMB":true},
	{"_id":"75e5a5","eventType":"Combo Bolus","created_at":"2026-03-04T09:00:00.000Z","insulin":2,"relative":1,"duration":90,"splitNow":57,"splitExt":43},
	{"_id":"75e5a6","eventType":"BG Check","created_at":"2026-03-04T09:30:00.000Z","glucose":6.1,"glucoseType":"Finger"},
	{"_id":"75e5a7","eventType":"BG Check","created_at":"2026-03-04T09:31:00.000Z","glucose":110,"glucoseType":"Finger","units":"mg/dl"},
	{"_id":"75e5a8","eventType":"BG Check","created_at":"2026-03-04T09:32:00.000Z","glucose":110,"glucoseType":"Sensor","units":"mg/dl"},
	{"_id":"75e5a9","eventType":"Temp Basal","created_at":"2026-03-04T09:33:00.000Z","absolute":0.8,"duration":30},
	{"_id":"75e5aa","eventType":"Exercise","created_at":"2026-03-04T09:34:00.000Z","duration":30,"notes":"a run"},
	{"_id":"75e5ab","eventType":"Carb Correction","created_at":"2026-03-04T09:35:00.000Z","carbs":"15"},
	{"_id":"75e5ac","eventType":"Note","created_at":"2026-03-04T09:36:00.000Z","notes":"   "}]`

func ptr[T any](v T) *T { return &v }

func withData(t testing.TB) *server {
	s := newServer(t)
	s.entries, s.treatments = read(t, someEntries), read(t, someTreatments)
	return s
}

func TestPull_readsGlucoseOfSensorAndMeter(t *testing.T) {
	s := withData(t)
	c := s.connector()
	got, requests := s.all(c, s.signedIn(c), "glucose", 1)
	require.Equal(t, 2, requests)
	east, west := 3600, -210*60
	require.Equal(t, []linking.PullItem{
		{Source: healthdata.Source{Type: healthdata.SourceAutomatic}, Device: &healthdata.DeviceInfo{Model: ptr("sensor")}, TimeZone: "Europe/Vienna", Samples: []healthdata.Sample{
			{Timestamp: at("2026-03-04T10:00:00Z"), TimezoneOffset: &east, Unit: "mg/dL", Value: healthdata.Number(104)},
		}},
		{Source: healthdata.Source{Type: healthdata.SourceAutomatic}, TimeZone: "Europe/Vienna", Samples: []healthdata.Sample{
			{Timestamp: at("2026-03-04T09:55:00Z"), Unit: "mg/dL", Value: healthdata.Number(98)},
		}},
		{Source: healthdata.Source{Type: healthdata.SourceFingerprick}, TimeZone: "Europe/Vienna", Samples: []healthdata.Sample{
			{Timestamp: at("2026-03-04T09:45:00Z"), TimezoneOffset: &west, Unit: "mg/dL", Value: healthdata.Number(112)},
		}},
		{Source: healthdata.Source{Type: healthdata.SourceUnknown}, Unparsed: got[3].Unparsed},
		{Source: healthdata.Source{Type: healthdata.SourceFingerprick}, TimeZone: "Europe/Vienna", Samples: []healthdata.Sample{
			{Timestamp: at("2026-03-04T09:31:00Z"), Unit: "mg/dL", Value: healthdata.Number(110)},
			{Timestamp: at("2026-03-04T09:30:00Z"), Unit: "mmol/L", Value: healthdata.Number(6.1)},
		}},
	}, got)
	require.Len(t, got[3].Unparsed, 1, "a value that is no number is told")

	// The same numbers on a site that shows mg/dL.
	s.units = "mg/dl"
	got, _ = s.all(c, s.signedIn(c), "glucose", 1)
	require.Equal(t, "mg/dL", got[4].Samples[1].Unit)
}

// A finger-prick value without a unit takes the unit of the site's settings. If those name
// no known unit, the value is reported as unparsed: its unit is never guessed.
func TestPull_glucoseWithoutAUnitTakesTheSitesUnit(t *testing.T) {
	s := newServer(t)
	s.treatments = read(t, `[
		{"_id":"a","eventType":"BG Check","created_at":"2026-03-04T09:30:00.000Z","glucose":6.1,"glucoseType":"Finger","notes":"before lunch"},
		{"_id":"b","eventType":"BG Check","created_at":"2026-03-04T09:31:00.000Z","glucose":6.2,"glucoseType":"Finger","units":"mmol/l"},
		{"_id":"c","eventType":"BG Check","created_at":"2026-03-04T09:32:00.000Z","glucose":110,"glucoseType":"Finger","units":"MG/DL"},
		{"_id":"d","eventType":"BG Check","created_at":"2026-03-04T09:33:00.000Z","glucose":7,"glucoseType":"Finger","units":"MARK"},
		{"_id":"e","eventType":"BG Check","created_at":"2026-03-04T09:34:00.000Z","glucose":0,"glucoseType":"Finger"},
		{"_id":"f","eventType":"BG Check","created_at":"2026-03-04T09:35:00.000Z","glucose":7,"glucoseType":"Sensor"}]`)
	c := s.connector()
	units := func(secret []byte) (kept, told []string) {
		got, _ := s.all(c, secret, "glucose", 1)
		for _, p := range got {
			for _, x := range p.Samples {
				kept = append(kept, x.Timestamp.Format("15:04 ")+x.Unit)
			}
			for _, u := range p.Unparsed {
				var d struct {
					ID string `json:"_id"`
				}
				require.NoError(t, json.Unmarshal(u.Item, &d))
				require.Len(t, u.Problems, 1)
				require.Equal(t, []any{"units"}, u.Problems[0].Path)
				require.Equal(t, "unit", u.Problems[0].Code)
				require.NotContains(t, u.Problems[0].Msg, "MARK")
				told = append(told, d.ID)
			}
		}
		return kept, told
	}
	for site, want := range map[string]string{"mmol": "09:30 mmol/L", "mmol/L": "09:30 mmol/L", "mg/dl": "09:30 mg/dL", "": "", "MARK": ""} {
		s.units = site
		kept, told := units(s.signedIn(c))
		wantKept, wantTold := []string{"09:32 mg/dL", "09:31 mmol/L"}, []string{"d"}
		if want != "" {
			wantKept = append(wantKept, want)
		} else {
			wantTold = append(wantTold, "a")
		}
		require.Equal(t, wantKept, kept, site)
		require.Equal(t, wantTold, told, site)
	}
	// A secret from before units were known, where false meant either of the two.
	kept, told := units([]byte(fmt.Sprintf(`{"base":%q,"proof":%q,"hashed":false,"zone":"","mmol":false}`, s.at.URL, token)))
	require.Len(t, kept, 2)
	require.Equal(t, []string{"d", "a"}, told)
	// What the unit says nothing about is kept.
	s.units = ""
	got, _ := s.all(c, s.signedIn(c), "note", 1)
	require.Equal(t, "before lunch", got[0].Samples[0].Value.Text)
	require.Len(t, got, 1)
}

func TestPull_readsInsulinCarbohydratesAndNotes(t *testing.T) {
	s := withData(t)
	c := s.connector()
	secret := s.signedIn(c)
	got, _ := s.all(c, secret, "insulin_injection", 1)
	type bolus struct {
		at, end, form, purpose string
		units                  float64
	}
	seen := map[healthdata.SourceType][]bolus{}
	for _, p := range got {
		for _, x := range p.Samples {
			require.Equal(t, "rapid_acting", *x.Type)
			require.Equal(t, "bolus", *x.DeliveryMode)
			seen[p.Source.Type] = append(seen[p.Source.Type], bolus{x.Timestamp.Format("15:04"), x.End.Format("15:04"), *x.DeliveryForm, *x.BolusPurpose, x.Value.Number})
		}
	}
	require.Equal(t, map[healthdata.SourceType][]bolus{
		healthdata.SourceInsulinPump: {{"08:00", "08:00", "standard", "correction", 1.2}, {"07:00", "07:00", "standard", "mixed", 4.5}},
		healthdata.SourceApp:         {{"09:00", "10:30", "extended", "unknown", 3.5}, {"07:00", "07:00", "standard", "correction", 0.5}},
	}, seen)

	got, _ = s.all(c, secret, "carbohydrates", 1)
	require.Len(t, got, 1)
	require.Len(t, got[0].Samples, 2)
	require.InDelta(t, 15, got[0].Samples[0].Value.Number, 0)
	require.InDelta(t, 60, got[0].Samples[1].Value.Number, 0)

	got, _ = s.all(c, secret, "note", 1)
	require.Len(t, got[0].Samples, 2)
	require.Equal(t, []string{"exercise"}, got[0].Samples[0].Tags)
	require.Equal(t, "porridge", got[0].Samples[1].Value.Text)
	require.Equal(t, []string{"food", "insulin_injection"}, got[0].Samples[1].Tags)
}

// What a document says of the pump or the meter is handed over; what no device has is none.
func TestPull_namesThePumpOrMeterAsDevice(t *testing.T) {
	s := withData(t)
	s.entries = append(s.entries, read(t, `[{"_id":"e1","type":"sgv","sgv":90,"date":1772618700000,"device":{"name":"x"}}]`)...)
	c := s.connector()
	seen := func(resource string) map[string]*healthdata.DeviceInfo {
		out := map[string]*healthdata.DeviceInfo{}
		got, _ := s.all(c, s.signedIn(c), resource, 1)
		for _, p := range got {
			for _, x := range p.Samples {
				out[string(p.Source.Type)+" "+x.Timestamp.Format("15:04")] = p.Device
			}
		}
		return out
	}
	require.Equal(t, map[string]*healthdata.DeviceInfo{
		"insulin_pump 07:00": {Model: ptr("pump"), ID: ptr("7001")}, "insulin_pump 08:00": nil, "app 07:00": nil, "app 09:00": nil,
	}, seen("insulin_injection"))
	require.Equal(t, map[string]*healthdata.DeviceInfo{
		"automatic 10:00": {Model: ptr("sensor")}, "automatic 09:55": nil, "automatic 10:05": nil,
		"fingerprick 09:45": nil, "fingerprick 09:30": nil, "fingerprick 09:31": nil,
	}, seen("glucose"))
}

// Amounts of different treatments at one instant add up.
func TestPull_addsUpTreatmentsOfOneInstant(t *testing.T) {
	s := newServer(t)
	s.treatments = read(t, `[
		{"_id":"a","eventType":"Carb Correction","created_at":"2026-03-04T07:00:00.000Z","carbs":10,"notes":"juice"},
		{"_id":"b","eventType":"Snack Bolus","created_at":"2026-03-04T07:00:00.000Z","carbs":20,"insulin":2,"notes":"bread"},
		{"_id":"c","eventType":"Correction Bolus","created_at":"2026-03-04T07:00:00.000Z","insulin":1,"notes":"bread"},
		{"_id":"b","eventType":"Snack Bolus","created_at":"2026-03-04T07:00:00.000Z","carbs":25,"insulin":2,"notes":"bread"}]`)
	c := s.connector()
	secret := s.signedIn(c)
	got, _ := s.all(c, secret, "carbohydrates", 1)
	require.Len(t, got[0].Samples, 1)
	require.InDelta(t, 35, got[0].Samples[0].Value.Number, 0)
	got, _ = s.all(c, secret, "insulin_injection", 1)
	require.InDelta(t, 3, got[0].Samples[0].Value.Number, 0)
	require.Equal(t, "mixed", *got[0].Samples[0].BolusPurpose)
	got, _ = s.all(c, secret, "note", 1)
	require.Equal(t, "juice\nbread", got[0].Samples[0].Value.Text)
}

// Whatever a site holds, also many documents of one instant, every instant is read, and the
// pages come to an end.
func TestPull_pagesMissNoGlucoseReading(t *testing.T) {
	s := newServer(t)
	c := s.connector()
	secret := s.signedIn(c)
	rapid.Check(t, func(rt *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(1, 900), 1, 6).Draw(rt, "documents of an instant")
		s.entries = nil
		want := map[int64]bool{}
		ms := noon.UnixMilli()
		for i, n := range sizes {
			ms -= rapid.Int64Range(1, 3).Draw(rt, "step")
			want[ms] = true
			for j := range n {
				s.entries = append(s.entries, document{"_id": fmt.Sprint(i, " ", j), "type": "sgv", "sgv": float64(100), "date": float64(ms)})
			}
		}
		items, _ := s.all(c, secret, "glucose", 1)
		got := map[int64]bool{}
		for _, p := range items {
			for _, x := range p.Samples {
				got[x.Timestamp.UnixMilli()] = true
			}
		}
		if len(got) != len(want) {
			rt.Fatalf("%d instants of %d", len(got), len(want))
		}
	})
	// A page that is full of one instant is left behind.
	s.entries = nil
	for i := range 2500 {
		s.entries = append(s.entries, document{"_id": fmt.Sprint(i), "type": "sgv", "sgv": float64(100), "date": float64(noon.UnixMilli() - 5)})
	}
	s.entries = append(s.entries, document{"_id": "last", "type": "sgv", "sgv": float64(99), "date": float64(noon.UnixMilli() - 9)})
	items, requests := s.all(c, secret, "glucose", 1)
	require.LessOrEqual(t, requests, 4)
	require.Equal(t, 99, int(items[len(items)-1].Samples[len(items[len(items)-1].Samples)-1].Value.Number))
}

// A site finds treatments by the text of their instant, which uploaders write with and
// without a fraction. No amount is missed, wherever a page ends.
func TestPull_pagesMissNoTreatment(t *testing.T) {
	s := newServer(t)
	c := s.connector()
	secret := s.signedIn(c)
	rapid.Check(t, func(rt *rapid.T) {
		s.treatments = nil
		want := map[int64]float64{}
		ms := noon.UnixMilli() - 1
		draw := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		steps := []int64{0, 0, 1, 400, 1000, 300_000}
		for i := range 900 + draw.IntN(1200) {
			ms -= steps[draw.IntN(len(steps))]
			text := time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
			if draw.IntN(2) == 0 {
				ms -= ms % 1000
				text = time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05Z")
			}
			want[ms]++
			s.treatments = append(s.treatments, document{"_id": fmt.Sprint(i), "eventType": "Carb Correction", "created_at": text, "carbs": float64(1)})
		}
		got := map[int64]float64{}
		items, _ := s.all(c, secret, "carbohydrates", 10)
		for _, p := range items {
			for _, x := range p.Samples {
				got[x.Timestamp.UnixMilli()] = x.Value.Number // what comes again replaces
			}
		}
		require.Equal(rt, want, got)
	})
	// The bounds of what is asked for are no exception.
	s.treatments = read(t, `[
		{"_id":"a","created_at":"2026-03-04T11:59:59Z","carbs":1},{"_id":"b","created_at":"2026-03-04T11:00:00.250Z","carbs":2},
		{"_id":"c","created_at":"2026-03-04T11:59:59.250Z","carbs":3}]`)
	page, err := c.Pull(t.Context(), linking.PullRequest{
		Secret: secret, Resource: "carbohydrates", From: noon.Add(-time.Hour + 100*time.Millisecond), To: noon.Add(-500 * time.Millisecond), Zone: time.UTC,
	})
	require.NoError(t, err)
	require.Len(t, page.Items[0].Samples, 3)
	// More of one second than a page has: what is before it is read, and it ends.
	s.treatments = nil
	for i := range 2500 {
		s.treatments = append(s.treatments, document{"_id": fmt.Sprint(i), "created_at": "2026-03-04T11:59:59Z", "carbs": float64(1)})
	}
	s.treatments = append(s.treatments, document{"_id": "last", "created_at": "2026-03-04T11:59:57Z", "carbs": float64(9)})
	items, requests := s.all(c, secret, "carbohydrates", 1)
	require.LessOrEqual(t, requests, 4)
	last := items[len(items)-1].Samples
	require.InDelta(t, 9, last[len(last)-1].Value.Number, 0)
	// An uploader's own clock: the site finds the text, not the instant.
	s.treatments = nil
	for i := range 1500 {
		at := noon.Add(-time.Duration(i+1) * time.Minute)
		s.treatments = append(s.treatments, document{"_id": fmt.Sprint(i), "created_at": at.Format("2006-01-02T15:04:05") + "+02:00", "carbs": float64(1)})
	}
	items, _ = s.all(c, secret, "carbohydrates", 2)
	got := map[int64]bool{}
	for _, p := range items {
		for _, x := range p.Samples {
			got[x.Timestamp.UnixMilli()] = true
		}
	}
	require.Len(t, got, 1500)
}

// A site that does not keep to what was asked is not followed for ever.
func TestPull_failsIfTheSiteAnswersAnotherRange(t *testing.T) {
	s := newServer(t)
	c := s.connector()
	secret := s.signedIn(c)
	for _, ms := range []float64{float64(noon.UnixMilli() + 5), 5, math.NaN()} {
		s.fail = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, "[")
			for i := range 1000 {
				if i > 0 {
					fmt.Fprint(w, ",")
				}
				if math.IsNaN(ms) {
					fmt.Fprint(w, `{"type":"sgv","sgv":100}`)
				} else {
					fmt.Fprintf(w, `{"type":"sgv","sgv":100,"date":%.0f}`, ms)
				}
			}
			fmt.Fprint(w, "]")
		}
		_, err := c.Pull(t.Context(), linking.PullRequest{Secret: secret, Resource: "glucose", From: noon.Add(-time.Hour), To: noon})
		require.ErrorIs(t, err, healthlab.Invalid)
	}
}

// Whatever a site answers, reading it ends, and what is read can be written.
func FuzzDocuments(f *testing.F) {
	f.Add([]byte(someEntries))
	f.Add([]byte(someTreatments))
	f.Add([]byte(`[{"date":1e300,"type":"sgv","sgv":"1e999"},{"created_at":"0000-00-00T00:00:00Z","insulin":-1},null,7]`))
	s := newServer(f)
	c := s.connector()
	secret := s.signedIn(c)
	f.Fuzz(func(t *testing.T, doc []byte) {
		s.fail = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(doc) }
		for _, resource := range []string{"glucose", "insulin_injection", "carbohydrates", "note"} {
			page, err := c.Pull(t.Context(), linking.PullRequest{Secret: secret, Resource: resource, From: noon.AddDate(0, 0, -1), To: noon})
			if err != nil {
				continue
			}
			for _, p := range page.Items {
				for _, x := range p.Samples {
					_, err := x.Timestamp.MarshalText()
					require.NoError(t, err)
					if x.Value.IsText {
						continue
					}
					require.Positive(t, x.Value.Number)
					require.False(t, math.IsInf(x.Value.Number, 0))
				}
				for _, u := range p.Unparsed {
					require.NotEmpty(t, u.Problems)
				}
			}
		}
	})
}

// A document without utcOffset has the offset with which its time is written.
func TestPull_withoutUTCOffsetUsesTheOffsetOfTheTime(t *testing.T) {
	s := newServer(t)
	s.treatments = read(t, `[
		{"_id":"a","eventType":"Carb Correction","created_at":"2026-03-04T07:30:00-0200","carbs":15},
		{"_id":"b","eventType":"Carb Correction","created_at":"2026-03-04T10:32:00+01:00","carbs":15,"utcOffset":120},
		{"_id":"c","eventType":"Carb Correction","created_at":"2026-03-04T09:33:00Z","carbs":15}]`)
	c := s.connector()
	got, _ := s.all(c, s.signedIn(c), "carbohydrates", 1)
	offsets := map[string]*int{}
	for _, p := range got {
		for _, x := range p.Samples {
			offsets[x.Timestamp.Format("15:04")] = x.TimezoneOffset
		}
	}
	require.Equal(t, map[string]*int{"09:30": ptr(-7200), "09:32": ptr(7200), "09:33": nil}, offsets)
}
