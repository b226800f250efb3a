// Package nearest finds the known names that a misspelt one may mean.
package nearest

import (
	"cmp"
	"slices"
)

// longest is how many bytes of a name are compared.
const longest = 64

// Names returns the n known names with the fewest edits from name, the nearest first, ties in their order.
func Names(name string, known []string, n int) []string {
	sorted := slices.Clone(known)
	edits := map[string]int{}
	for _, k := range known {
		edits[k] = Edits(name, k)
	}
	slices.SortStableFunc(sorted, func(a, b string) int { return cmp.Compare(edits[a], edits[b]) })
	return sorted[:min(n, len(sorted))]
}

// Edits is the number of bytes to change, add or leave out between a and b (Levenshtein), of the first 64
// of each.
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
