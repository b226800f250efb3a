package httpapi_test

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
	"github.com/healthlab-dev/healthlab/privacy/accesslog"
)

// An extension has the rules of the operations of the contract, and answers every error in its own form.
func TestExtension_isAuthenticatedAndLoggedLikeContractOperations(t *testing.T) {
	person := healthlab.UserID{UUID: uuid.New()}
	problem := &healthlab.InvalidError{Problems: []healthlab.Problem{{Path: []any{"limit"}, Code: "invalid", Msg: "must be 1"}}}
	var scopes organisation.Scopes
	failure := errors.New("a failure")
	answers := map[string]error{
		"fine": nil, "absent": fmt.Errorf("read: %w", healthlab.NotFound), "invalid": problem, "broken": failure,
	}
	access := newAccess(t)
	logs := &contract.Logs{}
	c := httpapi.Config{
		Authenticate: func(r *http.Request) (httpapi.Caller, error) {
			if r.Header.Get("x-service-api-key") == "" {
				return httpapi.Caller{}, healthlab.Unauthenticated
			}
			return httpapi.Caller{Team: team, User: person, Scopes: scopes}, nil
		},
		Access: access, Log: logs.Logger(),
	}
	h := httpapi.Extend(c, httpapi.Extension{
		ID: "read_other", Scopes: organisation.Scopes{organisation.OrdersRead},
		Handle: func(w http.ResponseWriter, r *http.Request, by httpapi.Access) error {
			require.Equal(t, person, by.User)
			require.NotEmpty(t, httpapi.RequestID(r.Context()))
			by.Concerns(person)
			by.Concerns(person)
			if r.URL.Path == "/panic" {
				panic("no")
			}
			if err := answers[r.URL.Path[1:]]; err != nil {
				return err
			}
			_, err := w.Write([]byte(`{}`))
			return err
		},
		Refuse: func(w http.ResponseWriter, f httpapi.Refusal) error {
			w.WriteHeader(f.Status)
			return json.NewEncoder(w).Encode(object{"own": f.Type, "problems": len(f.Problems)})
		},
	})[0]
	for _, step := range []struct {
		path, key string
		scopes    organisation.Scopes
		status    int
		body      string
		recorded  bool
	}{
		{"fine", "k", nil, 200, `{}`, true},
		{"fine", "", nil, 401, `{"own":"UNAUTHORIZED","problems":0}`, false},
		{"fine", "k", organisation.Scopes{organisation.DataRead}, 403, `{"own":"SCOPE_MISSING","problems":0}`, false},
		{"absent", "k", nil, 404, `{"own":"NOT_FOUND","problems":0}`, true},
		{"invalid", "k", nil, 422, `{"own":"INVALID_REQUEST","problems":1}`, true},
		{"broken", "k", nil, 500, `{"own":"INTERNAL_ERROR","problems":0}`, true},
		{"panic", "k", nil, 500, `{"own":"INTERNAL_ERROR","problems":0}`, true},
	} {
		scopes = step.scopes
		before, err := access.Lines(t.Context(), accesslog.Query{Team: team, N: 100})
		require.NoError(t, err)
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/"+step.path, http.NoBody)
		r.Header.Set("x-service-api-key", step.key)
		h.ServeHTTP(w, r)
		require.Equal(t, step.status, w.Code, step.path)
		require.JSONEq(t, step.body, w.Body.String())
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
		after, err := access.Lines(t.Context(), accesslog.Query{Team: team, N: 100})
		require.NoError(t, err)
		if !step.recorded {
			require.Len(t, after, len(before), step.path)
			continue
		}
		require.Len(t, after, len(before)+1, step.path)
		line := after[len(after)-1]
		require.Equal(t, []any{"orders", "read_other", person, step.status}, []any{line.Kind, line.Operation, line.Person, line.Status})
	}
	logged := logs.Take()
	require.Contains(t, logged, "request failed")
	require.Contains(t, logged, "handler panicked")
}

// A public extension answers callers without a key, as often as their address may ask.
func TestExtension_publicOneIsRateLimitedByAddress(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := httpapi.Config{
		Authenticate: func(*http.Request) (httpapi.Caller, error) { return httpapi.Caller{}, healthlab.Unauthenticated },
		Limits:       httpapi.Limits{AddressRate: 1, Now: func() time.Time { return now }},
	}
	h := httpapi.Extend(c, httpapi.Extension{ID: "sign_in", Public: func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(http.StatusAccepted)
		return nil
	}})[0]
	for _, status := range []int{202, 429} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody))
		require.Equal(t, status, w.Code)
	}
	require.Panics(t, func() { httpapi.Extend(c, httpapi.Extension{ID: "sign_in"}) })
}

// An answer of an extension whose access cannot be recorded is not sent, and the error has its form.
func TestExtension_unrecordedAccessAnswersAnError(t *testing.T) {
	user := healthlab.UserID{UUID: uuid.New()}
	_, key, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	access, err := accesslog.New(downLog{memory.New(nil).AccessLog()}, key, nil)
	require.NoError(t, err)
	logs := &contract.Logs{}
	c := httpapi.Config{
		Authenticate: func(*http.Request) (httpapi.Caller, error) { return httpapi.Caller{Team: team}, nil }, Access: access, Log: logs.Logger(),
	}
	h := httpapi.Extend(c, httpapi.Extension{
		ID: "read_other", Scopes: organisation.Scopes{organisation.DataRead},
		Handle: func(w http.ResponseWriter, _ *http.Request, by httpapi.Access) error {
			by.Concerns(user)
			_, err := w.Write([]byte(`{"secret":1}`))
			return err
		},
		Refuse: func(w http.ResponseWriter, f httpapi.Refusal) error {
			w.WriteHeader(f.Status)
			_, err := w.Write([]byte(f.Type))
			return err
		},
	})[0]
	w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	r.Header.Set("x-service-api-key", goodKey)
	h.ServeHTTP(w, r)
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Equal(t, "UNAVAILABLE", w.Body.String())
	require.Contains(t, logs.Take(), "access not recorded")
}
