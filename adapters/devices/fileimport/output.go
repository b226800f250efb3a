package fileimport

import (
	"context"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Output hands over what a reader of [Options.Database] finds, and counts it in a report. An item that
// the sink refuses costs itself, as in [Sink]. It is not safe for concurrent use.
type Output struct{ output output }

// NewOutput returns an output of an import. Options are those that the reader got.
func NewOutput(ctx context.Context, sink Sink, rep *Report, opts *Options) *Output {
	o := opts.orDefaults()
	return &Output{output{ctx: ctx, sink: sink, rep: rep, opts: &o}}
}

// Summaries hands over objects of one resource. Errors are those of the sink, wrapped, and the end of
// the context.
func (o *Output) Summaries(resource string, items ...healthdata.Summary) error {
	return o.output.summaries(resource, items...)
}

// Samples hands over measurements of one resource and one source. Errors as of Summaries.
func (o *Output) Samples(resource string, source healthdata.Source, samples []healthdata.Sample) error {
	return o.output.samples(resource, source, samples)
}

// Ahead reports whether a time is more than 24 hours ahead of the present, and so cannot be.
func (o *Output) Ahead(t healthlab.Time) bool { return t.After(o.output.opts.Now().Add(mostAhead)) }

// Skip counts a part of the file that is left out.
func (o *Output) Skip(what string) { o.output.skip(what) }

// Result returns the error of an import that ended with err: if that is nil and the sink took nothing,
// why it refused.
func (o *Output) Result(err error) error { return o.output.result(err) }
