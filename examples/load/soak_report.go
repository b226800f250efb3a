package main

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"
)

// soakResult has the measurements and checks of a soak run, for the report.
type soakResult struct {
	result
	soak     *soak
	readings []reading
	checks   []check
}

// violations returns the number of failed checks.
func (r *soakResult) violations() (n int) {
	for _, c := range r.checks {
		if len(c.Wrong) > 0 {
			n++
		}
	}
	return n
}

func (r *soakResult) facts() []string {
	out := []string{
		fmt.Sprintf("%d violations. %.0f requests a second, %.0f were asked for, with retries until they succeeded.", r.violations(), float64(len(r.samples))/r.took.Seconds(), r.rate),
		fmt.Sprintf("%d kills: the second server and PostgreSQL in turn, every %v. The receiver took %v for an answer for %v of each %v.", len(r.soak.kills), r.soak.killEvery, slowBy, slowFor, slowEvery),
		fmt.Sprintf("%d messages were received; the last one %v after the last request.", r.events, r.drained.Round(10*time.Millisecond)),
		fmt.Sprintf("%d users, at most %d requests in flight, %s %s/%s, %d processors.", r.users, r.workers, runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU()),
	}
	if r.note != "" {
		out = append(out, r.note)
	}
	return out
}

func (r *soakResult) print(out io.Writer) {
	r.table(out)
	for _, line := range r.facts() {
		fmt.Fprintln(out, line)
	}
	const most = 5
	for _, c := range r.checks {
		verdict := "ok"
		if len(c.Wrong) > 0 {
			verdict = "VIOLATED"
		}
		fmt.Fprintf(out, "%-8s  %s: %s\n", verdict, c.Name, c.Found)
		for _, text := range c.Wrong[:min(most, len(c.Wrong))] {
			fmt.Fprintln(out, "         ", text)
		}
		if len(c.Wrong) > most {
			fmt.Fprintf(out, "          … and %d more\n", len(c.Wrong)-most)
		}
	}
}

func (r *soakResult) write(file string) error {
	plots := []plot{r.throughput(), r.overTime(),
		r.course("Memory of the servers", " MB", r.line("server 1", func(m reading) float64 { return float64(m.memory[0]) / (1 << 20) }), r.line("server 2", func(m reading) float64 { return float64(m.memory[1]) / (1 << 20) })),
		r.course("Open files and connections of the servers", "", r.line("server 1", func(m reading) float64 { return float64(m.handles[0]) }), r.line("server 2", func(m reading) float64 { return float64(m.handles[1]) })),
		r.course("Queues", " MB", r.tables(func(name string) bool { return slices.Contains(queues, name) })...),
		r.course("The largest other tables", " MB", r.tables(func(name string) bool { return !slices.Contains(queues, name) })...),
		r.course("Logs", " MB", r.line("write-ahead log", func(m reading) float64 { return float64(m.log) / (1 << 20) }), r.line("logs of the servers and of PostgreSQL", func(m reading) float64 { return float64(m.text) / (1 << 20) })),
	}
	for i := range plots {
		for _, at := range r.soak.kills {
			plots[i].Marks = append(plots[i].Marks, r.seconds().at(at.Seconds()))
		}
	}
	return writePage(file, reportPage{Title: "Soak report", Facts: r.facts(), Checks: r.checks, Rows: r.rows(), Plots: plots})
}

// course is one line of a plot over time.
type course struct {
	name   string
	points [][2]float64
}

// line returns a line through one value of all readings, which of selects. It omits zeros, which mean that the value
// could not be read.
func (r *soakResult) line(name string, of func(reading) float64) course {
	c := course{name: name}
	for _, m := range r.readings {
		if v := of(m); v > 0 {
			c.points = append(c.points, [2]float64{m.at.Seconds(), v})
		}
	}
	return c
}

// tables returns a line of the size of each of the five tables that were largest at the end, among the tables for which
// wanted returns true.
func (r *soakResult) tables(wanted func(string) bool) (out []course) {
	if len(r.readings) == 0 {
		return nil
	}
	last := r.readings[len(r.readings)-1].tables
	var names []string
	for name := range last {
		if wanted(name) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		if d := last[b] - last[a]; d != 0 {
			return int(max(-1, min(d, 1)))
		}
		return strings.Compare(a, b)
	})
	const most = 5
	for _, name := range names[:min(most, len(names))] {
		out = append(out, r.line(name, func(m reading) float64 { return float64(m.tables[name]) / (1 << 20) }))
	}
	return out
}

// course returns a plot of lines over time.
func (r *soakResult) course(title, unit string, lines ...course) plot {
	top := 1.0
	for _, l := range lines {
		for _, p := range l.points {
			top = max(top, p[1])
		}
	}
	p := plot{Title: title, XLabel: "time; kills are dashed", YLabel: strings.TrimSpace("size" + unit)}
	x, y := r.seconds(), axis{high: math.Ceil(top * 1.05), length: height}
	p.scale(x, y, " s", unit)
	for _, l := range lines {
		p.draw(l.name, x, y, l.points)
	}
	return p
}
