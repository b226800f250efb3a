package main

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/otel"
	"github.com/healthlab-dev/healthlab/adapters/service"
)

// metricsPath is where metrics are in Prometheus' format.
const metricsPath = "/metrics"

// addMetrics measures the API, deliveries, pulls and the connections to the database.
func (s *host) addMetrics(c *service.Config) error {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo())
	if err != nil {
		return err
	}
	meters := metric.NewMeterProvider(metric.WithReader(reader))
	telemetry, err := otel.New(meters, noop.NewTracerProvider())
	if err != nil {
		return err
	}
	if err := telemetry.Backlog(s.store.backlog); err != nil {
		return err
	}
	c.HTTP.Observe, c.Webhooks.Hooks = telemetry.Observe, telemetry.Hooks()
	c.Connectors = maps.Clone(c.Connectors)
	for slug, connector := range c.Connectors {
		if connector.Puller != nil {
			connector.Puller = telemetry.Puller(slug, connector.Puller)
			c.Connectors[slug] = connector
		}
	}
	if pool := s.store.pool; pool != nil {
		gauge := func(name, help string, value func() float64) {
			registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
		}
		gauge("healthlab_database_connections", "Connections to the database.", func() float64 { return float64(pool.Stat().TotalConns()) })
		gauge("healthlab_database_connections_busy", "Connections to the database that are in use.", func() float64 { return float64(pool.Stat().AcquiredConns()) })
		gauge("healthlab_database_connections_most", "The most connections that the pool makes.", func() float64 { return float64(pool.Stat().MaxConns()) })
	}
	s.metrics = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	s.closers = append(s.closers, func() error { return meters.Shutdown(context.Background()) })
	return nil
}

// withMetrics answers /metrics beside the API, in a sandbox without -metrics-addr.
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

// serveMetrics answers /metrics, /healthz and /readyz at the address of -metrics-addr until
// the function that it returns is called.
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
	server := &http.Server{Handler: mux, ReadHeaderTimeout: limit, ReadTimeout: limit, WriteTimeout: limit}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	return func() error {
		err := server.Close()
		if failed := <-ended; !errors.Is(failed, http.ErrServerClosed) {
			err = errors.Join(err, failed)
		}
		return err
	}, nil
}
