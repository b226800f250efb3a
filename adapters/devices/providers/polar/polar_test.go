package polar_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/polar"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/linking"
)

var update = flag.Bool("update", false, "write the golden files")

func Example() {
	data, err := polar.Read("exercises", []byte(`[{"id": "2AC312F", "start_time": "2026-03-04T10:05:00", "start_time_utc_offset": 120,
		"duration": "PT30M", "calories": 310, "sport": "SWIMMING"}]`))
	fmt.Println(err)
	fmt.Print(data)
	// Output:
	// <nil>
	// workouts from watch
	//   summary {"calories":310,"external_id":"2AC312F","sport":{"id":44713,"name":"Swimming","slug":"swimming"},"time_end":"2026-03-04T08:35:00+00:00","time_start":"2026-03-04T08:05:00+00:00","timezone_offset":7200}
}

func TestRead_recordedPagesGiveTheGoldenData(t *testing.T) {
	pages, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, page := range pages {
		body, err := os.ReadFile(page)
		require.NoError(t, err)
		data, err := polar.Read(strings.TrimSuffix(filepath.Base(page), ".json"), body)
		require.NoError(t, err)
		golden := strings.TrimSuffix(page, ".json") + ".golden"
		if *update {
			require.NoError(t, os.WriteFile(golden, []byte(data.String()), 0o600))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		require.Equal(t, string(want), data.String(), page)
	}
	_, err = polar.Read("cardio_load", nil)
	require.ErrorIs(t, err, healthlab.Invalid)
	_, err = polar.Read("sleep", []byte("<html>"))
	require.ErrorIs(t, err, healthlab.Invalid)
}

// The values of a recording stand at their own seconds.
func TestRead_streamValuesKeepTheirSeconds(t *testing.T) {
	body, err := os.ReadFile("testdata/exercise.json")
	require.NoError(t, err)
	data, err := polar.Read("exercise", body)
	require.NoError(t, err)
	s := data["workout_stream"][0].Stream
	start := time.Date(2026, 3, 4, 5, 10, 2, 0, time.UTC).Unix()
	require.Equal(t, []int64{start, start + 1, start + 2, start + 3}, s.Time)
	require.Equal(t, []*int64{rest.Ptr[int64](101), rest.Ptr[int64](102), nil, rest.Ptr[int64](104)}, s.Heartrate)
	require.Equal(t, []*float64{rest.Ptr(0.0), nil, rest.Ptr(36 / 3.6), nil}, s.VelocitySmooth)
	require.Equal(t, []*float64{rest.Ptr(160.0), rest.Ptr(162.0), rest.Ptr(164.0), rest.Ptr(166.0)}, s.Cadence)
	require.Equal(t, []*float64{rest.Ptr(60.21), nil, rest.Ptr(60.22), nil}, s.Lat)
	require.Empty(t, s.Altitude)
}

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func TestListen_requiresTheSignature(t *testing.T) {
	c, err := polar.New(rest.Client{ID: "id", Secret: "secret"}, &rest.Options{VerifyToken: "key"})
	require.NoError(t, err)
	hear := func(l linking.Listener, body, key string) (linking.ListenResult, error) {
		mac := hmac.New(sha256.New, []byte(key))
		_, _ = mac.Write([]byte(body))
		return l.Listen(t.Context(), linking.Message{
			Method: http.MethodPost, Body: []byte(body), At: noon, Header: http.Header{"Polar-Webhook-Signature": {hex.EncodeToString(mac.Sum(nil))}},
		})
	}
	own := c.Flows().Listener
	const night = `{"event": "SLEEP", "user_id": 475, "date": "2026-03-04", "timestamp": "2026-03-04T07:20:10Z", "url": "https://x.example"}`
	got, err := hear(own, `{"event": "PING", "timestamp": "2026-03-04T07:20:10Z"}`, "another")
	require.NoError(t, err)
	require.Equal(t, linking.ListenResult{Status: http.StatusOK}, got)

	_, err = hear(own, night, "another")
	require.ErrorIs(t, err, healthlab.Unauthenticated)
	_, err = hear(own, "<html>", "another")
	require.ErrorIs(t, err, healthlab.Unauthenticated)
	_, err = hear(own, "<html>", "key")
	require.ErrorIs(t, err, healthlab.Invalid)

	got, err = hear(own, night, "key")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, got.Status)
	require.Len(t, got.Notifications, 1)
	require.Equal(t, "475", got.Notifications[0].ExternalUserID)
	require.Contains(t, got.Notifications[0].Resources, "hrv")
	require.Equal(t, time.Date(2026, 3, 3, 0, 0, 0, 0, time.UTC), got.Notifications[0].Since)

	got, err = hear(own, `{"event": "EXERCISE", "user_id": 475, "entity_id": "aQlC83", "timestamp": "2026-03-04T07:20:10Z"}`, "key")
	require.NoError(t, err)
	require.Equal(t, []string{"workouts", "workout_stream"}, got.Notifications[0].Resources)
	require.Equal(t, noon.AddDate(0, 0, -1), got.Notifications[0].Since)
	got, err = hear(own, `{"event": "SLEEP_WISE_ALERTNESS", "user_id": 475, "from": "2026-03-04"}`, "key")
	require.NoError(t, err)
	require.Empty(t, got.Notifications)

	// A team's own client has a key of its own.
	theirs, err := c.ForClient(linking.OAuthClient{ID: "theirs", Secret: "secret", Details: map[string]string{"webhook_key": "their key"}})
	require.NoError(t, err)
	_, err = hear(theirs.Listener, night, "key")
	require.ErrorIs(t, err, healthlab.Unauthenticated)
	_, err = hear(theirs.Listener, night, "their key")
	require.NoError(t, err)
	without, err := c.ForClient(linking.OAuthClient{ID: "theirs", Secret: "secret"})
	require.NoError(t, err)
	_, err = hear(without.Listener, night, "key")
	require.ErrorIs(t, err, healthlab.Unauthenticated)
	_, err = c.ForClient(linking.OAuthClient{ID: "theirs", Secret: "secret", Details: map[string]string{"key": "x"}})
	require.ErrorIs(t, err, healthlab.Invalid)
}
