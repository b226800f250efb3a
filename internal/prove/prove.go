// Package prove says how many cases a test runs, and whether slow tests run at all. [Count] and
// [Counts] return a small number in a plain go test, and the full one under make prove
// (HEALTHLABTEST_PROVE=1). Under the race detector, [Sequential] returns fewer and [Stride] makes
// a test leave out generated cases. [All] reports whether slow tests run: in CI (the variable CI
// is set) and under make prove.
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

// Count returns full under make prove and quick otherwise, as the number of cases of a test.
func Count(quick, full int) int { return Counts(quick, quick, full) }

// Counts returns full under make prove, ci in CI and quick otherwise, as the number of cases of a test.
func Counts(quick, ci, full int) int {
	switch {
	case proving():
		return full
	case All():
		return ci
	}
	return quick
}

// Sequential returns the number of random cases of a test on one goroutine. It is that of [Counts], or a fifth (at
// least 1) under the race detector, which makes such a test ten times slower and finds nothing in it. Under make
// prove it is always full.
func Sequential(quick, ci, full int) int { return sequential(Counts(quick, ci, full), Race, 1) }

func sequential(n int, race bool, least int) int {
	if !race || proving() {
		return n
	}
	return min(n, max(n/5, least))
}

// Stride returns n under the race detector, except under make prove, and 1 otherwise. A test on one goroutine whose
// cases are generated, not random, runs only each nth of them.
func Stride(n int) int {
	if !Race || proving() {
		return 1
	}
	return n
}

// SetChecks sets the flag -rapid.checks, the number of random sequences of each property, to [Counts] of its
// arguments; under the race detector, except under make prove, to a fifth of it and at least 5. It does not change
// a flag that was given on the command line. Call it in TestMain.
func SetChecks(quick, ci, full int) {
	flag.Parse()
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "rapid.checks" })
	if f := flag.Lookup("rapid.checks"); f != nil && !set {
		_ = f.Value.Set(strconv.Itoa(sequential(Counts(quick, ci, full), Race, 5))) // a number is always valid
	}
}

// All reports whether slow tests run: in CI and under make prove.
func All() bool { return proving() || os.Getenv("CI") != "" }

func proving() bool { return os.Getenv("HEALTHLABTEST_PROVE") == "1" }
