package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/sqlite"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/webhook"
	"github.com/healthlab-dev/healthlab/webhook/receiver"
)

// newReceiver returns a receiver that prints each event to out, with one function for each type of payload. It accepts
// signatures of any of the secrets. A real program stores the payload under the id of its object. The ids of handled
// messages are stored in file, or in memory if file is empty.
func newReceiver(ctx context.Context, secrets []webhook.Secret, file string, out io.Writer) (*receiver.Receiver, error) {
	d := &reporter{out: out}
	seen := memory.NewSeen(nil)
	if file != "" {
		engine, err := sqlite.Open(ctx, file, receiver.Tables(), nil)
		if err != nil {
			return nil, err
		}
		seen = receiver.NewSeen(engine)
	}
	r, err := receiver.New(secrets, seen, &receiver.Options{Observe: d.observe})
	if err != nil {
		return nil, err
	}
	receiver.On(r, func(_ context.Context, e receiver.Event, s *healthdata.Sleep) error {
		asleep := "?"
		if s.Total != nil {
			asleep = (time.Duration(*s.Total) * time.Second).String()
		}
		return d.printEvent(e, "%s asleep, up at %s, from %s", asleep, s.BedtimeStop, s.Source.Provider)
	})
	receiver.On(r, func(_ context.Context, e receiver.Event, a *healthdata.Activity) error {
		return d.printEvent(e, "%s steps and %s m on %s, from %s", known(a.Steps), known(a.Distance), a.CalendarDate, a.Source.Provider)
	})
	receiver.On(r, func(_ context.Context, e receiver.Event, w *healthdata.Workout) error {
		return d.printEvent(e, "%s at %s, %s kcal, from %s", w.Sport.Slug, w.TimeStart, known(w.Calories), w.Source.Provider)
	})
	receiver.On(r, func(_ context.Context, e receiver.Event, b *healthdata.Batch) error {
		if len(b.Data) == 0 {
			return d.printEvent(e, "nothing, from %s", b.Source.Provider)
		}
		first, last := b.Data[0], b.Data[len(b.Data)-1]
		return d.printEvent(e, "%d of %s (%s) until %s, from %s", len(b.Data), e.Name.Resource, first.Unit, last.Timestamp, b.Source.Provider)
	})
	receiver.On(r, func(_ context.Context, e receiver.Event, h *healthdata.Historical) error {
		return d.printEvent(e, "the past of %s is complete, from %s", e.Name.Resource, h.Provider)
	})
	receiver.On(r, func(_ context.Context, e receiver.Event, c *healthdata.ConnectionCreated) error {
		return d.printEvent(e, "connected %s", c.Provider.Slug)
	})
	receiver.On(r, func(_ context.Context, e receiver.Event, o *orders.Order) error {
		return d.printEvent(e, "order %s is %s", o.ID, o.LastEvent.Status.LowLevel())
	})
	// OnOther handles all other types of events, including types that are newer than this program.
	r.OnOther(func(_ context.Context, e receiver.Event) error {
		return d.printEvent(e, "%d bytes", len(e.Data))
	})
	return r, nil
}

// reporter prints events, one on each line.
type reporter struct {
	mu  sync.Mutex // one goroutine prints at a time
	out io.Writer
}

func (d *reporter) print(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, _ = fmt.Fprintf(d.out, format+"\n", args...)
}

// observe prints messages that no function of newReceiver handled, such as repeated ones, and errors.
func (d *reporter) observe(_ context.Context, e receiver.Event, o receiver.Outcome, err error) {
	switch {
	case err != nil:
		d.print("refused: %s", healthlab.KindOf(err))
	case o != receiver.Applied: // the function of its type has printed an applied event
		d.print("%s: %s", o, e.Type)
	}
}

// printEvent prints one event as a line: its type, the client user id and a formatted text.
func (d *reporter) printEvent(e receiver.Event, format string, args ...any) error {
	who := e.ClientUserID
	if who == "" {
		who = "nobody"
	}
	d.print("%s, %s: %s", e.Type, who, fmt.Sprintf(format, args...))
	return nil
}

func known[N int64 | float64](n *N) string {
	if n == nil {
		return "?"
	}
	return fmt.Sprint(*n)
}
