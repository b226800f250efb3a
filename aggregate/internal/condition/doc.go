// Package condition reads and writes the conditions of aggregate queries: what a caller
// sends as where. It knows the grammar, and no columns.
package condition
