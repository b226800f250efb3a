package oura_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/providers/oura"
)

var update = flag.Bool("update", false, "write the golden files")

func Example() {
	data, err := oura.Read("heartrate", []byte(`{"data": [{"timestamp": "2026-03-04T08:05:00Z", "bpm": 61, "source": "awake"}]}`))
	fmt.Println(err)
	fmt.Print(data)
	// Output:
	// <nil>
	// heartrate from ring
	//   sample {"timestamp":"2026-03-04T08:05:00+00:00","unit":"bpm","value":61}
}

func TestRead(t *testing.T) {
	pages, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, page := range pages {
		body, err := os.ReadFile(page)
		require.NoError(t, err)
		data, err := oura.Read(strings.TrimSuffix(filepath.Base(page), ".json"), body)
		require.NoError(t, err)
		golden := strings.TrimSuffix(page, ".json") + ".golden"
		if *update {
			require.NoError(t, os.WriteFile(golden, []byte(data.String()), 0o600))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		require.Equal(t, string(want), data.String(), page)
	}
	_, err = oura.Read("strain", nil)
	require.ErrorIs(t, err, healthlab.Invalid)
	_, err = oura.Read("sleep", []byte("<html>"))
	require.ErrorIs(t, err, healthlab.Invalid)
}
