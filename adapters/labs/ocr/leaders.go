package ocr

import (
	"image"
	"slices"
)

// dot is a small dark spot: a decimal point, a dot of a leader or dirt.
type dot struct{ x, y, x1, y1 int }

// eraseLeaders paints rows of dots white: leaders between a name and its value, and dotted lines. OCR would read the
// dots and the text beside them as noise. A decimal point is a single dot and stays.
func eraseLeaders(g *image.Gray) {
	dots := dotsOf(g)
	slices.SortFunc(dots, func(a, b dot) int { return a.x - b.x })
	// Rows are found by the lower edge of their dots, with some tolerance for paper that is not level.
	const band = 6
	rows := map[int][]dot{}
	for _, d := range dots {
		rows[d.y1/band] = append(rows[d.y1/band], d)
		rows[d.y1/band+1] = append(rows[d.y1/band+1], d)
	}
	for _, row := range rows {
		for start := 0; start < len(row); {
			end := start + 1
			for end < len(row) && follows(row[start:end], row[end]) {
				end++
			}
			if end-start >= fewest {
				for _, d := range row[start:end] {
					for y := max(0, d.y-1); y <= min(g.Rect.Dy()-1, d.y1+1); y++ {
						for x := max(0, d.x-1); x <= min(g.Rect.Dx()-1, d.x1+1); x++ {
							g.Pix[y*g.Stride+x] = 255
						}
					}
				}
			}
			start = end
		}
	}
}

// fewest is the smallest number of dots that form a leader.
const fewest = 6

// follows reports whether a dot continues a row: on the same level and at the same distance.
func follows(row []dot, next dot) bool {
	last := row[len(row)-1]
	step := next.x - last.x
	if step < 4 || step > 48 || abs(next.y1-last.y1) > 3 {
		return false
	}
	if len(row) == 1 {
		return true
	}
	usual := (last.x - row[0].x) / (len(row) - 1)
	return abs(step-usual) <= 2+usual/4
}

func abs(n int) int { return max(n, -n) }

// dotsOf returns the dark spots of the size of a printed point.
func dotsOf(g *image.Gray) []dot {
	const largest = 10
	w, h := g.Rect.Dx(), g.Rect.Dy()
	dark := func(x, y int) bool { return g.Pix[y*g.Stride+x] < 150 }
	seen := make([]bool, w*h)
	var dots []dot
	var todo []int
	for at := range w * h {
		x, y := at%w, at/w
		if seen[at] || !dark(x, y) {
			continue
		}
		seen[at] = true
		todo = append(todo[:0], at)
		d := dot{x, y, x, y}
		for len(todo) > 0 {
			p := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			px, py := p%w, p/w
			d = dot{min(d.x, px), min(d.y, py), max(d.x1, px), max(d.y1, py)}
			for _, n := range [4][2]int{{px - 1, py}, {px + 1, py}, {px, py - 1}, {px, py + 1}} {
				if n[0] < 0 || n[1] < 0 || n[0] >= w || n[1] >= h || seen[n[1]*w+n[0]] || !dark(n[0], n[1]) {
					continue
				}
				seen[n[1]*w+n[0]] = true
				todo = append(todo, n[1]*w+n[0])
			}
		}
		if d.x1-d.x < largest && d.y1-d.y < largest {
			dots = append(dots, d)
		}
	}
	return dots
}
