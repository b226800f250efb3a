package ocr

import "image"

// smooth applies a small blur that removes noise.
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

// removeNoise removes strong noise from the picture, and reports whether there was any. Without this step, noise would
// make the paper seem as bright as its brightest pixels. Print is several pixels wide at this size and remains.
func removeNoise(g *image.Gray) bool {
	// The remaining noise after a pass is soft and would not be detected as noise.
	passes := min(3, int(graininess(g)/11))
	for range passes {
		smooth(g)
	}
	return passes > 0
}

// graininess estimates the strength of the noise, as a standard deviation of brightness. It applies a mask that
// responds neither to even areas nor to slopes, and takes the median of the responses (Immerkaer, Fast noise
// variance estimation, 1996, takes the mean; the median ignores print).
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

// smoothDarkPaper removes the noise on dark paper that [normalizeLight] has amplified.
func smoothDarkPaper(g *image.Gray) {
	const grainy = 9
	for range 3 {
		if deviation(g) < grainy {
			return
		}
		smooth(g)
	}
}

// deviation returns how far the brightness of the paper spreads below its most common value, about one standard
// deviation, in a picture after [normalizeLight].
func deviation(g *image.Gray) int {
	hist := histogram(g)
	paper := 128
	for v := 128; v < 255; v++ { // 255 also counts pixels that were too bright
		if hist[v] > hist[paper] {
			paper = v
		}
	}
	edge := paper
	for edge > 0 && 10*hist[edge] > 6*hist[paper] { // one standard deviation, if the noise is normally distributed
		edge--
	}
	return paper - edge
}
