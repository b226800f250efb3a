package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
)

// Metrics count what the program does, hold no name of a person, and are served beside the
// API in a sandbox only.
func TestMetrics_countWorkWithoutPersonalValues(t *testing.T) {
	t.Parallel()
	read := func(url string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, string(body)
	}
	p := start(t, "-database-url", pgtest.Empty(t), "-secret-file", secretFile(t), "-files", t.TempDir())
	post(p, "/v2/user/", `{"client_user_id":"planted-name"}`)
	status, body := read(p.url + metricsPath)
	require.Equal(t, http.StatusOK, status)
	for _, line := range []string{
		`healthlab_api_duration_seconds_count{operation="create_user",status="200"} 1`,
		"healthlab_webhook_backlog_age_seconds 0", `healthlab_webhook_backlog{kind="event"} 0`, "healthlab_database_connections_most 16", "go_goroutines",
	} {
		require.Contains(t, body, line)
	}
	require.NotContains(t, body, "planted-name")
	status, _ = read(p.url + "/readyz")
	require.Equal(t, http.StatusOK, status)
	p.quit()

	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	p = start(t, "-env", "production", "-store", "memory", "-metrics-addr", address)
	status, _ = read(p.url + metricsPath)
	require.Equal(t, http.StatusNotFound, status)
	status, _ = read(fmt.Sprintf("http://%s%s", address, metricsPath))
	require.Equal(t, http.StatusOK, status)
	status, _ = read(fmt.Sprintf("http://%s/readyz", address))
	require.Equal(t, http.StatusOK, status)
	p.quit()
}
