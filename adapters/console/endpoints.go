package console

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// endpointPage is an endpoint with the forms that change it.
type endpointPage struct {
	Endpoint    endpoint
	Types       string // one event type per line
	Rate        string
	Headers     string // one header per line
	Sensitive   []string
	Secret      string // empty unless requested
	Saved, Made bool
	Sent        *testResult
	EventTypes  []string
}

// testResult is the outcome of a test message.
type testResult struct {
	Type     string `json:"-"`
	Outcome  string `json:"outcome"`
	Status   *int   `json:"status_code"`
	Duration int    `json:"duration_ms"`
}

func (s *Console) endpointPath(r *http.Request) string {
	return s.webhooks() + "/" + url.PathEscape(r.PathValue("webhook"))
}

func (s *Console) endpoint(w http.ResponseWriter, r *http.Request, on *session) error {
	return s.showEndpoint(w, r, on, endpointPage{Saved: r.FormValue("saved") != "", Made: r.FormValue("made") != ""})
}

// showEndpoint shows the page of an endpoint. data holds the result of a form that was sent from the page; it is empty
// otherwise.
func (s *Console) showEndpoint(w http.ResponseWriter, r *http.Request, on *session, data endpointPage) error {
	if err := s.manage(r, on, http.MethodGet, s.endpointPath(r), nil, nil, &data.Endpoint); err != nil {
		return err
	}
	data.Types = strings.Join(data.Endpoint.Types, "\n")
	if data.Endpoint.Rate != nil {
		data.Rate = strconv.Itoa(*data.Endpoint.Rate)
	}
	if holderOf(r).May("developer") {
		var set struct {
			Headers   map[string]string `json:"headers"`
			Sensitive []string          `json:"sensitive"`
		}
		if err := s.optional(s.manage(r, on, http.MethodGet, s.endpointPath(r)+"/headers", nil, nil, &set)); err != nil {
			return err
		}
		var lines []string
		for name, value := range set.Headers {
			lines = append(lines, name+": "+value)
		}
		slices.Sort(lines)
		data.Headers, data.Sensitive = strings.Join(lines, "\n"), set.Sensitive
	}
	c, err := s.contract(r)
	if err != nil {
		return err
	}
	data.EventTypes = c.eventTypes()
	return s.show(w, r, on, "endpoint", "Webhook endpoint", data)
}

// endpointForm returns the fields of a sent form as the body of a request that creates or changes an endpoint.
func endpointForm(r *http.Request) (map[string]any, error) {
	in := map[string]any{"url": strings.TrimSpace(r.PostFormValue("url")), "description": r.PostFormValue("description"), "rate_limit": nil, "filter_types": nil}
	if text := strings.TrimSpace(r.PostFormValue("rate_limit")); text != "" {
		n, err := parseIntField("rate_limit", text)
		if err != nil {
			return nil, err
		}
		in["rate_limit"] = n
	}
	if types := strings.Fields(r.PostFormValue("filter_types")); len(types) > 0 {
		in["filter_types"] = types
	}
	return in, nil
}

// makeEndpoint makes an endpoint and redirects to its page.
func (s *Console) makeEndpoint(w http.ResponseWriter, r *http.Request, on *session) error {
	in, err := endpointForm(r)
	if err != nil {
		return err
	}
	var made endpoint
	if err := s.manage(r, on, http.MethodPost, s.webhooks(), nil, in, &made); err != nil {
		return err
	}
	http.Redirect(w, r, s.Path+"/endpoints/"+url.PathEscape(made.ID)+"?made=1", http.StatusSeeOther)
	return nil
}

// changeEndpoint changes an endpoint to the fields in a form.
func (s *Console) changeEndpoint(w http.ResponseWriter, r *http.Request, on *session) error {
	in, err := endpointForm(r)
	if err != nil {
		return err
	}
	if err := s.manage(r, on, http.MethodPatch, s.endpointPath(r), nil, in, nil); err != nil {
		return err
	}
	return s.backToEndpoint(w, r)
}

func (s *Console) backToEndpoint(w http.ResponseWriter, r *http.Request) error {
	http.Redirect(w, r, s.Path+"/endpoints/"+url.PathEscape(r.PathValue("webhook"))+"?saved=1", http.StatusSeeOther)
	return nil
}

// actOnEndpoint performs the action of a button on an endpoint's page.
func (s *Console) actOnEndpoint(w http.ResponseWriter, r *http.Request, on *session) error {
	path := s.endpointPath(r)
	var shown endpointPage
	switch r.PathValue("action") {
	case "secret":
		var secret struct {
			Key string `json:"key"`
		}
		err := s.manage(r, on, http.MethodGet, path+"/secret", nil, nil, &secret)
		shown.Secret = secret.Key
		if err != nil {
			return err
		}
		return s.showEndpoint(w, r, on, shown)
	case "rotate":
		if err := s.manage(r, on, http.MethodPost, path+"/secret/rotate", nil, struct{}{}, nil); err != nil {
			return err
		}
		return s.backToEndpoint(w, r)
	case "state":
		if err := s.manage(r, on, http.MethodPatch, path, nil, map[string]any{"disabled": r.PostFormValue("disabled") == "true"}, nil); err != nil {
			return err
		}
		return s.backToEndpoint(w, r)
	case "headers":
		headers, err := headersOf(r.PostFormValue("headers"))
		if err != nil {
			return err
		}
		if err := s.manage(r, on, http.MethodPut, path+"/headers", nil, map[string]any{"headers": headers}, nil); err != nil {
			return err
		}
		return s.backToEndpoint(w, r)
	case "test":
		shown.Sent = &testResult{Type: r.PostFormValue("event_type")}
		if err := s.manage(r, on, http.MethodPost, path+"/test", nil, map[string]any{"event_type": shown.Sent.Type}, shown.Sent); err != nil {
			return err
		}
		return s.showEndpoint(w, r, on, shown)
	case "delete":
		if err := s.manage(r, on, http.MethodDelete, path, nil, nil, nil); err != nil {
			return err
		}
		http.Redirect(w, r, s.Path+"/events", http.StatusSeeOther)
		return nil
	}
	return notFound(w, r, on)
}

// headersOf reads headers, one per line.
func headersOf(text string) (map[string]string, error) {
	out := map[string]string{}
	for one := range strings.Lines(unixLines(text)) {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		name, value, ok := strings.Cut(one, ":")
		if !ok {
			return nil, &apiError{Status: http.StatusUnprocessableEntity, Message: "headers: each line must be a name, a colon and a value, like X-Desk: 12"}
		}
		out[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return out, nil
}

func (s *Console) toEndpoint(w http.ResponseWriter, r *http.Request, _ *session) error {
	http.Redirect(w, r, s.Path+"/endpoints/"+url.PathEscape(r.PathValue("webhook")), http.StatusSeeOther)
	return nil
}
