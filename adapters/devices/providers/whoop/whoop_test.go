package whoop_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/whoop"
)

var update = flag.Bool("update", false, "write the golden files")

func Example() {
	data, err := whoop.Read("body", []byte(`{"height_meter": 1.8288, "weight_kilogram": 90.7, "max_heart_rate": 200}`))
	fmt.Println(err)
	fmt.Print(data)
	// Output:
	// <nil>
	// profile from app
	//   summary {"height":183}
}

func TestRead_recordedPagesGiveTheGoldenData(t *testing.T) {
	pages, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, page := range pages {
		body, err := os.ReadFile(page)
		require.NoError(t, err)
		data, err := whoop.Read(strings.TrimSuffix(filepath.Base(page), ".json"), body)
		require.NoError(t, err)
		golden := strings.TrimSuffix(page, ".json") + ".golden"
		if *update {
			require.NoError(t, os.WriteFile(golden, []byte(data.String()), 0o600))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		require.Equal(t, string(want), data.String(), page)
	}
	_, err = whoop.Read("strain", nil)
	require.ErrorIs(t, err, healthlab.Invalid)
	_, err = whoop.Read("sleep", []byte("<html>"))
	require.ErrorIs(t, err, healthlab.Invalid)
}
