package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/labs/pdftext"
)

// runsMain is the environment variable with which the test program runs main.
const runsMain = "HEALTHLABTEST_RUN_MAIN"

func TestMain(m *testing.M) {
	pdftext.Child()
	if os.Getenv(runsMain) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// samples is where reports with their truth may lie, beside the repository.
const samples = "../../../shared/data/labreport-dev"

// sampleDir returns the folder of the samples; the test is left out where there is
// none.
func sampleDir(t *testing.T) string {
	t.Helper()
	for _, dir := range []string{os.Getenv("HEALTHLABTEST_LABREPORTS"), samples} {
		if dir == "" {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, "truth")); err == nil {
			return dir
		}
	}
	t.Skip("no sample reports: set HEALTHLABTEST_LABREPORTS to a folder with files and truth")
	return ""
}

type truth struct {
	File     string             `json:"file"`
	Category string             `json:"category"`
	Metadata map[string]*string `json:"metadata"`
	Results  []struct {
		Name     string   `json:"name"`
		Value    string   `json:"value"`
		Unit     string   `json:"unit"`
		Low      *float64 `json:"ref_low"`
		High     *float64 `json:"ref_high"`
		Loinc    string   `json:"loinc"`
		LoincAny []string `json:"loinc_any"`
	} `json:"results"`
}

type written struct {
	Metadata map[string]json.RawMessage `json:"metadata"`
	Results  []struct {
		Name    string   `json:"test_name"`
		Value   string   `json:"value"`
		Unit    string   `json:"units"`
		Low     *float64 `json:"min_reference_range"`
		High    *float64 `json:"max_reference_range"`
		Matches []struct {
			Code string `json:"loinc_code"`
		} `json:"loinc_matches"`
	} `json:"results"`
	Seconds float64 `json:"seconds"`
}

// The text PDFs among the samples are read, and what -results writes is right: rows,
// ranges, codes and metadata.
func TestSamples_textPDFsAreReadAccurately(t *testing.T) {
	dir := sampleDir(t)
	files, err := filepath.Glob(filepath.Join(dir, "truth", "*.json"))
	require.NoError(t, err)
	var rows, right, ranges, codes, fields, fieldsRight int
	out := t.TempDir()
	for _, f := range files {
		var want truth
		load(t, f, &want)
		if want.Category != "pdf-text" {
			continue
		}
		require.NoError(t, run(t.Context(), []string{"-results", out, filepath.Join(dir, "files", want.File)}, &bytes.Buffer{}))
		var got written
		load(t, filepath.Join(out, strings.TrimSuffix(filepath.Base(want.File), filepath.Ext(want.File))+".json"), &got)
		require.Len(t, got.Results, len(want.Results), want.File)
		for i, w := range want.Results {
			g := got.Results[i]
			rows++
			if strings.EqualFold(g.Name, w.Name) && strings.EqualFold(g.Value, strings.ReplaceAll(w.Value, ",", ".")) && g.Unit == w.Unit {
				right++
			}
			if near(g.Low, w.Low) && near(g.High, w.High) {
				ranges++
			}
			if len(g.Matches) > 0 && strings.Contains(strings.Join(append(w.LoincAny, w.Loinc), " "), g.Matches[0].Code) {
				codes++
			}
		}
		for k, w := range want.Metadata {
			fields++
			var g string
			if json.Unmarshal(got.Metadata[k], &g) == nil && w != nil && strings.EqualFold(g, *w) {
				fieldsRight++
			}
		}
	}
	require.NotZero(t, rows)
	part := func(n int) float64 { return float64(n) / float64(rows) }
	t.Logf("rows %.4f, ranges %.4f, codes %.4f of %d; metadata %d of %d", part(right), part(ranges), part(codes), rows, fieldsRight, fields)
	require.GreaterOrEqual(t, part(right), 0.97)
	require.GreaterOrEqual(t, part(ranges), 0.98)
	require.GreaterOrEqual(t, part(codes), 0.95)
	require.GreaterOrEqual(t, float64(fieldsRight), 0.95*float64(fields))
}

// A file that the library refuses is reported, the files after it are read, and the command
// fails.
func TestRun_refusedFileIsReportedAndOthersAreRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	var out bytes.Buffer
	err := run(t.Context(), []string{write("empty.pdf", ""), write("text.pdf", "hello"), filepath.Join(dir, "missing.pdf"), write("damaged.pdf", "%PDF-1.4 damaged")}, &out)
	require.EqualError(t, err, "4 of 4 reports were refused")
	require.Contains(t, out.String(), "empty.pdf: ")
	require.Contains(t, out.String(), "missing.pdf: ")
	require.Contains(t, out.String(), "file 1 must be a PDF, a JPEG or a PNG")
	require.Contains(t, out.String(), "the PDF is damaged or has no pages")
}

// The command ends with status 1 if a file was refused.
func TestMain_exitsWith1IfAFileWasRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "damaged.pdf")
	require.NoError(t, os.WriteFile(file, []byte("%PDF-1.4 damaged"), 0o600))
	self, err := os.Executable()
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), self, file)
	c.Env = append(os.Environ(), runsMain+"=1")
	out, err := c.CombinedOutput()
	var status *exec.ExitError
	require.ErrorAs(t, err, &status, string(out))
	require.Equal(t, 1, status.ExitCode())
	require.Contains(t, string(out), "the PDF is damaged")
}

func load(t *testing.T, name string, into any) {
	t.Helper()
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, into))
}

func near(a, b *float64) bool {
	return a == nil && b == nil || a != nil && b != nil && math.Abs(*a-*b) < 1e-9
}

// The table and the boxes of the first sample can be looked at.
func TestRun_printsATableJSONAndDrawsBoxes(t *testing.T) {
	dir := sampleDir(t)
	var out bytes.Buffer
	boxes := filepath.Join(t.TempDir(), "boxes.png")
	require.NoError(t, run(t.Context(), []string{"-boxes", boxes, filepath.Join(dir, "files", "d1.pdf")}, &out))
	require.Contains(t, out.String(), "2345-7")
	b, err := os.ReadFile(boxes)
	require.NoError(t, err)
	require.True(t, bytes.HasPrefix(b, []byte("\x89PNG")))
	out.Reset()
	require.NoError(t, run(t.Context(), []string{"-json", filepath.Join(dir, "files", "d1.pdf")}, &out))
	require.True(t, json.Valid(out.Bytes()))
	require.Error(t, run(t.Context(), nil, &out))
}
