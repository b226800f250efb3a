package labreport

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/healthlab-dev/healthlab/internal/fold"
)

//go:embed data/given_names.txt
var givenText string

// givenNames are first names, without case and accents.
var givenNames = sync.OnceValue(func() map[string]bool {
	m := map[string]bool{}
	for _, l := range strings.Split(givenText, "\n") {
		if strings.HasPrefix(l, "#") {
			continue
		}
		for _, w := range strings.Fields(l) {
			m[fold.String(w)] = true
		}
	}
	return m
})

// lists inverts several lists of words (separated by |). A word in two lists belongs to the one whose key is
// first.
func lists[K ~uint8 | ~string](in map[K]string) map[string]K {
	m := map[string]K{}
	for _, k := range slices.Sorted(maps.Keys(in)) {
		for _, w := range strings.Split(in[k], "|") {
			if _, taken := m[w]; !taken {
				m[w] = k
			}
		}
	}
	return m
}
