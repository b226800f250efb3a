package fileimport

import (
	"context"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Output stores the items that a reader of [Options.Database] finds, and counts them in a report. An item that the sink
// refuses is left out alone. Not safe for concurrent use.
type Output struct{ output output }

// NewOutput returns an Output. opts are the options that the reader got.
func NewOutput(ctx context.Context, sink Sink, rep *Report, opts *Options) *Output {
	o := opts.orDefaults()
	return &Output{output{ctx: ctx, sink: sink, rep: rep, opts: &o}}
}

// Summaries stores summaries of one resource. Errors: those of the sink, wrapped, and the end of the context.
func (o *Output) Summaries(resource string, items ...healthdata.Summary) error {
	return o.output.summaries(resource, items...)
}

// Samples stores samples of one resource and one source. Errors as of Summaries.
func (o *Output) Samples(resource string, source healthdata.Source, samples []healthdata.Sample) error {
	return o.output.samples(resource, source, samples)
}

// Ahead reports whether a time is more than 24 hours ahead of the present, and so cannot be.
func (o *Output) Ahead(t healthlab.Time) bool { return t.After(o.output.opts.Now().Add(mostAhead)) }

// Skip counts a part of the file that is not imported.
func (o *Output) Skip(what string) { o.output.skip(what) }

// Result returns the error of an import that ended with err. If err is nil and the sink accepted nothing, it returns
// the sink's reason.
func (o *Output) Result(err error) error { return o.output.result(err) }
