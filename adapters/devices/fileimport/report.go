package fileimport

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Report describes the result of importing a file, for a person to read. Maps without entries are nil.
type Report struct {
	// Name is the file name, if known.
	Name string
	// Format is the detected format; empty if the file was not recognised.
	Format Format
	// Summaries counts the stored summaries by resource.
	Summaries map[string]int
	// Samples counts the stored samples by resource.
	Samples map[string]int
	// Streams counts the recordings of workouts.
	Streams int
	// Skipped counts the parts that were left out: record types without a resource in the catalogue, by their name in
	// the file (with the unit if that is the reason), and unreadable or impossible parts, by kind.
	Skipped map[string]int
	// Refused counts the items that the sink refused, by resource. Notes contains the first reasons.
	Refused map[string]int
	// Notes are messages for the person who imports.
	Notes []string
	// Files are the reports of the files of an archive, sorted by name. The counts of the archive are their sums.
	Files []Report
	// Err is the reason why a file of a folder ([ImportDir]) or of an archive was not imported; nil if it was.
	Err error

	unpacked uint64 // unpacked size of an archive, in bytes
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
	table(&b, "refused: ", r.Refused)
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "  note: %s\n", n)
	}
	return b.String()
}

// add adds the counts of the report of one file of an archive.
func (r *Report) add(one *Report) {
	for _, c := range []struct{ into, from *map[string]int }{{&r.Summaries, &one.Summaries}, {&r.Samples, &one.Samples}, {&r.Skipped, &one.Skipped}, {&r.Refused, &one.Refused}} {
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

// output sends items to a sink and counts them in a report.
type output struct {
	ctx  context.Context //nolint:containedctx // lives as long as one import
	sink Sink
	rep  *Report
	opts *Options

	places  int   // number of left-out parts whose place is noted
	refused error // first error with which the sink refused an item
}

func count(m *map[string]int, name string, n int) {
	if *m == nil {
		*m = map[string]int{}
	}
	(*m)[name] += n
}

// mostNames is the largest number of names of skipped types in a report. The limit is needed because the file
// chooses the names.
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

// printable shortens a text of a file and removes what would change how the text around it is displayed: control
// characters, line breaks, and characters that change the direction of writing. The marks of a direction (U+200E,
// U+200F, U+061C) are kept.
func printable(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), r == '\u2028', r == '\u2029':
			return '?'
		case r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069':
			return -1
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

// summaries stores summaries of one resource, grouped by source.
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
			source := healthdata.HeadOf(part[0]).Source
			n, err := handOverItems(o, resource, part, func(part []healthdata.Summary) error {
				return o.sink.Summaries(o.ctx, resource, source, part)
			})
			if err != nil {
				return err
			}
			if n > 0 {
				count(&o.rep.Summaries, resource, n)
			}
		}
	}
	return nil
}

// RefusedError is the error of a [Sink] that refused some items of a call. The import counts them in [Report.Refused]
// and continues.
type RefusedError struct {
	// Items are the first refused items, by their index in the call. All items that were not refused are stored.
	Items []healthdata.ItemRefusal
	// Count is the number of refused items. 0 means the length of Items.
	Count int
}

func (e *RefusedError) count() int { return max(e.Count, len(e.Items)) }

// Error returns the number of refused items.
func (e *RefusedError) Error() string { return fmt.Sprintf("%d items are refused", e.count()) }

// Unwrap returns healthlab.Invalid.
func (e *RefusedError) Unwrap() error { return healthlab.Invalid }

// Refusals returns the error for a Sink whose service returned c and err: err, or else a [*RefusedError] if c contains
// refused items, or nil.
func Refusals(c healthdata.Counts, err error) error {
	if err != nil || len(c.Refused) == 0 {
		return err
	}
	return &RefusedError{Items: c.Refused, Count: c.RefusedCount}
}

// handOverItems sends items of one resource and source to the sink by calling give, and returns how many the sink
// stored. If the sink stores nothing because of some items, handOverItems sends the other items again.
func handOverItems[T any](o *output, resource string, items []T, give func([]T) error) (int, error) {
	for {
		err := give(items)
		if err == nil {
			return len(items), nil
		}
		var partly *RefusedError
		if errors.As(err, &partly) {
			for _, item := range partly.Items {
				for _, p := range item.Problems {
					o.refuse(resource, p.Field+": "+p.Msg)
				}
			}
			o.refusedItems(resource, partly.count(), err)
			return len(items) - partly.count(), nil
		}
		bad := o.badItems(resource, err, len(items))
		if len(bad) == 0 {
			return 0, &sinkError{err}
		}
		o.refusedItems(resource, len(bad), err)
		good := make([]T, 0, len(items))
		for i, item := range items {
			if !bad[i] {
				good = append(good, item)
			}
		}
		if items = good; len(items) == 0 {
			return 0, nil
		}
	}
}

// badItems returns the indexes of the items to which an error of the sink refers. n is the number of items in the call.
// It returns none if any part of the error refers to something else.
func (o *output) badItems(resource string, err error, n int) map[int]bool {
	var invalid *healthlab.InvalidError
	if !errors.As(err, &invalid) {
		return nil
	}
	bad := map[int]bool{}
	problems := slices.DeleteFunc(slices.Clone(invalid.Problems), func(p healthlab.Problem) bool { return p.Code == healthdata.CodeManyRefused })
	for _, p := range problems {
		if len(p.Path) < 2 || p.Path[0] != "data" {
			return nil
		}
		i, ok := p.Path[1].(int)
		if !ok || i < 0 || i >= n {
			return nil
		}
		bad[i] = true
	}
	for _, p := range problems {
		var field []string
		for _, part := range p.Path[2:] {
			field = append(field, fmt.Sprint(part))
		}
		o.refuse(resource, strings.Join(field, ".")+": "+p.Msg)
	}
	return bad
}

func (o *output) refuse(resource, reason string) {
	if len(o.rep.Notes) < mostNames {
		o.note("refused: " + resource + "." + reason)
	}
}

func (o *output) refusedItems(resource string, n int, err error) {
	count(&o.rep.Refused, resource, n)
	if o.refused == nil {
		o.refused = err
	}
}

func (o *output) result(err error) error {
	if err == nil && o.refused != nil && len(o.rep.Summaries)+len(o.rep.Samples) == 0 {
		return &sinkError{o.refused}
	}
	return err
}

func (o *output) samples(resource string, source healthdata.Source, samples []healthdata.Sample) error {
	for part := range slices.Chunk(samples, o.opts.BatchSize) {
		if err := o.ctx.Err(); err != nil {
			return err
		}
		n, err := handOverItems(o, resource, part, func(part []healthdata.Sample) error {
			return o.sink.Samples(o.ctx, resource, source, part)
		})
		if err != nil {
			return err
		}
		if n > 0 {
			count(&o.rep.Samples, resource, n)
		}
	}
	return nil
}

func (o *output) stream(w *healthdata.Workout, s healthdata.WorkoutStream) error {
	if err := o.ctx.Err(); err != nil {
		return err
	}
	err := o.sink.Stream(o.ctx, w, s)
	if partly := (*RefusedError)(nil); errors.As(err, &partly) {
		for _, point := range partly.Items {
			for _, p := range point.Problems {
				o.refuse("workout_stream", p.Field+": "+p.Msg)
			}
		}
		count(&o.rep.Refused, "point of a workout_stream", partly.count())
		o.rep.Streams++
		return nil
	}
	if invalid := (*healthlab.InvalidError)(nil); errors.As(err, &invalid) {
		for _, p := range invalid.Problems {
			if n := len(p.Path); n > 0 {
				o.refuse("workout_stream", fmt.Sprint(p.Path[0])+": "+p.Msg)
			}
		}
		o.refusedItems("workout_stream", 1, err)
		return nil
	}
	if err != nil {
		return &sinkError{err}
	}
	o.rep.Streams++
	return nil
}
