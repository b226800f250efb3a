// Gen writes the extras of the contract to a file.
package main

import (
	"log"
	"os"

	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/openapi/extras"
)

func main() {
	b, err := extras.Make()
	if err == nil {
		err = os.WriteFile(os.Args[1], b, 0o644) //nolint:gosec // a file of the repository
	}
	if err != nil {
		log.Fatal(err)
	}
}
