package glucoseprofile

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Unit is the unit of glucose in a profile.
type Unit string

// Units of glucose.
const (
	Millimoles Unit = "mmol/L"
	Milligrams Unit = "mg/dL"
)

// Units returns the units of glucose.
func Units() []Unit { return []Unit{Millimoles, Milligrams} }

// Numbers of days of a profile.
const (
	// DefaultDays is the number of days that the consensus recommends.
	DefaultDays = 14
	// MaxDays is the highest number of days of a profile.
	MaxDays = 90
)

// Quarters is the number of quarter hours of a day.
const Quarters = 96

// Question selects the days and the unit of a profile.
type Question struct {
	// To is the last day, in the person's local time. The profile includes the entire day.
	To healthlab.Date
	// Days is the number of days up to To, at most MaxDays. 0 means DefaultDays.
	Days int
	// Unit is Millimoles by default.
	Unit Unit
}

// Profile is the ambulatory glucose profile of a range of days. Printing or logging it shows no values. Values
// of glucose are in Unit.
type Profile struct {
	healthlab.Private

	// From and To are the first and the last day.
	From healthlab.Date `json:"start_date"`
	To   healthlab.Date `json:"end_date"`
	Unit Unit           `json:"unit"`
	// DaysWithReadings is the number of days with at least one reading, Readings the number of readings.
	DaysWithReadings int   `json:"days_with_readings"`
	Readings         int64 `json:"readings"`
	// Mean is the mean of all readings. GMI, CV and SensorActive are percentages, computed by the functions of
	// package aggregate; nil if unknown.
	Mean         *float64 `json:"mean"`
	GMI          *float64 `json:"gmi_percent"`
	CV           *float64 `json:"cv_percent"`
	SensorActive *float64 `json:"sensor_active_percent"`
	// Bands are the five bands of the consensus, from the lowest.
	Bands []Band `json:"bands"`
	// Clock has the 96 quarter hours of a day, from midnight.
	Clock []Quarter `json:"clock"`
	// Daily are the last days, at most 14, from the earliest. Days without readings are included.
	Daily []Day `json:"daily"`
}

// Band is the share of readings in a band.
type Band struct {
	Name aggregate.Band `json:"name"`
	// Low and High are the limits of the band, as the consensus prints them in the profile's unit; nil if the
	// band has no limit on that side.
	Low     *float64 `json:"low"`
	High    *float64 `json:"high"`
	Percent *float64 `json:"percent"`
}

// Quarter is the distribution of readings in one quarter hour of the day, over all days. It is computed from means of
// five minutes; percentiles are interpolated linearly. All percentiles are nil if no day has a reading.
type Quarter struct {
	// Minute is the start of the quarter, in minutes from midnight.
	Minute int      `json:"minute"`
	P5     *float64 `json:"p5"`
	P25    *float64 `json:"p25"`
	P50    *float64 `json:"p50"`
	P75    *float64 `json:"p75"`
	P95    *float64 `json:"p95"`
}

// Day is one day of a profile.
type Day struct {
	Date healthlab.Date `json:"date"`
	// Means has the means of the 96 quarter hours; nil without a reading.
	Means []*float64 `json:"means"`
}

// Asker runs aggregate queries, as [aggregate.Service] does.
type Asker interface {
	Query(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, req *aggregate.Request) (*aggregate.Result, error)
}

// Printer prints a profile on one page. Implementations are safe for concurrent use.
type Printer interface {
	// PrintProfile returns a PDF file. subject names the person on the page.
	PrintProfile(ctx context.Context, subject string, p *Profile) ([]byte, error)
}

var bands = []aggregate.Band{aggregate.VeryLow, aggregate.Low, aggregate.InTarget, aggregate.High, aggregate.VeryHigh}

// Of returns a profile. Invalid for an invalid number of days or unit; else the errors of
// [aggregate.Service.Query]. A person without readings has a profile with 0 readings whose measures are nil.
func Of(ctx context.Context, ask Asker, team healthlab.TeamID, user healthlab.UserID, q Question) (Profile, error) {
	if err := q.check(); err != nil {
		return Profile{}, fmt.Errorf("read glucose profile: %w", err)
	}
	value := aggregate.Samples("glucose")
	whole := aggregate.Query{Select: []aggregate.Expr{
		aggregate.Count.Of(value), aggregate.Mean.Of(value), aggregate.GMI.Of(value), aggregate.CV.Of(value), aggregate.SensorActive.Of(value),
	}}
	for _, b := range bands {
		whole.Select = append(whole.Select, aggregate.TimeInRange.In(b))
	}
	out, err := ask.Query(ctx, team, user, aggregate.Ask(aggregate.Last(int64(q.Days), q.To), whole, aggregate.Query{
		Select: []aggregate.Expr{aggregate.Mean.Of(value)}, GroupBy: []aggregate.Expr{aggregate.By(aggregate.Minutes(5))},
	}))
	if err != nil {
		return Profile{}, fmt.Errorf("read glucose profile: %w", err)
	}
	p := Profile{From: q.To.AddDays(1 - q.Days), To: q.To, Unit: q.Unit}
	c := out.Frames[0].Columns[1:]
	p.Readings = c[0].Int(0)
	p.Mean, p.GMI, p.CV, p.SensorActive = q.in(number(&c[1])), number(&c[2]), number(&c[3]), number(&c[4])
	for i, b := range bands {
		p.Bands = append(p.Bands, q.band(b, number(&c[5+i])))
	}
	q.fillClock(&p, &out.Frames[1])
	return p, nil
}

// check sets the defaults and returns the problems of the question.
func (q *Question) check() error {
	if q.Days == 0 {
		q.Days = DefaultDays
	}
	if q.Unit == "" {
		q.Unit = Millimoles
	}
	var bad healthlab.Problems
	if q.To.IsZero() {
		bad.Add("end_date", "must be a date from 0001-01-01 on", "end_date")
	}
	if q.Days < 1 || q.Days > MaxDays {
		bad.Add("days", fmt.Sprintf("must be between 1 and %d", MaxDays), "days")
	}
	if !slices.Contains(Units(), q.Unit) {
		bad.Add("unit", "must be mmol/L or mg/dL", "unit")
	}
	return bad.Err()
}

func number(c *aggregate.Column) *float64 {
	if c.Null(0) {
		return nil
	}
	return new(c.Float(0))
}

func (q *Question) in(mmol *float64) *float64 {
	if mmol == nil || q.Unit == Millimoles {
		return mmol
	}
	return new(*mmol * healthdata.GlucoseMilligrams)
}

func (q *Question) band(name aggregate.Band, percent *float64) Band {
	out := Band{Name: name, Percent: percent}
	for _, b := range aggregate.Describe().Bands {
		if b.Name != name {
			continue
		}
		if q.Unit == Millimoles {
			out.Low, out.High = b.LowMmol, b.HighMmol
			continue
		}
		out.Low, out.High = float(b.Low), float(b.High)
	}
	return out
}

func float(v *int) *float64 {
	if v == nil {
		return nil
	}
	return new(float64(*v))
}

// fillClock sets the distribution by quarter hour of the day, the means of the last days and the number of days with
// readings. f has the means of five minutes.
func (q *Question) fillClock(p *Profile, f *aggregate.Frame) {
	const dailyMost = 14
	first := p.To.AddDays(1 - min(q.Days, dailyMost))
	for d := first; !d.After(p.To); d = d.AddDays(1) {
		p.Daily = append(p.Daily, Day{Date: d, Means: make([]*float64, Quarters)})
	}
	byQuarter := make([][]float64, Quarters)
	days := map[healthlab.Date]bool{}
	type sum struct {
		of float64
		n  int
	}
	sums := map[[2]int]sum{}
	for i := range f.Len() {
		at, v := f.Columns[0].Time(i), *q.in(new(f.Columns[1].Float(i)))
		quarter, date := (at.Hour()*60+at.Minute())/15, healthlab.DateOf(at)
		byQuarter[quarter] = append(byQuarter[quarter], v)
		days[date] = true
		for k := range p.Daily {
			if p.Daily[k].Date == date {
				s := sums[[2]int{k, quarter}]
				sums[[2]int{k, quarter}] = sum{s.of + v, s.n + 1}
			}
		}
	}
	for at, s := range sums {
		p.Daily[at[0]].Means[at[1]] = new(s.of / float64(s.n))
	}
	p.DaysWithReadings = len(days)
	for k, values := range byQuarter {
		slices.Sort(values)
		p.Clock = append(p.Clock, Quarter{
			Minute: 15 * k, P5: percentile(values, 5), P25: percentile(values, 25), P50: percentile(values, 50),
			P75: percentile(values, 75), P95: percentile(values, 95),
		})
	}
}

// percentile returns a percentile of sorted values by linear interpolation; nil for no values.
func percentile(sorted []float64, percent float64) *float64 {
	if len(sorted) == 0 {
		return nil
	}
	at := percent / 100 * float64(len(sorted)-1)
	low := int(math.Floor(at))
	high := min(low+1, len(sorted)-1)
	return new(sorted[low] + (sorted[high]-sorted[low])*(at-float64(low)))
}
