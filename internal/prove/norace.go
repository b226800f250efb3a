//go:build !race

package prove

// Race reports whether the race detector is on. It multiplies the memory of a program, so
// tests of memory use skip under it.
const Race = false
