package main

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/draw"
	_ "image/jpeg" // pages may be photos
	"image/png"
	"os"

	"github.com/healthlab-dev/healthlab/adapters/pdftext"
	"github.com/healthlab-dev/healthlab/labreport"
)

type pageImage = image.Image

// drawBoxes draws the boxes of every field of the first page over its picture.
func drawBoxes(ctx context.Context, name string, file labreport.File, pages []labreport.Page, data labreport.Data) error {
	if len(pages) == 0 {
		return errors.New("no page to draw")
	}
	var page image.Image
	if file.Type == "application/pdf" {
		x, err := pdftext.New(nil)
		if err != nil {
			return err
		}
		defer func() { _ = x.Close() }()
		if page, err = x.Render(ctx, file, 1, 110); err != nil {
			return err
		}
	} else {
		var err error
		if page, _, err = image.Decode(bytes.NewReader(file.Data)); err != nil {
			return err
		}
	}
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
			if r.Page != 1 {
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

// frame draws the outline of a box, two pixels wide.
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
