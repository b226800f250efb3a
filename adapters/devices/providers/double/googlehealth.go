package double

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// googleFilter matches a filter for a range of one field.
var googleFilter = regexp.MustCompile(`^(\S+) >= "([^"]+)"(?: AND (\S+) < "([^"]+)")?$`)

// GoogleHealth returns a test double of the Google Health API v4, and a function that returns the expected data of a
// person.
func GoogleHealth(o Options) (*Server, func(*Person) Truth) {
	s := newServer("Google Health", paths{authorize: "/o/oauth2/v2/auth", token: "/token"}, o)
	s.keepRefresh = true
	s.mux.HandleFunc("POST /revoke", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		person := s.refresh[r.PostFormValue("token")]
		if person == "" {
			reply(w, http.StatusBadRequest, object{"error": "invalid_token"})
			return
		}
		s.revoke(person)
		reply(w, http.StatusOK, object{})
	})
	s.data("/v4/users/me/identity", func(p *Person, _ url.Values) (any, error) {
		return object{"name": "users/me/identity", "healthUserId": p.ID, "legacyUserId": "L" + p.ID}, nil
	})
	s.serve("/v4/users/me/dataTypes/{type}/dataPoints", func(p *Person, r *http.Request) (any, error) {
		name, q := r.PathValue("type"), r.URL.Query()
		size, most := 1440, 10_000
		if name == "sleep" || name == "exercise" {
			size, most = 25, 25
		}
		if n, err := strconv.Atoi(q.Get("pageSize")); err == nil {
			size = min(n, most)
		}
		keep, err := googleRange(p, name, q.Get("filter"))
		if err != nil {
			return nil, err
		}
		found := []object{}
		googlePoints(p, name, keep, func(doc object) { found = append(found, doc) })
		slices.Reverse(found) // newest first
		items, next := page(found, q.Get("pageToken"), size)
		return object{"dataPoints": items, "nextPageToken": next}, nil
	})
	s.mux.HandleFunc("POST /v4/users/me/dataTypes/{type}/dataPoints:dailyRollUp", func(w http.ResponseWriter, r *http.Request) {
		p, status, _ := s.checkRequest(w, bearer(r))
		if status != 0 {
			reply(w, status, object{"error": object{"code": status}})
			return
		}
		type civil struct {
			Date struct{ Year, Month, Day int }
		}
		var body struct {
			Range          struct{ Start, End civil }
			WindowSizeDays int
		}
		day := func(c civil) time.Time {
			return time.Date(c.Date.Year, time.Month(c.Date.Month), c.Date.Day, 0, 0, 0, 0, time.UTC).Add(-time.Duration(p.Offset) * time.Second)
		}
		err := json.NewDecoder(r.Body).Decode(&body)
		from, to := day(body.Range.Start), day(body.Range.End)
		if err != nil || body.WindowSizeDays != 1 || !to.After(from) || r.PathValue("type") == "total-calories" && to.Sub(from) > 14*24*time.Hour {
			reply(w, http.StatusBadRequest, object{"error": object{"code": 400}})
			return
		}
		points := []object{}
		for i := range p.Days {
			if d := &p.Days[i]; !d.Date.Before(from) && d.Date.Before(to) {
				points = append(points, googleSum(p, d, r.PathValue("type")))
			}
		}
		reply(w, http.StatusOK, object{"rollupDataPoints": points})
	})
	s.data("/v4/users/me/pairedDevices", func(p *Person, _ url.Values) (any, error) {
		return object{"pairedDevices": []object{{
			"name": "users/me/pairedDevices/band-" + p.ID, "deviceType": "TRACKER", "batteryLevel": 80, "batteryStatus": "HIGH", "deviceVersion": "Band 5",
		}}}, nil
	})
	s.googleTracks()
	return s, googleTruth
}

// googleTracks serves the recordings of exercises.
func (s *Server) googleTracks() {
	s.mux.HandleFunc("GET /v4/users/me/dataTypes/exercise/dataPoints/{id}", func(w http.ResponseWriter, r *http.Request) {
		p, status, _ := s.checkRequest(w, bearer(r))
		if status != 0 {
			reply(w, status, object{"error": object{"code": status}})
			return
		}
		for i := range p.Workouts {
			if of := &p.Workouts[i]; of.ID+":exportExerciseTcx" == r.PathValue("id") && of.Distance > 0 {
				w.Header().Set("Content-Type", "application/vnd.garmin.tcx+xml")
				_, _ = io.WriteString(w, of.tcx()) // an error means that the caller has disconnected
				return
			}
		}
		reply(w, http.StatusNotFound, object{"error": object{"code": http.StatusNotFound}})
	})
}

// tcx returns the recording of a workout as a TCX file.
func (w *Workout) tcx() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0" encoding="UTF-8"?><TrainingCenterDatabase xmlns="http://www.garmin.com/xmlschemas/TrainingCenterDatabase/v2"><Activities>`+
		`<Activity Sport="Running"><Id>%s</Id><Lap StartTime="%s"><TotalTimeSeconds>%d</TotalTimeSeconds><Track>`,
		utc(w.Start), utc(w.Start), int(w.End.Sub(w.Start)/time.Second))
	w.stream(func(second, bpm int) {
		fmt.Fprintf(&b, `<Trackpoint><Time>%s</Time><HeartRateBpm><Value>%d</Value></HeartRateBpm></Trackpoint>`,
			utc(w.Start.Add(time.Duration(second)*time.Second)), bpm)
	})
	b.WriteString(`</Track></Lap></Activity></Activities></TrainingCenterDatabase>`)
	return b.String()
}

// googleRange parses the time filter of a request for the data type name. It returns a function that reports whether a
// time is in the range.
func googleRange(p *Person, name, filter string) (func(time.Time) bool, error) {
	if filter == "" {
		return func(time.Time) bool { return true }, nil
	}
	m := googleFilter.FindStringSubmatch(filter)
	if m != nil && m[3] == "" && name == "electrocardiogram" { // this type accepts a start without an end
		m[3], m[4] = m[1], "2100-01-01T00:00:00Z"
	}
	if m == nil || m[1] != m[3] || !strings.HasPrefix(m[1], strings.ReplaceAll(name, "-", "_")+".") {
		return nil, errors.New("INVALID_DATA_POINT_FILTER")
	}
	form := time.RFC3339
	switch {
	case strings.HasSuffix(m[1], ".date"):
		form = time.DateOnly
	case strings.HasSuffix(m[1], ".civil_start_time"):
		form = "2006-01-02T15:04:05"
	}
	zone := time.FixedZone("", p.Offset)
	from, err := time.ParseInLocation(form, m[2], zone)
	to, bad := time.ParseInLocation(form, m[4], zone)
	if err != nil || bad != nil {
		return nil, errors.New("INVALID_DATA_POINT_FILTER")
	}
	return func(at time.Time) bool { return !at.Before(from) && at.Before(to) }, nil
}

func civilDate(p *Person, at time.Time) object {
	at = at.In(time.FixedZone("", p.Offset))
	return object{"year": at.Year(), "month": int(at.Month()), "day": at.Day()}
}

// googleSum returns the sum of the data type name on a day.
func googleSum(p *Person, d *Day, name string) object {
	doc := object{"civilStartTime": object{"date": civilDate(p, d.Date)}, "civilEndTime": object{"date": civilDate(p, d.Date.Add(24*time.Hour))}}
	switch name {
	case "steps":
		doc["steps"] = object{"countSum": strconv.Itoa(d.Steps / 4 * 4)}
	case "floors":
		doc["floors"] = object{"countSum": "4"}
	case "distance":
		doc["distance"] = object{"millimetersSum": strconv.Itoa(int(d.Distance * 1000))}
	case "active-energy-burned":
		doc["activeEnergyBurned"] = object{"kcalSum": d.Active}
	case "total-calories":
		doc["totalCalories"] = object{"kcalSum": d.Total}
	}
	return doc
}

// googlePoints calls add for each point of the data type name whose time keep accepts. The only point of height is
// added in any case.
func googlePoints(p *Person, name string, keep func(time.Time) bool, add func(doc object)) {
	offset := fmt.Sprint(p.Offset, "s")
	span := func(start, end time.Time) object {
		return object{"startTime": utc(start), "endTime": utc(end), "startUtcOffset": offset, "endUtcOffset": offset}
	}
	point := func(form, member string, doc object) object {
		return object{"dataSource": object{"device": object{"formFactor": form, "displayName": "Band 5", "manufacturer": "Fjord"}, "platform": "FITBIT"}, member: doc}
	}
	sample := func(at time.Time, form, member string, doc object) {
		doc["sampleTime"] = object{"physicalTime": utc(at), "utcOffset": offset}
		add(point(form, member, doc))
	}
	nights := func(each func(n *Night, j int, at time.Time)) {
		for i := range p.Nights {
			for j := range p.Nights[i].HR {
				if at := p.Nights[i].Start.Add(time.Duration(j) * 5 * time.Minute); p.Nights[i].HR[j] != nil && keep(at) {
					each(&p.Nights[i], j, at)
				}
			}
		}
	}
	switch name {
	case "steps", "distance", "floors", "active-energy-burned":
		googleIntervals(p, name, keep, span, point, add)
	case "heart-rate":
		nights(func(n *Night, j int, at time.Time) {
			sample(at, "WATCH", "heartRate", object{"beatsPerMinute": strconv.Itoa(int(*n.HR[j]))})
		})
		p.pulse(func(at time.Time, bpm float64) {
			if keep(at) {
				sample(at, "WATCH", "heartRate", object{"beatsPerMinute": strconv.Itoa(int(bpm))})
			}
		})
	case "heart-rate-variability":
		nights(func(n *Night, j int, at time.Time) {
			sample(at, "WATCH", "heartRateVariability", object{"rootMeanSquareOfSuccessiveDifferencesMilliseconds": *n.HRV[j], "standardDeviationMilliseconds": 60})
		})
	case "oxygen-saturation":
		for i := range p.Nights {
			if keep(p.Nights[i].End) {
				sample(p.Nights[i].End, "WATCH", "oxygenSaturation", object{"percentage": p.Nights[i].SpO2})
			}
		}
	case "weight", "body-fat":
		googleScale(p, name, keep, sample)
	case "respiratory-rate-sleep-summary":
		for i := range p.Nights {
			if n := &p.Nights[i]; keep(n.End) {
				sample(n.End, "WATCH", "respiratoryRateSleepSummary", object{"fullSleepStats": object{"breathsPerMinute": n.RespiratoryRate}})
			}
		}
	case "daily-heart-rate-variability", "daily-respiratory-rate", "daily-sleep-temperature-derivations", "daily-vo2-max":
		googleDaily(p, name, keep, add)
	case "vo2-max", "run-vo2-max", "core-body-temperature", "blood-glucose", "basal-energy-burned", "hydration-log", "nutrition-log", "electrocardiogram",
		"irregular-rhythm-notification":
		googleRare(p, name, keep, span, point, add)
	case "height":
		sample(p.Days[0].Date, "", "height", object{"heightMillimeters": "1780"})
	case "daily-resting-heart-rate":
		for i := range p.Nights {
			if !keep(p.Days[i].Date) {
				continue
			}
			add(object{"dailyRestingHeartRate": object{"date": civilDate(p, p.Days[i].Date), "beatsPerMinute": strconv.Itoa(p.Nights[i].RestingHR)}})
		}
	case "exercise":
		for i := range p.Workouts {
			if keep(p.Workouts[i].Start) {
				add(googleExercise(&p.Workouts[i], span, point))
			}
		}
	case "sleep":
		for i := range p.Nights {
			if keep(p.Nights[i].End) {
				add(googleSleep(&p.Nights[i], span, point))
			}
		}
	}
}

// googleScale calls sample for each weighing of a person whose time keep accepts: with the weight if name is weight,
// else with the body fat.
func googleScale(p *Person, name string, keep func(time.Time) bool, sample func(at time.Time, form, member string, doc object)) {
	for i := range p.Days {
		total, fat, _, _, _ := weighing(p, i)
		at := p.Days[i].Date.Add(9*time.Hour + 40*time.Minute)
		switch {
		case !keep(at):
		case name == "weight":
			sample(at, "SCALE", "weight", object{"weightGrams": float64(total)})
		default:
			sample(at, "SCALE", "bodyFat", object{"percentage": float64(fat) / float64(total) * 100})
		}
	}
}

// googleDaily calls add for each daily value of the data type name whose day keep accepts: those of nights, by the day
// on which they ended, and those that exist every tenth day.
func googleDaily(p *Person, name string, keep func(time.Time) bool, add func(doc object)) {
	for i := range p.Nights {
		n, day := &p.Nights[i], p.Days[i].Date
		doc := object{"date": civilDate(p, day)}
		var member string
		switch name {
		case "daily-heart-rate-variability":
			member, doc["averageHeartRateVariabilityMilliseconds"], doc["entropy"] = "dailyHeartRateVariability", n.AverageHRV, 1.2
		case "daily-respiratory-rate":
			member, doc["breathsPerMinute"] = "dailyRespiratoryRate", n.RespiratoryRate
		case "daily-vo2-max":
			if member = "dailyVo2Max"; i%10 != 0 {
				continue
			}
			doc["vo2Max"] = 40 + float64(i%50)/10
		default:
			member, doc["nightlyTemperatureCelsius"] = "dailySleepTemperatureDerivations", n.SkinTemperature
			if doc["baselineTemperatureCelsius"] = n.SkinTemperature - n.TemperatureDelta; i == 0 {
				doc["baselineTemperatureCelsius"] = "NaN" // the first night has none
			}
		}
		if keep(day) {
			add(object{member: doc})
		}
	}
}

func (p *Person) everyTenthDay(each func(i int, at time.Time)) {
	for i := 0; i < len(p.Days); i += 10 {
		each(i, p.Days[i].Date.Add(9*time.Hour))
	}
}

// googleECG holds the values of an electrocardiogram in microvolts, at 250 Hz.
var googleECG = []int{120, -40, 980, -210, 60}

// googleRare calls add for each point of the data type name whose time keep accepts, for data types with a point every
// tenth day.
func googleRare(p *Person, name string, keep func(time.Time) bool, span googleSpan, point googlePoint, add func(doc object)) {
	p.everyTenthDay(func(i int, at time.Time) {
		if name == "run-vo2-max" {
			at = at.Add(time.Hour)
		}
		if !keep(at) {
			return
		}
		sampled := object{"physicalTime": utc(at), "utcOffset": fmt.Sprint(p.Offset, "s")}
		doc := map[string]object{
			"vo2-max":               {"vo2Max": object{"sampleTime": sampled, "vo2Max": 41.5}},
			"run-vo2-max":           {"runVo2Max": object{"sampleTime": sampled, "runVo2Max": 42.5}},
			"core-body-temperature": {"coreBodyTemperature": object{"sampleTime": sampled, "temperatureCelsius": 36.9}},
			"blood-glucose":         {"bloodGlucose": object{"sampleTime": sampled, "bloodGlucoseMilligramsPerDeciliter": 99}},
			"basal-energy-burned":   {"basalEnergyBurned": object{"interval": span(at, at.Add(time.Hour)), "kcal": 70}},
			"hydration-log":         {"hydrationLog": object{"interval": span(at, at.Add(time.Minute)), "amountConsumed": object{"milliliters": 250}}},
			"nutrition-log": {"nutritionLog": object{
				"interval": span(at, at.Add(time.Minute)), "foodDisplayName": "Porridge", "mealType": "BREAKFAST", "energy": object{"kcal": 310},
				"nutrients": []object{{"nutrient": "PROTEIN", "quantity": object{"grams": 11.5}}},
			}},
			"electrocardiogram": {"electrocardiogram": object{
				"interval": span(at, at.Add(30*time.Second)), "beatsPerMinuteAvg": "64", "resultClassification": "NORMAL_SINUS_RHYTHM",
				"waveformSamples": googleECG, "samplingFrequencyHertz": 250, "millivoltsScalingFactor": 1000,
			}},
			"irregular-rhythm-notification": {"irregularRhythmNotification": object{"interval": span(at, at.Add(time.Hour)), "alertWindows": []object{}}},
		}[name]
		for member, v := range doc {
			doc = point("WATCH", member, v.(object))
		}
		doc["name"] = "users/me/dataTypes/" + name + "/dataPoints/" + name + strconv.Itoa(i)
		add(doc)
	})
}

type (
	googleSpan  = func(start, end time.Time) object
	googlePoint = func(form, member string, doc object) object
)

func googleIntervals(p *Person, name string, keep func(time.Time) bool, span googleSpan, point googlePoint, add func(doc object)) {
	for i := range p.Days {
		p.Days[i].intradayValues(func(at time.Time, values object) {
			if values["steps"] == nil || !keep(at) {
				return
			}
			doc := map[string]object{
				"steps": {"count": fmt.Sprint(values["steps"])}, "floors": {"count": "1"}, "active-energy-burned": {"kcal": values["calories"]},
				"distance": {"millimeters": strconv.Itoa(int(values["distance"].(float64) * 1000))},
			}[name]
			doc["interval"] = span(at, at.Add(10*time.Minute))
			add(point("FITNESS_BAND", map[string]string{"active-energy-burned": "activeEnergyBurned"}[name]+strings.TrimPrefix(name, "active-energy-burned"), doc))
		})
	}
}

func googleExercise(w *Workout, span googleSpan, point googlePoint) object {
	zone := func(of ...int) string {
		total := int64(0)
		for _, z := range of {
			total += w.Zones[z]
		}
		return fmt.Sprint(total, "s")
	}
	doc := point("WATCH", "exercise", object{
		"interval": span(w.Start, w.End), "exerciseType": map[string]string{"running": "RUNNING", "cycling": "BIKING", "yoga": "YOGA"}[w.Sport],
		"activeDuration": fmt.Sprintf("%.1fs", w.End.Sub(w.Start).Seconds()-30),
		"metricsSummary": object{
			"caloriesKcal": w.KCal, "distanceMillimeters": w.Distance * 1000, "averageHeartRateBeatsPerMinute": strconv.Itoa(w.AverageHR),
			"heartRateZoneDurations": object{"lightTime": zone(0, 1), "moderateTime": zone(2), "vigorousTime": zone(3), "peakTime": zone(4, 5)},
		},
	})
	doc["name"] = "users/me/dataTypes/exercise/dataPoints/" + w.ID
	return doc
}

var googleStages = map[byte]string{'1': "DEEP", '2': "LIGHT", '3': "REM", '4': "AWAKE"}

func googleSleep(n *Night, span googleSpan, point googlePoint) object {
	parts, summary, asleep := []object{}, []object{}, int64(0)
	for j := range n.Stages {
		start := n.Start.Add(time.Duration(j) * 5 * time.Minute)
		part := span(start, start.Add(5*time.Minute))
		part["type"] = googleStages[n.Stages[j]]
		parts = append(parts, part)
	}
	for _, stage := range []byte("1234") {
		summary = append(summary, object{"type": googleStages[stage], "minutes": strconv.FormatInt(n.seconds(stage)/60, 10), "count": "3"})
		if stage != '4' {
			asleep += n.seconds(stage)
		}
	}
	doc := point("WATCH", "sleep", object{
		"interval": span(n.Start, n.End), "type": "STAGES", "stages": parts, "metadata": object{"processed": true, "stagesStatus": "SUCCEEDED"},
		"summary": object{
			"minutesAsleep": strconv.FormatInt(asleep/60, 10), "minutesAwake": strconv.FormatInt(n.seconds('4')/60, 10), "minutesToFallAsleep": "10",
			"stagesSummary": summary,
		},
	})
	doc["name"] = "users/me/dataTypes/sleep/dataPoints/" + n.ID
	return doc
}

func googleTruth(p *Person) Truth {
	t := Truth{}
	for i := range p.Nights {
		n := &p.Nights[i]
		t.night(p, n)
		delete(t["sleep"], stamp(n.Start)+".recovery")
		delete(t["sleep"], stamp(n.Start)+".resting")
		t.put("respiratory_rate", stamp(n.End), n.RespiratoryRate)
		if i > 0 {
			t.put("body_temperature_delta", stamp(n.Start), n.TemperatureDelta)
		}
		t.put("blood_oxygen", stamp(n.End), n.SpO2)
		t.put("activity", p.date(p.Days[i].Date)+".resting", float64(n.RestingHR))
		from := 0
		for j := 1; j <= len(n.Stages); j++ {
			if j == len(n.Stages) || n.Stages[j] != n.Stages[from] {
				t.put("sleep_cycle", stamp(n.Start)+"."+strconv.Itoa(from*300)+"-"+strconv.Itoa(j*300), float64(n.Stages[from]-'0'))
				from = j
			}
		}
		for j := range n.HR {
			if n.HR[j] != nil {
				at := stamp(n.Start.Add(time.Duration(j) * 5 * time.Minute))
				t.put("heartrate", at, float64(int(*n.HR[j])))
				t.put("hrv", at, *n.HRV[j])
			}
		}
	}
	p.pulse(func(at time.Time, bpm float64) { t.put("heartrate", stamp(at), float64(int(bpm))) })
	for i := range p.Days {
		d := &p.Days[i]
		d.intradayValues(func(at time.Time, values object) {
			if values["steps"] == nil {
				return
			}
			t.put("steps", stamp(at), float64(d.Steps/4))
			t.put("distance", stamp(at), float64(int(d.Distance/4*1000))/1000)
			t.put("floors_climbed", stamp(at), 1)
			t.put("calories_active", stamp(at), d.Active/4)
		})
		total, fat, _, _, _ := weighing(p, i)
		at := stamp(d.Date.Add(9*time.Hour + 40*time.Minute))
		t.put("weight", at, float64(total)/1000)
		t.put("fat", at, float64(fat)/float64(total)*100)
		for name, v := range map[string]float64{"total": d.Total, "active": d.Active, "steps": float64(d.Steps / 4 * 4)} {
			t.put("activity", p.date(d.Date)+"."+name, v)
		}
	}
	googleRareTruth(p, t)
	for i := range p.Workouts {
		w := &p.Workouts[i]
		t.workout(w)
		if w.Distance > 0 {
			w.stream(func(second, bpm int) {
				t.put("workout_stream", stamp(w.Start.Add(time.Duration(second)*time.Second)), float64(bpm))
			})
		}
		t.put("workouts", stamp(w.Start)+".distance", w.Distance)
		t.put("workouts", stamp(w.Start)+".average", float64(w.AverageHR))
		for z, seconds := range []int64{w.Zones[0] + w.Zones[1], w.Zones[2], w.Zones[3], w.Zones[4] + w.Zones[5]} {
			t.put("workouts", stamp(w.Start)+".zone"+strconv.Itoa(z), float64(seconds))
		}
	}
	t.put("profile", "profile.height", 178)
	return t
}

// googleRareTruth adds the expected data of googleRare.
func googleRareTruth(p *Person, t Truth) {
	p.everyTenthDay(func(i int, at time.Time) {
		t.put("vo2_max", stamp(at), 41.5)
		t.put("vo2_max", stamp(at.Add(time.Hour)), 42.5)
		t.put("vo2_max", stamp(p.Days[i].Date.Add(12*time.Hour)), 40+float64(i%50)/10)
		t.put("body_temperature", stamp(at), 36.9)
		t.put("glucose", stamp(at), 99/18.0182)
		t.put("calories_basal", stamp(at), 70)
		t.put("water", stamp(at), 250)
		t.put("meal", stamp(at)+".kcal", 310)
		t.put("meal", stamp(at)+".protein", 11.5)
		t.put("heart_rate_alert", stamp(at)+" irregular_rhythm", 1)
		t.put("electrocardiogram", stamp(at)+".end", float64(at.Add(30*time.Second).Unix()))
		t.put("electrocardiogram", stamp(at)+".count", float64(len(googleECG)))
		t.put("electrocardiogram", stamp(at)+".mean", 64)
		t.put("electrocardiogram", stamp(at)+".hz", 250)
		for j, raw := range googleECG {
			t.put("electrocardiogram_voltage", at.Add(time.Duration(j)*4*time.Millisecond).UTC().Format(time.RFC3339Nano)+" lead_1", float64(raw)/1000)
		}
	})
}

// GoogleHealthMessage returns the webhook message that a person has new data of a data type between from and to.
func GoogleHealthMessage(p *Person, dataType string, from, to time.Time) []byte {
	body, _ := json.Marshal([]object{{"data": object{ //nolint:errchkjson // texts
		"version": "1", "healthUserId": p.ID, "operation": "UPSERT", "dataType": dataType,
		"intervals": []object{{"physicalTimeInterval": object{"startTime": utc(from), "endTime": utc(to)}}},
	}}})
	return body
}
