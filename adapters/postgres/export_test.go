package postgres

import (
	"time"

	"github.com/healthlab-dev/healthlab/webhook"
)

// Impatient makes a signal ask every moment whether its connection is still there.
func Impatient(g webhook.Signal) webhook.Signal {
	g.(*signal).quiet = 20 * time.Millisecond
	return g
}
