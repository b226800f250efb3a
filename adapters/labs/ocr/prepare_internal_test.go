package ocr

import (
	"image"
	"image/color"
	"image/draw"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/labreport"
)

func paper(w, h int, brightness uint8) *image.Gray {
	g := image.NewGray(image.Rect(0, 0, w, h))
	for i := range g.Pix {
		g.Pix[i] = brightness
	}
	return g
}

// Pictures of any size and shape are prepared, and each place of the page is a place of the
// picture.
func TestPrepare_acceptsPicturesOfAnySizeAndShape(t *testing.T) {
	triangle := paper(800, 800, 40)
	for y := range 760 {
		for x := 400 - y/2; x <= 400+y/2; x++ {
			triangle.SetGray(x, y+20, color.Gray{Y: 230})
		}
	}
	corner := paper(900, 700, 40)
	draw.Draw(corner, image.Rect(100, 100, 800, 600), image.White, image.Point{}, draw.Src)
	draw.Draw(corner, image.Rect(450, 100, 800, 350), image.Black, image.Point{}, draw.Src)
	lying := paper(1000, 700, 50)
	draw.Draw(lying, image.Rect(60, 80, 930, 640), image.White, image.Point{}, draw.Src)
	for name, g := range map[string]*image.Gray{
		"a pixel": paper(1, 1, 255), "a line": paper(9000, 1, 200), "a column": paper(1, 9000, 200), "black": paper(300, 400, 0), "two pixels": paper(2, 2, 9),
		"triangle": triangle, "cut corner": corner, "sheet on a table": lying,
	} {
		t.Run(name, func(t *testing.T) {
			p := prepare(g)
			require.NotEmpty(t, p.scaled(0.76).Pix)
			for _, b := range []labreport.Box{{Width: 1, Height: 1}, {X: 0.4, Y: 0.99, Width: 0.01, Height: 0.01}, {X: 1, Y: 1}} {
				got := p.original(b)
				for _, v := range []float64{got.X, got.Y, got.Width, got.Height, got.X + got.Width, got.Y + got.Height} {
					require.False(t, math.IsNaN(v) || v < 0 || v > 1+1e-9, "%v", got)
				}
			}
		})
	}
	corners, found := sheet(lying)
	require.True(t, found)
	require.InDelta(t, 60, corners[0].x, 12)
	require.InDelta(t, 80, corners[0].y, 12)
	_, found = sheet(triangle)
	require.False(t, found)
}

// A corner in shadow, under a finger or folded over is found where its edges meet.
func TestSheet_findsCornersThatAreHidden(t *testing.T) {
	for i, hidden := range []image.Rectangle{image.Rect(60, 80, 230, 170), image.Rect(780, 80, 930, 190), image.Rect(760, 520, 930, 640), image.Rect(60, 540, 240, 640)} {
		lying := paper(1000, 700, 50)
		draw.Draw(lying, image.Rect(60, 80, 930, 640), image.White, image.Point{}, draw.Src)
		draw.Draw(lying, hidden, image.NewUniform(color.Gray{Y: 60}), image.Point{}, draw.Src)
		corners, found := sheet(lying)
		require.True(t, found, i)
		for k, want := range [4]point{{60, 80}, {930, 80}, {930, 640}, {60, 640}} {
			require.Less(t, dist(want, corners[k]), 12.0, "corner %d, hidden is %d", k, i)
		}
	}
}

// A sheet whose lower half lies in shadow is darker there than halfway between table and paper.
func TestSheet_findsCornersInShadow(t *testing.T) {
	lying := paper(1000, 700, 30)
	for y := 80; y < 640; y++ {
		for x := 60; x < 930; x++ {
			lying.SetGray(x, y, color.Gray{Y: uint8(max(60, 230-max(0, x+y-700)))})
		}
	}
	corners, found := sheet(lying)
	require.True(t, found)
	for k, want := range [4]point{{60, 80}, {930, 80}, {930, 640}, {60, 640}} {
		require.Less(t, dist(want, corners[k]), 12.0, k)
	}
}

// On tables of any brightness and grain, under light that falls off and a shadow, beside something bright, the corners are
// found.
func TestSheet_findsCornersOnTablesOfAnyKind(t *testing.T) {
	const w, h = 800, 1000
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(3, seed))
		near := func(x, y float64) point { return point{x + 50*r.Float64(), y + 50*r.Float64()} }
		want := [4]point{near(60, 60), near(690, 60), near(690, 890), near(60, 890)}
		table, grain, falloff, shadow, at := 0.05+0.55*r.Float64(), 0.1*r.Float64(), 0.5*r.Float64(), 0.4*r.Float64(), 0.2+0.6*r.Float64()
		cup := point{w * r.Float64(), h * r.Float64()}
		g := image.NewGray(image.Rect(0, 0, w, h))
		for y := range h {
			for x := range w {
				p := point{float64(x), float64(y)}
				v := table * (1 + grain*math.Sin(p.x/9+p.y/90))
				if dist(p, cup) < 50 {
					v = 0.8
				}
				on := true
				for i, a := range want {
					b := want[(i+1)%4]
					on = on && (b.x-a.x)*(p.y-a.y)-(b.y-a.y)*(p.x-a.x) >= 0
				}
				if on {
					v = 1
				}
				v *= (1 - falloff*p.x/w) * (1 - shadow/(1+math.Exp(14*(at-p.y/h))))
				g.Pix[y*g.Stride+x] = uint8(min(255, max(0, 240*v+5*r.NormFloat64())))
			}
		}
		corners, found := sheet(g)
		require.True(t, found, seed)
		for k := range want {
			require.Less(t, dist(want[k], corners[k]), 25.0, "corner %d, seed %d", k, seed)
		}
	}
}

func TestConvex_refusesCrossedDentedAndShortQuadrilaterals(t *testing.T) {
	require.True(t, convex([4]point{{0, 0}, {10, 1}, {11, 9}, {1, 10}}, 5))
	for name, c := range map[string][4]point{
		"two corners in one place": {{0, 0}, {0, 0}, {10, 10}, {0, 10}}, "crossed": {{0, 0}, {10, 10}, {10, 0}, {0, 10}}, "anticlockwise": {{0, 0}, {0, 10}, {10, 10}, {10, 0}},
		"dented": {{0, 0}, {10, 0}, {2, 2}, {0, 10}}, "a short side": {{0, 0}, {10, 0}, {10, 2}, {0, 10}},
	} {
		require.False(t, convex(c, 5), name)
	}
}

// The lines of a table are erased, and print and thick bars stay.
func TestEraseRules_removesTableLinesAndKeepsPrint(t *testing.T) {
	g := paper(600, 500, 255)
	fill := func(x0, y0, x1, y1 int) {
		draw.Draw(g, image.Rect(x0, y0, x1, y1), image.Black, image.Point{}, draw.Src)
	}
	fill(20, 50, 580, 53)    // a rule
	fill(300, 100, 303, 480) // a rule between columns
	fill(40, 200, 140, 203)  // a dash, short
	fill(40, 300, 280, 330)  // a bar, thick
	out := eraseRules(g)
	dark := func(x, y int) bool { return out.GrayAt(x, y).Y < 128 }
	require.False(t, dark(100, 51))
	require.False(t, dark(580-1, 51))
	require.False(t, dark(301, 300))
	require.True(t, dark(90, 201))
	require.True(t, dark(100, 315))
	require.Equal(t, uint8(0), g.GrayAt(100, 51).Y, "the picture itself is unchanged")
}

// Every orientation of EXIF comes out upright.
func TestUpright_turnsEveryEXIFOrientation(t *testing.T) {
	want := []uint8{1, 2, 3, 4, 5, 6} // 3 by 2
	for i, stored := range [][]uint8{
		{1, 2, 3, 4, 5, 6}, {3, 2, 1, 6, 5, 4}, {6, 5, 4, 3, 2, 1}, {4, 5, 6, 1, 2, 3}, // 3 by 2
		{1, 4, 2, 5, 3, 6}, {3, 6, 2, 5, 1, 4}, {6, 3, 5, 2, 4, 1}, {4, 1, 5, 2, 6, 3}, // 2 by 3
	} {
		lying := image.NewGray(image.Rect(0, 0, 3, 2))
		if i >= 4 {
			lying = image.NewGray(image.Rect(0, 0, 2, 3))
		}
		copy(lying.Pix, stored)
		got := grey(lying, i+1)
		require.Equal(t, image.Rect(0, 0, 3, 2), got.Rect, i+1)
		require.Equal(t, want, got.Pix, i+1)
	}
	// A part of a picture, with transparent paper.
	clear := image.NewNRGBA(image.Rect(5, 5, 9, 9))
	clear.Set(6, 6, color.NRGBA{A: 255})
	g := grey(clear, 1)
	require.Equal(t, uint8(255), g.GrayAt(0, 0).Y)
	require.Equal(t, uint8(0), g.GrayAt(1, 1).Y)
}
