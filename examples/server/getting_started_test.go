package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The commands of docs/getting-started-service.md make a user, store a sample and read it.
func TestDocs_commandsOfGettingStartedServiceRun(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/getting-started-service.md")
	require.NoError(t, err)
	blocks := runBlocks(string(text))
	require.Len(t, blocks, 4)
	for _, program := range []string{"curl", "bash"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("there is no " + program)
		}
	}
	p := start(t)
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", strings.Join(blocks, ""))
	cmd.Env = append(os.Environ(), "URL="+p.url, "KEY="+p.key)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), `"new":1`)
	require.Contains(t, string(out), `"value":61`)
}
