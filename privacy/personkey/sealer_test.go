package personkey_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
	"github.com/healthlab-dev/healthlab/store/storetest"
)

func TestSealer_passesTheSuite(t *testing.T) {
	store := memory.NewPersonKeys()
	storetest.RunSealer(t, storetest.SealerHarness{New: func(t testing.TB) healthlab.Sealer {
		host := sealer(t, "k1")
		return personkey.New(store, host, nil).Sealer(host)
	}})
}

// What the installation's key seals opens after a rotation without the older key of the host. What
// another key seals does not open.
func TestSealer_opensAfterARotationWithoutTheOldKey(t *testing.T) {
	store := memory.NewPersonKeys()
	older, both, newer := sealer(t, "k1"), sealer(t, "k1", "k2"), sealer(t, "k2")
	foreign, err := newer.Seal(t.Context(), []byte("token"), []byte("row"))
	require.NoError(t, err)
	box, err := personkey.New(store, older, nil).Sealer(older).Seal(t.Context(), []byte("token"), []byte("row"))
	require.NoError(t, err)
	require.Equal(t, personkey.InstallationKeyID, box.KeyID)

	require.NoError(t, personkey.New(store, both, nil).Rotate(t.Context(), nil))

	after := personkey.New(store, newer, nil).Sealer(newer)
	plain, err := after.Open(t.Context(), box, []byte("row"))
	require.NoError(t, err)
	require.Equal(t, "token", string(plain))
	_, err = after.Open(t.Context(), foreign, []byte("row"))
	require.ErrorIs(t, err, healthlab.Unavailable)

	var nokeys *personkey.Keys
	require.Equal(t, older, nokeys.Sealer(older))
}
