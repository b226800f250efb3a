package httpapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/prove"
)

// A stream is uploaded whole, or in parts that come in any order and at the same time.
func TestWorkoutStream_isUploadedWholeOrInParts(t *testing.T) {
	c := newFixture(t, nil)
	c.post(c.summary("workouts"), upload(`{"external_id":"w1","time_start":"2026-03-01T07:00:00Z","time_end":"2026-03-01T07:30:00Z","sport":""}`), 200)
	read := func() (w healthdata.Workout) {
		var all struct{ Workouts []healthdata.Workout }
		c.get(c.summary("workouts")+year, 200).JSON(t, &all)
		return all.Workouts[0]
	}
	id := read().ID.String()
	path := c.timeseries("workouts/" + id + "/stream")
	const start = 1772348400 // 2026-03-01T07:00:00Z
	body := func(mode string, from, n int) string {
		var times, rates []string
		for i := range n {
			times, rates = append(times, fmt.Sprint(start+from+i)), append(rates, fmt.Sprint(100+from+i))
		}
		return `{"provider":"acme_band","mode":"` + mode + `","stream":{"time":[` + strings.Join(times, ",") + `],"heartrate":[` + strings.Join(rates, ",") + `]}}`
	}
	stream := func() (s healthdata.WorkoutStream) {
		c.get("/v2/timeseries/workouts/"+id+"/stream", 200).JSON(t, &s)
		return s
	}
	require.JSONEq(t, `{"new":1,"changed":0,"same":0,"dropped":0}`, string(c.post(path, body("replace", 0, 10), 200).Body))
	require.JSONEq(t, `{"new":0,"changed":0,"same":1,"dropped":0}`, string(c.post(path, body("append", 3, 4), 200).Body))
	require.Len(t, stream().Time, 10)
	require.Equal(t, []int64{0, 9, 0, 0, 0, 0}, read().HRZones, "100 to 108 of 190")
	var parts sync.WaitGroup
	for part := range 6 {
		parts.Go(func() { c.Send(t, "POST", path, body("append", 60-10*part, 15)).Want(t, 200) })
	}
	parts.Wait()
	got := stream()
	require.Len(t, got.Time, 75)
	for i := range got.Time {
		require.EqualValues(t, start+i, got.Time[i])
		require.EqualValues(t, 100+i, *got.Heartrate[i])
	}
	require.Empty(t, got.Power)
	c.post(path, body("replace", 0, 2), 200)
	require.Len(t, stream().Time, 2)

	c.post(path, body("extend", 0, 2), 422)
	c.post(path, `{"provider":"acme_band","stream":{"time":[2,1]}}`, 422)
	c.post(path, `{"provider":"acme_band","stream":{}}`, 422)
	c.post(path, `{"provider":"manual","stream":{"time":[]}}`, 404)
	c.post("/v2/timeseries/"+c.foreign.String()+"/workouts/"+id+"/stream", body("replace", 0, 2), 404)
	c.post(path, `{"provider":"acme_band","stream":{"time":[`+strings.Repeat("1,", 5<<20)+`1]}}`, 413)
}

// Of a random good stream with one bad value, everything else is stored, and the answer names the point and
// the array. With atomic, nothing is.
func TestWorkoutStream_refusesOnlyTheInvalidValueUnlessAtomic(t *testing.T) {
	r := rand.New(rand.NewPCG(35, 44))
	c := newFixture(t, nil)
	c.post(c.summary("workouts"), upload(`{"external_id":"w1","time_start":"2026-03-01T07:00:00Z","time_end":"2026-03-01T07:30:00Z","sport":""}`), 200)
	var all struct{ Workouts []healthdata.Workout }
	c.get(c.summary("workouts")+year, 200).JSON(t, &all)
	path := c.timeseries("workouts/" + all.Workouts[0].ID.String() + "/stream")
	read := func() string { return string(c.get(healthdata.StreamPath(all.Workouts[0].ID), 200).Body) }
	const start = 1772348400 // 2026-03-01T07:00:00Z
	columns := [][]string{{"cadence"}, {"altitude"}, {"velocity_smooth"}, {"lat", "lng"}, {"distance"}, {"power"}, {"resistance"}, {"temperature"}}
	for range prove.Sequential(100, 300, 10_000) {
		n := 2 + r.IntN(8)
		good := map[string][]string{}
		for i := range n {
			good["time"] = append(good["time"], fmt.Sprint(start+5*i))
			good["heartrate"] = append(good["heartrate"], fmt.Sprint(60+i))
		}
		for _, names := range columns {
			if r.IntN(2) == 0 {
				for i := range n {
					for _, name := range names {
						good[name] = append(good[name], fmt.Sprint(40+i))
					}
				}
			}
		}
		names := slices.Sorted(maps.Keys(good))
		body := func(of map[string][]string) string {
			var out []string
			for _, name := range names {
				out = append(out, `"`+name+`":[`+strings.Join(of[name], ",")+`]`)
			}
			return `{"provider":"acme_band","stream":{` + strings.Join(out, ",") + `}}`
		}
		at, name := r.IntN(n), names[r.IntN(len(names))]
		kinds := []string{`"90"`, `{}`, `[90]`, `true`, `1e999`, `"x"`}
		if name == "time" {
			kinds = append(kinds, `null`, `1772348400.5`)
		}
		// What is left: the stream without the point, or without the value.
		rest, bad := map[string][]string{}, map[string][]string{}
		for _, column := range names {
			rest[column], bad[column] = slices.Clone(good[column]), slices.Clone(good[column])
			if name == "time" {
				rest[column] = slices.Delete(rest[column], at, at+1)
			}
		}
		kind := kinds[r.IntN(len(kinds))]
		if bad[name][at] = kind; name != "time" {
			rest[name][at] = "null"
			if other := map[string]string{"lat": "lng", "lng": "lat"}[name]; other != "" {
				rest[other][at] = "null" // half a position is none
			}
		}
		what := name + ": " + kind
		require.Equal(t, 422, c.Send(t, "POST", path+"?atomic=true", body(bad)).Status, what)
		reply := c.Send(t, "POST", path, body(bad))
		require.Equal(t, 200, reply.Status, what+string(reply.Body))
		var counts healthdata.Counts
		require.NoError(t, json.Unmarshal(reply.Body, &counts))
		require.Equal(t, 1, counts.RefusedCount, what)
		require.Equal(t, at, counts.Refused[0].Index, what)
		require.Equal(t, name, counts.Refused[0].Problems[0].Field, what)
		require.NotEqual(t, "too_early", counts.Refused[0].Problems[0].Type, what)
		got := read()
		c.post(path, body(rest), 200)
		require.JSONEq(t, read(), got, what)
	}
	require.Equal(t, 422, c.Send(t, "POST", path, `{"provider":"acme_band","stream":{"time":["x",null],"power":[1,2]}}`).Status, "no point is left")
}
