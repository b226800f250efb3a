package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
)

// While the store does not answer, a request is answered with 503, whatever its operation makes
// of the context that ended; a store that answers may take its time.
func TestUnresponsiveStore_requestsAreAnsweredWith503(t *testing.T) {
	waits := func(becomes func(ctx context.Context) error) server.Operation {
		return server.Operation{ID: "op", Pattern: "GET /x", Bound: server.Public, Team: func(w http.ResponseWriter, r *http.Request, _ healthlab.TeamID) error {
			select {
			case <-r.Context().Done():
				return becomes(r.Context())
			case <-time.After(time.Minute):
				w.WriteHeader(http.StatusNoContent)
				return nil
			}
		}}
	}
	for _, tt := range []struct {
		name    string
		becomes func(ctx context.Context) error
	}{
		{"its error", func(ctx context.Context) error { return ctx.Err() }},
		{"an error of another kind", func(context.Context) error { return fmt.Errorf("%w: order", healthlab.NotFound) }},
		{"a rule", func(context.Context) error {
			return &healthlab.RuleError{Kind: healthlab.Exhausted, Type: "X", Msg: "y"}
		}},
	} {
		for _, silent := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, silent %v", tt.name, silent), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					life, end := context.WithCancel(t.Context())
					defer end()
					a := newAPI(Config{
						Authenticate: func(*http.Request) (Caller, error) { return Caller{Team: someTeam}, nil },
						Ping: func(ctx context.Context) error {
							if !silent {
								return nil
							}
							select {
							case <-life.Done():
								return nil
							case <-ctx.Done():
								return ctx.Err()
							}
						},
						Log: slog.New(slog.DiscardHandler),
					})
					mux := Mux(a.routes([]server.Operation{waits(tt.becomes)}))
					began := time.Now()
					for range 3 {
						w := httptest.NewRecorder()
						mux.ServeHTTP(w, request("GET", "/x", ""))
						if !silent {
							require.Equal(t, 204, w.Code)
							continue
						}
						require.Equal(t, 503, w.Code)
						require.Equal(t, "5", w.Header().Get("Retry-After"))
						require.LessOrEqual(t, time.Since(began), 6*time.Second, "the first finds it out for the others")
					}
					end()
					time.Sleep(time.Minute) // the watch notices the return, and ends
				})
			})
		}
	}
}
