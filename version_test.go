package healthlab_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
)

// The newest release in the changelog is the library's version.
func TestVersion_isTheNewestReleaseOfTheChangelog(t *testing.T) {
	text, err := os.ReadFile("CHANGELOG.md")
	require.NoError(t, err)
	newest := regexp.MustCompile(`(?m)^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d{2}-\d{2}$`).FindSubmatch(text)
	require.NotNil(t, newest, "CHANGELOG.md has no release")
	require.Equal(t, healthlab.Version, string(newest[1]))
}
