package archtest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ownFolding matches a comparison or search of text by case alone.
var ownFolding = regexp.MustCompile(`strings\.EqualFold\(|(?:strings|bytes)\.(?:Contains|HasPrefix|HasSuffix|Compare|Index)\((?:strings|bytes)\.To(?:Lower|Upper)\(|cases\.Fold\(`)

// byCase lists the files of domain packages and of pages that compare names of protocols and codes by case,
// with what they compare. Human text is compared after healthlab.FoldText.
var byCase = map[string]string{
	"text.go":                                "FoldText itself",
	"aggregate/internal/condition/parse.go":  "keywords",
	"labreport/loinc/match.go":               "codes of the system part of LOINC",
	"linking/redirect.go":                    "schemes of addresses",
	"orders/catalogue/selection.go":          "codes of states",
	"orders/people/registry.go":              "codes of states",
	"orders/appointment/opening_hours.go":    "English names of days that the program writes",
	"internal/ucum/texts.go":                 "prefixes",
	"webhook/guard.go":                       "hosts",
	"webhook/verify.go":                      "names of headers",
	"webhook/receiver/receiver.go":           "names of headers",
	"adapters/httpapi/internal/wire/body.go": "names of character sets",
}

func TestHumanText_isFoldedByOneFunction(t *testing.T) {
	root := filepath.Join("..", "..")
	for _, path := range tracked(t, root) {
		page := strings.HasPrefix(path, "adapters/console/") || strings.HasPrefix(path, "adapters/httpapi/internal/linkpages/")
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || byCase[path] != "" || !page && !ofDomain(path) {
			continue
		}
		b, err := os.ReadFile(filepath.Join(root, path))
		if os.IsNotExist(err) {
			continue // deleted, and not yet committed
		}
		require.NoError(t, err)
		for i, line := range strings.Split(string(b), "\n") {
			require.False(t, ownFolding.MatchString(line), "%s:%d: compare human text after healthlab.FoldText", path, i+1)
		}
	}
}

// ofDomain reports whether a file is of a domain package, and not of a suite.
func ofDomain(path string) bool {
	dir := filepath.ToSlash(filepath.Dir(path))
	if dir == "." {
		return true
	}
	top, _, _ := strings.Cut(dir, "/")
	return top != "adapters" && top != "examples" && top != "internal" && top != "docs" && !strings.HasSuffix(dir, "test")
}
