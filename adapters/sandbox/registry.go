package sandbox

import (
	"bytes"
	_ "embed" // the registry
	"fmt"

	"github.com/healthlab-dev/healthlab/orders/people"
)

//go:embed lab_registry.json
var registry []byte

// Registry returns the payors that a sandbox knows, all of them invented, and some
// diagnosis codes (ICD-10-CM). It is also an example of the file that
// [people.ReadRegistry] reads.
func Registry() (*people.Registry, error) {
	r, err := people.ReadRegistry(bytes.NewReader(registry))
	if err != nil {
		return nil, fmt.Errorf("sandbox registry: %w", err)
	}
	return r, nil
}
