package double

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// PolarServer is a test double of Polar AccessLink v3.
type PolarServer struct {
	*Server
	members map[string]string // person id → member-id
}

// Registered reports whether a person was registered by POST /v3/users, and not deleted since.
func (s *PolarServer) Registered(p *Person) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.members[p.ID] != ""
}

const (
	polarNights   = 28
	polarWorkouts = 30 * 24 * time.Hour
)

// Polar returns a test double of Polar AccessLink v3, and a function that returns the expected data of a person. All
// data counts as uploaded after the person's registration. The API serves only the last 28 days of nights and 30 days
// of workouts; both end with the person's last day.
func Polar(o Options) (*PolarServer, func(*Person) Truth) {
	s := &PolarServer{newServer("Polar", paths{authorize: "/oauth2/authorization", token: "/v2/oauth2/token"}, o), map[string]string{}}
	s.permanent = true
	s.granted = func(p *Person) object { return object{"x_user_id": p.Number} }
	s.limited = func(h http.Header, all []room) {
		all = padLimits(all, 2)
		h.Set("RateLimit-Limit", fmt.Sprintf("%d, %d", all[0].Requests, all[1].Requests))
		h.Set("RateLimit-Usage", fmt.Sprintf("%d, %d", all[0].used(), all[1].used()))
		h.Set("RateLimit-Reset", all[0].seconds()+", "+all[1].seconds())
	}
	s.accounts()
	s.exercises()
	s.collections()
	s.biosensingPaths()
	return s, polarTruth
}

// accounts serves the registration of people and their body data.
func (s *PolarServer) accounts() {
	s.mux.HandleFunc("POST /v3/users", s.register)
	s.mux.HandleFunc("DELETE /v3/users/{id}", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		person := s.access[bearer(r)].person
		if person == r.PathValue("id") {
			delete(s.members, person)
		}
		s.mu.Unlock()
		if person != "" && person != r.PathValue("id") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		s.revokeGrant(w, r)
	})
	s.get("/users/physical-info", func(p *Person, _ url.Values) any {
		return object{
			"weight": 71.5, "height": 178.0, "birthday": "1985-02-03", "gender": "FEMALE", "vo2_max": 44, "weight_source": "SOURCE_MEASURED",
			"created": "2020-01-01T00:00:00Z", "modified": p.Days[0].Date.UTC().Format(time.RFC3339),
		}
	})
}

func (s *PolarServer) exercises() {
	s.get("/exercises", func(p *Person, q url.Values) any {
		list := []object{}
		for i := range p.Workouts {
			if p.recent(&p.Workouts[i]) {
				list = append(list, polarExercise(p, i, q))
			}
		}
		return list
	})
	s.mux.HandleFunc("GET /v3/exercises/{id}", func(w http.ResponseWriter, r *http.Request) {
		s.respond(w, r, http.StatusNotFound, func(p *Person, q url.Values) any {
			for i := range p.Workouts {
				if p.Workouts[i].ID == r.PathValue("id") && p.recent(&p.Workouts[i]) {
					return polarExercise(p, i, q)
				}
			}
			return nil
		})
	})
}

// collections serves the collections of nights and days.
func (s *PolarServer) collections() {
	s.nights("sleep", "nights", polarSleep)
	s.nights("nightly-recharge", "recharges", polarRecharge)
	s.get("/users/biosensing/skintemperature", func(p *Person, _ url.Values) any {
		list := []object{}
		for _, n := range p.lastNights() {
			list = append(list, object{
				"sleep_date": p.date(n.End), "sleep_time_skin_temperature_celsius": n.SkinTemperature, "deviation_from_baseline_celsius": n.TemperatureDelta,
			})
		}
		return list
	})
	s.days("activities", func(p *Person, in func(string) bool) []object {
		list := []object{}
		for i := range p.Days {
			if in(p.date(p.Days[i].Date)) {
				list = append(list, polarActivity(p, &p.Days[i]))
			}
		}
		return list
	})
	s.days("continuous-heart-rate", func(p *Person, in func(string) bool) []object {
		list := []object{}
		p.polarHeartRates(func(at time.Time, bpm float64) {
			date, clock, _ := strings.Cut(p.clock(at), "T")
			if !in(date) {
				return
			}
			i := slices.IndexFunc(list, func(day object) bool { return day["date"] == date })
			if i < 0 {
				i = len(list)
				list = append(list, object{"date": date, "heart_rate_samples": []object{}})
			}
			list[i]["heart_rate_samples"] = append(list[i]["heart_rate_samples"].([]object), object{"heart_rate": bpm, "sample_time": clock})
		})
		return list
	})
}

// biosensingPaths serves skin temperature, blood oxygen and electrocardiograms.
func (s *PolarServer) biosensingPaths() {
	s.biosensing("bodytemperature", func(n *Night) object {
		samples := []object{}
		n.polarTemperatures(func(second int, celsius float64) {
			samples = append(samples, object{"temperature_celsius": celsius, "recording_time_delta_milliseconds": second * 1000})
		})
		return object{
			"measurement_type": "TM_SKIN_TEMPERATURE", "sensor_location": "SL_DISTAL", "start_time": n.Start.UTC().Format("2006-01-02T15:04:05"),
			"end_time": n.End.UTC().Format("2006-01-02T15:04:05"), "samples": samples,
		}
	})
	s.biosensing("spo2", func(n *Night) object {
		status := "SPO2_TEST_PASSED"
		if n.Number%7 == 0 {
			status = "SPO2_TEST_INCONCLUSIVE_TOO_LOW_OVERALL_QUALITY"
		}
		return object{"test_time": n.End.Unix(), "time_zone_offset": 60, "test_status": status, "blood_oxygen_percent": math.Round(n.SpO2)}
	})
	s.biosensing("ecg", func(n *Night) object {
		if n.Number%30 != 0 {
			return nil
		}
		samples := []object{}
		for i := range polarVoltages {
			samples = append(samples, object{"recording_time_delta_ms": i * 8, "amplitude_mv": polarVoltage(i)})
		}
		return object{"test_time": n.End.Unix(), "time_zone_offset": 60, "average_heart_rate_bpm": n.RestingHR, "samples": samples}
	})
}

// respond responds to a request with the document that of returns, with the status none if it returns nil, or with 400
// if it returns an error. A person who is not registered gets 403.
func (s *PolarServer) respond(w http.ResponseWriter, r *http.Request, none int, of func(*Person, url.Values) any) {
	p, status, _ := s.checkRequest(w, bearer(r))
	if status == 0 && !s.Registered(p) {
		status = http.StatusForbidden
	}
	if status != 0 {
		w.WriteHeader(status)
		return
	}
	doc := of(p, r.URL.Query())
	if err, wrong := doc.(error); wrong {
		reply(w, http.StatusBadRequest, object{"message": err.Error()})
		return
	}
	if doc == nil {
		w.WriteHeader(none)
		return
	}
	reply(w, http.StatusOK, doc)
}

func (s *PolarServer) get(path string, of func(*Person, url.Values) any) {
	s.mux.HandleFunc("GET /v3"+path, func(w http.ResponseWriter, r *http.Request) { s.respond(w, r, http.StatusNoContent, of) })
}

// nights serves the most recent nights of a person at a path. of returns the document of a night, and member names the
// list of these documents.
func (s *PolarServer) nights(path, member string, of func(*Person, *Night) object) {
	s.get("/users/"+path, func(p *Person, _ url.Values) any {
		list := []object{}
		for _, n := range p.lastNights() {
			list = append(list, of(p, &n))
		}
		return object{member: list}
	})
}

// days serves the documents of at most 28 days at a path. of returns the documents of the days for which in returns
// true.
func (s *PolarServer) days(path string, of func(p *Person, in func(date string) bool) []object) {
	s.get("/users/"+path, func(p *Person, q url.Values) any {
		from, err := time.Parse(time.DateOnly, q.Get("from"))
		to, wrong := time.Parse(time.DateOnly, q.Get("to"))
		if err != nil || wrong != nil || to.Before(from) || to.Sub(from) > 27*24*time.Hour {
			return fmt.Errorf("from and to: must be at most 28 days apart")
		}
		list := of(p, func(date string) bool { return date >= q.Get("from") && date <= q.Get("to") })
		if len(list) == 0 {
			return nil
		}
		return list
	})
}

// biosensing serves the documents that of returns for nights, by the UTC day on which a night ends.
func (s *PolarServer) biosensing(path string, of func(*Night) object) {
	s.days("biosensing/"+path, func(p *Person, in func(string) bool) []object {
		list := []object{}
		for i := range p.Nights {
			if n := &p.Nights[i]; in(n.End.UTC().Format(time.DateOnly)) {
				if doc := of(n); doc != nil {
					list = append(list, doc)
				}
			}
		}
		return list
	})
}

// register registers the person to whom the access token belongs.
func (s *PolarServer) register(w http.ResponseWriter, r *http.Request) {
	p, status, _ := s.checkRequest(w, bearer(r))
	var doc struct {
		Member string `json:"member-id"`
	}
	if err := json.NewDecoder(r.Body).Decode(&doc); status == 0 && (err != nil || doc.Member == "") {
		status = http.StatusBadRequest
	}
	if status != 0 {
		w.WriteHeader(status)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for person, member := range s.members {
		if person == p.ID || member == doc.Member {
			w.WriteHeader(http.StatusConflict)
			return
		}
	}
	s.members[p.ID] = doc.Member
	reply(w, http.StatusOK, object{"polar-user-id": p.Number, "member-id": doc.Member})
}

func (p *Person) clock(at time.Time) string {
	return at.In(time.FixedZone("", p.Offset)).Format("2006-01-02T15:04:05")
}

func (p *Person) lastNights() []Night { return p.Nights[max(len(p.Nights)-polarNights, 0):] }

func (p *Person) recent(w *Workout) bool {
	return w.Start.After(p.Days[len(p.Days)-1].Date.Add(26*time.Hour - polarWorkouts))
}

func polarExercise(p *Person, i int, q url.Values) object {
	w := &p.Workouts[i]
	doc := object{
		"id": w.ID, "upload_time": utc(w.End.Add(5 * time.Minute)), "device": "Polar Vantage V3", "device_id": "1111AAAA", "start_time": p.clock(w.Start),
		"start_time_utc_offset": p.Offset / 60, "duration": fmt.Sprintf("PT%dM", int(w.End.Sub(w.Start)/time.Minute)), "calories": w.KCal,
		"heart_rate": object{"average": w.AverageHR, "maximum": w.Max}, "sport": "OTHER", "detailed_sport_info": strings.ToUpper(w.Sport), "has_route": false,
	}
	if w.Distance > 0 {
		doc["distance"] = w.Distance
	}
	if q.Get("zones") == "true" {
		zones := []object{}
		for z, seconds := range w.Zones[1:] {
			zones = append(zones, object{"index": z + 1, "lower-limit": 90 + 20*z, "upper-limit": 110 + 20*z, "in-zone": fmt.Sprintf("PT%dS", seconds)})
		}
		doc["heart_rate_zones"] = zones
	}
	if q.Get("samples") == "true" {
		var bpm []string
		w.stream(func(_, hr int) { bpm = append(bpm, strconv.Itoa(hr)) })
		doc["samples"] = []object{
			{"recording-rate": 30, "sample-type": "0", "data": strings.Join(bpm, ",")},
			{"recording-rate": nil, "sample-type": "11", "data": "812,803"},
		}
	}
	return doc
}

// polarStages maps the stages of a night to the numbers of the API.
var polarStages = map[byte]int{'1': 4, '2': 3, '3': 1, '4': 0}

func polarSleep(p *Person, n *Night) object {
	hypnogram, rates := object{}, object{}
	for j := range len(n.Stages) {
		at := p.clock(n.Start.Add(time.Duration(j) * 5 * time.Minute))[11:16]
		if j == 0 || n.Stages[j] != n.Stages[j-1] {
			hypnogram[at] = polarStages[n.Stages[j]]
		}
		if n.HR[j] != nil {
			rates[at] = *n.HR[j]
		}
	}
	return object{
		"date": p.date(n.End), "sleep_start_time": p.local(n.Start), "sleep_end_time": p.local(n.End), "device_id": "1111AAAA", "continuity": 3.1,
		"light_sleep": n.seconds('2'), "deep_sleep": n.seconds('1'), "rem_sleep": n.seconds('3'), "unrecognized_sleep_stage": 0, "sleep_score": n.Score,
		"total_interruption_duration": n.seconds('4'), "hypnogram": hypnogram, "heart_rate_samples": rates,
	}
}

func (n *Night) polarHours(add func(j int)) {
	for j := 6; j < min(6+48, len(n.HRV)); j++ {
		add(j)
	}
}

func polarRecharge(p *Person, n *Night) object {
	hrv, breath := object{}, object{}
	n.polarHours(func(j int) {
		at := p.clock(n.Start.Add(time.Duration(j) * 5 * time.Minute))[11:16]
		breath[at] = n.RespiratoryRate
		if n.HRV[j] != nil {
			hrv[at] = *n.HRV[j]
		}
	})
	return object{
		"date": p.date(n.End), "heart_rate_avg": n.RestingHR + 4, "beat_to_beat_avg": 900, "heart_rate_variability_avg": n.AverageHRV,
		"breathing_rate_avg": n.RespiratoryRate, "nightly_recharge_status": 4, "ans_charge": 1.5, "hrv_samples": hrv, "breathing_samples": breath,
	}
}

// polarSteps calls add for the steps of each hour of a day.
func (d *Day) polarSteps(add func(hour, steps int)) {
	const active = 12
	for hour := range 24 {
		switch {
		case hour == 8:
			add(hour, d.Steps/active+d.Steps%active)
		case hour > 8 && hour < 8+active:
			add(hour, d.Steps/active)
		default:
			add(hour, 0)
		}
	}
}

func polarActivity(p *Person, d *Day) object {
	samples, last := []object{}, -1
	d.polarSteps(func(hour, steps int) {
		if steps != last { // the API leaves out a value equal to the one before
			samples = append(samples, object{"steps": steps, "timestamp": p.clock(d.Date.Add(time.Duration(hour) * time.Hour))[:16]})
		}
		last = steps
	})
	return object{
		"start_time": p.clock(d.Date), "end_time": p.clock(d.Date.Add(24*time.Hour - time.Second)), "active_duration": "PT3H11M", "daily_activity": 89.1,
		"calories": d.Total, "active_calories": d.Active, "steps": d.Steps, "distance_from_steps": d.Distance,
		"samples": object{"date": p.date(d.Date), "steps": object{"interval_ms": 3_600_000, "total_steps": d.Steps, "samples": samples}},
	}
}

// polarHeartRates calls add for the heart rates of days and nights.
func (p *Person) polarHeartRates(add func(time.Time, float64)) {
	p.pulse(add)
	for i := range p.Nights {
		for j, bpm := range p.Nights[i].HR {
			if bpm != nil {
				add(p.Nights[i].Start.Add(time.Duration(j)*5*time.Minute), *bpm)
			}
		}
	}
}

func (n *Night) polarTemperatures(add func(second int, celsius float64)) {
	for hour := range int(n.End.Sub(n.Start) / time.Hour) {
		add(hour*3600, n.SkinTemperature+float64(hour)/4)
	}
}

const polarVoltages = 40

func polarVoltage(i int) float64 { return float64(i%9)/10 - 0.25 }

func polarTruth(p *Person) Truth {
	t := Truth{}
	for _, n := range p.lastNights() {
		t.night(p, &n)
		delete(t["sleep"], stamp(n.Start)+".recovery")
		t.put("sleep", stamp(n.Start)+".score", float64(n.Score))
		t.put("body_temperature_delta", stamp(n.Start), n.TemperatureDelta)
		t.stages(&n)
		n.polarHours(func(j int) {
			at := stamp(n.Start.Add(time.Duration(j) * 5 * time.Minute))
			t.put("respiratory_rate", at, n.RespiratoryRate)
			if n.HRV[j] != nil {
				t.put("hrv", at, *n.HRV[j])
			}
		})
	}
	for i := range p.Nights {
		n := &p.Nights[i]
		n.polarTemperatures(func(second int, celsius float64) {
			t.put("body_temperature", stamp(n.Start.Add(time.Duration(second)*time.Second)), celsius)
		})
		if n.Number%7 != 0 {
			t.put("blood_oxygen", stamp(n.End), math.Round(n.SpO2))
		}
		if n.Number%30 != 0 {
			continue
		}
		for name, v := range map[string]float64{"end": float64(n.End.Unix()), "count": polarVoltages, "mean": float64(n.RestingHR), "hz": 125} {
			t.put("electrocardiogram", stamp(n.End)+"."+name, v)
		}
		for i := range polarVoltages {
			at := n.End.Add(time.Duration(i) * 8 * time.Millisecond).UTC().Format(time.RFC3339Nano)
			t.put("electrocardiogram_voltage", at+" lead_1", polarVoltage(i))
		}
	}
	for i := range p.Days {
		d := &p.Days[i]
		for name, v := range map[string]float64{"total": d.Total, "active": d.Active, "steps": float64(d.Steps)} {
			t.put("activity", p.date(d.Date)+"."+name, v)
		}
		d.polarSteps(func(hour, steps int) {
			if steps > 0 {
				t.put("steps", stamp(d.Date.Add(time.Duration(hour)*time.Hour)), float64(steps))
			}
		})
	}
	p.polarHeartRates(func(at time.Time, bpm float64) { t.put("heartrate", stamp(at), bpm) })
	for i := range p.Workouts {
		w := &p.Workouts[i]
		if !p.recent(w) {
			continue
		}
		t.workout(w)
		t.put("workouts", stamp(w.Start)+".average", float64(w.AverageHR))
		t.put("workouts", stamp(w.Start)+".max", float64(w.Max))
		for z, seconds := range w.Zones[1:] {
			t.put("workouts", stamp(w.Start)+".zone"+strconv.Itoa(z), float64(seconds))
		}
		w.stream(func(second, bpm int) {
			t.put("workout_stream", stamp(w.Start.Add(time.Duration(second)*time.Second)), float64(bpm))
		})
	}
	t.put("profile", "profile.height", 178)
	t.put("profile", "profile.female", 1)
	t.put("weight", stamp(p.Days[0].Date), 71.5)
	t.put("vo2_max", stamp(p.Days[0].Date), 44)
	return t
}

// PolarMessage returns the signed webhook message that a person has data of the local day of at. event is a type such
// as SLEEP, and key the signature secret.
func PolarMessage(p *Person, event, key string, at time.Time) (body []byte, header http.Header) {
	body, _ = json.Marshal(object{ //nolint:errchkjson // texts and a number
		"event": event, "user_id": p.Number, "date": p.date(at), "timestamp": at.UTC().Format(time.RFC3339), "url": "https://double.example",
	})
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write(body)
	header = http.Header{}
	header.Set("Polar-Webhook-Event", event)
	header.Set("Polar-Webhook-Signature", hex.EncodeToString(mac.Sum(nil)))
	return body, header
}
