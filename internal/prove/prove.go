// Package prove decides how much work a test does whose bar names a large count:
// rounds, events, queries, files. A developer's run does a small part of it; a proving
// run does all.
//
//	for range prove.Count(1_000, 100_000) {
//		…
//	}
//
// It is for tests alone, and the one place that reads this from the environment.
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
