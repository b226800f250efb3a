package fileimport

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// appQuantity is a number with its unit.
type appQuantity struct {
	Qty   *float64
	Units string
}

// appClimb is the climb of a workout.
type appClimb struct {
	Ascent *float64
	Units  string
}

// appWorkout is a workout. Version 1 of the app has activeEnergy and stepCount as numbers and the climb as elevation;
// version 2 has lists and elevationUp.
type appWorkout struct {
	ID, Name, Start, End string
	Duration             *float64
	ActiveEnergyBurned   *appQuantity
	Distance             *appQuantity
	AvgHeartRate         *appQuantity
	MaxHeartRate         *appQuantity
	ElevationUp          *appQuantity
	AvgSpeed, MaxSpeed   *appQuantity
	HeartRate            *struct{ Avg, Max *appQuantity }
	ActiveEnergy         json.RawMessage
	StepCount, Elevation json.RawMessage
	Route, HeartRateData []json.RawMessage
}

// appSports maps the sport names of the app that differ from those of the phone's health store to sport slugs.
var appSports = map[string]string{
	"OutdoorRun": "running", "IndoorRun": "running", "OutdoorWalk": "walking", "IndoorWalk": "walking", "OutdoorCycle": "cycling", "IndoorCycle": "cycling",
	"OutdoorCycling": "cycling", "IndoorCycling": "cycling", "PoolSwim": "swimming", "OpenWaterSwim": "swimming",
}

// workout stores the n-th workout of the file, from 1, with the stream of its route and heart rates.
func (a *phoneApp) workout(n int) error {
	place := fmt.Sprintf("workout %d", n)
	var raw json.RawMessage
	if err := a.value(&raw); err != nil {
		return err
	}
	v := itemOf[appWorkout](raw)
	if v == nil {
		a.remarks.add(place, "workout", "an object with a start, an end and quantities")
		return nil
	}
	start, ok1 := a.time(place, "start", v.Start)
	end, ok2 := a.time(place, "end", v.End)
	if !ok1 || !ok2 {
		return nil
	}
	if end.Before(start) {
		a.remarks.add(place, "end", "a time that is not before the start")
		return nil
	}
	name := strings.ReplaceAll(v.Name, " ", "")
	w := &healthdata.Workout{
		Head: a.store.head(&origin{kind: healthdata.SourceUnknown}), TimeStart: healthlab.At(start), TimeEnd: healthlab.At(end), TimezoneOffset: offsetOf(start),
		SessionOffsets: healthdata.SessionOffsets{StartTimezoneOffset: offsetOf(start), EndTimezoneOffset: offsetOf(end)},
		Sport:          healthdata.SportOf(cmp.Or(appSports[name], exportSport(name))),
	}
	w.ExternalID = printable(v.ID)
	if v.ID == "" {
		w.ExternalID = uuid.NewSHA1(originSpace, []byte("workout "+w.TimeStart.String())).String()
	}
	w.ProviderID = w.ExternalID
	if v.Duration != nil && *v.Duration > 0 && *v.Duration <= end.Sub(start).Seconds()+1 {
		w.MovingTime = roundedNumber(*v.Duration)
	}
	w.Calories = a.total("active energy", cmp.Or(v.ActiveEnergyBurned, itemOf[appQuantity](v.ActiveEnergy)), "kcal")
	w.Distance = a.total("distance", v.Distance, "m")
	if e := itemOf[appClimb](v.Elevation); e != nil && v.ElevationUp == nil {
		v.ElevationUp = &appQuantity{e.Ascent, e.Units}
	}
	w.TotalElevationGain = a.total("elevation", v.ElevationUp, "m")
	w.Steps = rounded(a.total("steps", itemOf[appQuantity](v.StepCount), "count"))
	w.AverageSpeed, w.MaxSpeed = a.total("speed", v.AvgSpeed, "m/s"), a.total("speed", v.MaxSpeed, "m/s")
	average, most := v.AvgHeartRate, v.MaxHeartRate
	if v.HeartRate != nil {
		average, most = cmp.Or(average, v.HeartRate.Avg), cmp.Or(most, v.HeartRate.Max)
	}
	w.AverageHR, w.MaxHR = rounded(a.total("heart rate", average, "bpm")), rounded(a.total("heart rate", most, "bpm"))
	a.out.removeBadTotals(w)
	rec := recording{points: a.out.plausiblePoints(a.points(v)), onFoot: onFoot(w.Sport.Slug)}
	if len(rec.points) > a.out.opts.MaxPoints {
		a.out.note(a.out.opts.named(fmt.Sprintf("the recording of a workout is left out: it must have at most %d points", a.out.opts.MaxPoints), "MaxPoints"))
		rec.points = nil
	}
	if len(rec.points) > 0 {
		rec.measure()
		rec.fill(w)
		a.out.removeBadTotals(w)
	}
	refused := a.out.rep.Refused["workouts"]
	if err := a.out.summaries("workouts", w); err != nil || len(rec.points) == 0 {
		return err
	}
	if a.out.rep.Refused["workouts"] > refused {
		a.out.countSkipped("stream of a workout that is refused", 1)
		return nil
	}
	return a.out.stream(w, rec.stream())
}

// total returns q converted to the unit to. It returns nil if the quantity is absent, zero or in an unknown unit. what
// names the quantity in the report.
func (a *phoneApp) total(what string, q *appQuantity, to string) *float64 {
	if q == nil || q.Qty == nil || *q.Qty == 0 {
		return nil
	}
	units := q.Units
	switch units {
	case "kmph":
		units = "km/h"
	case "":
		if to != "bpm" {
			a.out.countSkipped(what+" of a workout without a unit", 1)
			return nil
		}
		units = to
	}
	v, ok := healthdata.ConvertUnit(*q.Qty, units, to)
	if !ok {
		a.out.countSkipped(what+" of a workout in a unit that is not known", 1)
		return nil
	}
	return &v
}

// points returns the route and heart rates of a workout, merged by time.
func (a *phoneApp) points(v *appWorkout) []point {
	var points []point
	at := map[int64]int{}
	add := func(text string) *point {
		unix, _, ok := parseStamp([]byte(text))
		if i, seen := at[unix]; ok && seen {
			return &points[i]
		}
		p := newPoint()
		p.micros = untimed
		if ok {
			p.micros = unix * 1e6
			at[unix] = len(points)
		}
		points = append(points, p)
		return &points[len(points)-1]
	}
	for _, raw := range v.Route {
		r := itemOf[struct {
			Latitude, Longitude, Altitude, Speed *float64
			Timestamp                            string
			Lat, Lon                             *float64 // version 1 of the app
		}](raw)
		if r == nil {
			a.out.countSkipped("point that cannot be read", 1)
			continue
		}
		p := add(r.Timestamp)
		for into, n := range map[*float64]*float64{&p.lat: cmp.Or(r.Latitude, r.Lat), &p.lng: cmp.Or(r.Longitude, r.Lon), &p.alt: r.Altitude, &p.speed: r.Speed} {
			if n != nil {
				*into = *n
			}
		}
		if p.speed < 0 { // not measured
			p.speed = nan
		}
	}
	for _, raw := range v.HeartRateData {
		r := itemOf[struct {
			Date     string
			Avg, Qty *float64
		}](raw)
		if r == nil {
			a.out.countSkipped("point that cannot be read", 1)
			continue
		}
		if n := cmp.Or(r.Avg, r.Qty); n != nil && *n > 0 {
			add(r.Date).heart = *n
		}
	}
	return points
}
