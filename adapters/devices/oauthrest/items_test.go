package oauthrest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/oauthrest"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

func ptr[T any](v T) *T { return &v }

// Items name the device that recorded them. An attribute that is no text is left out, and a
// device without an id or a model is left out; the item is kept.
func TestPull_itemsNameTheDeviceThatRecordedThem(t *testing.T) {
	f := newFjord(t)
	f.data = func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/sleeps") {
			fmt.Fprint(w, `{"sleeps":[{"id":"n1","begin":"2026-03-03T22:00:00Z","end":"2026-03-04T06:00:00+01:00","ring":{"serial":"R-7","model":"Ring 2"}},
				{"id":"n2","begin":"2026-03-02T22:00:00Z","end":"2026-03-03T06:00:00+01:00","ring":null}]}`)
			return
		}
		fmt.Fprint(w, `{"user":"ann/7","firmware":2.5,"samples":[
			{"time":"2026-03-04T07:00:00Z","bpm":61,"device":"ring","serial":"R-7","model":"Ring 2"},
			{"time":"2026-03-04T07:01:00Z","bpm":62,"device":"ring","serial":7},
			{"time":"2026-03-04T07:02:00Z","bpm":63,"device":"ring","serial":"R-7","model":"Ring 2"},
			{"time":"2026-03-04T07:03:00Z","bpm":64,"device":"ring","serial":{"a":1},"model":[]},
			{"time":"2026-03-04T07:04:00Z","bpm":65,"device":"ring"}]}`)
	}
	c := f.connector(nil)
	type seen struct {
		device *healthdata.DeviceInfo
		items  int
	}
	devices := func(resource string) (out []seen) {
		for _, p := range all(t, c, ask(resource)) {
			require.Empty(t, p.Unparsed)
			out = append(out, seen{p.Device, len(p.Samples) + len(p.Summaries)})
		}
		return out
	}
	require.Equal(t, []seen{
		{&healthdata.DeviceInfo{ID: ptr("R-7"), Manufacturer: ptr("Fjord"), Model: ptr("Ring 2"), Version: ptr("2.5")}, 2},
		{&healthdata.DeviceInfo{ID: ptr("7"), Manufacturer: ptr("Fjord"), Version: ptr("2.5")}, 1},
		{nil, 2},
	}, devices("heartrate"))
	require.Equal(t, []seen{{&healthdata.DeviceInfo{ID: ptr("R-7"), Model: ptr("Ring 2")}, 1}, {nil, 1}}, devices("sleep"))
}

// A provider may list devices in an answer of its own; a device without an id or a model is
// reported as unparsed.
func TestPull_readsAListOfDevices(t *testing.T) {
	f := newFjord(t)
	f.answers(http.StatusOK, `{"devices":[{"kind":"ring","serial":"R-7","model":"Ring 2","firmware":"2.5"},{"kind":"lamp","model":"Lamp"},{"kind":"scale","firmware":"1"}]}`)
	c := f.connector(nil)
	require.True(t, c.Pulls("device"))
	require.False(t, c.Pulls("workout_stream"))
	got := all(t, c, ask("device"))
	require.Len(t, got, 3)
	require.Equal(t, linking.PullItem{
		Source: healthdata.Source{Type: healthdata.SourceRing},
		Device: &healthdata.DeviceInfo{ID: ptr("R-7"), Manufacturer: ptr("Fjord"), Model: ptr("Ring 2"), Version: ptr("2.5"), Raw: got[0].Device.Raw},
	}, got[0])
	require.JSONEq(t, `{"kind":"ring","serial":"R-7","model":"Ring 2","firmware":"2.5"}`, string(got[0].Device.Raw))
	require.Equal(t, healthdata.SourceUnknown, got[1].Source.Type)
	require.Equal(t, &healthdata.DeviceInfo{Manufacturer: ptr("Fjord"), Model: ptr("Lamp"), Raw: got[1].Device.Raw}, got[1].Device)
	require.Nil(t, got[2].Device)
	require.Equal(t, []any{"device"}, got[2].Unparsed[0].Problems[0].Path)

	without := strings.Replace(f.document(), `"resource": "device"`, `"resource": "hrv"`, 2)
	_, err := oauthrest.ReadConfig(strings.NewReader(without))
	require.ErrorContains(t, err, "resources[7]", "anything else is not made of a device alone")
	none := f.connector(func(c *oauthrest.Config) {
		c.Resources, c.Provider.Resources = c.Resources[:7], c.Provider.Resources[:7]
	})
	require.False(t, none.Pulls("device"))
}

// Samples of a workout name it by the id that the provider gave it.
func TestPull_samplesNameTheirWorkout(t *testing.T) {
	f := newFjord(t)
	const entries = `[
    {"resource": "workouts", "path": "/w", "items": "/*", "source_type": {"const": "ring"}, "summary": {"id": "/id", "fields": {
      "time_start": {"at": "/begin"}, "time_end": {"at": "/end"}, "sport.slug": {"at": "/what"}}}},
    {"resource": "workout_distance", "path": "/w", "items": "/*/laps/*", "source_type": {"const": "ring"}, "workout": {"at": "^/id"}, "sport": {"at": "^/what"},
      "sample": {"timestamp": {"at": "/t"}, "seconds": {"const": "60"}, "value": {"at": "/m"}, "unit": {"const": "m"}}}]`
	edit := func(entries string) string {
		var doc map[string]any
		require.NoError(t, json.Unmarshal([]byte(f.document()), &doc))
		provider := doc["provider"].(map[string]any)
		delete(provider, "scopes")
		delete(doc["oauth"].(map[string]any), "minimum_scopes")
		provider["resources"] = []any{map[string]any{"resource": "workouts"}, map[string]any{"resource": "workout_distance"}}
		doc["resources"] = json.RawMessage(entries)
		out, err := json.Marshal(doc)
		require.NoError(t, err)
		return string(out)
	}
	config, err := oauthrest.ReadConfig(strings.NewReader(edit(entries)))
	require.NoError(t, err)
	c, err := oauthrest.New(config, oauthrest.Client{ID: "id", Secret: "secret"}, &oauthrest.Options{Guard: guard(), Timeout: time.Second})
	require.NoError(t, err)
	f.answers(http.StatusOK, `[
		{"id":"w1","what":"running","begin":"2026-03-04T07:00:00Z","end":"2026-03-04T08:00:00Z","laps":[{"t":"2026-03-04T07:00:00Z","m":150},{"t":"2026-03-04T07:01:00Z","m":160}]},
		{"id":"w2","what":"cycling","begin":"2026-03-03T07:00:00Z","end":"2026-03-03T08:00:00Z","laps":[{"t":"2026-03-03T07:00:00Z","m":400}]},
		{"what":"cycling","laps":[{"t":"2026-03-02T07:00:00Z","m":400}]}]`)
	got := all(t, c, ask("workout_distance"))
	require.Len(t, got, 3)
	require.Equal(t, []any{"w1", "running", 2}, []any{*got[0].Workout, *got[0].Source.Sport, len(got[0].Samples)})
	require.Equal(t, []any{"w2", "cycling", 1}, []any{*got[1].Workout, *got[1].Source.Sport, len(got[1].Samples)})
	require.Nil(t, got[2].Workout, "who stores it refuses what names none")
	workouts := all(t, c, ask("workouts"))
	require.Equal(t, "w1", healthdata.HeadOf(workouts[0].Summaries[0]).ExternalID)

	for name, x := range map[string]struct{ old, new, want string }{
		"no workout":   {`"workout": {"at": "^/id"}, `, "", "resources[1].workout"},
		"no sport":     {`"sport": {"at": "^/what"},`, "", "resources[1].sport"},
		"no id":        {`{"id": "/id", `, "{", "resources[1].workout"},
		"of a summary": {`"path": "/w", "items": "/*",`, `"path": "/w", "items": "/*", "workout": {"at": "/id"}, "sport": {"at": "/what"},`, "resources[0].workout"},
	} {
		require.Contains(t, entries, x.old, name)
		_, err := oauthrest.ReadConfig(strings.NewReader(edit(strings.Replace(entries, x.old, x.new, 1))))
		require.ErrorContains(t, err, x.want, name)
	}
}

// diaryEntry is what a person wrote down.
type diaryEntry struct {
	at    time.Time // when it really was
	grams int
}

// diary answers as a provider does that rounds the time of entries to the hour: it finds
// them by when they really were, some at a time.
func diary(t testing.TB, entries []diaryEntry, size int, newestFirst bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		from, err := time.Parse(time.RFC3339, q.Get("from"))
		require.NoError(t, err)
		to, err := time.Parse(time.RFC3339, q.Get("to"))
		require.NoError(t, err)
		require.False(t, to.After(noon), "nobody has written anything then")
		require.LessOrEqual(t, to.Sub(from), 30*24*time.Hour, "no more than it takes")
		var fits []map[string]any
		for i := range entries {
			e := entries[i]
			if newestFirst {
				e = entries[len(entries)-1-i]
			}
			if !e.at.Before(from) && e.at.Before(to) {
				fits = append(fits, map[string]any{"kind": "food", "hour": e.at.Truncate(time.Hour), "grams": e.grams})
			}
		}
		begin, _ := strconv.Atoi(q.Get("cursor"))
		end := min(begin+size, len(fits))
		next := ""
		if end < len(fits) {
			next = strconv.Itoa(end)
		}
		require.NoError(t, json.NewEncoder(w).Encode(map[string]any{"entries": append([]map[string]any{}, fits[min(begin, end):end]...), "next_cursor": next}))
	}
}

// Entries of one hour become one sample, wherever pages and parts of the range end; an hour
// is never returned in two parts.
func TestPull_combinesEntriesOfAnHourIntoOneSample(t *testing.T) {
	f := newFjord(t)
	c := f.connector(nil)
	rapid.Check(t, func(r *rapid.T) {
		var entries []diaryEntry
		at := noon.AddDate(0, 0, -70)
		want := map[time.Time]int{}
		for at.Before(noon) {
			e := diaryEntry{at, rapid.IntRange(1, 9).Draw(r, "grams")}
			entries = append(entries, e)
			want[at.Truncate(time.Hour)] += e.grams
			at = at.Add(time.Duration(rapid.SampledFrom([]int{7, 20, 45, 600, 3000}).Draw(r, "minutes")) * time.Minute)
		}
		f.data = diary(t, entries, rapid.IntRange(1, 4).Draw(r, "size"), rapid.Bool().Draw(r, "newest first"))
		req := ask("carbohydrates")
		req.From, req.To = noon.AddDate(0, 0, -65).Add(-17*time.Minute), noon.Add(-23*time.Minute)
		got := map[time.Time]int{}
		pages := 0
		for {
			page, err := c.Pull(t.Context(), req)
			require.NoError(t, err)
			for _, p := range page.Items {
				require.Empty(t, p.Unparsed)
				for _, s := range p.Samples {
					at := s.Timestamp.UTC()
					if was, again := got[at]; again { // both parts of a range have the hour between them
						require.Equal(t, was, int(s.Value.Number))
					}
					got[at] = int(s.Value.Number)
				}
			}
			pages++
			if req.Cursor = page.Next; req.Cursor == "" || pages > 10_000 {
				break
			}
		}
		for hour, grams := range want {
			if !hour.Before(req.From) && hour.Before(req.To) {
				require.Equal(t, grams, got[hour], hour)
			}
		}
		for hour, grams := range got {
			require.Equal(t, want[hour], grams, hour)
		}
	})
}

// Days have whole hours, and a note has what was written in one, with all its tags.
func TestPull_combinesNotesOfAnHourWithTheirTags(t *testing.T) {
	f := newFjord(t)
	f.answers(http.StatusOK, `{"entries":[
		{"hour":"2026-03-04T08:00:00+01:00","text":"porridge","about":["meal"]},
		{"hour":"2026-03-04T07:00:00Z","text":"a run","about":["sport","meal","luck"]},
		{"hour":"2026-03-04T09:00:00Z","text":"nothing"},
		{"hour":"2026-03-04T09:00:00Z","text":" "}]}`)
	got := all(t, f.connector(nil), ask("note"))
	require.Len(t, got, 1)
	at, next := at("2026-03-04T07:00:00Z"), at("2026-03-04T09:00:00Z")
	east := 3600
	require.Equal(t, []healthdata.Sample{
		{Timestamp: at, Start: &at, End: &at, TimezoneOffset: &east, Unit: "text", Value: healthdata.Text("porridge\na run"), Tags: []string{"food", "exercise", "unspecified"}},
		{Timestamp: next, Start: &next, End: &next, Unit: "text", Value: healthdata.Text("nothing")},
	}, got[0].Samples)
	q := f.requests[0].URL.Query()
	require.Equal(t, []string{"2026-03-01", "2026-03-04"}, []string{q.Get("first"), q.Get("last")})
}

func TestReadConfig_refusesInvalidDevicesAndDiaries(t *testing.T) {
	f := newFjord(t)
	for name, c := range map[string]struct{ old, new, want string }{
		"no device":            {`"device": {"id": {"at": "/ring/serial"}, "model": {"at": "/ring/model"}}`, `"device": {}`, "resources[4].device"},
		"place of a device":    {`{"at": "/ring/serial"}`, `{"at": "^^^^/serial"}`, "resources[4].device.id.at"},
		"const and place":      {`"manufacturer": {"const": "Fjord"}`, `"manufacturer": {"const": "Fjord", "at": "/a"}`, "resources[0].device.manufacturer"},
		"no diary":             {`"resource": "heartrate",`, `"resource": "heartrate", "combine": true,`, "resources[0].combine"},
		"a diary's devices":    {`"combine": true`, `"combine": true, "device": {"id": {"at": "/a"}}`, "resources[5].device"},
		"tags are a list":      {`"/about/*"`, `"/about"`, "resources[6].sample.tags.at"},
		"tags of no note":      {`"bpm"}`, `"bpm"}, "tags": {"at": "/a/*"}`, "resources[0].sample.tags"},
		"two of one diary":     {`"resource": "note",`, `"resource": "carbohydrates",`, "resources[5].combine"},
		"floating by the hour": {`{"resource": "carbohydrates"}`, `{"resource": "carbohydrates", "affinity": "floating"}`, "resources[5].range.format"},
	} {
		t.Run(name, func(t *testing.T) {
			doc := f.document()
			require.Contains(t, doc, c.old)
			_, err := oauthrest.ReadConfig(strings.NewReader(strings.Replace(doc, c.old, c.new, 1)))
			require.ErrorIs(t, err, healthlab.Invalid)
			require.ErrorContains(t, err, c.want)
		})
	}
}
