// Package prove says which tests run where, and at which counts: a plain go test and make test
// run each test at a small count, CI (the variable CI is set) the suites against broken stores
// besides, and make prove (HEALTHLAB_PROVE=1) everything at its full count.
//
//	for range prove.Count(1_000, 100_000) {
//		…
//	}
//
// Only tests import it.
package prove

import "os"

// Count returns full if the environment says HEALTHLAB_PROVE=1 (make prove), and
// quick otherwise (make test). Quick is a tenth of full, or less.
func Count(quick, full int) int {
	if Full() {
		return full
	}
	return quick
}

// Full reports whether tests run at their full counts: under make prove.
func Full() bool { return os.Getenv("HEALTHLAB_PROVE") == "1" }

// All reports whether tests run that are too slow for a plain go test: under make prove
// (HEALTHLAB_PROVE=1) and in CI (CI is set).
func All() bool {
	return Full() || os.Getenv("CI") != ""
}
