package double

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Strava returns a test double of the Strava API v3, and a function that returns the expected data of a person.
func Strava(o Options) (*Server, func(*Person) Truth) {
	s := newServer("Strava", paths{authorize: "/oauth/authorize", token: "/api/v3/oauth/token", revoke: "POST /oauth/deauthorize"}, o)
	s.granted = func(p *Person) object { return object{"athlete": object{"id": p.Number}} }
	s.limited = func(h http.Header, all []room) {
		all = padLimits(all, 2)
		h.Set("X-ReadRateLimit-Limit", fmt.Sprintf("%d,%d", all[0].Requests, all[1].Requests))
		h.Set("X-ReadRateLimit-Usage", fmt.Sprintf("%d,%d", all[0].used(), all[1].used()))
	}
	s.data("/api/v3/athlete/activities", func(p *Person, q url.Values) (any, error) {
		after, err := strconv.ParseInt(q.Get("after"), 10, 64)
		before, bad := strconv.ParseInt(q.Get("before"), 10, 64)
		size, worse := strconv.Atoi(q.Get("per_page"))
		number, _ := strconv.Atoi(q.Get("page"))
		if errors.Join(err, bad, worse) != nil || size > 200 || number < 1 {
			return nil, errors.New("after and before must be Unix seconds, page must be at least 1, and per_page at most 200")
		}
		found := []object{}
		for i := range p.Workouts {
			w := &p.Workouts[i]
			if w.Start.Unix() > after && w.Start.Unix() < before {
				doc := stravaActivity(p, i)
				delete(doc, "calories")
				found = append(found, doc)
			}
		}
		items, _ := page(found, strconv.Itoa((number-1)*3), 3) // the API may return fewer items than requested
		return items, nil
	})
	s.data("/api/v3/athlete", func(p *Person, _ url.Values) (any, error) {
		return object{"id": p.Number, "resource_state": 2, "sex": "F", "weight": nil, "city": nil}, nil
	})
	at := func(p *Person, id string) int {
		n, err := strconv.Atoi(id)
		if i := n - 1_000_000; err == nil && i >= 0 && i < len(p.Workouts) {
			return i
		}
		return -1
	}
	s.one("/api/v3/activities/{id}", func(p *Person, id string) any {
		if i := at(p, id); i >= 0 {
			return stravaActivity(p, i)
		}
		return nil
	})
	s.one("/api/v3/activities/{id}/streams", func(p *Person, id string) any {
		i := at(p, id)
		if i < 0 || p.Workouts[i].Distance == 0 {
			return nil // the workout has no recording
		}
		times, bpm := []int{}, []int{}
		p.Workouts[i].stream(func(second, hr int) { times, bpm = append(times, second), append(bpm, hr) })
		return object{"time": object{"data": times, "series_type": "time"}, "heartrate": object{"data": bpm, "series_type": "time"}}
	})
	return s, stravaTruth
}

func (w *Workout) stream(add func(second, bpm int)) {
	for second := 0; second < int(w.End.Sub(w.Start)/time.Second); second += 30 {
		add(second, w.AverageHR+second%17)
	}
}

var stravaSports = map[string]string{"running": "Run", "cycling": "Ride", "yoga": "Yoga"}

func stravaActivity(p *Person, i int) object {
	w := &p.Workouts[i]
	return object{
		"id": 1_000_000 + i, "athlete": object{"id": p.Number}, "name": "Session", "sport_type": stravaSports[w.Sport],
		"start_date": w.Start.UTC().Format(time.RFC3339), "start_date_local": w.Start.Add(time.Duration(p.Offset) * time.Second).UTC().Format(time.RFC3339),
		"timezone": "(GMT+01:00) Europe/Vienna", "utc_offset": float64(p.Offset), "elapsed_time": int(w.End.Sub(w.Start) / time.Second),
		"moving_time": int(w.End.Sub(w.Start)/time.Second) - 30, "distance": w.Distance, "total_elevation_gain": w.Climb, "manual": false,
		"average_heartrate": float64(w.AverageHR), "max_heartrate": float64(w.Max), "calories": w.KCal,
	}
}

func stravaTruth(p *Person) Truth {
	t := Truth{}
	t.put("profile", "profile.female", 1)
	for i := range p.Workouts {
		w := &p.Workouts[i]
		t.workout(w)
		t.put("workouts", stamp(w.Start)+".distance", w.Distance)
		t.put("workouts", stamp(w.Start)+".average", float64(w.AverageHR))
		t.put("workouts", stamp(w.Start)+".max", float64(w.Max))
		if w.Distance > 0 {
			w.stream(func(second, bpm int) {
				t.put("workout_stream", stamp(w.Start.Add(time.Duration(second)*time.Second)), float64(bpm))
			})
		}
	}
	return t
}
