package ocr

import (
	"image"
	"image/draw"
	"math"

	"github.com/healthlab-dev/healthlab/labreport"
)

// grey returns the picture in shades of grey, turned upright by its EXIF
// orientation.
func grey(img image.Image, orientation int) *image.Gray {
	b := img.Bounds()
	g, ok := img.(*image.Gray)
	if !ok || b.Min != (image.Point{}) {
		g = image.NewGray(image.Rect(0, 0, b.Dx(), b.Dy()))
		switch src := img.(type) {
		case *image.YCbCr:
			for y := range b.Dy() {
				copy(g.Pix[y*g.Stride:y*g.Stride+b.Dx()], src.Y[(y+b.Min.Y-src.Rect.Min.Y)*src.YStride+b.Min.X-src.Rect.Min.X:])
			}
		default:
			// Transparent parts are paper.
			draw.Draw(g, g.Rect, image.White, image.Point{}, draw.Src)
			draw.Draw(g, g.Rect, img, b.Min, draw.Over)
		}
	}
	if orientation <= 1 {
		return g
	}
	w, h := g.Rect.Dx(), g.Rect.Dy()
	out := image.NewGray(uprightRect(w, h, orientation))
	for y := range out.Rect.Dy() {
		for x := range out.Rect.Dx() {
			sx, sy := lyingAt(x, y, w, h, orientation)
			out.Pix[y*out.Stride+x] = g.Pix[sy*g.Stride+sx]
		}
	}
	return out
}

// uprightRect returns the bounds of a picture of w by h once it is upright.
func uprightRect(w, h, orientation int) image.Rectangle {
	if orientation >= 5 {
		w, h = h, w
	}
	return image.Rect(0, 0, w, h)
}

// lyingAt returns the pixel of a picture of w by h that stands at x, y once it is upright, by
// its EXIF orientation.
func lyingAt(x, y, w, h, orientation int) (int, int) {
	switch orientation {
	case 2:
		return w - 1 - x, y
	case 3:
		return w - 1 - x, h - 1 - y
	case 4:
		return x, h - 1 - y
	case 5:
		return y, x
	case 6:
		return y, h - 1 - x
	case 7:
		return w - 1 - y, h - 1 - x
	case 8:
		return w - 1 - y, x
	}
	return x, y
}

// point is a place in a picture, in pixels.
type point struct{ x, y float64 }

// prepared is a page with the pictures that are made of it for reading.
type prepared struct {
	raw      *image.Gray
	flat     *image.Gray // evened, straightened, enlarged
	unruled  *image.Gray
	flatBack func(point) point // from flat to raw
	grainy   bool
}

// scaled returns the straightened page, without the rules of its tables, at a part of
// its size, with the grain taken out. Readings at two sizes make different mistakes.
func (p *prepared) scaled(part float64) *image.Gray {
	src := p.unruledPage()
	if part == 1 {
		return src
	}
	w, h := int(float64(src.Rect.Dx())*part), int(float64(src.Rect.Dy())*part)
	soft := image.NewGray(src.Rect)
	copy(soft.Pix, src.Pix)
	smooth(soft)
	return warp(soft, w, h, func(q point) point { return point{q.x / part, q.y / part} }, false)
}

func (p *prepared) unruledPage() *image.Gray {
	if p.unruled == nil {
		p.unruled = eraseRules(p.flat)
		eraseLeaders(p.unruled)
	}
	return p.unruled
}

// smooth takes the grain out: a small soft blur.
func smooth(g *image.Gray) {
	w, h := g.Rect.Dx(), g.Rect.Dy()
	sum := make([]uint16, w*h)
	for y := range h {
		row := g.Pix[y*g.Stride : y*g.Stride+w]
		for x := range w {
			sum[y*w+x] = uint16(row[max(0, x-1)]) + 2*uint16(row[x]) + uint16(row[min(w-1, x+1)])
		}
	}
	for y := range h {
		up, down := max(0, y-1)*w, min(h-1, y+1)*w
		for x := range w {
			g.Pix[y*g.Stride+x] = uint8((sum[up+x] + 2*sum[y*w+x] + sum[down+x] + 8) / 16)
		}
	}
}

// degrain takes strong grain out before anything is made of the brightness of single
// pixels: the paper of a grainy scan is as bright as its mean, not as its brightest
// grains. Print is some pixels thick at the size that we read, and survives. It reports
// whether there was strong grain.
func degrain(g *image.Gray) bool {
	// What is left of the noise after a pass is soft, and would not be seen as noise.
	passes := min(3, int(graininess(g)/11))
	for range passes {
		smooth(g)
	}
	return passes > 0
}

// graininess estimates the strength of the noise, as a standard deviation of
// brightness: by the median of what a mask answers to that neither even places nor
// slopes touch (Immerkaer, Fast noise variance estimation, 1996; the median in place of
// the mean, since print is no noise).
func graininess(g *image.Gray) float64 {
	w, h := g.Rect.Dx(), g.Rect.Dy()
	var count [4*255*2 + 1]int
	n := 0
	for y := 1; y < h-1; y += 3 {
		up, row, down := g.Pix[(y-1)*g.Stride:], g.Pix[y*g.Stride:], g.Pix[(y+1)*g.Stride:]
		for x := 1; x < w-1; x += 3 {
			v := int(up[x-1]) + int(up[x+1]) + int(down[x-1]) + int(down[x+1]) + 4*int(row[x]) -
				2*(int(up[x])+int(down[x])+int(row[x-1])+int(row[x+1]))
			count[max(v, -v)]++
			n++
		}
	}
	left := n / 2
	for v, c := range count {
		if left -= c; left < 0 {
			return float64(v) / (6 * 0.6745)
		}
	}
	return 0
}

// tall is how many pixels the long side of a page has when it is read: 300 dots an
// inch on letter paper.
const tall = 3300

func prepare(g *image.Gray) *prepared {
	p := &prepared{raw: g}
	w, h := float64(g.Rect.Dx()), float64(g.Rect.Dy())
	// The sheet of a photo is cut out and made a rectangle.
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
	small := warp(g, int(ow*scale), int(oh*scale), func(q point) point { return back(point{q.x / scale, q.y / scale}) }, !cut && scale == 1)
	p.grainy = degrain(small)
	even(small)
	calm(small)
	p.flat = small
	p.flatBack = func(q point) point { return back(point{q.x / scale, q.y / scale}) }
	if level := levelled(small); level != nil {
		p.flat = warp(small, small.Rect.Dx(), small.Rect.Dy(), level, false)
		p.flatBack = func(q point) point {
			q = level(q)
			return back(point{q.x / scale, q.y / scale})
		}
	}
	return p
}

// original maps a box of the straightened page, at any size, to the raw picture.
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
	return labreport.Box{X: x0, Y: y0, Width: x1 - x0, Height: y1 - y0}
}

func dist(a, b point) float64 { return math.Hypot(a.x-b.x, a.y-b.y) }

// warp makes a picture whose pixels come from the places that from names, read
// between the pixels.
func warp(g *image.Gray, w, h int, from func(point) point, same bool) *image.Gray {
	w, h = max(w, 1), max(h, 1)
	out := image.NewGray(image.Rect(0, 0, w, h))
	if same {
		for y := range h {
			copy(out.Pix[y*out.Stride:y*out.Stride+w], g.Pix[y*g.Stride:])
		}
		return out
	}
	gw, gh := g.Rect.Dx(), g.Rect.Dy()
	for y := range h {
		for x := range w {
			q := from(point{float64(x) + 0.5, float64(y) + 0.5})
			fx, fy := q.x-0.5, q.y-0.5
			x0, y0 := int(math.Floor(fx)), int(math.Floor(fy))
			if x0 < -1 || y0 < -1 || x0 > gw-1 || y0 > gh-1 {
				out.Pix[y*out.Stride+x] = 255
				continue
			}
			ax, ay := fx-float64(x0), fy-float64(y0)
			xa, xb, ya, yb := max(x0, 0), min(x0+1, gw-1), max(y0, 0), min(y0+1, gh-1)
			v := (1-ay)*((1-ax)*float64(g.Pix[ya*g.Stride+xa])+ax*float64(g.Pix[ya*g.Stride+xb])) +
				ay*((1-ax)*float64(g.Pix[yb*g.Stride+xa])+ax*float64(g.Pix[yb*g.Stride+xb]))
			out.Pix[y*out.Stride+x] = uint8(v + 0.5)
		}
	}
	return out
}

// even takes shadows and the colour of the paper out: every pixel is divided by the
// brightest of its neighbourhood.
func even(g *image.Gray) {
	const block = 24
	w, h := g.Rect.Dx(), g.Rect.Dy()
	bw, bh := (w+block-1)/block, (h+block-1)/block
	top := make([]float64, bw*bh)
	var hist [256]int
	for by := range bh {
		for bx := range bw {
			clear(hist[:])
			n := 0
			for y := by * block; y < min(h, (by+1)*block); y++ {
				for x := bx * block; x < min(w, (bx+1)*block); x++ {
					hist[g.Pix[y*g.Stride+x]]++
					n++
				}
			}
			// Nearly the brightest: a speck of noise does not count.
			left := n / 12
			v := 255
			for ; v > 0; v-- {
				if left -= hist[v]; left < 0 {
					break
				}
			}
			top[by*bw+bx] = float64(v)
		}
	}
	wide := make([]float64, bw*bh)
	for by := range bh {
		for bx := range bw {
			best := 0.0
			for y := max(0, by-1); y <= min(bh-1, by+1); y++ {
				for x := max(0, bx-1); x <= min(bw-1, bx+1); x++ {
					best = max(best, top[y*bw+x])
				}
			}
			wide[by*bw+bx] = best
		}
	}
	soft := make([]float64, bw*bh)
	for by := range bh {
		for bx := range bw {
			sum, n := 0.0, 0.0
			for y := max(0, by-2); y <= min(bh-1, by+2); y++ {
				for x := max(0, bx-2); x <= min(bw-1, bx+2); x++ {
					sum += wide[y*bw+x]
					n++
				}
			}
			soft[by*bw+bx] = max(sum/n, 40)
		}
	}
	for y := range h {
		fy := float64(y)/block - 0.5
		y0 := min(max(int(math.Floor(fy)), 0), bh-1)
		y1 := min(y0+1, bh-1)
		ay := min(1, max(0, fy-float64(y0)))
		for x := range w {
			fx := float64(x)/block - 0.5
			x0 := min(max(int(math.Floor(fx)), 0), bw-1)
			x1 := min(x0+1, bw-1)
			ax := min(1, max(0, fx-float64(x0)))
			bg := (1-ay)*((1-ax)*soft[y0*bw+x0]+ax*soft[y0*bw+x1]) + ay*((1-ax)*soft[y1*bw+x0]+ax*soft[y1*bw+x1])
			v := float64(g.Pix[y*g.Stride+x]) * 250 / bg
			g.Pix[y*g.Stride+x] = uint8(min(255, v))
		}
	}
}

// calm takes out the grain that evening made strong, where it brightened dark paper.
func calm(g *image.Gray) {
	const grainy = 9
	for range 3 {
		if deviation(g) < grainy {
			return
		}
		smooth(g)
	}
}

// deviation returns how far most of the paper of an evened picture is darker than its most
// common brightness.
func deviation(g *image.Gray) int {
	var hist [256]int
	for y := range g.Rect.Dy() {
		for _, v := range g.Pix[y*g.Stride : y*g.Stride+g.Rect.Dx()] {
			hist[v]++
		}
	}
	paper := 128
	for v := 128; v < 255; v++ { // 255 is also what was too bright
		if hist[v] > hist[paper] {
			paper = v
		}
	}
	edge := paper
	for edge > 0 && 10*hist[edge] > 6*hist[paper] { // one deviation, if the grain is normal
		edge--
	}
	return paper - edge
}

// eraseRules paints the lines of tables white: long dark runs that are thin. Letters
// are short or thick.
func eraseRules(g *image.Gray) *image.Gray {
	w, h := g.Rect.Dx(), g.Rect.Dy()
	out := image.NewGray(g.Rect)
	copy(out.Pix, g.Pix)
	const wide, high, thin = 160, 90, 10
	dark := func(x, y int) bool { return g.Pix[y*g.Stride+x] < 150 }
	for y := range h {
		for x := 0; x < w; {
			if !dark(x, y) {
				x++
				continue
			}
			start := x
			gaps := 0
			end := x
			for x < w && gaps <= 2 {
				if dark(x, y) {
					gaps, end = 0, x
				} else {
					gaps++
				}
				x++
			}
			if end-start >= wide && thinAcross(g, start, end, y, true, thin) {
				for k := start; k <= end; k++ {
					for d := -1; d <= 1; d++ {
						if y+d >= 0 && y+d < h {
							out.Pix[(y+d)*out.Stride+k] = 255
						}
					}
				}
			}
		}
	}
	for x := range w {
		for y := 0; y < h; {
			if !dark(x, y) {
				y++
				continue
			}
			start, end, gaps := y, y, 0
			for y < h && gaps <= 2 {
				if dark(x, y) {
					gaps, end = 0, y
				} else {
					gaps++
				}
				y++
			}
			if end-start >= high && thinAcross(g, start, end, x, false, thin) {
				for k := start; k <= end; k++ {
					for d := -1; d <= 1; d++ {
						if x+d >= 0 && x+d < w {
							out.Pix[k*out.Stride+x+d] = 255
						}
					}
				}
			}
		}
	}
	return out
}

// thinAcross samples how thick a run is.
func thinAcross(g *image.Gray, start, end, at int, flat bool, thin int) bool {
	w, h := g.Rect.Dx(), g.Rect.Dy()
	thick, n := 0, 0
	for k := start; k <= end; k += max(1, (end-start)/24) {
		size := 1
		for _, dir := range []int{-1, 1} {
			for d := 1; d <= thin+2; d++ {
				x, y := k, at+dir*d
				if !flat {
					x, y = at+dir*d, k
				}
				if x < 0 || y < 0 || x >= w || y >= h || g.Pix[y*g.Stride+x] >= 150 {
					break
				}
				size++
			}
		}
		n++
		if size >= thin {
			thick++
		}
	}
	return thick*3 < n
}

// sheet finds the four corners of a sheet of paper on something darker, clockwise
// from the top left. False if the picture is all paper.
func sheet(g *image.Gray) (corners [4]point, ok bool) {
	w, h := g.Rect.Dx(), g.Rect.Dy()
	step := max(1, max(w, h)/400)
	sw, sh := w/step, h/step
	if sw < 40 || sh < 40 {
		return corners, false
	}
	lum, hist := thumbnail(g, sw, sh, step)
	cut := otsu(hist[:], sw*sh)
	if !darkBorder(lum, sw, sh, cut) {
		return corners, false
	}
	// Fill from the middle.
	seen := make([]bool, sw*sh)
	var todo []int
	for dy := -sh / 8; dy <= sh/8; dy += max(1, sh/20) {
		for dx := -sw / 8; dx <= sw/8; dx += max(1, sw/20) {
			if i := (sh/2+dy)*sw + sw/2 + dx; lum[i] >= cut && !seen[i] {
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
			if n < 0 || n >= sw*sh || (n == i-1 && x == 0) || (n == i+1 && x == sw-1) || seen[n] || lum[n] < cut {
				continue
			}
			seen[n] = true
			todo = append(todo, n)
		}
	}
	if area*10 < sw*sh*3 {
		return corners, false
	}
	quad := quadArea(corners)
	if got := float64(area) * float64(step*step); quad <= 0 || got/quad < 0.85 || got/quad > 1.15 {
		return corners, false
	}
	// A little inside, so that no dark edge remains.
	cx := (corners[0].x + corners[1].x + corners[2].x + corners[3].x) / 4
	cy := (corners[0].y + corners[1].y + corners[2].y + corners[3].y) / 4
	for i, c := range corners {
		corners[i] = point{cx + (c.x-cx)*0.992, cy + (c.y-cy)*0.992}
	}
	return corners, true
}

// thumbnail is the picture made small, by the brightest of a few pixels: print is not
// background. It also counts how often each brightness comes.
func thumbnail(g *image.Gray, sw, sh, step int) (lum []int, hist [256]int) {
	w, h := g.Rect.Dx(), g.Rect.Dy()
	lum = make([]int, sw*sh)
	for y := range sh {
		for x := range sw {
			v := 0
			for _, d := range [][2]int{{0, 0}, {step / 2, 0}, {0, step / 2}, {step / 2, step / 2}} {
				v = max(v, int(g.Pix[min(h-1, y*step+d[1])*g.Stride+min(w-1, x*step+d[0])]))
			}
			lum[y*sw+x] = v
			hist[v]++
		}
	}
	return lum, hist
}

// darkBorder reports whether the edge of the picture is mostly darker than cut.
func darkBorder(lum []int, sw, sh, cut int) bool {
	edge, edgeDark := 0, 0
	for x := range sw {
		for _, y := range []int{0, sh - 1} {
			edge++
			if lum[y*sw+x] < cut {
				edgeDark++
			}
		}
	}
	for y := range sh {
		for _, x := range []int{0, sw - 1} {
			edge++
			if lum[y*sw+x] < cut {
				edgeDark++
			}
		}
	}
	return edgeDark*10 >= edge*6
}

func quadArea(c [4]point) float64 {
	a := 0.0
	for i := range 4 {
		j := (i + 1) % 4
		a += c[i].x*c[j].y - c[j].x*c[i].y
	}
	return a / 2
}

// otsu finds the brightness that best divides the dark from the bright.
func otsu(hist []int, n int) int {
	total := 0.0
	for v, c := range hist {
		total += float64(v * c)
	}
	sumLow, nLow, best, at := 0.0, 0, 0.0, 128
	for v, c := range hist {
		nLow += c
		if nLow == 0 || nLow == n {
			continue
		}
		sumLow += float64(v * c)
		mLow := sumLow / float64(nLow)
		mHigh := (total - sumLow) / float64(n-nLow)
		if between := float64(nLow) * float64(n-nLow) * (mLow - mHigh) * (mLow - mHigh); between > best {
			best, at = between, v+1
		}
	}
	return at
}

// homography maps a rectangle of w by h onto four corners, clockwise from the top
// left.
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
