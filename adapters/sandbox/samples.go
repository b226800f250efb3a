package sandbox

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// workoutSpace is the UUID namespace of the ids of invented workouts.
var workoutSpace = uuid.NewSHA1(uuid.NameSpaceURL, []byte("healthlab:sandbox:workout"))

func workoutID(user healthlab.UserID, date healthlab.Date) uuid.UUID {
	return uuid.NewSHA1(workoutSpace, append(user.UUID[:], date.String()...))
}

// rare describes an occasional measurement: how often per day, at which hour of the day if there is only one, and the
// mean and standard deviation of its value.
type rare struct {
	perDay   float64
	hour     float64
	mean, sd float64
	decimals int
	minutes  int // length of the interval that a sample covers
}

// rarities lists the timeseries that are measured only occasionally.
var rarities = map[string]rare{
	"hrv_sdnn":                       {4, 12, 48, 9, 0, 0},
	"blood_oxygen":                   {6, 3, 96.5, 0.8, 0, 0},
	"stress_level":                   {24, 14, 35, 12, 0, 0},
	"floors_climbed":                 {5, 13, 2, 1, 0, 0},
	"wheelchair_push":                {0.02, 12, 300, 80, 0, 30},
	"fall":                           {0.01, 15, 1, 0, 0, 1},
	"vo2_max":                        {0.3, 19, 41, 1, 1, 0},
	"heart_rate_recovery_one_minute": {0.3, 19, 28, 4, 0, 1},
	"heart_rate_alert":               {0.05, 11, 1, 0, 0, 10},
	"afib_burden":                    {0.14, 0, 2, 0.6, 1, 1440},
	"forced_expiratory_volume_1":     {0.1, 9, 3.4, 0.1, 2, 1},
	"forced_vital_capacity":          {0.1, 9, 4.2, 0.1, 2, 1},
	"peak_expiratory_flow_rate":      {0.1, 9, 510, 15, 0, 1},
	"inhaler_usage":                  {0.2, 8, 2, 0.5, 0, 1},
	"body_temperature":               {0.5, 8, 36.6, 0.2, 1, 1},
	"body_temperature_delta":         {1, 6, 0, 0.2, 2, 1},
	"basal_body_temperature":         {0.5, 6.5, 36.4, 0.15, 2, 1},
	"waist_circumference":            {0.05, 8, 88, 1, 0, 1},
	"insulin_injection":              {3, 13, 5, 1, 0, 1},
	"caffeine":                       {2, 10, 0.08, 0.01, 3, 10},
	"water":                          {7, 14, 240, 60, 0, 1},
	"mindfulness_minutes":            {0.3, 21, 10, 3, 0, 10},
	"sleep_apnea_alert":              {0.01, 7, 1, 0, 0, 420},
	"sleep_breathing_disturbance":    {1, 6.5, 6, 2, 0, 420},
	"uv_exposure":                    {2, 13, 4, 1.5, 0, 30},
	"daylight_exposure":              {6, 13, 12, 5, 0, 30},
	"handwashing":                    {6, 13, 1, 0, 0, 1},
	"ige":                            {0.02, 9, 0.4, 0.1, 2, 0},
	"igg":                            {0.02, 9, 12, 3, 1, 0},
}

// samples returns the samples of a resource on the day.
func (d *day) samples(r *healthdata.Resource) []healthdata.Sample {
	switch r.Slug {
	case "heartrate":
		return d.everyMinutes(r, 1, d.beats)
	case "respiratory_rate":
		return d.everyMinutes(r, 10, d.breaths)
	case "hrv":
		return d.everyMinutes(r, 5, d.variability)
	case "glucose":
		return d.everyMinutes(r, 5, func(m int) (float64, bool) { return round(d.glucose[m], 1), true })
	case "steps":
		return d.sums(r, 10, 0, func(m int) float64 { return d.steps[m] })
	case "distance":
		return d.sums(r, 10, 1, d.metres)
	case "calories_active":
		return d.sums(r, 10, 1, d.kcalActive)
	case "calories_basal":
		return d.sums(r, 60, 1, func(int) float64 { return d.kcalBasal() })
	case "stand_duration":
		return d.sums(r, 60, 0, func(m int) float64 { return one(d.doing[m] == walking || d.doing[m] == training) })
	case "stand_hour":
		return d.standHours(r)
	case "weight", "fat", "body_mass_index", "lean_body_mass":
		return d.scale(r)
	case "blood_pressure":
		return d.pressure(r)
	case "cholesterol":
		return d.cholesterol(r)
	case "carbohydrates":
		return d.carbohydrates(r)
	case "note":
		return d.notes(r)
	case "electrocardiogram_voltage":
		return d.voltage(r)
	case "workout_duration", "workout_distance", "workout_swimming_stroke":
		return d.workoutSamples(r)
	case "hypnogram":
		return d.hypnogram(r)
	default:
		return d.rare(r)
	}
}

func (d *day) beats(m int) (float64, bool) {
	// A device that is not worn measures nothing.
	return d.heartRate[m], !d.off[m]
}

func (d *day) breaths(m int) (float64, bool) { return round(10+d.heartRate[m]/15, 1), !d.off[m] }

func (d *day) variability(m int) (float64, bool) {
	hrv := d.night.hrv
	if !d.at(m).Before(d.nextNight.from) {
		hrv = d.nextNight.hrv
	}
	return round(hrv+float64(m%7)-3, 0), d.doing[m] == asleep && d.stage[m] != healthdata.SleepStageAwake
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (d *day) metres(m int) float64 {
	if d.doing[m] == training {
		return d.training.speed * 60
	}
	return d.steps[m] * d.heightCM * 0.00414
}

// kcalActive returns the active energy of minute m of the day, in kcal.
func (d *day) kcalActive(m int) float64 {
	switch d.doing[m] {
	case walking:
		return 0.045 * d.weightKG
	case training:
		return 0.13 * d.weightKG
	default:
		return 0
	}
}

func (d *day) kcalBasal() float64 {
	k := 10*d.weightKG + 6.25*d.heightCM - 5*float64(d.age) + 5
	if d.female {
		k -= 166
	}
	return k / minutesADay
}

// sample returns a sample of a resource at an instant, with the error of the device's clock.
func (d *day) sample(r *healthdata.Resource, at time.Time, v float64) healthdata.Sample {
	at = d.by.reads(sourceTypeOf(r), at)
	_, offset := at.In(d.loc).Zone()
	return healthdata.Sample{
		Timestamp: healthlab.At(at), TimezoneOffset: &offset, Unit: r.Unit, Value: healthdata.Number(v),
	}
}

func (d *day) interval(r *healthdata.Resource, at time.Time, length time.Duration, v float64) healthdata.Sample {
	s := d.sample(r, at, v)
	start, end := s.Timestamp, healthlab.At(s.Timestamp.Add(length))
	s.Start, s.End = &start, &end
	return s
}

// everyMinutes returns a sample for every so many minutes of the day. It omits minutes for which value returns false.
func (d *day) everyMinutes(r *healthdata.Resource, every int, value func(minute int) (float64, bool)) []healthdata.Sample {
	var out []healthdata.Sample
	for m := 0; m < d.minutes(); m += every {
		if v, ok := value(m); ok {
			out = append(out, d.sample(r, d.at(m), v))
		}
	}
	return out
}

// sums returns a sample for each interval of so many minutes: the sum of value over its minutes, rounded to decimals.
// It omits intervals with the sum 0.
func (d *day) sums(r *healthdata.Resource, every, decimals int, value func(minute int) float64) []healthdata.Sample {
	var out []healthdata.Sample
	for from := 0; from < d.minutes(); from += every {
		to, sum := min(from+every, d.minutes()), 0.0
		for m := from; m < to; m++ {
			sum += value(m)
		}
		if sum = round(sum, decimals); sum > 0 {
			out = append(out, d.interval(r, d.at(from), time.Duration(to-from)*time.Minute, sum))
		}
	}
	return out
}

func (d *day) standHours(r *healthdata.Resource) []healthdata.Sample {
	var out []healthdata.Sample
	for hour := range d.minutes() / 60 {
		up := 0
		for m := hour * 60; m < hour*60+60; m++ {
			if d.doing[m] == walking || d.doing[m] == training {
				up++
			}
		}
		if d.doing[hour*60+30] == asleep {
			continue
		}
		kind := "idle"
		if up > 0 {
			kind = "stood"
		}
		s := d.interval(r, d.at(hour*60), time.Hour, 1)
		s.Type = &kind
		out = append(out, s)
	}
	return out
}

// scale returns what the bathroom scale measured on the morning. There is nothing on about one of three days.
func (d *day) scale(r *healthdata.Resource) []healthdata.Sample {
	g := dice(d.user, "scale", d.date)
	if g.IntN(3) == 0 {
		return nil
	}
	at := d.night.to.Add(time.Duration(5+g.IntN(20)) * time.Minute)
	weight := d.weightToday()
	fat := d.fatPercent + 0.4*g.NormFloat64()
	v := map[string]float64{
		"weight":          round(weight, 1),
		"fat":             round(fat, 1),
		"body_mass_index": round(weight/d.heightCM/d.heightCM*1e4, 1),
		"lean_body_mass":  round(weight*(1-fat/100), 1),
	}[r.Slug]
	if r.Shape == healthdata.Interval {
		return []healthdata.Sample{d.interval(r, at, 0, v)}
	}
	return []healthdata.Sample{d.sample(r, at, v)}
}

func (d *day) weightToday() float64 {
	yearDay := float64(d.date.At(time.UTC).YearDay())
	return d.weightKG + 0.8*math.Cos(2*math.Pi*yearDay/365) + 0.4*dice(d.user, "weight", d.date).NormFloat64()
}

func (d *day) pressure(r *healthdata.Resource) []healthdata.Sample {
	g := dice(d.user, "pressure", d.date)
	var out []healthdata.Sample
	for _, minute := range []int{450, 1260} {
		if g.IntN(2) == 0 {
			continue
		}
		s := d.sample(r, d.at(minute+g.IntN(30)), 0)
		systolic := math.Round(d.systolic + 6*g.NormFloat64())
		diastolic := math.Round(0.65*systolic + 3*g.NormFloat64())
		s.Value, s.Systolic, s.Diastolic = nil, &systolic, &diastolic
		out = append(out, s)
	}
	return out
}

// cholesterol returns the four values of a blood draw. There is one on about one of 60 days.
func (d *day) cholesterol(r *healthdata.Resource) []healthdata.Sample {
	g := dice(d.user, "cholesterol", d.date)
	if g.IntN(60) != 0 {
		return nil
	}
	ldl, hdl, trig := 2.9+0.3*g.NormFloat64(), 1.4+0.15*g.NormFloat64(), 1.2+0.3*g.NormFloat64()
	values := map[string]float64{
		"cholesterol/ldl": ldl, "cholesterol/hdl": hdl, "cholesterol/triglycerides": trig,
		"cholesterol/total": ldl + hdl + trig/2.2, // Friedewald's sum, in mmol/L
	}
	var out []healthdata.Sample
	for _, t := range r.Types {
		s := d.sample(r, d.at(540), round(clamp(values[t], 0.3, 12), 2))
		s.Type = &t
		out = append(out, s)
	}
	return out
}

func (d *day) carbohydrates(r *healthdata.Resource) []healthdata.Sample {
	var out []healthdata.Sample
	for _, m := range d.meals {
		out = append(out, d.interval(r, d.at(m.minute), 20*time.Minute, round(m.carbs, 0)))
	}
	return out
}

func (d *day) notes(r *healthdata.Resource) []healthdata.Sample {
	g := dice(d.user, "note", d.date)
	texts := []string{"slept badly", "long walk", "tired", "good day", "headache in the evening"}
	if g.IntN(4) != 0 {
		return nil
	}
	s := d.interval(r, d.at(1200+g.IntN(120)), 0, 0)
	s.Value, s.Tags = healthdata.Text(texts[g.IntN(len(texts))]), []string{"unspecified"}
	return []healthdata.Sample{s}
}

// voltage returns half a minute of one ECG lead, in mV at 128 Hz. There is one on about one of ten days.
func (d *day) voltage(r *healthdata.Resource) []healthdata.Sample {
	g := dice(d.user, "ecg", d.date)
	if g.IntN(10) != 0 {
		return nil
	}
	const hertz, seconds = 128, 30
	lead := "lead_1"
	beat := hertz * 60 / d.restingBPM
	out := make([]healthdata.Sample, hertz*seconds)
	for i := range out {
		phase := math.Mod(float64(i), beat) / beat
		// The P, QRS and T waves are bell curves over the phase of the beat.
		v := 0.12*bell(phase, 0.2, 0.025) + 1.1*bell(phase, 0.35, 0.008) - 0.2*bell(phase, 0.37, 0.008) + 0.25*bell(phase, 0.6, 0.04)
		out[i] = d.sample(r, d.at(1230).Add(time.Duration(i)*time.Second/hertz), round(v+0.01*g.NormFloat64(), 3))
		out[i].Type = &lead
	}
	return out
}

func bell(x, at, width float64) float64 { return math.Exp(-(x - at) * (x - at) / (2 * width * width)) }

func (d *day) workoutSamples(r *healthdata.Resource) []healthdata.Sample {
	t := d.training
	if t == nil {
		return nil
	}
	length := time.Duration(t.minutes) * time.Minute
	switch r.Slug {
	case "workout_distance":
		if t.speed == 0 {
			return nil
		}
		return []healthdata.Sample{d.interval(r, d.at(t.from), length, round(t.speed*length.Seconds(), 0))}
	case "workout_swimming_stroke":
		if t.sport != swimming {
			return nil
		}
		return []healthdata.Sample{d.interval(r, d.at(t.from), length, float64(28*t.minutes))}
	}
	s := d.interval(r, d.at(t.from), length, float64(t.minutes))
	s.Intensity = new("medium")
	return []healthdata.Sample{s}
}

func (d *day) hypnogram(r *healthdata.Resource) []healthdata.Sample {
	var out []healthdata.Sample
	for _, s := range d.night.stages {
		out = append(out, d.interval(r, s.from, s.to.Sub(s.from), float64(s.stage)))
	}
	return out
}

// rare returns the samples of a resource in rarities.
func (d *day) rare(r *healthdata.Resource) []healthdata.Sample {
	what := rarities[r.Slug]
	g := dice(d.user, r.Slug, d.date)
	n := int(what.perDay)
	if g.Float64() < what.perDay-float64(n) {
		n++
	}
	at := int(what.hour * 60)
	if n > 1 {
		at = 420
	}
	// An occasional measurement is not 0, and a count is at least one.
	least := what.mean / 4
	if r.Unit == "count" {
		least = math.Max(1, least)
	}
	var out []healthdata.Sample
	for range n {
		v := round(math.Max(least, what.mean+what.sd*g.NormFloat64()), what.decimals)
		if r.Slug == "body_temperature_delta" {
			v = round(what.sd*g.NormFloat64(), what.decimals)
		}
		s := d.sample(r, d.at(at), v)
		if r.Shape != healthdata.Discrete {
			s = d.interval(r, d.at(at), time.Duration(min(what.minutes, d.minutes()-at))*time.Minute, v)
		}
		d.setRequired(r, g, &s)
		out = append(out, s)
		at += 1 + (minutesADay-480)/(n+1)/2 + g.IntN(max(1, (minutesADay-480)/(n+1)/2))
	}
	return out
}

// setRequired sets the fields that samples of some resources require, such as the type or the sensor location.
func (d *day) setRequired(r *healthdata.Resource, g *rand.Rand, s *healthdata.Sample) {
	pick := func(of ...string) *string { return &of[g.IntN(len(of))] }
	switch r.Slug {
	case "heart_rate_alert":
		s.Type = pick(r.Types...)
	case "insulin_injection":
		s.Type = pick(r.Types...)
		mode, form, purpose := "bolus", "standard", "meal"
		s.DeliveryMode, s.DeliveryForm, s.BolusPurpose = &mode, &form, &purpose
	case "sleep_breathing_disturbance":
		s.Type = pick(r.Types...)
	case "ige":
		s.Type = pick("baha_grass", "birch", "cat_dander")
	case "igg":
		s.Type = pick("dairy", "egg", "wheat")
	case "body_temperature":
		s.SensorLocation = pick("ear", "mouth", "forehead")
	case "body_temperature_delta":
		s.SensorLocation = pick("wrist", "finger")
	}
}
