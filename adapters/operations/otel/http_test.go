package otel_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/healthlab-dev/healthlab/adapters/operations/otel"
)

// The span of a request continues the caller's trace, and has the request's id and no path.
func TestHandler_spanContinuesTheCallersTraceWithoutAPath(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	o, err := otel.New(metric.NewMeterProvider(), trace.NewTracerProvider(trace.WithSyncer(spans)))
	require.NoError(t, err)
	h := o.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-Id", "4bf92f3577b34da6a3ce929d0e0e4736")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/v2/user/resolve/patient-77", nil)
	r.Header.Set("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	h.ServeHTTP(httptest.NewRecorder(), r)
	list := spans.GetSpans()
	require.Len(t, list, 1)
	require.Equal(t, "api request", list[0].Name)
	require.Equal(t, "0af7651916cd43dd8448eb211c80319c", list[0].SpanContext.TraceID().String())
	require.Equal(t, codes.Error, list[0].Status.Code)
	require.ElementsMatch(t, []attribute.KeyValue{
		attribute.String("http.request.method", "GET"), attribute.Int("http.response.status_code", 503),
		attribute.String("request.id", "4bf92f3577b34da6a3ce929d0e0e4736"),
	}, list[0].Attributes)
}
