package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// markerTrend is the history of one marker of a person.
type markerTrend struct {
	Slug, Name, Unit, Range, Last string
	Outside                       bool
	values                        []point
	low, high                     *float64
}

// maxLabOrders bounds the orders whose results a page reads.
const maxLabOrders = 20

func (s *Console) labs(w http.ResponseWriter, r *http.Request, on *session) error {
	days, err := s.parseRange(r, 365)
	if err != nil {
		return err
	}
	var data struct {
		personPage
		Markers             []markerTrend
		Chosen              []string
		Resource            string
		Resources           []string
		Orders, TotalOrders int
	}
	if data.personPage, err = s.openPerson(r, "labs", days); err != nil {
		return err
	}
	var list struct {
		Orders []order `json:"orders"`
		Total  int     `json:"total"`
	}
	q := url.Values{
		"user_id": {data.User.ID}, "status": {"completed", "corrected", "partial_results"}, "size": {strconv.Itoa(maxLabOrders)},
		"order_key": {"created_at"}, "order_direction": {"desc"}, "end_date": {data.To},
	}
	if err := s.optional(s.get(r, "/v3/orders", q, &list)); err != nil {
		return err
	}
	data.Orders, data.TotalOrders = len(list.Orders), list.Total
	if data.Markers, err = s.trends(r, list.Orders, days); err != nil {
		return err
	}
	schema, err := s.schema(r)
	if err != nil {
		return err
	}
	known := schema.resources()
	for _, one := range known {
		data.Resources = append(data.Resources, one.name)
	}
	data.Resource = cmp.Or(r.FormValue("resource"), "heartrate")
	at := slices.Index(data.Resources, data.Resource)
	if at < 0 {
		return &apiError{Status: http.StatusUnprocessableEntity, Message: "resource: must be one of those in the form"}
	}
	step, err := bucketOf("day", days.days())
	if err != nil {
		return err
	}
	found, err := s.series(r, userPath(r), known[at], days, step)
	if err != nil {
		return err
	}
	panels := []panel{{title: words(data.Resource) + " (" + known[at].fields[0].Unit + ", by day)", lines: found.lines}}
	data.Chosen = chosenMarkers(r.Form["marker"], data.Markers)
	for _, m := range data.Markers {
		if slices.Contains(data.Chosen, m.Slug) && len(m.values) > 0 {
			title := m.Name + " (" + m.Unit + ")"
			if m.Range != "" {
				title += ", range " + m.Range
			}
			panels = append(panels, panel{title: title, low: m.low, high: m.high, lines: []line{{points: m.values, dots: true, colour: 4}}})
		}
	}
	if len(panels) > 1 || len(found.lines) > 0 {
		data.Chart = draw("lab results beside "+words(data.Resource), panels...)
	}
	return s.show(w, r, on, "labs", data.title(), data)
}

// chosenMarkers returns the markers of the form, or the first ones with numbers.
func chosenMarkers(form []string, markers []markerTrend) (list []string) {
	if len(form) > 0 {
		return form
	}
	for _, m := range markers {
		if len(m.values) > 0 && len(list) < 3 {
			list = append(list, m.Slug)
		}
	}
	return list
}

// trends reads the results of orders by marker, in the order of their names.
func (s *Console) trends(r *http.Request, list []order, days rangeOf) ([]markerTrend, error) {
	bySlug := map[string]*markerTrend{}
	for i := len(list) - 1; i >= 0; i-- {
		var got struct {
			Metadata struct {
				Collected string `json:"date_collected"`
				Reported  string `json:"date_reported"`
			} `json:"metadata"`
			Results []labResult `json:"results"`
		}
		if err := s.optional(s.get(r, "/v3/order/"+url.PathEscape(list[i].ID)+"/result", nil, &got)); err != nil {
			return nil, err
		}
		at, err := time.Parse(time.RFC3339, cmp.Or(got.Metadata.Collected, got.Metadata.Reported))
		if err != nil {
			at = list[i].Created
		}
		at = at.UTC()
		if at.Before(days.from) || at.After(days.to.Add(day)) {
			continue
		}
		for _, one := range got.Results {
			slug := cmp.Or(one.Slug, one.Name)
			m := bySlug[slug]
			if m == nil {
				m = &markerTrend{Slug: slug, Name: one.Name}
				bySlug[slug] = m
			}
			m.Unit, m.Range, m.Last = one.Unit, one.Bounds(), one.Result
			m.low, m.high = one.Low, one.High
			m.Outside = one.Interpretation != "" && one.Interpretation != "normal" && one.Interpretation != "unknown"
			if v, err := strconv.ParseFloat(one.Result, 64); err == nil {
				m.values = append(m.values, point{at, v})
			}
		}
	}
	var out []markerTrend
	for _, m := range bySlug {
		slices.SortStableFunc(m.values, func(a, b point) int { return a.at.Compare(b.at) })
		out = append(out, *m)
	}
	slices.SortFunc(out, func(a, b markerTrend) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Slug, b.Slug)) })
	return out, nil
}
