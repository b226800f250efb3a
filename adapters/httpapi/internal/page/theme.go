package page

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// DefaultColor is the accent colour of a brand without one.
const DefaultColor = "0f6b66"

var colorForm = regexp.MustCompile(`^#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})$`)

// CleanColor returns a colour as six hex digits, or DefaultColor if s is not a hex colour.
func CleanColor(s string) string {
	if !colorForm.MatchString(s) {
		return DefaultColor
	}
	s = strings.ToLower(strings.TrimPrefix(s, "#"))
	if len(s) == 3 {
		s = string([]byte{s[0], s[0], s[1], s[1], s[2], s[2]})
	}
	return s
}

// rgb is a colour of the sRGB space, each part from 0 to 1.
type rgb [3]float64

func parseColor(hex string) rgb {
	n, _ := strconv.ParseUint(CleanColor(hex), 16, 32)
	return rgb{float64(n>>16&255) / 255, float64(n>>8&255) / 255, float64(n&255) / 255}
}

func (c rgb) String() string {
	part := func(v float64) int { return int(math.Round(v * 255)) }
	return fmt.Sprintf("#%02x%02x%02x", part(c[0]), part(c[1]), part(c[2]))
}

// luminance is the relative luminance of WCAG 2.
func (c rgb) luminance() float64 {
	lin := func(v float64) float64 {
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*lin(c[0]) + 0.7152*lin(c[1]) + 0.0722*lin(c[2])
}

func contrast(a, b rgb) float64 {
	x, y := a.luminance(), b.luminance()
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// mix returns a colour between c and to. by is the share of to, from 0 to 1.
func (c rgb) mix(to rgb, by float64) rgb {
	for i := range c {
		c[i] += (to[i] - c[i]) * by
	}
	// The result is rounded as in the stylesheet, because the contrast must hold for the rounded colour.
	return parseColor(c.String())
}

var (
	white = rgb{1, 1, 1}
	black = rgb{}
)

// The backgrounds of text in the accent colour: the darkest one of the light theme and the lightest one of the dark
// theme.
var (
	lightGround = parseColor("eef1f4")
	darkGround  = parseColor("243039")
)

// enough is the least contrast of accents: 4.5 as WCAG level AA requires, plus a margin for rounding.
const enough = 4.6

// readable mixes c with the colour toward, white or black, until text of that colour has enough contrast on ground.
func readable(c, ground, toward rgb) rgb {
	out := c
	for by := 0.0; contrast(out, ground) < enough && by < 1; {
		by += 0.04
		out = c.mix(toward, min(by, 1))
	}
	return out
}

func on(c rgb) rgb {
	if contrast(white, c) >= contrast(black, c) {
		return white
	}
	return black
}

func theme(color string) string {
	c := parseColor(color)
	light, dark := readable(c, lightGround, black), readable(c, darkGround, white)
	line := func(c rgb) string { return "--accent:" + c.String() + ";--on-accent:" + on(c).String() }
	return ":root{" + line(light) + "}\n@media (prefers-color-scheme:dark){:root{" + line(dark) + "}}\n"
}
