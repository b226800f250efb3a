package main

import (
	"bufio"
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The program prints its address and a key that opens the API, keeps its secret in a file that its owner alone
// can read, and has the same key and data at the next start. It has 60 lines at most.
func TestProgram_keepsKeyAndDataOverARestart(t *testing.T) {
	text, err := os.ReadFile("main.go")
	require.NoError(t, err)
	require.LessOrEqual(t, bytes.Count(text, []byte("\n")), 60)
	dir := t.TempDir()
	program := filepath.Join(t.TempDir(), "embed")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	var first string
	for _, status := range []int{http.StatusOK, http.StatusBadRequest} { // the user is there at the second start
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Dir = dir
		cmd.Stderr = os.Stderr
		pipe, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(pipe)
		require.True(t, lines.Scan())
		url, ok := strings.CutPrefix(lines.Text(), "listening on ")
		require.True(t, ok)
		require.True(t, lines.Scan())
		key, ok := strings.CutPrefix(lines.Text(), "api key: ")
		require.True(t, ok)
		if first == "" {
			first = key
		}
		require.Equal(t, first, key)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v2/user/", strings.NewReader(`{"client_user_id":"member-42"}`))
		require.NoError(t, err)
		r.Header.Set("x-service-api-key", key)
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, status, answer.StatusCode)
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait() // killed
	}
	info, err := os.Stat(filepath.Join(dir, "embed.key"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}
