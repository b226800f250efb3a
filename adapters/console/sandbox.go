package console

import (
	"cmp"
	"crypto/rand"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// labTest is an orderable test.
type labTest struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

func (s *Console) requireSandbox() error {
	if s.Environment != "sandbox" {
		return &apiError{Status: http.StatusNotFound, Message: "page not found; only a sandbox makes people and orders"}
	}
	return nil
}

// sandbox shows the forms that create people, data, orders and results.
func (s *Console) sandbox(w http.ResponseWriter, r *http.Request, on *session) error {
	if err := s.requireSandbox(); err != nil {
		return err
	}
	var data struct {
		Providers         []provider
		Units             []resource
		Tests             []labTest `json:"data"`
		Orders            []order   `json:"orders"`
		Cases             []string  `json:"-"`
		Interpretations   []string  `json:"-"`
		User, Done, Count string
	}
	data.User, data.Done, data.Count = r.FormValue("user"), r.FormValue("done"), r.FormValue("new")
	if err := s.get(r, "/v2/providers", url.Values{"demo": {"true"}}, &data.Providers); err != nil {
		return err
	}
	c, err := s.contract(r)
	if err != nil {
		return err
	}
	data.Interpretations = c.interpretations()
	if data.Cases, err = s.cases(r); err != nil {
		return err
	}
	schema, err := s.schema(r)
	if err != nil {
		return err
	}
	for _, one := range schema.resources() {
		if len(one.fields) == 1 && !one.sum {
			data.Units = append(data.Units, one)
		}
	}
	if err := s.optional(s.get(r, "/v3/lab_test", url.Values{"collection_method": {"testkit"}, "lab_test_limit": {"50"}}, &data)); err != nil {
		return err
	}
	newest := url.Values{"size": {"10"}, "order_key": {"created_at"}, "order_direction": {"desc"}}
	if err := s.optional(s.get(r, "/v3/orders", newest, &data)); err != nil {
		return err
	}
	return s.show(w, r, on, "sandbox", "Sandbox", data)
}

// cases returns the reasons for a review that the sandbox can simulate, without those that only some laboratories have.
func (s *Console) cases(r *http.Request) ([]string, error) {
	var rules struct {
		Data []struct {
			Case   string   `json:"case"`
			Limits []string `json:"lab_constraints"`
		} `json:"data"`
	}
	err := s.optional(s.get(r, "/v3/unmatched_result_test/case", nil, &rules))
	var list []string
	for _, one := range rules.Data {
		if len(one.Limits) == 0 {
			list = append(list, one.Case)
		}
	}
	return list, err
}

func (s *Console) redirectMade(w http.ResponseWriter, r *http.Request, q url.Values) error {
	http.Redirect(w, r, s.Path+"/sandbox?"+q.Encode(), http.StatusSeeOther)
	return nil
}

// makePerson creates a person with the history of one or two sources, and with lab results if the form selects an
// interpretation.
func (s *Console) makePerson(w http.ResponseWriter, r *http.Request, _ *session) error {
	if err := s.requireSandbox(); err != nil {
		return err
	}
	var made user
	in := map[string]any{"client_user_id": r.PostFormValue("client_user_id")}
	if zone := r.PostFormValue("time_zone"); zone != "" {
		in["fallback_time_zone"] = zone
	}
	if err := s.post(r, "/v2/user/", in, &made); err != nil {
		return err
	}
	for _, name := range []string{"provider", "second_provider"} {
		slug := r.PostFormValue(name)
		if slug == "" || name == "second_provider" && slug == r.PostFormValue("provider") {
			continue
		}
		if err := s.post(r, "/v2/link/connect/demo", map[string]any{"user_id": made.ID, "provider": slug}, nil); err != nil {
			return err
		}
	}
	if interpretation := r.PostFormValue("interpretation"); interpretation != "" {
		id, err := s.orderKit(r, made.ID, r.PostFormValue("lab_test_id"))
		if err != nil {
			return err
		}
		if err := s.post(r, "/v3/order/"+url.PathEscape(id)+"/test", map[string]any{"interpretation": interpretation}, nil); err != nil {
			return err
		}
	}
	http.Redirect(w, r, s.Path+"/users/"+made.ID, http.StatusSeeOther)
	return nil
}

// pushData stores one sample of a person, as an app of that person would.
func (s *Console) pushData(w http.ResponseWriter, r *http.Request, _ *session) error {
	if err := s.requireSandbox(); err != nil {
		return err
	}
	id, err := s.userID(r, r.PostFormValue("user_id"))
	if err != nil {
		return err
	}
	name := r.PostFormValue("resource")
	value, err := strconv.ParseFloat(r.PostFormValue("value"), 64)
	if err != nil {
		return &apiError{Status: http.StatusUnprocessableEntity, Message: "value: must be a number like 61.5"}
	}
	schema, err := s.schema(r)
	if err != nil {
		return err
	}
	unit := ""
	for _, one := range schema.resources() {
		if one.name == name {
			unit = one.fields[0].Unit
		}
	}
	if unit == "" {
		return &apiError{Status: http.StatusUnprocessableEntity, Message: "resource: must be one of those in the form"}
	}
	if err := s.post(r, "/v2/link/provider/manual/manual", map[string]any{"user_id": id}, nil); err != nil {
		return err
	}
	sample := map[string]any{"timestamp": s.Now().UTC().Format(time.RFC3339), "timezone_offset": 0, "unit": unit, "value": value}
	in := map[string]any{"provider": "manual", "source": map[string]any{"type": "app"}, "data": []any{sample}}
	var counts struct {
		New int `json:"new"`
	}
	if err := s.post(r, "/v2/timeseries/"+url.PathEscape(id)+"/"+url.PathEscape(name), in, &counts); err != nil {
		return err
	}
	return s.redirectMade(w, r, url.Values{"done": {"data"}, "user": {id}, "new": {strconv.Itoa(counts.New)}})
}

// placeOrder orders a test kit for a person.
func (s *Console) placeOrder(w http.ResponseWriter, r *http.Request, _ *session) error {
	if err := s.requireSandbox(); err != nil {
		return err
	}
	user, err := s.userID(r, r.PostFormValue("user_id"))
	if err != nil {
		return err
	}
	id, err := s.orderKit(r, user, r.PostFormValue("lab_test_id"))
	if err != nil {
		return err
	}
	http.Redirect(w, r, s.Path+"/orders/"+url.PathEscape(id), http.StatusSeeOther)
	return nil
}

// orderKit orders a test kit with invented details of the patient and returns the order's id.
func (s *Console) orderKit(r *http.Request, user, test string) (string, error) {
	in := map[string]any{
		"user_id":   user,
		"order_set": map[string]any{"lab_test_ids": []string{test}},
		"patient_details": map[string]any{
			"first_name": "Sandbox", "last_name": "Person", "dob": "1984-05-09", "gender": "female",
			"phone_number": "+12175550100", "email": "sandbox@example.org",
		},
		"patient_address": map[string]any{
			"receiver_name": "Sandbox Person", "first_line": "1 Example Street", "city": "Springfield", "state": "IL",
			"zip": "62701", "country": "US", "phone_number": "+12175550100",
		},
	}
	var placed struct {
		Order struct {
			ID string `json:"id"`
		} `json:"order"`
	}
	err := s.post(r, "/v3/order", in, &placed)
	return placed.Order.ID, err
}

// sendUnmatchedResult makes the sandbox's laboratory send a result that is not matched to an order automatically, so
// that it waits for a review.
func (s *Console) sendUnmatchedResult(w http.ResponseWriter, r *http.Request, _ *session) error {
	if err := s.requireSandbox(); err != nil {
		return err
	}
	header := s.teamKeys(r, "application/json")
	header.Set("X-Idempotency-Key", rand.Text())
	in := map[string]any{"case": cmp.Or(r.PostFormValue("case"), "no_match"), "order_source": "managed"}
	if err := s.call(r, http.MethodPost, "/v3/unmatched_result_test", nil, header, in, nil); err != nil {
		return err
	}
	return s.redirectMade(w, r, url.Values{"done": {"result"}})
}

// refresh pulls new data from the sources of a person.
func (s *Console) refresh(w http.ResponseWriter, r *http.Request, _ *session) error {
	if err := s.post(r, "/v2/user/refresh/"+userPath(r), nil, nil); err != nil {
		return err
	}
	http.Redirect(w, r, s.Path+"/users/"+userPath(r), http.StatusSeeOther) //nolint:gosec // the path is the console's
	return nil
}
