// Package prove says at which counts tests run, and which of them: [Count] and [Counts] are small in
// a plain go test and full under make prove (HEALTHLABTEST_PROVE=1); [Sequential] is smaller still under
// the race detector, and [Stride] leaves out generated cases there; [All] reports whether slow tests run, in CI (the variable CI is set) and under make
// prove.
//
//	for range prove.Count(1_000, 100_000) {
//		…
//	}
//
// Only tests import the package.
package prove

import (
	"flag"
	"os"
	"strconv"
)

// Count returns full under make prove, and quick otherwise.
func Count(quick, full int) int { return Counts(quick, quick, full) }

// Counts returns full under make prove, ci in CI, and quick otherwise.
func Counts(quick, ci, full int) int {
	switch {
	case proving():
		return full
	case All():
		return ci
	}
	return quick
}

// Sequential is Counts for a test whose random cases run on one goroutine. The race detector finds nothing in
// such a test and makes it about ten times slower. So with the detector, except under make prove, the count is
// a fifth, and at least 1.
func Sequential(quick, ci, full int) int { return sequential(Counts(quick, ci, full), Race, 1) }

func sequential(n int, race bool, least int) int {
	if !race || proving() {
		return n
	}
	return min(n, max(n/5, least))
}

// Stride returns n with the race detector, except under make prove, and 1 otherwise. A test on one goroutine
// without random cases uses it to run each nth of its cases.
func Stride(n int) int {
	if !Race || proving() {
		return 1
	}
	return n
}

// SetChecks sets -rapid.checks, the number of random sequences of each property, to [Counts] of its arguments;
// with the race detector, except under make prove, to a fifth of that, and at least 5. A value on the command
// line wins. Call it in TestMain.
func SetChecks(quick, ci, full int) {
	flag.Parse()
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "rapid.checks" })
	if f := flag.Lookup("rapid.checks"); f != nil && !set {
		_ = f.Value.Set(strconv.Itoa(sequential(Counts(quick, ci, full), Race, 5))) // a number is always valid
	}
}

// All reports whether tests run that are too slow for a plain go test.
func All() bool { return proving() || os.Getenv("CI") != "" }

func proving() bool { return os.Getenv("HEALTHLABTEST_PROVE") == "1" }
