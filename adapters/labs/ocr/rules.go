package ocr

import (
	"image"
	"slices"
)

// eraseRules paints the lines of tables white. It recognises them as long, thin dark runs; letters are short or
// thick.
func eraseRules(g *image.Gray) *image.Gray {
	const wide, high = 160, 90
	w, h := g.Rect.Dx(), g.Rect.Dy()
	out := &image.Gray{Pix: slices.Clone(g.Pix), Stride: g.Stride, Rect: g.Rect}
	raster{pix: g.Pix, along: 1, across: g.Stride, length: w, lines: h}.erase(out.Pix, wide)
	raster{pix: g.Pix, along: g.Stride, across: 1, length: h, lines: w}.erase(out.Pix, high)
	return out
}

// raster views a picture as rows or columns of pixels. along and across are the offsets to the next pixel of a line and
// to the next line.
type raster struct {
	pix                          []uint8
	along, across, length, lines int
}

func (r raster) dark(k, line int) bool { return r.pix[line*r.across+k*r.along] < 150 }

// erase paints white, in out, each thin run of at least a length, and the pixels beside it.
func (r raster) erase(out []uint8, least int) {
	for line := range r.lines {
		for k := 0; k < r.length; {
			if !r.dark(k, line) {
				k++
				continue
			}
			start, end := k, k
			for gaps := 0; k < r.length && gaps <= 2; k++ {
				if r.dark(k, line) {
					gaps, end = 0, k
				} else {
					gaps++
				}
			}
			if end-start < least || !r.thin(start, end, line) {
				continue
			}
			for side := max(0, line-1); side <= min(r.lines-1, line+1); side++ {
				for i := start; i <= end; i++ {
					out[side*r.across+i*r.along] = 255
				}
			}
		}
	}
}

// thin reports whether a run is thinner than print along most of its length.
func (r raster) thin(start, end, line int) bool {
	const most = 10
	thick, n := 0, 0
	for k := start; k <= end; k += max(1, (end-start)/24) {
		size := 1
		for _, dir := range []int{-1, 1} {
			for d := 1; d <= most+2; d++ {
				if at := line + dir*d; at < 0 || at >= r.lines || !r.dark(k, at) {
					break
				}
				size++
			}
		}
		n++
		if size >= most {
			thick++
		}
	}
	return thick*3 < n
}
