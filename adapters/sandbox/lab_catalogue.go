package sandbox

import (
	"bytes"
	_ "embed" // the catalogue
	"fmt"

	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

//go:embed lab_catalogue.json
var cat []byte

// Catalogue returns what every team of a sandbox can order: four lab tests, one for
// each collection method, at two invented laboratories that bill through an account of
// the platform. The markers carry real LOINC codes. It is also an example of the file
// that [catalogue.ReadStaticCatalog] reads.
func Catalogue() (*catalogue.StaticCatalog, error) {
	b, err := catalogue.ReadStaticCatalog(bytes.NewReader(cat))
	if err != nil {
		return nil, fmt.Errorf("sandbox catalogue: %w", err)
	}
	return b, nil
}
