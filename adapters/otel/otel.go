// Package otel connects a delivery of events to OpenTelemetry: what a
// [webhook.Dispatcher] does as metrics, each request that it makes as a span. Requests to
// providers are spans, too ([Telemetry.Puller]).
//
//	o, err := otel.New(meters, traces)
//	d, err := webhook.NewDispatcher(types, store.Deliveries(), store.Endpoints(), o.Notifier(send), seal,
//		&webhook.Options{Hooks: o.Hooks()})
//
// Nothing here names a team, a user, an endpoint or an event: metrics and spans leave the
// deployment, and figures by endpoint are in the log of attempts. [Telemetry.Handler] makes
// a span of each request to the API.
//
// # Metrics
//
//	healthlab.webhook.attempts           requests, by class and whether it was the first of its delivery
//	healthlab.webhook.attempt.duration   how long they took, in seconds, by class
//	healthlab.webhook.lag                from the event to the end of an attempt that was accepted, in seconds
//	healthlab.webhook.ended              deliveries that ended without an attempt, by reason
//	healthlab.webhook.work               events routed, deliveries claimed and outcomes settled, by step
//	healthlab.webhook.work.duration      how long a batch of them took, in seconds, by step
//	healthlab.webhook.endpoints          endpoints paused, resumed and disabled, by change
//	healthlab.webhook.faults             what should not happen often, by fault: duplicate_start, released, lease_lost, seal
//
// # Traces
//
// A span "webhook attempt" for each request, with the type of the event, the class of the
// result and the status. It is an error if the message was not accepted. The request does
// not carry the trace further: the receiver belongs to another party.
//
// A span "pull" for each request to a provider, with the provider, the resource, and how
// many items came. The spans of one run are one trace, by the name that the run has in
// introspection (pull.Task.Trace).
package otel

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/healthlab-dev/healthlab/webhook"
)

// scope names who measures.
const scope = "github.com/healthlab-dev/healthlab/adapters/otel"

// Telemetry measures deliveries. Safe for concurrent use.
type Telemetry struct {
	tracer trace.Tracer

	attempts, ended, work, endpoints, faults metric.Int64Counter
	took, lag, workTook                      metric.Float64Histogram
}

// New returns a Telemetry that reports to these providers. It fails if the provider
// refuses an instrument.
func New(meters metric.MeterProvider, traces trace.TracerProvider) (*Telemetry, error) {
	t := &Telemetry{tracer: traces.Tracer(scope)}
	m := meters.Meter(scope)
	var errs []error
	count := func(c *metric.Int64Counter, name, unit, about string) {
		var err error
		*c, err = m.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(about))
		errs = append(errs, err)
	}
	time := func(h *metric.Float64Histogram, name, about string) {
		var err error
		*h, err = m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(about))
		errs = append(errs, err)
	}
	count(&t.attempts, "healthlab.webhook.attempts", "{attempt}", "Requests to receivers.")
	time(&t.took, "healthlab.webhook.attempt.duration", "How long a request took.")
	time(&t.lag, "healthlab.webhook.lag", "From the event to the end of the attempt that was accepted.")
	count(&t.ended, "healthlab.webhook.ended", "{delivery}", "Deliveries that ended without an attempt.")
	count(&t.work, "healthlab.webhook.work", "{item}", "Events routed, deliveries claimed, outcomes settled.")
	time(&t.workTook, "healthlab.webhook.work.duration", "How long a batch of work took.")
	count(&t.endpoints, "healthlab.webhook.endpoints", "{endpoint}", "Endpoints paused, resumed and disabled.")
	count(&t.faults, "healthlab.webhook.faults", "{fault}", "What should not happen often.")
	return t, errors.Join(errs...)
}

// Hooks returns what a Dispatcher tells of its work.
func (t *Telemetry) Hooks() webhook.Hooks {
	step := func(name string) func(int, time.Duration) {
		of := metric.WithAttributeSet(attribute.NewSet(attribute.String("step", name)))
		return func(n int, took time.Duration) {
			t.work.Add(context.Background(), int64(n), of)
			t.workTook.Record(context.Background(), took.Seconds(), of)
		}
	}
	once := func(c metric.Int64Counter, key, value string) func() {
		of := metric.WithAttributeSet(attribute.NewSet(attribute.String(key, value)))
		return func() { c.Add(context.Background(), 1, of) }
	}
	return webhook.Hooks{
		Attempt:        t.attempt,
		Routed:         step("routed"),
		Claimed:        step("claimed"),
		Settled:        step("settled"),
		Ended:          func(r webhook.Reason) { once(t.ended, "reason", string(r))() },
		DuplicateStart: once(t.faults, "fault", "duplicate_start"),
		Released:       once(t.faults, "fault", "released"),
		LeaseLost:      once(t.faults, "fault", "lease_lost"),
		SealError:      once(t.faults, "fault", "seal"),
		Paused:         once(t.endpoints, "change", "paused"),
		Resumed:        once(t.endpoints, "change", "resumed"),
		Disabled:       once(t.endpoints, "change", "disabled"),
	}
}

func (t *Telemetry) attempt(c webhook.Class, n int, took, lag time.Duration, _ bool) {
	ctx := context.Background()
	class := attribute.String("class", string(c))
	t.attempts.Add(ctx, 1, metric.WithAttributes(class, attribute.Bool("first", n == 1)))
	t.took.Record(ctx, took.Seconds(), metric.WithAttributes(class))
	if c == webhook.ClassOK {
		t.lag.Record(ctx, lag.Seconds())
	}
}

// Notifier returns next with a span around each request.
func (t *Telemetry) Notifier(next webhook.Notifier) webhook.Notifier { return traced{t, next} }

type traced struct {
	t    *Telemetry
	next webhook.Notifier
}

func (n traced) Notify(ctx context.Context, m webhook.Notification) webhook.Result {
	ctx, span := n.t.tracer.Start(ctx, "webhook attempt", trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("event.type", m.Type)))
	defer span.End()
	r := n.next.Notify(ctx, m)
	span.SetAttributes(attribute.String("class", string(r.Class)))
	if r.Status != 0 {
		span.SetAttributes(attribute.Int("http.response.status_code", r.Status))
	}
	if r.Class != webhook.ClassOK {
		span.SetStatus(codes.Error, string(r.Class))
	}
	return r
}
