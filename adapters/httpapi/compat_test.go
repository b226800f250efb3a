package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/linking"
)

// With the option Compat, and only with it, the API accepts and returns the shapes of
// existing clients.
func TestCompat_isRequiredForTheFormatsOfExistingClients(t *testing.T) {
	config, user := full(t)
	links := newLinks(t, memory.New(nil), config.Health, &linking.Options{Settings: func(context.Context, healthlab.TeamID) (linking.TeamSettings, error) {
		return linking.TeamSettings{Bulk: true, OwnOAuth: []string{"acme_band"}}, nil
	}})
	config.Bulk = newBulk(t, memory.New(nil), links, config.Pulls)
	strict := config.handler()
	config.Compat = &httpapi.Compat{Service: "acme"}
	compat := config.handler()
	send := func(h http.Handler, method, path, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		r.Header.Set("x-service-api-key", goodKey)
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	both := func(method, path, body string, without, with int) (string, string) {
		t.Helper()
		first, second := send(strict, method, path, body), send(compat, method, path, body)
		require.Equal(t, without, first.Code, "%s %s: %s", method, path, first.Body)
		require.Equal(t, with, second.Code, "%s %s: %s", method, path, second.Body)
		return first.Body.String(), second.Body.String()
	}
	placing, err := json.Marshal(object{
		"user_id": user.String(), "order_set": object{"lab_test_ids": []string{walkInTest}},
		"patient_details": aPatient(), "patient_address": anAddress(),
	})
	require.NoError(t, err)
	plain, changed := both("POST", "/v3/order", string(placing), 200, 200)
	var order struct {
		Order struct {
			ID      string `json:"id"`
			Patient struct {
				DOB string `json:"dob"`
			} `json:"patient_details"`
		} `json:"order"`
	}
	require.NoError(t, json.Unmarshal([]byte(plain), &order))
	require.Len(t, order.Order.Patient.DOB, 10)
	birth := order.Order.Patient.DOB
	require.NoError(t, json.Unmarshal([]byte(changed), &order))
	require.Equal(t, birth+"T00:00:00+00:00", order.Order.Patient.DOB)
	id := order.Order.ID
	both("POST", "/v3/order/"+id+"/test?final_status=received.walk_in_test.requisition_created", "null", 422, 200)

	_, changed = both("GET", "/v2/team/"+team.String(), "", 200, 200)
	require.Contains(t, changed, `"testkits_texts_enabled":false`)
	require.Contains(t, changed, `"lab_tests_patient_communication_enabled":true`)
	require.Contains(t, changed, `"delegated_flow":"not_delegated"`)
	require.Contains(t, changed, `"libreview":{"practice_id":{}}`)
	plain, changed = both("GET", "/v2/user/metrics", "", 200, 200)
	require.NotContains(t, plain, "T00:00:00")
	require.Contains(t, changed, `T00:00:00+00:00"`)
	both("POST", "/v2/link/bulk_trigger_historical_pull", `{"user_ids":["`+user.String()+`"],"provider":"acme_band"}`, 202, 200)

	recipe := `{"provider":"acme_band","connections":[{"user_id":"` + user.String() + `","access_token":"a","refresh_token":"r","provider_id":"p","expires_at":2147483647}]}`
	plain, changed = both("POST", "/v2/link/bulk_import", recipe, 202, 202)
	require.Empty(t, plain)
	require.JSONEq(t, `{"user_ids_imported":[],"user_ids_failed":[]}`, changed)

	centers := "/v3/order/psc/info?zip_code=85201&lab_id=1"
	plain, changed = both("GET", centers, "", 200, 200)
	require.Regexp(t, `"distance":"\d+"`, plain)
	require.Regexp(t, `"distance":\d+[,}]`, changed)
	require.NotRegexp(t, `"distance":"`, changed)

	query := `{"accept":"*/*","timeframe":{"type":"relative","anchor":"2026-03-02","past":{"unit":"day","value":7}},"queries":[{"select":[{"activity":"steps"}]}]}`
	both("POST", "/aggregate/v1/user/"+user.String()+"/query", query, 422, 200)

	// What a read returns can be sent back.
	path := "/v2/summary/sleep/" + user.String()
	require.Equal(t, 200, send(strict, "POST", path, upload(whole["sleep"])).Code)
	var read struct{ Sleep []json.RawMessage }
	require.NoError(t, json.Unmarshal(send(strict, "GET", path+year, "").Body.Bytes(), &read))
	both("POST", path, upload(string(read.Sleep[0])), 422, 200)
	both("POST", path, upload(strings.Replace(whole["sleep"], `"state"`, `"nosuch":1,"state"`, 1)), 422, 422)
}

func TestCompat_convertsRequestAndResponseFormats(t *testing.T) {
	c := httpapi.Compat{Service: "acme"}
	for _, tt := range []struct{ id, pattern, body, want string }{
		{"find_patient_service_centers", "GET /v3/order/psc/info",
			`{"patient_service_centers":[{"distance":"5","metadata":{"distance":"4"},"capabilities":["stat","appointment_scheduling_via_service"]}]}`,
			`{"patient_service_centers":[{"distance":5,"metadata":{"distance":"4"},"capabilities":["stat","appointment_scheduling_via_acme"]}]}`},
		{"read_area", "GET /v3/order/area/info", `{"central_labs":{"1":{"appointment_with_service":true}}}`, `{"central_labs":{"1":{"appointment_with_acme":true}}}`},
		{"read_order_result", "GET /v3/order/{order_id}/result", `{"results":[{"value":12.50,"dob":"1984-05-09"}]}`, `{"results":[{"value":12.50,"dob":"1984-05-09"}]}`},
	} {
		got := httpapi.Reshape(c, tt.id, tt.pattern, tt.body)
		require.JSONEq(t, tt.want, got)
		require.Equal(t, strings.Contains(tt.body, "12.50"), strings.Contains(got, "12.50"), "numbers stay as they are written")
	}
}
