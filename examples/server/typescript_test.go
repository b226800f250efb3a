package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/prove"
)

// The client of examples/typescript is generated from the contract that the server serves,
// compiles in strict mode, and plays its tour. The contract has no finding of the linter.
func TestTypeScriptClient_isGeneratedCompiledAndRuns(t *testing.T) {
	t.Parallel()
	if !prove.All() {
		t.Skip("runs in CI and under make prove: its programs take a minute")
	}
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("there is no " + program)
		}
	}
	version, err := exec.CommandContext(t.Context(), "node", "--version").Output()
	require.NoError(t, err)
	var major int
	_, err = fmt.Sscanf(string(version), "v%d.", &major)
	require.NoError(t, err)
	if major < 20 {
		t.Skip("the packages need Node 20 or newer")
	}
	dir := filepath.Join(t.TempDir(), "client")
	require.NoError(t, os.CopyFS(dir, os.DirFS("../typescript")))
	npm := func(args ...string) (string, error) {
		c := exec.CommandContext(t.Context(), "npm", args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "CONTRACT=contract.json", "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := npm("ci", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1", "--fetch-timeout=20000"); err != nil {
		require.Empty(t, os.Getenv("CI"), "CI must be able to fetch the packages: %s", out)
		t.Skip("npm could not fetch the packages")
	}
	p := start(t)
	defer p.quit()
	answer, err := http.Get(p.url + "/openapi.json")
	require.NoError(t, err)
	contract, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "contract.json"), contract, 0o600))
	for _, args := range [][]string{{"run", "generate"}, {"run", "lint"}, {"run", "build"}} {
		out, err := npm(args...)
		require.NoError(t, err, out)
	}
	out, err := npm("run", "tour", "--", p.url, p.key)
	require.NoError(t, err, out)
	require.True(t, strings.HasSuffix(strings.TrimSpace(out), "tour: ok"), out)
}
