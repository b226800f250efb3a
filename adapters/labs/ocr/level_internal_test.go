package ocr

import (
	"image"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Lines of print that rise and sag are level after the map, to a pixel or two.
func TestLevel_straightensCurvedAndTurnedLines(t *testing.T) {
	const w, h = 1800, 2400
	for name, line := range map[string]func(x, y float64) float64{
		"level":  func(_, y float64) float64 { return y },
		"turned": func(x, y float64) float64 { return y + 40*(x/w-0.5) },
		"curled": func(x, y float64) float64 { return y + 30*math.Sin(math.Pi*x/w) },
		"curled below, turned": func(x, y float64) float64 {
			return y + 25*math.Sin(math.Pi*x/w)*(0.5+y/h) - 30*(x/w-0.5)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := image.NewGray(image.Rect(0, 0, w, h))
			for i := range g.Pix {
				g.Pix[i] = 255
			}
			for y := 300.0; y < h-300; y += 60 {
				for x := 150; x < w-150; x++ {
					if x/12%2 == 0 && x/240%3 < 2 { // letters and columns
						for d := range 22 {
							g.Pix[(int(line(float64(x), y))+d)*g.Stride+x] = 20
						}
					}
				}
			}
			level := levelled(g)
			if name == "level" {
				require.Nil(t, level)
				return
			}
			for y := 300.0; y < h-300; y += 300 {
				var where []float64
				for x := 200.0; x < w-200; x += 100 {
					where = append(where, level(point{x, y}).y-line(x, y))
				}
				for _, v := range where {
					require.InDelta(t, where[0], v, 5)
				}
			}
		})
	}
}
