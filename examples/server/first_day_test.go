package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The blocks of docs/first-day.md run one after another in one shell, with the built programs.
func TestDocs_commandsOfFirstDayRun(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/first-day.md")
	require.NoError(t, err)
	page := string(text)
	// The first block is built here, in another folder.
	require.Contains(t, page, "go build -o first-day/ ./examples/server ./examples/receiver && cd first-day\n")
	require.Equal(t, strings.Count(page, "curl -"), strings.Count(strings.Join(runBlocks(page), ""), "curl -"), "each curl is run")
	for _, program := range []string{"curl", "bash"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("there is no " + program)
		}
	}
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", dir+string(filepath.Separator), ".", "../receiver").CombinedOutput()
	require.NoError(t, err, "%s", out)
	script := `trap 'kill $SERVER $RECEIVER 2>/dev/null || true' EXIT` + "\n" + strings.Join(runBlocks(page), "")
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HEALTHLAB_ADDR=127.0.0.1:0")
	out, err = cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, want := range []string{
		`"new":2`, "daily.data.heartrate.created, member-42", `"mean":[64]`, `"interpretation":`, `"users":[]`, "stopped: everything is in the folder healthlab-data",
	} {
		require.Contains(t, string(out), want)
	}
}

// runBlocks returns the blocks of a page that a test runs.
func runBlocks(page string) []string {
	var blocks []string
	for _, m := range regexp.MustCompile("(?s)```sh run\n(.*?)```").FindAllStringSubmatch(page, -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}
