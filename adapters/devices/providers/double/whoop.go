package double

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

type object = map[string]any

func utc(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func offsetText(seconds int) string {
	return time.Unix(0, 0).In(time.FixedZone("", seconds)).Format("-07:00")
}

// Whoop returns a test double of the WHOOP API v2, and a function that returns the expected data of a person.
func Whoop(o Options) (*Server, func(*Person) Truth) {
	s := newServer("WHOOP", paths{
		authorize: "/oauth/oauth2/auth", token: "/oauth/oauth2/token", revoke: "DELETE /developer/v2/user/access",
	}, o)
	s.limited = func(h http.Header, all []room) {
		nearest := fewestLeft(all)
		h.Set("X-RateLimit-Limit", "100, 100;window=60, 10000;window=86400")
		h.Set("X-RateLimit-Remaining", strconv.Itoa(nearest.left))
		h.Set("X-RateLimit-Reset", nearest.seconds())
	}
	list := func(path string, all func(*Person) (at []time.Time, records []object)) {
		s.data("/developer/v2/"+path, func(p *Person, q url.Values) (any, error) {
			limit, err := strconv.Atoi(q.Get("limit"))
			from, bad := time.Parse(time.RFC3339, q.Get("start"))
			to, worse := time.Parse(time.RFC3339, q.Get("end"))
			if errors.Join(err, bad, worse) != nil || limit < 1 || limit > 25 {
				return nil, errors.New("limit must be at most 25, and start and end must be times")
			}
			at, records := all(p)
			var found []object
			for i := range at {
				if !at[i].Before(from) && at[i].Before(to) {
					found = append(found, records[i])
				}
			}
			slices.Reverse(found)
			items, next := page(found, q.Get("nextToken"), limit)
			answer := object{"records": items, "next_token": nil}
			if next != "" {
				answer["next_token"] = next
			}
			return answer, nil
		})
	}
	s.data("/developer/v2/user/profile/basic", func(p *Person, _ url.Values) (any, error) {
		return object{"user_id": p.Number, "email": "person@example.com", "first_name": "Test", "last_name": p.Name}, nil
	})
	s.data("/developer/v2/user/measurement/body", func(*Person, url.Values) (any, error) {
		return object{"height_meter": 1.78, "weight_kilogram": 71.5, "max_heart_rate": 189}, nil
	})
	list("activity/sleep", func(p *Person) (at []time.Time, out []object) {
		for i := range p.Nights {
			n := &p.Nights[i]
			at, out = append(at, n.End), append(out, whoopSleep(p, n))
		}
		return at, out
	})
	list("recovery", func(p *Person) (at []time.Time, out []object) {
		for i := range p.Nights {
			n := &p.Nights[i]
			at, out = append(at, n.End.Add(9*time.Minute)), append(out, whoopRecovery(p, n))
		}
		return at, out
	})
	list("cycle", func(p *Person) (at []time.Time, out []object) {
		for i := range p.Nights {
			n, d := &p.Nights[i], &p.Days[i]
			c := object{
				"id": n.Number, "user_id": p.Number, "start": utc(n.Start), "timezone_offset": offsetText(p.Offset), "score_state": "SCORED",
				"score": object{"strain": 9.1, "kilojoule": d.Total * 4.184, "average_heart_rate": d.AverageHR, "max_heart_rate": d.HighestR},
			}
			if i+1 < len(p.Nights) {
				c["end"] = utc(p.Nights[i+1].Start)
			}
			at, out = append(at, n.Start), append(out, c)
		}
		return at, out
	})
	list("activity/workout", func(p *Person) (at []time.Time, out []object) {
		for i := range p.Workouts {
			w := &p.Workouts[i]
			at, out = append(at, w.Start), append(out, whoopWorkout(p, w))
		}
		return at, out
	})
	return s, whoopTruth
}

func whoopRecovery(p *Person, n *Night) object {
	return object{
		"cycle_id": n.Number, "sleep_id": n.ID, "user_id": p.Number, "created_at": utc(n.End.Add(9 * time.Minute)), "score_state": "SCORED",
		"score": object{
			"user_calibrating": false, "recovery_score": n.Recovery, "resting_heart_rate": n.RestingHR, "hrv_rmssd_milli": n.AverageHRV,
			"spo2_percentage": n.SpO2, "skin_temp_celsius": n.SkinTemperature,
		},
	}
}

func whoopSleep(p *Person, n *Night) object {
	return object{
		"id": n.ID, "cycle_id": n.Number, "user_id": p.Number, "created_at": utc(n.End), "updated_at": utc(n.End), "start": utc(n.Start), "end": utc(n.End),
		"timezone_offset": offsetText(p.Offset), "nap": false, "score_state": "SCORED",
		"score": object{
			"stage_summary": object{
				"total_in_bed_time_milli": n.End.Sub(n.Start).Milliseconds(), "total_awake_time_milli": n.seconds('4') * 1000,
				"total_no_data_time_milli": 0, "total_light_sleep_time_milli": n.seconds('2') * 1000,
				"total_slow_wave_sleep_time_milli": n.seconds('1') * 1000, "total_rem_sleep_time_milli": n.seconds('3') * 1000,
			},
			"respiratory_rate": n.RespiratoryRate, "sleep_performance_percentage": n.Score, "sleep_efficiency_percentage": n.Efficiency,
		},
	}
}

func whoopWorkout(p *Person, w *Workout) object {
	score := object{
		"strain": 8.2, "average_heart_rate": w.AverageHR, "max_heart_rate": w.Max, "kilojoule": w.KCal * 4.184, "percent_recorded": 100,
		"zone_durations": object{
			"zone_zero_milli": w.Zones[0] * 1000, "zone_one_milli": w.Zones[1] * 1000, "zone_two_milli": w.Zones[2] * 1000,
			"zone_three_milli": w.Zones[3] * 1000, "zone_four_milli": w.Zones[4] * 1000, "zone_five_milli": w.Zones[5] * 1000,
		},
	}
	if w.Distance > 0 {
		score["distance_meter"], score["altitude_gain_meter"] = w.Distance, w.Climb
	}
	return object{
		"id": w.ID, "user_id": p.Number, "start": utc(w.Start), "end": utc(w.End), "timezone_offset": offsetText(p.Offset),
		"sport_name": w.Sport, "score_state": "SCORED", "score": score,
	}
}

func whoopTruth(p *Person) Truth {
	t := Truth{}
	for i := range p.Nights {
		n := &p.Nights[i]
		t.night(p, n)
		t.put("sleep", stamp(n.Start)+".score", float64(n.Score))
		t.put("sleep", stamp(n.Start)+".resting", float64(n.RestingHR))
		t.put("hrv", stamp(n.End), n.AverageHRV)
		t.put("blood_oxygen", stamp(n.End), n.SpO2)
		t.put("body_temperature", stamp(n.End), n.SkinTemperature)
		t.put("activity", p.date(p.Days[i].Date)+".total", p.Days[i].Total)
	}
	for i := range p.Workouts {
		w := &p.Workouts[i]
		t.workout(w)
		t.put("workouts", stamp(w.Start)+".average", float64(w.AverageHR))
		t.put("workouts", stamp(w.Start)+".max", float64(w.Max))
		for z, seconds := range w.Zones {
			t.put("workouts", stamp(w.Start)+".zone"+strconv.Itoa(z), float64(seconds))
		}
	}
	t.put("profile", "profile.height", 178)
	return t
}

func (p *Person) date(at time.Time) string {
	return at.In(time.FixedZone("", p.Offset)).Format(time.DateOnly)
}

// night adds the expected values of a night that are the same for several providers.
func (t Truth) night(p *Person, n *Night) {
	for name, v := range map[string]float64{
		"end": float64(n.End.Unix()), "offset": float64(p.Offset), "awake": float64(n.seconds('4')), "light": float64(n.seconds('2')),
		"rem": float64(n.seconds('3')), "deep": float64(n.seconds('1')), "recovery": float64(n.Recovery), "hrv": n.AverageHRV, "breath": n.RespiratoryRate,
	} {
		t.put("sleep", stamp(n.Start)+"."+name, v)
	}
}

// stages adds the expected stages of a night.
func (t Truth) stages(n *Night) {
	from := 0
	for j := 1; j <= len(n.Stages); j++ {
		if j == len(n.Stages) || n.Stages[j] != n.Stages[from] {
			t.put("sleep_cycle", stamp(n.Start)+"."+strconv.Itoa(from*300)+"-"+strconv.Itoa(j*300), float64(n.Stages[from]-'0'))
			from = j
		}
	}
}

// workout adds the expected values of a workout that are the same for several providers.
func (t Truth) workout(w *Workout) {
	t.put("workouts", stamp(w.Start)+".end", float64(w.End.Unix()))
	t.put("workouts", stamp(w.Start)+".kcal", w.KCal)
	if w.Distance > 0 {
		t.put("workouts", stamp(w.Start)+".distance", w.Distance)
	}
}

// WhoopMessage returns the signed webhook message about the record id of a person. kind is a type such as
// sleep.updated, trace the id of the message, secret the client secret, and at the time of signing.
func WhoopMessage(p *Person, kind, id, trace, secret string, at time.Time) (body []byte, header http.Header) {
	body, _ = json.Marshal(object{"user_id": p.Number, "id": id, "type": kind, "trace_id": trace}) //nolint:errchkjson // texts and a number
	ms := strconv.FormatInt(at.UnixMilli(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(ms))
	mac.Write(body)
	header = http.Header{}
	header.Set("X-WHOOP-Signature-Timestamp", ms)
	header.Set("X-WHOOP-Signature", base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return body, header
}
