package fileimport

import (
	"context"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Output stores the items that an implementation of [Options.Database] finds, and counts them in a report. If the sink
// refuses some items, it stores the others. Not safe for concurrent use.
type Output struct{ output output }

// NewOutput returns an Output that sends items to sink and counts them in rep. opts are the options that
// [Options.Database] received.
func NewOutput(ctx context.Context, sink Sink, rep *Report, opts *Options) *Output {
	o := opts.orDefaults()
	return &Output{output{ctx: ctx, sink: sink, rep: rep, opts: &o}}
}

// Summaries stores summaries of one resource. It returns errors of the sink, wrapped, and the error of an ended
// context.
func (o *Output) Summaries(resource string, items ...healthdata.Summary) error {
	return o.output.summaries(resource, items...)
}

// Samples stores samples of one resource and one source. It returns the same errors as [Output.Summaries].
func (o *Output) Samples(resource string, source healthdata.Source, samples []healthdata.Sample) error {
	return o.output.samples(resource, source, samples)
}

// Ahead reports whether t is more than 24 hours in the future. Such data must be left out.
func (o *Output) Ahead(t healthlab.Time) bool { return t.After(o.output.opts.Now().Add(mostAhead)) }

// Skip counts one part of the file that is not imported, in Report.Skipped under the name what.
func (o *Output) Skip(what string) { o.output.skip(what) }

// Result returns the error that [Options.Database] must return if reading ended with err. If err is nil and the sink
// refused every item, that is the first error of the sink.
func (o *Output) Result(err error) error { return o.output.result(err) }
