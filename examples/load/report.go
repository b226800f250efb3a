package main

import (
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// result has the measurements of a run, for the report.
type result struct {
	config
	samples  []sample
	took     time.Duration
	used     usage
	drained  time.Duration
	events   int
	arrivals []time.Duration
}

// row summarises the requests of one operation, or of all, in the report.
type row struct {
	Name               string
	Count, Failed      int
	P50, P90, P99, Max time.Duration
}

// rows returns one row for all requests, and one for each operation.
func (r *result) rows() []row {
	out := []row{summarize("all", r.samples)}
	for i, op := range operations {
		out = append(out, summarize(op.name, r.of(i)))
	}
	return out
}

func (r *result) of(op int) (out []sample) {
	for _, s := range r.samples {
		if s.op == op {
			out = append(out, s)
		}
	}
	return out
}

func summarize(name string, samples []sample) row {
	out := row{Name: name, Count: len(samples)}
	for _, s := range samples {
		if s.failed {
			out.Failed++
		}
	}
	sorted := latencies(samples)
	out.P50, out.P90, out.P99, out.Max = quantile(sorted, 0.5), quantile(sorted, 0.9), quantile(sorted, 0.99), quantile(sorted, 1)
	return out
}

func latencies(samples []sample) []time.Duration {
	out := make([]time.Duration, len(samples))
	for i, s := range samples {
		out[i] = s.latency
	}
	slices.Sort(out)
	return out
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)].Round(10 * time.Microsecond)
}

func (r *result) print(out io.Writer) {
	r.table(out)
	for _, line := range r.facts() {
		fmt.Fprintln(out, line)
	}
}

// table prints the latencies of each operation as a text table.
func (r *result) table(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tcount\tfailed\tp50\tp90\tp99\tmax\t")
	for _, o := range r.rows() {
		fmt.Fprintf(w, "%s\t%d\t%d\t%v\t%v\t%v\t%v\t\n", o.Name, o.Count, o.Failed, o.P50, o.P90, o.P99, o.Max)
	}
	_ = w.Flush()
}

// facts returns the sentences at the top of the report.
func (r *result) facts() []string {
	cores := func(d time.Duration) string { return fmt.Sprintf("%.2f", d.Seconds()/r.took.Seconds()) }
	out := []string{
		fmt.Sprintf("%.0f requests a second, %.0f were asked for.", float64(len(r.samples))/r.took.Seconds(), r.rate),
		fmt.Sprintf("%d events were received; the last one %v after the last request.", r.events, r.drained.Round(10*time.Millisecond)),
		fmt.Sprintf("Processors in use: server %s, PostgreSQL %s, this program %s of %d.", cores(r.used.server), cores(r.used.database), cores(r.used.load), runtime.NumCPU()),
		fmt.Sprintf("%d users, at most %d requests in flight, %s %s/%s.", r.users, r.workers, runtime.Version(), runtime.GOOS, runtime.GOARCH),
	}
	if r.note != "" {
		out = append(out, r.note)
	}
	return out
}

//go:embed report.html
var page string

// reportPage has the data of the HTML page of a report.
type reportPage struct {
	Title  string
	Facts  []string
	Checks []check
	Rows   []row
	Plots  []plot
}

func (r *result) write(file string) error {
	return writePage(file, reportPage{Title: "Load report", Facts: r.facts(), Rows: r.rows(), Plots: []plot{r.throughput(), r.overTime(), r.distribution()}})
}

func writePage(file string, p reportPage) error {
	t, err := template.New("report").Parse(page)
	if err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(t.Execute(f, p), f.Close())
}

// plot is a line chart, which the page draws as SVG.
type plot struct {
	Title, XLabel, YLabel string
	Lines                 []line
	XTicks, YTicks        []tick
	Marks                 []float64 // values of x at which a vertical line is drawn
}

type line struct {
	Name, Points string
	Color        int
}

type tick struct {
	At    float64
	Label string
}

// Width and height of a plot, in units of its SVG.
const width, height = 800.0, 260.0

// axis maps values to positions along one axis of a plot.
type axis struct {
	low, high, length float64
	log               bool
}

func (a axis) at(v float64) float64 {
	low, high := a.low, a.high
	if a.log {
		v, low, high = math.Log10(max(v, low)), math.Log10(low), math.Log10(high)
	}
	if high <= low {
		return 0
	}
	return (min(v, high) - low) / (high - low) * a.length
}

// ticks returns a few round values of the axis with their labels, which end with unit.
func (a axis) ticks(unit string) (out []tick) {
	if a.log {
		for v := a.low; v <= a.high*1.001; v *= 10 {
			out = append(out, tick{a.at(v), fmt.Sprintf("%g%s", v, unit)})
		}
		return out
	}
	step := math.Pow(10, math.Floor(math.Log10(max(a.high, 1))))
	for a.high/step < 4 {
		step /= 2
	}
	for v := 0.0; v <= a.high*1.001; v += step {
		out = append(out, tick{a.at(v), fmt.Sprintf("%g%s", v, unit)})
	}
	return out
}

// draw adds a named line through points to the plot.
func (p *plot) draw(name string, x, y axis, points [][2]float64) {
	var b strings.Builder
	for _, at := range points {
		fmt.Fprintf(&b, "%.1f,%.1f ", x.at(at[0]), height-y.at(at[1]))
	}
	p.Lines = append(p.Lines, line{Name: name, Points: strings.TrimSpace(b.String()), Color: len(p.Lines)})
}

func (p *plot) scale(x, y axis, xUnit, yUnit string) {
	p.XTicks, p.YTicks = x.ticks(xUnit), y.ticks(yUnit)
	for i := range p.YTicks {
		p.YTicks[i].At = height - p.YTicks[i].At
	}
}

func (r *result) seconds() axis { return axis{high: math.Ceil(r.duration.Seconds()), length: width} }

// throughput returns a plot of the answers and events in each second.
func (r *result) throughput() plot {
	n := int(r.seconds().high)
	answered, failed, events := make([]float64, n+1), make([]float64, n+1), make([]float64, n+1)
	for _, s := range r.samples {
		i := min(n, int((s.at + s.latency).Seconds()))
		answered[i]++
		if s.failed {
			failed[i]++
		}
	}
	for _, at := range r.arrivals {
		if i := int(at.Seconds()); i < n {
			events[i]++
		}
	}
	p := plot{Title: "Throughput over time", XLabel: "time", YLabel: "a second"}
	x, y := r.seconds(), axis{high: max(slices.Max(answered), slices.Max(events)), length: height}
	p.scale(x, y, " s", "")
	for _, of := range []struct {
		name   string
		counts []float64
	}{{"answers", answered}, {"events received", events}, {"failed requests", failed}} {
		var points [][2]float64
		for i := range n { // the last second is incomplete and is left out
			points = append(points, [2]float64{float64(i) + 0.5, of.counts[i]})
		}
		p.draw(of.name, x, y, points)
	}
	return p
}

// milliseconds returns the axis of latencies; length is its length in the plot.
func (r *result) milliseconds(length float64) axis {
	sorted := latencies(r.samples)
	low, high := 0.1, 10.0
	if len(sorted) > 0 {
		high = max(high, math.Pow(10, math.Ceil(math.Log10(inMillis(sorted[len(sorted)-1])))))
	}
	return axis{low: low, high: high, length: length, log: true}
}

func inMillis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// overTime returns a plot of quantiles of the latency in each second.
func (r *result) overTime() plot {
	by := map[int][]sample{}
	for _, s := range r.samples {
		by[int(s.at.Seconds())] = append(by[int(s.at.Seconds())], s)
	}
	p := plot{Title: "Latency over time", XLabel: "time", YLabel: "latency"}
	x, y := r.seconds(), r.milliseconds(height)
	p.scale(x, y, " s", " ms")
	for _, q := range []struct {
		name string
		q    float64
	}{{"half of the requests", 0.5}, {"90 %", 0.9}, {"99 %", 0.99}} {
		var points [][2]float64
		for i := range int(x.high) {
			if sorted := latencies(by[i]); len(sorted) > 0 {
				points = append(points, [2]float64{float64(i) + 0.5, inMillis(quantile(sorted, q.q))})
			}
		}
		p.draw(q.name, x, y, points)
	}
	return p
}

// distribution returns a plot of the share of requests by latency, with a line for each operation.
func (r *result) distribution() plot {
	p := plot{Title: "Distribution of latency by operation", XLabel: "latency", YLabel: "share of requests"}
	x, y := r.milliseconds(width), axis{high: 100, length: height}
	p.scale(x, y, " ms", " %")
	const steps = 200
	for i, op := range operations {
		sorted := latencies(r.of(i))
		if len(sorted) == 0 {
			continue
		}
		var points [][2]float64
		for s := range steps + 1 {
			q := float64(s) / steps
			points = append(points, [2]float64{inMillis(quantile(sorted, q)), 100 * q})
		}
		p.draw(op.name, x, y, points)
	}
	return p
}
