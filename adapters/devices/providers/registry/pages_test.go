package registry_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/devices/providers/registry"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
)

var update = flag.Bool("update", false, "write the tables of docs/providers")

const folder = "../../../../docs/providers/"

// columns are the connectors of the table in docs/providers/README.md.
var columns = []string{"dexcom", "google_health", "oura", "polar", "strava", "suunto", "wahoo", "whoop", "withings"}

// between returns a page with another text between two comments.
func between(t *testing.T, page, text string) (was, want string) {
	t.Helper()
	const begin, end = "<!-- written by go test ./adapters/devices/providers/registry -update -->\n", "<!-- end -->\n"
	b, err := os.ReadFile(page)
	require.NoError(t, err)
	was = string(b)
	from, to := strings.Index(was, begin), strings.Index(was, end)
	require.True(t, from >= 0 && to > from, "%s has no place for a table", page)
	return was, was[:from+len(begin)] + text + was[to:]
}

// hold compares a page with its table, or writes it.
func hold(t *testing.T, page, table string) {
	t.Helper()
	was, want := between(t, page, table)
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o600))
		return
	}
	require.Equal(t, want, was, "run go test ./adapters/devices/providers/registry -update")
}

func code(list []string) string {
	if len(list) == 0 {
		return "–"
	}
	out := make([]string, len(list))
	for i, word := range list {
		out[i] = "`" + word[strings.LastIndexByte(word, '/')+1:] + "`"
	}
	return strings.Join(out, ", ")
}

// The page of each provider lists the kinds of its connector.
func TestProviderPages_listTheCollectionsOfTheConnector(t *testing.T) {
	for _, slug := range columns {
		t.Run(slug, func(t *testing.T) {
			c, err := registry.Find(slug).New(rest.Client{ID: "id", Secret: "secret", Key: "key"}, nil)
			require.NoError(t, err)
			var b strings.Builder
			b.WriteString("| kind | becomes | scopes | announced by |\n|---|---|---|---|\n")
			for _, k := range c.Describe() {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.Name, code(k.Resources), code(k.Scopes), code(k.Messages))
			}
			hold(t, folder+strings.ReplaceAll(slug, "_", "-")+".md", b.String())
		})
	}
}

// The overview says which provider has which resource.
func TestProviderOverview_listsTheResourcesOfEachProvider(t *testing.T) {
	has := map[string]map[string]bool{}
	for _, slug := range columns {
		for _, r := range registry.Find(slug).Record().Resources {
			if has[r.Resource] == nil {
				has[r.Resource] = map[string]bool{}
			}
			has[r.Resource][slug] = true
		}
	}
	var b strings.Builder
	b.WriteString("| resource | " + strings.Join(columns, " | ") + " |\n|---" + strings.Repeat("|---", len(columns)) + "|\n")
	for _, resource := range slices.Sorted(maps.Keys(has)) {
		fmt.Fprintf(&b, "| `%s` |", resource)
		for _, slug := range columns {
			mark := " "
			if has[resource][slug] {
				mark = " ✓ "
			}
			b.WriteString(mark + "|")
		}
		b.WriteByte('\n')
	}
	hold(t, folder+"README.md", b.String())
}
