package sandbox

import (
	"math"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// activity is what a person does during one minute.
type activity uint8

const (
	resting activity = iota
	asleep
	walking
	training
)

// minutesADay is the number of minutes of a day on which the clocks do not change.
const minutesADay = 24 * 60

// speeds maps each sport that covers a distance to its speed, in m/s.
var speeds = map[string]float64{running: 2.6, cycling: 6.8, swimming: 0.9, walk: 1.5}

// cadences maps each sport that counts steps to its steps per minute.
var cadences = map[string]float64{running: 160, walk: 112}

// day is one local day of a person, minute by minute from midnight. All sandbox data is derived from it, so that steps,
// heart rate, sleep and sums agree.
type day struct {
	person
	user  healthlab.UserID
	date  healthlab.Date
	loc   *time.Location
	start time.Time // local midnight
	by    instrument

	// One entry per minute: 1440, or as many as the day has when the clocks change.
	doing     []activity
	stage     []healthdata.SleepStage // the stage of each minute of the day; 0 outside of the nights
	steps     []float64
	heartRate []float64
	glucose   []float64
	off       []bool // whether the device is not worn

	night, nextNight night // the nights that end and that begin on the day
	training         *session
	meals            []meal
}

// night is the sleep of one night, which ends on a given day.
type night struct {
	from, to time.Time
	stages   []stretch
	hrv      float64
}

type stretch struct {
	from, to time.Time
	stage    healthdata.SleepStage
}

// session is the workout of a day. from is the minute of the day at which it starts.
type session struct {
	from, minutes int
	sport         string
	speed         float64 // m/s; 0 without a distance
}

type meal struct {
	minute int
	name   string
	carbs  float64 // in grams
	kcal   float64
}

// dayOf invents a day, as the devices of a provider measure it. The same user, day and provider always give the same
// result, in every process.
func dayOf(user healthlab.UserID, date healthlab.Date, loc *time.Location, provider string) *day {
	d := &day{person: personOf(user), user: user, date: date, loc: loc, start: date.At(loc), by: instrumentOf(user, provider)}
	minutes := int(date.AddDays(1).At(loc).Sub(d.start) / time.Minute)
	d.doing, d.stage = make([]activity, minutes), make([]healthdata.SleepStage, minutes)
	d.steps, d.heartRate, d.glucose = make([]float64, minutes), make([]float64, minutes), make([]float64, minutes)
	d.addSleep()
	d.addMovement()
	d.addMeals()
	d.addHeartRate()
	d.applyErrors()
	return d
}

func (d *day) before() *day { return dayOf(d.user, d.date.AddDays(-1), d.loc, d.by.provider) }

func (d *day) minutes() int { return len(d.doing) }

func (d *day) at(minute int) time.Time { return d.start.Add(time.Duration(minute) * time.Minute) }

// nightOf invents the night that ends on a date.
func nightOf(p *person, user healthlab.UserID, date healthlab.Date, loc *time.Location) night {
	r := dice(user, "night", date)
	wake := p.wakeMinute + 20*r.NormFloat64()
	if wd := date.At(time.UTC).Weekday(); wd == time.Saturday || wd == time.Sunday {
		wake += 45
	}
	hours := clamp(p.sleepHours+0.6*r.NormFloat64(), 4, 10)
	to := date.At(loc).Add(time.Duration(wake) * time.Minute)
	n := night{to: to, from: to.Add(-time.Duration(hours*60) * time.Minute), hrv: clamp(p.hrv+6*r.NormFloat64(), 10, 160)}
	// A night has cycles of about 90 minutes: light, deep (shorter in each cycle), light, REM (longer in each cycle),
	// with short awakenings between.
	at := n.from
	add := func(minutes float64, s healthdata.SleepStage) {
		to := at.Add(time.Duration(math.Max(1, minutes)) * time.Minute)
		if to.After(n.to) {
			to = n.to
		}
		if to.After(at) {
			n.stages = append(n.stages, stretch{at, to, s})
			at = to
		}
	}
	add(4+8*r.Float64(), healthdata.SleepStageAwake)
	for cycle := 0; at.Before(n.to); cycle++ {
		add(18+10*r.Float64(), healthdata.SleepStageLight)
		add(math.Max(2, 38-9*float64(cycle)+6*r.NormFloat64()), healthdata.SleepStageDeep)
		add(14+8*r.Float64(), healthdata.SleepStageLight)
		add(8+6*float64(cycle)+4*r.Float64(), healthdata.SleepStageREM)
		if r.IntN(3) == 0 {
			add(1+4*r.Float64(), healthdata.SleepStageAwake)
		}
	}
	return n
}

// addSleep adds to the day the night that ends on it and the one that begins on it.
func (d *day) addSleep() {
	d.night, d.nextNight = nightOf(&d.person, d.user, d.date, d.loc), nightOf(&d.person, d.user, d.date.AddDays(1), d.loc)
	for _, n := range []night{d.night, d.nextNight} {
		for _, s := range n.stages {
			from, to := int(s.from.Sub(d.start)/time.Minute), int(s.to.Sub(d.start)/time.Minute)
			for m := max(0, from); m < min(d.minutes(), to); m++ {
				d.doing[m], d.stage[m] = asleep, s.stage
			}
		}
	}
}

// addMovement invents the workout and the walks of the day, and counts the steps of each minute.
func (d *day) addMovement() {
	r := dice(d.user, "move", d.date)
	goal := clamp(d.stepGoal*(0.85+0.3*r.Float64())+900*r.NormFloat64(), 800, 30000)
	if r.Float64() < d.sporty {
		s := &session{from: 1050 + r.IntN(90), minutes: 25 + r.IntN(40), sport: d.sport}
		if others := []string{running, cycling, swimming, walk, strength}; r.IntN(2) == 0 {
			s.sport = others[r.IntN(len(others))]
		}
		s.speed = speeds[s.sport] * (1 + 0.11*r.NormFloat64())
		d.training = s
		for m := s.from; m < min(d.minutes(), s.from+s.minutes); m++ {
			d.doing[m] = training
			if steps := cadences[s.sport]; steps > 0 {
				d.steps[m] = steps + 6*r.NormFloat64()
				goal -= d.steps[m]
			}
		}
	}
	for goal > 0 {
		from, minutes := 360+r.IntN(1000), 3+r.IntN(14)
		for m := from; m < from+minutes && goal > 0; m++ {
			if d.doing[m] != resting {
				continue
			}
			d.doing[m] = walking
			d.steps[m] = clamp(95+12*r.NormFloat64(), 40, 130)
			goal -= d.steps[m]
		}
		goal -= 5 // ends the loop if the person does not reach the goal
	}
	for m := range d.steps {
		d.steps[m] = math.Round(d.steps[m])
	}
}

// addMeals invents the meals of the day, and the glucose of each minute. After a meal the glucose rises, peaks after
// some 45 minutes and is back after about three hours.
func (d *day) addMeals() {
	r := dice(d.user, "eat", d.date)
	for i, name := range []string{"Breakfast", "Lunch", "Dinner"} {
		m := meal{minute: []int{480, 750, 1140}[i] + int(25*r.NormFloat64()), name: name}
		m.carbs = clamp([]float64{45, 65, 70}[i]+15*r.NormFloat64(), 10, 140)
		m.kcal = m.carbs*4 + clamp(250+90*r.NormFloat64(), 60, 700)
		d.meals = append(d.meals, m)
	}
	noise := 0.0
	for m := range d.glucose {
		v := d.fasting
		for _, meal := range d.meals {
			if t := float64(m-meal.minute) / 45; t > 0 {
				peak := meal.carbs * 0.035
				if d.diabetic {
					peak *= 2
				}
				v += peak * t * math.Exp(1-t)
			}
		}
		noise = 0.9*noise + 0.06*r.NormFloat64()
		d.glucose[m] = clamp(v+noise, 2.8, 22)
	}
}

// addHeartRate computes the heart rate of each minute from the activity.
func (d *day) addHeartRate() {
	r := dice(d.user, "beat", d.date)
	top := 220 - float64(d.age)
	rate := d.restingBPM
	for m := range d.heartRate {
		want := d.restingBPM + 14
		switch d.doing[m] {
		case asleep:
			want = d.restingBPM - 2
			switch d.stage[m] {
			case healthdata.SleepStageDeep:
				want -= 4
			case healthdata.SleepStageREM:
				want += 4
			case healthdata.SleepStageAwake:
				want += 9
			}
		case walking:
			want = d.restingBPM + 38
		case training:
			want = d.restingBPM + 0.66*(top-d.restingBPM)
		}
		rate += 0.35*(want-rate) + 1.6*r.NormFloat64()
		d.heartRate[m] = math.Round(clamp(rate, 36, top))
	}
}
