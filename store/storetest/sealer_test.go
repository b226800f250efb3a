package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/store/storetest"
)

// brokenSealer is a sealer whose calls a test replaces.
type brokenSealer struct {
	healthlab.Sealer
	seal func(s healthlab.Sealer, plain, bound []byte) (healthlab.Sealed, error)
	open func(s healthlab.Sealer, box healthlab.Sealed, bound []byte) ([]byte, error)
}

func (b brokenSealer) Seal(ctx context.Context, plain, bound []byte) (healthlab.Sealed, error) {
	if b.seal == nil {
		return b.Sealer.Seal(ctx, plain, bound)
	}
	return b.seal(b.Sealer, plain, bound)
}

func (b brokenSealer) Open(ctx context.Context, box healthlab.Sealed, bound []byte) ([]byte, error) {
	if b.open == nil {
		return b.Sealer.Open(ctx, box, bound)
	}
	return b.open(b.Sealer, box, bound)
}

// aesSealer returns an AESSealer that seals with current and has the keys named.
func aesSealer(t testing.TB, current string, names ...string) healthlab.Sealer {
	t.Helper()
	keys := map[string][]byte{}
	for _, name := range names {
		keys[name] = bytes.Repeat([]byte(name), 32)
	}
	s, err := healthlab.NewAESSealer(current, keys)
	require.NoError(t, err)
	return s
}

// sealers returns the suite over sealers broken in one way.
func sealers(broken brokenSealer) func(*testing.T) {
	wrap := func(s healthlab.Sealer) healthlab.Sealer {
		b := broken
		b.Sealer = s
		return b
	}
	return func(t *testing.T) {
		storetest.RunSealer(t, storetest.SealerHarness{
			New:     func(t testing.TB) healthlab.Sealer { return wrap(aesSealer(t, "a", "a")) },
			Rotated: func(t testing.TB) healthlab.Sealer { return wrap(aesSealer(t, "b", "a", "b")) },
		})
	}
}

func TestAESSealer_passesTheSuite(t *testing.T) { sealers(brokenSealer{})(t) }

var brokenSealers = []conformance.Broken{
	{Name: "stores plaintext", Suite: sealers(brokenSealer{
		seal: func(_ healthlab.Sealer, plain, _ []byte) (healthlab.Sealed, error) {
			return healthlab.Sealed{KeyID: "a", Box: bytes.Clone(plain)}, nil
		},
		open: func(_ healthlab.Sealer, box healthlab.Sealed, _ []byte) ([]byte, error) { return box.Box, nil },
	}), Subtest: "HidesPlaintext"},
	{Name: "ignores what a box is bound to", Suite: sealers(brokenSealer{
		seal: func(s healthlab.Sealer, plain, _ []byte) (healthlab.Sealed, error) {
			return s.Seal(context.Background(), plain, nil)
		},
		open: func(s healthlab.Sealer, box healthlab.Sealed, _ []byte) ([]byte, error) {
			return s.Open(context.Background(), box, nil)
		},
	}), Subtest: "Bound"},
	{Name: "drops the last byte", Suite: sealers(brokenSealer{
		seal: func(s healthlab.Sealer, plain, bound []byte) (healthlab.Sealed, error) {
			return s.Seal(context.Background(), plain[:max(0, len(plain)-1)], bound)
		},
	}), Subtest: "RoundTrip"},
	{Name: "names no key", Suite: sealers(brokenSealer{
		seal: func(s healthlab.Sealer, plain, bound []byte) (healthlab.Sealed, error) {
			box, err := s.Seal(context.Background(), plain, bound)
			box.KeyID = ""
			return box, err
		},
	}), Subtest: "RoundTrip"},
	{Name: "clears its argument", Suite: sealers(brokenSealer{
		seal: func(s healthlab.Sealer, plain, bound []byte) (healthlab.Sealed, error) {
			box, err := s.Seal(context.Background(), plain, bound)
			clear(plain)
			return box, err
		},
	}), Subtest: "KeepsArguments"},
	{Name: "returns no error for a damaged box", Suite: sealers(brokenSealer{
		open: func(s healthlab.Sealer, box healthlab.Sealed, bound []byte) ([]byte, error) {
			plain, err := s.Open(context.Background(), box, bound)
			if errors.Is(err, healthlab.Invalid) {
				return nil, nil
			}
			return plain, err
		},
	}), Subtest: "Damaged"},
	{Name: "reports an unknown key as a damaged box", Suite: sealers(brokenSealer{
		open: func(s healthlab.Sealer, box healthlab.Sealed, bound []byte) ([]byte, error) {
			plain, err := s.Open(context.Background(), box, bound)
			if errors.Is(err, healthlab.Unavailable) {
				return nil, healthlab.Invalid
			}
			return plain, err
		},
	}), Subtest: "UnknownKey"},
}

func TestBrokenSealers_eachFailsTheSuite(t *testing.T) {
	conformance.RunBroken(t, brokenSealers)
}
