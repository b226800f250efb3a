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

// dossier is the state of one order at the laboratory. The journal keeps it.
type dossier struct {
	Number string
	Team   healthlab.TeamID
	User   healthlab.UserID
	Order  orders.OrderID
	Method catalogue.CollectionMethod
	// Patient is the order's. It keeps reports about other people apart; whose results are is not decided
	// by it.
	Patient *people.PatientDetails
	Tests   []orderedTest
	// Request is the bundle as it was sent, so that it can be sent again unchanged.
	Request []byte
	// Answered: the laboratory took the order. Refused: it did not, for good. Cancelled: it took the
	// cancellation.
	Answered, Refused, Cancelled bool
	State                        orderState
	// Others are the states that follow from reports with the order's number that may be about another
	// person, by what they report.
	Others map[string]orderState
}

// orderedTest is one test that was ordered.
type orderedTest struct {
	Code   string
	LOINC  string
	Marker labresult.SourceMarker
}

// aliasRecord begins the number of records that lead from what the laboratory calls a ServiceRequest, in its
// answer to the order, to the order's number.
const aliasRecord = " reference "

// Updates implements exchange.LabBackend, over the journal's feed.
func (b *Backend) Updates(ctx context.Context, cursor string, n int) (exchange.Batch, error) {
	return b.journal.Updates(ctx, cursor, n)
}

// Review returns at most n bundles under review after a place (zero is the start), with the reason and the
// bundle as it came.
func (b *Backend) Review(ctx context.Context, after int64, n int) ([]labjournal.Delivery, error) {
	return b.journal.Store.Review(ctx, b.journal.Lab, after, n)
}

// known returns the dossiers of numbers.
func (b *Backend) known(ctx context.Context, numbers []string) (map[string]*dossier, error) {
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

// shortID is a digest of parts.
func shortID(parts ...string) string {
	var all []byte
	for _, p := range parts {
		all = append(append(strconv.AppendInt(all, int64(len(p)), 10), ':'), p...)
	}
	sum := sha256.Sum256(all)
	return hex.EncodeToString(sum[:16])
}
