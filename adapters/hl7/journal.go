package hl7

import (
	"context"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

// Journal keeps what was sent to a laboratory and what came from it. One journal is of
// one laboratory. All methods are safe for concurrent use and atomic: either everything
// a call writes is there, or nothing is. Once a call has returned, what it wrote must
// survive what the journal promises to survive: the laboratory is told that we have its
// message, and does not send it again.
type Journal interface {
	// Open keeps a new dossier, or returns the one that is kept under its number.
	Open(ctx context.Context, d Dossier) (Dossier, error)
	// Dossier returns the one of a number; NotFound if there is none.
	Dossier(ctx context.Context, number string) (Dossier, error)
	// Take keeps a delivery, with what it changes. change is called with the dossiers
	// of the numbers that there are, by number, and may edit them; it must be pure, and
	// may be called more than once. Its messages are appended to the feed. If the key
	// of the delivery was taken before, nothing happens and the answer is false. A
	// delivery that it resolves is not under review any more; NotFound if it was not.
	Take(ctx context.Context, d Delivery, numbers []string, change func(map[string]*Dossier) Outcome) (bool, error)
	// Feed returns at most n entries after a place, in the order in which they were
	// written. The places grow, from 1. A place that is not reached yet, as of another
	// journal that was lost, means the start.
	Feed(ctx context.Context, after int64, n int) ([]Entry, error)
	// Review returns at most n deliveries that a person is to look at, after a place.
	Review(ctx context.Context, after int64, n int) ([]Delivery, error)
}

// Dossier is all that is known of one order at the laboratory. Its results make it
// something to be kept as safely as the orders are. Printing or logging it shows nothing.
type Dossier struct {
	// Number is what the laboratory knows the order by: the placer order number.
	Number string
	Team   healthlab.TeamID
	Order  orders.OrderID
	Method catalogue.CollectionMethod
	// Patient is compared with that of reports.
	Patient Patient
	Tests   []Test
	// Request is the message as it was sent, so that it can be sent again unchanged.
	Request []byte
	// Answered: the laboratory took the order. Refused: it did not, for good.
	Answered, Refused bool
	// SampleID is what the laboratory calls the order; empty if it did not say.
	SampleID string
	// Cancelled: the laboratory took the cancellation.
	Cancelled bool
	State     State
}

// Test is one test that was ordered.
type Test struct {
	// Code is what it was ordered by.
	Code   string
	Marker orders.SourceMarker
}

// Delivery is one message as it came in. Printing or logging it shows nothing.
type Delivery struct {
	// Place is its place among the deliveries, drawn by the journal.
	Place int64
	// Key tells deliveries apart: equal content has equal keys.
	Key string
	At  time.Time
	Raw []byte
	// Review says why a person is to look at it; empty if no person need.
	Review string
	// Numbers are the order numbers in it.
	Numbers []string
	// Resolves is the place of the delivery under review that this one settles; zero
	// for none.
	Resolves int64
}

// Outcome is what comes of a delivery.
type Outcome struct {
	Messages []orders.Message
	// Review says why a person is to look at the delivery; empty if no person need.
	Review string
}

// Entry is one message of the feed.
type Entry struct {
	Place   int64
	Message orders.Message
}
