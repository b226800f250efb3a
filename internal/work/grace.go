package work

import (
	"context"
	"time"
)

// Grace returns a context with the values of ctx that ends a duration later than ctx, for writes that must complete
// after a caller has disconnected. The caller must call the returned function to release the context.
func Grace(ctx context.Context, after time.Duration) (context.Context, context.CancelFunc) {
	out, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(after, end)
		context.AfterFunc(out, func() { timer.Stop() })
	})
	return out, func() {
		stop()
		end()
	}
}
