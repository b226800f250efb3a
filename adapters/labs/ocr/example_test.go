package ocr_test

import (
	"errors"
	"fmt"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/ocr"
)

// A host that finds no tesseract goes on: PDFs with text still work, and pictures
// fail with a clear reason.
func Example() {
	_, err := ocr.New(&ocr.Options{Command: "tesseract-is-not-here"})
	if errors.Is(err, healthlab.Unimplemented) {
		fmt.Println("pictures are not read here")
	}
	// Output: pictures are not read here
}
