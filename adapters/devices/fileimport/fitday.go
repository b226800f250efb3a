package fileimport

import (
	"cmp"
	"math"
	"slices"

	"github.com/muktihari/fit/profile/typedef"
	"github.com/muktihari/fit/profile/untyped/fieldnum"
	"github.com/muktihari/fit/profile/untyped/mesgnum"
	"github.com/muktihari/fit/proto"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// readMonitoring reads a monitoring message, and returns its cost in points. timed means that the message has a full
// timestamp. Otherwise it may have the low 16 bits of one, and the previous message provides the high bits.
func (f *fitFile) readMonitoring(m *proto.Message, timed bool) int {
	if low, ok := field(m, fieldnum.MonitoringTimestamp16); ok && !timed && f.anyClock {
		now := uint32(f.clock)
		f.clock = float64(now + (uint32(low)-now)&0xffff)
	} else if !timed {
		return 0
	}
	v := monitored{
		at:       f.clock,
		activity: scaled(m, fieldnum.MonitoringActivityType, 1, 0),
		distance: scaled(m, fieldnum.MonitoringDistance, 100, 0),
		calories: scaled(m, fieldnum.MonitoringActiveCalories, 1, 0),
		heart:    scaled(m, fieldnum.MonitoringHeartRate, 1, 0),
		moderate: scaled(m, fieldnum.MonitoringModerateActivityMinutes, 1, 0),
		vigorous: scaled(m, fieldnum.MonitoringVigorousActivityMinutes, 1, 0),
		steps:    nan,
	}
	_, v.wholeDay = field(m, fieldnum.MonitoringDurationMin)
	if both, ok := field(m, fieldnum.MonitoringCurrentActivityTypeIntensity); ok {
		v.activity = float64(int(both) & 0x1f) // the upper three bits are the intensity
	}
	switch v.activity {
	case float64(typedef.ActivityTypeWalking), float64(typedef.ActivityTypeRunning):
		v.steps = scaled(m, fieldnum.MonitoringCycles, 1, 0)
	}
	if b, _ := healthdata.ResourceBySlug("heartrate").Bounds(); v.heart < b.Low || v.heart > b.High { // not worn, or unsure
		v.heart = nan
	}
	f.monitor = append(f.monitor, v)
	return 1
}

// dayTotals holds the totals of one local day. NaN means unknown.
type dayTotals struct {
	day                          healthlab.Date
	steps, distance, calories    float64
	moderate, vigorous           float64
	heartSum, heartN             float64
	heartLow, heartHigh, resting float64
}

// counter tracks the running totals of a device by kind of activity.
type counter map[float64]float64

// rise returns the growth of the total of an activity. A smaller total starts a new day.
func (c counter) rise(activity, total float64) float64 {
	if math.IsNaN(total) {
		return 0
	}
	before := c[activity]
	c[activity] = total
	if total < before {
		return total
	}
	return total - before
}

// handOverMonitoring converts the running totals of a day to intervals of steps and distance, adds up days, and
// passes both to the sink. An interval begins at the time of the previous message.
func (f *fitFile) handOverMonitoring(out *output) error {
	if len(f.monitor) == 0 {
		return nil
	}
	slices.SortStableFunc(f.monitor, func(a, b monitored) int { return cmp.Compare(a.at, b.at) })
	source := out.recordedBy(healthdata.SourceWatch)
	steps, metres, kcal := counter{}, counter{}, counter{}
	moderate, vigorous := counter{}, counter{}
	var days []*dayTotals
	series := map[string][]healthdata.Sample{}
	interval := func(resource string, from, to, v float64) {
		if v > 0 && to > from {
			series[resource] = append(series[resource], f.sample(resource, from, to, healthdata.Number(v)))
		}
	}
	last := f.monitor[0].at
	if f.monitorStart > 0 && f.monitorStart < last && last-f.monitorStart < 86400 {
		last = f.monitorStart
	}
	for i := 0; i < len(f.monitor); {
		at := f.monitor[i].at
		d := dayOf(&days, f.localDay(at-1))
		var stepped, walked, burnt float64
		for ; i < len(f.monitor) && f.monitor[i].at == at; i++ {
			m := &f.monitor[i]
			stepped += steps.rise(m.activity, m.steps)
			walked += metres.rise(m.activity, m.distance)
			rise := kcal.rise(m.activity, m.calories)
			d.add(&d.calories, rise, m.calories)
			if !m.wholeDay {
				burnt += rise
			}
			d.add(&d.moderate, moderate.rise(0, m.moderate), m.moderate)
			d.add(&d.vigorous, vigorous.rise(0, m.vigorous), m.vigorous)
			d.add(&d.steps, 0, m.steps)
			d.add(&d.distance, 0, m.distance)
			if !math.IsNaN(m.heart) {
				d.addHeartRate(m.heart)
				series["heartrate"] = append(series["heartrate"], f.sample("heartrate", at, at, healthdata.Number(m.heart)))
			}
		}
		d.add(&d.steps, stepped, nanIfZero(stepped))
		d.add(&d.distance, walked, nanIfZero(walked))
		interval("steps", last, at, stepped)
		interval("distance", last, at, walked)
		interval("calories_active", last, at, burnt)
		last = at
	}
	if f.anyResting && f.resting > 0 {
		days[len(days)-1].resting = f.resting
	}
	if err := f.handOverDays(out, days, source); err != nil {
		return err
	}
	for _, resource := range [...]string{"steps", "distance", "calories_active", "heartrate"} {
		if err := out.samples(resource, source, series[resource]); err != nil {
			return err
		}
	}
	return nil
}

func nanIfZero(v float64) float64 {
	if v == 0 {
		return nan
	}
	return v
}

func dayOf(days *[]*dayTotals, day healthlab.Date) *dayTotals {
	if n := len(*days); n > 0 && (*days)[n-1].day == day {
		return (*days)[n-1]
	}
	d := &dayTotals{
		day: day, steps: nan, distance: nan, calories: nan, moderate: nan, vigorous: nan,
		heartLow: nan, heartHigh: nan, resting: nan,
	}
	*days = append(*days, d)
	return d
}

// add adds v to total. It adds nothing if said, the reported value from which v is derived, is NaN.
func (d *dayTotals) add(total *float64, v, said float64) {
	if math.IsNaN(said) {
		return
	}
	if math.IsNaN(*total) {
		*total = 0
	}
	*total += v
}

func (d *dayTotals) addHeartRate(bpm float64) {
	d.heartSum += bpm
	d.heartN++
	if !(d.heartLow <= bpm) {
		d.heartLow = bpm
	}
	if !(d.heartHigh >= bpm) {
		d.heartHigh = bpm
	}
}

// handOverDays sends days to the sink. They are partial, because a device writes several files a day, whose totals are
// those of the day until then.
func (f *fitFile) handOverDays(out *output, days []*dayTotals, source healthdata.Source) error {
	var items []healthdata.Summary
	number := func(v float64) *float64 {
		if math.IsNaN(v) {
			return nil
		}
		return &v
	}
	for _, d := range days {
		a := &healthdata.Activity{
			CalendarDate: d.day, TimezoneOffset: f.copyOffset(),
			Steps: rounded(number(d.steps)), Distance: number(d.distance), CaloriesActive: number(d.calories),
			Medium: number(d.moderate), High: number(d.vigorous),
		}
		a.Source, a.Partial = source, true
		if d.heartN > 0 || !math.IsNaN(d.resting) {
			a.HeartRate = &healthdata.ActivityHeartRate{
				MinBPM: number(d.heartLow), MaxBPM: number(d.heartHigh), RestingBPM: number(d.resting),
			}
			if d.heartN > 0 {
				a.HeartRate.AvgBPM = number(d.heartSum / d.heartN)
			}
		}
		if a.Steps == nil && a.Distance == nil && a.CaloriesActive == nil && a.Medium == nil && a.High == nil &&
			a.HeartRate == nil {
			continue
		}
		items = append(items, a)
	}
	return out.summaries("activity", items...)
}

// readWeight reads a weight_scale message. at is its timestamp, if timed; a message without one is ignored.
func (f *fitFile) readWeight(m *proto.Message, at float64, timed bool) {
	if !timed {
		return
	}
	v := weighing{at: at, user: scaled(m, fieldnum.WeightScaleUserProfileIndex, 1, 0)}
	number := func(num byte, scale float64) *float64 {
		n := scaled(m, num, scale, 0)
		if math.IsNaN(n) {
			return nil
		}
		return positive(&n) // 0 means not measured
	}
	b := &v.body
	const calculating = 0xfffe // the scale still measures
	if raw, ok := field(m, fieldnum.WeightScaleWeight); ok && raw != calculating {
		b.Weight = number(fieldnum.WeightScaleWeight, 100)
	}
	b.Fat = number(fieldnum.WeightScalePercentFat, 100)
	b.WaterPercentage = number(fieldnum.WeightScalePercentHydration, 100)
	b.BodyMassIndex = number(fieldnum.WeightScaleBmi, 10)
	b.VisceralFatIndex = number(fieldnum.WeightScaleVisceralFatRating, 1)
	if b.Weight != nil && *b.Weight > 0 {
		share := func(kg *float64) *float64 {
			if kg == nil {
				return nil
			}
			return new(100 * *kg / *b.Weight)
		}
		b.BoneMassPercentage = share(number(fieldnum.WeightScaleBoneMass, 100))
		b.MuscleMassPercentage = share(number(fieldnum.WeightScaleMuscleMass, 100))
	}
	f.weighings = append(f.weighings, v)
}

// handOverWeighings sends weighings to the sink, as body measurements and as samples. It notes if they belong to
// several users of the scale.
func (f *fitFile) handOverWeighings(out *output) error {
	source := out.recordedBy(healthdata.SourceScale)
	people := map[float64]bool{}
	var bodies []healthdata.Summary
	var weights, fats []healthdata.Sample
	for i := range f.weighings {
		w := &f.weighings[i]
		user := w.user
		if math.IsNaN(user) {
			user = -1
		}
		if only := out.opts.ScaleUser; only != nil && user != float64(*only) {
			count(&out.rep.Skipped, "weight_scale message of another user", 1)
			continue
		}
		if m := &w.body; m.Weight == nil && m.Fat == nil && m.WaterPercentage == nil && m.BodyMassIndex == nil && m.VisceralFatIndex == nil {
			count(&out.rep.Skipped, "weight_scale message without a value", 1)
			continue
		}
		people[user] = true
		b := w.body
		b.Source = source
		b.MeasuredAt = instant(int64(w.at))
		if f.offset != nil {
			b.CalendarDate = f.localDay(w.at)
		}
		bodies = append(bodies, &b)
		if b.Weight != nil {
			weights = append(weights, f.sample("weight", w.at, w.at, healthdata.Number(*b.Weight)))
		}
		if b.Fat != nil {
			fats = append(fats, f.sample("fat", w.at, w.at, healthdata.Number(*b.Fat)))
		}
	}
	if len(people) > 1 {
		out.note(out.opts.named("the scale knows several people, and the weighings of all of them were imported", "ScaleUser"))
	}
	if err := out.summaries("body", bodies...); err != nil {
		return err
	}
	if err := out.samples("weight", source, weights); err != nil {
		return err
	}
	return out.samples("fat", source, fats)
}

// readSingleValue reads a message with a single value, and returns its cost in points; 0 if the message is ignored. at
// is its timestamp, if timed.
func (f *fitFile) readSingleValue(m *proto.Message, at float64, timed bool) int {
	r := reading{at: at, other: nan}
	switch m.Num {
	case mesgnum.BloodPressure:
		r.resource = "blood_pressure"
		r.value = scaled(m, fieldnum.BloodPressureSystolicPressure, 1, 0)
		r.other = scaled(m, fieldnum.BloodPressureDiastolicPressure, 1, 0)
		if math.IsNaN(r.other) {
			return 0
		}
	case mesgnum.Spo2Data:
		r.resource, r.value = "blood_oxygen", scaled(m, fieldnum.Spo2DataReadingSpo2, 1, 0)
	case mesgnum.StressLevel:
		r.resource, r.value = "stress_level", scaled(m, fieldnum.StressLevelStressLevelValue, 1, 0)
		if t, ok := field(m, fieldnum.StressLevelStressLevelTime); ok {
			r.at, timed = t, true
		}
	case mesgnum.RespirationRate:
		r.resource, r.value = "respiratory_rate", scaled(m, fieldnum.RespirationRateRespirationRate, 100, 0)
	}
	// Negative values are codes for missing values.
	if !timed || math.IsNaN(r.value) || r.value < 0 || r.value == 0 && r.resource != "stress_level" {
		return 0
	}
	f.readings = append(f.readings, r)
	return 1
}

func (f *fitFile) handOverReadings(out *output) error {
	for _, resource := range [...]string{"blood_pressure", "blood_oxygen", "stress_level", "respiratory_rate"} {
		source := healthdata.SourceWatch
		if resource == "blood_pressure" {
			source = healthdata.SourceCuff
		}
		var samples []healthdata.Sample
		for _, r := range f.readings {
			if r.resource != resource {
				continue
			}
			s := f.sample(resource, r.at, r.at, healthdata.Number(r.value))
			if resource == "blood_pressure" {
				s.Value, s.Systolic, s.Diastolic = nil, &r.value, &r.other
			}
			samples = append(samples, s)
		}
		if err := out.samples(resource, out.recordedBy(source), samples); err != nil {
			return err
		}
	}
	return nil
}
