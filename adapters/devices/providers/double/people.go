package double

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
)

// Person is an invented person with the data that devices recorded. Times are in UTC.
type Person struct {
	// ID is the id of the account at the provider, and Number a numeric form of it.
	ID     string
	Number int
	Name   string
	// Offset is the constant UTC offset of the person, in seconds east.
	Offset   int
	Nights   []Night
	Days     []Day
	Workouts []Workout
	Glucose  []Reading
	Events   []Event
}

// Night is the main sleep of a day.
type Night struct {
	ID         string
	Number     int
	Start, End time.Time
	// Stages has a character for every 5 minutes: 1 deep, 2 light, 3 REM, 4 awake.
	Stages string
	// HR and HRV have one value for every 5 minutes; nil means not measured.
	HR, HRV []*float64
	// RespiratoryRate is breaths a minute, SpO2 percent, SkinTemperature and
	// TemperatureDelta °C.
	RespiratoryRate, SpO2, SkinTemperature, TemperatureDelta float64
	Score, Recovery, RestingHR, Efficiency                   int
	AverageHRV                                               float64
}

// seconds returns how many seconds a stage lasted.
func (n *Night) seconds(stage byte) int64 {
	total := int64(0)
	for i := range len(n.Stages) {
		if n.Stages[i] == stage {
			total += 300
		}
	}
	return total
}

// Day holds the totals of a local day.
type Day struct {
	// Date is the midnight at which the local day begins.
	Date                time.Time
	Steps               int
	Active, Total       float64 // kcal
	Distance            float64 // m
	Low, Medium, High   int     // seconds
	AverageHR, HighestR int
}

// Workout is a session of sport.
type Workout struct {
	ID             string
	Start, End     time.Time
	Sport          string
	KCal, Distance float64
	AverageHR, Max int
	Climb          float64
	Zones          [6]int64 // seconds
}

// Reading is a glucose in mg/dL.
type Reading struct {
	ID    string
	At    time.Time
	Value int
}

// Event is an entry that a person typed.
type Event struct {
	ID string
	At time.Time
	// Kind is carbs or insulin; the double of Dexcom adds exercise and health. SubType is a subtype of Dexcom.
	Kind, SubType string
	Value         float64
	Deleted       bool
}

// NewPerson returns a person with data of the given number of days before until. Equal arguments give equal people.
func NewPerson(number int, until time.Time, days int) *Person {
	r := rand.New(rand.NewPCG(uint64(number), 7))
	p := &Person{Number: 10_000 + number, Name: fmt.Sprint("Test Person ", number), Offset: 3600} // no daylight saving time
	p.ID = fmt.Sprint(p.Number)
	id := func(what string, n int) string {
		return uuid.NewSHA1(uuid.NameSpaceOID, fmt.Appendf(nil, "%s %s %d", p.ID, what, n)).String()
	}
	noon := until.UTC().Truncate(24 * time.Hour)
	rest := 52 + r.Float64()*12
	for d := days; d > 0; d-- {
		midnight := noon.AddDate(0, 0, -d).Add(-time.Duration(p.Offset) * time.Second)
		p.day(r, midnight, rest)
		p.night(r, midnight, rest, id("night", d), d)
		if r.Float64() < 0.4 {
			p.workout(r, midnight, rest, id("workout", d))
		}
		p.glucose(r, midnight, d, id)
	}
	return p
}

func round(v float64, digits int) float64 {
	f := math.Pow(10, float64(digits))
	return math.Round(v*f) / f
}

func (p *Person) day(r *rand.Rand, midnight time.Time, rest float64) {
	steps := 3000 + r.IntN(11_000)
	d := Day{
		Date: midnight, Steps: steps, Active: round(150+float64(steps)*0.035, 0), Distance: round(float64(steps)*0.74, 0),
		Low: 600 * (4 + r.IntN(12)), Medium: 60 * r.IntN(90), High: 60 * r.IntN(40),
		AverageHR: int(rest) + 14 + r.IntN(8), HighestR: 120 + r.IntN(60),
	}
	d.Total = d.Active + 1500 + float64(r.IntN(200))
	p.Days = append(p.Days, d)
}

// night adds the sleep that ends in the morning of the day that begins at midnight. rest is the resting heart rate.
func (p *Person) night(r *rand.Rand, midnight time.Time, rest float64, id string, number int) {
	n := Night{
		ID: id, Number: 1_000_000 + p.Number*1000 + number, RespiratoryRate: round(13+r.Float64()*4, 1), SpO2: round(95+r.Float64()*4, 1),
		SkinTemperature: round(33+r.Float64()*2, 2), TemperatureDelta: round(r.NormFloat64()*0.3, 2),
		Recovery: 20 + r.IntN(79), RestingHR: int(rest), AverageHRV: float64(25 + r.IntN(80)), Score: 50 + r.IntN(50),
	}
	n.Start = midnight.Add(time.Duration(-90+r.IntN(150)) * time.Minute)
	stages := []byte{'4', '4'}
	for cycle := range 4 + r.IntN(2) {
		for _, part := range []struct {
			stage byte
			n     int
		}{{'2', 3 + r.IntN(4)}, {'1', 6 - cycle + r.IntN(2)}, {'2', 3 + r.IntN(3)}, {'3', 1 + cycle + r.IntN(3)}, {'4', r.IntN(2)}} {
			for range part.n {
				stages = append(stages, part.stage)
			}
		}
	}
	n.Stages = string(stages)
	n.End = n.Start.Add(time.Duration(len(stages)) * 5 * time.Minute)
	n.Efficiency = int(100 * (int64(300*len(stages)) - n.seconds('4')) / int64(300*len(stages)))
	for range stages {
		hr, hrv := round(rest+r.Float64()*9, 0), max(round(n.AverageHRV+r.NormFloat64()*9, 0), 8)
		n.HR, n.HRV = append(n.HR, &hr), append(n.HRV, &hrv)
		if r.IntN(25) == 0 {
			n.HR[len(n.HR)-1], n.HRV[len(n.HRV)-1] = nil, nil
		}
	}
	p.Nights = append(p.Nights, n)
}

func (p *Person) workout(r *rand.Rand, midnight time.Time, rest float64, id string) {
	sports := []string{"running", "cycling", "yoga"}
	minutes := 25 + r.IntN(60)
	w := Workout{
		ID: id, Start: midnight.Add(time.Duration(16*60+r.IntN(180)) * time.Minute), Sport: sports[r.IntN(len(sports))],
		KCal: float64(minutes * (6 + r.IntN(5))), AverageHR: int(rest) + 60 + r.IntN(25), Max: int(rest) + 95 + r.IntN(25),
	}
	w.End = w.Start.Add(time.Duration(minutes) * time.Minute)
	if w.Sport != "yoga" {
		w.Distance, w.Climb = float64(minutes*(160+r.IntN(250))), float64(r.IntN(300))
	}
	left := int64(minutes * 60)
	for z := range 5 {
		w.Zones[z] = left * int64(r.IntN(40)) / 100
		left -= w.Zones[z]
	}
	w.Zones[5] = left
	p.Workouts = append(p.Workouts, w)
}

// glucose adds the glucose readings (one every 15 minutes), meals and injections of a day. One meal of every tenth day
// is deleted. d is the number of days before the end of the data.
func (p *Person) glucose(r *rand.Rand, midnight time.Time, d int, id func(string, int) string) {
	level := 95.0
	for i := range 96 {
		at := midnight.Add(time.Duration(i)*15*time.Minute + time.Duration(p.Number%60)*time.Second)
		level += (100-level)*0.1 + r.NormFloat64()*6
		if i == 32 || i == 50 || i == 76 { // breakfast, lunch, dinner
			level += 50
			n := d*10 + i
			p.Events = append(p.Events,
				Event{ID: id("meal", n), At: at.Add(-7 * time.Minute), Kind: "carbs", Value: float64(20 + r.IntN(60)), Deleted: d%10 == 0 && i == 50},
				Event{ID: id("bolus", n), At: at.Add(-9 * time.Minute), Kind: "insulin", SubType: "fastActing", Value: float64(2 + r.IntN(8))})
		}
		p.Glucose = append(p.Glucose, Reading{ID: id("egv", d*100+i), At: at, Value: int(min(max(level, 40), 400))})
	}
	p.Events = append(p.Events, Event{ID: id("basal", d), At: midnight.Add(22 * time.Hour), Kind: "insulin", SubType: "longActing", Value: 14})
}
