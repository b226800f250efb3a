package main

import (
	"flag"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
)

// What the files in deploy set are settings of the program, and what dashboard and alerts
// ask for are metrics that it has.
func TestDeployFiles_nameExistingSettingsAndMetrics(t *testing.T) {
	t.Parallel()
	_, settings, err := flags([]string{"-print-config"}, io.Discard)
	require.NoError(t, err)
	known := map[string]bool{}
	settings.VisitAll(func(f *flag.Flag) {
		known["HEALTHLAB_"+strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))] = true
	})
	for _, file := range []string{"Dockerfile", "compose.yaml", "kubernetes.yaml", "healthlab.service"} {
		text, err := os.ReadFile("deploy/" + file)
		require.NoError(t, err)
		names := regexp.MustCompile(`HEALTHLAB_[A-Z_]+`).FindAllString(string(text), -1)
		require.NotEmpty(t, names)
		for _, name := range names {
			require.True(t, known[name], "%s: %s", file, name)
		}
	}

	unit, err := os.ReadFile("deploy/healthlab.service")
	require.NoError(t, err)
	command := regexp.MustCompile(`(?m)^ExecStart=\S+ (.*)$`).FindSubmatch(unit)
	require.NotNil(t, command)
	named, rest, err := findCommand(strings.Fields(string(command[1])))
	require.NoError(t, err)
	require.Equal(t, "serve", named.name)
	_, err = checkArguments(rest, settings)
	require.NoError(t, err)

	p := start(t, "-database-url", pgtest.Empty(t), "-secret-file", secretFile(t), "-files", t.TempDir())
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+metricsPath, http.NoBody)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	metrics, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	// These are there once something has happened.
	later := []string{"healthlab_api_duration_seconds", "healthlab_pull_duration_seconds", "healthlab_webhook_attempts_total", "healthlab_webhook_faults_total"}
	for _, file := range []string{"alerts.yaml", "dashboard.json"} {
		text, err := os.ReadFile("deploy/" + file)
		require.NoError(t, err)
		names := regexp.MustCompile(`\b(?:healthlab|process)_[a-z_]+`).FindAllString(string(text), -1)
		require.NotEmpty(t, names)
		for _, name := range names {
			name = regexp.MustCompile(`_(?:bucket|count|sum)$`).ReplaceAllString(name, "")
			if !strings.Contains(string(metrics), "\n"+name+" ") && !strings.Contains(string(metrics), "\n"+name+"{") {
				require.Contains(t, later, name, file)
			}
		}
	}
	p.quit()
}
