package labreport

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/fold"
)

// Every row of the word files belongs to a list and a key that are read, is folded, and
// no word stands under two keys of a list.
func TestWordFiles_areFoldedAndWithoutDuplicates(t *testing.T) {
	keys := map[string][]string{
		"heading": slices.Collect(maps.Keys(headingRoles)), "label": slices.Collect(maps.Keys(labelFields)), "value": slices.Collect(maps.Keys(valueClasses)),
		"factor": {""}, "guidance": {""}, "control": {""}, "title": {""}, "person": {""}, "frame": {""}, "stop": {""}, "verb": {""}, "usual": {""}, "language": {""},
	}
	require.Equal(t, []string{"en", "de", "es", "fr"}, languages)
	under := map[string]string{}
	lists := map[string]map[string]bool{}
	for _, row := range vocabulary {
		require.Contains(t, keys, row.list, row.language)
		require.Contains(t, keys[row.list], row.key, "%s %s", row.language, row.list)
		if lists[row.list] == nil {
			lists[row.list] = map[string]bool{}
		}
		lists[row.list][row.language] = true
		for _, w := range row.words {
			require.True(t, w == "+ -" || w == "ref-nr" || fold.String(w) == w, "%s %s: %q is not folded", row.language, row.list, w)
			if row.list == "language" {
				continue
			}
			at, ok := under[row.list+"|"+w]
			require.True(t, !ok || at == row.key, "%s: %q stands under %s and %s", row.list, w, at, row.key)
			under[row.list+"|"+w] = row.key
		}
	}
	for list, in := range lists {
		require.Len(t, in, 4, "every language has the list %s", list)
	}
}
