package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The commands of docs/fhir.md make a person with data and a result, and read both as FHIR.
func TestFHIRPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/fhir.md")
	require.NoError(t, err)
	var script strings.Builder
	blocks := regexp.MustCompile("(?s)```sh run\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	require.Len(t, blocks, 7)
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
	for _, part := range []string{
		`"resourceType":"CapabilityStatement"`, `"resourceType":"Patient"`, `"value":61,`, `"valueSampledData"`, `"transactionTime"`, `"resourceType":"DiagnosticReport"`, `"code":"laboratory"`, `"relation":"next"`,
	} {
		require.Contains(t, string(out), part)
	}
}
