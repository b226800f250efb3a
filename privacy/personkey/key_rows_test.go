package personkey_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/memory/memstore"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
	"github.com/healthlab-dev/healthlab/privacy/personkey/personkeytest"
)

func TestStore_overRowsPassesTheSuite(t *testing.T) {
	personkeytest.RunStore(t, func(t testing.TB) personkey.Store {
		s, err := memstore.New(personkey.Tables(), nil)
		require.NoError(t, err)
		return personkey.NewStore(s)
	})
}
