package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNotFoundWords_nameEachThingThatMayBeMissing(t *testing.T) {
	const id = "5d7a2f6e-93b1-4c55-8a02-3a4a3a5d1f10"
	for _, c := range []struct{ pattern, target, body, want string }{
		{"GET /v2/user/{user_id}", "/v2/user/" + id, "", "user " + id + " not found"},
		{"GET /v2/user/{user_id}", "/v2/user/Kim", "", "user not found"},
		{"DELETE /v2/user/{user_id}/{provider}", "/v2/user/" + id + "/manual", "", "user " + id + " not found, or it has no connection to this provider"},
		{"DELETE /v2/user/{user_id}/consent/{provider}", "/v2/user/" + id + "/consent/manual", "", "user " + id + " not found, or it has no consent for this provider"},
		{"GET /v2/user/resolve/{client_user_id}", "/v2/user/resolve/kim", "", "user with this client_user_id not found"},
		{"GET /v2/user/{user_id}/glucose_profile", "/v2/user/" + id + "/glucose_profile", "", "user " + id + " not found, or it has no glucose profile"},
		{"GET /v2/summary/profile/{user_id}", "/v2/summary/profile/" + id, "", "user " + id + " not found, or it has no profile"},
		{"GET /v2/timeseries/{user_id}/{resource}/grouped", "/v2/timeseries/" + id + "/steps/grouped", "", "user " + id + " not found"},
		{"POST /v2/timeseries/{user_id}/{resource}", "/v2/timeseries/" + id + "/steps", "{}", "user " + id + " not found, or the body names something that does not exist"},
		{"POST /v2/user/{user_id}/sign_out", "/v2/user/" + id + "/sign_out", "", "user " + id + " not found"},
		{"POST /v2/link/provider/manual/{provider}", "/v2/link/provider/manual/manual", "{}", "provider not found, or the body names something that does not exist"},
		{"POST /webhook/{webhook_id}/message/{message_id}/retry", "/webhook/" + id + "/message/1/retry", "", "webhook " + id + " not found, or it has no such message"},
		{"GET /v3/order/{order_id}/result", "/v3/order/" + id + "/result", "", "order " + id + " not found, or it has no result"},
		{"GET /v2/user/{$}", "/v2/user/?user_id=" + id, "", "user " + id + " not found"},
	} {
		got := ""
		mux := http.NewServeMux()
		mux.HandleFunc(c.pattern, func(_ http.ResponseWriter, r *http.Request) { got = notFoundWords(r) })
		method, _, _ := strings.Cut(c.pattern, " ")
		mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, c.target, strings.NewReader(c.body)))
		require.Equal(t, c.want, got, c.pattern)
	}
}
