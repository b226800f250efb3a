package labreport_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/labreport"
)

var update = flag.Bool("update", false, "write the files in testdata anew")

// sheetFile is a report as it is drawn for readers of pictures, and what it says.
type sheetFile struct {
	Layout string      `json:"layout"`
	Words  []sheetWord `json:"words"` // of its one page, 612 by 792 points
	Rows   []sheetRow  `json:"rows"`
}

type sheetWord struct {
	Text string  `json:"text"`
	X    float64 `json:"x"`
	Y    float64 `json:"y"` // of the base line
	Wide float64 `json:"wide"`
	Size float64 `json:"size"`
}

type sheetRow struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Unit  string `json:"unit"`
}

// sheetsForPictures are the layouts that are drawn. Some were tuned on as words, none as
// pictures.
var sheetsForPictures = []string{
	"six columns", "value right, no flag", "reference before result", "previous right", "low and high", "glued flags",
	"units with values", "inline", "leaders", "no heading", "two columns", "units in names",
	"unit before result", "stars", "bracketed ranges", "tight mono", "range words", "bounds around the value", "codes first", "label in front of each part",
	"tiles", "wrapped names", "two column cards",
}

// The sheets that are drawn and read as pictures, by those who can draw, are what the
// generator makes.
func TestSheets_storedFileIsCurrent(t *testing.T) {
	var out []sheetFile
	for i, name := range sheetsForPictures {
		layout := layouts[name]
		if layout == nil {
			layout = heldOut[name]
		}
		r := generate(name, layout, uint64(5000+i))
		if len(r.pages) > 1 {
			continue
		}
		f := sheetFile{Layout: name + " " + r.pages[0].Words[0].Text}
		tenth := func(v float64) float64 { return math.Round(v*10) / 10 }
		words := r.pages[0].Words
		slices.SortFunc(words, func(a, b labreport.Word) int {
			return cmp.Or(cmp.Compare(a.Box.Y, b.Box.Y), cmp.Compare(a.Box.X, b.Box.X))
		})
		for _, w := range words {
			size := w.Box.Height * 792 / 1.15
			f.Words = append(f.Words, sheetWord{w.Text, tenth(w.Box.X * 612), tenth(792 - w.Box.Y*792 - 0.88*size), tenth(w.Box.Width * 612), tenth(size)})
		}
		for _, w := range r.rows {
			f.Rows = append(f.Rows, sheetRow{w.name, w.value, w.unit})
		}
		out = append(out, f)
	}
	got, err := json.Marshal(out)
	require.NoError(t, err)
	file := filepath.Join("..", "examples", "labreport", "openset", "sheets.json")
	if *update {
		require.NoError(t, os.WriteFile(file, append(got, '\n'), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, append(got, '\n')), "run go test ./labreport -run TestSheets_storedFileIsCurrent -update")
}
