package httpapi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata"
)

func TestBirthDate_before1900IsRefused(t *testing.T) {
	c := newFixture(t, nil)
	path := "/v2/user/" + c.user.String()
	require.Contains(t, string(c.Send(t, "PATCH", path, object{"fallback_birth_date": "1899-12-31"}).Want(t, 422).Body), "1900-01-01")
	c.Send(t, "PATCH", path, object{"fallback_birth_date": "1900-01-01"}).Want(t, 204)
	c.post("/v2/user", object{"client_user_id": "patient-78", "fallback_birth_date": "1850-01-01"}, 422)
	c.post(c.summary("profile"), upload(`{"birth_date":"1899-12-31"}`), 422)
}

// A sample without an offset that is sent again keeps the one that it was stored with.
func TestResend_keepsTheStoredOffsetAfterAZoneChange(t *testing.T) {
	now := fixtureNow
	c := newFixture(t, &healthdata.Options{Now: func() time.Time { return now }})
	zone := func(id string) {
		now = now.Add(time.Minute)
		c.Send(t, "PATCH", "/v2/user/"+c.user.String(), object{"fallback_time_zone": id}).Want(t, 204)
	}
	send := func() string {
		return string(c.post(c.timeseries("heartrate"), upload(`{"timestamp":"2026-03-01T07:00:00Z","unit":"bpm","value":60}`), 200).Body)
	}
	read := func() string { return string(c.get(c.timeseries("heartrate")+year, 200).Body) }
	zone("Asia/Tokyo")
	require.Contains(t, send(), `"new":1`)
	require.Contains(t, read(), `"timezone_offset":32400`)
	zone("America/New_York")
	require.Contains(t, send(), `"same":1`)
	require.Contains(t, read(), `"timezone_offset":32400`)
}

// The user's birth date gives a workout its zones where the source knows none.
func TestWorkout_heartRateZonesUseTheFallbackBirthDate(t *testing.T) {
	c := newFixture(t, nil)
	c.Send(t, "PATCH", "/v2/user/"+c.user.String(), object{"fallback_birth_date": "1926-03-01"}).Want(t, 204)
	c.post(c.summary("workouts"), upload(`{"external_id":"w1","time_start":"2026-03-01T07:00:00Z","time_end":"2026-03-01T07:30:00Z","sport":""}`), 200)
	var all struct{ Workouts []healthdata.Workout }
	c.get(c.summary("workouts")+year, 200).JSON(t, &all)
	c.post(c.timeseries("workouts/"+all.Workouts[0].ID.String()+"/stream"),
		`{"provider":"acme_band","stream":{"time":[1772348400,1772348410],"heartrate":[90,90]}}`, 200)
	// 90 of a maximum of 120 beats per minute at the age of 100.
	require.Contains(t, string(c.get(c.summary("workouts")+year, 200).Body), `"hr_zones":[0,0,0,10,0,0]`)
}

// Texts of refusals name the allowed values.
func TestRefusal_listsTheAllowedValues(t *testing.T) {
	c := newFixture(t, nil)
	body := string(c.post(c.timeseries("heartrate"), strings.Replace(upload(), `"provider"`, `"stage":"weekly","provider"`, 1), 422).Body)
	require.Contains(t, body, "must be one of: daily, historical")
}

// A resource that is not there is answered with the nearest names of paths.
func TestUnknownResource_answerNamesTheNearestResources(t *testing.T) {
	c := newFixture(t, nil)
	samples, summaries := "/v2/timeseries/"+c.user.String()+"/body_wieght", "/v2/summary/slep/"+c.user.String()
	for _, call := range []struct {
		method, target, near string
		body                 any
	}{
		{"GET", samples + "?start_date=2026-03-01", "body_weight", nil},
		{"GET", samples + "/grouped?start_date=2026-03-01", "body_weight", nil},
		{"POST", samples, "body_weight", upload(`{"timestamp":"2026-03-01T08:00:00Z","unit":"kg","value":70}`)},
		{"POST", samples + "/remove", "body_weight", object{"provider": "manual", "source": object{"type": "app"}, "timestamps": []string{"2026-03-01T08:00:00Z"}}},
		{"POST", summaries + "/remove", "sleep", object{"provider": "manual", "source": object{"type": "app"}, "external_ids": []string{"1"}}},
	} {
		reply := c.Send(t, call.method, call.target, call.body).Want(t, 404)
		require.Equal(t, "NOT_FOUND", reply.ErrorType(t))
		require.Contains(t, string(reply.Body), "the nearest names are "+call.near+", ", call.target)
		require.NotContains(t, string(reply.Body), "wieght")
	}
}
