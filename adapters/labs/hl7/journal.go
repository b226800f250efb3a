package hl7

import (
	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labjournal"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// dossier is the state of one order at the laboratory, as stored in the journal.
type dossier struct {
	// Number is the placer order number.
	Number string
	Team   healthlab.TeamID
	User   healthlab.UserID
	Order  orders.OrderID
	Method catalogue.CollectionMethod
	// Patient is the patient of the order, compared with reported patients: see [group.apply].
	Patient *people.PatientDetails
	Tests   []orderedTest
	// Request is the sent order message, so that it can be sent again unchanged.
	Request []byte
	// Answered reports whether the laboratory accepted the order, Refused whether it rejected the order for good.
	Answered, Refused bool
	// SampleID is the laboratory's number of the order, empty if unknown.
	SampleID string
	// Cancelled reports whether the laboratory accepted the cancellation.
	Cancelled bool
	State     orderState
	// Shared reports, in a record of the laboratory's number, that the laboratory gave the number to several orders.
	Shared bool `json:",omitempty"`
	// Others holds separate states for reports that have the order's number but may concern another person. The key
	// is a digest of the reported patient and numbers.
	Others map[string]orderState
}

// orderedTest is one ordered test.
type orderedTest struct {
	// Code is the code in the order.
	Code   string
	Marker labresult.SourceMarker
	// Refused reports whether the laboratory refused the test when it accepted the order. The order is complete without
	// it.
	Refused bool `json:",omitempty"`
}

// delivery is one received message.
type delivery struct {
	labjournal.Delivery
	// Numbers lists the order numbers in the message.
	Numbers []string
}

// sampleRecord is the prefix of journal records that map the number which the laboratory gave an order, in its
// answer to the order, to the order number. A number that it gave to several orders identifies none of them. Numbers
// that occur only in reports are not mapped, because laboratories give one number to tests of several orders. The prefix
// begins with a space, so that no order number in a message equals it.
const sampleRecord = " sample "
