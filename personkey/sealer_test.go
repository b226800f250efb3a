package personkey_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthlabtest"
	"github.com/healthlab-dev/healthlab/personkey"
)

func TestSealer(t *testing.T) {
	store := memory.NewPersonKeys()
	healthlabtest.RunSealer(t, healthlabtest.SealerHarness{New: func(t testing.TB) healthlab.Sealer {
		host := sealer(t, "k1")
		return personkey.New(store, host, nil).Sealer(host)
	}})
}

// What the installation's key seals opens after a rotation without the older key of the host, and
// what the host's key sealed goes on opening while the host has it.
func TestSealerOverRotation(t *testing.T) {
	store := memory.NewPersonKeys()
	older := sealer(t, "k1")
	before, err := older.Seal(t.Context(), []byte("of before"), []byte("row"))
	require.NoError(t, err)
	box, err := personkey.New(store, older, nil).Sealer(older).Seal(t.Context(), []byte("token"), []byte("row"))
	require.NoError(t, err)
	require.Equal(t, personkey.InstallationKeyID, box.KeyID)

	both := sealer(t, "k1", "k2")
	keys := personkey.New(store, both, nil)
	plain, err := keys.Sealer(both).Open(t.Context(), before, []byte("row"))
	require.NoError(t, err)
	require.Equal(t, "of before", string(plain))
	require.NoError(t, keys.Rotate(t.Context(), nil))

	newer := sealer(t, "k2")
	after := personkey.New(store, newer, nil).Sealer(newer)
	plain, err = after.Open(t.Context(), box, []byte("row"))
	require.NoError(t, err)
	require.Equal(t, "token", string(plain))
	_, err = after.Open(t.Context(), before, []byte("row"))
	require.ErrorIs(t, err, healthlab.Unavailable)

	moved, err := healthlab.Reseal(t.Context(), keys.Sealer(both), before, []byte("row"))
	require.NoError(t, err)
	plain, err = after.Open(t.Context(), moved, []byte("row"))
	require.NoError(t, err)
	require.Equal(t, "of before", string(plain))
	again, err := healthlab.Reseal(t.Context(), after, moved, []byte("row"))
	require.NoError(t, err)
	require.Equal(t, moved, again, "it is under the current key")
	none, err := healthlab.Reseal(t.Context(), after, healthlab.Sealed{}, []byte("row"))
	require.NoError(t, err)
	require.Equal(t, healthlab.Sealed{}, none)

	var nokeys *personkey.Keys
	require.Equal(t, older, nokeys.Sealer(older))
}
