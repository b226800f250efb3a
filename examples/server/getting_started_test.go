package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The commands of docs/getting-started-service.md make a user, store a sample and read it.
func TestGettingStarted(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/getting-started-service.md")
	require.NoError(t, err)
	var script strings.Builder
	blocks := regexp.MustCompile("(?s)```sh run\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	require.Len(t, blocks, 4)
	for _, m := range blocks {
		script.WriteString(m[1])
	}
	if _, err := exec.LookPath("curl"); err != nil {
		require.Empty(t, os.Getenv("CI"), "CI must have curl")
		t.Skip("there is no curl")
	}
	p := start(t)
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script.String())
	cmd.Env = append(os.Environ(), "URL="+p.url, "KEY="+p.key)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), `"new":1`)
	require.Contains(t, string(out), `"value":61`)
}
