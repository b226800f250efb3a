package er7_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
)

// realData returns the folder of recorded messages.
func realData(t *testing.T) string {
	t.Helper()
	root := os.Getenv("HEALTHLABTEST_REAL_DATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "..", "shared", "data", "real")
	}
	dir := filepath.Join(root, "hl7")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no recorded messages here: HEALTHLABTEST_REAL_DATA names the folder that has them")
	}
	return dir
}

// Every recorded message comes back byte for byte, and every time and number in it
// that a reader asks for is read or refused.
func TestParse_recordedMessagesRoundTrip(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(realData(t), "*.hl7"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			require.NoError(t, err)
			m, err := er7.Parse(raw, nil)
			require.NoError(t, err)
			require.Equal(t, raw, m.Bytes())
			b, err := er7.ParseBatch(raw, nil)
			require.NoError(t, err)
			require.Equal(t, raw, b.Append(nil))
			code, _ := m.Type()
			require.Contains(t, []string{"ORM", "OML", "ORU"}, code)
			lines := 0
			for _, l := range strings.FieldsFunc(string(raw), func(r rune) bool { return r == '\r' || r == '\n' }) {
				if strings.TrimSpace(l) != "" {
					lines++
				}
			}
			require.Equal(t, lines, m.Len(), "a segment for every line")
			for s := range m.Segments() {
				joined(t, m.Delimiters(), s)
			}
		})
	}
}
