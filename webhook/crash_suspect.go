package webhook

import (
	"context"
	"slices"
	"time"
)

// suspicious reports whether a delivery has killed its sender so often that once more
// makes it poison. Those that were started beside it have too, and cannot be told from it.
func (d *Dispatcher) suspicious(del Delivery) bool {
	return del.Starts > 1 && del.Starts == d.limits.crashLimit
}

// oneSuspect gives back all suspects but one of what was claimed, or all of them while one
// is under way: where the process dies, it was that one. They are back in the store before
// it starts.
func (d *Dispatcher) oneSuspect(ctx context.Context, claimed []Delivery, at time.Time) []Delivery {
	if !slices.ContainsFunc(claimed, d.suspicious) {
		return claimed
	}
	rest := make([]Delivery, 0, len(claimed))
	var back []Released
	for _, del := range claimed {
		if d.suspicious(del) && !d.suspect.CompareAndSwap(0, int64(del.Delivery)) {
			back = append(back, Released{Lease: del.Lease, Delay: suspectWait})
			continue
		}
		rest = append(rest, del)
	}
	for failed := 0; len(back) > 0 && d.opts.Now().Sub(at) < d.opts.Lease; {
		returning, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.opts.StartMargin)
		err := d.deliveries.Release(returning, back)
		cancel()
		if err == nil {
			return rest
		}
		if ctx.Err() != nil {
			break
		}
		failed = d.trouble(ctx, "release", err, failed)
	}
	if len(back) == 0 {
		return rest
	}
	return slices.DeleteFunc(rest, func(del Delivery) bool { // the end of its lease brings it back
		d.cleared(del)
		return d.suspicious(del)
	})
}

// cleared notes that a delivery is over, one way or the other, so that another suspect
// may start.
func (d *Dispatcher) cleared(del Delivery) { d.suspect.CompareAndSwap(int64(del.Delivery), 0) }
