package memory_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
	"github.com/healthlab-dev/healthlab/privacy/personkey/personkeytest"
)

func TestPersonKeys_passTheirStoreSuite(t *testing.T) {
	personkeytest.RunStore(t, func(testing.TB) personkey.Store { return memory.NewPersonKeys() })
}

func TestStore_passesTheEncryptionAtRestSuite(t *testing.T) {
	personkeytest.RunAtRest(t, func(testing.TB) personkeytest.AtRestHarness {
		s := newSampleStore()
		return personkeytest.AtRestHarness{Store: s, Files: s.Blobs(), Keys: s.PersonKeys(), Kept: func(testing.TB) []byte { return conformance.Kept([]any{s.Kept(), s.Blobs()}) }}
	})
}
