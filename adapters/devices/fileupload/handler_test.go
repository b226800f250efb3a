package fileupload_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/fileupload"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
)

// body is what the app sends of a morning: two metrics, a night and a workout.
const body = `{"data":{"metrics":[
 {"name":"step_count","units":"count","data":[
  {"date":"2026-03-28 08:01:00 +0100","qty":40,"source":"Ana's Phone"},{"date":"2026-03-28 08:02:00 +0100","qty":60,"source":"Ana's Phone"}]},
 {"name":"heart_rate","units":"count/min","data":[
  {"date":"2026-03-28 08:01:12 +0100","Min":61,"Avg":61,"Max":61,"source":"Ana's Watch"}]},
 {"name":"blood_glucose","units":"mg/dL","data":[{"date":"2026-03-28 08:05:10 +0100","qty":90.5,"source":"Sensor"}]},
 {"name":"sleep_analysis","units":"hr","data":[
  {"date":"2026-03-28 00:00:00 +0100","sleepStart":"2026-03-27 23:00:00 +0100","sleepEnd":"2026-03-28 06:30:00 +0100","inBedStart":"2026-03-27 22:50:00 +0100","inBedEnd":"2026-03-28 06:40:00 +0100","core":4,"deep":1.5,"rem":1.5,"awake":0.5,"totalSleep":7,"inBed":0,"source":"Ana's Watch"}]}],
 "workouts":[{"id":"6E5B57B4-6A3C-4B0B-8A60-3B4B8F0B7F11","name":"Outdoor Run","start":"2026-03-28 07:00:00 +0100","end":"2026-03-28 07:30:00 +0100","duration":1800,"distance":{"qty":5,"units":"km"}}]}}`

// mount is the handler over a service with a team of two people.
type mount struct {
	t        *testing.T
	handler  http.Handler
	health   *healthdata.Service
	team     healthlab.TeamID
	ana, ben healthlab.UserID
	scopes   organisation.Scopes
	log      bytes.Buffer
}

func newMount(t *testing.T, max int64) *mount {
	t.Helper()
	m := &mount{t: t, team: healthlab.TeamID{UUID: uuid.New()}}
	now := func() time.Time { return time.Date(2026, 3, 28, 9, 0, 0, 0, time.UTC) }
	providers, err := healthdata.NewProviders([]healthdata.Provider{
		{Slug: healthdata.SlugManual, Name: "Own data", Category: "provider", Class: "manual"},
		{Slug: healthdata.SlugAppleHealthKit, Name: "Phone", Category: "app", Class: "sdk_store", MultiApp: true},
	})
	require.NoError(t, err)
	store := memory.New(nil)
	m.health, err = healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox, Now: now})
	require.NoError(t, err)
	for client, id := range map[string]*healthlab.UserID{"ana": &m.ana, "ben": &m.ben} {
		u, err := m.health.CreateUser(t.Context(), m.team, healthdata.NewUser{ClientUserID: client})
		require.NoError(t, err)
		*id = u.ID
	}
	m.handler, err = fileupload.Handler(fileupload.Config{
		Health: m.health, MaxBytes: max, Now: now,
		API: httpapi.Config{Log: slog.New(slog.NewTextHandler(&m.log, nil)), Authenticate: func(r *http.Request) (httpapi.Caller, error) {
			switch r.Header.Get("x-service-api-key") {
			case "team":
				return httpapi.Caller{Team: m.team, Scopes: m.scopes}, nil
			case "ben":
				return httpapi.Caller{Team: m.team, User: m.ben}, nil
			case "other":
				return httpapi.Caller{Team: healthlab.TeamID{UUID: uuid.New()}}, nil
			}
			return httpapi.Caller{}, healthlab.Unauthenticated
		}},
	})
	require.NoError(t, err)
	return m
}

func (m *mount) send(path, key string, file []byte, header ...string) *httptest.ResponseRecorder {
	m.t.Helper()
	r := httptest.NewRequestWithContext(m.t.Context(), http.MethodPost, path, bytes.NewReader(file))
	r.Header.Set("x-service-api-key", key)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	m.handler.ServeHTTP(w, r)
	return w
}

func (m *mount) stored(path, key string, file []byte, header ...string) fileupload.Result {
	m.t.Helper()
	w := m.send(path, key, file, header...)
	require.Equal(m.t, http.StatusOK, w.Code, w.Body)
	require.Equal(m.t, "application/json", w.Header().Get("Content-Type"))
	require.Equal(m.t, "no-store", w.Header().Get("Cache-Control"))
	var out fileupload.Result
	require.NoError(m.t, json.Unmarshal(w.Body.Bytes(), &out))
	return out
}

func (m *mount) samples(resource string) []healthdata.Sample {
	m.t.Helper()
	groups, err := m.health.Samples(m.t.Context(), m.team, m.ana, healthdata.SampleQuery{Resource: resource})
	require.NoError(m.t, err)
	var out []healthdata.Sample
	for _, g := range groups.Groups {
		for s := range g.All() {
			out = append(out, s)
		}
	}
	return out
}

func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// A file is stored, and the same file again, compressed this time, counts once.
func TestUpload_resentFileAddsNoData(t *testing.T) {
	m := newMount(t, 0)
	first := m.stored("/"+m.ana.String(), "team", []byte(body), "content-type", "application/json")
	require.Equal(t, "health_auto_export", string(first.Format))
	require.Equal(t, map[string]int{"steps": 2, "heartrate": 1, "glucose": 1}, first.Samples)
	require.Equal(t, map[string]int{"sleep": 1, "workouts": 1}, first.Summaries)
	require.Equal(t, []int{6, 0, 0}, []int{first.New, first.Changed, first.Same})
	again := m.stored("/"+m.ana.String(), "team", zipped(t, body), "content-encoding", "gzip")
	require.Equal(t, []int{0, 0, 6}, []int{again.New, again.Changed, again.Same})
	require.Len(t, m.samples("steps"), 2)
}

// One bad item costs itself, and the answer names it without its value.
func TestUpload_invalidItemIsLeftOutAndNamedWithoutItsValue(t *testing.T) {
	m := newMount(t, 0)
	bad := strings.Replace(body, `"qty":60`, `"qty":"sixty-one"`, 1)
	bad = strings.Replace(bad, `"Avg":61`, `"Avg":61000`, 1)
	out := m.stored("/"+m.ana.String(), "team", []byte(bad))
	require.Equal(t, map[string]int{"steps": 1, "glucose": 1}, out.Samples)
	require.Equal(t, map[string]int{"heartrate": 1}, out.Refused)
	require.Equal(t, 4, out.New)
	require.NotEmpty(t, out.Notes)
	for _, note := range out.Notes {
		require.NotContains(t, note, "61000")
		require.NotContains(t, note, "sixty")
	}
}

// How long totals last is said by the app's header or by the query.
func TestUpload_headerOrQuerySetsTheIntervalOfTotals(t *testing.T) {
	const one = `{"data":{"metrics":[{"name":"step_count","units":"count","data":[{"date":"2026-03-27 00:00:00 +0100","qty":9312}]}]}}`
	m := newMount(t, 0)
	path := "/" + m.ana.String()
	require.Empty(t, m.stored(path, "team", []byte(one)).Samples)
	require.Empty(t, m.stored(path+"?aggregation=", "team", []byte(one)).Samples)
	require.Equal(t, 1, m.stored(path, "team", []byte(one), "automation-aggregation", "Days").New)
	require.Equal(t, 1, m.stored(path+"?aggregation=days&time_zone=Europe/Berlin&date_order=day_first", "team", []byte(one)).Same)
}

// Other formats are files as well.
func TestUpload_acceptsRecordingsOfOtherFormats(t *testing.T) {
	const run = `<gpx version="1.1"><trk><type>running</type><trkseg>
<trkpt lat="47.3700" lon="8.54"><time>2026-03-28T06:30:00Z</time><extensions><hr>118</hr></extensions></trkpt>
<trkpt lat="47.3709" lon="8.54"><time>2026-03-28T06:30:30Z</time><extensions><hr>131</hr></extensions></trkpt>
</trkseg></trk></gpx>`
	m := newMount(t, 0)
	w := m.send("/"+m.ana.String(), "team", []byte(run))
	require.Equal(t, http.StatusBadRequest, w.Code, w.Body)
	require.Contains(t, w.Body.String(), "NO_CONNECTION")
	_, err := m.health.Connections().Connect(t.Context(), m.team, m.ana, healthdata.NewConnection{Provider: healthdata.SlugManual})
	require.NoError(t, err)
	out := m.stored("/"+m.ana.String(), "team", []byte(run))
	require.Equal(t, 1, out.Streams)
	require.Equal(t, map[string]int{"workouts": 1}, out.Summaries)
}

func TestUpload_refusesInvalidCallersParametersAndFiles(t *testing.T) {
	m := newMount(t, 4096)
	const reading = "Device,Serial Number,Device Timestamp,Record Type,Historic Glucose mg/dL\nL,1,05-03-2026 22:04,0,108\n"
	bomb := func() string {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		f, err := w.Create("a.gpx")
		require.NoError(t, err)
		_, err = io.WriteString(f, "<gpx>"+strings.Repeat(" ", 16*4096))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		return b.String()
	}()
	path := "/" + m.ana.String()
	for _, tt := range []struct {
		name, path, key, file string
		header                []string
		status                int
		part                  string
	}{
		{"no zone", path, "team", reading, nil, 422, "(time_zone)"},
		{"no order", path + "?time_zone=Europe/Berlin", "team", reading, nil, 422, "must be set to day_first or month_first (date_order)"},
		{"a database", path, "team", "SQLite format 3\x00" + strings.Repeat("\x00", 100), nil, 422, "a SQLite database is not read here"},
		{"an archive that is too large", path, "team", bomb, nil, 422, "the archive must unpack to at most 65536 bytes"},
		{"a recording that is too large", path, "team", string(zipped(t, "<gpx>"+strings.Repeat(" ", 4096))), nil, 422, "the recording must have at most 4096 bytes"},
		{"no key", path, "", body, nil, 401, "x-service-api-key"},
		{"user of another team", path, "other", body, nil, 404, "user " + m.ana.String() + " not found"},
		{"user of whom the caller is not", path, "ben", body, nil, 404, "user " + m.ana.String() + " not found"},
		{"unknown user", "/" + uuid.Nil.String(), "team", body, nil, 404, "not found"},
		{"no id", "/ana", "team", body, nil, 422, "must be a UUID"},
		{"no file", path, "team", "", nil, 422, `"loc":["body"]`},
		{"a form", path, "team", body, []string{"content-type", "Multipart/Form-Data; boundary=x"}, 422, "--data-binary"},
		{"place of an id", "/ana", "team", body, nil, 422, `"loc":["path","user_id"]`},
		{"place of a parameter", path + "?zone=UTC", "team", body, nil, 422, `"loc":["query","zone"]`},
		{"place of a form", path, "team", body, []string{"content-type", "multipart/form-data"}, 422, `"loc":["header","content-type"]`},
		{"another format", path, "team", `{"steps": 1}`, nil, 422, "not a FIT, GPX, TCX"},
		{"unknown parameter", path + "?zone=UTC", "team", body, nil, 422, "time_zone"},
		{"wrong aggregation", path + "?aggregation=weeks", "team", body, nil, 422, "minutes, hours, days"},
		{"wrong zone", path + "?time_zone=Local", "team", body, nil, 422, "IANA"},
		{"wrong order", path + "?date_order=dmy", "team", body, nil, 422, "day_first, month_first"},
		{"twice", path + "?time_zone=UTC&time_zone=UTC", "team", body, nil, 422, "must be given once"},
		{"too large", path, "team", body + strings.Repeat(" ", 4096), nil, 413, "4096"},
		{"too large, compressed", path, "team", string(zipped(t, body+strings.Repeat(" ", 4096))), []string{"content-encoding", "gzip"}, 413, "4096"},
		{"not compressed", path, "team", body, []string{"content-encoding", "gzip"}, 400, "BODY_CODING_INVALID"},
		{"unknown coding", path, "team", body, []string{"content-encoding", "br"}, 415, "gzip, zstd"},
		{"all refused", path, "team", `{"data":{"metrics":[{"name":"heart_rate","units":"count/min","data":[{"date":"2026-03-28 08:01:12 +0100","Min":61000,"Avg":61000,"Max":61000}]}]}}`, nil, 422, "heartrate"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := m.send(tt.path, tt.key, []byte(tt.file), tt.header...)
			require.Equal(t, tt.status, w.Code, w.Body)
			require.Contains(t, w.Body.String(), tt.part)
			require.Contains(t, w.Body.String(), `"detail"`)
			require.NotContains(t, w.Body.String(), "61000")
			require.NotContains(t, w.Body.String(), "Options", "a Go name says nothing to the caller")
		})
	}
	m.scopes = organisation.Scopes{organisation.DataRead}
	require.Equal(t, http.StatusForbidden, m.send(path, "team", []byte(body)).Code)
	require.Empty(t, m.samples("steps"))
	require.Empty(t, m.log.String())
}

// An app sends a period without data, too: a file with nothing to store is no error, and the counts tell.
func TestUpload_fileWithNothingToStoreIsNoError(t *testing.T) {
	m := newMount(t, 0)
	for name, c := range map[string]struct {
		file    string
		leftOut map[string]int
	}{
		"an empty export":   {"<HealthData></HealthData>", nil},
		"empty lists":       {`{"data":{"metrics":[],"workouts":[]}}`, nil},
		"nothing known":     {`{"data":{"metrics":[{"name":"resting_heart_rate","units":"count/min","data":[{"date":"2026-03-28 00:00:00 +0100","qty":50}]}]}}`, map[string]int{"resting_heart_rate": 1}},
		"nothing of a time": {`<HealthData><Record type="HKQuantityTypeIdentifierHeartRate" sourceName="W" unit="count/min" value="60" startDate="x" endDate="x"/></HealthData>`, map[string]int{"record whose startDate is not a date-time with an offset": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			out := m.stored("/"+m.ana.String(), "team", []byte(c.file))
			require.Equal(t, []int{0, 0, 0}, []int{out.New, out.Changed, out.Same})
			require.Equal(t, c.leftOut, out.LeftOut)
		})
	}
}

// A caller that is bound to one user sends that user's files.
func TestUpload_userBoundCallerMayUploadForItsUser(t *testing.T) {
	m := newMount(t, 0)
	require.Equal(t, 6, m.stored("/"+m.ben.String(), "ben", []byte(body)).New)
}

// A request that ends does not leave the handler at work.
func TestUpload_endedRequestStopsTheImport(t *testing.T) {
	m := newMount(t, 0)
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errors.New("hung up"))
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/"+m.ana.String(), strings.NewReader(body))
	r.Header.Set("x-service-api-key", "team")
	w := httptest.NewRecorder()
	m.handler.ServeHTTP(w, r)
	require.GreaterOrEqual(t, w.Code, 400)
	require.Empty(t, m.samples("steps"))
}

func TestHandler_requiresConfigAuthenticateAndHealth(t *testing.T) {
	_, err := fileupload.Handler(fileupload.Config{})
	require.ErrorIs(t, err, healthlab.Invalid)
	require.ErrorContains(t, err, "API.Authenticate")
	require.ErrorContains(t, err, "Health")
}

func Example() {
	store := memory.New(nil)
	providers, _ := healthdata.NewProviders([]healthdata.Provider{{Slug: healthdata.SlugAppleHealthKit, Name: "Phone", Category: "app", Class: "sdk_store", MultiApp: true}})
	health, err := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
	if err != nil {
		fmt.Println(err)
		return
	}
	team := healthlab.TeamID{UUID: uuid.New()}
	ana, err := health.CreateUser(context.Background(), team, healthdata.NewUser{ClientUserID: "ana"})
	if err != nil {
		fmt.Println(err)
		return
	}
	// The key of a phone is that of one person.
	authenticate := func(r *http.Request) (httpapi.Caller, error) {
		if r.Header.Get("x-phone-key") != "key-of-the-phone" {
			return httpapi.Caller{}, healthlab.Unauthenticated
		}
		return httpapi.Caller{Team: team, User: ana.ID}, nil
	}
	h, err := fileupload.Handler(fileupload.Config{API: httpapi.Config{Authenticate: authenticate}, Health: health})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("/import/", http.StripPrefix("/import", h))

	const sent = `{"data":{"metrics":[{"name":"step_count","units":"count","data":[{"date":"2026-03-28 00:00:00 +0100","qty":9312}]}]}}`
	r := httptest.NewRequest(http.MethodPost, "/import/"+ana.ID.String(), strings.NewReader(sent))
	r.Header.Set("x-phone-key", "key-of-the-phone")
	r.Header.Set("automation-aggregation", "Days")
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Body)
	// Output:
	// 200 {"format":"health_auto_export","new":1,"changed":0,"same":0,"samples":{"steps":1},"workout_streams":0}
}
