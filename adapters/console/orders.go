package console

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// orderStatuses are the statuses that filters offer, in the order of the lifecycle.
var orderStatuses = []string{
	"ordered", "requisition_created", "requisition_bypassed", "awaiting_registration", "registered",
	"appointment_pending", "appointment_scheduled", "appointment_cancelled", "draw_completed",
	"transit_customer", "out_for_delivery", "with_customer", "transit_lab",
	"problem_in_transit_customer", "problem_in_transit_lab", "delivered_to_lab", "lab_processing_blocked",
	"partial_results", "completed", "corrected", "redraw_available", "sample_error",
	"failure_to_deliver_to_customer", "failure_to_deliver_to_lab", "lost", "do_not_process", "cancelled",
}

// order is an order as the API publishes it.
type order struct {
	ID      string `json:"id"`
	UserID  string `json:"user_id"`
	Status  string `json:"status"`
	Sample  string `json:"sample_id"`
	LabTest struct {
		Name string `json:"name"`
	} `json:"lab_test"`
	Created        time.Time `json:"created_at"`
	Updated        time.Time `json:"updated_at"`
	Interpretation string    `json:"interpretation"`
	Origin         string    `json:"origin"`
	Events         []struct {
		At     time.Time `json:"created_at"`
		Status string    `json:"status"`
		Detail string    `json:"status_detail"`
	} `json:"events"`
}

func (s *console) orders(w http.ResponseWriter, r *http.Request, on *session) error {
	var data struct {
		Orders            []order `json:"orders"`
		Total, Page, Size int
		Statuses          []string   `json:"-"`
		Query             url.Values `json:"-"`
		Prev, Next        string     `json:"-"`
	}
	q := url.Values{"size": {"50"}, "order_key": {"created_at"}, "order_direction": {"desc"}}
	form := r.URL.Query()
	for _, name := range []string{"search_input", "status", "start_date", "end_date", "user_id", "interpretation", "is_critical", "page"} {
		if v := form.Get(name); v != "" {
			q.Set(name, v)
		}
	}
	if err := s.get(r, "/v3/orders", q, &data); err != nil {
		return err
	}
	data.Statuses, data.Query = orderStatuses, form
	page := max(data.Page, 1)
	turn := func(n int) string {
		next := url.Values{}
		for k, v := range form {
			next[k] = v
		}
		next.Set("page", strconv.Itoa(n))
		return "?" + next.Encode()
	}
	if page > 1 {
		data.Prev = turn(page - 1)
	}
	if page*50 < data.Total {
		data.Next = turn(page + 1)
	}
	return s.show(w, r, on, "orders", "Orders", data)
}

// labResult is a marker's result as the API publishes it.
type labResult struct {
	Name           string   `json:"name"`
	Result         string   `json:"result"`
	Unit           string   `json:"unit"`
	Range          string   `json:"reference_range"`
	Low            *float64 `json:"min_range_value"`
	High           *float64 `json:"max_range_value"`
	Interpretation string   `json:"interpretation"`
}

func (s *console) order(w http.ResponseWriter, r *http.Request, on *session) error {
	id := url.PathEscape(r.PathValue("id"))
	var data struct {
		Order   order
		Results []labResult `json:"results"`
	}
	if err := s.get(r, "/v3/order/"+id, nil, &data.Order); err != nil {
		return err
	}
	slices.SortStableFunc(data.Order.Events, func(a, b struct {
		At     time.Time `json:"created_at"`
		Status string    `json:"status"`
		Detail string    `json:"status_detail"`
	}) int {
		return a.At.Compare(b.At)
	})
	var failed *apiError
	if err := s.get(r, "/v3/order/"+id+"/result", nil, &data); err != nil && (!errors.As(err, &failed) || failed.Status >= 500) {
		return err // an order without results answers 4xx
	}
	return s.show(w, r, on, "order", "Order "+data.Order.ID, data)
}

// held is a result under review as the API publishes it.
type held struct {
	ID       string   `json:"id"`
	Status   string   `json:"status"`
	Decision string   `json:"decision_code"`
	Reason   string   `json:"reason"`
	Actions  []string `json:"allowed_actions"`
	Lab      struct {
		Name string `json:"name"`
	} `json:"lab"`
	Patient *struct {
		First string `json:"first_name"`
		Last  string `json:"last_name"`
		Birth string `json:"dob"`
	} `json:"patient"`
	Markers []struct {
		Name string `json:"name"`
	} `json:"markers"`
	Groups []struct {
		UserID     string `json:"user_id"`
		Candidates []struct {
			OrderID    string   `json:"order_id"`
			Confidence string   `json:"confidence_level"`
			LastStatus string   `json:"last_status"`
			Reasons    []string `json:"reasons"`
		} `json:"candidates"`
	} `json:"candidate_groups"`
	Created time.Time `json:"created_at"`
}

func (s *console) reviews(w http.ResponseWriter, r *http.Request, on *session) error {
	var data struct {
		Data  []held `json:"data"`
		Total int    `json:"total"`
		Next  string `json:"next_cursor"`
	}
	q := url.Values{"limit": {"50"}}
	if c := r.FormValue("next_cursor"); c != "" {
		q.Set("next_cursor", c)
	}
	if err := s.get(r, "/v3/unmatched_result", q, &data); err != nil {
		return err
	}
	if data.Next != "" {
		data.Next = "?" + url.Values{"next_cursor": {data.Next}}.Encode()
	}
	return s.show(w, r, on, "reviews", "Results under review", data)
}

func (s *console) review(w http.ResponseWriter, r *http.Request, on *session) error {
	var data held
	if err := s.get(r, "/v3/unmatched_result/"+url.PathEscape(r.PathValue("id")), nil, &data); err != nil {
		return err
	}
	return s.show(w, r, on, "review", "Result under review", data)
}

// decide accepts a result for a user or an order, rejects it, or marks it as unsure.
func (s *console) decide(w http.ResponseWriter, r *http.Request, _ *session) error {
	id := url.PathEscape(r.PathValue("id"))
	path := "/v3/unmatched_result/" + id
	in := map[string]string{}
	put := func(key, value string) {
		if value != "" {
			in[key] = value
		}
	}
	put("note", r.PostFormValue("note"))
	if action := r.PostFormValue("action"); action == "accept" {
		path += "/accept"
		put("user_id", r.PostFormValue("user_id"))
		put("order_id", r.PostFormValue("order_id"))
	} else {
		path += "/resolve"
		put("action", action)
	}
	if err := s.post(r, path, in, nil); err != nil {
		return err
	}
	http.Redirect(w, r, s.Path+"/reviews/"+id, http.StatusSeeOther)
	return nil
}
