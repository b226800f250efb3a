package otel

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Tracer returns a tracer for pgx.ConnConfig.Tracer. It adds a span "store" for each round trip to PostgreSQL within a
// recorded span, with the verb and table of each statement and the SQLSTATE of an error. It records no statement,
// argument or error text, because they may contain values of people.
func (t *Telemetry) Tracer() interface {
	pgx.QueryTracer
	pgx.BatchTracer
} {
	return storeTracer{t.tracer}
}

type storeTracer struct{ tracer trace.Tracer }

// TraceQueryStart begins the span of a statement.
func (s storeTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	return s.start(ctx, func() []string { return []string{summary(d.SQL)} })
}

// TraceQueryEnd ends the span.
func (storeTracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryEndData) {
	end(ctx, d.Err)
}

// TraceBatchStart begins the span of a batch.
func (s storeTracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	return s.start(ctx, func() (all []string) {
		for _, q := range d.Batch.QueuedQueries {
			all = append(all, summary(q.SQL))
		}
		return all
	})
}

// TraceBatchQuery does nothing. It is required by pgx.BatchTracer.
func (storeTracer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd ends the span of a batch.
func (storeTracer) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchEndData) {
	end(ctx, d.Err)
}

// storeSpan is the context key of the span of a round trip.
type storeSpan struct{}

func (s storeTracer) start(ctx context.Context, statements func() []string) context.Context {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ctx
	}
	ctx, span := s.tracer.Start(ctx, "store", trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("db.system.name", "postgresql"), attribute.String("db.query.summary", strings.Join(statements(), ", "))))
	return context.WithValue(ctx, storeSpan{}, span)
}

func end(ctx context.Context, err error) {
	span, ok := ctx.Value(storeSpan{}).(trace.Span)
	if !ok {
		return
	}
	defer span.End()
	if err == nil || errors.Is(err, pgx.ErrNoRows) {
		return
	}
	state := "none"
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		state = pg.Code
	}
	span.SetAttributes(attribute.String("db.response.status_code", state))
	span.SetStatus(codes.Error, state)
}

var (
	verb  = regexp.MustCompile(`^\s*([a-z]+)`)
	table = regexp.MustCompile(`\b(?:into|update|from|join) "?healthlab"?\."?([a-z_]+)`)
)

// summary returns the verb and the first table of an SQL statement, without any values.
func summary(sql string) string {
	out := strings.TrimSpace(verb.FindString(sql))
	if m := table.FindStringSubmatch(sql); m != nil {
		out += " " + m[1]
	}
	return out
}
