package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	_ "image/jpeg" // decodes pages that are photos
	"image/png"
	"os"
	"path/filepath"
	"strings"

	"github.com/healthlab-dev/healthlab/adapters/labs/pdftext"
	"github.com/healthlab-dev/healthlab/labreport"
)

type pageImage = image.Image

// drawBoxes saves a picture of each page of a report, with a box around each field in data. files are one PDF, or a
// picture of each page; pages is the number of pages. The first picture has the file name name; the others have -2, -3
// and so on before the extension.
func drawBoxes(ctx context.Context, name string, files []labreport.File, pages int, data labreport.Data) error {
	if pages == 0 {
		return errors.New("the report must have at least one page")
	}
	x, err := pdftext.New(nil)
	if err != nil {
		return err
	}
	defer func() { _ = x.Close() }()
	for n := 1; n <= pages; n++ {
		var page image.Image
		if files[0].Type == "application/pdf" {
			page, err = x.Render(ctx, files[0], n, 110)
		} else {
			page, _, err = image.Decode(bytes.NewReader(files[n-1].Data)) // without a PDF, each file is the picture of one page
		}
		if err != nil {
			return err
		}
		to := name
		if n > 1 {
			ext := filepath.Ext(name)
			to = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), n, ext)
		}
		if err := drawPage(to, page, n, data); err != nil {
			return err
		}
	}
	return nil
}

// drawPage saves a copy of a page's picture as the file name, with a box around each field of data that was read on the
// page. number is the page number from 1.
func drawPage(name string, page image.Image, number int, data labreport.Data) error {
	b := page.Bounds()
	out := image.NewRGBA(image.Rect(0, 0, b.Dx(), b.Dy()))
	draw.Draw(out, out.Bounds(), page, b.Min, draw.Src)
	colours := map[string]color.RGBA{
		"test_name": {40, 80, 200, 255}, "value": {200, 30, 30, 255}, "units": {30, 140, 60, 255},
		"reference_range": {160, 90, 0, 255}, "interpretation": {150, 0, 150, 255}, "source_panel_name": {0, 140, 150, 255},
	}
	evidence := []labreport.Evidence{data.Metadata.Evidence}
	for _, r := range data.Results {
		evidence = append(evidence, r.Evidence)
	}
	for _, e := range evidence {
		for field, r := range e {
			if r.Page != number {
				continue
			}
			c, ok := colours[field]
			if !ok {
				c = color.RGBA{90, 90, 90, 255}
			}
			frame(out, r.Box, c)
		}
	}
	var buf bytes.Buffer
	if err := png.Encode(&buf, out); err != nil {
		return err
	}
	return os.WriteFile(name, buf.Bytes(), 0o600)
}

// frame draws the outline of a box on a picture, two pixels wide.
func frame(img *image.RGBA, b labreport.Box, c color.RGBA) {
	w, h := float64(img.Rect.Dx()), float64(img.Rect.Dy())
	x0, y0, x1, y1 := int(b.X*w)-1, int(b.Y*h)-1, int((b.X+b.Width)*w)+1, int((b.Y+b.Height)*h)+1
	for t := range 2 {
		for x := x0; x <= x1; x++ {
			img.Set(x, y0+t, c)
			img.Set(x, y1-t, c)
		}
		for y := y0; y <= y1; y++ {
			img.Set(x0+t, y, c)
			img.Set(x1-t, y, c)
		}
	}
}
