package strava_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/strava"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/webhook"
)

var update = flag.Bool("update", false, "write the golden files")

func Example() {
	data, err := strava.Read("activity", []byte(`{"id": 7, "athlete": {"id": 1}, "sport_type": "Swim", "start_date": "2026-03-04T08:05:00Z",
		"utc_offset": 3600.0, "elapsed_time": 1800, "distance": 1500, "calories": 310}`))
	fmt.Println(err)
	fmt.Print(data)
	// Output:
	// <nil>
	// workouts from watch of 1
	//   summary {"calories":310,"distance":1500,"external_id":"7","sport":{"id":44713,"name":"Swimming","slug":"swimming"},"time_end":"2026-03-04T08:35:00+00:00","time_start":"2026-03-04T08:05:00+00:00","timezone_offset":3600}
}

func TestRead_recordedPagesGiveTheGoldenData(t *testing.T) {
	pages, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, page := range pages {
		body, err := os.ReadFile(page)
		require.NoError(t, err)
		data, err := strava.Read(strings.TrimSuffix(filepath.Base(page), ".json"), body)
		require.NoError(t, err)
		golden := strings.TrimSuffix(page, ".json") + ".golden"
		if *update {
			require.NoError(t, os.WriteFile(golden, []byte(data.String()), 0o600))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		require.Equal(t, string(want), data.String(), page)
	}
	_, err = strava.Read("sleep", nil)
	require.ErrorIs(t, err, healthlab.Invalid)
	_, err = strava.Read("activities", []byte("<html>"))
	require.ErrorIs(t, err, healthlab.Invalid)
}

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// Messages are Strava's with the token of the address, or with a fresh signature.
func TestListen_requiresTheTokenOrAFreshSignature(t *testing.T) {
	c, err := strava.New(rest.Client{ID: "id", Secret: "secret"}, &rest.Options{VerifyToken: "verify", Now: func() time.Time { return noon }})
	require.NoError(t, err)
	listen := c.Flows().Listener
	hear := func(m linking.Message) (linking.ListenResult, error) {
		m.At = noon
		return listen.Listen(t.Context(), m)
	}
	got, err := hear(linking.Message{Method: http.MethodGet, Query: url.Values{
		"hub.mode": {"subscribe"}, "hub.verify_token": {"verify"}, "hub.challenge": {"15f7d1a91c1f40f8a748fd134752feb3"}}})
	require.NoError(t, err)
	require.JSONEq(t, `{"hub.challenge": "15f7d1a91c1f40f8a748fd134752feb3"}`, string(got.Reply))
	_, err = hear(linking.Message{Method: http.MethodGet, Query: url.Values{"hub.verify_token": {"guess"}, "hub.challenge": {"x"}}})
	require.ErrorIs(t, err, healthlab.Unauthenticated)

	signature := func(body, secret string, at time.Time) http.Header {
		seconds := strconv.FormatInt(at.Unix(), 10)
		mac := hmac.New(sha256.New, []byte(secret))
		_, _ = mac.Write([]byte(seconds + "." + body))
		return http.Header{"X-Strava-Signature": {"t=" + seconds + ",v1=" + hex.EncodeToString(mac.Sum(nil))}}
	}
	const created = `{"object_type":"activity","object_id":1360128428,"aspect_type":"create","updates":{},"owner_id":134815,"subscription_id":120475,"event_time":1772625600}`
	for name, m := range map[string]linking.Message{
		"no proof":       {},
		"guess":          {Query: url.Values{"token": {"guess"}}},
		"another secret": {Header: signature(created, "another", noon)},
		"old signature":  {Header: signature(created, "secret", noon.Add(-time.Hour))},
		"other body":     {Header: signature(created+" ", "secret", noon)},
		"no signature":   {Header: http.Header{"X-Strava-Signature": {"t=x"}}},
	} {
		m.Method, m.Body = http.MethodPost, []byte(created)
		_, err := hear(m)
		require.ErrorIs(t, err, healthlab.Unauthenticated, name)
	}
	for _, m := range []linking.Message{{Header: signature(created, "secret", noon)}, {Query: url.Values{"token": {"verify"}}}} {
		m.Method, m.Body = http.MethodPost, []byte(created)
		got, err := hear(m)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, got.Status)
		require.Len(t, got.Notifications, 1)
		require.Equal(t, "134815", got.Notifications[0].ExternalUserID)
		require.Equal(t, []string{"workouts", "workout_stream"}, got.Notifications[0].Resources)
		require.Equal(t, noon.AddDate(0, 0, -14), got.Notifications[0].Since)
	}

	send := func(body string) linking.ListenResult {
		got, err := hear(linking.Message{Method: http.MethodPost, Body: []byte(body), Query: url.Values{"token": {"verify"}}})
		require.NoError(t, err)
		return got
	}
	gone := send(`{"object_type":"activity","object_id":7,"aspect_type":"delete","owner_id":134815,"event_time":1}`).Notifications[0]
	require.Empty(t, gone.Resources)
	require.Equal(t, []linking.DeletedRecord{{ID: "7"}}, gone.Data[0].Items[0].Deleted)
	require.True(t, send(`{"object_type":"athlete","aspect_type":"update","updates":{"authorized":"false"},"owner_id":134815}`).Notifications[0].Unlinked)
	require.Empty(t, send(`{"object_type":"athlete","aspect_type":"update","updates":{"weight":"70"},"owner_id":134815}`).Notifications)
	_, err = hear(linking.Message{Method: http.MethodPost, Body: []byte("<html>"), Query: url.Values{"token": {"verify"}}})
	require.ErrorIs(t, err, healthlab.Invalid)
}

// The history of recordings goes on after an activity with a long detail.
func TestPull_continuesAfterAnActivityWithALongDetail(t *testing.T) {
	detail := fmt.Sprintf(`{"id": 7, "athlete": {"id": 1}, "sport_type": "Swim", "start_date": "2026-03-04T08:05:00Z", "elapsed_time": 1800,
		"segment_efforts": [%s{}]}`, strings.Repeat(`{"name": "a long segment"},`, 40_000))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := map[string]string{
			"/api/v3/athlete/activities": `[{"id": 7}]`, "/api/v3/activities/7": detail, "/api/v3/activities/7/streams": `{"time": {"data": [0, 1]}}`,
		}[r.URL.Path]
		if r.URL.Query().Get("page") > "1" {
			answer = "[]"
		}
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	c, err := strava.New(rest.Client{ID: "id", Secret: "secret"}, &rest.Options{
		Origin: server.URL, Guard: &webhook.Guard{Plain: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	})
	require.NoError(t, err)
	secret, err := c.Encode(linking.Tokens{Access: "access"})
	require.NoError(t, err)
	r := linking.PullRequest{Secret: secret, Resource: "workout_stream", From: noon.AddDate(0, 0, -1), To: noon}
	var got []linking.PullItem
	for more := true; more; more = r.Cursor != "" {
		page, err := c.Pull(t.Context(), r)
		require.NoError(t, err)
		got, r.Cursor = append(got, page.Items...), page.Next
	}
	require.Len(t, got, 1)
	require.Equal(t, []int64{noon.Unix() - 14_100, noon.Unix() - 14_099}, got[0].Stream.Time)
}
