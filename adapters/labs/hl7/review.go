package hl7

import (
	"context"
	"fmt"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/labjournal"
)

// Reasons for which the journal holds a message for review.
const (
	// ReviewNoMatch means that the message names no order or an unknown one.
	ReviewNoMatch = "no_match"
	// ReviewPatient means that the message is about another patient than the order, and has documents or no result.
	ReviewPatient = "patient_mismatch"
	// ReviewNumbers means that a test has numbers of different orders, and the message has documents or no
	// result.
	ReviewNumbers = "contradicting_numbers"
	// ReviewTest means that a test of the message may be one of several of the order: they have its code and number, and
	// it states neither their sample nor the collection time. The other tests of the message were added to the order.
	ReviewTest = "several_tests"
	// ReviewCancelled means that the order was cancelled or rejected by the laboratory, and the message has no
	// result.
	ReviewCancelled = "match_cancelled"
)

// Review returns at most n messages under review, in the order of their receipt, each with the reason and the message
// as received. after is the Place of the last message that the caller has; zero returns the first ones.
func (b *Backend) Review(ctx context.Context, after int64, n int) ([]labjournal.Delivery, error) {
	return b.journal.Store.Review(ctx, b.journal.Lab, after, n)
}

// Deliveries returns the received messages of an order, unchanged, the oldest first. It returns NotFound if no order
// with this id was submitted.
func (b *Backend) Deliveries(ctx context.Context, team healthlab.TeamID, order orders.OrderID) ([]labjournal.Delivery, error) {
	number := b.opts.Number(orders.Order{ID: order, TeamID: team})
	held, err := b.journal.Get(ctx, number)
	if err == nil && (held.Order != order || held.Team != team) {
		err = healthlab.NotFound
	}
	if err != nil {
		return nil, fmt.Errorf("list messages of an order: %w", err)
	}
	return b.journal.Store.Deliveries(ctx, b.journal.Lab, number)
}

// Attach assigns the message under review with this Place to an order. The order gets, whatever their numbers, all
// tests of the message that were not added to an order yet. A test that may be one of several of the order is added
// beside them. It returns NotFound if the message is not under review,
// or the order was never submitted.
func (b *Backend) Attach(ctx context.Context, place int64, team healthlab.TeamID, order orders.OrderID) error {
	number := b.opts.Number(orders.Order{ID: order, TeamID: team})
	held, err := b.journal.Get(ctx, number)
	if err == nil && (held.Order != order || held.Team != team) {
		err = healthlab.NotFound
	}
	if err != nil {
		return fmt.Errorf("attach HL7 message: %w", err)
	}
	list, err := b.Review(ctx, place-1, 1)
	if err == nil && (len(list) == 0 || list[0].Place != place) {
		err = healthlab.NotFound
	}
	if err != nil {
		return fmt.Errorf("attach HL7 message: %w", err)
	}
	m, err := er7.Parse(list[0].Raw, &er7.Options{MaxBytes: len(list[0].Raw), Charset: b.opts.Charset})
	if err != nil {
		return fmt.Errorf("attach HL7 message: %w", err)
	}
	in, err := Read(m, &b.opts)
	if err != nil {
		return err
	}
	found, err := b.dossiers(ctx, in.numbers())
	if err != nil {
		return fmt.Errorf("attach HL7 message: %w", err)
	}
	var rest []TestReport // the tests that had no order yet
	of, err := b.orderNumbers(ctx, in)
	if err != nil {
		return fmt.Errorf("attach HL7 message: %w", err)
	}
	for _, g := range assign(in, found, of, false) {
		for _, t := range g.tests {
			waits := g.held != nil && slices.Contains(g.held.State.Waiting[list[0].Key], t.Segment)
			if waits || g.held == nil || g.isUncertain() || g.held.Cancelled || g.held.Refused {
				t.Numbers = []string{number}
				rest = append(rest, t)
			}
		}
	}
	in.Tests = rest
	d := b.delivery(digestID([]byte("attach"), []byte(list[0].Key), []byte(number)), list[0].Raw, number)
	d.Resolves = place
	return b.storeDelivery(ctx, m, in, nil, d)
}
