package personkeytest_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
	"github.com/healthlab-dev/healthlab/privacy/personkey/personkeytest"
)

func newKeys() *personkey.Keys {
	host, err := healthlab.NewAESSealer("host", map[string][]byte{"host": make([]byte, 32)})
	if err != nil {
		panic(err) // the key has the right length
	}
	return personkey.New(memory.NewPersonKeys(), host, nil)
}

func clearStore(t *testing.T) {
	personkeytest.RunAtRest(t, func(testing.TB) personkeytest.AtRestHarness {
		s := memory.New(nil)
		return personkeytest.AtRestHarness{Store: s, Files: s.Blobs(), Keys: newKeys(), Kept: func(testing.TB) []byte { return conformance.Kept([]any{s.Kept(), s.Blobs()}) }}
	})
}

func otherKeys(t *testing.T) {
	personkeytest.RunAtRest(t, func(testing.TB) personkeytest.AtRestHarness {
		s := memory.New(&memory.Options{Keys: newKeys(), EncryptSamples: true})
		return personkeytest.AtRestHarness{Store: s, Files: s.Blobs(), Keys: newKeys(), Kept: func(testing.TB) []byte { return conformance.Kept([]any{s.Kept(), s.Blobs()}) }}
	})
}

// clearSamples runs the suite over a store that encrypts everything but samples.
func clearSamples(t *testing.T) {
	personkeytest.RunAtRest(t, func(testing.TB) personkeytest.AtRestHarness {
		keys := newKeys()
		s := memory.New(&memory.Options{Keys: keys})
		return personkeytest.AtRestHarness{Store: s, Files: s.Blobs(), Keys: keys, Kept: func(testing.TB) []byte { return conformance.Kept([]any{s.Kept(), s.Blobs()}) }}
	})
}

func TestBrokenStores_eachFailsTheSuite(t *testing.T) {
	broken := []conformance.Broken{{Name: "samples in clear", Suite: clearSamples, Subtest: "AtRest/Samples"}}
	for _, kind := range []string{"BirthDate", "Demographics", "Insurance", "Orders", "Answers", "Reviews", "ParsingJobs", "Files", "Records", "Samples", "Tables", "LabJournal"} {
		broken = append(broken,
			conformance.Broken{Name: "clear, " + kind, Suite: clearStore, Subtest: "AtRest/" + kind},
			conformance.Broken{Name: "keys that stay, " + kind, Suite: otherKeys, Subtest: "AtRest/" + kind})
	}
	conformance.RunBroken(t, broken)
}
