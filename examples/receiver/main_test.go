package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/webhook"
)

const (
	oldSecret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	newSecret = "whsec_ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoM="
)

// The whole program runs, receives events in every way, and is stopped.
func TestRun_receivesEventsUntilItIsStopped(t *testing.T) {
	file := filepath.Join(t.TempDir(), "receiver.db")
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, []string{"-addr", "127.0.0.1:0", "-secret", oldSecret, "-secret", newSecret, "-data", file}, in, io.Discard)
		_ = in.Close()
	}()
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan())
	url, ok := strings.CutPrefix(lines.Text(), "listening on ")
	require.True(t, ok)

	for _, e := range []struct {
		name, secret, id, eventType, data string
		status                            int
		line                              string
	}{
		{"night", oldSecret, "msg_1", "daily.data.sleep.created", `{"id":"6f1c0b52-0000-4000-8000-000000000001","source":{"slug":"acme_ring"},"total":25200,"bedtime_stop":"2026-03-01T07:00:00+00:00","updated_at":"2026-03-01T07:10:00+00:00"}`,
			204, "daily.data.sleep.created, patient-77: 7h0m0s asleep, up at 2026-03-01T07:00:00+00:00, from acme_ring"},
		{"again", newSecret, "msg_1", "daily.data.sleep.created", `{"id":"6f1c0b52-0000-4000-8000-000000000001"}`,
			204, "duplicate: daily.data.sleep.created"},
		{"too late", newSecret, "msg_0", "daily.data.sleep.created", `{"id":"6f1c0b52-0000-4000-8000-000000000001","updated_at":"2026-03-01T07:05:00+00:00"}`,
			204, "stale: daily.data.sleep.created"},
		{"day", newSecret, "msg_2", "daily.data.activity.created", `{"calendar_date":"2026-03-01","steps":8000,"source":{"slug":"acme_band"}}`,
			204, "daily.data.activity.created, patient-77: 8000 steps and ? m on 2026-03-01, from acme_band"},
		{"ride", newSecret, "msg_3", "daily.data.workouts.created", `{"id":"6f1c0b52-0000-4000-8000-000000000002","time_start":"2026-03-01T17:00:00+00:00","calories":410.5,"sport":{"slug":"road_biking"},"source":{"slug":"acme_bike"}}`,
			204, "daily.data.workouts.created, patient-77: road_biking at 2026-03-01T17:00:00+00:00, 410.5 kcal, from acme_bike"},
		{"samples", newSecret, "msg_4", "daily.data.heartrate.created", `{"source":{"provider":"acme_band"},"data":[{"timestamp":"2026-03-01T07:00:00+00:00","unit":"bpm","value":61},{"timestamp":"2026-03-01T07:01:00+00:00","unit":"bpm","value":62}]}`,
			204, "daily.data.heartrate.created, patient-77: 2 of heartrate (bpm) until 2026-03-01T07:01:00+00:00, from acme_band"},
		{"no samples", newSecret, "msg_5", "daily.data.heartrate.created", `{"source":{"provider":"acme_band"},"data":[]}`,
			204, "daily.data.heartrate.created, patient-77: nothing, from acme_band"},
		{"past", newSecret, "msg_6", "historical.data.sleep.created", `{"provider":"acme_ring"}`,
			204, "historical.data.sleep.created, patient-77: the past of sleep is complete, from acme_ring"},
		{"link", newSecret, "msg_7", "provider.connection.created", `{"provider":{"slug":"acme_ring"}}`,
			204, "provider.connection.created, patient-77: connected acme_ring"},
		{"order", newSecret, "msg_8", "labtest.order.updated", `{"id":"0190a000-0000-7000-8000-000000000005","last_event":{"id":2,"status":"received.testkit.requisition_created"}}`,
			204, "labtest.order.updated, patient-77: order 0190a000-0000-7000-8000-000000000005 is requisition_created"},
		{"news", newSecret, "msg_9", "garden.rose.opened", `{"petals":12}`,
			204, "garden.rose.opened, patient-77: 13 bytes"},
		{"test", newSecret, "msg_test" + webhook.MessageID([16]byte{1})[4:], "daily.data.sleep.created", `{}`,
			204, "tested: daily.data.sleep.created"},
		{"forged", "whsec_ISEhISEhISEhISEhISEhISEhISEhISEhISEhISEhISE=", "msg_10", "daily.data.sleep.created", `{}`,
			401, "refused: unauthenticated"},
	} {
		body := []byte(`{"event_type":"` + e.eventType + `","data":` + e.data +
			`,"team_id":"0190a000-0000-7000-8000-000000000001","client_user_id":"patient-77"}`)
		secret, err := webhook.ParseSecret(e.secret)
		require.NoError(t, err)
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
		require.NoError(t, err)
		webhook.SetSignature(request.Header, e.id, time.Now(), body, secret)
		answered := make(chan int, 1)
		go func() {
			answer, err := http.DefaultClient.Do(request)
			if err != nil {
				answered <- 0
				return
			}
			_ = answer.Body.Close()
			answered <- answer.StatusCode
		}()
		require.True(t, lines.Scan(), e.name)
		require.Equal(t, e.line, lines.Text(), e.name)
		require.Equal(t, e.status, <-answered, e.name)
	}
	stop()
	require.NoError(t, <-done)
	require.FileExists(t, file)
}

func TestFlags_invalidSecretIsRefusedAndNotPrinted(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
	}{
		{"no secret", nil},
		{"a bad secret", []string{"-secret", "whsec_secret-77"}},
		{"an argument", []string{"-secret", oldSecret, "secret-77"}},
		{"an unknown flag", []string{"-port", "1"}},
		{"a bad address", []string{"-secret", oldSecret, "-addr", "127.0.0.1:x"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var stderr bytes.Buffer
			err := run(t.Context(), tt.args, io.Discard, &stderr)
			require.Error(t, err)
			require.NotContains(t, err.Error()+stderr.String(), "secret-77")
		})
	}
}
