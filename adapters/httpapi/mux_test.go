package httpapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/httpapi"
)

// tells answers which route it is and what the path said.
func tells(id, pattern string, names ...string) httpapi.Route {
	return httpapi.Route{ID: id, Pattern: pattern, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, id)
		for _, n := range names {
			_, _ = fmt.Fprint(w, " ", n, "=", r.PathValue(n))
		}
	})}
}

func TestMux_routesByMethodAndPathElseAnswers404Or405(t *testing.T) {
	h := httpapi.Mux([]httpapi.Route{
		tells("list", "GET /v2/user/{$}"),
		tells("create", "POST /v2/user/{$}"),
		tells("get", "GET /v2/user/{user_id}", "user_id"),
		tells("info", "GET /v2/user/{user_id}/info", "user_id"),
		tells("providers", "GET /v2/user/providers/{user_id}", "user_id"),
		tells("refresh", "POST /v2/user/refresh/{user_id}", "user_id"),
		tells("disconnect", "DELETE /v2/user/{user_id}/{provider}", "user_id", "provider"),
		tells("order", "GET /v3/order/{order_id}", "order_id"),
	})
	for _, tt := range []struct {
		method, target string
		status         int
		body           string
	}{
		{"GET", "/v2/user/", 200, "list"},
		{"GET", "/v2/user", 200, "list"},
		{"POST", "/v2/user", 200, "create"},
		{"GET", "/v2/user/7", 200, "get user_id=7"},
		{"GET", "/v2/user/7/", 200, "get user_id=7"},
		{"HEAD", "/v2/user/7", 200, "get user_id=7"},
		{"GET", "/v2/user/a%2Fb", 200, "get user_id=a/b"},
		{"GET", "/v2/user/7/info", 200, "info user_id=7"},
		{"GET", "/v2/user/providers/7", 200, "providers user_id=7"},
		{"GET", "/v2/user/providers/info", 200, "providers user_id=info"},
		{"POST", "/v2/user/refresh/7", 200, "refresh user_id=7"},
		{"DELETE", "/v2/user/refresh/7", 200, "disconnect user_id=refresh provider=7"},
		{"GET", "/v3/order/9", 200, "order order_id=9"},
		{"GET", "/", 404, ""},
		{"GET", "/v2", 404, ""},
		{"GET", "/v2//user", 404, ""},
		{"GET", "/v2/user//", 404, ""},
		{"GET", "/v2/user/7//", 404, ""},
		{"GET", "/v2/user/../user", 405, "DELETE"},
		{"GET", "/v3/order/", 404, ""},
		{"PUT", "/v2/user/", 405, "GET, HEAD, POST"},
		{"GET", "/v2/user/refresh/7", 405, "DELETE, POST"},
		{"OPTIONS", "/v3/order/9", 405, "GET, HEAD"},
	} {
		t.Run(tt.method+" "+tt.target, func(t *testing.T) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(tt.method, tt.target, nil))
			require.Equal(t, tt.status, w.Code)
			want := map[int]string{
				200: tt.body,
				404: `{"detail":{"error_message":"no operation has this path","error_type":"NOT_FOUND"}}`,
				405: `{"detail":{"error_message":"the path does not support this method; the header Allow lists those it supports","error_type":"METHOD_NOT_ALLOWED"}}`,
			}
			require.Equal(t, want[tt.status], w.Body.String())
			require.Equal(t, map[bool]string{true: tt.body}[tt.status == 405], w.Header().Get("Allow"))
		})
	}
}

func TestMux_panicsOnInvalidOrConflictingPatterns(t *testing.T) {
	for _, routes := range [][]httpapi.Route{
		{tells("a", "/x")},
		{tells("a", "GET x")},
		{tells("a", "GET /x/{a}"), tells("b", "GET /x/{b}")},
		{tells("a", "GET /x"), tells("b", "GET /x/{$}")},
	} {
		require.Panics(t, func() { httpapi.Mux(routes) })
	}
}
