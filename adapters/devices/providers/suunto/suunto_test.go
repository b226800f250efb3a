package suunto_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
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
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/suunto"
	"github.com/healthlab-dev/healthlab/linking"
)

var update = flag.Bool("update", false, "write the golden files")

func Example() {
	data, err := suunto.Read("activity", []byte(`[{"timestamp": "2026-03-04T09:10:00.000+01:00", "entryData": {"HR": 66, "SpO2": 0.97}}]`))
	fmt.Println(err)
	fmt.Print(data)
	// Output:
	// <nil>
	// blood_oxygen from watch
	//   sample {"timestamp":"2026-03-04T08:10:00+00:00","timezone_offset":3600,"unit":"fraction","value":0.97}
	// heartrate from watch
	//   sample {"timestamp":"2026-03-04T08:10:00+00:00","timezone_offset":3600,"unit":"bpm","value":66}
}

func TestRead_recordedPagesGiveTheGoldenData(t *testing.T) {
	pages, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, page := range pages {
		body, err := os.ReadFile(page)
		require.NoError(t, err)
		data, err := suunto.Read(strings.TrimSuffix(filepath.Base(page), ".json"), body)
		require.NoError(t, err)
		golden := strings.TrimSuffix(page, ".json") + ".golden"
		if *update {
			require.NoError(t, os.WriteFile(golden, []byte(data.String()), 0o600))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		require.Equal(t, string(want), data.String(), page)
	}
	_, err = suunto.Read("recovery", nil)
	require.ErrorIs(t, err, healthlab.Invalid)
	_, err = suunto.Read("sleep", []byte("<html>"))
	require.ErrorIs(t, err, healthlab.Invalid)
}

// The parts of a recording stand side by side, by second.
func TestRead_partsOfARecordingAreAlignedBySecond(t *testing.T) {
	body, err := os.ReadFile("testdata/workout.json")
	require.NoError(t, err)
	data, err := suunto.Read("workout", body)
	require.NoError(t, err)
	require.Len(t, data["workout_stream"], 1)
	doc, err := json.Marshal(data["workout_stream"][0].Stream)
	require.NoError(t, err)
	require.JSONEq(t, `{"time": [1772553600, 1772553601, 1772553602], "heartrate": [90, null, 132], "altitude": [204.6, 206, null],
		"lat": [null, 48.2, null], "lng": [null, 16.3, null], "cadence": null, "velocity_smooth": null, "distance": null, "power": null,
		"resistance": null, "temperature": null}`, string(doc))
}

// A client has a subscription key, and so has one of a team.
func TestNew_requiresASubscriptionKey(t *testing.T) {
	_, err := suunto.New(rest.Client{ID: "id", Secret: "secret"}, nil)
	require.ErrorIs(t, err, healthlab.Invalid)
	c, err := suunto.New(rest.Client{ID: "id", Secret: "secret", Key: "key"}, nil)
	require.NoError(t, err)
	_, err = c.ForClient(linking.OAuthClient{ID: "own", Secret: "own"})
	require.ErrorIs(t, err, healthlab.Invalid)
	_, err = c.ForClient(linking.OAuthClient{ID: "own", Secret: "own", Details: map[string]string{"key": "k", "other": "x"}})
	require.ErrorIs(t, err, healthlab.Invalid)
	_, err = c.ForClient(linking.OAuthClient{ID: "own", Secret: "own", Details: map[string]string{"key": "k", "notification_secret": "n"}})
	require.NoError(t, err)
}

// Messages are Suunto's with the signature by the notification secret.
func TestListen_requiresTheSignature(t *testing.T) {
	noon := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	c, err := suunto.New(rest.Client{ID: "id", Secret: "secret", Key: "key"}, &rest.Options{VerifyToken: "notify"})
	require.NoError(t, err)
	sum := func(body, secret string) []byte {
		mac := hmac.New(sha256.New, []byte(secret))
		_, _ = mac.Write([]byte(body))
		return mac.Sum(nil)
	}
	hear := func(body, signature string) (linking.ListenResult, error) {
		return c.Flows().Listener.Listen(t.Context(), linking.Message{
			Method: http.MethodPost, Body: []byte(body), At: noon, Header: http.Header{"X-Hmac-Sha256-Signature": {signature}},
		})
	}
	const workout = `{"type": "WORKOUT_CREATED", "username": "johndoe123", "workout": {"workoutKey": "67604889401b942184624cb8", "startTime": 1772553600000}}`
	for name, signature := range map[string]string{
		"none": "", "another secret": hex.EncodeToString(sum(workout, "guess")), "another body": hex.EncodeToString(sum(workout+" ", "notify")), "no digits": "xyz",
	} {
		_, err := hear(workout, signature)
		require.ErrorIs(t, err, healthlab.Unauthenticated, name)
	}
	for _, signature := range []string{hex.EncodeToString(sum(workout, "notify")), base64.StdEncoding.EncodeToString(sum(workout, "notify"))} {
		got, err := hear(workout, signature)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, got.Status)
		require.Equal(t, []linking.Notification{{
			ExternalUserID: "johndoe123", Resources: []string{"workouts", "workout_stream"}, Since: time.UnixMilli(1772553600000).UTC().Add(-time.Hour),
		}}, got.Notifications)
	}
	send := func(body string) (linking.ListenResult, error) {
		return hear(body, hex.EncodeToString(sum(body, "notify")))
	}
	got, err := send(`{"type": "SUUNTO_247_ACTIVITY_CREATED", "username": "johndoe123", "samples": [{"timestamp": "2026-03-04T09:10:00.000+01:00", "entryData": {"HR": 66}}]}`)
	require.NoError(t, err)
	require.Empty(t, got.Notifications[0].Resources)
	require.Equal(t, "heartrate", got.Notifications[0].Data[0].Resource)
	require.Len(t, got.Notifications[0].Data[0].Items[0].Samples, 1)
	for _, kind := range []string{"ROUTE_CREATED", "SUUNTO_247_RECOVERY_CREATED"} {
		got, err := send(`{"type": "` + kind + `", "username": "johndoe123"}`)
		require.NoError(t, err)
		require.Empty(t, got.Notifications)
	}
	got, err = send(`{"type": "SUUNTO_247_SLEEP_CREATED", "username": "johndoe123"}`)
	require.NoError(t, err)
	require.Equal(t, []string{"sleep"}, got.Notifications[0].Resources, "without data, it is fetched")
	for _, body := range []string{"<html>", `{"type": "WORKOUT_CREATED"}`, `{"type": "SUUNTO_247_SLEEP_CREATED", "username": "johndoe123", "samples": 7}`} {
		_, err = send(body)
		require.ErrorIs(t, err, healthlab.Invalid, body)
	}
}
