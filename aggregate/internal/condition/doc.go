// Package condition parses and prints the conditions (where) of aggregate queries. It knows the
// grammar, and no columns.
package condition
