package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/httpserver"
	"github.com/healthlab-dev/healthlab/adapters/operations/otel"
	"github.com/healthlab-dev/healthlab/adapters/service"
	"github.com/healthlab-dev/healthlab/webhook"
)

// metricsPath is the path at which Prometheus reads the metrics.
const metricsPath = "/metrics"

// telemetry collects the metrics of the program. It also exports traces if the settings name a trace collector.
type telemetry struct {
	*otel.Telemetry
	registry *prometheus.Registry
	metrics  http.Handler
	meters   *metric.MeterProvider
	traces   *sdk.TracerProvider // nil if traces are not exported
}

// newTelemetry returns the telemetry of the program. It exports traces to endpoint or, if that is empty, to the
// collector that OTEL_EXPORTER_OTLP_ENDPOINT names; without both it exports none.
func newTelemetry(ctx context.Context, endpoint string) (*telemetry, error) {
	t := &telemetry{registry: prometheus.NewRegistry()}
	t.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	t.metrics = promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{})
	reader, err := exporter.New(exporter.WithRegisterer(t.registry), exporter.WithoutScopeInfo())
	if err != nil {
		return nil, err
	}
	t.meters = metric.NewMeterProvider(metric.WithReader(reader))
	var traces trace.TracerProvider = noop.NewTracerProvider()
	if endpoint != "" || os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != "" {
		if t.traces, err = exportTraces(ctx, endpoint); err != nil {
			return nil, fmt.Errorf("-otlp-endpoint: %w", err)
		}
		traces = t.traces
	}
	t.Telemetry, err = otel.New(t.meters, traces)
	return t, err
}

// exportTraces returns a tracer provider that exports traces. The OpenTelemetry library reads the standard
// environment variables: endpoint, headers, certificates, sampler, resource attributes.
func exportTraces(ctx context.Context, endpoint string) (*sdk.TracerProvider, error) {
	var options []otlptracehttp.Option
	if endpoint != "" {
		at, err := url.JoinPath(endpoint, "v1/traces")
		if err != nil {
			return nil, err
		}
		options = append(options, otlptracehttp.WithEndpointURL(at))
	}
	exporter, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return nil, err
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "healthlab")), resource.WithFromEnv())
	if err != nil {
		return nil, err
	}
	return sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about)), nil
}

func (t *telemetry) tracer() pgx.QueryTracer {
	if t.traces == nil {
		return nil
	}
	return t.Tracer()
}

// close exports the remaining traces and stops the metrics, within five seconds.
func (t *telemetry) close(ctx context.Context) error {
	const grace = 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	err := t.meters.Shutdown(ctx)
	if t.traces != nil {
		err = errors.Join(err, t.traces.Shutdown(ctx))
	}
	return err
}

// withTraces records a trace of each request, except of monitoring requests such as /healthz.
func (s *host) withTraces(next http.Handler) http.Handler {
	if s.traces == nil {
		return next
	}
	traced := s.Telemetry.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case metricsPath, "/healthz", "/readyz":
			next.ServeHTTP(w, r)
		default:
			traced.ServeHTTP(w, r)
		}
	})
}

// scrapeTime is the time limit for reading the values of metrics from the database.
const scrapeTime = 3 * time.Second

// addMetrics adds the metrics of the API, of deliveries and pulls, and of database connections.
func (s *host) addMetrics(c *service.Config) error {
	backlog := func(ctx context.Context) (webhook.Backlog, error) {
		ctx, stop := context.WithTimeout(ctx, scrapeTime)
		defer stop()
		return s.store.Backlog(ctx)
	}
	if err := s.Telemetry.Backlog(backlog); err != nil {
		return err
	}
	c.HTTP.Observe, c.Webhooks.Hooks = s.Observe, s.Hooks()
	c.Notifier = s.Notifier(c.Notifier)
	c.Connectors = maps.Clone(c.Connectors)
	for slug, connector := range c.Connectors {
		if connector.Puller != nil {
			connector.Puller = s.Telemetry.Puller(slug, connector.Puller)
			c.Connectors[slug] = connector
		}
	}
	gauge := func(name, help string, value func() float64) {
		s.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	if pool := s.store.pool; pool != nil {
		gauge("healthlab_database_connections", "Connections to the database.", func() float64 { return float64(pool.Stat().TotalConns()) })
		gauge("healthlab_database_connections_busy", "Connections to the database that are in use.", func() float64 { return float64(pool.Stat().AcquiredConns()) })
		gauge("healthlab_database_connections_most", "The most connections that the pool makes.", func() float64 { return float64(pool.Stat().MaxConns()) })
	}
	return nil
}

// withMetrics serves /metrics at the address of the API in a sandbox without -metrics-addr, and returns next unchanged
// otherwise.
func (s *host) withMetrics(next http.Handler) http.Handler {
	if s.metricsAddr != "" || s.environment != healthlab.Sandbox {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == metricsPath {
			s.metrics.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// metricsConnections is the highest number of open connections to -metrics-addr.
const metricsConnections = 16

// serveMetrics serves /metrics, /healthz and /readyz at -metrics-addr until stop is called.
func (s *host) serveMetrics(ctx context.Context) (stop func() error, err error) {
	if s.metricsAddr == "" {
		return func() error { return nil }, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.metricsAddr)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(metricsPath, s.metrics)
	mux.Handle("/healthz", s.Handler())
	mux.Handle("/readyz", s.Handler())
	const limit = 10 * time.Second
	server := httpserver.New(mux, &httpserver.Options{Header: limit, Idle: limit, Write: limit, Connections: metricsConnections, AddressConnections: metricsConnections})
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	return func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		defer cancel()
		err := server.Shutdown(ctx)
		if failed := <-ended; !errors.Is(failed, http.ErrServerClosed) {
			err = errors.Join(err, failed)
		}
		return err
	}, nil
}
