package console

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// order is an order as the API publishes it.
type order struct {
	ID      string `json:"id"`
	UserID  string `json:"user_id"`
	Status  string `json:"status"`
	Sample  string `json:"sample_id"`
	LabTest struct {
		Name string `json:"name"`
	} `json:"lab_test"`
	Created        time.Time    `json:"created_at"`
	Updated        time.Time    `json:"updated_at"`
	Interpretation string       `json:"interpretation"`
	Origin         string       `json:"origin"`
	Events         []orderEvent `json:"events"`
	// Critical is the history of the order's critical results.
	Critical []struct {
		ID string `json:"critical_result_id"`
		criticalEntry
	} `json:"critical_history"`
}

type orderEvent struct {
	At     time.Time `json:"created_at"`
	Status string    `json:"status"`
	Detail string    `json:"status_detail"`
}

// orderFilters names the filters of the order list that the form shows at once. The form shows the others below "More
// filters".
var orderFilters = []string{"search_input", "status", "start_date", "end_date", "user_id"}

func (s *Console) orders(w http.ResponseWriter, r *http.Request, on *session) error {
	var data struct {
		Orders            []order     `json:"orders"`
		Total, Page, Size int         `json:",omitempty"`
		First, More       []parameter `json:"-"`
		Filtered          bool        `json:"-"`
		Prev, Next        string      `json:"-"`
	}
	c, err := s.contract(r)
	if err != nil {
		return err
	}
	q := url.Values{"size": {"50"}}
	form := r.URL.Query()
	for _, p := range c.parameters("/v3/orders", "get") {
		values := slices.DeleteFunc(slices.Clone(form[p.Name]), func(v string) bool { return v == "" })
		if p.Name == "user_id" && len(values) > 0 {
			id, err := s.userID(r, values[0])
			if err != nil {
				return err
			}
			values = []string{id}
		}
		if len(values) > 0 {
			q[p.Name], p.Value = values, values[0]
		}
		switch {
		case p.Kind == "number":
		case slices.Contains(orderFilters, p.Name):
			data.First = append(data.First, p)
		default:
			data.More = append(data.More, p)
			data.Filtered = data.Filtered || p.Value != ""
		}
	}
	slices.SortStableFunc(data.First, func(a, b parameter) int {
		return slices.Index(orderFilters, a.Name) - slices.Index(orderFilters, b.Name)
	})
	if q.Get("order_key") == "" {
		q.Set("order_key", "created_at")
		q.Set("order_direction", cmp.Or(q.Get("order_direction"), "desc"))
	}
	if err := s.get(r, "/v3/orders", q, &data); err != nil {
		return err
	}
	turn := func(n int) string {
		next := maps.Clone(form)
		next.Set("page", strconv.Itoa(n))
		return "?" + next.Encode()
	}
	page := max(data.Page, 1)
	if page > 1 {
		data.Prev = turn(page - 1)
	}
	if page*50 < data.Total {
		data.Next = turn(page + 1)
	}
	return s.show(w, r, on, "orders", "Orders", data)
}

// labResult is the result of one marker of an order, as the API publishes it.
type labResult struct {
	Name           string   `json:"name"`
	Slug           string   `json:"slug"`
	Result         string   `json:"result"`
	Unit           string   `json:"unit"`
	Range          string   `json:"reference_range"`
	Low            *float64 `json:"min_range_value"`
	High           *float64 `json:"max_range_value"`
	Interpretation string   `json:"interpretation"`
}

// Bounds returns the reference range as text.
func (l *labResult) Bounds() string {
	switch {
	case l.Range != "":
		return l.Range
	case l.Low != nil && l.High != nil:
		return fmt.Sprintf("%g to %g", *l.Low, *l.High)
	case l.Low != nil:
		return fmt.Sprintf("from %g", *l.Low)
	case l.High != nil:
		return fmt.Sprintf("to %g", *l.High)
	}
	return ""
}

func (s *Console) order(w http.ResponseWriter, r *http.Request, on *session) error {
	id := url.PathEscape(r.PathValue("id"))
	var data struct {
		Order     order
		Results   []labResult `json:"results"`
		Diagram   *diagram    `json:"-"`
		Documents []document  `json:"-"`
		Held      []held      `json:"-"`
		MoreHeld  bool        `json:"-"` // the API holds more results than were read
		Simulate  []string    `json:"-"`
		// Interpretations lists the possible interpretations of a simulated result.
		Interpretations []string `json:"-"`
	}
	if err := s.get(r, "/v3/order/"+id, nil, &data.Order); err != nil {
		return err
	}
	c, err := s.contract(r)
	if err != nil {
		return err
	}
	lives, err := s.lifecycles(r)
	if err != nil {
		return err
	}
	slices.SortStableFunc(data.Order.Events, func(a, b orderEvent) int { return a.At.Compare(b.At) })
	method := ""
	var had []string
	for _, e := range data.Order.Events {
		parts := strings.Split(e.Status, ".")
		if len(parts) == 3 {
			method = parts[1]
			had = append(had, parts[2])
		}
	}
	for i := range lives {
		if lives[i].Method == method {
			data.Diagram = lives[i].draw(had)
		}
	}
	if data.Documents, err = s.documents(r, c, data.Order.ID); err != nil {
		return err
	}
	if data.Held, data.MoreHeld, err = s.reviewsForOrder(r, data.Order.ID); err != nil {
		return err
	}
	if s.Environment == "sandbox" {
		for _, status := range c.enum("/v3/order/{order_id}/test", "post", "final_status") {
			if strings.Contains(status, "."+method+".") {
				data.Simulate = append(data.Simulate, status)
			}
		}
		data.Interpretations = c.interpretations()
	}
	var failed *apiError
	if err := s.get(r, "/v3/order/"+id+"/result", nil, &data); err != nil && (!errors.As(err, &failed) || failed.Status >= 500) {
		return err // the API answers 4xx for an order without results
	}
	return s.show(w, r, on, "order", "Order "+data.Order.ID, data)
}

// documents returns the PDF documents of an order that exist.
func (s *Console) documents(r *http.Request, c *contract, order string) (list []document, err error) {
	below := "/v3/order/" + order + "/"
	var has struct {
		Documents []struct {
			Path string `json:"path"`
		} `json:"documents"`
	}
	if err := s.optional(s.get(r, below+"documents", nil, &has)); err != nil {
		return nil, err
	}
	named := c.documents("/v3/order/{order_id}/")
	for _, one := range has.Documents {
		at := slices.IndexFunc(named, func(d document) bool { return below+d.Path == one.Path })
		if at >= 0 {
			list = append(list, named[at])
		}
	}
	return list, nil
}

// reviewsForOrder returns the results under review for which the order id is a candidate. It looks at the newest 100
// results; more reports whether there are others.
func (s *Console) reviewsForOrder(r *http.Request, id string) (list []held, more bool, err error) {
	var page struct {
		Data []held `json:"data"`
		Next string `json:"next_cursor"`
	}
	if err := s.optional(s.get(r, "/v3/unmatched_result", url.Values{"limit": {"100"}}, &page)); err != nil {
		return nil, false, err
	}
	for _, h := range page.Data {
		if h.hasCandidate(id) {
			list = append(list, h)
		}
	}
	return list, page.Next != "", nil
}

// document answers with a PDF file of an order.
func (s *Console) document(w http.ResponseWriter, r *http.Request, _ *session) error {
	c, err := s.contract(r)
	if err != nil {
		return err
	}
	path := r.PathValue("document")
	if !slices.ContainsFunc(c.documents("/v3/order/{order_id}/"), func(d document) bool { return d.Path == path }) {
		return &apiError{Status: http.StatusNotFound, Message: "document not found"}
	}
	q := url.Values{}
	if strings.HasPrefix(path, "labels/") {
		q.Set("collection_date", s.Now().UTC().Format(time.RFC3339))
	}
	a, err := s.send(r, http.MethodGet, "/v3/order/"+url.PathEscape(r.PathValue("id"))+"/"+path, q, s.teamKeys(r, "application/pdf"), nil)
	if err != nil {
		return err
	}
	return sendFile(w, a, strings.NewReplacer("/pdf", "", "_pdf", "").Replace(path)+".pdf")
}

// simulate moves an order of the sandbox to a status.
func (s *Console) simulate(w http.ResponseWriter, r *http.Request, _ *session) error {
	id := url.PathEscape(r.PathValue("id"))
	q := url.Values{}
	if status := r.PostFormValue("final_status"); status != "" {
		q.Set("final_status", status)
	}
	in := map[string]any{}
	if interpretation := r.PostFormValue("interpretation"); interpretation != "" {
		in["interpretation"] = interpretation
	}
	if err := s.call(r, http.MethodPost, "/v3/order/"+id+"/test", q, s.teamKeys(r, "application/json"), in, nil); err != nil {
		return err
	}
	http.Redirect(w, r, s.Path+"/orders/"+id, http.StatusSeeOther)
	return nil
}

// held is a result under review, as the API returns it.
type held struct {
	ID       string   `json:"id"`
	Status   string   `json:"status"`
	Decision string   `json:"decision_code"`
	Reason   string   `json:"reason"`
	Actions  []string `json:"allowed_actions"`
	// Resolution, Order and Note describe the decision; empty before the decision.
	Resolution string `json:"resolution_action"`
	Order      string `json:"resolved_order_id"`
	Note       string `json:"note"`
	Lab        struct {
		Name string `json:"name"`
	} `json:"lab"`
	Patient *struct {
		First     string `json:"first_name"`
		Second    string `json:"second_name"`
		Last      string `json:"last_name"`
		Suffix    string `json:"suffix"`
		Birth     string `json:"dob"`
		BirthText string `json:"dob_text"`
		Gender    string `json:"gender"`
	} `json:"patient"`
	Markers []struct {
		Name   string `json:"name"`
		Result string `json:"result"`
		Unit   string `json:"unit"`
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

// CanAccept reports whether the API allows a reviewer to accept the result.
func (h *held) CanAccept() bool { return slices.Contains(h.Actions, "accept") }

// hasCandidate reports whether the API proposes an order as the one to which the result may belong.
func (h *held) hasCandidate(order string) bool {
	for _, g := range h.Groups {
		for _, c := range g.Candidates {
			if c.OrderID == order {
				return true
			}
		}
	}
	return false
}

// cursorList holds what the pages of all lists with a cursor share: the link to the next page, and the query parameters
// of the list with their values.
type cursorList struct {
	Next     string      `json:"next_cursor"`
	Filters  []parameter `json:"-"`
	Filtered bool        `json:"-"`
}

// readCursorList reads a page of the list at path into data, with the filters of the request. It sets the link and the
// filters of list, which must be part of data.
func (s *Console) readCursorList(r *http.Request, path string, data any, list *cursorList) error {
	c, err := s.contract(r)
	if err != nil {
		return err
	}
	q, filters := url.Values{"limit": {"50"}}, url.Values{}
	for _, p := range c.parameters(path, "get") {
		if p.Value = r.FormValue(p.Name); p.Value != "" && p.Kind != "number" {
			q.Set(p.Name, p.Value)
		}
		if p.Kind == "number" || p.Name == "next_cursor" {
			continue
		}
		list.Filters = append(list.Filters, p)
		if p.Value != "" {
			filters.Set(p.Name, p.Value)
			list.Filtered = true
		}
	}
	if err := s.get(r, path, q, data); err != nil {
		return err
	}
	if list.Next != "" {
		filters.Set("next_cursor", list.Next)
		list.Next = "?" + filters.Encode()
	}
	return nil
}

func (s *Console) reviews(w http.ResponseWriter, r *http.Request, on *session) error {
	var data struct {
		cursorList
		Data  []held `json:"data"`
		Total int    `json:"total"`
	}
	if err := s.readCursorList(r, "/v3/unmatched_result", &data, &data.cursorList); err != nil {
		return err
	}
	return s.show(w, r, on, "reviews", "Results under review", data)
}

func (s *Console) review(w http.ResponseWriter, r *http.Request, on *session) error {
	var data held
	if err := s.get(r, "/v3/unmatched_result/"+url.PathEscape(r.PathValue("id")), nil, &data); err != nil {
		return err
	}
	return s.show(w, r, on, "review", "Result under review", &data)
}

// decide accepts a result under review for a user or an order, rejects it, or marks it as unsure, as the form says.
func (s *Console) decide(w http.ResponseWriter, r *http.Request, _ *session) error {
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
