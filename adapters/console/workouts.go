package console

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// workout is a workout as the API publishes it.
type workout struct {
	ID       string    `json:"id"`
	Title    string    `json:"title"`
	Start    time.Time `json:"time_start"`
	End      time.Time `json:"time_end"`
	Offset   int       `json:"timezone_offset"`
	Date     string    `json:"calendar_date"`
	Average  *int      `json:"average_hr"`
	Highest  *int      `json:"max_hr"`
	Distance *float64  `json:"distance"`
	Calories *float64  `json:"calories"`
	Sport    struct {
		Name string `json:"name"`
	} `json:"sport"`
	Source struct {
		Provider string `json:"provider"`
	} `json:"source"`
}

// Minutes returns the length of a workout in whole minutes.
func (w *workout) Minutes() int { return int(w.End.Sub(w.Start).Minutes()) }

// recording holds the recorded values of a workout: for each instant in Time, one value of each column or null.
type recording struct {
	Time     []int64    `json:"time"`
	Rate     []*float64 `json:"heartrate"`
	Altitude []*float64 `json:"altitude"`
	Speed    []*float64 `json:"velocity_smooth"`
	Power    []*float64 `json:"power"`
	Lat      []*float64 `json:"lat"`
	Lng      []*float64 `json:"lng"`
}

func (s *Console) workouts(w http.ResponseWriter, r *http.Request, on *session) error {
	var data struct {
		personPage
		Workouts []workout `json:"workouts"`
		Workout  *workout  `json:"-"`
		Route    string    `json:"-"`
	}
	var err error
	if data.personPage, err = s.openPerson(r, "workouts"); err != nil {
		return err
	}
	latest := data.newest("workouts")
	if !latest.IsZero() {
		latest = latest.Add(day) // in the person's time zone it may already be the next day
	}
	days, err := s.parseRange(r, latest, 30)
	if err != nil {
		return err
	}
	data.setRange(r, days, latest, sessionPresets)
	if err := s.get(r, "/v2/summary/workouts/"+userPath(r), url.Values{"start_date": {data.From}, "end_date": {data.To}}, &data); err != nil {
		return err
	}
	slices.SortFunc(data.Workouts, func(a, b workout) int { return b.Start.Compare(a.Start) })
	if len(data.Workouts) > 0 {
		data.endOn(r, days, data.Workouts[0].Date, sessionPresets)
	}
	for i := range data.Workouts {
		if chosen := r.FormValue("workout"); data.Workout == nil && (chosen == "" || chosen == data.Workouts[i].ID) {
			data.Workout = &data.Workouts[i]
		}
	}
	if data.Workout == nil {
		return s.show(w, r, on, "workouts", data.title(), data)
	}
	var rec recording
	if err := s.optional(s.get(r, "/v2/timeseries/workouts/"+url.PathEscape(data.Workout.ID)+"/stream", nil, &rec)); err != nil {
		return err
	}
	offset := time.Duration(data.Workout.Offset) * time.Second
	of := func(title, unit string, colour int, values []*float64) panel {
		l := line{colour: colour}
		for i, v := range values {
			p := point{time.Unix(rec.Time[i], 0).UTC().Add(offset), math.NaN()}
			if v != nil {
				p.value = *v
			}
			l.points = append(l.points, p)
		}
		return panel{title: title, unit: unit, lines: []line{l}}
	}
	data.Chart = draw("recording", of("heart rate", "bpm", 0, rec.Rate), of("speed", "m/s", 2, rec.Speed), of("altitude", "m", 1, rec.Altitude), of("power", "W", 3, rec.Power))
	if data.Chart == nil { // the workout has no recording
		rate, err := s.heartRate(r, data.Workout.Start.UTC().Add(offset), data.Workout.End.UTC().Add(offset))
		if err != nil {
			return err
		}
		data.Chart = draw("heart rate", panel{title: "heart rate", unit: "bpm", lines: rate})
	}
	data.Route = route(rec.Lat, rec.Lng)
	return s.show(w, r, on, "workouts", data.title(), data)
}

// route returns the outline of a route as an SVG path within 240 by 240, north up; "" if there are fewer than two
// positions.
func route(lat, lng []*float64) string {
	type place struct{ x, y float64 }
	var places []place
	west, south, east, north := math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	for i := range min(len(lat), len(lng)) {
		if lat[i] == nil || lng[i] == nil {
			continue
		}
		// An equirectangular projection keeps the shape of a route of some kilometres.
		p := place{*lng[i] * math.Cos(*lat[i]*math.Pi/180), *lat[i]}
		places = append(places, p)
		west, east, south, north = min(west, p.x), max(east, p.x), min(south, p.y), max(north, p.y)
	}
	size := max(east-west, north-south)
	if len(places) < 2 || size == 0 {
		return ""
	}
	var b strings.Builder
	skip := max(1, len(places)/1000)
	for i := 0; i < len(places); i += skip {
		command := 'L'
		if i == 0 {
			command = 'M'
		}
		x := 120 + 210*(places[i].x-(west+east)/2)/size
		y := 120 - 210*(places[i].y-(south+north)/2)/size
		fmt.Fprintf(&b, "%c%.1f %.1f", command, x, y)
	}
	return b.String()
}
