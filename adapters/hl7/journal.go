package hl7

import (
	"context"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// Journal stores the messages to and from one laboratory. All methods are safe for
// concurrent use and atomic. A call returns after its writes are durable, because the
// laboratory gets its acknowledgement then and does not send the message again.
type Journal interface {
	// Open stores a new dossier, or returns the one with its number.
	Open(ctx context.Context, d Dossier) (Dossier, error)
	// Dossier returns the one of a number; NotFound if there is none.
	Dossier(ctx context.Context, number string) (Dossier, error)
	// Take stores a delivery with its effects. change gets the known dossiers by number and
	// may edit them; it is pure and may run twice. Take appends its messages to the feed. If
	// the key of the delivery is known, Take changes nothing and returns false. The delivery
	// that it resolves leaves the review; NotFound if it was not under review.
	Take(ctx context.Context, d Delivery, numbers []string, change func(map[string]*Dossier) Outcome) (bool, error)
	// Feed returns at most n entries after a place, in the order in which they were
	// written. The places grow, from 1. A place that is not reached yet, as of another
	// journal that was lost, means the start.
	Feed(ctx context.Context, after int64, n int) ([]Entry, error)
	// Review returns at most n deliveries under review after a place.
	Review(ctx context.Context, after int64, n int) ([]Delivery, error)
}

// Dossier is the state of one order at the laboratory. It has results: protect it as the
// orders. Printing or logging it shows nothing.
type Dossier struct {
	// Number is the placer order number.
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
	// SampleID is the laboratory's number of the order; empty if unknown.
	SampleID string
	// Cancelled: the laboratory took the cancellation.
	Cancelled bool
	State     State
}

// Test is one test that was ordered.
type Test struct {
	// Code is what it was ordered by.
	Code   string
	Marker labresult.SourceMarker
}

// Delivery is one message as it came in. Printing or logging it shows nothing.
type Delivery struct {
	// Place is its place among the deliveries, set by the journal.
	Place int64
	// Key is equal for equal content.
	Key string
	At  time.Time
	Raw []byte
	// Review is the reason for review; empty for none.
	Review string
	// Numbers are the order numbers in it.
	Numbers []string
	// Resolves is the place of the delivery under review that this one replaces; zero for
	// none.
	Resolves int64
}

// Outcome is the effect of a delivery.
type Outcome struct {
	Messages []orders.Message
	// Review is the reason for review; empty for none.
	Review string
}

// Entry is one message of the feed.
type Entry struct {
	Place   int64
	Message orders.Message
}
