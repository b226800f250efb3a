package console

import (
	"math"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// night is a sleep session as the API publishes it.
type night struct {
	ID     string    `json:"id"`
	Start  time.Time `json:"bedtime_start"`
	End    time.Time `json:"bedtime_stop"`
	Date   string    `json:"calendar_date"`
	Offset int       `json:"timezone_offset"`
	Total  int       `json:"total"`
	Deep   int       `json:"deep"`
	Light  int       `json:"light"`
	REM    int       `json:"rem"`
	Awake  int       `json:"awake"`
	Score  *int      `json:"score"`
	Lowest *int      `json:"hr_lowest"`
	HRV    *float64  `json:"average_hrv"`
	Source struct {
		Provider string `json:"provider"`
		Type     string `json:"type"`
	} `json:"source"`
}

func (n *night) local(t time.Time) time.Time {
	return t.UTC().Add(time.Duration(n.Offset) * time.Second)
}

func (s *Console) sleep(w http.ResponseWriter, r *http.Request, on *session) error {
	var data struct {
		personPage
		Nights []night `json:"sleep"`
		Night  *night  `json:"-"`
		Stages bool    `json:"-"`
	}
	var err error
	if data.personPage, err = s.openPerson(r, "sleep"); err != nil {
		return err
	}
	latest := data.newest("sleep")
	if !latest.IsZero() {
		latest = latest.Add(day) // in the person's time zone it may already be the next day
	}
	days, err := s.parseRange(r, latest, 14)
	if err != nil {
		return err
	}
	data.setRange(r, days, latest, sessionPresets)
	window := url.Values{"start_date": {data.From}, "end_date": {data.To}}
	if err := s.get(r, "/v2/summary/sleep/"+userPath(r), window, &data); err != nil {
		return err
	}
	slices.SortFunc(data.Nights, func(a, b night) int { return b.End.Compare(a.End) })
	if len(data.Nights) > 0 {
		data.endOn(r, days, data.Nights[0].Date, sessionPresets)
	}
	for i := range data.Nights {
		if chosen := r.FormValue("night"); data.Night == nil && (chosen == "" || chosen == data.Nights[i].ID) {
			data.Night = &data.Nights[i]
		}
	}
	if data.Night == nil {
		return s.show(w, r, on, "sleep", data.title(), data)
	}
	rate, err := s.heartRate(r, data.Night.local(data.Night.Start), data.Night.local(data.Night.End))
	if err != nil {
		return err
	}
	stages, err := s.hypnogram(r, data.Night, window)
	if err != nil {
		return err
	}
	data.Stages = stages != nil
	panels := []panel{{title: "heart rate", unit: "bpm", lines: rate}}
	if data.Stages {
		panels = append(panels, panel{title: "sleep stages", lines: []line{*stages}, labels: stageNames})
	}
	data.Chart = draw("heart rate and sleep stages", panels...)
	return s.show(w, r, on, "sleep", data.title(), data)
}

// heartRate returns the heart rate between two local times of a person, by minute and source.
func (s *Console) heartRate(r *http.Request, from, to time.Time) ([]line, error) {
	rate := resource{name: "heartrate", fields: []queryColumn{{Name: "value"}}}
	found, err := s.series(r, userPath(r), rate, rangeOf{from.Truncate(day), to.Truncate(day)}, buckets[0])
	if err != nil {
		return nil, err
	}
	for i := range found.lines {
		l := &found.lines[i]
		l.points = slices.DeleteFunc(l.points, func(p point) bool { return p.at.Before(from) || p.at.After(to) })
	}
	return slices.DeleteFunc(found.lines, func(l line) bool { return len(l.points) == 0 }), nil
}

// stageNames are the levels of a hypnogram.
var stageNames = []string{"deep", "light", "REM", "awake"}

// stageLevels maps the stage codes of the API to indexes of stageNames. Manually entered stages have none.
var stageLevels = map[int]float64{1: 0, 2: 1, 3: 2, 4: 3}

// hypnogram returns the stages of a night; nil if the source sends none.
func (s *Console) hypnogram(r *http.Request, n *night, window url.Values) (*line, error) {
	var list struct {
		Cycles []struct {
			SleepID string    `json:"sleep_id"`
			Start   time.Time `json:"session_start"`
			From    []int64   `json:"stage_start_offset_second"`
			To      []int64   `json:"stage_end_offset_second"`
			Type    []int     `json:"stage_type"`
		} `json:"sleep_cycle"`
	}
	if err := s.get(r, "/v2/summary/sleep_cycle/"+userPath(r), window, &list); err != nil {
		return nil, err
	}
	l := &line{step: true}
	for _, c := range list.Cycles {
		if c.SleepID != n.ID {
			continue
		}
		end := time.Time{}
		for i, stage := range c.Type {
			level, known := stageLevels[stage]
			if !known {
				continue
			}
			from := n.local(c.Start.Add(time.Duration(c.From[i]) * time.Second))
			if !end.IsZero() && from.After(end) {
				l.points = append(l.points, point{end, math.NaN()})
			}
			end = n.local(c.Start.Add(time.Duration(c.To[i]) * time.Second))
			l.points = append(l.points, point{from, level}, point{end, level})
		}
	}
	if len(l.points) == 0 {
		return nil, nil //nolint:nilnil // a night without stages has no hypnogram
	}
	return l, nil
}
