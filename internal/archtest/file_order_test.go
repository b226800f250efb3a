package archtest_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var updateFiles = flag.Bool("update", false, "write the files that a package does not list into its list")

// manyFiles is from how many files on a package says in which order they are read.
const manyFiles = 9

// filesIntro begins the list of files, at the end of the file with the package comment.
const filesIntro = "// Files in the order of reading: each uses those before it.\n//\n"

var filesList = regexp.MustCompile(regexp.QuoteMeta(filesIntro) + `((?://\t.*\n)+)`)

// The file with the comment of a package of many files, mostly doc.go, lists them in the order in which a stranger reads them. Of the uses
// between two files, at most one in eight is of a file further down. -v prints the figures.
func TestFiles_areListedInOrderOfUse(t *testing.T) {
	for _, p := range every(t) {
		uses := usesBetween(t, p.Dir)
		if len(uses.files) < manyFiles {
			continue
		}
		t.Run(p.rel(), func(t *testing.T) { checkFileOrder(t, p.Dir, uses) })
	}
}

func checkFileOrder(t *testing.T, dir string, uses fileUses) {
	t.Helper()
	path := filepath.Join(dir, uses.doc)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	list := listedFiles(string(text))
	if *updateFiles {
		list = uses.complete(list)
		require.NoError(t, os.WriteFile(path, []byte(withFiles(string(text), list)), 0o644))
	}
	require.ElementsMatch(t, uses.files, list, uses.doc+" lists other files than there are; go test ./internal/archtest -run TestFiles -update writes the list")
	against, all := uses.against(list), 0
	for _, n := range uses.counts {
		all += n
	}
	t.Logf("%d files, %d of %d uses against the order", len(list), against, all)
	require.LessOrEqual(t, against*8, all, "move declarations, or change the order of files in %s: %s", uses.doc, uses.worst(list))
}

// fileUses says how many names of a second file a first one uses, for the files of a package that are written by hand.
type fileUses struct {
	doc    string // the file with the package comment
	files  []string
	counts map[[2]string]int
}

func usesBetween(t *testing.T, dir string) fileUses {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	uses := fileUses{counts: map[[2]string]int{}}
	declaredIn, usedIn := map[string]string{}, map[string]map[string]bool{}
	for _, path := range paths {
		name := filepath.Base(path)
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		require.NoError(t, err)
		if ast.IsGenerated(file) {
			continue
		}
		if file.Doc != nil {
			uses.doc = name
		}
		if name == "doc.go" {
			continue
		}
		uses.files = append(uses.files, name)
		for _, d := range file.Decls {
			for _, id := range packageNames(d) {
				declaredIn[id] = name
			}
		}
		usedIn[name] = map[string]bool{}
		for _, id := range file.Unresolved {
			usedIn[name][id.Name] = true
		}
	}
	for name, ids := range usedIn {
		for id := range ids {
			if from := declaredIn[id]; from != "" && from != name {
				uses.counts[[2]string{name, from}]++
			}
		}
	}
	return uses
}

// packageNames returns the names that a declaration adds to its package.
func packageNames(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
			case *ast.ValueSpec:
				for _, id := range s.Names {
					names = append(names, id.Name)
				}
			}
		}
	}
	return names
}

func (u fileUses) against(list []string) (n int) {
	for pair, count := range u.counts {
		if slices.Index(list, pair[1]) > slices.Index(list, pair[0]) {
			n += count
		}
	}
	return n
}

// worst names the pairs of files with most uses against the order.
func (u fileUses) worst(list []string) string {
	var out []string
	for pair, count := range u.counts {
		if slices.Index(list, pair[1]) > slices.Index(list, pair[0]) {
			out = append(out, fmt.Sprintf("%02d of %s in %s", count, pair[1], pair[0]))
		}
	}
	slices.Sort(out)
	slices.Reverse(out)
	return strings.Join(out[:min(len(out), 8)], ", ")
}

// complete returns a list without files that are gone, and with each file that it lacks in the place with
// fewest uses against the order.
func (u fileUses) complete(list []string) []string {
	list = slices.DeleteFunc(slices.Clone(list), func(name string) bool { return !slices.Contains(u.files, name) })
	for _, name := range u.files {
		if slices.Contains(list, name) {
			continue
		}
		var best []string
		for at := range len(list) + 1 {
			if next := slices.Insert(slices.Clone(list), at, name); best == nil || u.against(next) <= u.against(best) {
				best = next
			}
		}
		list = best
	}
	return list
}

func listedFiles(doc string) (list []string) {
	m := filesList.FindStringSubmatch(doc)
	if m == nil {
		return nil
	}
	for line := range strings.Lines(m[1]) {
		list = append(list, strings.Fields(strings.TrimPrefix(line, "//"))...)
	}
	return list
}

// withFiles returns the text of a doc.go with a list of files, in place of the one that it has.
func withFiles(doc string, list []string) string {
	const width = 110
	block, line := filesIntro, "//\t"
	for i, name := range list {
		if i > 0 && len(line)+1+len(name) > width {
			block, line = block+line+"\n", "//\t"
		}
		if line != "//\t" {
			line += " "
		}
		line += name
	}
	block += line + "\n"
	if filesList.MatchString(doc) {
		return filesList.ReplaceAllLiteralString(doc, block)
	}
	return doc + "\n" + block
}

func TestFileOrder_countsUsesOfFilesBelow(t *testing.T) {
	u := fileUses{files: []string{"a.go", "b.go", "c.go"}, counts: map[[2]string]int{{"c.go", "a.go"}: 5, {"a.go", "b.go"}: 3, {"b.go", "c.go"}: 1}}
	require.Equal(t, 3, u.against([]string{"a.go", "c.go", "b.go"}))
	require.Equal(t, 1, u.against([]string{"b.go", "a.go", "c.go"}))
	require.Equal(t, []string{"b.go", "a.go", "c.go"}, u.complete([]string{"gone.go", "b.go"}))
	doc := withFiles("package x\n", u.files)
	require.Equal(t, u.files, listedFiles(doc))
	require.Equal(t, []string{"c.go"}, listedFiles(withFiles(doc, []string{"c.go"})))
}
