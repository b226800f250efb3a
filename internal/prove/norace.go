//go:build !race

package prove

// Race reports whether the race detector is enabled. The detector multiplies the memory of a program, so tests that
// measure memory skip.
const Race = false
