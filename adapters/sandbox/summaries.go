package sandbox

import (
	"math"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// summaries sums the day up.
func (d *day) summaries(resource string) []healthdata.Summary {
	switch resource {
	case "activity":
		return []healthdata.Summary{d.activity()}
	case "sleep":
		return []healthdata.Summary{d.sleepSummary()}
	case "sleep_cycle":
		return []healthdata.Summary{d.sleepCycle()}
	case "body":
		return d.body()
	case "workouts":
		return d.workout()
	case "profile":
		return []healthdata.Summary{d.profile()}
	case "meal":
		return d.mealSummaries()
	case "menstrual_cycle":
		return d.cycle()
	case "electrocardiogram":
		return d.electrocardiogram()
	default:
		return nil
	}
}

func ptr[T any](v T) *T { return &v }

func (d *day) activity() *healthdata.Activity {
	a := &healthdata.Activity{CalendarDate: d.date, TimeZone: ptr(d.loc.String())}
	var steps, metres, active, low, medium, high, sum float64
	lowest, highest := math.Inf(1), 0.0
	for m := range d.minutes() {
		steps += d.steps[m]
		metres += d.metres(m)
		active += d.kcalActive(m)
		switch d.doing[m] {
		case walking:
			medium++
		case training:
			high++
		case resting:
			low++
		}
		sum += d.heartRate[m]
		lowest, highest = math.Min(lowest, d.heartRate[m]), math.Max(highest, d.heartRate[m])
	}
	a.Steps = ptr(int64(steps))
	a.Distance = ptr(round(metres, 1))
	a.CaloriesActive = ptr(round(active, 1))
	a.CaloriesTotal = ptr(round(active+d.kcalBasal()*float64(d.minutes()), 1))
	a.Low, a.Medium, a.High = &low, &medium, &high
	a.HeartRate = &healthdata.ActivityHeartRate{
		AvgBPM: ptr(round(sum/float64(d.minutes()), 1)), MinBPM: &lowest, MaxBPM: &highest, RestingBPM: ptr(round(d.restingBPM, 0)),
	}
	return a
}

func (d *day) sleepSummary() *healthdata.Sleep {
	s := &healthdata.Sleep{
		BedtimeStart: healthlab.At(d.night.from), BedtimeStop: healthlab.At(d.night.to), CalendarDate: d.date,
		Latency: ptr(int64(d.night.stages[0].to.Sub(d.night.from) / time.Second)), State: ptr("confirmed"),
		AverageHRV: ptr(round(d.night.hrv, 0)), RespiratoryRate: ptr(round(11+d.restingBPM/20, 1)),
		HRResting: ptr(int64(d.restingBPM)), HRLowest: ptr(int64(d.restingBPM - 5)), HRAverage: ptr(int64(d.restingBPM - 1)),
	}
	for _, of := range d.night.stages {
		s.AddStage(of.stage, int64(of.to.Sub(of.from)/time.Second))
	}
	total := float64(*s.Light + *s.REM + *s.Deep)
	s.Score = ptr(int64(clamp(60*total/(d.sleepHours*3600)+30*float64(*s.Deep+*s.REM)/(0.45*total)+8, 20, 100)))
	_, offset := d.night.to.In(d.loc).Zone()
	s.TimezoneOffset = &offset
	return s
}

func (d *day) sleepCycle() *healthdata.SleepCycle {
	c := &healthdata.SleepCycle{
		SessionStart: healthlab.At(d.night.from), SessionEnd: healthlab.At(d.night.to), TimeZone: ptr(d.loc.String()),
	}
	for _, s := range d.night.stages {
		c.StageStartOffsetSecond = append(c.StageStartOffsetSecond, int64(s.from.Sub(d.night.from)/time.Second))
		c.StageEndOffsetSecond = append(c.StageEndOffsetSecond, int64(s.to.Sub(d.night.from)/time.Second))
		c.StageType = append(c.StageType, s.stage)
	}
	return c
}

// body is what the scale says, on the days on which the person steps on it.
func (d *day) body() []healthdata.Summary {
	samples := d.scale(healthdata.ResourceBySlug("weight"))
	if len(samples) == 0 {
		return nil
	}
	value := func(slug string) *float64 { return &d.scale(healthdata.ResourceBySlug(slug))[0].Value.Number }
	return []healthdata.Summary{&healthdata.Body{
		MeasuredAt: samples[0].Timestamp, CalendarDate: d.date, Weight: value("weight"), Fat: value("fat"),
		BodyMassIndex: value("body_mass_index"), LeanBodyMassKilogram: value("lean_body_mass"),
	}}
}

func (d *day) workout() []healthdata.Summary {
	t := d.training
	if t == nil {
		return nil
	}
	var sum, highest, active, steps float64
	bpm, seconds := make([]float64, t.minutes), make([]float64, t.minutes)
	for i := range t.minutes {
		m := min(t.from+i, d.minutes()-1)
		bpm[i], seconds[i] = d.heartRate[m], 60
		sum += d.heartRate[m]
		highest = math.Max(highest, d.heartRate[m])
		active += d.kcalActive(m)
		steps += d.steps[m]
	}
	length := time.Duration(t.minutes) * time.Minute
	from := d.at(t.from)
	_, offset := from.In(d.loc).Zone()
	w := &healthdata.Workout{
		Title: ptr("Evening " + t.sport), TimezoneOffset: &offset, CalendarDate: d.date,
		TimeStart: healthlab.At(from), TimeEnd: healthlab.At(from.Add(length)),
		AverageHR: ptr(int64(sum / float64(t.minutes))), MaxHR: ptr(int64(highest)),
		Distance: ptr(round(t.speed*length.Seconds(), 0)), Calories: ptr(round(active, 0)),
		Sport: healthdata.SportOf(t.sport), MovingTime: ptr(int64(length / time.Second)),
		AverageSpeed: ptr(round(t.speed, 2)), HRZones: healthdata.HeartRateZones(bpm, seconds, 220-d.age),
	}
	w.ExternalID = WorkoutID(d.user, d.date).String()
	if t.sport == running {
		w.Steps = ptr(int64(steps))
	}
	return []healthdata.Summary{w}
}

// stream is the recording of the workout, every five seconds.
func (d *day) stream() *healthdata.WorkoutStream {
	t := d.training
	if t == nil {
		return nil
	}
	g := dice(d.user, "stream", d.date)
	s := &healthdata.WorkoutStream{}
	// A circle around an invented place in the middle of an ocean.
	const lat0, lng0, radius = 12.0, -38.0, 0.004
	// Speeds that vary, and add up to what the workout says.
	const every = 5
	speeds := make([]float64, t.minutes*60/every)
	sum := 0.0
	for i := range speeds {
		speeds[i] = math.Max(0.2, 1+0.07*g.NormFloat64())
		sum += speeds[i]
	}
	distance := 0.0
	for i, share := range speeds {
		sec := i * every
		m := min(t.from+sec/60, d.minutes()-1)
		speed := t.speed * share * float64(len(speeds)) / sum
		distance += every * speed
		turn := distance / 2500 * 2 * math.Pi
		s.Time = append(s.Time, d.at(t.from).Unix()+int64(sec))
		s.Heartrate = append(s.Heartrate, ptr(int64(d.heartRate[m]+g.NormFloat64())))
		s.VelocitySmooth = append(s.VelocitySmooth, ptr(round(speed, 2)))
		s.Distance = append(s.Distance, ptr(round(distance, 1)))
		s.Altitude = append(s.Altitude, ptr(round(40+8*math.Sin(turn), 1)))
		s.Lat = append(s.Lat, ptr(round(lat0+radius*math.Sin(turn), 6)))
		s.Lng = append(s.Lng, ptr(round(lng0+radius*math.Cos(turn), 6)))
	}
	return s
}

func (d *day) profile() *healthdata.Profile {
	sex := "male"
	if d.female {
		sex = "female"
	}
	birth := healthlab.Date{Year: 2026 - d.age, Month: time.Month(1 + d.id[0]%12), Day: 1 + int(d.id[1]%28)}
	return &healthdata.Profile{Height: ptr(int64(math.Round(d.heightCM))), BirthDate: &birth, Gender: &sex, Sex: &sex}
}

func (d *day) mealSummaries() []healthdata.Summary {
	var out []healthdata.Summary
	for _, m := range d.meals {
		protein, fat := round((m.kcal-4*m.carbs)*0.4/4, 1), round((m.kcal-4*m.carbs)*0.6/9, 1)
		out = append(out, &healthdata.Meal{
			Timestamp: healthlab.At(d.at(m.minute)), CalendarDate: d.date, Name: m.name,
			Energy: &healthdata.Energy{Unit: "kcal", Value: round(m.kcal, 0)},
			Macros: &healthdata.Macros{Carbs: ptr(round(m.carbs, 1)), Protein: &protein, Fats: &healthdata.Fats{Total: &fat}},
		})
	}
	return out
}

// cycle begins every 28 days, for those who have one.
func (d *day) cycle() []healthdata.Summary {
	if !d.female || d.age > 50 || (int(d.date.At(time.UTC).Unix()/86400)+int(d.id[2]))%28 != 0 {
		return nil
	}
	c := &healthdata.MenstrualCycle{PeriodStart: d.date, PeriodEnd: ptr(d.date.AddDays(4)), CycleEnd: ptr(d.date.AddDays(27))}
	for i, flow := range []string{"light", "heavy", "medium", "medium", "light"} {
		c.MenstrualFlow = append(c.MenstrualFlow, healthdata.FlowDay{Date: d.date.AddDays(i), Flow: flow})
	}
	return []healthdata.Summary{c}
}

func (d *day) electrocardiogram() []healthdata.Summary {
	volts := d.voltage(healthdata.ResourceBySlug("electrocardiogram_voltage"))
	if len(volts) == 0 {
		return nil
	}
	return []healthdata.Summary{&healthdata.Electrocardiogram{
		SessionStart: volts[0].Timestamp, SessionEnd: healthlab.At(volts[0].Timestamp.Add(30 * time.Second)),
		VoltageSampleCount: int64(len(volts)), HeartRateMean: ptr(int64(d.restingBPM)), SamplingFrequencyHz: ptr(128.0),
		Classification: ptr("sinus_rhythm"), TimeZone: ptr(d.loc.String()),
	}}
}
