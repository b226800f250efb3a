package console

import (
	"fmt"
	"math"
	"slices"
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
	dots   bool // draw a dot at each point, too
	colour int
}

// panel is one plot of a chart, with its own scale.
type panel struct {
	title     string
	lines     []line
	bands     []band   // areas below the lines
	labels    []string // names of the levels 0, 1, …, whose stretches are drawn as bars; nil for numbers
	low, high *float64 // reference range
	spans     []span   // coloured stretches of time instead of lines
}

// band is the area between two lines with the same times.
type band struct {
	name         string
	lower, upper []point
	class        string
}

// span is a stretch of time.
type span struct {
	from, to time.Time
	colour   int
}

// chart is a drawing of panels above one time axis, in the units of the SVG.
type chart struct {
	Title, Summary string
	Height         float64
	Panels         []drawnPanel
	Times          []tick
	Legend         []drawn
}

type drawnPanel struct {
	Title            string
	Top, Bottom      float64
	Range            *box
	Ticks            []tick
	Bands            []drawn
	Lines            []drawn
	Boxes            []box
	Left, Right, End float64
}

type tick struct {
	At     float64
	Label  string
	Anchor string
}

// box is a rectangle.
type box struct {
	X, Y, Width, Height float64
	Class               string
}

// drawn is a line as an SVG path. Class selects its colour.
type drawn struct {
	Name, Class, Path string
	Area              bool
	Dots              []box
}

// Geometry of a drawing of 800 units in width.
const (
	chartLeft, chartRight    = 64.0, 790.0
	panelHeight, stripHeight = 170.0, 16.0
	panelTitle, panelGap     = 24.0, 18.0
	stagesHeight, barHeight  = 120.0, 16.0
	chartInset               = 6.0 // between the axis and the first time
	timesHeight              = 26.0
	chartColumns             = 720
)

// colours is the number of colours of the style sheet.
const colours = 6

// draw returns the chart of panels above one time axis; nil if no panel has a value.
func draw(title string, panels ...panel) *chart {
	c := &chart{Title: title}
	var from, to time.Time
	count := 0
	reach := func(t time.Time) {
		if count == 0 || t.Before(from) {
			from = t
		}
		if count == 0 || t.After(to) {
			to = t
		}
		count++
	}
	var kept []panel
	for _, p := range panels {
		before := count
		for _, l := range p.lines {
			for _, v := range l.points {
				if !math.IsNaN(v.value) {
					reach(v.at)
				}
			}
		}
		for _, s := range p.spans {
			reach(s.from)
			reach(s.to)
		}
		if count > before {
			kept = append(kept, p)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	x := func(t time.Time) float64 {
		return chartLeft + chartInset + (chartRight-chartLeft-2*chartInset)*t.Sub(from).Seconds()/max(to.Sub(from).Seconds(), 1)
	}
	var parts []string
	seen := map[string]bool{}
	at := 4.0
	for _, p := range kept {
		drawn, said := p.draw(x, at)
		at = drawn.Bottom + panelGap
		c.Panels = append(c.Panels, drawn)
		parts = append(parts, said)
		for _, l := range slices.Concat(drawn.Bands, drawn.Lines) {
			if !seen[l.Name] && l.Name != "" {
				seen[l.Name] = true
				c.Legend = append(c.Legend, l)
			}
		}
	}
	if len(c.Legend) == 1 && len(c.Panels) == 1 {
		c.Legend[0].Path = ""
	}
	c.Times = timeTicks(from, to, x)
	c.Height = at - panelGap + timesHeight
	c.Summary = fmt.Sprintf("%s to %s: %s.", from.Format("2006-01-02 15:04"), to.Format("2006-01-02 15:04"), strings.Join(parts, "; "))
	return c
}

// draw places a panel below a height, and says what it shows.
func (p *panel) draw(x func(time.Time) float64, top float64) (drawnPanel, string) {
	d := drawnPanel{Title: p.title, Top: top + panelTitle, Left: chartLeft, Right: chartRight, End: top + 14}
	if p.spans != nil {
		d.Bottom = d.Top + stripHeight
		for _, s := range p.spans {
			d.Boxes = append(d.Boxes, box{x(s.from), d.Top, max(x(s.to)-x(s.from), 1), stripHeight, class(s.colour)})
		}
		return d, fmt.Sprintf("%s in %d stretches", p.title, len(p.spans))
	}
	d.Bottom = d.Top + panelHeight
	if p.labels != nil {
		d.Bottom = d.Top + stagesHeight
	}
	low, high, count := p.extent()
	noun := "values"
	if count == 1 {
		noun = "value"
	}
	said := fmt.Sprintf("%s: %d %s between %.4g and %.4g", p.title, count, noun, low, high)
	var y func(float64) float64
	scale := func(low, high float64) {
		y = func(v float64) float64 { return d.Bottom - (d.Bottom-d.Top)*(v-low)/(high-low) }
	}
	if p.labels != nil {
		said = fmt.Sprintf("%s: %d stages", p.title, count/2)
		scale(-0.5, float64(len(p.labels))-0.5)
		for i, text := range p.labels {
			d.Ticks = append(d.Ticks, tick{At: y(float64(i)), Label: text})
		}
	} else {
		low, high = p.reach(low, high)
		ticks := numberTicks(low, high)
		low, high = min(low, ticks[0]), max(high, ticks[len(ticks)-1])
		scale(low, high)
		for _, v := range ticks {
			d.Ticks = append(d.Ticks, tick{At: y(v), Label: fmt.Sprintf("%.5g", v)})
		}
		if p.low != nil || p.high != nil {
			above, below := d.Top, d.Bottom
			if p.high != nil {
				above = y(*p.high)
			}
			if p.low != nil {
				below = y(*p.low)
			}
			d.Range = &box{X: chartLeft, Y: above, Width: chartRight - chartLeft, Height: max(below-above, 1)}
		}
	}
	for _, b := range p.bands {
		d.Bands = append(d.Bands, drawn{Name: b.name, Class: b.class, Path: b.path(x, y), Area: true})
	}
	for _, l := range p.lines {
		out := drawn{Name: l.name, Class: class(l.colour), Path: path(l, x, y)}
		if p.labels != nil {
			out.Class = "step"
			d.Boxes = append(d.Boxes, bars(l, x, y)...)
		}
		if l.dots {
			for _, v := range l.points {
				if !math.IsNaN(v.value) {
					out.Dots = append(out.Dots, box{X: x(v.at), Y: y(v.value)})
				}
			}
		}
		d.Lines = append(d.Lines, out)
	}
	return d, said
}

// reach widens the scale of a panel to its reference range, and somewhat beyond it.
func (p *panel) reach(low, high float64) (float64, float64) {
	if p.low == nil && p.high == nil {
		return low, high
	}
	least := low
	for _, bound := range []*float64{p.low, p.high} {
		if bound != nil {
			low, high = min(low, *bound), max(high, *bound)
		}
	}
	room := (high - low) * 0.15
	if low -= room; least >= 0 {
		low = max(low, 0)
	}
	return low, high + room
}

// bars returns a bar for each stretch of a line of levels. Class st and the level colours it.
func bars(l line, x func(time.Time) float64, y func(float64) float64) (list []box) {
	for i := 1; i < len(l.points); i++ {
		a, b := l.points[i-1], l.points[i]
		if a.value == b.value { // neither is a gap
			list = append(list, box{x(a.at), y(a.value) - barHeight/2, max(x(b.at)-x(a.at), 1), barHeight, fmt.Sprintf("st%.0f", a.value)})
		}
	}
	return list
}

// path returns the outline of a band; it ends at gaps and begins behind them.
func (b *band) path(x func(time.Time) float64, y func(float64) float64) string {
	var out strings.Builder
	for i := 0; i < len(b.lower); {
		if math.IsNaN(b.lower[i].value) || math.IsNaN(b.upper[i].value) {
			i++
			continue
		}
		end := i
		for end < len(b.lower) && !math.IsNaN(b.lower[end].value) && !math.IsNaN(b.upper[end].value) {
			end++
		}
		command := 'M'
		for k := i; k < end; k++ {
			fmt.Fprintf(&out, "%c%.1f %.1f", command, x(b.upper[k].at), y(b.upper[k].value))
			command = 'L'
		}
		for k := end - 1; k >= i; k-- {
			fmt.Fprintf(&out, "L%.1f %.1f", x(b.lower[k].at), y(b.lower[k].value))
		}
		out.WriteByte('Z')
		i = end
	}
	return out.String()
}

func class(colour int) string { return fmt.Sprintf("s%d", colour%colours) }

// extent returns the lowest and highest value of a panel, and the number of its values.
func (p *panel) extent() (low, high float64, count int) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, l := range p.lines {
		for _, v := range l.points {
			if !math.IsNaN(v.value) {
				low, high = min(low, v.value), max(high, v.value)
				count++
			}
		}
	}
	for _, b := range p.bands {
		for i := range b.lower {
			if !math.IsNaN(b.lower[i].value) {
				low, high = min(low, b.lower[i].value), max(high, b.upper[i].value)
			}
		}
	}
	return low, high, count
}

// numberTicks returns two to six round numbers around a range.
func numberTicks(low, high float64) []float64 {
	if low == high {
		low, high = low-1, high+1
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/4)))
	for _, factor := range []float64{1, 2, 2.5, 5, 10} {
		if step*factor*4 >= high-low {
			step *= factor
			break
		}
	}
	first := math.Floor(low/step) * step
	var list []float64
	for i := 0; ; i++ {
		v := first + float64(i)*step
		list = append(list, v)
		if v >= high {
			return list
		}
	}
}

// timeSteps are the distances of times below a chart.
var timeSteps = []time.Duration{
	time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour,
	12 * time.Hour, day, 2 * day, 7 * day, 14 * day, 30 * day, 91 * day, 182 * day, 365 * day, 5 * 365 * day,
}

const day = 24 * time.Hour

// timeTicks returns round times of a range: clock times within two days, else dates.
func timeTicks(from, to time.Time, x func(time.Time) float64) (list []tick) {
	step := timeSteps[len(timeSteps)-1]
	for _, s := range timeSteps {
		if to.Sub(from) <= 7*s {
			step = s
			break
		}
	}
	layout := "Jan 2"
	switch {
	case step < day:
		layout = "15:04"
	case step >= 91*day:
		layout = "Jan 2006"
	}
	for t := from.Add(step - 1).Truncate(step); !t.After(to); t = t.Add(step) {
		at, anchor := x(t), "middle"
		switch {
		case at < chartLeft+20:
			anchor = "start"
		case at > chartRight-20:
			anchor = "end"
		}
		list = append(list, tick{At: at, Label: t.Format(layout), Anchor: anchor})
	}
	return list
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
