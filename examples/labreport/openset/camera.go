package openset

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/healthlab-dev/healthlab/labreport"
)

// span is a range from which a parameter of a picture is drawn at random.
type span struct{ from, to float64 }

func (s span) draw(r *rand.Rand) float64 { return s.from + (s.to-s.from)*r.Float64() }

func (s span) sign(r *rand.Rand) float64 {
	if r.IntN(2) == 0 {
		return -s.draw(r)
	}
	return s.draw(r)
}

// Medium describes how a picture of a sheet of paper is made, such as by a scanner or a camera.
type Medium struct {
	// Name is the name of the kind of file, such as "photograph".
	Name string
	// DPI is the resolution of the page in dots per inch.
	DPI int
	// Bar is the lowest F1 score of rows that this project's reader must reach in the tests.
	Bar float64
	// turn is the rotation in degrees. lean and side are perspective: the fraction by which the far edge is
	// shorter, at the top and at one side. curl is how far the middle of a line sags, as a fraction of the page
	// width.
	turn, lean, side, curl span
	// light is the brightness of white paper, from 0 to 1. shadow is the fraction of it that the shadow of a hand
	// takes away. falloff is the fraction that is lost towards one side.
	light, shadow, falloff span
	ink                    float64 // brightness of print, as a fraction of the brightness of paper
	noise, blur            span    // of the camera: standard deviation of brightness (0 to 255), and radius in pixels
	table                  span    // brightness of the table under the sheet, as a fraction of paper's; zero for a scan
	screen                 bool    // the picture is a screenshot of a web page and not of paper: see the function screen
	quality                int     // JPEG quality; 0 means PNG
}

// Media returns the ways to make a picture for which accuracy is measured.
func Media() []Medium { return slices.Clone(media) }

var media = []Medium{
	{Name: "scan with strong grain", DPI: 300, Bar: 0.92, turn: span{0, 0.6}, light: span{0.84, 0.84}, ink: 0.2, noise: span{42, 42}, blur: span{0.6, 0.6}},
	{Name: "photograph", DPI: 165, Bar: 0.88, turn: span{0, 3}, lean: span{0, 0.06}, side: span{0, 0.04}, curl: span{0, 0.01}, light: span{0.5, 0.98}, shadow: span{0, 0.4},
		falloff: span{0.05, 0.4}, ink: 0.15, noise: span{2, 6}, blur: span{0.3, 0.8}, table: span{0.1, 0.6}, quality: 82},
	{Name: "scan", DPI: 300, Bar: 0.93, turn: span{0, 0.6}, light: span{0.95, 0.97}, ink: 0.12, noise: span{4, 10}, blur: span{0.4, 0.7}},
	{Name: "150 dots an inch", DPI: 150, Bar: 0.92, turn: span{0, 0.3}, light: span{0.97, 1}, ink: 0.1, noise: span{1, 4}, blur: span{0.2, 0.5}},
	{Name: "curled photograph", DPI: 180, Bar: 0.80, turn: span{0, 3}, lean: span{0, 0.08}, side: span{0, 0.05}, curl: span{0.008, 0.02}, light: span{0.6, 0.95}, shadow: span{0.1, 0.45},
		falloff: span{0.1, 0.4}, ink: 0.15, noise: span{2, 6}, blur: span{0.3, 0.9}, table: span{0.1, 0.6}, quality: 78},
	{Name: "photograph in low light", DPI: 180, Bar: 0.80, turn: span{0, 3}, lean: span{0, 0.06}, side: span{0, 0.04}, curl: span{0, 0.006}, light: span{0.25, 0.4}, shadow: span{0, 0.3},
		falloff: span{0.1, 0.4}, ink: 0.2, noise: span{5, 9}, blur: span{0.4, 0.9}, table: span{0.1, 0.6}, quality: 80},
	{Name: "picture of a screen", DPI: 100, Bar: 0.90, screen: true},
}

// Take returns the picture that the medium makes of a page, as a PNG or JPEG file. It draws the parameters from r,
// so an equal r gives an equal picture.
func (m *Medium) Take(page *image.Gray, r *rand.Rand) labreport.File {
	if m.screen {
		return screen(page, r)
	}
	w, h := float64(page.Rect.Dx()), float64(page.Rect.Dy())
	turn, lean, side, curl := m.turn.sign(r)*math.Pi/180, m.lean.draw(r), m.side.sign(r), m.curl.sign(r)
	light, shadow, falloff := m.light.draw(r), m.shadow.draw(r), m.falloff.draw(r)
	noise, blur := m.noise.draw(r), m.blur.draw(r)
	shadowAt, shadowTilt := 0.3+0.6*r.Float64(), r.Float64()-0.5
	margin, warm := 0.0, 0.0
	under := func(_, _ float64) float64 { return 1 }
	if m.table.to > 0 {
		margin, warm, under = 0.09*w, 0.06, woodTexture(m.table, r)
	}
	ow, oh := int(w+2*margin), int(h+2*margin)
	// corners are the places of the sheet's corners in the picture, clockwise from the top left.
	sin, cos := math.Sincos(turn)
	var corners [4][2]float64
	for i, c := range [4][2]float64{{-1, -1}, {1, -1}, {1, 1}, {-1, 1}} {
		x, y := c[0]*w/2, c[1]*h/2
		if c[1] < 0 {
			x *= 1 - lean
		}
		if c[0]*side < 0 {
			y *= 1 - math.Abs(side)
		}
		corners[i] = [2]float64{float64(ow)/2 + x*cos - y*sin, float64(oh)/2 + x*sin + y*cos}
	}
	back := inverse(projection(w, h, corners))
	out := image.NewRGBA(image.Rect(0, 0, ow, oh))
	for y := range oh {
		for x := range ow {
			px, py := apply(back, float64(x), float64(y))
			v := under(float64(x), float64(y))
			if px >= 0 && py >= 0 && px < w && py < h {
				sag := curl * w * math.Sin(math.Pi*px/w) * (0.6 + 0.4*py/h)
				p := blurred(page, px, py+sag, blur) / 255
				v = m.ink + (1-m.ink)*p
			}
			v *= 1 - falloff*(px/w)*(0.6+0.4*py/h)
			v *= 1 - shadow/(1+math.Exp(-14*(py/h+shadowTilt*(px/w-0.5)-shadowAt)))
			n := v*light*255 + noise*r.NormFloat64()
			out.SetRGBA(x, y, color.RGBA{level(n), level(n * (1 - warm/3)), level(n * (1 - warm)), 255})
		}
	}
	var b bytes.Buffer
	if m.quality > 0 {
		_ = jpeg.Encode(&b, out, &jpeg.Options{Quality: m.quality})
		return labreport.File{Type: "image/jpeg", Data: b.Bytes()}
	}
	_ = (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&b, out)
	return labreport.File{Type: "image/png", Data: b.Bytes()}
}

// woodTexture returns the brightness of a wooden table with its grain, as a function of the position in pixels.
func woodTexture(brightness span, r *rand.Rand) func(x, y float64) float64 {
	mean, wide, slant, contrast := brightness.draw(r), span{10, 50}.draw(r), span{-0.5, 0.5}.draw(r), span{0.02, 0.12}.draw(r)
	return func(x, y float64) float64 {
		u := (x + slant*y) / wide
		return mean * (1 + contrast*math.Sin(u+2*math.Sin(y/300)) + contrast*math.Sin(2.7*u))
	}
}

// Colours of a web page with a table: pairs of row backgrounds, rules between rows, print, and print of warnings.
var (
	tints = [][2]color.RGBA{
		{{255, 255, 255, 255}, {242, 245, 249, 255}}, {{255, 255, 255, 255}, {222, 235, 247, 255}}, {{255, 255, 255, 255}, {226, 240, 217, 255}},
		{{250, 250, 250, 255}, {238, 238, 238, 255}}, {{253, 246, 236, 255}, {250, 232, 206, 255}},
	}
	rules  = []color.RGBA{{221, 221, 221, 255}, {190, 200, 210, 255}, {255, 255, 255, 255}}
	prints = []color.RGBA{{33, 37, 41, 255}, {60, 60, 67, 255}, {0, 0, 0, 255}}
	alarms = []color.RGBA{{200, 30, 30, 255}, {194, 84, 10, 255}, {176, 0, 90, 255}}
)

// screen draws a page as a screenshot of a table on a web page, cropped to the print. Rows have alternating
// backgrounds and a rule between them; about every fifth row is in a warning colour.
func screen(page *image.Gray, r *rand.Rand) labreport.File {
	const ink = 160 // pixels below it are print; the soft edges of letters are lighter
	w, h := page.Rect.Dx(), page.Rect.Dy()
	left, right := w, 0
	printed := make([]bool, h)
	for y := range h {
		for x := range w {
			if page.Pix[y*page.Stride+x] < ink {
				printed[y] = true
				left, right = min(left, x), max(right, x)
			}
		}
	}
	var starts []int // top of each row, in the gap above its print
	last := 0
	for y := 1; y < h; y++ {
		if printed[y] && !printed[y-1] {
			starts = append(starts, max(y-6, (last+y)/2))
		}
		if printed[y] {
			last = y
		}
	}
	if len(starts) == 0 {
		starts = []int{0}
	}
	tint, rule, dark, alarm := tints[r.IntN(len(tints))], rules[r.IntN(len(rules))], prints[r.IntN(len(prints))], alarms[r.IntN(len(alarms))]
	const margin = 8
	left, right = max(0, left-margin), min(w, right+margin)
	top, bottom := max(0, starts[0]-margin), min(h, last+margin)
	out := image.NewRGBA(image.Rect(0, 0, right-left, bottom-top))
	row, paper, print := -1, tint[0], dark
	for y := top; y < bottom; y++ {
		ruled := false
		if row+1 < len(starts) && y >= starts[row+1] {
			row++
			paper, print, ruled = tint[row%2], dark, true
			if r.IntN(5) == 0 {
				print = alarm
			}
		}
		for x := left; x < right; x++ {
			c := mixed(print, paper, float64(page.Pix[y*page.Stride+x])/255)
			if ruled && page.Pix[y*page.Stride+x] == 255 {
				c = rule
			}
			out.SetRGBA(x-left, y-top, c)
		}
	}
	var b bytes.Buffer
	_ = (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&b, out)
	return labreport.File{Type: "image/png", Data: b.Bytes()}
}

func mixed(print, paper color.RGBA, paperPart float64) color.RGBA {
	mix := func(a, b uint8) uint8 { return level(float64(a)*(1-paperPart) + float64(b)*paperPart) }
	return color.RGBA{mix(print.R, paper.R), mix(print.G, paper.G), mix(print.B, paper.B), 255}
}

func level(v float64) uint8 { return uint8(min(255, max(0, v))) }

func blurred(g *image.Gray, x, y, radius float64) float64 {
	return (2*interpolated(g, x, y) + interpolated(g, x-radius, y) + interpolated(g, x+radius, y) + interpolated(g, x, y-radius) + interpolated(g, x, y+radius)) / 6
}

// interpolated returns the brightness of a page at a point between pixels, interpolated. Outside of the page it is 255,
// white.
func interpolated(g *image.Gray, x, y float64) float64 {
	x0, y0 := int(math.Floor(x)), int(math.Floor(y))
	if x0 < 0 || y0 < 0 || x0+1 >= g.Rect.Dx() || y0+1 >= g.Rect.Dy() {
		return 255
	}
	ax, ay := x-float64(x0), y-float64(y0)
	at := func(x, y int) float64 { return float64(g.Pix[y*g.Stride+x]) }
	return (1-ay)*((1-ax)*at(x0, y0)+ax*at(x0+1, y0)) + ay*((1-ax)*at(x0, y0+1)+ax*at(x0+1, y0+1))
}

// projection returns the 3 by 3 matrix of the perspective that maps a rectangle of w by h to four corners, which
// are given clockwise from the top left.
func projection(w, h float64, c [4][2]float64) [9]float64 {
	dx1, dx2, dx3 := c[1][0]-c[2][0], c[3][0]-c[2][0], c[0][0]-c[1][0]+c[2][0]-c[3][0]
	dy1, dy2, dy3 := c[1][1]-c[2][1], c[3][1]-c[2][1], c[0][1]-c[1][1]+c[2][1]-c[3][1]
	det := dx1*dy2 - dx2*dy1
	g, k := (dx3*dy2-dx2*dy3)/det, (dx1*dy3-dx3*dy1)/det
	return [9]float64{
		(c[1][0] - c[0][0] + g*c[1][0]) / w, (c[3][0] - c[0][0] + k*c[3][0]) / h, c[0][0],
		(c[1][1] - c[0][1] + g*c[1][1]) / w, (c[3][1] - c[0][1] + k*c[3][1]) / h, c[0][1],
		g / w, k / h, 1,
	}
}

// inverse returns the adjugate of a 3 by 3 matrix. Up to a factor, which perspective ignores, it is the inverse.
func inverse(m [9]float64) [9]float64 {
	return [9]float64{
		m[4]*m[8] - m[5]*m[7], m[2]*m[7] - m[1]*m[8], m[1]*m[5] - m[2]*m[4],
		m[5]*m[6] - m[3]*m[8], m[0]*m[8] - m[2]*m[6], m[2]*m[3] - m[0]*m[5],
		m[3]*m[7] - m[4]*m[6], m[1]*m[6] - m[0]*m[7], m[0]*m[4] - m[1]*m[3],
	}
}

func apply(m [9]float64, x, y float64) (float64, float64) {
	z := m[6]*x + m[7]*y + m[8]
	return (m[0]*x + m[1]*y + m[2]) / z, (m[3]*x + m[4]*y + m[5]) / z
}
