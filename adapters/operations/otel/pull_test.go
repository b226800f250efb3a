package otel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/operations/otel"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// provider gives three samples, and then fails in its own words.
type provider struct{ asked int }

func (p *provider) Pull(context.Context, linking.PullRequest) (linking.PullPage, error) {
	if p.asked++; p.asked > 1 {
		return linking.PullPage{}, fmt.Errorf("%w: planted", healthlab.Unavailable)
	}
	return linking.PullPage{Items: []linking.PullItem{{Samples: make([]healthdata.Sample, 3)}}, Next: "planted"}, nil
}

func (*provider) Pulls(resource string) bool { return resource == "device" }

// The requests of a run are spans of the trace that introspection names, and tell nothing of
// whose data it is.
func TestPuller_spansBelongToTheTraceOfTheRun(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	traces := trace.NewTracerProvider(trace.WithSyncer(spans))
	o, err := otel.New(metric.NewMeterProvider(), traces)
	require.NoError(t, err)
	p := o.Puller("acme_band", &provider{})
	const run = "0af7651916cd43dd8448eb211c80319c"
	req := linking.PullRequest{Resource: "heartrate", Secret: []byte("planted"), Cursor: "planted", Trace: run}
	page, err := p.Pull(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, "planted", page.Next)
	_, err = p.Pull(t.Context(), req)
	require.ErrorIs(t, err, healthlab.Unavailable)
	req.Trace = "" // of a host that calls a puller itself
	_, err = p.Pull(t.Context(), req)
	require.Error(t, err)

	got := spans.GetSpans()
	require.Len(t, got, 3)
	require.Equal(t, run, got[0].SpanContext.TraceID().String())
	require.Equal(t, run, got[1].SpanContext.TraceID().String())
	require.Equal(t, got[0].Parent.SpanID(), got[1].Parent.SpanID())
	require.NotEqual(t, run, got[2].SpanContext.TraceID().String())
	require.False(t, got[2].Parent.IsValid())
	require.Equal(t, []attribute.KeyValue{
		attribute.String("provider", "acme_band"), attribute.String("resource", "heartrate"), attribute.Int("items", 3), attribute.Bool("last", false),
	}, got[0].Attributes)
	require.Equal(t, codes.Error, got[1].Status.Code)
	require.NotContains(t, fmt.Sprint(got), "planted")

	// What a puller gives beyond the usual is asked for behind a span, too.
	extended, ok := p.(linking.ExtendedPuller)
	require.True(t, ok)
	require.True(t, extended.Pulls("device"))
	require.False(t, extended.Pulls("workout_stream"))
	require.False(t, o.Puller("acme_band", failing{}).(linking.ExtendedPuller).Pulls("device"))

	// A tracer provider that does nothing changes nothing.
	o, err = otel.New(metric.NewMeterProvider(), noop.NewTracerProvider())
	require.NoError(t, err)
	_, err = o.Puller("acme_band", failing{}).Pull(t.Context(), linking.PullRequest{Trace: run})
	require.ErrorIs(t, err, errOwn)
}

var errOwn = errors.New("own")

type failing struct{}

func (failing) Pull(context.Context, linking.PullRequest) (linking.PullPage, error) {
	return linking.PullPage{}, errOwn
}
