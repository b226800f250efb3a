package googlehealth_test

import (
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
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/googlehealth"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
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

func TestRead_recordedPagesGiveTheGoldenData(t *testing.T) {
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
func TestListen_requiresTheAgreedAuthorization(t *testing.T) {
	noon := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	c, err := googlehealth.New(rest.Client{ID: "id", Secret: "secret"}, &rest.Options{VerifyToken: "Bearer word"})
	require.NoError(t, err)
	hear := func(body, authorization string) (linking.ListenResult, error) {
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
		require.Len(t, got.Notifications, 1)
		require.Equal(t, "h1", got.Notifications[0].ExternalUserID)
		require.Equal(t, []string{"steps", "activity"}, got.Notifications[0].Resources)
		require.Equal(t, time.Date(2026, 3, 4, 1, 29, 0, 0, time.UTC), got.Notifications[0].Since)
	}
	for _, body := range []string{"<html>", `{"data": {"dataType": "steps"}}`, "7"} {
		_, err = hear(body, "Bearer word")
		require.ErrorIs(t, err, healthlab.Invalid, body)
	}
}

// A stored track is read as a file, and inside a document.
func TestRead_tracksAreReadAsFileAndInsideADocument(t *testing.T) {
	const track = `<?xml version="1.0"?><TrainingCenterDatabase xmlns="http://www.garmin.com/xmlschemas/TrainingCenterDatabase/v2"><Activities>
<Activity Sport="Running"><Id>2026-03-04T10:00:00Z</Id><Lap StartTime="2026-03-04T10:00:00Z"><TotalTimeSeconds>2</TotalTimeSeconds><Track>
<Trackpoint><Time>2026-03-04T10:00:00Z</Time><HeartRateBpm><Value>120</Value></HeartRateBpm></Trackpoint>
<Trackpoint><Time>2026-03-04T10:00:02Z</Time><HeartRateBpm><Value>124</Value></HeartRateBpm></Trackpoint></Track></Lap></Activity></Activities></TrainingCenterDatabase>`
	doc, err := json.Marshal(map[string]string{"tcxData": track})
	require.NoError(t, err)
	for name, body := range map[string][]byte{"file": []byte(track), "document": doc} {
		t.Run(name, func(t *testing.T) {
			data, err := googlehealth.Read("exercise-tcx", body)
			require.NoError(t, err)
			require.Len(t, data["workout_stream"], 1)
			require.Equal(t, []int64{1772618400, 1772618402}, data["workout_stream"][0].Stream.Time)
			require.Equal(t, int64(124), *data["workout_stream"][0].Stream.Heartrate[1])
		})
	}
	data, err := googlehealth.Read("exercise-tcx", []byte("<html>"))
	require.NoError(t, err)
	require.Len(t, data["workout_stream"][0].Unparsed, 1)
}
