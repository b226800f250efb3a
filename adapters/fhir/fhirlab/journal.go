package fhirlab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labjournal"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// dossier is the state of one order at the laboratory, as the journal stores it.
type dossier struct {
	Number string
	Team   healthlab.TeamID
	User   healthlab.UserID
	Order  orders.OrderID
	Method catalogue.CollectionMethod
	// Patient is the patient of the order. Reports about another patient go to Others. The orders.Service decides to whom
	// results belong.
	Patient *people.PatientDetails
	Tests   []orderedTest
	// Request is the bundle that placed the order, stored so that it can be sent again unchanged.
	Request []byte
	// Answered is true if the laboratory accepted the order, Refused if it refused the order for good, and Cancelled
	// if it accepted the cancellation.
	Answered, Refused, Cancelled bool
	State                        orderState
	// Others holds the states of reports that have the order's number, but may concern another person. The key is a digest
	// of the reported patient and numbers.
	Others map[string]orderState
}

// orderedTest is one test that was ordered.
type orderedTest struct {
	Code   string
	LOINC  string
	Marker labresult.SourceMarker
}

// aliasRecord is the prefix of journal records that map references to order numbers. The laboratory's answer to an
// order contains a reference to each ServiceRequest that it created.
const aliasRecord = " reference "

// Updates implements exchange.LabBackend. It reads the messages that the journal stores for the orders.Service.
func (b *Backend) Updates(ctx context.Context, cursor string, n int) (exchange.Batch, error) {
	return b.journal.Updates(ctx, cursor, n)
}

// Review returns at most n bundles that are under review, in order of position, each with the reason and the bundle as
// received. after is the position of the last bundle that the caller has seen; zero begins with the first.
func (b *Backend) Review(ctx context.Context, after int64, n int) ([]labjournal.Delivery, error) {
	return b.journal.Store.Review(ctx, b.journal.Lab, after, n)
}

// storedOrders returns the stored orders with the given numbers, by number.
func (b *Backend) storedOrders(ctx context.Context, numbers []string) (map[string]*dossier, error) {
	found := map[string]*dossier{}
	for _, n := range numbers {
		held, err := b.journal.Get(ctx, n)
		if errors.Is(err, healthlab.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found[n] = &held
	}
	return found, nil
}

// digestID returns an id made from a digest of parts.
func digestID(parts ...string) string {
	var all []byte
	for _, p := range parts {
		all = append(append(strconv.AppendInt(all, int64(len(p)), 10), ':'), p...)
	}
	sum := sha256.Sum256(all)
	return hex.EncodeToString(sum[:16])
}
