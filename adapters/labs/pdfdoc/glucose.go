package pdfdoc

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"codeberg.org/go-pdf/fpdf"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/glucoseprofile"
)

var _ glucoseprofile.Printer = (*Printer)(nil)

// Measures of the page of a glucose profile, in millimetres.
const (
	profileWidth, profileHeight = 210.0, 297.0
	statsTop                    = 44.0
	chartTop, chartHeight       = 112.0, 82.0
	dailyTop, dailyHeight       = 214.0, 24.0
)

// rgb is a colour.
type rgb struct{ r, g, b int }

var (
	black     = rgb{0, 0, 0}
	grey      = rgb{150, 150, 150}
	pale      = rgb{225, 225, 225}
	goal      = rgb{0, 120, 60}
	outerBand = rgb{205, 222, 240}
	innerBand = rgb{140, 180, 220}
	median    = rgb{10, 60, 120}
)

// bandLooks holds the colour, name and goal of each glucose band. Goals are those of the international consensus for
// most adults with diabetes, in percent of readings.
var bandLooks = map[aggregate.Band]struct {
	name, goal string
	colour     rgb
}{
	aggregate.VeryLow:  {"Very low", "below 1 %", rgb{150, 20, 30}},
	aggregate.Low:      {"Low", "with very low below 4 %", rgb{215, 70, 60}},
	aggregate.InTarget: {"In range", "above 70 %", rgb{90, 170, 90}},
	aggregate.High:     {"High", "with very high below 25 %", rgb{245, 200, 70}},
	aggregate.VeryHigh: {"Very high", "below 5 %", rgb{230, 130, 40}},
}

// glucosePage is the layout of one glucose profile.
type glucosePage struct {
	*layout
	profile *glucoseprofile.Profile
	most    float64 // upper end of the scale
}

// PrintProfile implements [glucoseprofile.Printer]. It prints one A4 page.
func (p *Printer) PrintProfile(ctx context.Context, subject string, profile *glucoseprofile.Profile) ([]byte, error) {
	if len(profile.Clock) != glucoseprofile.Quarters || len(profile.Bands) == 0 {
		return nil, fmt.Errorf("print glucose profile: %w: the profile must have %d quarters of an hour and all bands", healthlab.Invalid, glucoseprofile.Quarters)
	}
	f := fpdf.NewCustom(&fpdf.InitType{UnitStr: "mm", Size: fpdf.SizeType{Wd: profileWidth, Ht: profileHeight}})
	at := profile.To.At(time.UTC)
	f.SetCatalogSort(true)
	f.SetCreationDate(at)
	f.SetModificationDate(at)
	f.SetProducer("healthlab", true)
	f.SetTitle("Ambulatory glucose profile", true)
	f.SetLang("en")
	f.SetAutoPageBreak(false, 0)
	f.AddPage()
	g := glucosePage{layout: &layout{ctx: ctx, p: p, f: f, width: profileWidth, height: profileHeight, loaded: map[string]bool{}}, profile: profile}
	g.most = g.scale()
	g.titles(subject)
	g.measures()
	g.bands()
	g.percentiles()
	g.daily()
	g.notes()
	if err := f.Error(); err != nil {
		return nil, fmt.Errorf("print glucose profile: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := f.Output(&out); err != nil {
		return nil, fmt.Errorf("print glucose profile: %w", err)
	}
	return out.Bytes(), nil
}

func (g *glucosePage) number(v float64) string {
	if g.profile.Unit == glucoseprofile.Milligrams {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}

// scale returns the top of the charts: 20 mmol/L or 350 mg/dL, or more if a value is higher.
func (g *glucosePage) scale() float64 {
	top, step := 20.0, 5.0
	if g.profile.Unit == glucoseprofile.Milligrams {
		top, step = 350, 50
	}
	most := 0.0
	for _, c := range g.profile.Clock {
		if c.P95 != nil {
			most = max(most, *c.P95)
		}
	}
	for most > top {
		top += step
	}
	return top
}

func (g *glucosePage) at(x, y float64, st style, text string) {
	for _, line := range g.wrap(text, st, g.width) {
		g.draw(x, y, st, line)
		y += st.line()
	}
}

func (g *glucosePage) drawRight(x, y float64, st style, text string) {
	for _, line := range g.wrap(text, st, g.width) {
		g.draw(x-g.measure(string(line), st), y, st, line)
	}
}

func (g *glucosePage) colour(c rgb) {
	g.f.SetTextColor(c.r, c.g, c.b)
	g.f.SetDrawColor(c.r, c.g, c.b)
	g.f.SetFillColor(c.r, c.g, c.b)
}

// titles prints the subject and the dates.
func (g *glucosePage) titles(subject string) {
	p := g.profile
	days := 0
	for d := p.From; !d.After(p.To); d = d.AddDays(1) {
		days++
	}
	g.at(margin, margin, style{title, true}, "Ambulatory glucose profile")
	g.at(margin, 25, style{body, false}, fmt.Sprintf("%s to %s, %d days, %d with readings", p.From, p.To, days, p.DaysWithReadings))
	// A long name is truncated to one line.
	for _, line := range g.wrap(subject, style{body, true}, g.inner())[:1] {
		g.draw(margin, 31, style{body, true}, line)
	}
}

// measures prints the list of statistics, such as the mean.
func (g *glucosePage) measures() {
	p := g.profile
	g.at(margin, statsTop-7, style{heading, true}, "Measures")
	y := statsTop
	row := func(name string, v *float64, form func(float64) string, unit string) {
		g.colour(black)
		g.at(margin, y, style{body, false}, name)
		text := "no data"
		if v != nil {
			text = form(*v) + " " + unit
		}
		g.drawRight(margin+80, y, style{body, true}, text)
		g.colour(pale)
		g.f.Line(margin, y+6, margin+80, y+6)
		y += 9
	}
	tenths := func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
	row("Mean glucose", p.Mean, g.number, string(p.Unit))
	row("Glucose management indicator (GMI)", p.GMI, tenths, "%")
	row("Coefficient of variation (goal: up to 36 %)", p.CV, tenths, "%")
	row("Time with sensor active", p.SensorActive, tenths, "%")
	g.colour(black)
	g.at(margin, y, style{body, false}, "Readings")
	g.drawRight(margin+80, y, style{body, true}, strconv.FormatInt(p.Readings, 10))
}

// bands draws the shares of the glucose bands as one bar, the highest band on top, with a line of text for each.
func (g *glucosePage) bands() {
	const x, wide, tall = 112.0, 14.0, 54.0
	g.colour(black)
	g.at(x, statsTop-7, style{heading, true}, "Time in ranges")
	at, row := statsTop, statsTop
	for i := len(g.profile.Bands) - 1; i >= 0; i-- {
		b := g.profile.Bands[i]
		look := bandLooks[b.Name]
		share := "no data"
		if b.Percent != nil {
			g.colour(look.colour)
			height := tall * *b.Percent / 100
			g.f.Rect(x, at, wide, height, "F")
			at += height
			share = strconv.FormatFloat(*b.Percent, 'f', 1, 64) + " %"
		}
		g.colour(look.colour)
		g.f.Rect(x+wide+4, row+0.6, 3, 3, "F")
		g.colour(black)
		g.at(x+wide+9, row, style{body, true}, look.name+" "+g.ends(b))
		g.drawRight(g.width-margin, row, style{body, true}, share)
		g.colour(grey)
		g.at(x+wide+9, row+4.6, style{small, false}, "goal: "+look.goal)
		row += tall / 5
	}
	g.colour(grey)
	g.f.Rect(x, statsTop, wide, tall, "D")
}

// ends returns the limits of a band as text.
func (g *glucosePage) ends(b glucoseprofile.Band) string {
	switch {
	case b.Low == nil:
		return "up to " + g.number(*b.High)
	case b.High == nil:
		return "from " + g.number(*b.Low)
	}
	return g.number(*b.Low) + " - " + g.number(*b.High)
}

func (g *glucosePage) height(v, top, tall float64) float64 {
	return top + tall*(1-math.Min(v, g.most)/g.most)
}

// target returns the limits of the target range.
func (g *glucosePage) target() (low, high float64) {
	for _, b := range g.profile.Bands {
		if b.Name == aggregate.InTarget && b.Low != nil && b.High != nil {
			return *b.Low, *b.High
		}
	}
	return 0, 0
}

// percentiles draws percentiles by the time of day.
func (g *glucosePage) percentiles() {
	const left, right = margin + 12.0, profileWidth - margin
	g.colour(black)
	g.at(margin, chartTop-12, style{heading, true}, "By the time of day, "+string(g.profile.Unit))
	x := func(quarter float64) float64 { return left + (right-left)*quarter/glucoseprofile.Quarters }
	for _, run := range g.runs() {
		g.area(run, x, outerBand, func(q *glucoseprofile.Quarter) (float64, float64) { return *q.P5, *q.P95 })
		g.area(run, x, innerBand, func(q *glucoseprofile.Quarter) (float64, float64) { return *q.P25, *q.P75 })
	}
	g.f.SetLineWidth(0.2)
	step := 5.0
	if g.profile.Unit == glucoseprofile.Milligrams {
		step = 50
	}
	for v := 0.0; v <= g.most; v += step {
		y := g.height(v, chartTop, chartHeight)
		g.colour(pale)
		g.f.Line(left, y, right, y)
		g.colour(grey)
		g.drawRight(left-2, y-1.6, style{small, false}, g.number(v))
	}
	for hour := 0; hour <= 24; hour += 3 {
		at := x(float64(hour) * 4)
		g.colour(pale)
		g.f.Line(at, chartTop, at, chartTop+chartHeight)
		g.colour(grey)
		g.at(at-4, chartTop+chartHeight+1.5, style{small, false}, fmt.Sprintf("%02d:00", hour))
	}
	low, high := g.target()
	g.colour(goal)
	g.f.SetLineWidth(0.4)
	for _, v := range []float64{low, high} {
		y := g.height(v, chartTop, chartHeight)
		g.f.Line(left, y, right, y)
		g.at(left+1, y-3.4, style{small, true}, g.number(v))
	}
	g.colour(median)
	g.f.SetLineWidth(0.8)
	for _, run := range g.runs() {
		for i := 1; i < len(run); i++ {
			g.f.Line(x(quarterOf(run[i-1])), g.height(*run[i-1].P50, chartTop, chartHeight), x(quarterOf(run[i])), g.height(*run[i].P50, chartTop, chartHeight))
		}
	}
	g.f.SetLineWidth(0.2)
	key := left
	for _, k := range []struct {
		colour rgb
		name   string
	}{{median, "median"}, {innerBand, "25 to 75 % of readings"}, {outerBand, "5 to 95 %"}, {goal, "range"}} {
		g.colour(k.colour)
		g.f.Rect(key, chartTop-5, 3, 2.4, "F")
		g.colour(black)
		g.at(key+4.5, chartTop-5.4, style{small, false}, k.name)
		key += 9 + g.measure(k.name, style{small, false})
	}
}

func quarterOf(q *glucoseprofile.Quarter) float64 { return float64(q.Minute)/15 + 0.5 }

// runs returns the consecutive parts of the day that have readings.
func (g *glucosePage) runs() (out [][]*glucoseprofile.Quarter) {
	open := false
	for i := range g.profile.Clock {
		q := &g.profile.Clock[i]
		if q.P50 == nil {
			open = false
			continue
		}
		if !open {
			out = append(out, nil)
		}
		open = true
		out[len(out)-1] = append(out[len(out)-1], q)
	}
	return out
}

// area fills the area between two percentiles.
func (g *glucosePage) area(run []*glucoseprofile.Quarter, x func(float64) float64, c rgb, ends func(*glucoseprofile.Quarter) (low, high float64)) {
	if len(run) < 2 {
		return
	}
	var points []fpdf.PointType
	for _, q := range run {
		_, high := ends(q)
		points = append(points, fpdf.PointType{X: x(quarterOf(q)), Y: g.height(high, chartTop, chartHeight)})
	}
	for i := len(run) - 1; i >= 0; i-- {
		low, _ := ends(run[i])
		points = append(points, fpdf.PointType{X: x(quarterOf(run[i])), Y: g.height(low, chartTop, chartHeight)})
	}
	g.colour(c)
	g.f.Polygon(points, "F")
}

// daily draws the readings of the last days as small charts, seven in a row.
func (g *glucosePage) daily() {
	const columns = 7
	g.colour(black)
	g.at(margin, dailyTop-10, style{heading, true}, "Last days")
	wide := g.inner() / columns
	low, high := g.target()
	for k, d := range g.profile.Daily {
		left, top := margin+float64(k%columns)*wide, dailyTop+float64(k/columns)*(dailyHeight+6)
		g.colour(rgb{232, 244, 232})
		g.f.Rect(left, g.height(high, top, dailyHeight), wide, g.height(low, top, dailyHeight)-g.height(high, top, dailyHeight), "F")
		g.colour(grey)
		g.f.Rect(left, top, wide, dailyHeight, "D")
		g.at(left+0.5, top-3.6, style{small, false}, fmt.Sprintf("%s %s", weekdays[d.Date.At(time.UTC).Weekday()], d.Date.String()[5:]))
		g.colour(median)
		g.f.SetLineWidth(0.35)
		for i := 1; i < len(d.Means); i++ {
			if d.Means[i-1] == nil || d.Means[i] == nil {
				continue
			}
			from, to := left+wide*float64(i-1)/float64(len(d.Means)-1), left+wide*float64(i)/float64(len(d.Means)-1)
			g.f.Line(from, g.height(*d.Means[i-1], top, dailyHeight), to, g.height(*d.Means[i], top, dailyHeight))
		}
		g.f.SetLineWidth(0.2)
	}
}

var weekdays = [...]string{"Su", "Mo", "Tu", "We", "Th", "Fr", "Sa"}

// notes prints the explanation of the page.
func (g *glucosePage) notes() {
	g.colour(grey)
	y := 277.0
	for _, line := range g.wrap("Times are on the clock of the person. Percentiles are of means of five minutes, by quarters of an hour. "+
		"GMI: Bergenstal et al. 2018. Ranges and goals (most adults with diabetes): Battelino et al. 2019. This page is no diagnosis.", style{small, false}, g.inner()) {
		g.draw(margin, y, style{small, false}, line)
		y += style{small, false}.line()
	}
}
