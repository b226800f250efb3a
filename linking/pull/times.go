package pull

import (
	"time"

	"github.com/healthlab-dev/healthlab"
)

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// orNever returns t, or nil if t is zero.
func orNever(t time.Time) *healthlab.Time {
	if t.IsZero() {
		return nil
	}
	at := healthlab.At(t)
	return &at
}
