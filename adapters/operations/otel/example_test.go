package otel_test

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/healthlab-dev/healthlab/adapters/operations/otel"
	"github.com/healthlab-dev/healthlab/webhook"
)

// A host gives its providers, and the hooks to the dispatcher's options. Here the part of
// the dispatcher is played by hand.
func Example() {
	reader := metric.NewManualReader()
	o, err := otel.New(metric.NewMeterProvider(metric.WithReader(reader)), trace.NewTracerProvider())
	if err != nil {
		panic(err)
	}
	hooks := o.Hooks()
	hooks.Attempt(webhook.ClassTimeout, 1, 15*time.Second, 15*time.Second, false)
	hooks.Attempt(webhook.ClassOK, 2, time.Second, 21*time.Second, false)

	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		panic(err)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		if attempts, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "healthlab.webhook.attempts" {
			var n int64
			for _, p := range attempts.DataPoints {
				n += p.Value
			}
			fmt.Println(m.Name, n)
		}
	}
	// Output: healthlab.webhook.attempts 2
}
