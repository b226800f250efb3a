package healthlab_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
)

func TestAESSealer_opensWithEachKeyAndOnlyItsContext(t *testing.T) {
	ctx := t.Context()
	keys := map[string][]byte{"a": bytes.Repeat([]byte{1}, 32), "b": bytes.Repeat([]byte{2}, 32)}
	old, err := healthlab.NewAESSealer("a", map[string][]byte{"a": keys["a"]})
	require.NoError(t, err)
	box, err := old.Seal(ctx, []byte("plain"), []byte("here"))
	require.NoError(t, err)
	require.NotContains(t, string(box.Box), "plain")
	again, err := old.Seal(ctx, []byte("plain"), []byte("here"))
	require.NoError(t, err)
	require.NotEqual(t, box.Box, again.Box, "each box has its own nonce")

	rotated, err := healthlab.NewAESSealer("b", keys)
	require.NoError(t, err)
	plain, err := rotated.Open(ctx, box, []byte("here"))
	require.NoError(t, err)
	require.Equal(t, "plain", string(plain))
	fresh, err := rotated.Seal(ctx, plain, []byte("here"))
	require.NoError(t, err)
	require.Equal(t, "b", fresh.KeyID)
	_, err = old.Open(ctx, fresh, []byte("here"))
	require.ErrorIs(t, err, healthlab.Unavailable)
	_, err = rotated.Open(ctx, box, []byte("there"))
	require.ErrorIs(t, err, healthlab.Invalid, "a box copied elsewhere does not open")
	box.Box[len(box.Box)-1] ^= 1
	_, err = rotated.Open(ctx, box, []byte("here"))
	require.ErrorIs(t, err, healthlab.Invalid)
	_, err = rotated.Open(ctx, healthlab.Sealed{KeyID: "a", Box: []byte("x")}, nil)
	require.ErrorIs(t, err, healthlab.Invalid)
	for _, bad := range []map[string][]byte{nil, {"b": keys["b"]}, {"a": {1}}, {"a": keys["a"][:16]}, {"": keys["b"], "a": keys["a"]}} {
		_, err = healthlab.NewAESSealer("a", bad)
		require.ErrorIs(t, err, healthlab.Invalid)
	}
	for _, out := range []string{fmt.Sprintf("%v %+v %#v %s %d", old, old, old, old, old), old.LogValue().String()} {
		require.NotContains(t, out, string(keys["a"]))
		require.NotContains(t, out, fmt.Sprint(keys["a"]))
	}
}
