// Package prove says how hard a randomised test should try.
//
// A test whose bar names a large count runs a tenth of it, or less, in the ordinary
// run, and the full count when the environment says HEALTHLAB_PROVE=1.
package prove

import "os"

// Count returns full if the environment says HEALTHLAB_PROVE=1, else quick.
func Count(quick, full int) int {
	if os.Getenv("HEALTHLAB_PROVE") == "1" {
		return full
	}
	return quick
}
