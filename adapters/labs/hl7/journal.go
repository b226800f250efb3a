package hl7

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labjournal"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// dossier is the state of one order at the laboratory. It is kept as the Doc of a
// [labjournal.Record].
type dossier struct {
	// Number is the placer order number.
	Number string
	Team   healthlab.TeamID
	User   healthlab.UserID
	Order  orders.OrderID
	Method catalogue.CollectionMethod
	// Patient is the order's, and tells apart reports about other people: see [group.take].
	Patient *people.PatientDetails
	Tests   []orderedTest
	// Request is the message as it was sent, so that it can be sent again unchanged.
	Request []byte
	// Answered: the laboratory took the order. Refused: it did not, for good.
	Answered, Refused bool
	// SampleID is the laboratory's number of the order; empty if unknown.
	SampleID string
	// Cancelled: the laboratory took the cancellation.
	Cancelled bool
	State     orderState
	// Others are the states that follow from reports with the order's number that may be about
	// another person, by what they report of patient and numbers.
	Others map[string]orderState
}

// orderedTest is one test that was ordered.
type orderedTest struct {
	// Code is what it was ordered by.
	Code   string
	Marker labresult.SourceMarker
}

// delivery is one message as it came in.
type delivery struct {
	labjournal.Delivery
	// Numbers are the order numbers in it.
	Numbers []string
}

// outcome is the effect of a delivery.
type outcome struct {
	messages []orders.Message
	review   string // the reason for review; empty for none
}

// journal keeps dossiers and messages of one laboratory in a store.
type journal struct {
	store labjournal.Store
	lab   string
}

func (j journal) open(ctx context.Context, d dossier) (dossier, error) {
	doc, err := json.Marshal(d)
	if err != nil {
		return dossier{}, fmt.Errorf("encode HL7 dossier: %w", err)
	}
	r, err := j.store.Open(ctx, j.lab, labjournal.Record{Number: d.Number, Team: d.Team, User: d.User, Doc: doc})
	if err != nil {
		return dossier{}, fmt.Errorf("open HL7 dossier: %w", err)
	}
	return readDossier(&r)
}

func (j journal) dossier(ctx context.Context, number string) (dossier, error) {
	r, err := j.store.Record(ctx, j.lab, number)
	if err != nil {
		return dossier{}, fmt.Errorf("HL7 dossier: %w", err)
	}
	return readDossier(&r)
}

// sampleRecord begins the number of the records that lead from the number which the laboratory
// gave an order, in its answer to it, to the order's. Numbers in reports alone do not count:
// laboratories give one to tests of several orders. It begins with a space, as no order number of
// a message does.
const sampleRecord = " sample "

// openSample keeps which order has a number of the laboratory, if it is not kept.
func (j journal) openSample(ctx context.Context, d dossier, sample string) error {
	doc, err := json.Marshal(dossier{Number: d.Number})
	if err != nil {
		return fmt.Errorf("encode HL7 dossier: %w", err)
	}
	if _, err := j.store.Open(ctx, j.lab, labjournal.Record{Number: sampleRecord + sample, Team: d.Team, User: d.User, Doc: doc}); err != nil {
		return fmt.Errorf("open HL7 dossier: %w", err)
	}
	return nil
}

func readDossier(r *labjournal.Record) (d dossier, err error) {
	if err := json.Unmarshal(r.Doc, &d); err != nil {
		return dossier{}, fmt.Errorf("%w: the HL7 dossier of an order cannot be decoded", healthlab.Invalid)
	}
	return d, nil
}

// take keeps a delivery with its effects; see [labjournal.Store.Take]. change gets the known
// dossiers by number and may edit them; it is pure.
func (j journal) take(ctx context.Context, d delivery, change func(map[string]*dossier) outcome) (bool, error) {
	return j.store.Take(ctx, j.lab, d.Delivery, d.Numbers, func(records map[string]*labjournal.Record) (labjournal.Outcome, error) {
		found, users := map[string]*dossier{}, map[orders.OrderID]healthlab.UserID{}
		for number, r := range records {
			held, err := readDossier(r)
			if err != nil {
				return labjournal.Outcome{}, err
			}
			found[number], users[held.Order] = &held, r.User
		}
		effect := change(found)
		out := labjournal.Outcome{Review: effect.review}
		for _, m := range effect.messages {
			doc, err := json.Marshal(m)
			if err != nil {
				return labjournal.Outcome{}, fmt.Errorf("encode HL7 message: %w", err)
			}
			out.Messages = append(out.Messages, labjournal.Message{Team: m.Team, User: users[m.Order], Doc: doc})
		}
		for number, r := range records {
			doc, err := json.Marshal(found[number])
			if err != nil {
				return labjournal.Outcome{}, fmt.Errorf("encode HL7 dossier: %w", err)
			}
			r.Doc = doc
		}
		return out, nil
	})
}

// feed returns messages for the orders.Service after a place, and the place of the last one.
func (j journal) feed(ctx context.Context, after int64, n int) ([]orders.Message, int64, error) {
	entries, err := j.store.Feed(ctx, j.lab, after, n)
	if err != nil {
		return nil, 0, err
	}
	var out []orders.Message
	for _, e := range entries {
		var m orders.Message
		if err := json.Unmarshal(e.Doc, &m); err != nil {
			return nil, 0, fmt.Errorf("%w: a message of the HL7 journal cannot be decoded", healthlab.Invalid)
		}
		out, after = append(out, m), e.Place
	}
	return out, after, nil
}
