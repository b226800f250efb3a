package double

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

func (p *Person) local(t time.Time) string {
	return t.In(time.FixedZone("", p.Offset)).Format("2006-01-02T15:04:05-07:00")
}

// Oura returns a test double of the Oura API v2, and a function that returns the expected data of a person. As in the
// real API, a range of days excludes its first and last day.
func Oura(o Options) (*Server, func(*Person) Truth) {
	o.PageSize = cmp.Or(o.PageSize, 50)
	s := newServer("Oura", paths{authorize: "/oauth/authorize", token: "/oauth/token", revoke: "POST /oauth/revoke"}, o)
	s.limited = func(h http.Header, all []room) { h.Set("Retry-After", fewestLeft(all).seconds()) }
	answer := func(found []object, q url.Values) object {
		items, next := page(found, q.Get("next_token"), o.PageSize)
		doc := object{"data": items, "next_token": nil}
		if next != "" {
			doc["next_token"] = next
		}
		return doc
	}
	const base = "/v2/usercollection/"
	days := func(path string, all func(p *Person) []object) {
		s.data(base+path, func(p *Person, q url.Values) (any, error) {
			from, to := q.Get("start_date"), q.Get("end_date")
			if _, err := time.Parse(time.DateOnly, from); err != nil {
				return nil, errors.New("start_date: must be a day as YYYY-MM-DD")
			}
			found := []object{}
			for _, doc := range all(p) {
				if day := doc["day"].(string); day > from && day < to {
					found = append(found, doc)
				}
			}
			return answer(found, q), nil
		})
	}
	s.data(base+"personal_info", func(p *Person, _ url.Values) (any, error) {
		return object{"id": p.ID, "age": 41, "weight": 71.5, "height": 1.78, "biological_sex": "female", "email": "person@example.com"}, nil
	})
	s.data(base+"heartrate", func(p *Person, q url.Values) (any, error) {
		from, err := time.Parse(time.RFC3339, q.Get("start_datetime"))
		to, bad := time.Parse(time.RFC3339, q.Get("end_datetime"))
		if err != nil || bad != nil {
			return nil, errors.New("start_datetime and end_datetime: must be times")
		}
		found := []object{}
		p.pulse(func(at time.Time, bpm float64) {
			if !at.Before(from) && at.Before(to) {
				found = append(found, object{"timestamp": at.UTC().Format("2006-01-02T15:04:05+00:00"), "bpm": bpm, "source": "awake"})
			}
		})
		return answer(found, q), nil
	})
	days("sleep", ouraSleeps)
	days("daily_sleep", func(p *Person) (out []object) {
		for i := range p.Nights {
			n := &p.Nights[i]
			out = append(out, object{"id": "d" + n.ID, "day": p.date(n.End), "timestamp": p.date(n.End) + "T00:00:00+00:00", "score": n.Score})
		}
		return out
	})
	days("daily_spo2", func(p *Person) (out []object) {
		for i := range p.Nights {
			n := &p.Nights[i]
			out = append(out, object{"id": "o" + n.ID, "day": p.date(n.End), "spo2_percentage": object{"average": n.SpO2}, "breathing_disturbance_index": 3})
		}
		return out
	})
	days("daily_activity", func(p *Person) (out []object) {
		for i := range p.Days {
			out = append(out, ouraActivity(p, &p.Days[i]))
		}
		return out
	})
	days("workout", func(p *Person) (out []object) {
		for i := range p.Workouts {
			out = append(out, ouraWorkout(p, &p.Workouts[i]))
		}
		return out
	})
	ouraSmallCollections(days)
	s.data(base+"ring_configuration", func(p *Person, q url.Values) (any, error) {
		return answer([]object{{"id": "ring of " + p.ID, "hardware_type": "gen4", "firmware_version": "3.2.1"}}, q), nil
	})
	return s, ouraTruth
}

// ouraSmallCollections serves readiness, VO2 max, sessions and tags. days registers a path and its documents.
func ouraSmallCollections(days func(path string, all func(p *Person) []object)) {
	days("daily_readiness", func(p *Person) (out []object) {
		for i := range p.Nights {
			n := &p.Nights[i]
			out = append(out, object{
				"id": "r" + n.ID, "day": p.date(n.End), "timestamp": p.date(n.End) + "T00:00:00+00:00", "score": n.Recovery,
				"temperature_deviation": n.TemperatureDelta, "contributors": object{},
			})
		}
		return out
	})
	days("vO2_max", func(p *Person) (out []object) {
		p.fitness(func(at time.Time, v float64) {
			out = append(out, object{"id": "v" + stamp(at), "day": p.date(at), "timestamp": p.local(at), "vo2_max": v})
		})
		return out
	})
	days("session", func(p *Person) (out []object) {
		p.calm(func(start time.Time, bpm, hrv []*float64) {
			series := func(items []*float64) object {
				return object{"interval": 60.0, "timestamp": p.local(start), "items": items}
			}
			out = append(out, object{
				"id": "m" + stamp(start), "day": p.date(start), "start_datetime": p.local(start), "end_datetime": p.local(start.Add(10 * time.Minute)),
				"type": "meditation", "mood": nil, "heart_rate": series(bpm), "heart_rate_variability": series(hrv),
			})
		})
		return out
	})
	days("enhanced_tag", func(p *Person) (out []object) {
		p.tags(func(at time.Time) {
			out = append(out, object{"id": "t" + stamp(at), "day": p.date(at), "start_time": p.local(at), "end_time": nil, "tag_type_code": "tag_generic_stress"})
		})
		return out
	})
}

func ouraActivity(p *Person, d *Day) object {
	return object{
		"id": p.date(d.Date), "day": p.date(d.Date), "timestamp": p.local(d.Date.Add(4 * time.Hour)), "score": 80, "active_calories": d.Active,
		"total_calories": d.Total, "steps": d.Steps, "equivalent_walking_distance": d.Distance, "low_activity_time": d.Low,
		"medium_activity_time": d.Medium, "high_activity_time": d.High, "met": object{"interval": 60, "items": []float64{0.9}},
	}
}

func ouraWorkout(p *Person, w *Workout) object {
	doc := object{
		"id": w.ID, "day": p.date(w.Start), "activity": w.Sport, "start_datetime": p.local(w.Start),
		"end_datetime": w.End.UTC().Format("2006-01-02T15:04:05+00:00"), "calories": w.KCal, "distance": nil, "intensity": "moderate",
		"label": nil, "source": "confirmed",
	}
	if w.Distance > 0 {
		doc["distance"] = w.Distance
	}
	return doc
}

func (p *Person) fitness(add func(at time.Time, v float64)) {
	for i := 0; i < len(p.Days); i += 10 {
		add(p.Days[i].Date.Add(9*time.Hour), 40+float64(i%50)/10)
	}
}

func (p *Person) tags(add func(at time.Time)) {
	for i := 0; i < len(p.Days); i += 7 {
		add(p.Days[i].Date.Add(20 * time.Hour))
	}
}

func (p *Person) calm(add func(start time.Time, bpm, hrv []*float64)) {
	for i := 0; i < len(p.Days); i += 6 {
		a, b, c, d := 61.0, 58.0, 44.0, 49.0
		add(p.Days[i].Date.Add(13*time.Hour), []*float64{&a, nil, &b}, []*float64{&c, nil, &d})
	}
}

func (p *Person) pulse(add func(time.Time, float64)) {
	for i := range p.Days {
		p.Days[i].pulse(add)
	}
}

func (d *Day) pulse(add func(time.Time, float64)) {
	for hour := 10; hour < 22; hour += 2 {
		add(d.Date.Add(time.Duration(hour)*time.Hour+150*time.Second), float64(d.AverageHR+hour/2))
	}
}

func ouraAwake(p *Person, night int) bool { return len(p.Nights) > 30 && night == 4 }

// ouraSleeps returns the sleep documents of p. Every tenth night also has a document of type rest, which is not a
// sleep.
func ouraSleeps(p *Person) (out []object) {
	for i := range p.Nights {
		n := &p.Nights[i]
		if ouraAwake(p, i) {
			continue
		}
		series := func(items []*float64) object {
			return object{"interval": 300.0, "timestamp": p.local(n.Start), "items": items}
		}
		doc := object{
			"id": n.ID, "day": p.date(n.End), "bedtime_start": p.local(n.Start), "bedtime_end": p.local(n.End), "type": "long_sleep", "period": 0,
			"time_in_bed": int(n.End.Sub(n.Start) / time.Second), "awake_time": n.seconds('4'), "light_sleep_duration": n.seconds('2'),
			"rem_sleep_duration": n.seconds('3'), "deep_sleep_duration": n.seconds('1'), "latency": 600, "efficiency": n.Efficiency,
			"average_heart_rate": float64(n.RestingHR) + 4, "lowest_heart_rate": n.RestingHR, "average_hrv": n.AverageHRV, "average_breath": n.RespiratoryRate,
			"heart_rate": series(n.HR), "hrv": series(n.HRV), "sleep_phase_5_min": n.Stages,
			"readiness": object{"score": n.Recovery, "temperature_deviation": n.TemperatureDelta},
		}
		if i%4 == 3 {
			doc["readiness"] = nil // daily_readiness has it instead
		}
		if i%2 == 0 {
			fine := &strings.Builder{}
			for _, stage := range n.Stages {
				fine.WriteString(strings.Repeat(string(stage), 10))
			}
			doc["sleep_phase_30_sec"] = fine.String()
		}
		out = append(out, doc)
		if i%10 == 0 {
			out = append(out, object{
				"id": "rest " + n.ID, "day": p.date(n.End), "bedtime_start": p.local(n.End.Add(5 * time.Hour)), "bedtime_end": p.local(n.End.Add(6 * time.Hour)),
				"type": "rest", "average_hrv": nil, "lowest_heart_rate": 255,
			})
		}
	}
	return out
}

func ouraTruth(p *Person) Truth {
	t := Truth{}
	for i := range p.Nights {
		n := &p.Nights[i]
		if ouraAwake(p, i) {
			day := n.End.Add(time.Duration(p.Offset) * time.Second).UTC().Truncate(24 * time.Hour)
			t.put("body_temperature_delta", stamp(day.Add(12*time.Hour-time.Duration(p.Offset)*time.Second)), n.TemperatureDelta)
			continue
		}
		t.night(p, n)
		t.put("sleep", stamp(n.Start)+".score", float64(n.Score))
		t.put("blood_oxygen", stamp(n.End), n.SpO2)
		t.put("body_temperature_delta", stamp(n.Start), n.TemperatureDelta)
		t.stages(n)
		for j := range n.HR {
			at := stamp(n.Start.Add(time.Duration(j) * 5 * time.Minute))
			if n.HR[j] != nil {
				t.put("heartrate", at, *n.HR[j])
				t.put("hrv", at, *n.HRV[j])
			}
		}
	}
	p.pulse(func(at time.Time, bpm float64) { t.put("heartrate", stamp(at), bpm) })
	p.fitness(func(at time.Time, v float64) { t.put("vo2_max", stamp(at), v) })
	p.tags(func(at time.Time) { t.put("note", stamp(at), 0) })
	p.calm(func(start time.Time, bpm, hrv []*float64) {
		t.put("mindfulness_minutes", stamp(start), 10)
		for i := range bpm {
			if bpm[i] != nil {
				at := stamp(start.Add(time.Duration(i) * time.Minute))
				t.put("heartrate", at, *bpm[i])
				t.put("hrv", at, *hrv[i])
			}
		}
	})
	for i := range p.Days {
		d := &p.Days[i]
		for name, v := range map[string]float64{
			"total": d.Total, "active": d.Active, "steps": float64(d.Steps), "low": float64(d.Low) / 60, "medium": float64(d.Medium) / 60, "high": float64(d.High) / 60,
		} {
			t.put("activity", p.date(d.Date)+"."+name, v)
		}
	}
	for i := range p.Workouts {
		t.workout(&p.Workouts[i])
	}
	t.put("profile", "profile.height", 178)
	t.put("profile", "profile.female", 1)
	return t
}

// OuraMessage returns the signed webhook message that the document id of a person has changed. event is create, update
// or delete, secret the client secret, and at the time of the event.
func OuraMessage(p *Person, event, dataType, id, secret string, at time.Time) (body []byte, header http.Header) {
	body, _ = json.Marshal(object{ //nolint:errchkjson // texts
		"event_type": event, "data_type": dataType, "object_id": id, "event_time": at.UTC().Format(time.RFC3339), "user_id": p.ID,
	})
	seconds := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(seconds))
	mac.Write(body)
	header = http.Header{}
	header.Set("X-Oura-Timestamp", seconds)
	header.Set("X-Oura-Signature", strings.ToUpper(hex.EncodeToString(mac.Sum(nil))))
	return body, header
}
