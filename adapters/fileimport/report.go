package fileimport

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// Report says what was found in a file, for a person to read. Its maps are nil where
// there is nothing to count.
type Report struct {
	// Name is the file's name, where it has one.
	Name string
	// Format is what the file was taken for; empty if it was not recognised.
	Format Format
	// Summaries counts what was handed over, by resource.
	Summaries map[string]int
	// Samples counts what was handed over, by resource.
	Samples map[string]int
	// Streams counts the recordings of workouts.
	Streams int
	// Skipped counts what is left out: records that the catalogue has no place for, by the
	// name that the file gives their type, with the unit where that is why, and parts of the
	// file that cannot be read or cannot be true, by their kind.
	Skipped map[string]int
	// Notes are remarks for the person who imports.
	Notes []string
	// Files are the reports of the files of an archive, by name. The counts above are their sums.
	Files []Report
	// Err is why a file of a folder was not imported; see [ImportDir].
	Err error
}

// String writes the report as a few lines of text.
func (r Report) String() string {
	var b strings.Builder
	name := r.Name
	if name == "" {
		name = "file"
	}
	fmt.Fprintf(&b, "%s", name)
	if r.Format != "" {
		fmt.Fprintf(&b, " (%s)", r.Format)
	}
	if r.Err != nil {
		fmt.Fprintf(&b, ": not imported: %v\n", r.Err)
		return b.String()
	}
	b.WriteByte('\n')
	if len(r.Files) > 0 {
		for _, one := range r.Files {
			b.WriteString(one.String())
		}
		return b.String()
	}
	table(&b, "", r.Summaries)
	if r.Streams > 0 {
		table(&b, "", map[string]int{"workout_stream": r.Streams})
	}
	table(&b, "", r.Samples)
	table(&b, "skipped: ", r.Skipped)
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "  note: %s\n", n)
	}
	return b.String()
}

// add counts what a file of an archive had.
func (r *Report) add(one *Report) {
	for _, c := range []struct{ into, from *map[string]int }{{&r.Summaries, &one.Summaries}, {&r.Samples, &one.Samples}, {&r.Skipped, &one.Skipped}} {
		for name, n := range *c.from {
			count(c.into, name, n)
		}
	}
	r.Streams += one.Streams
}

func table(b *strings.Builder, before string, counts map[string]int) {
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(b, "  %8d  %s%s\n", counts[k], before, k)
	}
}

// output hands over to a sink and counts.
type output struct {
	ctx  context.Context //nolint:containedctx // lives as long as one import
	sink Sink
	rep  *Report
	opts *Options

	places int // parts left out whose place is noted
}

func count(m *map[string]int, name string, n int) {
	if *m == nil {
		*m = map[string]int{}
	}
	(*m)[name] += n
}

// mostNames bounds how many names of skipped types a report holds: they come from the
// file.
const mostNames = 500

func (o *output) skip(name string) {
	if _, known := o.rep.Skipped[name]; !known {
		if len(o.rep.Skipped) >= mostNames {
			name = "others"
		} else {
			name = printable(name)
		}
	}
	count(&o.rep.Skipped, name, 1)
}

// printable cuts a text of a file down to what may stand in a report, or in a field
// for short texts.
func printable(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(name, "?"))
	if len(name) > 200 {
		name = strings.ToValidUTF8(name[:200], "")
	}
	return name
}

func (o *output) note(msg string) {
	if !slices.Contains(o.rep.Notes, msg) {
		o.rep.Notes = append(o.rep.Notes, msg)
	}
}

// summaries hands over objects of one resource, those of each source by themselves.
func (o *output) summaries(resource string, items ...healthdata.Summary) error {
	type who struct {
		kind healthdata.SourceType
		app  string
	}
	var order []who
	of := map[who][]healthdata.Summary{}
	for _, item := range items {
		w := who{kind: healthdata.HeadOf(item).Source.Type}
		if app := healthdata.HeadOf(item).Source.AppID; app != nil {
			w.app = *app
		}
		if of[w] == nil {
			order = append(order, w)
		}
		of[w] = append(of[w], item)
	}
	for _, w := range order {
		for part := range slices.Chunk(of[w], o.opts.BatchSize) {
			if err := o.ctx.Err(); err != nil {
				return err
			}
			if err := o.sink.Summaries(o.ctx, resource, healthdata.HeadOf(part[0]).Source, part); err != nil {
				return &sinkError{err}
			}
			count(&o.rep.Summaries, resource, len(part))
		}
	}
	return nil
}

func (o *output) samples(resource string, source healthdata.Source, samples []healthdata.Sample) error {
	for part := range slices.Chunk(samples, o.opts.BatchSize) {
		if err := o.ctx.Err(); err != nil {
			return err
		}
		if err := o.sink.Samples(o.ctx, resource, source, part); err != nil {
			return &sinkError{err}
		}
		count(&o.rep.Samples, resource, len(part))
	}
	return nil
}

func (o *output) stream(w *healthdata.Workout, s healthdata.WorkoutStream) error {
	if err := o.ctx.Err(); err != nil {
		return err
	}
	if err := o.sink.Stream(o.ctx, w, s); err != nil {
		return &sinkError{err}
	}
	o.rep.Streams++
	return nil
}
