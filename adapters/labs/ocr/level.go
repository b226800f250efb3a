package ocr

import (
	"image"
	"math"
)

// ink holds the dark points of a picture, in a raster of step pixels.
type ink struct {
	points []point // 0 to 1 across, 0 to 1 down
	rows   int     // number of rows of the raster
	sums   []float64
}

// maxInk is the largest number of analysed points.
const maxInk = 60000

// inkOf collects the dark points of a picture.
func inkOf(g *image.Gray) *ink {
	w, h := g.Rect.Dx(), g.Rect.Dy()
	step := max(1, w/900)
	k := &ink{rows: h / step}
	for y := 0; y < h; y += step {
		for x := 0; x < w; x += step {
			if g.Pix[y*g.Stride+x] < 110 {
				k.points = append(k.points, point{(float64(x) + 0.5) / float64(w), (float64(y) + 0.5*float64(step)) / float64(h)})
			}
		}
	}
	for len(k.points) > maxInk {
		for i := range len(k.points) / 2 {
			k.points[i] = k.points[2*i]
		}
		k.points = k.points[:len(k.points)/2]
	}
	k.sums = make([]float64, 2*k.rows+2)
	return k
}

// score returns how much the sums of dark points per row differ after each point is moved up by off(point), a
// fraction of the height. Level lines of print have a high score.
func (k *ink) score(off func(p point) float64) float64 {
	clear(k.sums)
	rows := float64(k.rows)
	for _, p := range k.points {
		if r := int((p.y - off(p) + 0.5) * rows); r >= 0 && r < len(k.sums) {
			k.sums[r]++
		}
	}
	s := 0.0
	for i := 1; i < len(k.sums); i++ {
		d := k.sums[i] - k.sums[i-1]
		s += d * d
	}
	return s
}

// shape describes how lines of print run across a page. Its terms are the slope, the sag and the skewed sag of lines
// in the middle of the page, and how much these change from top to bottom. Their sum is the height, at position x,
// of a line that begins at y. All are fractions of the height of the page.
type shape [6]float64

func (s *shape) at(p point) float64 {
	x, y := p.x-0.5, 2*p.y-1
	sag := 1 - 4*x*x
	return (s[0]+y*s[3])*x + (s[1]+y*s[4]+(s[2]+y*s[5])*x)*sag
}

// steps holds the initial step sizes of the refinement of each term.
var steps = [6]float64{0.002, 0.0012, 0.003, 0.003, 0.002, 0.002}

// levelled returns a map from a page with level lines to the picture; nil if the lines are already level.
func levelled(g *image.Gray) func(point) point {
	k := inkOf(g)
	if len(k.points) < 200 {
		return nil
	}
	var found shape
	best := k.score(found.at) * 1.01
	try := func(s shape) bool {
		got := k.score(s.at)
		if got > best {
			best, found = got, s
			return true
		}
		return false
	}
	// Slope and sag must be searched together, because both move lines.
	for slope := -0.055; slope <= 0.0551; slope += 0.005 {
		for sag := -0.03; sag <= 0.0301; sag += 0.003 {
			try(shape{slope, sag})
		}
	}
	for _, part := range []float64{1, 0.5, 0.25, 0.125} {
		for range 3 {
			better := false
			for i, step := range steps {
				for _, d := range []float64{-1, 1} {
					for s := found; ; {
						s[i] += d * part * step
						if !try(s) {
							break
						}
						better = true
					}
				}
			}
			if !better {
				break
			}
		}
	}
	w, h := float64(g.Rect.Dx()), float64(g.Rect.Dy())
	steep := 0.0
	for _, p := range []point{{0, 0}, {0.5, 0}, {1, 0}, {0, 1}, {0.5, 1}, {1, 1}} {
		steep = max(steep, math.Abs(found.at(p))*h)
	}
	if steep < 1 {
		return nil
	}
	// Print is assumed to be turned by the same angle as its lines.
	slope := found[0] * h / w
	return func(q point) point {
		x := q.x - slope*(q.y-h/2)
		return point{x, q.y + h*found.at(point{x / w, q.y / h})}
	}
}
