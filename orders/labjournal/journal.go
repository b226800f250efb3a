package labjournal

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/exchange"
)

// Journal stores in a [Store] the data that a laboratory's backend has about each order: a value of type D, as JSON in
// the Doc of its [Record]. The Docs of its messages are messages of exchange.LabBackend, as JSON. Safe for concurrent
// use.
type Journal[D any] struct {
	Store Store
	// Lab is the name of the laboratory in the store.
	Lab string
	// Order returns the id of the order that a value is about. It must be pure.
	Order func(*D) orders.OrderID
}

// Effect is the effect of a delivery besides changed values: messages for exchange.Service, or a review.
type Effect struct {
	Messages []exchange.Message
	// Review is the reason for which a person must review the delivery; empty if none must.
	Review string
}

// Open stores the value d under the order number, team and user of r. If the number has a value already, Open returns
// that value and changes nothing.
func (j Journal[D]) Open(ctx context.Context, r Record, d *D) (D, error) {
	var err error
	if r.Doc, err = json.Marshal(d); err != nil {
		return *new(D), fmt.Errorf("encode the state of an order: %w", err)
	}
	if r, err = j.Store.Open(ctx, j.Lab, r); err != nil {
		return *new(D), fmt.Errorf("open the state of an order: %w", err)
	}
	return decode[D](&r)
}

// Get returns the value that is stored for an order's number; [healthlab.NotFound] if there is none.
func (j Journal[D]) Get(ctx context.Context, number string) (D, error) {
	r, err := j.Store.Record(ctx, j.Lab, number)
	if err != nil {
		return *new(D), fmt.Errorf("state of an order: %w", err)
	}
	return decode[D](&r)
}

func decode[D any](r *Record) (d D, err error) {
	if err := json.Unmarshal(r.Doc, &d); err != nil {
		return *new(D), fmt.Errorf("%w: the state of an order cannot be decoded", healthlab.Invalid)
	}
	return d, nil
}

// Take stores a delivery with its effect, as [Store].Take does. change gets the stored values by order number, and may
// edit them; it must be pure. It returns false if the delivery is a repetition. The user of a message is that of the
// order that the message names.
func (j Journal[D]) Take(ctx context.Context, d Delivery, numbers []string, change func(map[string]*D) Effect) (bool, error) {
	return j.Store.Take(ctx, j.Lab, d, numbers, func(records map[string]*Record) (Outcome, error) {
		found, users := map[string]*D{}, map[orders.OrderID]healthlab.UserID{}
		for number, r := range records {
			held, err := decode[D](r)
			if err != nil {
				return Outcome{}, err
			}
			found[number], users[j.Order(&held)] = &held, r.User
		}
		effect := change(found)
		out := Outcome{Review: effect.Review}
		for i := range effect.Messages {
			m := &effect.Messages[i]
			doc, err := json.Marshal(m)
			if err != nil {
				return Outcome{}, fmt.Errorf("encode a message: %w", err)
			}
			out.Messages = append(out.Messages, Message{Team: m.Team, User: users[m.Order], Doc: doc})
		}
		for number, r := range records {
			doc, err := json.Marshal(found[number])
			if err != nil {
				return Outcome{}, fmt.Errorf("encode the state of an order: %w", err)
			}
			r.Doc = doc
		}
		return out, nil
	})
}

// Updates implements exchange.LabBackend over the feed. An invalid cursor means the first message.
func (j Journal[D]) Updates(ctx context.Context, cursor string, n int) (exchange.Batch, error) {
	after, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil {
		after = 0
	}
	entries, err := j.Store.Feed(ctx, j.Lab, after, max(n, 0))
	if err != nil {
		return exchange.Batch{}, fmt.Errorf("laboratory updates: %w", err)
	}
	out := exchange.Batch{Cursor: cursor}
	for _, e := range entries {
		var m exchange.Message
		if err := json.Unmarshal(e.Doc, &m); err != nil {
			return exchange.Batch{}, fmt.Errorf("%w: a message of the journal cannot be decoded", healthlab.Invalid)
		}
		out.Messages, out.Cursor = append(out.Messages, m), strconv.FormatInt(e.Place, 10)
	}
	return out, nil
}
