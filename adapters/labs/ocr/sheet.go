package ocr

import (
	"image"
	"math"
	"slices"
)

// point is a position in a picture, in pixels.
type point struct{ x, y float64 }

func dist(a, b point) float64 { return math.Hypot(a.x-b.x, a.y-b.y) }

// sheet finds the four corners of a sheet of paper on something darker, clockwise from the top left. It returns
// false if the paper fills the picture.
func sheet(g *image.Gray) (corners [4]point, ok bool) {
	w, h := g.Rect.Dx(), g.Rect.Dy()
	step := max(1, max(w, h)/400)
	sw, sh := w/step, h/step
	if sw < 40 || sh < 40 {
		return corners, false
	}
	lum := thumbnail(g, sw, sh, step)
	if !mostlyDark(lum, otsu(lum)) {
		return corners, false
	}
	// Paper in shadow may be darker than a bright table, but not than the table in the same shadow.
	lit := copyOf(lum)
	normalizeLight(lit)
	const fourFifths = 200 // of 255, for the brightness of the paper
	best := 0.0
	for _, try := range []struct {
		picture *image.Gray
		cut     uint8
	}{{lum, otsu(lum)}, {lum, borderThreshold(lum)}, {lit, otsu(lit)}, {lit, fourFifths}} {
		if found, straight := paperAbove(try.picture, step, try.cut); straight > best {
			corners, best = found, straight
		}
	}
	if best == 0 {
		return corners, false
	}
	// The corners are moved inward slightly, so that no dark edge remains.
	cx := (corners[0].x + corners[1].x + corners[2].x + corners[3].x) / 4
	cy := (corners[0].y + corners[1].y + corners[2].y + corners[3].y) / 4
	for i, c := range corners {
		corners[i] = point{cx + (c.x-cx)*0.992, cy + (c.y-cy)*0.992}
	}
	return corners, true
}

// paperAbove finds the area around the middle of a thumbnail that is at least as bright as cut. It returns its
// corners, and how close it is to a quadrilateral with straight edges: from 0 to 1.
func paperAbove(lum *image.Gray, step int, cut uint8) (corners [4]point, straight float64) {
	sw, sh := lum.Rect.Dx(), lum.Rect.Dy()
	seen := make([]bool, sw*sh)
	var todo []int
	for dy := -sh / 8; dy <= sh/8; dy += max(1, sh/20) {
		for dx := -sw / 8; dx <= sw/8; dx += max(1, sw/20) {
			if i := (sh/2+dy)*sw + sw/2 + dx; lum.Pix[i] >= cut && !seen[i] {
				seen[i] = true
				todo = append(todo, i)
			}
		}
	}
	area := 0
	best := [4]float64{math.Inf(1), math.Inf(-1), math.Inf(-1), math.Inf(1)}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		area++
		x, y := i%sw, i/sw
		p := point{float64(x * step), float64(y * step)}
		if s := p.x + p.y; s < best[0] {
			best[0], corners[0] = s, p
		}
		if s := p.x - p.y; s > best[1] {
			best[1], corners[1] = s, p
		}
		if s := p.x + p.y; s > best[2] {
			best[2], corners[2] = s, p
		}
		if s := p.x - p.y; s < best[3] {
			best[3], corners[3] = s, p
		}
		for _, n := range []int{i - 1, i + 1, i - sw, i + sw} {
			if n < 0 || n >= sw*sh || (n == i-1 && x == 0) || (n == i+1 && x == sw-1) || seen[n] || lum.Pix[n] < cut {
				continue
			}
			seen[n] = true
			todo = append(todo, n)
		}
	}
	corners, straight = correctCorners(corners, region{seen, sw, sh, step})
	if area*10 < sw*sh*3 || !convex(corners, float64(step*min(sw, sh))/8) {
		return corners, 0
	}
	got := float64(area) * float64(step*step) / quadArea(corners)
	if got < 0.85 || got > 1.15 {
		return corners, 0
	}
	return corners, straight - math.Abs(1-got)
}

// region holds the cells of a raster that belong to the sheet. A cell is step pixels wide and high.
type region struct {
	in        []bool
	w, h, pix int
}

// correctCorners corrects each corner that is not where its two edges meet, because a shadow, a finger or a fold hides
// it, or something bright lies next to it. Corners of a curled sheet deviate less and are not changed. The second
// result is the share of edge points that are close to a straight line, of the least straight edge.
func correctCorners(found [4]point, r region) ([4]point, float64) {
	const well = 0.02 // share of the diagonal of the picture
	top, bottom := r.edges(r.w, r.h, func(along, across int) bool { return r.in[across*r.w+along] })
	left, right := r.edges(r.h, r.w, func(along, across int) bool { return r.in[along*r.w+across] })
	straight := min(top.straight, right.straight, bottom.straight, left.straight)
	size := point{float64(r.w * r.pix), float64(r.h * r.pix)}
	for i, meet := range [4]point{top.intersection(left), top.intersection(right), bottom.intersection(right), bottom.intersection(left)} {
		inside := meet.x > -0.05*size.x && meet.y > -0.05*size.y && meet.x < 1.05*size.x && meet.y < 1.05*size.y
		if inside && straight > 0.6 && dist(meet, found[i]) > well*dist(point{}, size) {
			found[i] = meet
		}
	}
	return found, straight
}

// edge is a line: across = at + slope*along. straight is the share of its points that are close to the line.
type edge struct{ at, slope, straight float64 }

func (e edge) intersection(vertical edge) point {
	x := (vertical.at + vertical.slope*e.at) / (1 - vertical.slope*e.slope)
	return point{x, e.at + e.slope*x}
}

// edges fits a straight line to the first cells of a region in evenly spaced lines of its raster, and one to the last
// cells.
// The raster has along lines of across cells, and in reports whether a cell belongs to the region.
func (r region) edges(along, across int, in func(along, across int) bool) (first, last edge) {
	var starts, ends []point
	for i := 0; i < along; i += max(1, along/80) {
		start, end := -1, -1
		for k := range across {
			if in(i, k) {
				if start < 0 {
					start = k
				}
				end = k
			}
		}
		if start >= 0 {
			starts = append(starts, point{float64(i * r.pix), float64(start * r.pix)})
			ends = append(ends, point{float64(i * r.pix), float64(end * r.pix)})
		}
	}
	return median(starts, float64(across*r.pix)), median(ends, float64(across*r.pix))
}

// median returns the line with the median of the slopes between all points (Theil 1950, Sen 1968). It tolerates
// outliers, up to a quarter of the points. It ignores the first and last points, which belong to the adjacent edges.
// size is the size of the picture.
func median(points []point, size float64) edge {
	rim := len(points) / 12
	points = points[rim : len(points)-rim]
	var slopes, at []float64
	for i, a := range points {
		for _, b := range points[:i] {
			slopes = append(slopes, (a.y-b.y)/(a.x-b.x))
		}
	}
	if len(slopes) == 0 {
		return edge{}
	}
	slices.Sort(slopes)
	e := edge{slope: slopes[len(slopes)/2]}
	for _, p := range points {
		at = append(at, p.y-e.slope*p.x)
	}
	slices.Sort(at)
	e.at = at[len(at)/2]
	near := 0
	for _, v := range at {
		if math.Abs(v-e.at) < 0.015*size {
			near++
		}
	}
	e.straight = float64(near) / float64(len(at))
	return e
}

// thumbnail returns a smaller picture, in which each pixel is the brightest of several, so that print disappears.
func thumbnail(g *image.Gray, sw, sh, step int) *image.Gray {
	w, h := g.Rect.Dx(), g.Rect.Dy()
	out := image.NewGray(image.Rect(0, 0, sw, sh))
	for y := range sh {
		for x := range sw {
			v := uint8(0)
			for _, d := range [][2]int{{0, 0}, {step / 2, 0}, {0, step / 2}, {step / 2, step / 2}} {
				v = max(v, g.Pix[min(h-1, y*step+d[1])*g.Stride+min(w-1, x*step+d[0])])
			}
			out.Pix[y*sw+x] = v
		}
	}
	return out
}

// borderOf returns the brightness of the pixels at the edge of a picture, sorted from the darkest.
func borderOf(lum *image.Gray) []uint8 {
	w, h := lum.Rect.Dx(), lum.Rect.Dy()
	border := slices.Concat(lum.Pix[:w], lum.Pix[(h-1)*w:])
	for y := range h {
		border = append(border, lum.Pix[y*w], lum.Pix[y*w+w-1])
	}
	slices.Sort(border)
	return border
}

func mostlyDark(lum *image.Gray, cut uint8) bool {
	border := borderOf(lum)
	return border[len(border)*6/10] < cut
}

func borderThreshold(lum *image.Gray) uint8 {
	border := borderOf(lum)
	middle, high := int(border[len(border)/2]), int(border[len(border)*9/10])
	return uint8(min(255, 2*high-middle+6)) // brighter than nearly all of the border
}

// convex reports whether four corners form a convex quadrilateral whose sides have at least a length. Only such a
// quadrilateral can be mapped to a rectangle.
func convex(c [4]point, least float64) bool {
	for i := range 4 {
		a, b, d := c[i], c[(i+1)%4], c[(i+2)%4]
		if dist(a, b) < least || (b.x-a.x)*(d.y-b.y)-(b.y-a.y)*(d.x-b.x) <= 0 {
			return false
		}
	}
	return true
}

func quadArea(c [4]point) float64 {
	a := 0.0
	for i := range 4 {
		j := (i + 1) % 4
		a += c[i].x*c[j].y - c[j].x*c[i].y
	}
	return a / 2
}

// histogram counts how often each brightness occurs.
func histogram(g *image.Gray) (count [256]int) {
	for y := range g.Rect.Dy() {
		for _, v := range g.Pix[y*g.Stride : y*g.Stride+g.Rect.Dx()] {
			count[v]++
		}
	}
	return count
}

// otsu returns the brightness that best separates dark from bright pixels (Otsu 1979).
func otsu(g *image.Gray) uint8 {
	hist := histogram(g)
	total := 0.0
	for v, c := range hist {
		total += float64(v * c)
	}
	sumLow, nLow, best, at := 0.0, 0, 0.0, 128
	for v, c := range hist {
		nLow += c
		if nLow == 0 || nLow == len(g.Pix) {
			continue
		}
		sumLow += float64(v * c)
		mLow := sumLow / float64(nLow)
		mHigh := (total - sumLow) / float64(len(g.Pix)-nLow)
		if between := float64(nLow) * float64(len(g.Pix)-nLow) * (mLow - mHigh) * (mLow - mHigh); between > best {
			best, at = between, v+1
		}
	}
	return uint8(min(255, at))
}

// homography returns the map from a rectangle of w by h to four corners, given clockwise from the top left.
func homography(w, h float64, c [4]point) func(point) point {
	dx1, dx2, dx3 := c[1].x-c[2].x, c[3].x-c[2].x, c[0].x-c[1].x+c[2].x-c[3].x
	dy1, dy2, dy3 := c[1].y-c[2].y, c[3].y-c[2].y, c[0].y-c[1].y+c[2].y-c[3].y
	det := dx1*dy2 - dx2*dy1
	g := (dx3*dy2 - dx2*dy3) / det
	k := (dx1*dy3 - dx3*dy1) / det
	a, b := c[1].x-c[0].x+g*c[1].x, c[3].x-c[0].x+k*c[3].x
	d, e := c[1].y-c[0].y+g*c[1].y, c[3].y-c[0].y+k*c[3].y
	return func(p point) point {
		u, v := p.x/w, p.y/h
		z := g*u + k*v + 1
		return point{(a*u + b*v + c[0].x) / z, (d*u + e*v + c[0].y) / z}
	}
}
