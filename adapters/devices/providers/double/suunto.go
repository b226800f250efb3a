package double

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// SuuntoKey is the subscription key that the test double of Suunto accepts.
const SuuntoKey = "subscription"

// Suunto returns a test double of the Suunto Cloud API, and a function that returns the expected data of a person.
func Suunto(o Options) (*Server, func(*Person) Truth) {
	o.PageSize = cmp.Or(o.PageSize, 100)
	s := newServer("Suunto", paths{authorize: "/oauth/authorize", token: "/oauth/token", revoke: "GET /oauth/deauthorize"}, o)
	s.key, s.keyValue = "Ocp-Apim-Subscription-Key", SuuntoKey
	s.accessToken = func(p *Person, word string) string {
		claims, _ := json.Marshal(object{"user": p.ID, "sub": "s" + p.ID, "jti": word}) //nolint:errchkjson // texts
		return "e30." + base64.RawURLEncoding.EncodeToString(claims) + ".c2ln"
	}
	s.limited = func(h http.Header, all []room) {
		if r := fewestLeft(all); r.left == 0 {
			h.Set("Retry-After", r.seconds())
		}
	}
	series := func(path string, all func(p *Person, add func(at time.Time, doc object))) {
		s.data("/247samples/"+path, func(p *Person, q url.Values) (any, error) {
			from, to, err := milliRange(q, "from", "to")
			if err != nil || to.Sub(from) > 28*24*time.Hour {
				return nil, errors.New("from and to must be Unix milliseconds, at most 28 days apart")
			}
			found := []object{}
			all(p, func(at time.Time, doc object) {
				if !at.Before(from) && !at.After(to) {
					found = append(found, object{"timestamp": p.local(at), "entryData": doc})
				}
			})
			return found, nil
		})
	}
	series("sleep", suuntoSleeps)
	series("activity", func(p *Person, add func(time.Time, object)) {
		for i := range p.Days {
			p.Days[i].suunto(add)
		}
	})
	s.data("/247/daily-activity-statistics", suuntoDays)
	s.data("/v3/workouts/{$}", func(p *Person, q url.Values) (any, error) {
		from, to, err := milliRange(q, "since", "until")
		limit, bad := strconv.Atoi(q.Get("limit"))
		if errors.Join(err, bad) != nil || limit > 100 {
			return nil, errors.New("since and until must be milliseconds, and limit at most 100")
		}
		found := []object{}
		for i := range p.Workouts {
			if w := &p.Workouts[i]; !w.Start.Before(from) && !w.Start.After(to) {
				found = append(found, suuntoWorkout(p, w))
			}
		}
		slices.Reverse(found)
		items, _ := page(found, q.Get("offset"), min(limit, o.PageSize))
		return object{"error": nil, "payload": items, "metadata": object{}}, nil
	})
	s.one("/v3/workouts/{id}", func(p *Person, id string) any {
		for i := range p.Workouts {
			if w := &p.Workouts[i]; w.ID == id {
				doc := suuntoWorkout(p, w)
				doc["extensions"] = suuntoRecording(w)
				return object{"error": nil, "payload": doc, "metadata": object{}}
			}
		}
		return nil
	})
	return s, suuntoTruth
}

func milliRange(q url.Values, from, to string) (start, end time.Time, err error) {
	a, err := strconv.ParseInt(q.Get(from), 10, 64)
	b, bad := strconv.ParseInt(q.Get(to), 10, 64)
	return time.UnixMilli(a), time.UnixMilli(b), errors.Join(err, bad)
}

// suuntoSleep returns the document of a night.
func suuntoSleep(p *Person, n *Night) object {
	return object{
		"BedtimeStart": p.local(n.Start), "BedtimeEnd": p.local(n.End), "Duration": n.End.Sub(n.Start).Seconds(),
		"DeepSleepDuration": float64(n.seconds('1')), "LightSleepDuration": float64(n.seconds('2')), "REMSleepDuration": float64(n.seconds('3')),
		"HRAvg": n.RestingHR + 4, "HRMin": n.RestingHR, "AvgHRV": n.AverageHRV, "MaxSpO2": 0.99, "SleepQualityScore": n.Score, "IsNap": false,
		"SleepId": n.Number, "SleepOnsetLatencyDuration": 600.0,
	}
}

// suuntoSleeps calls add for each night with its start. Every fourth night appears in two versions.
func suuntoSleeps(p *Person, add func(time.Time, object)) {
	for i := range p.Nights {
		n := &p.Nights[i]
		if i%4 == 0 {
			early := suuntoSleep(p, n)
			early["LightSleepDuration"], early["SleepQualityScore"] = 60.0, nil
			add(n.Start, early)
		}
		add(n.Start, suuntoSleep(p, n))
	}
}

// suunto calls add for the values of some ten-minute periods of a day. at is the start of the period.
func (d *Day) suunto(add func(at time.Time, doc object)) {
	for hour := 9; hour < 21; hour += 3 {
		add(d.Date.Add(time.Duration(hour)*time.Hour), object{
			"HR": float64(d.AverageHR+hour) / 60, "StepCount": d.Steps / 4, "EnergyConsumption": d.Active * 4184 / 4, "SpO2": nil,
		})
	}
	add(d.Date.Add(22*time.Hour), object{"HR": d.AverageHR, "SpO2": 0.96, "HRV": 30 + d.Steps%40})
}

// suuntoDays returns the sums of each 24 hours of a range. A second watch reports the same sums.
func suuntoDays(p *Person, q url.Values) (any, error) {
	const form = "2006-01-02T15:04:05"
	from, err := time.Parse(form, q.Get("startdate"))
	to, bad := time.Parse(form, q.Get("enddate"))
	if errors.Join(err, bad) != nil || to.Sub(from) > 28*24*time.Hour {
		return nil, errors.New("startdate and enddate: must be times without a zone, at most 28 days apart")
	}
	names := []string{"StepCount", "EnergyConsumption"}
	answer := []object{}
	for i, name := range []string{"stepcount", "energyconsumption"} {
		first, second := []object{}, []object{}
		for start := from; start.Before(to); start = start.Add(24 * time.Hour) {
			sum, measured := 0.0, false
			for j := range p.Days {
				if d := p.Days[j].Date; d.Before(start.Add(-48*time.Hour)) || d.After(start.Add(48*time.Hour)) {
					continue
				}
				p.Days[j].suunto(func(at time.Time, doc object) {
					if at.Before(start) || !at.Before(start.Add(24*time.Hour)) {
						return
					}
					switch v := doc[names[i]].(type) {
					case int:
						sum, measured = sum+float64(v), true
					case float64:
						sum, measured = sum+v, true
					}
				})
			}
			at, value := start.Format(form+".000"), any(nil)
			if measured {
				value = sum
				second = append(second, object{"TimeISO8601": at, "Value": sum / 2})
			}
			first = append(first, object{"TimeISO8601": at, "Value": value})
		}
		answer = append(answer, object{"Name": name, "Aggregation": "sum", "Sources": []object{
			{"Name": "suunto-247-2", "Samples": second}, {"Name": "suunto-247-1", "Samples": first},
		}})
	}
	return answer, nil
}

var suuntoSports = map[string]int{"running": 1, "cycling": 2, "yoga": 121}

func suuntoWorkout(p *Person, w *Workout) object {
	energy := w.KCal
	if w.Sport == "cycling" {
		energy = w.KCal * 4184
	}
	return object{
		"workoutKey": w.ID, "workoutId": 0, "activityId": suuntoSports[w.Sport], "startTime": w.Start.UnixMilli(), "stopTime": w.End.UnixMilli(),
		"totalTime": w.End.Sub(w.Start).Seconds() - 45, "totalDistance": w.Distance, "totalAscent": w.Climb, "energyConsumption": energy, "stepCount": 0,
		"hrdata":   object{"workoutAvgHR": w.AverageHR, "workoutMaxHR": float64(w.Max) / 60, "max": 190, "userMaxHR": 190},
		"gear":     object{"manufacturer": "Suunto", "name": "Suunto Vertical", "serialNumber": "watch", "productType": "SPORT_WATCH"},
		"avgSpeed": 2.5, "maxSpeed": 4.5, "timeOffsetInMinutes": p.Offset / 60,
	}
}

// suuntoRecording returns the recording of a workout: heart rates in Hz and positions.
func suuntoRecording(w *Workout) []object {
	hr, places := []object{}, []object{}
	w.stream(func(second, bpm int) {
		at := w.Start.Add(time.Duration(second) * time.Second).UnixMilli()
		hr = append(hr, object{"timestamp": at, "value": float64(bpm) / 60})
		places = append(places, object{"timestamp": at, "latitude": 48.2, "longitude": 16.37 + float64(second)/1e5, "altitude": 170})
	})
	return []object{
		{"type": "HeartrateStreamExtension", "points": hr}, {"type": "LocationStreamExtension", "locationPoints": places},
		{"type": "SpeedStreamExtension", "points": nil},
	}
}

func suuntoTruth(p *Person) Truth {
	t := Truth{}
	for i := range p.Nights {
		n := &p.Nights[i]
		t.night(p, n)
		delete(t["sleep"], stamp(n.Start)+".recovery")
		delete(t["sleep"], stamp(n.Start)+".breath")
		t.put("sleep", stamp(n.Start)+".score", float64(n.Score))
	}
	for i := range p.Days {
		d := &p.Days[i]
		d.suunto(func(at time.Time, doc object) {
			switch hr := doc["HR"].(type) {
			case int:
				t.put("heartrate", stamp(at), float64(hr))
				t.put("blood_oxygen", stamp(at), 96)
				t.put("hrv", stamp(at), float64(30+d.Steps%40))
			case float64:
				t.put("heartrate", stamp(at), hr*60)
				t.put("steps", stamp(at), float64(d.Steps/4))
				t.put("calories_active", stamp(at), d.Active/4)
			}
		})
		t.put("activity", p.date(d.Date)+".steps", float64(d.Steps/4*4))
		t.put("activity", p.date(d.Date)+".active", d.Active)
	}
	for i := range p.Workouts {
		w := &p.Workouts[i]
		t.workout(w)
		t.put("workouts", stamp(w.Start)+".average", float64(w.AverageHR))
		t.put("workouts", stamp(w.Start)+".max", float64(w.Max))
		w.stream(func(second, bpm int) {
			t.put("workout_stream", stamp(w.Start.Add(time.Duration(second)*time.Second)), float64(bpm))
		})
	}
	return t
}

// SuuntoMessage encodes a message as the body of a webhook, and signs it with the notification secret.
func SuuntoMessage(doc map[string]any, secret string) (body []byte, header http.Header) {
	body, _ = json.Marshal(doc) //nolint:errchkjson // texts and numbers
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return body, http.Header{"X-Hmac-Sha256-Signature": {hex.EncodeToString(mac.Sum(nil))}}
}

// SuuntoSleep returns the webhook message that contains a night of a person.
func SuuntoSleep(p *Person, n *Night) map[string]any {
	return object{"type": "SUUNTO_247_SLEEP_CREATED", "username": p.ID, "samples": []object{{"timestamp": p.local(n.Start), "entryData": suuntoSleep(p, n)}}}
}

// SuuntoWorkout returns the webhook message about a workout of a person. As in the real service, it has only part of
// the fields.
func SuuntoWorkout(p *Person, w *Workout) map[string]any {
	doc := suuntoWorkout(p, w)
	delete(doc, "stopTime")
	return object{"type": "WORKOUT_CREATED", "username": p.ID, "workout": doc, "gear": doc["gear"]}
}
