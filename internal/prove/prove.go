// Package prove sets the iteration counts of tests that prove a large number of rounds,
// events, queries or files. Plain test runs use a small count, make prove the full one.
//
//	for range prove.Count(1_000, 100_000) {
//		…
//	}
//
// Only tests import it. It reads the environment variable HEALTHLAB_PROVE.
package prove

import "os"

// Count returns full if the environment says HEALTHLAB_PROVE=1 (make prove), and
// quick otherwise (make test). Quick is a tenth of full, or less.
func Count(quick, full int) int {
	if os.Getenv("HEALTHLAB_PROVE") == "1" {
		return full
	}
	return quick
}

// All reports whether tests run that are too slow for a plain go test: under make prove
// (HEALTHLAB_PROVE=1) and in CI (CI is set).
func All() bool {
	return os.Getenv("HEALTHLAB_PROVE") == "1" || os.Getenv("CI") != ""
}
