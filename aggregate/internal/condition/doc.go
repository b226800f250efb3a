// Package condition parses the conditions (where) of aggregate queries. It knows the grammar, and no columns.
package condition
