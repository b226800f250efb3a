package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAudit_refusesWhatItCannotVerify(t *testing.T) {
	t.Parallel()
	for _, bad := range [][]string{{"audit"}, {"audit", "list"}} {
		require.ErrorContains(t, run(t.Context(), bad, io.Discard, io.Discard), "server audit verify")
	}
	require.ErrorContains(t, run(t.Context(), []string{"audit", "verify", "-anchor"}, io.Discard, io.Discard), "-anchor")
	require.ErrorContains(t, run(t.Context(), []string{"audit", "verify", "-env", "sandbox", "-store", "memory"}, io.Discard, io.Discard), "no access log of any team")
}

// A mistyped folder must not look like a finished erasure or rotation.
func TestStoredData_commandsRefuseAFolderWithoutData(t *testing.T) {
	for _, command := range [][]string{{"keys", "erase"}, {"keys", "rotate"}, {"audit", "verify"}, {"audit", "anchor"}} {
		empty, missing := t.TempDir(), filepath.Join(t.TempDir(), "missing")
		for _, dir := range []string{empty, missing} {
			err := run(t.Context(), append(slices.Clone(command), "-data", dir), io.Discard, io.Discard)
			require.ErrorContains(t, err, "-data must be a folder in which a server has stored data")
		}
		require.NoDirExists(t, missing)
		files, err := os.ReadDir(empty)
		require.NoError(t, err)
		require.Empty(t, files)
	}
}
