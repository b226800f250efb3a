package dexcom_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/dexcom"
	"github.com/healthlab-dev/healthlab/healthdata"
)

var update = flag.Bool("update", false, "write the golden files")

func Example() {
	data, err := dexcom.Read("egvs", []byte(`{"records": [{"recordId": "1", "systemTime": "2026-03-04T11:00:02Z",
		"displayTime": "2026-03-04T12:00:02+01:00", "value": 104, "unit": "mg/dL", "transmitterGeneration": "g7"}]}`))
	fmt.Println(err)
	fmt.Print(data)
	// Output:
	// <nil>
	// glucose from automatic by g7
	//   sample {"timestamp":"2026-03-04T11:00:02+00:00","timezone_offset":3600,"unit":"mg/dL","value":104}
}

func TestRead_recordedPagesGiveTheGoldenData(t *testing.T) {
	pages, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, page := range pages {
		body, err := os.ReadFile(page)
		require.NoError(t, err)
		data, err := dexcom.Read(strings.TrimSuffix(filepath.Base(page), ".json"), body)
		require.NoError(t, err)
		golden := strings.TrimSuffix(page, ".json") + ".golden"
		if *update {
			require.NoError(t, os.WriteFile(golden, []byte(data.String()), 0o600))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		require.Equal(t, string(want), data.String(), page)
	}
	_, err = dexcom.Read("alerts", nil)
	require.ErrorIs(t, err, healthlab.Invalid)
	_, err = dexcom.Read("egvs", []byte("<html>"))
	require.ErrorIs(t, err, healthlab.Invalid)
}

// Every region's record is one that a list of providers takes.
func TestRecord_everyRegionsRecordIsValid(t *testing.T) {
	var list []healthdata.Provider
	for _, r := range []dexcom.Region{dexcom.UnitedStates, dexcom.Europe, dexcom.Japan, dexcom.Sandbox} {
		list = append(list, dexcom.Record(r))
	}
	all, err := healthdata.NewProviders(list)
	require.NoError(t, err)
	require.NotNil(t, all.Get("dexcom"))
	require.NotNil(t, all.Get("dexcom_eu"))
}
