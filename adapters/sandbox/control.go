package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/linking"
)

// maxTimes is the largest number of times that a message is sent.
const maxTimes = 100

// Control lets people who try a sandbox cause events at its providers that do not follow from a name (see
// [Behaviours]). It checks no credential: mount it behind a handler that does, with http.StripPrefix.
//
//	POST /{provider}/push      name, and optionally id, since, resource (repeated), times
//	POST /{provider}/withdraw  name
//
// The values are fields of a form. push makes the provider send a message that the account of a name has new data,
// to inlet at /v2/link/push/{provider}; with times, it sends the same message repeatedly. The answer is the list of
// inlet's statuses. withdraw withdraws the consent of a name for users of the caller: the function users returns
// those who are connected to the provider with the account. Connectors of other packages are ignored.
func Control(connectors map[string]linking.ProviderConnector, inlet http.Handler,
	users func(r *http.Request, provider, account string) ([]healthlab.UserID, error),
) http.Handler {
	of := func(w http.ResponseWriter, r *http.Request) (c *Connector, name string) {
		r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
		c, _ = connectors[r.PathValue("provider")].Puller.(*Connector)
		if c == nil {
			http.Error(w, "there is no such provider in the sandbox", http.StatusNotFound)
			return nil, ""
		}
		if name = r.PostFormValue("name"); name == "" {
			http.Error(w, "name is missing", http.StatusUnprocessableEntity)
			return nil, ""
		}
		return c, name
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{provider}/withdraw", func(w http.ResponseWriter, r *http.Request) {
		if c, name := of(w, r); c != nil {
			found, err := users(r, c.provider, c.account(name))
			switch {
			case errors.Is(err, healthlab.Unavailable), errors.Is(err, context.DeadlineExceeded):
				w.Header().Set("Retry-After", "5")
				http.Error(w, "the store does not answer; try again later", http.StatusServiceUnavailable)
			case err != nil:
				http.Error(w, "the users of the account cannot be found", http.StatusInternalServerError)
			case len(found) == 0:
				http.Error(w, "no user of the team is connected to this provider with that name", http.StatusNotFound)
			default:
				c.withdrawFor(name, found...)
				w.WriteHeader(http.StatusNoContent)
			}
		}
	})
	mux.HandleFunc("POST /{provider}/push", func(w http.ResponseWriter, r *http.Request) {
		if c, name := of(w, r); c != nil {
			c.pushForm(w, r, name, inlet)
		}
	})
	return mux
}

// pushForm sends the push message that the fields of a form describe to inlet, as often as the form says.
func (c *Connector) pushForm(w http.ResponseWriter, r *http.Request, name string, inlet http.Handler) {
	if len(c.pushKey) == 0 {
		http.Error(w, "the provider sends nothing by itself", http.StatusNotFound)
		return
	}
	var since time.Time
	times := 1
	var err error
	if v := r.PostForm.Get("since"); v != "" {
		since, err = time.Parse(time.RFC3339, v)
	}
	if v := r.PostForm.Get("times"); v != "" && err == nil {
		times, err = strconv.Atoi(v)
	}
	if err != nil || times < 1 || times > maxTimes {
		http.Error(w, "since is an instant, and times a number from 1 to 100", http.StatusUnprocessableEntity)
		return
	}
	id := r.PostForm.Get("id")
	if id == "" {
		id = c.now().UTC().Format(time.RFC3339Nano)
	}
	header, body := c.Push(id, name, since, r.PostForm["resource"]...)
	var answers struct {
		Statuses []int `json:"statuses"`
	}
	for range times {
		m, err := http.NewRequestWithContext(r.Context(), http.MethodPost, "/v2/link/push/"+c.provider, bytes.NewReader(body))
		if err != nil {
			http.Error(w, "the provider's name makes no address", http.StatusInternalServerError)
			return
		}
		m.Header = header.Clone()
		got := &status{header: http.Header{}}
		inlet.ServeHTTP(got, m)
		answers.Statuses = append(answers.Statuses, got.code)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answers)
}

// status is a ResponseWriter that stores only the status.
type status struct {
	header http.Header
	code   int
}

// Header returns headers that are not used.
func (s *status) Header() http.Header { return s.header }

// WriteHeader stores the first status.
func (s *status) WriteHeader(code int) {
	if s.code == 0 {
		s.code = code
	}
}

// Write discards the body.
func (s *status) Write(b []byte) (int, error) {
	s.WriteHeader(http.StatusOK)
	return len(b), nil
}
