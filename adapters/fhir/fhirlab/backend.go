package fhirlab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labjournal"
)

// Backend is an exchange.LabBackend for a laboratory that speaks FHIR. Results arrive through [Backend.Handler],
// [Backend.Receive] or [Backend.Poll]. It is safe for concurrent use, and any number of processes may share a
// journal.
type Backend struct {
	sender  Sender
	journal labjournal.Journal[dossier]
	opts    Options
}

// New returns a backend that sends orders with s. Its journal in the store is named after [Options].LabSlug: two
// laboratories that share a store need two slugs.
func New(s Sender, store labjournal.Store, o *Options) *Backend {
	opts := o.withDefaults()
	of := func(d *dossier) orders.OrderID { return d.Order }
	return &Backend{sender: s, journal: labjournal.Journal[dossier]{Store: store, Lab: opts.LabSlug, Order: of}, opts: opts}
}

// Submit implements exchange.LabBackend. Until the laboratory has accepted the order, a repeated call sends the same
// bundle, byte for byte, so that the laboratory creates nothing twice. After that it sends nothing. The returned
// SampleID is the order number. It returns Invalid for a refused or cancelled order. It also returns Invalid for a kit,
// because laboratories of this kind do not send kits.
func (b *Backend) Submit(ctx context.Context, s exchange.Submission) (exchange.Accepted, error) {
	if err := ctx.Err(); err != nil {
		return exchange.Accepted{}, err
	}
	if s.Stage != exchange.SubmitRequisition {
		return exchange.Accepted{}, fmt.Errorf("%w: a laboratory that speaks FHIR takes requisitions, and sends no kits", healthlab.Invalid)
	}
	d, err := b.openOrder(ctx, s)
	switch {
	case err != nil:
		return exchange.Accepted{}, fmt.Errorf("submit order: %w", err)
	case d.Order != s.Order.ID || d.Team != s.Order.TeamID:
		return exchange.Accepted{}, fmt.Errorf("submit order: %w: another order has the same order number; Options.Number must return a unique one", healthlab.Conflict)
	case d.Refused || d.Cancelled:
		return exchange.Accepted{}, fmt.Errorf("%w: the laboratory has refused the order, or the order was cancelled", healthlab.Invalid)
	case d.Answered:
		return exchange.Accepted{SampleID: d.Number}, nil
	}
	answer, err := b.sender.Send(ctx, d.Request)
	if kind := healthlab.KindOf(err); err != nil && kind != healthlab.Invalid {
		if kind == healthlab.NotFound { // the address of the laboratory is wrong
			err = fmt.Errorf("%w: %v", healthlab.Unavailable, err)
		}
		return exchange.Accepted{}, fmt.Errorf("submit order: %w", err)
	}
	refusal := err
	for _, at := range requestReferences(answer) {
		if _, err := b.journal.Open(ctx, labjournal.Record{Number: aliasRecord + at, Team: d.Team, User: d.User}, &dossier{Number: d.Number, Team: d.Team, User: d.User}); err != nil {
			return exchange.Accepted{}, fmt.Errorf("submit order: %w", err)
		}
	}
	err = b.storeAnswer(ctx, d.Number, "answer", answer, func(held *dossier) { held.Answered, held.Refused = refusal == nil, refusal != nil })
	if err == nil {
		err = refusal
	}
	if err != nil {
		return exchange.Accepted{}, fmt.Errorf("submit order: %w", err)
	}
	return exchange.Accepted{SampleID: d.Number}, nil
}

// storeAnswer stores an answer of the laboratory in the journal, and applies change to the order with the number. The
// delivery key is a digest of what, number and answer.
func (b *Backend) storeAnswer(ctx context.Context, number, what string, answer []byte, change func(*dossier)) error {
	_, err := b.journal.Take(ctx, labjournal.Delivery{Key: digestID(what, number, string(answer)), At: b.opts.Now(), Team: b.opts.ReviewTeam, Raw: answer}, []string{number}, func(found map[string]*dossier) labjournal.Effect {
		if held := found[number]; held != nil {
			change(held)
		}
		return labjournal.Effect{}
	})
	return err //nolint:wrapcheck // callers add what they did
}

// openOrder returns the order of a submission from the journal. If the journal lacks the order, openOrder stores it.
func (b *Backend) openOrder(ctx context.Context, s exchange.Submission) (dossier, error) {
	number := b.opts.Number(s.Order)
	d, err := b.journal.Get(ctx, number)
	if !errors.Is(err, healthlab.NotFound) {
		return d, err
	}
	r := request{Submission: s, number: number, opts: &b.opts}
	if id := s.Order.HealthInsuranceID; id != nil && b.opts.Insurance != nil {
		c, err := b.opts.Insurance(ctx, s.Order.TeamID, *id)
		if err != nil {
			return dossier{}, fmt.Errorf("read insurance record: %w", err)
		}
		r.coverage = &c
	}
	bundle, err := r.bundle()
	if err != nil {
		return dossier{}, err
	}
	made := r.dossier(bundle)
	return b.journal.Open(ctx, labjournal.Record{Number: number, Team: made.Team, User: made.User}, made)
}

// Cancel implements exchange.LabBackend. It updates the ServiceRequests to the status revoked.
func (b *Backend) Cancel(ctx context.Context, team healthlab.TeamID, id orders.OrderID) error {
	number := b.opts.Number(orders.Order{ID: id, TeamID: team})
	d, err := b.journal.Get(ctx, number)
	switch {
	case errors.Is(err, healthlab.NotFound):
		return nil
	case err != nil:
		return fmt.Errorf("cancel order: %w", err)
	case d.Cancelled || d.Refused || d.Team != team:
		return nil
	}
	bundle, err := revoke(d.Request)
	if err != nil {
		return fmt.Errorf("cancel order: %w", err)
	}
	answer, err := b.sender.Send(ctx, bundle)
	switch {
	case err == nil, errors.Is(err, healthlab.NotFound): // the order is unknown there
	case errors.Is(err, healthlab.Invalid):
		return fmt.Errorf("cancel order: %w: the laboratory refuses to cancel the order", healthlab.Precondition)
	default:
		return fmt.Errorf("cancel order: %w", err)
	}
	if err := b.storeAnswer(ctx, number, "cancelled", answer, func(held *dossier) { held.Cancelled = true }); err != nil {
		return fmt.Errorf("cancel order: %w", err)
	}
	return nil
}

// revoke returns the bundle that cancels an order. placed is the bundle that placed the order.
func revoke(placed []byte) ([]byte, error) {
	var b struct {
		ResourceType string   `json:"resourceType"`
		Type         string   `json:"type"`
		Entry        []object `json:"entry"`
	}
	if err := json.Unmarshal(placed, &b); err != nil {
		return nil, fmt.Errorf("decode order: %w", err)
	}
	for _, e := range b.Entry {
		resource, _ := e["resource"].(object)
		request, _ := e["request"].(object)
		if resource["resourceType"] == "ServiceRequest" {
			resource["status"] = "revoked"
			e["request"] = object{"method": "PUT", "url": fmt.Sprint("ServiceRequest?", request["ifNoneExist"])}
		}
	}
	out, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("encode order: %w", err)
	}
	return out, nil
}

// requestReferences returns the references to ServiceRequests in the answer to a transaction.
func requestReferences(answer []byte) (out []string) {
	var b struct {
		Entry []struct {
			Response struct {
				Location string `json:"location"`
			} `json:"response"`
		} `json:"entry"`
	}
	if json.Unmarshal(answer, &b) != nil {
		return nil
	}
	for _, e := range b.Entry {
		if at := relative(e.Response.Location); strings.HasPrefix(at, "ServiceRequest/") {
			out = append(out, at)
		}
	}
	return out
}

// relative returns the type and the id at the end of the URL of a resource, such as ServiceRequest/1.
func relative(at string) string {
	at, _, _ = strings.Cut(at, "/_history")
	parts := strings.Split(at, "/")
	if len(parts) < 2 {
		return at
	}
	return strings.Join(parts[len(parts)-2:], "/")
}

func uuidOf(parts ...string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte(strings.Join(parts, "\x00"))).String()
}
