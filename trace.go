package healthlab

import "context"

type traceKey struct{}

// WithTrace returns a context with a trace: a store writes it into [Event.Trace] of every event that it stores
// with this context. traceparent has the form of the header of W3C Trace Context; empty means no trace.
func WithTrace(ctx context.Context, traceparent string) context.Context {
	return context.WithValue(ctx, traceKey{}, traceparent)
}

// TraceOf returns the traceparent of [WithTrace]; empty without one.
func TraceOf(ctx context.Context) string {
	traceparent, _ := ctx.Value(traceKey{}).(string)
	return traceparent
}
