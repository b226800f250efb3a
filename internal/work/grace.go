package work

import (
	"context"
	"time"
)

// Grace returns a context that ends some time after ctx has ended, for what must be written although
// the caller has gone. While ctx has not ended, it sets no limit. It has the values of ctx. The function
// that it returns ends it.
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
