package memory_test

import (
	"bytes"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/personkey"
)

// newKeys returns keys of persons in memory.
func newKeys() *personkey.Keys {
	sealer, err := healthlab.NewAESSealer("host", map[string][]byte{"host": bytes.Repeat([]byte{7}, 32)})
	if err != nil {
		panic(err) // the key has the right length
	}
	return personkey.New(memory.NewPersonKeys(), sealer, nil)
}

// newStore returns an empty store that encrypts.
func newStore() *memory.Store { return memory.New(&memory.Options{Keys: newKeys()}) }

// newSampleStore returns an empty store that encrypts samples too.
func newSampleStore() *memory.Store {
	return memory.New(&memory.Options{Keys: newKeys(), EncryptSamples: true})
}
