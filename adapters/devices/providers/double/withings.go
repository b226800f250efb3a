package double

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// WithingsServer is a test double of the public API of Withings.
type WithingsServer struct {
	*Server
	nonces        map[string]bool
	subscriptions []string
}

// Subscriptions returns the active subscriptions, each as person id, category and callback URL, separated by spaces.
func (s *WithingsServer) Subscriptions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.subscriptions)
}

// withingsZone is the time zone of all people, without daylight saving time.
const withingsZone = "Africa/Lagos"

// withingsAnswer writes a response. As in the real API, the HTTP status is always 200, and the JSON document contains
// status.
func withingsAnswer(w http.ResponseWriter, status int, body any, text string) {
	doc := object{"status": status, "body": body}
	if text != "" {
		doc["error"] = text
	}
	reply(w, http.StatusOK, doc)
}

// Withings returns a test double of the public API of Withings, and a function that returns the expected data of a
// person.
func Withings(o Options) (*WithingsServer, func(*Person) Truth) {
	o.PageSize = cmp.Or(o.PageSize, 40)
	s := &WithingsServer{Server: newServer("Withings", paths{authorize: "/oauth2_user/authorize2"}, o), nonces: map[string]bool{}}
	s.codeLife = 30 * time.Second
	s.granted = func(p *Person) object {
		return object{"userid": p.Number, "scope": "user.info,user.metrics,user.activity", "csrf_token": "x"}
	}
	s.tokens = func(w http.ResponseWriter, status int, doc object) {
		if status == http.StatusOK {
			withingsAnswer(w, 0, doc, "")
			return
		}
		text := map[any]string{"invalid_grant": "Invalid Params: invalid refresh_token", "invalid_client": "Invalid Params: invalid client_secret"}
		withingsAnswer(w, 503, []any{}, cmp.Or(text[doc["error"]], "Invalid Params"))
	}
	s.mux.HandleFunc("POST /v2/oauth2", func(w http.ResponseWriter, r *http.Request) {
		switch r.PostFormValue("action") {
		case "requesttoken":
			s.token(w, r)
		case "revoke":
			s.revokeSigned(w, r)
		default:
			withingsAnswer(w, 2554, []any{}, "Not implemented")
		}
	})
	s.mux.HandleFunc("POST /v2/signature", s.nonce)
	s.post("/notify", map[string]withingsAction{"subscribe": s.subscribe})
	s.post("/measure", map[string]withingsAction{"getmeas": func(p *Person, q url.Values) (any, error) {
		groups := withingsGroups(p, q)
		from, to, err := withingsRange(q)
		if q.Get("startdate") != "" && err != nil {
			return nil, err
		}
		if q.Get("startdate") != "" {
			groups = slices.DeleteFunc(groups, func(g object) bool { return g["date"].(int64) < from || g["date"].(int64) > to })
		}
		doc := s.paged("measuregrps", groups, q)
		doc["timezone"], doc["updatetime"] = withingsZone, s.opts.Now().Unix()
		doc["more"] = map[any]int{true: 1, false: 0}[doc["more"]]
		return doc, nil
	}})
	s.post("/v2/measure", map[string]withingsAction{
		"getactivity":         s.byDay("activities", withingsDays),
		"getworkouts":         s.byDay("series", withingsWorkouts),
		"getintradayactivity": withingsIntraday,
	})
	s.post("/v2/sleep", map[string]withingsAction{"getsummary": s.byDay("series", withingsNights), "get": withingsNight})
	s.post("/v2/heart", map[string]withingsAction{
		"list": func(p *Person, q url.Values) (any, error) {
			from, to, err := withingsRange(q)
			if err != nil {
				return nil, err
			}
			found := []object{}
			for i := range p.Days {
				if at := withingsECG(p, i); at != 0 && at >= from && at <= to {
					found = append(found, object{
						"deviceid": "watch", "model": 93, "ecg": object{"signalid": i + 1, "afib": i % 2}, "heart_rate": 60 + i%20,
						"timestamp": at, "timezone": withingsZone,
					})
				}
			}
			return s.paged("series", found, q), nil
		},
		"get": func(_ *Person, q url.Values) (any, error) {
			i, err := strconv.Atoi(q.Get("signalid"))
			return object{"signal": withingsSignal(i - 1), "sampling_frequency": 500, "wearposition": 1}, err
		},
	})
	s.post("/v2/user", map[string]withingsAction{"getdevice": func(*Person, url.Values) (any, error) {
		return object{"devices": []object{
			{"type": "Scale", "model": "Body+", "model_id": 13, "battery": "high", "deviceid": "scale", "hash_deviceid": "scale", "timezone": withingsZone},
			{"type": "Activity Tracker", "model": "ScanWatch", "model_id": 93, "battery": "low", "deviceid": "watch", "hash_deviceid": "watch"},
		}}, nil
	}})
	return s, withingsTruth
}

// withingsAction answers one value of the parameter action.
type withingsAction = func(p *Person, q url.Values) (any, error)

// post serves a path. The keys of actions are values of the parameter action.
func (s *WithingsServer) post(path string, actions map[string]withingsAction) {
	s.mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		p, status, wait := s.checkRequest(w, bearer(r))
		switch status {
		case http.StatusTooManyRequests:
			withingsAnswer(w, 601, object{"wait_seconds": int(wait/time.Second) + 1}, "Too Many Requests")
			return
		case http.StatusServiceUnavailable:
			withingsAnswer(w, 522, object{}, "Timeout")
			return
		case http.StatusUnauthorized:
			withingsAnswer(w, 401, object{}, "XRequestID: Not provided invalid_token")
			return
		}
		answer := actions[r.PostFormValue("action")]
		if answer == nil {
			withingsAnswer(w, 2554, object{}, "Not implemented")
			return
		}
		doc, err := answer(p, r.PostForm)
		if err != nil {
			withingsAnswer(w, 503, object{}, err.Error())
			return
		}
		withingsAnswer(w, 0, doc, "")
	})
}

func (s *WithingsServer) signed(r *http.Request, value string) bool {
	mac := hmac.New(sha256.New, []byte(s.opts.ClientSecret))
	mac.Write([]byte(strings.Join([]string{r.PostFormValue("action"), s.opts.ClientID, value}, ",")))
	return r.PostFormValue("signature") == hex.EncodeToString(mac.Sum(nil)) && r.PostFormValue("client_id") == s.opts.ClientID
}

func (s *WithingsServer) nonce(w http.ResponseWriter, r *http.Request) {
	if !s.signed(r, r.PostFormValue("timestamp")) {
		withingsAnswer(w, 503, object{}, "Invalid Params: invalid signature")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issued++
	nonce := fmt.Sprint("nonce-", s.issued)
	s.nonces[nonce] = true
	withingsAnswer(w, 0, object{"nonce": nonce}, "")
}

func (s *WithingsServer) revokeSigned(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	nonce := r.PostFormValue("nonce")
	if !s.nonces[nonce] || !s.signed(r, nonce) || s.people[r.PostFormValue("userid")] == nil {
		withingsAnswer(w, 503, object{}, "Invalid Params")
		return
	}
	delete(s.nonces, nonce)
	s.revoke(r.PostFormValue("userid"))
	withingsAnswer(w, 0, object{}, "")
}

// subscribe sends HEAD to the callback URL, and stores the subscription if the response has a status 2xx.
func (s *WithingsServer) subscribe(p *Person, q url.Values) (any, error) {
	client := &http.Client{Timeout: 2 * time.Second}
	resp, err := client.Head(q.Get("callbackurl")) //nolint:gosec,noctx // a double takes any address, and is for tests
	if err != nil {
		return nil, errors.New("callback URL: cannot be reached")
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode/100 != 2 {
		return nil, errors.New("callback URL: must answer HEAD")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subscriptions = append(s.subscriptions, p.ID+" "+q.Get("appli")+" "+q.Get("callbackurl"))
	return object{}, nil
}

// paged returns a page of a list in the member name. As in the real API, the last page has an offset too.
func (s *WithingsServer) paged(name string, all []object, q url.Values) object {
	items, next := page(all, q.Get("offset"), s.opts.PageSize)
	if next == "" {
		return object{name: items, "more": false, "offset": 0}
	}
	offset, _ := strconv.Atoi(next) // a number
	return object{name: items, "more": true, "offset": offset}
}

func withingsRange(q url.Values) (from, to int64, err error) {
	from, err = strconv.ParseInt(q.Get("startdate"), 10, 64)
	to, bad := strconv.ParseInt(q.Get("enddate"), 10, 64)
	if err != nil || bad != nil {
		return 0, 0, errors.New("startdate and enddate: must be Unix seconds")
	}
	return from, to, nil
}

// byDay returns an action that lists documents of the requested days, with the requested fields.
func (s *WithingsServer) byDay(name string, all func(*Person) []object) withingsAction {
	return func(p *Person, q url.Values) (any, error) {
		from, to, fields := q.Get("startdateymd"), q.Get("enddateymd"), strings.Split(q.Get("data_fields"), ",")
		if from == "" || to == "" {
			return nil, errors.New("startdateymd and enddateymd: must be days")
		}
		found := []object{}
		for _, doc := range all(p) {
			if day := doc["date"].(string); day < from || day > to {
				continue
			}
			data, nested := doc["data"].(object)
			maps.DeleteFunc(data, func(field string, _ any) bool { return !slices.Contains(fields, field) })
			if nested && len(data) == 0 {
				doc["data"] = []any{}
			}
			if !nested {
				maps.DeleteFunc(doc, func(field string, _ any) bool {
					return !slices.Contains(fields, field) && !slices.Contains([]string{"date", "timezone", "modelid", "hash_deviceid", "model", "brand"}, field)
				})
			}
			found = append(found, doc)
		}
		return s.paged(name, found, q), nil
	}
}

func weighing(p *Person, i int) (total, fat, muscle, water, bone int) {
	total = 60_000 + p.Number%30*1000 + p.Days[i].Steps%2000
	return total, total/5 + i, total * 2 / 5, total / 2, 3000 + i%100
}

func pressure(i int) (high, low, pulse int) { return 110 + i%30, 65 + i%20, 55 + i%25 }

// withingsGroups returns the measurements of the requested types and category. Every eleventh day has a weighing that
// may be of a guest.
func withingsGroups(p *Person, q url.Values) (out []object) {
	types := strings.Split(q.Get("meastypes"), ",")
	id := 0
	add := func(at time.Time, attrib, category, model int, values ...[3]int) {
		id++
		measures := []object{}
		for _, v := range values {
			if slices.Contains(types, strconv.Itoa(v[0])) {
				measures = append(measures, object{"type": v[0], "value": v[1], "unit": v[2], "algo": 0, "fm": 3})
			}
		}
		if len(measures) > 0 && (q.Get("category") == "" || q.Get("category") == strconv.Itoa(category)) {
			out = append(out, object{
				"grpid": p.Number*100_000 + id, "attrib": attrib, "date": at.Unix(), "created": at.Unix() + 9, "modified": at.Unix() + 9, "category": category,
				"deviceid": nil, "modelid": model, "measures": measures,
			})
		}
	}
	for i := range p.Days {
		at := func(hour, minute int) time.Time {
			return p.Days[i].Date.Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute + 20*time.Second)
		}
		total, fat, muscle, water, bone := weighing(p, i)
		add(at(9, 40), 0, 1, 13, [3]int{1, total, -3}, [3]int{8, fat, -3}, [3]int{5, total - fat, -3}, [3]int{76, muscle, -3},
			[3]int{77, water, -3}, [3]int{88, bone, -3}, [3]int{170, 31, -1})
		high, low, pulse := pressure(i)
		add(at(9, 40), 0, 1, 13, [3]int{11, pulse, 0})
		if i%3 == 0 {
			add(at(20, 0), 7, 1, 45, [3]int{9, low, 0}, [3]int{10, high, 0}, [3]int{11, pulse + 1, 0})
		}
		if i%7 == 0 {
			add(at(20, 30), 0, 1, 70, [3]int{71, 365 + i%10, -1})
			add(at(20, 40), 0, 1, 93, [3]int{54, 94 + i%5, 0})
		}
		if i%30 == 0 {
			add(at(21, 0), 0, 1, 93, [3]int{123, 400 + i, -1})
		}
		if i%11 == 0 {
			add(at(11, 0), 1, 1, 13, [3]int{1, 30_000, -3})
		}
	}
	if len(p.Days) > 0 {
		add(p.Days[0].Date, 4, 1, 0, [3]int{4, 178, -2})
		add(p.Days[0].Date, 2, 2, 0, [3]int{1, 60, 0})
	}
	return out
}

func withingsDays(p *Person) (out []object) {
	for i := range p.Days {
		d := &p.Days[i]
		out = append(out, object{
			"date": p.date(d.Date), "timezone": withingsZone, "hash_deviceid": "watch", "model": "ScanWatch", "modelid": 93, "brand": 1,
			"steps": d.Steps, "distance": d.Distance, "elevation": 4, "soft": d.Low, "moderate": d.Medium, "intense": d.High, "calories": d.Active,
			"totalcalories": d.Total, "hr_average": d.AverageHR, "hr_min": d.AverageHR - 20, "hr_max": d.HighestR, "active": d.Medium + d.High,
		})
	}
	return out
}

var withingsSports = map[string]int{"running": 2, "cycling": 6, "yoga": 28}

func withingsWorkouts(p *Person) (out []object) {
	for i := range p.Workouts {
		w := &p.Workouts[i]
		out = append(out, object{
			"id": 1_000_000 + i, "category": withingsSports[w.Sport], "timezone": withingsZone, "model": 93, "attrib": 7, "startdate": w.Start.Unix(),
			"enddate": w.End.Unix(), "date": p.date(w.Start), "modified": w.End.Unix(), "deviceid": "watch",
			"data": object{
				"calories": w.KCal, "distance": w.Distance, "hr_average": w.AverageHR, "hr_max": w.Max, "hr_zone_0": w.Zones[0], "hr_zone_1": w.Zones[1],
				"hr_zone_2": w.Zones[2], "hr_zone_3": w.Zones[3], "manual_calories": 0, "manual_distance": 0, "pause_duration": 0, "intensity": 0,
			},
		})
	}
	return out
}

// intradayValues calls add for each intraday value of a day.
func (d *Day) intradayValues(add func(at time.Time, values object)) {
	for hour := 9; hour < 21; hour += 3 {
		add(d.Date.Add(time.Duration(hour)*time.Hour), object{
			"steps": d.Steps / 4, "distance": d.Distance / 4, "calories": d.Active / 4, "elevation": 1, "duration": 600,
		})
	}
	add(d.Date.Add(16*time.Hour+5*time.Minute), object{"spo2_auto": 93 + d.Steps%6})
	add(d.Date.Add(17*time.Hour+5*time.Minute), object{"rmssd": 20.5 + float64(d.Steps%40)})
	d.pulse(func(at time.Time, bpm float64) { add(at, object{"heart_rate": bpm, "duration": 60}) })
}

// withingsIntraday returns the intraday values in the first 24 hours of the requested range.
func withingsIntraday(p *Person, q url.Values) (any, error) {
	from, to, err := withingsRange(q)
	if err != nil {
		return nil, err
	}
	to = min(to, from+86_400)
	series := object{}
	for i := range p.Days {
		if start := p.Days[i].Date.Unix(); start > to || start+86_400 < from {
			continue
		}
		p.Days[i].intradayValues(func(at time.Time, values object) {
			if at.Unix() >= from && at.Unix() <= to {
				values["deviceid"], values["model"], values["model_id"] = "watch", "ScanWatch", 93
				series[strconv.FormatInt(at.Unix(), 10)] = values
			}
		})
	}
	if len(series) == 0 {
		return object{"series": []any{}}, nil
	}
	return object{"series": series}, nil
}

func withingsNights(p *Person) (out []object) {
	for i := range p.Nights {
		n := &p.Nights[i]
		out = append(out, object{
			"id": n.Number, "timezone": withingsZone, "model": 16, "model_id": 93, "hash_deviceid": "watch", "startdate": n.Start.Unix(),
			"enddate": n.End.Unix(), "date": p.date(n.End), "created": n.End.Unix(), "modified": n.End.Unix(), "completed": true,
			"data": object{
				"total_timeinbed": n.End.Sub(n.Start) / time.Second, "lightsleepduration": n.seconds('2'), "deepsleepduration": n.seconds('1'),
				"remsleepduration": n.seconds('3'), "wakeupduration": n.seconds('4'), "sleep_latency": 600, "sleep_efficiency": float64(n.Efficiency) / 100,
				"sleep_score": n.Score, "hr_average": n.RestingHR + 4, "hr_min": n.RestingHR, "rr_average": n.RespiratoryRate, "snoring": 120,
			},
		})
	}
	return out
}

var withingsStates = map[byte]int{'1': 2, '2': 1, '3': 3, '4': 0}

// withingsNight returns the sleep segments in the first 24 hours of the requested range, the last one first.
func withingsNight(p *Person, q url.Values) (any, error) {
	from, to, err := withingsRange(q)
	if err != nil {
		return nil, err
	}
	to = min(to, from+86_400)
	series := []object{}
	for i := range p.Nights {
		n := &p.Nights[i]
		if n.Start.Unix() >= to || n.End.Unix() <= from {
			continue
		}
		for j := range n.Stages {
			start := n.Start.Add(time.Duration(j) * 5 * time.Minute).Unix()
			if start < from || start >= to {
				continue
			}
			x := object{"startdate": start, "enddate": start + 300, "state": withingsStates[n.Stages[j]], "hash_deviceid": "watch", "hr": []any{}, "rmssd": []any{}}
			key := strconv.FormatInt(start, 10)
			x["rr"] = object{key: math.Round(n.RespiratoryRate)}
			if n.HR[j] != nil {
				x["hr"], x["rmssd"] = object{key: n.HR[j]}, object{key: n.HRV[j]}
			}
			series = append(series, x)
		}
	}
	slices.Reverse(series)
	return object{"series": series, "model": 16}, nil
}

func withingsECG(p *Person, i int) int64 {
	if i%90 != 5 {
		return 0
	}
	return p.Days[i].Date.Add(19 * time.Hour).Unix()
}

// withingsSignal returns the voltages of an electrocardiogram of two seconds, in µV.
func withingsSignal(day int) []int {
	out := make([]int, 1000)
	for i := range out {
		out[i] = (i*37+day)%900 - 300
	}
	return out
}

func withingsTruth(p *Person) Truth {
	t := Truth{}
	for i := range p.Nights {
		n := &p.Nights[i]
		t.night(p, n)
		delete(t["sleep"], stamp(n.Start)+".recovery")
		delete(t["sleep"], stamp(n.Start)+".hrv")
		t.put("sleep", stamp(n.Start)+".score", float64(n.Score))
		t.stages(n)
		for j := range n.HR {
			at := stamp(n.Start.Add(time.Duration(j) * 5 * time.Minute))
			t.put("respiratory_rate", at, math.Round(n.RespiratoryRate))
			if n.HR[j] != nil {
				t.put("heartrate", at, *n.HR[j])
				t.put("hrv", at, *n.HRV[j])
			}
		}
	}
	for i := range p.Days {
		t.withingsDay(p, i)
	}
	for i := range p.Workouts {
		w := &p.Workouts[i]
		t.workout(w)
		t.put("workouts", stamp(w.Start)+".distance", w.Distance)
		t.put("workouts", stamp(w.Start)+".average", float64(w.AverageHR))
		t.put("workouts", stamp(w.Start)+".max", float64(w.Max))
		for z := range 4 {
			t.put("workouts", stamp(w.Start)+".zone"+strconv.Itoa(z), float64(w.Zones[z]))
		}
	}
	t.put("profile", "profile.height", 178)
	return t
}

func (t Truth) withingsDay(p *Person, i int) {
	d := &p.Days[i]
	for name, v := range map[string]float64{
		"total": d.Total, "active": d.Active, "steps": float64(d.Steps), "low": float64(d.Low) / 60, "medium": float64(d.Medium) / 60, "high": float64(d.High) / 60,
	} {
		t.put("activity", p.date(d.Date)+"."+name, v)
	}
	d.intradayValues(func(at time.Time, values object) {
		for field, resource := range map[string]string{
			"steps": "steps", "distance": "distance", "calories": "calories_active", "elevation": "floors_climbed", "heart_rate": "heartrate",
			"spo2_auto": "blood_oxygen", "rmssd": "hrv",
		} {
			switch v := values[field].(type) {
			case int:
				t.put(resource, stamp(at), float64(v))
			case float64:
				t.put(resource, stamp(at), v)
			}
		}
	})
	at := func(hour, minute int) string {
		return stamp(d.Date.Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute + 20*time.Second))
	}
	total, fat, muscle, water, bone := weighing(p, i)
	morning, kg := at(9, 40), float64(total)/1000
	t.put("weight", morning, kg)
	t.put("fat", morning, float64(fat)/float64(total)*100)
	t.put("lean_body_mass", morning, float64(total-fat)/1000)
	for name, v := range map[string]float64{
		"weight": kg, "fat": float64(fat) / float64(total) * 100, "lean": float64(total-fat) / 1000, "muscle": float64(muscle) / float64(total) * 100,
		"water": float64(water) / float64(total) * 100, "bone": float64(bone) / float64(total) * 100, "visceral": 3.1,
	} {
		t.put("body", p.date(d.Date)+"."+name, v)
	}
	high, low, pulse := pressure(i)
	t.put("heartrate", morning, float64(pulse))
	if i%3 == 0 {
		t.put("blood_pressure", at(20, 0)+" systolic", float64(high))
		t.put("blood_pressure", at(20, 0)+" diastolic", float64(low))
		t.put("heartrate", at(20, 0), float64(pulse+1))
	}
	if i%7 == 0 {
		t.put("body_temperature", at(20, 30), float64(365+i%10)/10)
		t.put("blood_oxygen", at(20, 40), float64(94+i%5))
	}
	if i%30 == 0 {
		t.put("vo2_max", at(21, 0), float64(400+i)/10)
	}
	if start := withingsECG(p, i); start != 0 {
		key := stamp(time.Unix(start, 0))
		t.put("electrocardiogram", key+".count", 1000)
		t.put("electrocardiogram", key+".hz", 500)
		t.put("electrocardiogram", key+".mean", float64(60+i%20))
		t.put("electrocardiogram", key+".end", float64(start+2))
		for j, v := range withingsSignal(i) {
			at := time.Unix(start, 0).Add(time.Duration(j) * 2 * time.Millisecond).UTC()
			t.put("electrocardiogram_voltage", at.Format(time.RFC3339Nano)+" lead_1", float64(v)/1000)
		}
	}
}

// WithingsMessage returns the webhook message that a person has new data of a category between from and to.
func WithingsMessage(p *Person, category int, from, to time.Time) []byte {
	return []byte(url.Values{
		"userid": {p.ID}, "appli": {strconv.Itoa(category)}, "startdate": {strconv.FormatInt(from.Unix(), 10)}, "enddate": {strconv.FormatInt(to.Unix(), 10)},
	}.Encode())
}

// WithingsUnlink returns the webhook message that a person has revoked the grant.
func WithingsUnlink(p *Person) []byte {
	return []byte(url.Values{"userid": {p.ID}, "appli": {"46"}, "action": {"unlink"}}.Encode())
}
