package sandbox

import (
	"bytes"
	_ "embed" // the catalogue
	"fmt"

	"github.com/healthlab-dev/healthlab/orders"
)

//go:embed lab_catalogue.json
var catalogue []byte

// Catalogue returns what every team of a sandbox can order: four lab tests, one for
// each collection method, at two invented laboratories that bill through an account of
// the platform. The markers carry real LOINC codes. It is also an example of the file
// that [orders.ReadStaticCatalog] reads.
func Catalogue() (*orders.StaticCatalog, error) {
	b, err := orders.ReadStaticCatalog(bytes.NewReader(catalogue))
	if err != nil {
		return nil, fmt.Errorf("sandbox catalogue: %w", err)
	}
	return b, nil
}
