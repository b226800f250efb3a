// Package prove says how many rounds a test with a large count runs.
package prove

import "os"

// Count returns full when the environment says HEALTHLAB_PROVE=1, else quick.
func Count(quick, full int) int {
	if os.Getenv("HEALTHLAB_PROVE") == "1" {
		return full
	}
	return quick
}
