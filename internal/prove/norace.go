//go:build !race

package prove

// Race says that the race detector watches, under which a program takes many times the
// memory: how much it takes then says nothing.
const Race = false
