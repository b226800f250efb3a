package ocr

import (
	"image"
	"math"

	"github.com/healthlab-dev/healthlab/labreport"
)

// prepared is a page with the pictures that are derived from it for reading.
type prepared struct {
	raw      *image.Gray       // the upright page
	flat     *image.Gray       // with even light, straightened and enlarged
	unruled  *image.Gray       // flat without the lines of tables, smoothed; nil until it is used
	flatBack func(point) point // maps a point of flat to raw
	grainy   bool
	turned   int // EXIF orientation of the given picture; 0 and 1 mean that it was not turned
}

// scaled returns the straightened page without table lines and noise, scaled by part. Readings at two sizes make
// different mistakes.
func (p *prepared) scaled(part float64) *image.Gray {
	if p.unruled == nil {
		p.unruled = eraseRules(p.flat)
		eraseLeaders(p.unruled)
		smooth(p.unruled)
	}
	w, h := int(float64(p.unruled.Rect.Dx())*part), int(float64(p.unruled.Rect.Dy())*part)
	return warp(p.unruled, w, h, func(q point) point { return point{q.x / part, q.y / part} })
}

// tall is the height of a page for reading, in pixels: 300 dots per inch on letter paper.
const tall = 3300

func prepare(g *image.Gray) *prepared {
	p := &prepared{raw: g}
	w, h := float64(g.Rect.Dx()), float64(g.Rect.Dy())
	// The sheet of paper in a photo is cut out and made rectangular.
	corners, cut := sheet(g)
	ow, oh := w, h
	back := func(q point) point { return q }
	if cut {
		ow = (dist(corners[0], corners[1]) + dist(corners[3], corners[2])) / 2
		oh = (dist(corners[0], corners[3]) + dist(corners[1], corners[2])) / 2
		back = homography(ow, oh, corners)
	}
	scale := min(2.6, max(0.5, tall/max(ow, oh)))
	if math.Abs(scale-1) < 0.12 {
		scale = 1
	}
	small := copyOf(g)
	if cut || scale != 1 {
		small = warp(g, int(ow*scale), int(oh*scale), func(q point) point { return back(point{q.x / scale, q.y / scale}) })
	}
	darkenPrint(small)
	p.grainy = removeNoise(small)
	normalizeLight(small)
	smoothDarkPaper(small)
	p.flat = small
	p.flatBack = func(q point) point { return back(point{q.x / scale, q.y / scale}) }
	if level := levelled(small); level != nil {
		p.flat = warp(small, small.Rect.Dx(), small.Rect.Dy(), level)
		p.flatBack = func(q point) point {
			q = level(q)
			return back(point{q.x / scale, q.y / scale})
		}
	}
	return p
}

// original maps a box of the straightened page, at any size, to the picture as given.
func (p *prepared) original(b labreport.Box) labreport.Box {
	rw, rh := float64(p.raw.Rect.Dx()), float64(p.raw.Rect.Dy())
	w, h := float64(p.flat.Rect.Dx()), float64(p.flat.Rect.Dy())
	x0, y0, x1, y1 := math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	for _, c := range []point{{b.X, b.Y}, {b.X + b.Width, b.Y}, {b.X, b.Y + b.Height}, {b.X + b.Width, b.Y + b.Height}} {
		q := p.flatBack(point{c.x * w, c.y * h})
		x0, y0, x1, y1 = min(x0, q.x), min(y0, q.y), max(x1, q.x), max(y1, q.y)
	}
	in := func(v float64) float64 { return min(1, max(0, v)) }
	x0, y0, x1, y1 = in(x0/rw), in(y0/rh), in(x1/rw), in(y1/rh)
	return storedBox(labreport.Box{X: x0, Y: y0, Width: x1 - x0, Height: y1 - y0}, p.turned)
}

// copyOf returns a copy without padding between rows.
func copyOf(g *image.Gray) *image.Gray {
	w, h := g.Rect.Dx(), g.Rect.Dy()
	out := image.NewGray(image.Rect(0, 0, w, h))
	for y := range h {
		copy(out.Pix[y*w:y*w+w], g.Pix[y*g.Stride:])
	}
	return out
}

// warp returns a picture of w by h pixels. Each pixel is interpolated at the point of g that from returns.
func warp(g *image.Gray, w, h int, from func(point) point) *image.Gray {
	w, h = max(w, 1), max(h, 1)
	out := image.NewGray(image.Rect(0, 0, w, h))
	gw, gh := g.Rect.Dx(), g.Rect.Dy()
	const bits, one = 8, 1 << 8 // positions in fractions of a pixel
	for y := range h {
		for x := range w {
			q := from(point{float64(x) + 0.5, float64(y) + 0.5})
			qx, qy := int(math.Floor(q.x*one))-one/2, int(math.Floor(q.y*one))-one/2
			x0, y0 := qx>>bits, qy>>bits
			if x0 < -1 || y0 < -1 || x0 > gw-1 || y0 > gh-1 {
				out.Pix[y*out.Stride+x] = 255
				continue
			}
			ax, ay := qx&(one-1), qy&(one-1)
			xa, xb := max(x0, 0), min(x0+1, gw-1)
			up, down := g.Pix[max(y0, 0)*g.Stride:], g.Pix[min(y0+1, gh-1)*g.Stride:]
			v := (one-ay)*((one-ax)*int(up[xa])+ax*int(up[xb])) + ay*((one-ax)*int(down[xa])+ax*int(down[xb]))
			out.Pix[y*out.Stride+x] = uint8((v + one*one/2) / (one * one))
		}
	}
	return out
}
