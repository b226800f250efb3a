package sandbox

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
)

// Outbox collects messages to patients and sends none. Safe for concurrent use; the zero value is ready to use.
type Outbox struct {
	mu   sync.Mutex
	sent []orders.PatientMessage
	seen map[uuid.UUID]bool
	down int
}

// Fail makes the next n calls of Send fail.
func (o *Outbox) Fail(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.down = n
}

// Send implements [orders.Messenger]. A message that is sent again is stored once.
func (o *Outbox) Send(ctx context.Context, m orders.PatientMessage) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.down > 0 {
		o.down--
		return fmt.Errorf("%w: the sandbox message service does not answer", healthlab.Unavailable)
	}
	if o.seen == nil {
		o.seen = map[uuid.UUID]bool{}
	}
	if !o.seen[m.ID] {
		o.seen[m.ID] = true
		o.sent = append(o.sent, m)
	}
	return nil
}

// Sent returns the messages about an order, in the order in which they were sent.
func (o *Outbox) Sent(id orders.OrderID) []orders.PatientMessage {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(o.sent), func(m orders.PatientMessage) bool { return m.Order != id })
}
