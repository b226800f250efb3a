package fhirlab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labjournal"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// dossier is the state of one order at the laboratory. It is kept as the Doc of a [labjournal.Record].
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

// journal keeps dossiers and bundles of one laboratory.
type journal struct {
	store labjournal.Store
	lab   string
}

func (j journal) open(ctx context.Context, number string, d *dossier) (dossier, error) {
	doc, err := json.Marshal(d)
	if err != nil {
		return dossier{}, fmt.Errorf("encode dossier: %w", err)
	}
	r, err := j.store.Open(ctx, j.lab, labjournal.Record{Number: number, Team: d.Team, User: d.User, Doc: doc})
	if err != nil {
		return dossier{}, fmt.Errorf("open dossier: %w", err)
	}
	return readDossier(&r)
}

// dossier returns the order of a number; NotFound if there is none.
func (j journal) dossier(ctx context.Context, number string) (dossier, error) {
	r, err := j.store.Record(ctx, j.lab, number)
	if err != nil {
		return dossier{}, fmt.Errorf("dossier: %w", err)
	}
	return readDossier(&r)
}

func readDossier(r *labjournal.Record) (d dossier, err error) {
	if err := json.Unmarshal(r.Doc, &d); err != nil {
		return dossier{}, fmt.Errorf("%w: the dossier of an order cannot be decoded", healthlab.Invalid)
	}
	return d, nil
}

// outcome is the effect of a bundle.
type outcome struct {
	messages []orders.Message
	review   string
}

// take keeps a delivery with its effects; see [labjournal.Store.Take]. change gets the known dossiers by number
// and may edit them; it is pure.
func (j journal) take(ctx context.Context, d labjournal.Delivery, numbers []string, change func(map[string]*dossier) outcome) error {
	_, err := j.store.Take(ctx, j.lab, d, numbers, func(records map[string]*labjournal.Record) (labjournal.Outcome, error) {
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
		for i := range effect.messages {
			m := &effect.messages[i]
			doc, err := json.Marshal(m)
			if err != nil {
				return labjournal.Outcome{}, fmt.Errorf("encode message: %w", err)
			}
			out.Messages = append(out.Messages, labjournal.Message{Team: m.Team, User: users[m.Order], Doc: doc})
		}
		for number, r := range records {
			doc, err := json.Marshal(found[number])
			if err != nil {
				return labjournal.Outcome{}, fmt.Errorf("encode dossier: %w", err)
			}
			r.Doc = doc
		}
		return out, nil
	})
	return err //nolint:wrapcheck // callers say what they did
}

// Updates implements orders.LabBackend, over the journal's feed.
func (b *Backend) Updates(ctx context.Context, cursor string, n int) (orders.Batch, error) {
	after, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil {
		after = 0
	}
	entries, err := b.journal.store.Feed(ctx, b.journal.lab, after, max(n, 0))
	if err != nil {
		return orders.Batch{}, fmt.Errorf("laboratory updates: %w", err)
	}
	out := orders.Batch{Cursor: cursor}
	for _, e := range entries {
		var m orders.Message
		if err := json.Unmarshal(e.Doc, &m); err != nil {
			return orders.Batch{}, fmt.Errorf("%w: a message of the journal cannot be decoded", healthlab.Invalid)
		}
		out.Messages, out.Cursor = append(out.Messages, m), strconv.FormatInt(e.Place, 10)
	}
	return out, nil
}

// Review returns at most n bundles under review after a place (zero is the start), with the reason and the
// bundle as it came.
func (b *Backend) Review(ctx context.Context, after int64, n int) ([]labjournal.Delivery, error) {
	return b.journal.store.Review(ctx, b.journal.lab, after, n)
}

// known returns the dossiers of numbers.
func (b *Backend) known(ctx context.Context, numbers []string) (map[string]*dossier, error) {
	found := map[string]*dossier{}
	for _, n := range numbers {
		held, err := b.journal.dossier(ctx, n)
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
