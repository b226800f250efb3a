package httpapi_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// A stream is uploaded whole, or in parts that come in any order and at the same time.
func TestUploadWorkoutStream(t *testing.T) {
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
