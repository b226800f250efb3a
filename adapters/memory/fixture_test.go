package memory_test

import (
	"bytes"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
)

// newKeys returns keys of persons in memory.
func newKeys() *personkey.Keys {
	sealer, err := healthlab.NewAESSealer("host", map[string][]byte{"host": bytes.Repeat([]byte{7}, 32)})
	if err != nil {
		panic(err) // the key has the right length
	}
	return personkey.New(memory.NewPersonKeys(), sealer, nil)
}

func clockedHost() (*memory.Store, func(time.Time)) {
	clock := conformance.NewClock(time.Unix(0, 0))
	return memory.New(&memory.Options{Keys: newKeys(), Now: clock.Now, UsersElsewhere: true}), clock.Set
}

func clockedStore() (*memory.Store, func(time.Time)) {
	clock := conformance.NewClock(time.Unix(0, 0))
	return memory.New(&memory.Options{Keys: newKeys(), Now: clock.Now}), clock.Set
}

func newStore() *memory.Store { return memory.New(&memory.Options{Keys: newKeys()}) }

func newSampleStore() *memory.Store {
	return memory.New(&memory.Options{Keys: newKeys(), EncryptSamples: true})
}
