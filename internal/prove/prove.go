// Package prove decides how many cases tests run, and which slow tests run. [Count] and [Counts] are small in a plain
// go test and full under make prove (HEALTHLABTEST_PROVE=1). [All] reports whether slow tests run: in CI (the variable
// CI is set) and under make prove.
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

// SetChecks sets -rapid.checks, the number of random sequences of each property, to [Counts] of its arguments. A value
// on the command line takes precedence. Call it in TestMain.
func SetChecks(quick, ci, full int) {
	flag.Parse()
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "rapid.checks" })
	if f := flag.Lookup("rapid.checks"); f != nil && !set {
		_ = f.Value.Set(strconv.Itoa(Counts(quick, ci, full))) // a number is always valid
	}
}

// All reports whether tests run that are too slow for a plain go test.
func All() bool { return proving() || os.Getenv("CI") != "" }

func proving() bool { return os.Getenv("HEALTHLABTEST_PROVE") == "1" }
