package console

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// point is one value of a line. A value of NaN is a gap.
type point struct {
	at    time.Time
	value float64
}

// line is a named row of points in time order.
type line struct {
	name   string
	points []point
	step   bool // draw levels that hold until the next point
}

// chart is a drawing of lines, with its geometry in the units of the SVG.
type chart struct {
	Title, Summary string
	Ticks          []tick // of the values
	Times          []tick
	Lines          []drawn
}

type tick struct {
	At    float64
	Label string
}

// drawn is a line as an SVG path. Class selects its colour.
type drawn struct {
	Name, Class, Path string
	Count             int
}

// Area of the lines inside a drawing of 800 by 260.
const (
	chartLeft, chartRight = 64.0, 790.0
	chartTop, chartBottom = 10.0, 225.0
	chartColumns          = 720
)

// draw returns the chart of lines; nil if they have no value. Labels, if there are any, name
// the levels 0, 1, …; layout formats times.
func draw(title string, lines []line, labels []string, layout string) *chart {
	low, high := math.Inf(1), math.Inf(-1)
	var from, to time.Time
	count := 0
	for _, l := range lines {
		for _, p := range l.points {
			if math.IsNaN(p.value) {
				continue
			}
			low, high = min(low, p.value), max(high, p.value)
			if count == 0 || p.at.Before(from) {
				from = p.at
			}
			if count == 0 || p.at.After(to) {
				to = p.at
			}
			count++
		}
	}
	if count == 0 {
		return nil
	}
	c := &chart{Title: title, Summary: fmt.Sprintf("%d values from %s to %s, between %.4g and %.4g.",
		count, from.Format("2006-01-02 15:04"), to.Format("2006-01-02 15:04"), low, high)}
	if labels != nil {
		low, high = 0, float64(len(labels)-1)
		c.Summary = fmt.Sprintf("%d stages from %s to %s.", count, from.Format("2006-01-02 15:04"), to.Format("2006-01-02 15:04"))
	}
	if low == high {
		low, high = low-1, high+1
	}
	span := max(to.Sub(from).Seconds(), 1)
	x := func(t time.Time) float64 { return chartLeft + (chartRight-chartLeft)*t.Sub(from).Seconds()/span }
	y := func(v float64) float64 { return chartBottom - (chartBottom-chartTop)*(v-low)/(high-low) }
	if labels != nil {
		for i, text := range labels {
			c.Ticks = append(c.Ticks, tick{At: y(float64(i)), Label: text})
		}
	} else {
		for i := range 5 {
			v := low + (high-low)*float64(i)/4
			c.Ticks = append(c.Ticks, tick{At: y(v), Label: fmt.Sprintf("%.4g", v)})
		}
	}
	for i := range 5 {
		at := from.Add(time.Duration(span * float64(i) / 4 * float64(time.Second)))
		c.Times = append(c.Times, tick{At: x(at), Label: at.Format(layout)})
	}
	for i, l := range lines {
		c.Lines = append(c.Lines, drawn{Name: l.name, Class: fmt.Sprintf("s%d", i%6), Count: len(l.points), Path: path(l, x, y)})
	}
	return c
}

// path returns the SVG path of a line. Of the points in one column it keeps the first, the
// lowest, the highest and the last, so the path is bounded by the width of the drawing.
func path(l line, x func(time.Time) float64, y func(float64) float64) string {
	var b strings.Builder
	open := false
	put := func(px, py float64) {
		command := 'L'
		if !open {
			command, open = 'M', true
		}
		fmt.Fprintf(&b, "%c%.1f %.1f", command, px, py)
	}
	column := func(p point) int { return int((x(p.at) - chartLeft) / (chartRight - chartLeft) * chartColumns) }
	last := 0.0
	for i := 0; i < len(l.points); {
		p := l.points[i]
		if math.IsNaN(p.value) {
			open = false
			i++
			continue
		}
		if l.step {
			if open {
				put(x(p.at), last)
			}
			last = y(p.value)
			put(x(p.at), last)
			i++
			continue
		}
		end, low, high := i, i, i
		for ; end < len(l.points) && !math.IsNaN(l.points[end].value) && column(l.points[end]) == column(p); end++ {
			if l.points[end].value < l.points[low].value {
				low = end
			}
			if l.points[end].value > l.points[high].value {
				high = end
			}
		}
		previous := -1
		for _, k := range []int{i, min(low, high), max(low, high), end - 1} {
			if k != previous {
				put(x(l.points[k].at), y(l.points[k].value))
			}
			previous = k
		}
		if end-i == 1 && (i == 0 || math.IsNaN(l.points[i-1].value)) && (end == len(l.points) || math.IsNaN(l.points[end].value)) {
			b.WriteString("h1") // a dot
		}
		i = end
	}
	return b.String()
}
