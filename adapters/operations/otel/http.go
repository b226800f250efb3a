package otel

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/healthlab-dev/healthlab"
)

// Observe starts to measure a request of an API operation. The caller must call answered with the status of the answer.
// It is for httpapi.Config.Observe.
func (t *Telemetry) Observe(operation string) (answered func(status int)) {
	began := t.now()
	return func(status int) {
		t.answered.Record(context.Background(), t.now().Sub(began).Seconds(),
			metric.WithAttributes(attribute.String("operation", operation), attribute.Int("status", status)))
	}
}

// Handler adds a span "api request" for each request to next, as a child of the span in the header traceparent (W3C
// Trace Context) if there is one. The span has the method, the status and the request id, which is also in the
// answer and in log lines. It has no path and no query, because they may contain values of people. Statuses from 500
// on are errors. The events that the request causes carry the trace to their deliveries (healthlab.Event.Trace).
func (t *Telemetry) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, span := t.tracer.Start(ctx, "api request", trace.WithSpanKind(trace.SpanKindServer),
			trace.WithAttributes(attribute.String("http.request.method", r.Method)))
		defer span.End()
		out := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		if span.SpanContext().IsSampled() {
			header := propagation.MapCarrier{}
			propagation.TraceContext{}.Inject(ctx, header)
			ctx = healthlab.WithTrace(ctx, header.Get("traceparent"))
		}
		next.ServeHTTP(out, r.WithContext(ctx))
		span.SetAttributes(attribute.Int("http.response.status_code", out.status), attribute.String("request.id", w.Header().Get("X-Request-Id")))
		if out.status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, http.StatusText(out.status))
		}
	})
}

// statusWriter is a ResponseWriter that records the status of the answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader records and writes the status.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap returns the writer, for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
