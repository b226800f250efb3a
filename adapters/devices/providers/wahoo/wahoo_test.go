package wahoo_test

import (
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
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/wahoo"
	"github.com/healthlab-dev/healthlab/linking"
)

var update = flag.Bool("update", false, "write the golden files")

func Example() {
	data, err := wahoo.Read("workouts", []byte(`{"workouts": [{"id": 7, "starts": "2026-03-04T08:05:00.000Z", "workout_type_id": 25,
		"workout_summary": {"duration_total_accum": "1800.0", "distance_accum": "1500.0", "calories_accum": "310.0"}}]}`))
	fmt.Println(err)
	fmt.Print(data)
	// Output:
	// <nil>
	// workouts from watch
	//   summary {"calories":310,"distance":1500,"external_id":"7","sport":{"id":44713,"name":"Swimming","slug":"swimming"},"time_end":"2026-03-04T08:35:00+00:00","time_start":"2026-03-04T08:05:00+00:00"}
}

func TestRead_recordedPagesGiveTheGoldenData(t *testing.T) {
	pages, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, page := range pages {
		body, err := os.ReadFile(page)
		require.NoError(t, err)
		data, err := wahoo.Read(strings.TrimSuffix(filepath.Base(page), ".json"), body)
		require.NoError(t, err)
		golden := strings.TrimSuffix(page, ".json") + ".golden"
		if *update {
			require.NoError(t, os.WriteFile(golden, []byte(data.String()), 0o600))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		require.Equal(t, string(want), data.String(), page)
	}
	_, err = wahoo.Read("sleep", nil)
	require.ErrorIs(t, err, healthlab.Invalid)
	_, err = wahoo.Read("workouts", []byte("<html>"))
	require.ErrorIs(t, err, healthlab.Invalid)
	data, err := wahoo.Read("file", []byte("<html>"))
	require.NoError(t, err)
	require.Len(t, data["workout_stream"][0].Unparsed, 1)
}

func TestListen_requiresTheToken(t *testing.T) {
	body, err := os.ReadFile("testdata/workout_summary.json")
	require.NoError(t, err)
	c, err := wahoo.New(rest.Client{ID: "id", Secret: "secret"}, &rest.Options{VerifyToken: "b50faa0a"})
	require.NoError(t, err)
	hear := func(l linking.Listener, body string) (linking.ListenResult, error) {
		return l.Listen(t.Context(), linking.Message{Method: http.MethodPost, Body: []byte(body)})
	}
	own := c.Flows().Listener
	got, err := hear(own, string(body))
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, got.Status)
	require.Len(t, got.Notifications, 1)
	n := got.Notifications[0]
	require.Equal(t, "60462", n.ExternalUserID)
	require.Equal(t, "workout 56519 2026-08-12T09:13:00.000Z", n.ID)
	require.Equal(t, []string{"workout_stream"}, n.Resources, "the message brings the workout")
	require.Equal(t, time.Date(2026, 8, 12, 8, 59, 0, 0, time.UTC), n.Since)
	require.Len(t, n.Data, 1)
	require.Len(t, n.Data[0].Items[0].Summaries, 1)

	for name, body := range map[string]string{
		"another token": strings.Replace(string(body), "b50faa0a", "guess", 1), "no token": `{"event_type": "workout_summary"}`, "no JSON": "<html>",
	} {
		_, err = hear(own, body)
		require.ErrorIs(t, err, healthlab.Unauthenticated, name)
	}
	_, err = hear(own, `{"event_type": "workout_summary", "webhook_token": "b50faa0a"}`)
	require.ErrorIs(t, err, healthlab.Invalid)
	for name, body := range map[string]string{
		"an incomplete workout": strings.Replace(string(body), `"12.5"`, "null", 1), "another event": strings.Replace(string(body), "workout_summary", "plan", 1),
	} {
		got, err = hear(own, body)
		require.NoError(t, err, name)
		require.Equal(t, linking.ListenResult{Status: http.StatusOK}, got, name)
	}

	// A team's own client has a token of its own.
	theirs, err := c.ForClient(linking.OAuthClient{ID: "theirs", Secret: "secret", Details: map[string]string{"webhook_token": "theirs"}})
	require.NoError(t, err)
	_, err = hear(theirs.Listener, string(body))
	require.ErrorIs(t, err, healthlab.Unauthenticated)
	_, err = hear(theirs.Listener, strings.Replace(string(body), "b50faa0a", "theirs", 1))
	require.NoError(t, err)
}
