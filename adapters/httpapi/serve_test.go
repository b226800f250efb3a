package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
)

var someTeam = healthlab.TeamID{UUID: uuid.MustParse("6f1c0b52-0000-4000-8000-00000000000a")}

// send sends a request to one operation and returns the reply and what was logged.
func send(t *testing.T, op server.Operation, r *http.Request) (*httptest.ResponseRecorder, string) {
	t.Helper()
	logs := &contract.Logs{}
	a := newAPI(Config{
		Authenticate: func(r *http.Request) (Caller, error) {
			if r.Header.Get("x-service-api-key") == "" {
				return Caller{}, healthlab.Unauthenticated
			}
			return Caller{Team: someTeam}, nil
		},
		Log: logs.Logger(),
	})
	op.ID, op.Pattern = "op", r.Method+" "+r.URL.Path
	w := httptest.NewRecorder()
	Mux(a.routes([]server.Operation{op})).ServeHTTP(w, r)
	return w, logs.Take()
}

func request(method, target, body string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("x-service-api-key", "k")
	r.Header.Set("Content-Type", "application/json")
	return r
}

func failing(err error, replies ...server.Reply) server.Operation {
	return server.Operation{Replies: replies, Handle: func(http.ResponseWriter, *http.Request) error { return err }}
}

type later struct{ error }

func (later) RetryAfter() time.Duration { return 1500 * time.Millisecond }

// Unwrap keeps the kind.
func (l later) Unwrap() error { return l.error }

func problem() error {
	var p healthlab.Problems
	p.Add("too_long", "is too long", "items", 0, "name")
	return fmt.Errorf("place order: %w", p.Err())
}

func TestErrors_eachKindHasItsStatusAndBody(t *testing.T) {
	rule := &healthlab.RuleError{Type: "CANCEL_NOT_ALLOWED", Msg: "an order in the lab stays"}
	for _, tt := range []struct {
		name   string
		op     server.Operation
		status int
		body   string
		retry  string
		logged bool
	}{
		{"unknown", failing(errors.New("boom")), 500, `{"detail":{"error_message":"an internal error occurred; try again later","error_type":"INTERNAL_ERROR"}}`, "", true},
		{"not found", failing(fmt.Errorf("get user: %w", healthlab.NotFound)), 404, `{"detail":{"error_message":"an object that the request names by id was not found in this team","error_type":"NOT_FOUND"}}`, "", false},
		{"conflict", failing(healthlab.Conflict), 409, `{"detail":{"error_message":"a resource with this identity already exists","error_type":"CONFLICT"}}`, "", false},
		{"precondition", failing(healthlab.Precondition), 400, `{"detail":{"error_message":"the current state of the resource does not allow this operation","error_type":"PRECONDITION_FAILED"}}`, "", false},
		{"unauthenticated", failing(healthlab.Unauthenticated), 401, `{"detail":{"error_message":"missing or unknown API key; send it in the x-service-api-key header","error_type":"UNAUTHORIZED"}}`, "", false},
		{"forbidden", failing(healthlab.Forbidden), 403, `{"detail":{"error_message":"the caller is not allowed to do this","error_type":"FORBIDDEN"}}`, "", false},
		{"exhausted", failing(later{healthlab.Exhausted}), 429, `{"detail":{"error_message":"a limit is reached; try again later","error_type":"RATE_LIMITED"}}`, "2", false},
		{"unavailable", failing(later{healthlab.Unavailable}), 503, `{"detail":{"error_message":"try again later","error_type":"UNAVAILABLE"}}`, "2", true},
		{"not found, later", failing(later{healthlab.NotFound}), 404, `{"detail":{"error_message":"an object that the request names by id was not found in this team","error_type":"NOT_FOUND"}}`, "", false},
		{"unimplemented", failing(healthlab.Unimplemented), 501, `{"detail":{"error_message":"this deployment does not support the operation","error_type":"NOT_IMPLEMENTED"}}`, "", false},
		{"invalid", failing(healthlab.Invalid), 422, `{"detail":[{"loc":["query"],"msg":"the request is not valid","type":"invalid"}]}`, "", false},
		{"problems", failing(problem()), 422, `{"detail":[{"loc":["query","items",0,"name"],"msg":"is too long","type":"too_long"}]}`, "", false},
		{"rule", failing(fmt.Errorf("cancel: %w", rule)), 400, `{"detail":{"error_message":"an order in the lab stays","error_type":"CANCEL_NOT_ALLOWED"}}`, "", false},
		{"rule of another kind", failing(&healthlab.RuleError{Kind: healthlab.Forbidden, Type: "FEATURE_NOT_ENABLED", Msg: "ask us"}), 403, `{"detail":{"error_message":"ask us","error_type":"FEATURE_NOT_ENABLED"}}`, "", false},
		{"rule of kind invalid", failing(&healthlab.RuleError{Kind: healthlab.Invalid, Type: "X", Msg: "y"}), 422, `{"detail":[{"loc":["query"],"msg":"y","type":"x"}]}`, "", false},
		{"own words", failing(&wire.Fault{Status: 400, Type: "INVALID_REQUEST", Msg: "taken", Extra: map[string]any{"user_id": "u"}}), 400, `{"detail":{"error_message":"taken","error_type":"INVALID_REQUEST","user_id":"u"}}`, "", false},
		{"cancelled", failing(fmt.Errorf("%w: %w", healthlab.Unavailable, context.Canceled)), 503, `{"detail":{"error_message":"try again later","error_type":"UNAVAILABLE"}}`, "5", true},
		{"too late", failing(context.DeadlineExceeded, server.Reply{On: context.DeadlineExceeded, Status: 504, ErrorType: "QUERY_TIMEOUT", Msg: "the query took too long"}), 504, `{"detail":{"error_message":"the query took too long","error_type":"QUERY_TIMEOUT"}}`, "5", true},
		{"kind with another status", failing(healthlab.Conflict, server.Reply{On: healthlab.Conflict, Status: 400, ErrorType: "INVALID_REQUEST"}), 400, `{"detail":{"error_message":"a resource with this identity already exists","error_type":"INVALID_REQUEST"}}`, "", false},
		{"rule with another status", failing(rule, server.Reply{Rule: "OTHER", Status: 402}, server.Reply{Rule: "CANCEL_NOT_ALLOWED", Status: 409}), 409, `{"detail":{"error_message":"an order in the lab stays","error_type":"CANCEL_NOT_ALLOWED"}}`, "", false},
		{"invalid with another status", failing(problem(), server.Reply{On: healthlab.Invalid, Status: 404, ErrorType: "NOT_FOUND"}), 404, `{"detail":{"error_message":"the request is not valid","error_type":"NOT_FOUND"}}`, "", false},
		{"reply that cannot be encoded", failing(&wire.Fault{Status: 400, Extra: map[string]any{"x": func() {}}}), 500, `{"detail":{"error_message":"an internal error occurred; try again later","error_type":"INTERNAL_ERROR"}}`, "", true},
		{"panic", server.Operation{Handle: func(http.ResponseWriter, *http.Request) error { panic("boom") }}, 500, `{"detail":{"error_message":"an internal error occurred; try again later","error_type":"INTERNAL_ERROR"}}`, "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, logged := send(t, tt.op, request("GET", "/x", ""))
			require.Equal(t, tt.status, w.Code)
			require.Equal(t, tt.body, w.Body.String())
			require.Equal(t, "application/json", w.Header().Get("Content-Type"))
			require.Equal(t, tt.retry, w.Header().Get("Retry-After"))
			require.Equal(t, tt.logged, logged != "", logged)
		})
	}
}

func TestLogs_nameTheCauseWithoutQuotedValues(t *testing.T) {
	_, logged := send(t, failing(fmt.Errorf("get user: %w", errors.New(`cannot read "Jane" of name='Doe' at born=1980-03-13`))), request("GET", "/x", ""))
	require.Contains(t, logged, "get user: cannot read")
	for _, value := range []string{"Jane", "Doe", "1980"} {
		require.NotContains(t, logged, value)
	}
	_, logged = send(t, server.Operation{Bound: server.TeamOnly, Team: func(http.ResponseWriter, *http.Request, healthlab.TeamID) error { panic("Jane") }}, request("GET", "/x", ""))
	require.NotContains(t, logged, "Jane")
	require.Contains(t, logged, someTeam.String())
	require.Contains(t, logged, "serve_test.go")
}

func TestUnauthenticated_isRefusedBeforeTheBodyIsRead(t *testing.T) {
	r := request("POST", "/x", "{}")
	r.Header.Del("x-service-api-key")
	body := &watched{}
	r.Body = body
	w, _ := send(t, server.Operation{Bound: server.TeamOnly, Team: func(http.ResponseWriter, *http.Request, healthlab.TeamID) error { panic("reached") }}, r)
	require.Equal(t, 401, w.Code)
	require.False(t, body.read)
}

type watched struct{ read bool }

func (w *watched) Read([]byte) (int, error) { w.read = true; return 0, errors.New("read") }
func (w *watched) Close() error             { return nil }

func TestOperation_getsTheTeamOfItsCaller(t *testing.T) {
	w, _ := send(t, server.Operation{Bound: server.TeamOnly, Team: func(w http.ResponseWriter, _ *http.Request, team healthlab.TeamID) error {
		return wire.JSON(w, 200, team)
	}}, request("GET", "/x", ""))
	require.Equal(t, `"`+someTeam.String()+`"`, w.Body.String())
}

func TestBody_beyondTheOperationsLimitIsRefused(t *testing.T) {
	reads := func(w http.ResponseWriter, r *http.Request) error {
		in := wire.From(r)
		var v struct {
			A string `json:"a"`
		}
		in.Body(&v)
		if err := in.Err(); err != nil {
			return err
		}
		return wire.NoContent(w)
	}
	body := `{"a":"` + strings.Repeat("x", 100) + `"}`
	w, _ := send(t, server.Operation{Handle: reads, MaxBody: 50}, request("POST", "/x", body))
	require.Equal(t, 413, w.Code)
	require.Equal(t, `{"detail":{"error_message":"the body must have at most 50 bytes, uncompressed","error_type":"BODY_TOO_LARGE","limit":50}}`, w.Body.String())
	w, _ = send(t, server.Operation{Handle: reads}, request("POST", "/x", body))
	require.Equal(t, 204, w.Code)
	w, _ = send(t, server.Operation{Handle: reads}, request("POST", "/x", `{"a":"`+strings.Repeat("x", 1<<20)+`"}`))
	require.Equal(t, 413, w.Code)
	w, _ = send(t, server.Operation{Handle: reads, IgnoreUnknown: true}, request("POST", "/x?q=1", `{"a":"","b":1}`))
	require.Equal(t, 204, w.Code)
	w, _ = send(t, server.Operation{Handle: reads}, request("POST", "/x?q=1", `{"a":"","b":1}`))
	require.Equal(t, `{"detail":[{"loc":["body","b"],"msg":"must be absent: this object has no such key","type":"unknown_key"},`+
		`{"loc":["query","q"],"msg":"is not a parameter of this operation","type":"unknown_parameter"}]}`, w.Body.String())
}

// If an answer fails after it has begun, the connection is closed, so that the client cannot
// take it for a whole answer.
func TestAnswer_failingHalfwayClosesTheConnection(t *testing.T) {
	for name, after := range map[string]func() error{
		"error": func() error { return errors.New("boom") },
		"panic": func() error { panic("boom") },
	} {
		t.Run(name, func(t *testing.T) {
			op := server.Operation{ID: "op", Pattern: "GET /x", Handle: func(w http.ResponseWriter, _ *http.Request) error {
				_, _ = w.Write([]byte(`{"users":[`))
				_ = http.NewResponseController(w).Flush()
				return after()
			}}
			a := newAPI(Config{})
			srv := httptest.NewServer(Mux(a.routes([]server.Operation{op})))
			defer srv.Close()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/x", nil)
			require.NoError(t, err)
			resp, err := srv.Client().Do(req)
			require.NoError(t, err)
			defer func() { _ = resp.Body.Close() }()
			_, err = resp.Body.Read(make([]byte, 10))
			require.NoError(t, err)
			_, err = resp.Body.Read(make([]byte, 10))
			require.Error(t, err)
		})
	}
}

func TestOperation_withoutAHandlerPanics(t *testing.T) {
	require.Panics(t, func() { api{}.serve(&server.Operation{ID: "none"}) })
}

// Answers are not kept by caches, unless the operation says so, and are what they say.
func TestAnswers_haveCacheControlNoStore(t *testing.T) {
	for status, err := range map[int]error{200: nil, 404: healthlab.NotFound} {
		op := server.Operation{ID: "op", Pattern: "GET /x", Handle: func(w http.ResponseWriter, _ *http.Request) error { return err }}
		w, _ := send(t, op, request("GET", "/x", ""))
		require.Equal(t, status, w.Code)
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
		require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
	}
}
