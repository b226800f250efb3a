package otel

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/linking"
)

// Puller returns a puller that measures each request of next and adds a span. The spans of a historical pull belong to
// one trace, whose id the introspection of historical pulls shows as trace_id. The trace is marked as sampled, so
// sampling must be done by a processor, or by WithRemoteParentSampled of the SDK's ParentBased.
func (t *Telemetry) Puller(provider string, next linking.Puller) linking.Puller {
	return tracedPuller{t, provider, next}
}

type tracedPuller struct {
	t        *Telemetry
	provider string
	next     linking.Puller
}

// Pulls calls the method of the wrapped puller.
func (p tracedPuller) Pulls(resource string) bool {
	extended, ok := p.next.(linking.ExtendedPuller)
	return ok && extended.Pulls(resource)
}

// Pull measures one request of the wrapped puller.
func (p tracedPuller) Pull(ctx context.Context, r linking.PullRequest) (linking.PullPage, error) {
	ctx, span := p.t.tracer.Start(inTrace(ctx, r.Trace), "pull", trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("provider", p.provider), attribute.String("resource", r.Resource)))
	defer span.End()
	began, outcome := p.t.now(), "ok"
	page, err := p.next.Pull(ctx, r)
	if err != nil {
		outcome = healthlab.KindOf(err).Error()
	}
	p.t.pulled.Record(ctx, p.t.now().Sub(began).Seconds(), metric.WithAttributes(attribute.String("provider", p.provider), attribute.String("outcome", outcome)))
	if err != nil {
		span.SetStatus(codes.Error, healthlab.KindOf(err).Error()) // the error's text may come from the provider
		return page, err
	}
	items := 0
	for i := range page.Items {
		items += len(page.Items[i].Samples) + len(page.Items[i].Summaries)
	}
	span.SetAttributes(attribute.Int("items", items), attribute.Bool("last", page.Next == ""))
	return page, nil
}

// inTrace returns a context whose spans belong to the trace id; ctx if id is not a trace id.
func inTrace(ctx context.Context, id string) context.Context {
	of, err := trace.TraceIDFromHex(id)
	if err != nil {
		return ctx
	}
	var root trace.SpanID
	copy(root[:], of[:]) // an id for the whole run, derived from the trace id
	if !root.IsValid() {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: of, SpanID: root, TraceFlags: trace.FlagsSampled, Remote: true,
	}))
}
