package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The commands of docs/account-exports.md send a file of Health Auto Export, and the same file again.
func TestDocs_commandsOfAccountExportsRun(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/account-exports.md")
	require.NoError(t, err)
	var script strings.Builder
	for _, m := range regexp.MustCompile("(?s)```sh run\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		script.WriteString(m[1])
	}
	require.Contains(t, script.String(), fileUploadPath)
	if _, err := exec.LookPath("curl"); err != nil {
		require.Empty(t, os.Getenv("CI"), "CI must have curl")
		t.Skip("there is no curl")
	}
	p := start(t)
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script.String())
	cmd.Env = append(os.Environ(), "URL="+p.url, "KEY="+p.key)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), `"new":2`)
	require.Contains(t, string(out), `"same":2`)
	require.Contains(t, string(out), `"value":9312`)
}

// A file is taken compressed, and its line is in the access log.
func TestFileUpload_acceptsAGzippedFileAndLogsTheAccess(t *testing.T) {
	t.Parallel()
	p := start(t)
	user := oneUser(p)
	const file = `{"data":{"metrics":[{"name":"heart_rate","units":"count/min","data":[{"date":"2026-03-28 08:01:12 +0100","Min":61,"Avg":61,"Max":61}]}]}}`
	var body bytes.Buffer
	w := gzip.NewWriter(&body)
	_, err := io.WriteString(w, file)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+fileUploadPath+"/"+user, &body)
	require.NoError(t, err)
	r.Header.Set("x-service-api-key", p.key)
	r.Header.Set("content-encoding", "gzip")
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, http.StatusOK, answer.StatusCode)
	var out struct{ New int }
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&out))
	require.Equal(t, 1, out.New)
}
