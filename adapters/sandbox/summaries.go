package sandbox

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// summaries returns the summaries of a resource that belong to the day.
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
	var low, medium, high float64
	for m := range d.minutes() {
		switch d.doing[m] {
		case walking:
			medium++
		case training:
			high++
		case resting:
			if !d.off[m] {
				low++
			}
		}
	}
	total := func(resource string) (sum float64) {
		for _, s := range d.samples(healthdata.ResourceBySlug(resource)) {
			sum += s.Value.Number
		}
		return sum
	}
	a.Steps, a.FloorsClimbed = ptr(int64(total("steps"))), ptr(int64(total("floors_climbed")))
	a.Distance = ptr(round(total("distance"), 1))
	a.CaloriesActive = ptr(round(total("calories_active"), 1))
	a.CaloriesTotal = ptr(round(total("calories_active")+total("calories_basal"), 1))
	a.Low, a.Medium, a.High = &low, &medium, &high
	bpm := d.readings(1, (*day).beats, d.start, d.at(d.minutes()))
	a.HeartRate = &healthdata.ActivityHeartRate{
		AvgBPM: ptr(round(mean(bpm), 1)), MinBPM: ptr(slices.Min(bpm)), MaxBPM: ptr(slices.Max(bpm)), RestingBPM: ptr(round(lowestMean(bpm, restingMinutes), 0)),
	}
	return a
}

// readings returns the values of every so many minutes of the day that lie in the time range from (inclusive) to to
// (exclusive). It omits minutes for which value returns false.
func (d *day) readings(every int, value func(*day, int) (float64, bool), from, to time.Time) []float64 {
	var out []float64
	for m := 0; m < d.minutes(); m += every {
		if at := d.at(m); at.Before(from) || !at.Before(to) {
			continue
		}
		if v, ok := value(d, m); ok {
			out = append(out, v)
		}
	}
	return out
}

// The lowest heart rate of a night is the lowest mean over five minutes, and the resting heart rate the lowest mean
// over thirty.
const lowestMinutes, restingMinutes = 5, 30

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// lowestMean returns the lowest mean of n consecutive values.
func lowestMean(values []float64, n int) float64 {
	lowest := mean(values[:n])
	for i := range values[n:] {
		lowest = math.Min(lowest, mean(values[i+1:i+1+n]))
	}
	return lowest
}

func (d *day) sleepSummary() *healthdata.Sleep {
	from, to := d.by.reads(healthdata.SourceWatch, d.night.from), d.by.reads(healthdata.SourceWatch, d.night.to)
	before := d.before()
	night := func(every int, value func(*day, int) (float64, bool)) []float64 {
		return append(before.readings(every, value, d.night.from, d.night.to), d.readings(every, value, d.night.from, d.night.to)...)
	}
	bpm := night(1, (*day).beats)
	beats := func(v float64) *int64 { return ptr(int64(math.Round(v))) }
	s := &healthdata.Sleep{
		BedtimeStart: healthlab.At(from), BedtimeStop: healthlab.At(to), CalendarDate: d.date,
		Latency: ptr(int64(d.night.stages[0].to.Sub(d.night.from) / time.Second)), State: ptr("confirmed"),
		AverageHRV:      ptr(round(mean(night(5, (*day).variability)), 0)),
		RespiratoryRate: ptr(round(mean(night(10, (*day).breaths)), 1)),
		HRResting:       beats(lowestMean(bpm, restingMinutes)), HRLowest: beats(lowestMean(bpm, lowestMinutes)), HRAverage: beats(mean(bpm)),
	}
	for _, of := range d.night.stages {
		s.AddStage(of.stage, int64(of.to.Sub(of.from)/time.Second))
	}
	total := float64(*s.Light + *s.REM + *s.Deep)
	s.Score = ptr(int64(clamp(60*total/(d.sleepHours*3600)+30*float64(*s.Deep+*s.REM)/(0.45*total)+8, 20, 100)))
	_, offset := to.In(d.loc).Zone()
	s.TimezoneOffset = &offset
	return s
}

func (d *day) sleepCycle() *healthdata.SleepCycle {
	c := &healthdata.SleepCycle{
		SessionStart: healthlab.At(d.by.reads(healthdata.SourceWatch, d.night.from)),
		SessionEnd:   healthlab.At(d.by.reads(healthdata.SourceWatch, d.night.to)), TimeZone: ptr(d.loc.String()),
	}
	for _, s := range d.night.stages {
		c.StageStartOffsetSecond = append(c.StageStartOffsetSecond, int64(s.from.Sub(d.night.from)/time.Second))
		c.StageEndOffsetSecond = append(c.StageEndOffsetSecond, int64(s.to.Sub(d.night.from)/time.Second))
		c.StageType = append(c.StageType, s.stage)
	}
	return c
}

// body returns the body measurement of the day; nothing if the person does not use the scale.
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
	var active, steps float64
	bpm, seconds := make([]float64, t.minutes), make([]float64, t.minutes)
	for i := range t.minutes {
		m := min(t.from+i, d.minutes()-1)
		bpm[i], seconds[i] = d.heartRate[m], 60
		active += d.kcalActive(m)
		steps += d.steps[m]
	}
	length := time.Duration(t.minutes) * time.Minute
	from := d.by.reads(healthdata.SourceWatch, d.at(t.from))
	_, offset := from.In(d.loc).Zone()
	w := &healthdata.Workout{
		Title: ptr("Evening " + strings.ReplaceAll(t.sport, "_", " ")), TimezoneOffset: &offset, CalendarDate: d.date,
		TimeStart: healthlab.At(from), TimeEnd: healthlab.At(from.Add(length)),
		AverageHR: ptr(int64(math.Round(mean(bpm)))), MaxHR: ptr(int64(slices.Max(bpm))), Calories: ptr(round(active, 0)),
		Sport: healthdata.SportOf(t.sport), MovingTime: ptr(int64(length / time.Second)), HRZones: healthdata.HeartRateZones(bpm, seconds, 220-d.age),
	}
	w.ExternalID = workoutID(d.user, d.date).String()
	if t.speed > 0 {
		w.Distance, w.AverageSpeed = ptr(round(t.speed*length.Seconds(), 0)), ptr(round(t.speed, 2))
	}
	if cadences[t.sport] > 0 {
		w.Steps = ptr(int64(steps))
	}
	return []healthdata.Summary{w}
}

// stream returns the recorded stream of the day's workout, with a value every five seconds; nil without a workout.
func (d *day) stream() *healthdata.WorkoutStream {
	t := d.training
	if t == nil {
		return nil
	}
	g := dice(d.user, "stream "+d.by.provider, d.date)
	start := d.by.reads(healthdata.SourceWatch, d.at(t.from)).Unix()
	s := &healthdata.WorkoutStream{}
	// The route is a circle around an invented position in an ocean.
	const lat0, lng0, radius = 12.0, -38.0, 0.004
	// Speeds vary, and their sum equals the distance of the workout.
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
		s.Time = append(s.Time, start+int64(sec))
		s.Heartrate = append(s.Heartrate, ptr(int64(d.heartRate[m])))
		if t.speed == 0 {
			continue
		}
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
			Macros: &healthdata.Macros{Carbs: ptr(round(m.carbs, 0)), Protein: &protein, Fats: &healthdata.Fats{Total: &fat}},
		})
	}
	return out
}

// cycle returns the menstrual cycle that starts on the day, if the person has one. A cycle starts every 28 days.
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
		VoltageSampleCount: int64(len(volts)), HeartRateMean: ptr(int64(math.Round(d.restingBPM))), SamplingFrequencyHz: ptr(128.0),
		Classification: ptr("sinus_rhythm"), TimeZone: ptr(d.loc.String()),
	}}
}
