package httpapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
)

// brokenPipe is an answer of whose body nothing can be sent.
type brokenPipe struct{ http.ResponseWriter }

func (brokenPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// A caller that hangs up is no failure: neither one whose connection breaks while the answer is
// sent, before its context ends, nor one whose context has ended. A failure of ours is.
func TestHungUpCaller_isNotLoggedAsAFailure(t *testing.T) {
	long := func(p *wire.Pieces) error {
		p.B = append(p.B, make([]byte, 100<<10)...)
		return p.Next()
	}
	for name, c := range map[string]struct {
		handle func(w http.ResponseWriter, r *http.Request) error
		ended  bool
		logs   string
	}{
		"a long answer":      {func(w http.ResponseWriter, _ *http.Request) error { return wire.Stream(w, http.StatusOK, long) }, false, ""},
		"a file":             {func(w http.ResponseWriter, _ *http.Request) error { _, err := io.WriteString(w, "zip"); return err }, false, ""},
		"a refusal":          {func(http.ResponseWriter, *http.Request) error { return healthlab.NotFound }, false, ""},
		"before it answered": {func(_ http.ResponseWriter, r *http.Request) error { return fmt.Errorf("read: %w", r.Context().Err()) }, true, ""},
		"our failure":        {func(http.ResponseWriter, *http.Request) error { return healthlab.Unavailable }, false, "request failed"},
		"our failure in the middle": {func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(http.StatusOK)
			return healthlab.Unavailable
		}, false, "answer broke off"},
	} {
		t.Run(name, func(t *testing.T) {
			logs := &contract.Logs{}
			a := newAPI(Config{Authenticate: func(*http.Request) (Caller, error) { return Caller{Team: someTeam}, nil }, Log: logs.Logger()})
			r := request(http.MethodGet, "/x", "")
			if c.ended {
				ctx, end := context.WithCancel(t.Context())
				end()
				r = r.WithContext(ctx)
			}
			op := server.Operation{ID: "op", Pattern: "GET /x", Handle: c.handle}
			func() {
				defer func() {
					if v := recover(); v != nil {
						require.Equal(t, http.ErrAbortHandler, v)
					}
				}()
				Mux(a.routes([]server.Operation{op})).ServeHTTP(brokenPipe{httptest.NewRecorder()}, r)
			}()
			if c.logs == "" {
				require.Empty(t, logs.Take())
				return
			}
			got := logs.Take()
			require.Contains(t, got, c.logs)
			require.Contains(t, got, `"cause":"unavailable"`)
		})
	}
}
