package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/prove"
)

func TestMain(m *testing.M) {
	prove.SetChecks(10, 30, 100)
	os.Exit(m.Run())
}

func TestRun_createsAUserAndReadsItAfterReopening(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, inFolder(t.Context(), &out))
	require.Equal(t, "created: member-42\nopened again and read: member-42 Europe/Lisbon\n", out.String())
}

// The documents of a person are encrypted in the files.
func TestRun_storesPersonalDocumentsEncrypted(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, run(t.Context(), dir, &bytes.Buffer{}))
	for _, name := range []string{"keys.db", "rows.db"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.False(t, bytes.Contains(data, []byte(zone)), name)
	}
}
