package withings_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/withings"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/webhook"
)

var update = flag.Bool("update", false, "write the golden files")

func Example() {
	data, err := withings.Read("getmeas", []byte(`{"status": 0, "body": {"timezone": "Europe/Vienna", "measuregrps": [{"grpid": 7, "attrib": 0,
		"date": 1772604000, "category": 1, "modelid": 45, "measures": [{"type": 9, "value": 79, "unit": 0}, {"type": 10, "value": 121, "unit": 0}]}]}}`))
	fmt.Println(err)
	fmt.Print(data)
	// Output:
	// <nil>
	// blood_pressure from cuff
	//   sample {"diastolic":79,"systolic":121,"timestamp":"2026-03-04T06:00:00+00:00","unit":"mmHg"}
}

func TestRead_recordedPagesGiveTheGoldenData(t *testing.T) {
	pages, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, page := range pages {
		body, err := os.ReadFile(page)
		require.NoError(t, err)
		data, err := withings.Read(strings.TrimSuffix(filepath.Base(page), ".json"), body)
		require.NoError(t, err)
		golden := strings.TrimSuffix(page, ".json") + ".golden"
		if *update {
			require.NoError(t, os.WriteFile(golden, []byte(data.String()), 0o600))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		require.Equal(t, string(want), data.String(), page)
	}
	_, err = withings.Read("steps", nil)
	require.ErrorIs(t, err, healthlab.Invalid)
	_, err = withings.Read("getmeas", []byte("<html>"))
	require.ErrorIs(t, err, healthlab.Invalid)
}

// An electrocardiogram whose frequency is not positive is reported.
func TestRead_ECGWithoutAPositiveFrequencyIsUnparsed(t *testing.T) {
	for _, hz := range []string{"", `, "sampling_frequency": 0`, `, "sampling_frequency": -300`} {
		data, err := withings.Read("heart_get", []byte(`{"status": 0, "body": {"signal": [12]`+hz+`}}`))
		require.NoError(t, err)
		const unread = " from unknown\n  unread [sampling_frequency]: missing: must be a number of hertz above 0\n"
		require.Equal(t, "electrocardiogram"+unread+"electrocardiogram_voltage"+unread, data.String())
	}
}

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// The status in the body says what an answer means.
func TestBodyStatus_decidesTheErrorKind(t *testing.T) {
	answer := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	c, err := withings.New(rest.Client{ID: "id", Secret: "secret"}, &rest.Options{
		Origin: server.URL, Guard: &webhook.Guard{Plain: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	})
	require.NoError(t, err)
	secret, err := c.Encode(linking.Tokens{Access: "a", Refresh: "r"})
	require.NoError(t, err)
	pull := func(body string) error {
		answer = body
		_, err := c.Pull(context.Background(), linking.PullRequest{Secret: secret, Resource: "weight", From: noon.AddDate(0, 0, -1), To: noon})
		return err
	}
	require.NoError(t, pull(`{"status": 0, "body": {"measuregrps": [], "more": 0, "offset": 0}}`))
	require.ErrorIs(t, pull(`{"status": 401, "body": {}, "error": "invalid_token"}`), healthlab.Unauthenticated)
	require.ErrorIs(t, pull(`{"status": 100}`), healthlab.Unauthenticated)
	require.ErrorIs(t, pull(`{"status": 277}`), healthlab.Invalid)
	require.ErrorIs(t, pull(`{"status": 293, "body": []}`), healthlab.Invalid)
	require.ErrorIs(t, pull(`{"status": 522, "body": []}`), healthlab.Unavailable)
	require.ErrorIs(t, pull(`{"status": 2556}`), healthlab.Unavailable)
	for body, wait := range map[string]time.Duration{
		`{"status": 601, "body": {"wait_seconds": 188}}`: 188 * time.Second, `{"status": 601, "body": []}`: 0, `{"status": 601, "body": {"wait_seconds": 1e99}}`: time.Hour,
		`{"status": 601, "body": {"wait_seconds": -1}}`: 0,
	} {
		var over *linking.RateLimitError
		require.ErrorAs(t, pull(body), &over, body)
		require.Equal(t, linking.RateLimitError{Scope: linking.RateApp, Wait: wait}, *over, body)
	}

	renew := func(body string) error {
		answer = body
		_, err := c.Refresh(context.Background(), secret)
		return err
	}
	var over *linking.GrantError
	require.NoError(t, renew(`{"status": 0, "body": {"userid": 363, "access_token": "b", "refresh_token": "s", "expires_in": 10800}}`))
	require.ErrorAs(t, renew(`{"status": 503, "body": {}, "error": "Invalid Params: invalid refresh_token"}`), &over)
	for _, body := range []string{`{"status": 503, "body": {}, "error": "Invalid Params: invalid client_secret"}`, `{"status": 601}`, `{"status": 0, "body": []}`} {
		err := renew(body)
		require.ErrorIs(t, err, healthlab.Unavailable, body)
		require.NotErrorAs(t, err, &over, body)
	}
}

// Messages are Withings' with the token of the address.
func TestListen_requiresTheToken(t *testing.T) {
	c, err := withings.New(rest.Client{ID: "id", Secret: "secret"}, &rest.Options{VerifyToken: "verify", Now: func() time.Time { return noon }})
	require.NoError(t, err)
	listen := c.Flows().Listener
	hear := func(method, body, token string) (linking.ListenResult, error) {
		return listen.Listen(t.Context(), linking.Message{Method: method, Body: []byte(body), Query: url.Values{"token": {token}}, At: noon})
	}
	got, err := hear(http.MethodHead, "", "")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, got.Status)

	const night = "userid=363&appli=44&startdate=1772575200&enddate=1772603400"
	for _, token := range []string{"", "guess"} {
		_, err = hear(http.MethodPost, night, token)
		require.ErrorIs(t, err, healthlab.Unauthenticated)
	}
	got, err = hear(http.MethodPost, "token=verify&"+night, "")
	require.NoError(t, err, "parameters of the address may come in the form")
	require.Len(t, got.Notifications, 1)
	got, err = hear(http.MethodPost, night, "verify")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, got.Status)
	require.Equal(t, "363", got.Notifications[0].ExternalUserID)
	require.Equal(t, []string{"sleep", "sleep_cycle", "heartrate", "respiratory_rate", "hrv"}, got.Notifications[0].Resources)
	require.Equal(t, time.Unix(1772575200, 0).UTC(), got.Notifications[0].Since)

	got, err = hear(http.MethodPost, "userid=363&appli=16&date=2026-03-04", "verify")
	require.NoError(t, err)
	require.Contains(t, got.Notifications[0].Resources, "activity")
	require.Equal(t, time.Date(2026, 3, 3, 0, 0, 0, 0, time.UTC), got.Notifications[0].Since)

	got, err = hear(http.MethodPost, "userid=363&appli=46&action=unlink", "verify")
	require.NoError(t, err)
	require.True(t, got.Notifications[0].Unlinked)
	require.Empty(t, got.Notifications[0].Resources)
	got, err = hear(http.MethodPost, "userid=363&appli=46&action=update", "verify")
	require.NoError(t, err)
	require.False(t, got.Notifications[0].Unlinked)
	require.Equal(t, []string{"profile"}, got.Notifications[0].Resources)
	got, err = hear(http.MethodPost, "userid=363&appli=50&startdate=1772575200", "verify")
	require.NoError(t, err)
	require.Empty(t, got.Notifications)
	for _, body := range []string{"", "appli=1", "userid=363&appli=x", "userid=%zz"} {
		_, err = hear(http.MethodPost, body, "verify")
		require.ErrorIs(t, err, healthlab.Invalid, body)
	}
}
