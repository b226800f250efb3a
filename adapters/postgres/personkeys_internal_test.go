package postgres

import (
	"bytes"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/personkey"
)

// personKeys returns keys of persons in memory.
func personKeys() *personkey.Keys {
	sealer, err := healthlab.NewAESSealer("host", map[string][]byte{"host": bytes.Repeat([]byte{7}, 32)})
	if err != nil {
		panic(err) // the key has the right length
	}
	return personkey.New(memory.NewPersonKeys(), sealer, &personkey.Options{Cached: 100_000})
}
