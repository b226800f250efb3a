package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRun_storesASampleAndSendsAnEvent(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out))
	require.Equal(t, "stored: 1\n2026-03-01: 5.27 mmol/L\nevent: 1 new samples of member-42's glucose\n", out.String())
}

// The README shows this program, from its package clause on, and what it prints.
func TestREADME_showsTheProgramAndItsOutput(t *testing.T) {
	program, err := os.ReadFile("main.go")
	require.NoError(t, err)
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, code, ok := strings.Cut(string(program), "\npackage main\n")
	require.True(t, ok)
	require.Contains(t, string(readme), "```go\npackage main\n"+code+"```", "copy examples/quickstart/main.go into README.md")
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out))
	require.Contains(t, string(readme), out.String())
}
