package memstore_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory/memstore"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
	"github.com/healthlab-dev/healthlab/store"
	"github.com/healthlab-dev/healthlab/store/storetest"
)

func newEngine(t testing.TB) *memstore.Engine {
	e, err := memstore.New(storetest.Tables(), nil)
	require.NoError(t, err)
	return e
}

func TestEngine_passesTheStoreSuite(t *testing.T) {
	storetest.Run(t, func(t testing.TB) storetest.Harness { return storetest.Harness{Store: newEngine(t)} })
}

func TestEngine_encryptedPassesTheStoreSuite(t *testing.T) {
	storetest.Run(t, func(t testing.TB) storetest.Harness {
		sealer, err := healthlab.NewAESSealer("host", map[string][]byte{"host": bytes.Repeat([]byte{7}, 32)})
		require.NoError(t, err)
		keys, err := memstore.New(personkey.Tables(), nil)
		require.NoError(t, err)
		return storetest.Harness{Store: personkey.Encrypt(newEngine(t), personkey.New(personkey.NewStore(keys), sealer, nil), storetest.Tables())}
	})
}

// A context that has ended before an update is its error, whatever run would return.
func TestEngine_updateOfAnEndedContextFails(t *testing.T) {
	e, err := memstore.New(nil, nil)
	require.NoError(t, err)
	ctx, end := context.WithCancel(t.Context())
	end()
	for range 100 {
		require.ErrorIs(t, e.Update(ctx, func(context.Context, store.Tx) error { return healthlab.NotFound }), context.Canceled)
	}
}
