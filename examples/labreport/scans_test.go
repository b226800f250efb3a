package main

import (
	"context"
	"errors"
	"fmt"
	"image"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/ocr"
	"github.com/healthlab-dev/healthlab/adapters/labs/pdftext"
	"github.com/healthlab-dev/healthlab/examples/labreport/openset"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/labreport"
)

// TestSamples_picturesOfEveryMediumAreReadAccurately draws every sheet on every medium and reads it. The sheets with even numbers are
// for development, the others are blind.
func TestSamples_picturesOfEveryMediumAreReadAccurately(t *testing.T) {
	reader := labreport.NewReader(nil)
	eyes, err := ocr.New(&ocr.Options{Readability: reader.Readability, DoubtfulNumbers: reader.DoubtfulNumbers, Language: reader.Language, Timeout: time.Minute, PageTimeout: 4 * time.Minute})
	if errors.Is(err, healthlab.Unimplemented) && os.Getenv("CI") == "" {
		t.Skip("tesseract is not installed: pictures are not read in this run")
	}
	require.NoError(t, err)
	printer, err := pdftext.New(nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, printer.Close()) }()
	all := openset.Sheets()
	var total openset.Score
	media := openset.Media()
	for _, m := range media[:prove.Counts(1, 2, len(media))] {
		var both openset.Score
		for set, name := range []string{"development", "blind"}[:prove.Count(1, 2)] {
			t.Run(m.Name+"/"+name, func(t *testing.T) {
				var c openset.Score
				var took time.Duration
				for i := set; i < prove.Count(1, len(all)); i += 2 {
					f := picture(t, &m, printer, all[i], i)
					start := time.Now()
					d := readPicture(t, eyes, reader, f)
					took += time.Since(start)
					var one openset.Score
					missed := one.Add(all[i], d)
					t.Logf("%-34s F1 %.3f of %d rows, %d read", all[i].Layout, one.F1(), one.Want, one.Got)
					if os.Getenv("HEALTHLABTEST_MISSES") != "" {
						t.Log("   missed", missed)
					}
					c.Join(one)
				}
				t.Logf("F1 %.4f of %d rows; %d of %d sure fields wrong; %.1f s a page", c.F1(), c.Want, c.SureWrong, c.Sure, took.Seconds()/float64(c.Pages))
				both.Join(c)
				if name == "blind" {
					total.Join(c)
					require.GreaterOrEqual(t, c.F1(), m.Bar)
				}
			})
		}
		if both.Pages == 0 {
			continue // -run left the medium out
		}
		// One sheet is no mean of many.
		require.GreaterOrEqual(t, both.F1(), m.Bar-0.2+0.2*float64(prove.Count(0, 1)), m.Name)
	}
	t.Logf("blind: %d of %d sure fields wrong\n%s", total.SureWrong, total.Sure, total.Calibration())
	require.LessOrEqual(t, total.SureWrong*500, total.Sure)
}

// picture draws a sheet on the medium. HEALTHLABTEST_PICTURES names a folder that keeps the pictures.
func picture(t *testing.T, m *openset.Medium, printer *pdftext.Extractor, s openset.Sheet, number int) labreport.File {
	t.Helper()
	page, err := printer.Render(t.Context(), labreport.File{Type: "application/pdf", Data: s.PDF()}, 1, m.DPI)
	require.NoError(t, err)
	f := m.Take(page.(*image.Gray), rand.New(rand.NewPCG(uint64(number), uint64(m.DPI))))
	if dir := os.Getenv("HEALTHLABTEST_PICTURES"); dir != "" {
		name := fmt.Sprintf("%s-%d.%s", strings.ReplaceAll(m.Name, " ", "_"), number, strings.TrimPrefix(f.Type, "image/"))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), f.Data, 0o600))
	}
	return f
}

func readPicture(t *testing.T, eyes *ocr.Engine, reader *labreport.Reader, f labreport.File) labreport.Data {
	t.Helper()
	var pages []labreport.Page
	require.NoError(t, eyes.Extract(context.Background(), f, func(p labreport.Page) error {
		pages = append(pages, p)
		return nil
	}))
	d, _ := reader.Read(pages)
	return d
}
