// Package labjournal says how a store keeps the messages to and from laboratories, for a
// backend that gets a message once and acknowledges it: HL7 version 2 (adapters/labs/hl7) and
// whatever else a laboratory speaks.
//
// A [Record] is what the backend knows of one order. A [Delivery] is a message that came
// in; [Store].Take keeps it with its effects in one commit: records that changed, and
// messages for the orders.Service, which reads them from the feed. What belongs to no order
// for certain waits for review.
//
// A [Journal] is a Store for the backend of one laboratory: it encodes what the backend knows of an order, and
// the messages for the orders.Service.
//
// What records, deliveries and messages hold is the backend's: the store takes it as bytes
// and encrypts it with the key of the person whom it is about.
package labjournal

import (
	"context"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Store keeps the journals of laboratories. lab names the laboratory, such as by its slug;
// journals of two laboratories share nothing.
//
// All methods are safe for concurrent use, by any number of processes, and atomic. A call
// returns after its writes are durable, because the laboratory gets its acknowledgement then
// and does not repeat the message. A context that has ended before a call writes nothing
// and is the error. What a call takes and returns is a copy. Names that [CheckNames] refuses
// are [healthlab.Invalid].
//
// healthdata.Users.Erase removes records of the user with their deliveries, and messages about
// the user. Those of a user who is deleted and can come back are returned: the
// orders.Service hides the order.
type Store interface {
	// Open keeps a new record, or returns the one with its number.
	Open(ctx context.Context, lab string, r Record) (Record, error)

	// Record returns the one with a number; [healthlab.NotFound] if there is none.
	Record(ctx context.Context, lab, number string) (Record, error)

	// Take keeps a delivery with its effects. change gets the known records of the
	// numbers, and may edit their Doc; it is pure and may run more than once. Its error is
	// returned unchanged, and nothing is written. If the key of the delivery is known,
	// Take changes nothing, does not call change, and returns false.
	//
	// The raw message is kept with the first record of the numbers, or while it waits for
	// review (see [Owner]); else its key alone. The delivery that it resolves leaves the review;
	// [healthlab.NotFound] if that was not under review.
	Take(ctx context.Context, lab string, d Delivery, numbers []string, change Change) (bool, error)

	// Deliveries returns those that are kept for an order, in the order in which they came.
	Deliveries(ctx context.Context, lab, number string) ([]Delivery, error)

	// Feed returns at most n messages after a place, in the order in which they were kept.
	// Places grow, from 1; a reader that has seen a place has seen all before it. A place
	// that is not reached yet, as of a journal that was lost, means the start.
	//
	// Messages about a person who is not known are deleted once a reader has passed their
	// place: the reader keeps them elsewhere, where an erasure finds them.
	Feed(ctx context.Context, lab string, after int64, n int) ([]Entry, error)

	// Review returns at most n deliveries under review after a place, in the order in
	// which they came.
	Review(ctx context.Context, lab string, after int64, n int) ([]Delivery, error)
}

// Change is what a delivery does to the records that it names, by number.
type Change func(records map[string]*Record) (Outcome, error)

// Record is what a backend knows of one order.
type Record struct {
	healthlab.Private

	// Number is the order's at the laboratory.
	Number string
	// Team and User say whose order it is.
	Team healthlab.TeamID
	User healthlab.UserID
	// Doc is the backend's.
	Doc []byte
}

// Delivery is one message as it came in.
type Delivery struct {
	healthlab.Private

	// Place is its place among the deliveries of the laboratory, set by the store.
	Place int64
	// Key is equal for equal content.
	Key string
	At  time.Time
	// Team is who reviews it. The zero team is the operator of the service.
	Team healthlab.TeamID
	// Raw is the message.
	Raw []byte
	// Review is the reason for review; empty for none.
	Review string
	// Resolves is the place of the delivery under review that this one replaces; zero for
	// none.
	Resolves int64
}

// Outcome is the effect of a delivery.
type Outcome struct {
	Messages []Message
	// Review is the reason for review; empty for none.
	Review string
}

// Message is what the orders.Service gets.
type Message struct {
	healthlab.Private

	// Team and User say whom it is about. A zero User means that this is not known.
	Team healthlab.TeamID
	User healthlab.UserID
	// Doc is the backend's.
	Doc []byte
}

// Entry is one message of the feed.
type Entry struct {
	Place int64
	Message
}

// Owner returns the record that a delivery is kept with: that of the first number which has
// one, nil if none has or if the delivery waits for review.
func Owner(records map[string]*Record, numbers []string, review string) *Record {
	if review != "" {
		return nil
	}
	for _, number := range numbers {
		if r := records[number]; r != nil {
			return r
		}
	}
	return nil
}

// CheckNames is [healthlab.Invalid] unless name, the number of a record or the key of a delivery,
// is not empty, and every store can keep the text of all. Stores call it before they write.
func CheckNames(lab, name string, numbers ...string) error {
	if name == "" {
		return fmt.Errorf("%w: a delivery must have a number and a key", healthlab.Invalid)
	}
	return healthlab.CheckText(append([]string{lab, name}, numbers...)...)
}
