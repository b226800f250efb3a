//go:build race

package prove

// Race reports whether the race detector is enabled. Tests of memory use skip then, because the detector multiplies the
// memory of a program.
const Race = true
