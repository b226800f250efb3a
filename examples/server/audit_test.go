package main

import (
	"io"
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
