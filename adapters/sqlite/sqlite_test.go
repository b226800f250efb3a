package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/sqlite"
	"github.com/healthlab-dev/healthlab/store/storetest"
)

func open(t testing.TB, path string) *sqlite.Store {
	s, err := sqlite.Open(t.Context(), path, storetest.Tables(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t testing.TB) storetest.Harness {
		return storetest.Harness{Store: open(t, filepath.Join(t.TempDir(), "rows.db"))}
	})
}
