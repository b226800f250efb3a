// Package labjournal stores the messages to and from laboratories, for a backend that gets each message once
// and acknowledges it, such as the backend for HL7 version 2 (adapters/labs/hl7).
//
// A [Record] is what the backend knows of one order. A [Delivery] is a received message. [Store].Take stores it
// in one transaction with its effects: changed records, and messages for exchange.Service, which reads them from
// the feed. A delivery waits for review if the backend cannot assign it to an order with certainty.
//
// A [Journal] is a Store for the backend of one laboratory: it encodes what the backend knows of an order, and
// the messages for exchange.Service.
//
// The backend decides the content of records, deliveries and messages. The store stores it as bytes, encrypted with
// the key of the person whom it is about.
package labjournal

import (
	"context"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Store stores the journals of laboratories: the orders that a backend knows, the received deliveries, and a
// feed of messages. lab identifies the laboratory, for example its slug; two laboratories share nothing.
//
// All methods are safe for concurrent use, by any number of processes, and atomic. A call returns after its
// writes are durable, because the laboratory then gets its acknowledgement and does not repeat the message. If
// the context has ended before a call, the call writes nothing and returns its error. Arguments and results are
// copies. A missing number of a record or key of a delivery is
// [healthlab.Invalid], and so is a text that [healthlab.CheckText] refuses.
//
// healthdata.Users.Erase removes records of the user with their deliveries, and messages about the user. The
// data of a user who is deleted and not erased is returned: orders.Service hides the order.
type Store interface {
	// Open stores a new record, or returns the existing record with the same number.
	Open(ctx context.Context, lab string, r Record) (Record, error)

	// Record returns the record with a number; [healthlab.NotFound] if there is none.
	Record(ctx context.Context, lab, number string) (Record, error)

	// Take stores a delivery with its effects. change gets the existing records of the order numbers, and may edit
	// their Doc; it must be pure and may run more than once. Take returns an error of change unchanged, and writes
	// nothing. If a delivery with the same key exists, Take changes nothing, does not call change, and returns false.
	//
	// The raw message is stored with the first number that has a record, or while the delivery waits for review.
	// Otherwise only the key of the delivery is stored. Take ends the review of the delivery that Resolves names;
	// [healthlab.NotFound] if that delivery is not under review.
	Take(ctx context.Context, lab string, d Delivery, numbers []string, change Change) (bool, error)

	// Deliveries returns the stored deliveries of an order, in the order of their receipt.
	Deliveries(ctx context.Context, lab, number string) ([]Delivery, error)

	// Feed returns at most n messages whose Place is greater than after, in the order of their places. Places grow,
	// from 1. A reader that has read a message has read all messages with lower places. If after is greater than every
	// place, such as that of a lost journal, Feed starts at the first message.
	//
	// Feed deletes messages about unknown persons up to after: the reader has stored them where an erasure finds them.
	Feed(ctx context.Context, lab string, after int64, n int) ([]Entry, error)

	// Review returns at most n deliveries under review whose Place is greater than after, in the order of their
	// receipt.
	Review(ctx context.Context, lab string, after int64, n int) ([]Delivery, error)
}

// Change returns the effect of a delivery, and may edit the Docs of the records that the delivery names. records has
// them by order number.
type Change func(records map[string]*Record) (Outcome, error)

// Record is the data that a backend has about one order.
type Record struct {
	healthlab.Private

	// Number is the laboratory's number of the order.
	Number string
	// Team and User are those of the order.
	Team healthlab.TeamID
	User healthlab.UserID
	// Doc is the content, in a form that only the backend reads.
	Doc []byte
}

// Delivery is one received message.
type Delivery struct {
	healthlab.Private

	// Place is the position among the deliveries of the laboratory; the store sets it.
	Place int64
	// Key identifies the content: a repeated message has the same key.
	Key string
	At  time.Time
	// Team is the team that reviews the delivery; zero for the operator of the service.
	Team healthlab.TeamID
	// Raw is the message as received.
	Raw []byte
	// Review is the reason for which a person must review the delivery; empty if none must.
	Review string
	// Resolves is the place of the delivery under review that this delivery replaces; zero for none.
	Resolves int64
}

// Outcome is the effect of a delivery besides changed records: messages for exchange.Service, or a review.
type Outcome struct {
	Messages []Message
	// Review is the reason for which a person must review the delivery; empty if none must.
	Review string
}

// Message is a message in the feed, for exchange.Service.
type Message struct {
	healthlab.Private

	// Team and User are the team and the user whom the message is about. A zero User is unknown.
	Team healthlab.TeamID
	User healthlab.UserID
	// Doc is the content, in a form that only the backend reads.
	Doc []byte
}

// Entry is one message of the feed.
type Entry struct {
	Place int64
	Message
}

// ownerOf returns the record with which a delivery is stored: that of the first number that has one. Nil if there is
// none, or if review, the reason for a review, is not empty.
func ownerOf(records map[string]*Record, numbers []string, review string) *Record {
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

func checkNames(lab, what, name string, numbers ...string) error {
	if name == "" {
		return fmt.Errorf("%w: %s is required", healthlab.Invalid, what)
	}
	return healthlab.CheckText(append([]string{lab, name}, numbers...)...)
}
