package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
)

// apiError is an answer of the API other than 2xx.
type apiError struct {
	Status  int
	Message string
}

func (e *apiError) Error() string { return fmt.Sprintf("API status %d", e.Status) }

// answer holds a response of the API in memory.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

func (a *answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(b)
}

// get reads a team operation.
func (s *console) get(r *http.Request, path string, q url.Values, out any) error {
	return s.call(r, http.MethodGet, path, q, s.KeyHeader, s.TeamKey, nil, out)
}

// post sends a team operation.
func (s *console) post(r *http.Request, path string, in, out any) error {
	return s.call(r, http.MethodPost, path, nil, s.KeyHeader, s.TeamKey, in, out)
}

// manage calls a management operation below the organisation with the key of the session.
func (s *console) manage(r *http.Request, on *session, method, path string, q url.Values, out any) error {
	return s.call(r, method, "/v1/org/"+s.Org+path, q, managementHeader, on.key, nil, out)
}

const managementHeader = "x-management-key"

// call sends a request to the API and decodes a 2xx answer into out, unless out is nil.
func (s *console) call(r *http.Request, method, path string, q url.Values, header, key string, in, out any) error {
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(r.Context(), method, path, &body) //nolint:gosec // API is a handler, so no request leaves the process
	if err != nil {                                                          // an id of the page's address is no part of a path; the error has its text
		return &apiError{Status: http.StatusNotFound, Message: "page not found"}
	}
	req.URL.RawQuery = q.Encode()
	req.Host, req.RemoteAddr, req.RequestURI = r.Host, r.RemoteAddr, req.URL.RequestURI()
	for _, name := range []string{"Forwarded", "X-Forwarded-For"} { // the API limits requests by address
		if v := r.Header.Values(name); len(v) > 0 {
			req.Header[name] = v
		}
	}
	req.Header.Set(header, key)
	req.Header.Set("Accept", "application/json")
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	a := &answer{header: http.Header{}}
	s.API.ServeHTTP(a, req)
	if a.status/100 != 2 {
		return &apiError{Status: max(a.status, 400), Message: message(a.body.Bytes())}
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(a.body.Bytes(), out); err != nil {
		return fmt.Errorf("the answer of %s does not decode into %T", method, out) // err may have a value of a person
	}
	return nil
}

// message returns the text of an error body of the API.
func message(body []byte) string {
	var one struct {
		Detail struct {
			Message string `json:"error_message"`
		} `json:"detail"`
	}
	if json.Unmarshal(body, &one) == nil && one.Detail.Message != "" {
		return one.Detail.Message
	}
	var many struct {
		Detail []struct {
			Loc []any  `json:"loc"`
			Msg string `json:"msg"`
		} `json:"detail"`
	}
	text := ""
	if json.Unmarshal(body, &many) == nil {
		for _, d := range many.Detail {
			text += fmt.Sprintf("%v: %s. ", d.Loc, d.Msg)
		}
	}
	return text
}
