package console

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// user is a user as the API publishes it.
type user struct {
	ID       string    `json:"user_id"`
	ClientID string    `json:"client_user_id"`
	Created  time.Time `json:"created_on"`
	Sources  []struct {
		Created time.Time `json:"created_on"`
		Source  struct {
			Name string `json:"name"`
			Slug string `json:"slug"`
		} `json:"source"`
	} `json:"connected_sources"`
}

func (s *console) home(w http.ResponseWriter, r *http.Request, on *session) error {
	var data struct {
		Team struct {
			Users   int `json:"number_of_users"`
			Sources int `json:"number_of_connected_sources"`
			Errored int `json:"number_of_errored_connected_sources"`
			Tests   int `json:"number_of_ordered_tests"`
		}
		Statuses []statusCount
		Reviews  string
		Failing  string
	}
	if err := s.get(r, "/v2/user/metrics", nil, &data.Team); err != nil {
		return err
	}
	for _, status := range orderStatuses {
		n, err := s.count(r, "/v3/orders", url.Values{"status": {status}, "size": {"1"}})
		if err != nil {
			return err
		}
		data.Statuses = append(data.Statuses, statusCount{status, n})
	}
	var err error
	if data.Reviews, err = s.count(r, "/v3/unmatched_result", url.Values{"limit": {"1"}}); err != nil {
		return err
	}
	return s.show(w, r, on, "home", "Home", data)
}

type statusCount struct{ Status, Count string }

// count returns the total of a list, and "–" if the host does not serve it.
func (s *console) count(r *http.Request, path string, q url.Values) (string, error) {
	var page struct {
		Total int `json:"total"`
	}
	err := s.get(r, path, q, &page)
	var failed *apiError
	if errors.As(err, &failed) && (failed.Status == http.StatusNotFound || failed.Status == http.StatusNotImplemented) {
		return "–", nil
	}
	return strconv.Itoa(page.Total), err
}

func (s *console) users(w http.ResponseWriter, r *http.Request, on *session) error {
	const size = 50
	var data struct {
		Users      []user `json:"users"`
		Total      int    `json:"total"`
		Search     string `json:"-"`
		Prev, Next string `json:"-"`
	}
	data.Search = r.FormValue("q")
	if data.Search != "" {
		if err := s.get(r, "/v2/team/users/search", url.Values{"query_id": {data.Search}}, &data.Users); err != nil {
			return err
		}
		data.Total = len(data.Users)
		return s.show(w, r, on, "users", "Users", data)
	}
	offset, _ := strconv.Atoi(r.FormValue("offset"))
	offset = max(offset, 0)
	if err := s.get(r, "/v2/user/", url.Values{"offset": {strconv.Itoa(offset)}, "limit": {strconv.Itoa(size)}}, &data); err != nil {
		return err
	}
	if offset > 0 {
		data.Prev = fmt.Sprintf("?offset=%d", max(0, offset-size))
	}
	if offset+size < data.Total {
		data.Next = fmt.Sprintf("?offset=%d", offset+size)
	}
	return s.show(w, r, on, "users", "Users", data)
}

// sample is a sample of a timeseries.
type sample struct {
	At     time.Time       `json:"timestamp"`
	Unit   string          `json:"unit"`
	Offset int             `json:"timezone_offset"`
	Value  json.RawMessage `json:"value"`
	High   json.RawMessage `json:"systolic"`
}

// number returns the value of a sample, the systolic one of a blood pressure, and NaN for
// text.
func (v *sample) number() float64 {
	var f float64
	text := v.Value
	if text == nil {
		text = v.High
	}
	if text == nil || json.Unmarshal(text, &f) != nil {
		return math.NaN()
	}
	return f
}

// chartResources are the resources that the form offers.
var chartResources = []string{
	"heartrate", "hrv", "blood_oxygen", "respiratory_rate", "steps", "calories_active", "calories_basal", "distance",
	"glucose", "blood_pressure", "body_weight", "body_fat", "body_temperature", "stress_level", "vo2_max", "water", "caffeine",
}

// maxPages bounds the pages of samples that one chart reads.
const maxPages = 20

type night struct {
	ID    string    `json:"id"`
	Start time.Time `json:"bedtime_start"`
	End   time.Time `json:"bedtime_stop"`
	Date  time.Time `json:"date"`
	Chart *chart    `json:"-"`
}

func (s *console) person(w http.ResponseWriter, r *http.Request, on *session) error {
	id := url.PathEscape(r.PathValue("id"))
	var data struct {
		User                user
		Resource, From, To  string
		Resources           []string
		Chart, Overlay      *chart
		Unit                string
		Cut                 bool
		Night               *night
		Days                int
		Connections, Orders []any
	}
	if err := s.get(r, "/v2/user/"+id, nil, &data.User); err != nil {
		return err
	}
	today := s.Now().UTC()
	data.Resource = cmp.Or(r.FormValue("resource"), "heartrate")
	data.To = cmp.Or(r.FormValue("to"), today.Format(time.DateOnly))
	data.From = cmp.Or(r.FormValue("from"), today.AddDate(0, 0, -6).Format(time.DateOnly))
	data.Resources = chartResources
	if !slices.Contains(data.Resources, data.Resource) {
		return &apiError{Status: http.StatusUnprocessableEntity, Message: "resource: must be one of those in the form"}
	}
	window := url.Values{"start_date": {data.From}, "end_date": {data.To}}
	lines, unit, cut, err := s.samples(r, id, data.Resource, window)
	if err != nil {
		return err
	}
	data.Unit, data.Cut = unit, cut
	layout := "Jan 2"
	if data.From == data.To {
		layout = "15:04"
	}
	data.Chart = draw(data.Resource, lines, nil, layout)
	if data.Resource == "glucose" {
		data.Overlay = draw("glucose by time of day", overlay(lines), nil, "15:04")
	}
	if data.Night, err = s.lastNight(r, id, window); err != nil {
		return err
	}
	return s.show(w, r, on, "person", "User "+data.User.ClientID, data)
}

// samples reads a resource as a line for each source. Cut is true if there are more.
func (s *console) samples(r *http.Request, id, resource string, window url.Values) (lines []line, unit string, cut bool, err error) {
	type group struct {
		Source struct {
			Provider string `json:"provider"`
			Type     string `json:"type"`
		} `json:"source"`
		Data []sample `json:"data"`
	}
	byName := map[string][]point{}
	q := url.Values{}
	for k, v := range window {
		q[k] = v
	}
	for n := 0; ; n++ {
		if n == maxPages {
			cut = true
			break
		}
		var page struct {
			Groups map[string][]group `json:"groups"`
			Next   string             `json:"next_cursor"`
		}
		if err := s.get(r, "/v2/timeseries/"+id+"/"+resource+"/grouped", q, &page); err != nil {
			return nil, "", false, err
		}
		for _, groups := range page.Groups {
			for _, g := range groups {
				name := g.Source.Provider + " · " + cmp.Or(g.Source.Type, "unknown")
				for i := range g.Data {
					unit = g.Data[i].Unit
					byName[name] = append(byName[name], point{g.Data[i].At.Add(time.Duration(g.Data[i].Offset) * time.Second), g.Data[i].number()})
				}
			}
		}
		if page.Next == "" {
			break
		}
		q.Set("next_cursor", page.Next)
	}
	for name, points := range byName {
		slices.SortStableFunc(points, func(a, b point) int { return a.at.Compare(b.at) })
		lines = append(lines, line{name: name, points: points})
	}
	slices.SortFunc(lines, func(a, b line) int { return cmp.Compare(a.name, b.name) })
	return lines, unit, cut, nil
}

// overlay lays the days of all lines over one day: percentiles 5, 50 and 95 of each half
// hour.
func overlay(lines []line) []line {
	const slots = 48
	var by [slots][]float64
	for _, l := range lines {
		for _, p := range l.points {
			if !math.IsNaN(p.value) {
				i := p.at.Hour()*2 + p.at.Minute()/30
				by[i] = append(by[i], p.value)
			}
		}
	}
	out := []line{{name: "5th percentile"}, {name: "median"}, {name: "95th percentile"}}
	for i, values := range by {
		at := time.Date(2000, 1, 1, i/2, i%2*30, 0, 0, time.UTC)
		slices.Sort(values)
		for k, share := range []float64{.05, .5, .95} {
			v := math.NaN()
			if len(values) > 0 {
				v = values[int(math.Round(share*float64(len(values)-1)))]
			}
			out[k].points = append(out[k].points, point{at, v})
		}
	}
	return out
}

// stages are the levels of a hypnogram by the API's number, from deep to awake.
var stages = []string{"deep", "light", "REM", "awake"}

// levels maps the API's numbers of stages (1 deep, 2 light, 3 REM, 4 awake, 5 awake in bed) to levels.
var levels = map[float64]float64{1: 0, 2: 1, 3: 2, 4: 3}

// lastNight returns the newest sleep of a window with its hypnogram; nil if there is none.
func (s *console) lastNight(r *http.Request, id string, window url.Values) (*night, error) {
	var list struct {
		Sleep []night `json:"sleep"`
	}
	if err := s.get(r, "/v2/summary/sleep/"+id, window, &list); err != nil {
		return nil, err
	}
	if len(list.Sleep) == 0 {
		return nil, nil //nolint:nilnil // no sleep is a page without a night
	}
	n := slices.MaxFunc(list.Sleep, func(a, b night) int { return a.End.Compare(b.End) })
	var stream struct {
		Hypnogram []sample `json:"hypnogram"`
	}
	if err := s.get(r, "/v2/timeseries/sleep/"+url.PathEscape(n.ID)+"/stream", nil, &stream); err != nil {
		return nil, err
	}
	l := line{name: "stage", step: true}
	for i := range stream.Hypnogram {
		v, known := levels[stream.Hypnogram[i].number()]
		if !known {
			v = math.NaN()
		}
		l.points = append(l.points, point{stream.Hypnogram[i].At.Add(time.Duration(stream.Hypnogram[i].Offset) * time.Second), v})
	}
	n.Chart = draw("sleep stages", []line{l}, stages, "15:04")
	return &n, nil
}
