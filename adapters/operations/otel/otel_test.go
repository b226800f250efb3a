package otel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/operations/otel"
	"github.com/healthlab-dev/healthlab/webhook"
)

var encoder = attribute.DefaultEncoder()

var team = healthlab.TeamID{UUID: uuid.MustParse("11111111-1111-4111-8111-111111111111")}

// flaky refuses the first attempt and accepts the others.
type flaky struct{ n int }

func (f *flaky) Notify(context.Context, webhook.Notification) webhook.Result {
	if f.n++; f.n == 1 {
		return webhook.Result{Class: webhook.ClassThrottled, Status: 503, Duration: time.Second}
	}
	return webhook.Result{Class: webhook.ClassOK, Status: 200, Duration: time.Second}
}

// TestTelemetry_measuresDeliveriesWithoutPersonalData checks the metrics and spans of a delivery that fails once and then succeeds.
// They hold nothing of the person.
func TestTelemetry_measuresDeliveriesWithoutPersonalData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader := metric.NewManualReader()
		spans := tracetest.NewInMemoryExporter()
		o, err := otel.New(metric.NewMeterProvider(metric.WithReader(reader)),
			trace.NewTracerProvider(trace.WithSyncer(spans)))
		require.NoError(t, err)

		store := memory.New(nil)
		types, err := webhook.NewCatalogue([]healthlab.EventType{
			{Name: "labtest.order.updated", Mode: healthlab.Ordered, Data: struct{}{}},
		}, webhook.EventTypes())
		require.NoError(t, err)
		seal, err := healthlab.NewAESSealer("k", map[string][]byte{"k": bytes.Repeat([]byte{7}, 32)})
		require.NoError(t, err)
		to := o.Notifier(&flaky{})
		service, err := webhook.NewService(types, store.Webhooks(), to, seal, nil)
		require.NoError(t, err)
		_, err = service.Create(t.Context(), team, webhook.NewEndpoint{URL: "https://planted.example.com/planted"})
		require.NoError(t, err)
		require.NoError(t, store.Outbox().Append(t.Context(), []healthlab.Event{{
			ID: uuid.Must(uuid.NewV7()), Type: "labtest.order.updated", Team: team, Key: "planted-key", At: time.Now(),
			Data: json.RawMessage(`{"planted":1}`),
		}}))
		d, err := webhook.NewDispatcher(types, store.Webhooks(), to, seal, &webhook.Options{Hooks: o.Hooks()})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- d.Run(ctx) }()
		time.Sleep(time.Minute)
		cancel()
		require.NoError(t, <-ended)

		var got metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(t.Context(), &got))
		counted, measured := map[string]int64{}, map[string]float64{}
		for _, m := range got.ScopeMetrics[0].Metrics {
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					counted[m.Name+" "+p.Attributes.Encoded(encoder)] += p.Value
				}
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					measured[m.Name+" "+p.Attributes.Encoded(encoder)] += p.Sum
				}
			}
		}
		require.Equal(t, int64(1), counted["healthlab.webhook.attempts class=throttled,first=true"])
		require.Equal(t, int64(1), counted["healthlab.webhook.attempts class=ok,first=false"])
		require.Equal(t, int64(1), counted["healthlab.webhook.work step=routed"])
		require.Equal(t, int64(2), counted["healthlab.webhook.work step=settled"])
		require.InDelta(t, 1.0, measured["healthlab.webhook.attempt.duration class=ok"], 1e-9)
		require.GreaterOrEqual(t, measured["healthlab.webhook.lag "], 5.0, "the schedule's first delay")

		stubs := spans.GetSpans()
		require.Len(t, stubs, 2)
		require.Equal(t, codes.Error, stubs[0].Status.Code)
		require.Equal(t, codes.Unset, stubs[1].Status.Code)
		text := fmt.Sprint(counted, measured, stubs)
		require.NotContains(t, text, "planted")
		require.NotContains(t, text, team.String())
	})
}
