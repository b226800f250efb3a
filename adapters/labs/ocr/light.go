package ocr

import (
	"image"
	"math"
)

// darkenPrint inverts a picture with light print on a dark ground, such as a screen in its dark mode.
func darkenPrint(g *image.Gray) {
	hist := histogram(g)
	all := g.Rect.Dx() * g.Rect.Dy()
	ground, below := 0, hist[0]
	for below*2 < all {
		ground++
		below += hist[ground]
	}
	lighter, darker := 0, 0
	for v, n := range hist {
		if v > ground+80 {
			lighter += n
		}
		if v < ground-40 {
			darker += n
		}
	}
	// Light pixels that cover much of a picture are a sheet of paper on something dark, not print.
	if ground > 100 || lighter*200 < all || lighter*10 > all*3 || darker > lighter {
		return
	}
	for i, v := range g.Pix {
		g.Pix[i] = 255 - v
	}
}

// normalizeLight removes shadows and the colour of the paper: it divides every pixel by the brightest one nearby.
func normalizeLight(g *image.Gray) {
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
			// Takes nearly the brightest pixel, so that a speck of noise does not count.
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
