package storetest

import (
	"bytes"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
)

// SealerHarness makes the sealers (encryptions of secrets) that are tested.
type SealerHarness struct {
	// New returns a sealer. All sealers that New returns have the same keys.
	New func(t testing.TB) healthlab.Sealer
	// Rotated returns a sealer that encrypts with a newer key and still has the key of New. Nil if the
	// implementation does not rotate keys.
	Rotated func(t testing.TB) healthlab.Sealer
}

// RunSealer tests that a sealer, which encrypts secrets, keeps the contract of [healthlab.Sealer].
func RunSealer(t *testing.T, h SealerHarness) {
	plain, bound := []byte("a secret of an endpoint"), []byte("endpoint/1")
	seal := func(t *testing.T, s healthlab.Sealer, plain, bound []byte) healthlab.Sealed {
		t.Helper()
		box, err := s.Seal(t.Context(), plain, bound)
		require.NoError(t, err)
		require.NotEmpty(t, box.KeyID, "a box names its key")
		return box
	}
	opens := func(t *testing.T, s healthlab.Sealer, box healthlab.Sealed, plain, bound []byte) {
		t.Helper()
		got, err := s.Open(t.Context(), box, bound)
		require.NoError(t, err)
		require.True(t, bytes.Equal(plain, got), "Open returns what Seal was given")
	}
	refuses := func(t *testing.T, s healthlab.Sealer, box healthlab.Sealed, bound []byte, kind error) {
		t.Helper()
		got, err := s.Open(t.Context(), box, bound)
		require.ErrorIs(t, err, kind)
		require.Empty(t, got, "an error comes without plaintext")
	}
	t.Run("RoundTrip", func(t *testing.T) {
		s := h.New(t)
		for _, c := range []struct {
			name  string
			plain []byte
		}{
			{"Text", plain}, {"Empty", nil}, {"Binary", []byte{0, 1, 255, 0}}, {"Large", bytes.Repeat([]byte{0, 7}, 50_000)},
		} {
			t.Run(c.name, func(t *testing.T) {
				opens(t, s, seal(t, s, c.plain, bound), c.plain, bound)
				opens(t, s, seal(t, s, c.plain, nil), c.plain, nil)
			})
		}
	})
	t.Run("OtherInstance", func(t *testing.T) {
		opens(t, h.New(t), seal(t, h.New(t), plain, bound), plain, bound)
	})
	t.Run("HidesPlaintext", func(t *testing.T) {
		s := h.New(t)
		a, b := seal(t, s, plain, bound), seal(t, s, plain, bound)
		require.False(t, bytes.Contains(a.Box, plain), "the box holds the plaintext")
		require.False(t, bytes.Equal(a.Box, b.Box), "two boxes of one plaintext differ")
	})
	t.Run("KeepsArguments", func(t *testing.T) {
		s := h.New(t)
		p, b := bytes.Clone(plain), bytes.Clone(bound)
		box := seal(t, s, p, b)
		require.True(t, bytes.Equal(plain, p) && bytes.Equal(bound, b), "Seal changed its arguments")
		clear(p)
		opens(t, s, box, plain, bound)
		opens(t, s, box, plain, bound)
	})
	t.Run("Bound", func(t *testing.T) {
		s := h.New(t)
		box := seal(t, s, plain, bound)
		refuses(t, s, box, []byte("endpoint/2"), healthlab.Invalid)
		refuses(t, s, box, nil, healthlab.Invalid)
		refuses(t, s, seal(t, s, plain, nil), bound, healthlab.Invalid)
	})
	t.Run("Damaged", func(t *testing.T) {
		s := h.New(t)
		box := seal(t, s, plain, bound)
		for i := range box.Box {
			damaged := bytes.Clone(box.Box)
			damaged[i] ^= 1
			refuses(t, s, healthlab.Sealed{KeyID: box.KeyID, Box: damaged}, bound, healthlab.Invalid)
		}
		for _, n := range []int{0, 1, len(box.Box) / 2, len(box.Box) - 1} {
			refuses(t, s, healthlab.Sealed{KeyID: box.KeyID, Box: box.Box[:n]}, bound, healthlab.Invalid)
		}
	})
	t.Run("UnknownKey", func(t *testing.T) {
		s := h.New(t)
		box := seal(t, s, plain, bound)
		box.KeyID += "-unknown"
		refuses(t, s, box, bound, healthlab.Unavailable)
	})
	t.Run("Rotation", func(t *testing.T) {
		if h.Rotated == nil {
			t.Skip("the harness has no rotated sealer")
		}
		before, after := h.New(t), h.Rotated(t)
		box := seal(t, before, plain, bound)
		opens(t, after, box, plain, bound)
		fresh := seal(t, after, plain, bound)
		require.NotEqual(t, box.KeyID, fresh.KeyID, "a rotated sealer seals with the newer key")
		opens(t, after, fresh, plain, bound)
		refuses(t, before, fresh, bound, healthlab.Unavailable)
	})
	t.Run("Concurrent", func(t *testing.T) {
		s := h.New(t)
		var wg sync.WaitGroup
		errs := make([]error, 16)
		for i := range errs {
			wg.Go(func() {
				mine := bytes.Repeat([]byte{byte(i)}, 64)
				box, err := s.Seal(t.Context(), mine, bound)
				if err == nil {
					var got []byte
					if got, err = s.Open(t.Context(), box, bound); err == nil && !bytes.Equal(mine, got) {
						err = healthlab.Conflict
					}
				}
				errs[i] = err
			})
		}
		wg.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
	})
}
