package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the folder of the module.
var root = filepath.Join("..", "..")

const engineFolder = "examples/customstore/boltstore/"

// engineFiles are what docs/guides/store.md builds.
var engineFiles = []string{engineFolder + "boltstore.go", engineFolder + "kv.go"}

func text(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
	require.NoError(t, err)
	return string(data)
}

// code returns lines of Go without comments of whole lines, indentation, alignment and empty lines.
func code(source string) string {
	out := strings.Builder{}
	for line := range strings.Lines(source) {
		line = strings.Join(strings.Fields(line), " ")
		if line != "" && !strings.HasPrefix(line, "//") {
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}

// blocks returns the blocks of Go of a page.
func blocks(page string) []string {
	var out []string
	for _, m := range regexp.MustCompile("(?s)\n```go\n(.*?)\n```").FindAllStringSubmatch(page, -1) {
		out = append(out, m[1])
	}
	return out
}

// The code of the guide, and of the README's part about adapters, is that of the files.
func TestGuide_excerptsEqualTheSourceFiles(t *testing.T) {
	sources := ""
	for _, path := range append(engineFiles, engineFolder+"boltstore_test.go", "examples/customstore/main.go", "examples/customstore/service_test.go", "store/store.go") {
		sources += "\n" + code(text(t, path))
	}
	_, adapters, found := strings.Cut(text(t, "README.md"), "## An adapter of your own\n")
	require.True(t, found)
	adapters, _, _ = strings.Cut(adapters, "\n## ")
	guide := blocks(text(t, "docs/guides/store.md"))
	require.NotEmpty(t, blocks(adapters))
	for _, block := range append(guide, blocks(adapters)...) {
		require.True(t, strings.Contains(sources, "\n"+code(block)), block)
	}
}

// The guide has each line of the engine but its imports, and the engine has at most 300 lines.
func TestGuide_containsEveryLineOfTheEngine(t *testing.T) {
	guide := "\n" + code(strings.Join(blocks(text(t, "docs/guides/store.md")), "\n"))
	lines := 0
	for _, path := range engineFiles {
		source := text(t, path)
		lines += strings.Count(source, "\n")
		_, source, found := strings.Cut(source, "\n)\n")
		require.True(t, found, "%s has imports", path)
		for line := range strings.Lines(code(source)) {
			require.True(t, strings.Contains(guide, "\n"+line), "%s: %s", path, line)
		}
	}
	require.LessOrEqual(t, lines, 300)
}

// The guide lists the broken engines of the suite, each with the subtest that finds it.
func TestGuide_listsEachBrokenEngineOfTheSuite(t *testing.T) {
	_, table, found := strings.Cut(text(t, "docs/guides/store.md"), "\n| subtest | broken engine |")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	broken := regexp.MustCompile(`\blist\("([^"]+)", "([^"]+)"`).FindAllStringSubmatch(text(t, "store/storetest/broken_test.go"), -1)
	require.NotEmpty(t, broken)
	for _, b := range broken {
		require.True(t, strings.Contains(table, "\n| `"+b[2]+"` | "+b[1]+" | "), b[1])
	}
	require.Equal(t, len(broken), strings.Count(table, "\n| `"))
}
