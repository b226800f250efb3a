package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/labs/pdftext"
	"github.com/healthlab-dev/healthlab/examples/labreport/openset"
)

func TestMain(m *testing.M) {
	pdftext.Child()
	os.Exit(m.Run())
}

// The command prints a row for a kind, and the calibration; text is read nearly without an error.
func TestRun_printsAccuracyAndCalibration(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-kinds", "text"}, &out))
	require.Contains(t, out.String(), "| text | 23 |")
	require.Contains(t, out.String(), "| Confidence | Fields |")
}

// The set is written with what it says, for other readers.
func TestRun_writesTheSheetsWithTheirTruth(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, run(t.Context(), []string{"-kinds", "text,150 dots an inch", "-sheets", "1", "-write", dir}, &bytes.Buffer{}))
	for _, name := range []string{"00-text.pdf", "00-150_dots_an_inch.png"} {
		require.FileExists(t, filepath.Join(dir, name))
	}
	doc, err := os.ReadFile(filepath.Join(dir, "00.truth.json"))
	require.NoError(t, err)
	var rows []struct{ Name, Value, Unit string }
	require.NoError(t, json.Unmarshal(doc, &rows))
	require.Len(t, rows, len(openset.Sheets()[0].Rows))
}

func TestFlags_invalidValueIsRefused(t *testing.T) {
	for _, args := range [][]string{{"-kinds", "fax"}, {"-sheets", "0"}, {"-sheets", "1000"}} {
		require.Error(t, run(t.Context(), args, &bytes.Buffer{}))
	}
}
