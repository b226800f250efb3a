// Package otel connects a service to OpenTelemetry: what a [webhook.Dispatcher] does, what the
// API answers and what providers answer as metrics, and each of these requests as a span.
//
//	o, err := otel.New(meters, traces)
//	d, err := webhook.NewDispatcher(types, store.Webhooks(), o.Notifier(send), seal,
//		&webhook.Options{Hooks: o.Hooks()})
//
// [Telemetry.Observe] measures the API, [Telemetry.Puller] the requests to a provider, and
// [Telemetry.Backlog] what waits to be delivered.
//
// Nothing here names a team, a user, an endpoint or an event: metrics and spans leave the
// deployment, and figures by endpoint are in the log of attempts. [Telemetry.Handler] makes
// a span of each request to the API.
//
// # Metrics
//
//	healthlab.api.duration               how long answers of the API took, in seconds, by operation and status
//	healthlab.pull.duration              how long requests to providers took, in seconds, by provider and outcome
//	healthlab.webhook.backlog            what waits to be delivered, by kind: events that are not routed, deliveries
//	healthlab.webhook.backlog.age        the age of the oldest of it, in seconds
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
// [Telemetry.Handler] makes a span "api request", and [Telemetry.Tracer] a span for each round
// trip to PostgreSQL within one.
//
// A span "webhook attempt" for each request to a receiver, with the type of the event, the
// class of the result and the status. It is an error if the message was not accepted. Its
// parent is the span of the API request that caused the event, in any process. The request
// does not carry the trace further: the receiver belongs to another party.
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
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/healthlab-dev/healthlab/webhook"
)

// scope is the instrumentation scope.
const scope = "github.com/healthlab-dev/healthlab/adapters/operations/otel"

// Telemetry reports metrics and spans of webhook deliveries, API requests, pulls and database statements to
// OpenTelemetry. Safe for concurrent use.
type Telemetry struct {
	tracer trace.Tracer
	now    func() time.Time

	attempts, ended, work, endpoints, faults metric.Int64Counter
	took, lag, workTook, answered, pulled    metric.Float64Histogram

	backlog    metric.Int64ObservableGauge
	backlogAge metric.Float64ObservableGauge
	meter      metric.Meter
}

// New returns a Telemetry that reports to the given providers. It fails if an instrument cannot be created.
func New(meters metric.MeterProvider, traces trace.TracerProvider) (*Telemetry, error) {
	t := &Telemetry{tracer: traces.Tracer(scope), now: time.Now, meter: meters.Meter(scope)}
	m := t.meter
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
	time(&t.answered, "healthlab.api.duration", "How long an answer of the API took.")
	time(&t.pulled, "healthlab.pull.duration", "How long a request to a provider took.")
	var err error
	t.backlog, err = m.Int64ObservableGauge("healthlab.webhook.backlog", metric.WithUnit("{item}"), metric.WithDescription("What waits to be delivered."))
	errs = append(errs, err)
	t.backlogAge, err = m.Float64ObservableGauge("healthlab.webhook.backlog.age", metric.WithUnit("s"), metric.WithDescription("The age of the oldest of it."))
	return t, errors.Join(append(errs, err)...)
}

// Backlog registers gauges of undelivered events and deliveries, and of the age of the oldest. count is the method
// Backlog of a store; it is called whenever metrics are read. If it fails, the gauges have no value.
func (t *Telemetry) Backlog(count func(ctx context.Context) (webhook.Backlog, error)) error {
	_, err := t.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		b, err := count(ctx)
		if err != nil {
			return err
		}
		o.ObserveInt64(t.backlog, int64(b.Unrouted), metric.WithAttributes(attribute.String("kind", "event")))
		o.ObserveInt64(t.backlog, int64(b.Unfinished), metric.WithAttributes(attribute.String("kind", "delivery")))
		o.ObserveFloat64(t.backlogAge, b.Oldest.Seconds())
		return nil
	}, t.backlog, t.backlogAge)
	return err
}

// Hooks returns the hooks with which a webhook.Dispatcher reports metrics.
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
		Attempt:          t.attempt,
		Routed:           step("routed"),
		Claimed:          step("claimed"),
		OutcomesRecorded: step("settled"),
		Ended:            func(r webhook.Reason) { once(t.ended, "reason", string(r))() },
		DuplicateStart:   once(t.faults, "fault", "duplicate_start"),
		Released:         once(t.faults, "fault", "released"),
		LeaseLost:        once(t.faults, "fault", "lease_lost"),
		SealError:        once(t.faults, "fault", "seal"),
		Paused:           once(t.endpoints, "change", "paused"),
		Resumed:          once(t.endpoints, "change", "resumed"),
		Disabled:         once(t.endpoints, "change", "disabled"),
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

// Notifier returns a Notifier that adds a span to each request of next.
func (t *Telemetry) Notifier(next webhook.Notifier) webhook.Notifier { return traced{t, next} }

type traced struct {
	t    *Telemetry
	next webhook.Notifier
}

func (n traced) Notify(ctx context.Context, m webhook.Notification) webhook.Result {
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": m.Trace})
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
