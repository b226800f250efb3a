// Package nearest finds the known names that are most similar to a misspelt one.
package nearest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// longest is the number of bytes of a name that are compared; the rest is ignored.
const longest = 64

// Names returns the n known names with the smallest edit distance from name, nearest first; names at the same
// distance in the order of known.
func Names(name string, known []string, n int) []string {
	sorted := slices.Clone(known)
	edits := map[string]int{}
	for _, k := range known {
		edits[k] = Edits(name, k)
	}
	slices.SortStableFunc(sorted, func(a, b string) int { return cmp.Compare(edits[a], edits[b]) })
	return sorted[:min(n, len(sorted))]
}

// Edits returns the edit distance (Levenshtein) of the first 64 bytes of a and b.
func Edits(a, b string) int {
	a, b = a[:min(len(a), longest)], b[:min(len(b), longest)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := last
			if a[i] != b[j] {
				next = min(row[j], row[j+1], last) + 1
			}
			last, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}

// Long is the number of allowed values up to which [Allowed] lists all of them.
const Long = 20

// Allowed returns a text with the allowed values, for an error about value. If there are more than [Long], it names
// the three nearest to value, and where all are listed, such as "GET /v2/providers". It does not repeat value.
func Allowed[T ~string](value T, all []T, where string) string {
	names := make([]string, len(all))
	for i, v := range all {
		names[i] = string(v)
	}
	switch {
	case len(names) == 0:
		return "must be one of those that " + where + " lists, which are none"
	case len(names) <= Long:
		return "must be one of " + strings.Join(names, ", ")
	}
	near := Names(string(value), names, 3)
	return fmt.Sprintf("must be one of %d values, such as %s, %s or %s; %s lists all", len(names), near[0], near[1], near[2], where)
}

// Contract is the path at which the HTTP API lists the allowed values that are the same in every deployment.
const Contract = "/openapi.json"
