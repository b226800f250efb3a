package linking_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/linking"
)

var update = flag.Bool("update", false, "rewrite golden files and diagrams")

// golden compares got with a file, or writes the file under -update.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run go test ./linking -update")
	require.Equal(t, string(want), got)
}

func TestLifecycle_everyStateAndTriggerMatchesTheGoldenFile(t *testing.T) {
	var b strings.Builder
	for _, from := range linking.States() {
		fmt.Fprintf(&b, "%s\n", from)
		for _, on := range linking.Triggers() {
			to, ok := linking.Next(from, on)
			if !ok {
				to = "refused"
			}
			fmt.Fprintf(&b, "  %-10s -> %s\n", on, to)
		}
	}
	golden(t, "testdata/lifecycle.golden", b.String())
}

func TestLifecycle_diagramInDocsIsCurrent(t *testing.T) {
	golden(t, "../docs/linking-session.mmd", linking.Diagram())
}

// A session in any state but the two final ones can be started and can expire.
func TestLifecycle_everyUnfinishedSessionCanStartAndExpire(t *testing.T) {
	for _, from := range linking.States() {
		_, starts := linking.Next(from, linking.Start)
		_, expires := linking.Next(from, linking.Expire)
		final := from == linking.StateConnected || from == linking.StateExpired
		require.Equal(t, !final, starts, from)
		require.Equal(t, !final, expires, from)
	}
}
