package main

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// The chains of a server that has answered requests are whole.
func TestAuditVerify(t *testing.T) {
	t.Parallel()
	for _, bad := range [][]string{{"audit"}, {"audit", "list"}} {
		require.ErrorContains(t, run(t.Context(), bad, io.Discard, io.Discard), "server audit verify")
	}
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"audit", "verify", "-env", "sandbox"}, &out, io.Discard))
	require.Contains(t, out.String(), "the chain is whole up to line 0")
}
