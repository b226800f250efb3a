package ocr

import (
	"image"
	"image/color"
	"math"
)

// scaledDown returns a picture upright, on white, with at most the given number of pixels. Each pixel is the mean of a
// square of the original.
func scaledDown(img image.Image, orientation, pixels int) *image.RGBA {
	b := img.Bounds()
	w, h := b.Dx(), b.Dy()
	n := max(1, int(math.Ceil(math.Sqrt(float64(w)*float64(h)/float64(pixels)))))
	sw, sh := max(1, w/n), max(1, h/n)
	out := image.NewRGBA(uprightRect(sw, sh, orientation))
	for y := range out.Rect.Dy() {
		for x := range out.Rect.Dx() {
			sx, sy := storedPoint(x, y, sw, sh, orientation)
			out.SetRGBA(x, y, meanColour(img, image.Rect(sx*n, sy*n, sx*n+n, sy*n+n).Add(b.Min).Intersect(b)))
		}
	}
	return out
}

// meanColour returns the mean colour of a part of a picture on white.
func meanColour(img image.Image, part image.Rectangle) color.RGBA {
	var sum [3]uint32
	for y := part.Min.Y; y < part.Max.Y; y++ {
		for x := part.Min.X; x < part.Max.X; x++ {
			r, g, b, a := img.At(x, y).RGBA()
			paper := 0xffff - a
			sum[0] += (r + paper) >> 8
			sum[1] += (g + paper) >> 8
			sum[2] += (b + paper) >> 8
		}
	}
	n := uint32(max(1, part.Dx()*part.Dy()))
	return color.RGBA{uint8(sum[0] / n), uint8(sum[1] / n), uint8(sum[2] / n), 255}
}
