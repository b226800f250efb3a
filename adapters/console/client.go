package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// apiError is an API answer with a status other than 2xx.
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

func (s *Console) get(r *http.Request, path string, q url.Values, out any) error {
	return s.call(r, http.MethodGet, path, q, s.teamKeys(r, "application/json"), nil, out)
}

func (s *Console) post(r *http.Request, path string, in, out any) error {
	return s.call(r, http.MethodPost, path, nil, s.teamKeys(r, "application/json"), in, out)
}

func (s *Console) teamKeys(r *http.Request, kind string) http.Header {
	// With the session's management key, the API checks the role for personal data, and names the key's holder in the
	// access log.
	on, _ := r.Context().Value(sessionKey{}).(*session)
	return http.Header{s.KeyHeader: {s.TeamKey}, managementHeader: {on.key}, "Accept": {kind}}
}

func (s *Console) manage(r *http.Request, on *session, method, path string, q url.Values, in, out any) error {
	return s.call(r, method, "/v1/org/"+s.Org+path, q, http.Header{managementHeader: {on.key}, "Accept": {"application/json"}}, in, out)
}

const managementHeader = "x-management-key"

// call sends a request to the API and decodes a 2xx answer into out, unless out is nil.
func (s *Console) call(r *http.Request, method, path string, q url.Values, header http.Header, in, out any) error {
	a, err := s.send(r, method, path, q, header, in)
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(a.body.Bytes(), out); err != nil {
		return fmt.Errorf("the answer of the API to a %s must be JSON that fits the contract", method) // err may have a value of a person
	}
	return nil
}

// send returns a 2xx answer of the API. Another status is an apiError.
func (s *Console) send(r *http.Request, method, path string, q url.Values, header http.Header, in any) (*answer, error) {
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(r.Context(), method, path, &body)
	if err != nil { // an id in the page's address is not valid in a path; the error says so
		return nil, &apiError{Status: http.StatusNotFound, Message: "page not found"}
	}
	req.URL.RawQuery = q.Encode()
	req.Host, req.RemoteAddr, req.RequestURI = r.Host, r.RemoteAddr, req.URL.RequestURI()
	for _, name := range []string{"Forwarded", "X-Forwarded-For"} { // the API limits requests by address
		if v := r.Header.Values(name); len(v) > 0 {
			req.Header[name] = v
		}
	}
	for name, v := range header {
		req.Header.Set(name, v[0])
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	a := &answer{header: http.Header{}}
	s.API.ServeHTTP(a, req)
	if a.status/100 != 2 {
		return nil, &apiError{Status: max(a.status, 400), Message: message(a.body.Bytes())}
	}
	return a, nil
}

func asJSON(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	return json.NewEncoder(w).Encode(v)
}

func sendFile(w http.ResponseWriter, a *answer, name string) error {
	w.Header().Set("Content-Type", a.header.Get("Content-Type"))
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	_, err := w.Write(a.body.Bytes())
	return err
}

// optional returns nil if err is an API answer with status 404 or 501, which means that there is no data or that the
// host does not serve the operation. It returns other errors unchanged.
func (*Console) optional(err error) error {
	var failed *apiError
	if errors.As(err, &failed) && (failed.Status == http.StatusNotFound || failed.Status == http.StatusNotImplemented) {
		return nil
	}
	return err
}

// message returns the message of the API in the body of an answer with an error status.
func message(body []byte) string {
	var one struct {
		Detail struct {
			Message string `json:"error_message"`
		} `json:"detail"`
		Error string `json:"error"` // of a refresh of a user without sources
	}
	if json.Unmarshal(body, &one) == nil && one.Detail.Message+one.Error != "" {
		return cmp.Or(one.Detail.Message, one.Error)
	}
	var many struct {
		Detail []struct {
			Loc []any  `json:"loc"`
			Msg string `json:"msg"`
		} `json:"detail"`
	}
	var problems []string
	if json.Unmarshal(body, &many) == nil {
		for _, d := range many.Detail {
			var names []string // path of the problem without its first element, such as body
			for i, name := range d.Loc {
				if i > 0 || len(d.Loc) == 1 {
					names = append(names, fmt.Sprint(name))
				}
			}
			problems = append(problems, strings.Join(names, ".")+": "+d.Msg)
		}
	}
	return cmp.Or(strings.Join(problems, ". "), "The API gives no reason.")
}
