package console

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// point is one value of a line. A value of NaN is a gap.
type point struct {
	at    time.Time
	value float64
}

// line is a named series of points in time order. The other fields configure how the chart draws it.
type line struct {
	name      string
	points    []point
	low, high []float64     // lowest and highest value at each point; nil if there are none
	step      bool          // draw steps: each value holds until the next point
	dots      bool          // mark each point with a dot
	bars      time.Duration // if not 0, draw a bar for each point, which covers this much time
	notes     []string      // text of each point in the table of values; nil: its number
	colour    int
}

// panel is one plot of a chart with its own scale.
type panel struct {
	title  string
	unit   string // unit of the values; "" for none
	lines  []line
	bands  []band      // areas drawn behind the lines
	ranges []reference // reference ranges, drawn as areas
	labels []string    // if values are levels 0, 1, …: their names; nil for numbers
	spans  []span      // coloured intervals of time instead of lines
	stack  bool        // draw the bars of the lines on top of each other
}

// band is the area between two lines with the same times.
type band struct {
	name         string
	lower, upper []point
	class        string
}

// reference is a reference range that applies between two instants. If from is zero, it applies from the start of the
// chart; if to is zero, until the end. A nil low or high means that the range has no such limit.
type reference struct {
	from, to  time.Time
	low, high *float64
}

// span is an interval of time that a panel shows in one colour.
type span struct {
	name     string
	from, to time.Time
	colour   int
}

func (p *panel) heading() string {
	if p.unit == "" {
		return p.title
	}
	return p.title + " (" + p.unit + ")"
}

// chart is a drawing of panels above one time axis. Heights are in pixels. Positions along the time axis are in
// percent of its width, so that texts keep their size on every screen.
type chart struct {
	Title, Summary string
	Panels         []drawnPanel
	Times          []tick
	Legend         []drawn
	// Columns and Rows are the values as a table.
	Columns []string
	Rows    []valueRow
	Every   int // the table shows one of so many instants; 1 if it shows all
}

// valueRow is a row of the table below the chart: the values of one instant.
type valueRow struct {
	At    string // position of the instant on the time axis, in percent of its width
	Time  string
	Cells []string
}

type drawnPanel struct {
	Title        string
	Size         float64 // height in pixels
	Ranges       []box
	Ticks        []tick
	Areas, Lines []drawn
	Boxes        []box
}

type tick struct {
	At            float64
	Label, Anchor string
	Odd           bool // every second tick, which narrow screens hide
}

// box is a drawn rectangle. In a chart X and Width are in units of plotWidth, and Y and Height in pixels. In a
// markedBox all four are in pixels of the page's picture.
type box struct {
	X, Y, Width, Height float64
	Class               string
}

// drawn is a line or an area as an SVG path. Class is the CSS class of its colour.
type drawn struct {
	Name, Class, Path string
	Area              bool
	Dots              []box
}

// Measures of a drawing.
const (
	plotWidth    = 1000.0 // width of the paths, which are stretched to the plot
	panelHeight  = 170.0
	stripHeight  = 16.0
	stagesHeight = 120.0
	barHeight    = 16.0
	chartInset   = 8.0 // margin before the first and after the last time, in units of plotWidth
	chartColumns = 720
	mostRows     = 1500 // largest number of rows of the table
)

// colours is the number of colours for lines that the style sheet defines.
const colours = 6

// draw returns the chart of panels above one time axis; nil if no panel has a value. It omits panels without values.
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
					reach(v.at.Add(l.bars))
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
		return chartInset + (plotWidth-2*chartInset)*t.Sub(from).Seconds()/max(to.Sub(from).Seconds(), 1)
	}
	var parts []string
	seen := map[string]bool{}
	for _, p := range kept {
		drawn, said := p.draw(x)
		c.Panels = append(c.Panels, drawn)
		parts = append(parts, said)
		for _, l := range slices.Concat(drawn.Areas, drawn.Lines) {
			if !seen[l.Name] && l.Name != "" {
				seen[l.Name] = true
				c.Legend = append(c.Legend, l)
			}
		}
	}
	if len(c.Legend) == 1 && len(c.Panels) == 1 {
		c.Legend[0].Path = ""
	}
	if n := len(kept[0].lines); n > 0 && kept[0].lines[0].bars > 0 { // labels belong below the middle of the bars
		length := kept[0].lines[0].bars
		c.Times = timeTicks(from, to.Add(-length), func(t time.Time) float64 { return x(t.Add(length / 2)) })
	} else {
		c.Times = timeTicks(from, to, x)
	}
	c.Summary = fmt.Sprintf("%s to %s: %s.", from.Format("2006-01-02 15:04"), to.Format("2006-01-02 15:04"), strings.Join(parts, "; "))
	c.list(kept, x)
	return c
}

// list fills in the table of values of a chart. x maps a time to its position in units of plotWidth.
func (c *chart) list(panels []panel, x func(time.Time) float64) {
	type column struct {
		panel *panel
		line  *line
	}
	var columns []column
	drawn := 0 // number of panels with lines
	for i := range panels {
		if len(panels[i].lines) > 0 {
			drawn++
		}
	}
	middle := time.Duration(0) // half of the length of a bar
	instants := map[time.Time]bool{}
	whole := true // all instants are midnights
	for i := range panels {
		p := &panels[i]
		if p.spans != nil {
			c.Columns = append(c.Columns, p.title)
			columns = append(columns, column{panel: p})
		}
		for k := range p.lines {
			l := &p.lines[k]
			name := p.title
			switch {
			case l.name != "" && drawn == 1:
				name = l.name
			case l.name != "":
				name += ", " + l.name
			}
			if p.unit != "" {
				name += " (" + p.unit + ")"
			}
			middle = max(middle, l.bars/2)
			c.Columns = append(c.Columns, name)
			columns = append(columns, column{p, l})
			for _, v := range l.points {
				if !math.IsNaN(v.value) {
					instants[v.at] = true
					whole = whole && v.at.Equal(v.at.Truncate(day))
				}
			}
		}
	}
	times := make([]time.Time, 0, len(instants))
	for t := range instants {
		times = append(times, t)
	}
	slices.SortFunc(times, time.Time.Compare)
	layout := "2006-01-02 15:04"
	if whole {
		layout = time.DateOnly
	}
	c.Every = 1 + len(times)/(mostRows+1)
	for i := 0; i < len(times); i += c.Every {
		row := valueRow{At: percentOf(x(times[i].Add(middle))), Time: times[i].Format(layout)}
		for _, col := range columns {
			row.Cells = append(row.Cells, col.panel.cell(col.line, times[i]))
		}
		c.Rows = append(c.Rows, row)
	}
}

// cell returns the text for an instant in the table of the chart's values: the value of the line l or, if l is nil, the
// name of the interval of the panel that contains the instant. It is empty if there is none.
func (p *panel) cell(l *line, at time.Time) string {
	if l == nil {
		for _, s := range p.spans {
			if !at.Before(s.from) && at.Before(s.to) {
				return s.name
			}
		}
		return ""
	}
	i, found := slices.BinarySearchFunc(l.points, at, func(v point, t time.Time) int { return v.at.Compare(t) })
	if p.labels != nil {
		if !found {
			i--
		}
		if i >= 0 && i < len(l.points) && !math.IsNaN(l.points[i].value) {
			return p.labels[int(l.points[i].value)]
		}
		return ""
	}
	var texts []string
	for ; found && i < len(l.points) && l.points[i].at.Equal(at); i++ {
		switch v := l.points[i].value; {
		case math.IsNaN(v):
		case l.notes != nil:
			texts = append(texts, l.notes[i])
		case l.low != nil && l.low[i] != l.high[i]:
			texts = append(texts, fmt.Sprintf("%s (%s to %s)", number(v), number(l.low[i]), number(l.high[i])))
		default:
			texts = append(texts, number(v))
		}
	}
	return strings.Join(texts, "; ")
}

func number(v float64) string {
	if v == math.Trunc(v) || math.Abs(v) >= 1000 {
		return strconv.FormatFloat(math.Round(v), 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// shortNumber formats the label of a tick of the vertical axis, in thousands (k) or millions (M) if it is large.
func shortNumber(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1e6:
		return strconv.FormatFloat(v/1e6, 'g', 4, 64) + "M"
	case a >= 1e4:
		return strconv.FormatFloat(v/1e3, 'g', 4, 64) + "k"
	}
	return strconv.FormatFloat(v, 'g', 5, 64)
}

func percentOf(x float64) string { return strconv.FormatFloat(100*x/plotWidth, 'f', 2, 64) }

// Left returns the position of a rectangle in percent of the width.
func (b box) Left() string { return percentOf(b.X) }

// Wide returns the width of a rectangle in percent of the width of the chart.
func (b box) Wide() string { return percentOf(b.Width) }

// Left returns the position of a time in percent of the width.
func (t tick) Left() string { return percentOf(t.At) }

// draw returns the drawing of a panel, and a text that describes it. x maps a time to its position in units of
// plotWidth.
func (p *panel) draw(x func(time.Time) float64) (drawnPanel, string) {
	d := drawnPanel{Title: p.heading()}
	if p.spans != nil {
		d.Size = stripHeight
		for _, s := range p.spans {
			d.Boxes = append(d.Boxes, box{x(s.from), 0, max(x(s.to)-x(s.from), 1), stripHeight, class(s.colour)})
		}
		return d, fmt.Sprintf("%s in %d stretches", p.title, len(p.spans))
	}
	d.Size = panelHeight
	if p.labels != nil {
		d.Size = stagesHeight
	}
	low, high, count := p.extent()
	noun := "values"
	if count == 1 {
		noun = "value"
	}
	said := fmt.Sprintf("%s: %d %s between %s and %s", p.heading(), count, noun, number(low), number(high))
	var y func(float64) float64
	scale := func(low, high float64) {
		y = func(v float64) float64 { return d.Size - d.Size*(v-low)/(high-low) }
	}
	if p.labels != nil {
		said = fmt.Sprintf("%s: %d stages", p.title, count/2)
		scale(-0.5, float64(len(p.labels))-0.5)
		for i, text := range p.labels {
			d.Ticks = append(d.Ticks, tick{At: y(float64(i)), Label: text})
		}
	} else {
		low, high = widen(p.withReferences(low, high))
		ticks := numberTicks(low, high)
		low, high = min(low, ticks[0]), max(high, ticks[len(ticks)-1])
		scale(low, high)
		for _, v := range ticks {
			d.Ticks = append(d.Ticks, tick{At: y(v), Label: shortNumber(v)})
		}
		for _, r := range p.ranges {
			if r.low == nil && r.high == nil {
				continue
			}
			d.Ranges = append(d.Ranges, r.draw(x, y, d.Size))
		}
	}
	for _, b := range p.bands {
		d.Areas = append(d.Areas, drawn{Name: b.name, Class: b.class, Path: b.path(x, y), Area: true})
	}
	for _, l := range p.lines {
		if l.spreads() {
			b := l.spread()
			d.Areas = append(d.Areas, drawn{Name: "lowest to highest", Class: "area " + class(l.colour), Path: b.path(x, y), Area: true})
		}
	}
	for i, l := range p.lines {
		out := drawn{Name: l.name, Class: class(l.colour)}
		switch {
		case l.bars > 0:
			d.Boxes = append(d.Boxes, p.columns(i, x, y)...)
			out.Class, out.Area, out.Path = "area full "+class(l.colour), true, " "
		case p.labels != nil:
			out.Class, out.Path = "step", linePath(l, x, y)
			d.Boxes = append(d.Boxes, levelBars(l, x, y)...)
		default:
			out.Path = linePath(l, x, y)
			out.Dots = dots(l, x, y)
		}
		d.Lines = append(d.Lines, out)
	}
	return d, said
}

// draw returns the rectangle of a reference range in a panel that is size pixels high. x and y map a time and a value
// to their positions.
func (r *reference) draw(x func(time.Time) float64, y func(float64) float64, size float64) box {
	left, right, above, below := 0.0, plotWidth, 0.0, size
	if !r.from.IsZero() {
		left = max(left, x(r.from))
	}
	if !r.to.IsZero() {
		right = min(right, x(r.to))
	}
	if r.high != nil {
		above = y(*r.high)
	}
	if r.low != nil {
		below = y(*r.low)
	}
	return box{X: left, Y: above, Width: max(right-left, 1), Height: max(below-above, 1)}
}

// columns returns the bars of p.lines[i]. Bars of several lines at one time are stacked if p.stack is true, and
// otherwise drawn side by side.
func (p *panel) columns(i int, x func(time.Time) float64, y func(float64) float64) (list []box) {
	l := p.lines[i]
	under := map[time.Time]float64{}
	n, k := float64(len(p.lines)), float64(i)
	if p.stack {
		n, k = 1, 0
		for _, before := range p.lines[:i] {
			for _, v := range before.points {
				under[v.at] += v.value
			}
		}
	}
	for _, v := range l.points {
		if math.IsNaN(v.value) || v.value == 0 {
			continue
		}
		wide := (x(v.at.Add(l.bars)) - x(v.at)) * 0.84
		from := under[v.at]
		list = append(list, box{x(v.at) + wide*0.08 + wide*k/n, y(from + v.value), max(wide/n, 1), max(y(from)-y(from+v.value), 1), class(l.colour)})
	}
	return list
}

// spreads reports whether any point has a lowest and a highest value that differ.
func (l *line) spreads() bool {
	for i := range l.low {
		if l.low[i] < l.high[i] {
			return true
		}
	}
	return false
}

// spread returns the band between the lowest and the highest values of a line.
func (l *line) spread() band {
	var b band
	for i, v := range l.points {
		low, high := math.NaN(), math.NaN()
		if !math.IsNaN(v.value) {
			low, high = l.low[i], l.high[i]
		}
		b.lower, b.upper = append(b.lower, point{v.at, low}), append(b.upper, point{v.at, high})
	}
	return b
}

// withReferences extends the range of a panel's vertical axis, from low to high, so that it includes the limits of the
// reference ranges with a margin.
func (p *panel) withReferences(low, high float64) (float64, float64) {
	least, bounded := low, false
	for _, r := range p.ranges {
		for _, bound := range []*float64{r.low, r.high} {
			if bound != nil {
				low, high, bounded = min(low, *bound), max(high, *bound), true
			}
		}
	}
	if !bounded {
		return low, high
	}
	room := (high - low) * 0.15
	if low -= room; least >= 0 {
		low = max(low, 0)
	}
	return low, high + room
}

func widen(low, high float64) (float64, float64) {
	if short := 0.05*max(math.Abs(low), math.Abs(high)) - (high - low); short > 0 {
		return low - short/2, high + short/2
	}
	return low, high
}

// levelBars returns a bar for each interval in which a line stays on one level, such as a sleep stage. Each level has
// its own CSS class, and so its own colour.
func levelBars(l line, x func(time.Time) float64, y func(float64) float64) (list []box) {
	for i := 1; i < len(l.points); i++ {
		a, b := l.points[i-1], l.points[i]
		if a.value == b.value { // the same level; gaps are NaN and never equal
			list = append(list, box{x(a.at), y(a.value) - barHeight/2, max(x(b.at)-x(a.at), 1), barHeight, fmt.Sprintf("st%.0f", a.value)})
		}
	}
	return list
}

// dots returns the dots of a line: at every point if l.dots is true, otherwise only at points between two gaps, which
// the line does not show.
func dots(l line, x func(time.Time) float64, y func(float64) float64) (list []box) {
	gap := func(i int) bool { return i < 0 || i >= len(l.points) || math.IsNaN(l.points[i].value) }
	for i, v := range l.points {
		if !gap(i) && (l.dots || gap(i-1) && gap(i+1)) {
			list = append(list, box{X: x(v.at), Y: y(v.value)})
		}
	}
	return list
}

// path returns the outline of a band, interrupted at gaps.
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

// extent returns the lowest and highest value of a panel, and the number of its values. If a line is drawn as bars, the
// range includes 0.
func (p *panel) extent() (low, high float64, count int) {
	low, high = math.Inf(1), math.Inf(-1)
	on := map[time.Time]float64{} // heights of stacked bars by time
	for _, l := range p.lines {
		for i, v := range l.points {
			if math.IsNaN(v.value) {
				continue
			}
			low, high = min(low, v.value), max(high, v.value)
			count++
			if l.low != nil {
				low, high = min(low, l.low[i]), max(high, l.high[i])
			}
			if l.bars > 0 {
				low = min(low, 0)
			}
			if p.stack {
				on[v.at] += v.value
				high = max(high, on[v.at])
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

// numberTicks returns the labelled values of an axis: two to six round numbers, which together cover the range from low
// to high.
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

// timeSteps lists the possible intervals between two labelled times of the time axis.
var timeSteps = []time.Duration{
	time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 6 * time.Hour,
	12 * time.Hour, day, 2 * day, 4 * day, 7 * day, 14 * day, 30 * day, 60 * day, 91 * day, 182 * day, 365 * day, 5 * 365 * day,
}

const day = 24 * time.Hour

// timeTicks returns the labelled times of the time axis. Labels are clock times if the axis covers at most three and a
// half days, months if it covers more than 420 days, and otherwise days.
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
		one := tick{At: x(t), Label: t.Format(layout), Anchor: "middle", Odd: len(list)%2 == 1}
		switch {
		case one.At < 0.03*plotWidth:
			one.Anchor = "start"
		case one.At > 0.97*plotWidth:
			one.Anchor = "end"
		}
		list = append(list, one)
	}
	return list
}

// linePath returns the SVG path of a line. Of the points in one pixel column it keeps the first, the lowest, the
// highest and the last, which limits the length of the path.
func linePath(l line, x func(time.Time) float64, y func(float64) float64) string {
	var b strings.Builder
	open := false
	put := func(px, py float64) {
		command := 'L'
		if !open {
			command, open = 'M', true
		}
		fmt.Fprintf(&b, "%c%.1f %.1f", command, px, py)
	}
	column := func(p point) int { return int(x(p.at) / plotWidth * chartColumns) }
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
		i = end
	}
	return b.String()
}
