package memory_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/labreport/labreporttest"
)

func TestParsingJobs_passTheirStoreSuite(t *testing.T) {
	labreporttest.RunStore(t, func(testing.TB) labreporttest.StoreHarness {
		s, setClock := clockedHost()
		return labreporttest.StoreHarness{Jobs: s.ParsingJobs(), Messages: s.WebhookLog(), SetClock: setClock}
	})
}

func TestParsingJobs_passTheErasureSuite(t *testing.T) {
	labreporttest.RunErasure(t, func(testing.TB) labreporttest.ErasureHarness {
		s, setClock := clockedHost()
		return labreporttest.ErasureHarness{Users: s.Users(), Jobs: s.ParsingJobs(), SetClock: setClock}
	})
}

func TestBlobs_passTheirStoreSuite(t *testing.T) {
	labreporttest.RunBlobStore(t, func(*testing.T) labreport.BlobStore { return newStore().Blobs() })
}

func TestBlobs_passTheEncryptionSuite(t *testing.T) {
	labreporttest.RunBlobEncryption(t, func(testing.TB) labreporttest.EncryptedBlobs {
		s := newStore()
		return labreporttest.EncryptedBlobs{Files: s.Blobs(), Keys: s.PersonKeys(), Kept: func(testing.TB) []byte { return conformance.Kept(s) }}
	})
}

func TestParsingJobs_passTheErasedKeysSuite(t *testing.T) {
	labreporttest.RunErasedKeys(t, func(testing.TB) labreporttest.ErasedKeysHarness {
		s, setClock := clockedHost()
		return labreporttest.ErasedKeysHarness{Jobs: s.ParsingJobs(), Keys: s.PersonKeys(), SetClock: setClock}
	})
}
