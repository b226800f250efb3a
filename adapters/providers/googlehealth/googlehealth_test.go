package googlehealth_test

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
	"github.com/healthlab-dev/healthlab/adapters/providers/googlehealth"
	"github.com/healthlab-dev/healthlab/adapters/providers/rest"
	"github.com/healthlab-dev/healthlab/linking"
)

var update = flag.Bool("update", false, "write the golden files")

func Example() {
	data, err := googlehealth.Read("heart-rate", []byte(`{"dataPoints": [{"dataSource": {"device": {"formFactor": "WATCH"}},
		"heartRate": {"sampleTime": {"physicalTime": "2026-03-04T08:00:05Z", "utcOffset": "3600s"}, "beatsPerMinute": "61"}}]}`))
	fmt.Println(err)
	fmt.Print(data)
	// Output:
	// <nil>
	// heartrate from watch
	//   sample {"timestamp":"2026-03-04T08:00:05+00:00","timezone_offset":3600,"unit":"bpm","value":61}
}

func TestRead(t *testing.T) {
	pages, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, page := range pages {
		body, err := os.ReadFile(page)
		require.NoError(t, err)
		data, err := googlehealth.Read(strings.TrimSuffix(filepath.Base(page), ".json"), body)
		require.NoError(t, err)
		golden := strings.TrimSuffix(page, ".json") + ".golden"
		if *update {
			require.NoError(t, os.WriteFile(golden, []byte(data.String()), 0o600))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		require.Equal(t, string(want), data.String(), page)
	}
	_, err = googlehealth.Read("altitude", nil)
	require.ErrorIs(t, err, healthlab.Invalid)
	_, err = googlehealth.Read("sleep", []byte("<html>"))
	require.ErrorIs(t, err, healthlab.Invalid)
}

// Messages are Google's with the agreed Authorization; the handshake sends one without it, too.
func TestMessages(t *testing.T) {
	noon := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	c, err := googlehealth.New(rest.Client{ID: "id", Secret: "secret"}, &rest.Options{VerifyToken: "Bearer word"})
	require.NoError(t, err)
	hear := func(body, authorization string) (linking.Heard, error) {
		m := linking.Message{Method: http.MethodPost, Body: []byte(body), At: noon, Header: map[string][]string{}}
		if authorization != "" {
			m.Header["Authorization"] = []string{authorization}
		}
		return c.Flows().Listener.Listen(t.Context(), m)
	}
	got, err := hear(`{"type":"verification"}`, "Bearer word")
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, got.Status)
	for _, authorization := range []string{"", "word", "Bearer guess"} {
		_, err = hear(`{"type":"verification"}`, authorization)
		require.ErrorIs(t, err, healthlab.Unauthenticated)
	}

	const steps = `{"data": {"version": "1", "healthUserId": "h1", "operation": "UPSERT", "dataType": "steps", "intervals": [
		{"physicalTimeInterval": {"startTime": "2026-03-04T08:29:00Z", "endTime": "2026-03-04T08:34:00Z"}},
		{"physicalTimeInterval": {"startTime": "2026-03-04T01:29:00Z", "endTime": "2026-03-04T01:34:00Z"}}, {"civilDateTimeInterval": {}}]}}`
	for _, body := range []string{steps, "[" + steps + `, {"data": {"healthUserId": "h1", "dataType": "altitude"}}]`} {
		got, err = hear(body, "Bearer word")
		require.NoError(t, err)
		require.Equal(t, http.StatusNoContent, got.Status)
		require.Len(t, got.News, 1)
		require.Equal(t, "h1", got.News[0].ExternalUserID)
		require.Equal(t, []string{"steps", "activity"}, got.News[0].Resources)
		require.Equal(t, time.Date(2026, 3, 4, 1, 29, 0, 0, time.UTC), got.News[0].Since)
	}
	for _, body := range []string{"<html>", `{"data": {"dataType": "steps"}}`, "7"} {
		_, err = hear(body, "Bearer word")
		require.ErrorIs(t, err, healthlab.Invalid, body)
	}
}
