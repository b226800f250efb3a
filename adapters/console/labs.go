package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// historyResult is a laboratory result of a person's history, as the API publishes it.
type historyResult struct {
	Name           string   `json:"name"`
	Analyte        string   `json:"analyte"`
	Value          *float64 `json:"value"`
	Unit           string   `json:"unit"`
	Comparator     string   `json:"comparator"`
	Bound          *float64 `json:"bound"`
	Reported       string   `json:"reported_value"`
	ReportedUnit   string   `json:"reported_unit"`
	Interpretation string   `json:"interpretation"`
	Range          string   `json:"reference_range"`
	Low            *float64 `json:"range_low"`
	High           *float64 `json:"range_high"`
	Collected      string   `json:"collected_date"`
	ReportedOn     string   `json:"reported_date"`
	Source         string   `json:"source"`
	SourceID       string   `json:"source_id"`
	Laboratory     string   `json:"laboratory"`
}

// Day returns the day of collection, or else the day of the report; "" if both are unknown.
func (h *historyResult) Day() string { return cmp.Or(h.Collected, h.ReportedOn) }

// Title returns the name of the analyte, or else of the result.
func (h *historyResult) Title() string { return cmp.Or(h.Analyte, h.Name) }

// Outside reports whether the laboratory or the reference range marks the result as not normal.
func (h *historyResult) Outside() bool {
	return h.Interpretation == "abnormal" || h.Interpretation == "critical"
}

// Text returns the result in the unit of its analyte, or as reported if it has no analyte.
func (h *historyResult) Text() string {
	switch {
	case h.Value != nil:
		return number(*h.Value) + " " + h.Unit
	case h.Bound != nil:
		return h.Comparator + " " + number(*h.Bound) + " " + h.Unit
	}
	return strings.TrimSpace(h.Reported + " " + h.ReportedUnit)
}

// Bounds returns the reference range in the unit of the result, or the range as the laboratory reported it if that
// range has no numbers.
func (h *historyResult) Bounds() string {
	switch {
	case h.Low != nil && h.High != nil:
		return number(*h.Low) + " to " + number(*h.High) + " " + h.Unit
	case h.Low != nil:
		return "from " + number(*h.Low) + " " + h.Unit
	case h.High != nil:
		return "to " + number(*h.High) + " " + h.Unit
	}
	return h.Range
}

// plotted returns the number that a chart shows for the result, and its unit. For a result such as "<5" it is the
// limit. ok is false if the result is not numeric.
func (h *historyResult) plotted() (v float64, unit string, ok bool) {
	switch {
	case h.Value != nil:
		return *h.Value, h.Unit, true
	case h.Bound != nil:
		return *h.Bound, h.Unit, true
	}
	v, err := strconv.ParseFloat(h.Reported, 64)
	return v, h.ReportedUnit, err == nil
}

// markerTrend is the history of one analyte in one unit.
type markerTrend struct {
	Key, Name, Unit string
	Last            *historyResult
	Count           int
	line            line
	ranges          []reference
}

// maxLabResults is the largest number of results on a page.
const maxLabResults = 1000

// labHistory reads the results of a person, newest first. more reports that the person has further results.
func (s *Console) labHistory(r *http.Request, id string) (list []historyResult, more bool, err error) {
	q := url.Values{"limit": {"250"}}
	for len(list) < maxLabResults {
		var page struct {
			Data []historyResult `json:"data"`
			Next string          `json:"next_cursor"`
		}
		if err := s.optional(s.get(r, "/v2/user/"+id+"/lab_result", q, &page)); err != nil {
			return nil, false, err
		}
		list = append(list, page.Data...)
		if page.Next == "" {
			return list, false, nil
		}
		q.Set("next_cursor", page.Next)
	}
	return list, true, nil
}

func (s *Console) labs(w http.ResponseWriter, r *http.Request, on *session) error {
	var data struct {
		personPage
		Markers   []*markerTrend
		Chosen    []string
		Results   []historyResult // results within the range, newest first
		Resource  string
		Resources []string
		More      bool
	}
	var err error
	if data.personPage, err = s.openPerson(r, "labs"); err != nil {
		return err
	}
	var history []historyResult
	if history, data.More, err = s.labHistory(r, userPath(r)); err != nil {
		return err
	}
	schema, err := s.schema(r)
	if err != nil {
		return err
	}
	all := schema.resources()
	res, err := data.choose(r.FormValue("resource"), all)
	if err != nil {
		return err
	}
	data.Resource = res.name
	for _, one := range data.having(all) {
		data.Resources = append(data.Resources, one.name)
	}
	latest, err := s.latest(r, res, data.newest(res.name))
	if err != nil {
		return err
	}
	for i := range history {
		if at, err := time.Parse(time.DateOnly, history[i].Day()); err == nil && at.After(latest) {
			latest = at
		}
	}
	days, err := s.parseRange(r, latest, 365)
	if err != nil {
		return err
	}
	data.setRange(r, days, latest, labPresets)
	for i := range history {
		if day := history[i].Day(); day == "" || day >= data.From && day <= data.To {
			data.Results = append(data.Results, history[i])
		}
	}
	data.Markers = trends(data.Results)
	step, err := bucketOf("day", days.days(), mostSteps)
	if err != nil {
		return err
	}
	found, err := s.series(r, userPath(r), res, days, step)
	if err != nil {
		return err
	}
	var panels []panel
	if found.lines != nil {
		panels = append(panels, panel{title: words(res.name) + " by day", unit: res.Unit(), lines: found.lines})
	}
	data.Chosen = chosenMarkers(r.Form["marker"], data.Markers)
	for _, m := range data.Markers {
		if slices.Contains(data.Chosen, m.Key) && len(m.line.points) > 0 {
			panels = append(panels, panel{title: m.Name, unit: m.Unit, ranges: m.ranges, lines: []line{m.line}})
		}
	}
	data.Chart = draw("lab results beside "+words(res.name), panels...)
	return s.show(w, r, on, "labs", data.title(), data)
}

// Title returns the name of the analyte, or else of the result, with the unit in brackets if there is one.
func (m *markerTrend) Title() string {
	if m.Unit == "" {
		return m.Name
	}
	return m.Name + " (" + m.Unit + ")"
}

// chosenMarkers returns the markers that the form selects. Without a selection it returns three numeric ones: first
// those with a result outside of its range, then those with the most results.
func chosenMarkers(form []string, markers []*markerTrend) (list []string) {
	if len(form) > 0 {
		return form
	}
	best := slices.DeleteFunc(slices.Clone(markers), func(m *markerTrend) bool { return len(m.line.points) == 0 })
	outside := func(m *markerTrend) int {
		if m.Last.Outside() {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(best, func(a, b *markerTrend) int { return cmp.Or(outside(b)-outside(a), b.Count-a.Count) })
	for _, m := range best[:min(3, len(best))] {
		list = append(list, m.Key)
	}
	return list
}

// trends groups results by analyte and unit, sorted by name. list must be sorted with the newest result first.
func trends(list []historyResult) (out []*markerTrend) {
	byKey := map[string]*markerTrend{}
	for i := len(list) - 1; i >= 0; i-- {
		one := &list[i]
		v, unit, numeric := one.plotted()
		if !numeric {
			unit = ""
		}
		key := one.Title() + " " + unit
		m := byKey[key]
		if m == nil {
			m = &markerTrend{Key: key, Name: one.Title(), Unit: unit, line: line{dots: true, colour: 4}}
			byKey[key] = m
			out = append(out, m)
		}
		m.Last = one
		m.Count++
		if at, err := time.Parse(time.DateOnly, one.Day()); err == nil && numeric {
			m.add(at, v, one)
		}
	}
	slices.SortFunc(out, func(a, b *markerTrend) int { return cmp.Compare(a.Key, b.Key) })
	return out
}

// add appends a result to the trend. Each result has its own reference range in the chart; the ranges of two successive
// results meet halfway between them.
func (m *markerTrend) add(at time.Time, v float64, of *historyResult) {
	note := strings.TrimSuffix(of.Text(), " "+m.Unit)
	if of.Outside() {
		note += ", " + of.Interpretation
	}
	next := reference{low: of.Low, high: of.High}
	if n := len(m.line.points); n > 0 {
		before := m.line.points[n-1].at
		next.from = before.Add(at.Sub(before) / 2)
		m.ranges[n-1].to = next.from
	}
	m.line.points = append(m.line.points, point{at, v})
	m.line.notes = append(m.line.notes, note)
	m.ranges = append(m.ranges, next)
}
