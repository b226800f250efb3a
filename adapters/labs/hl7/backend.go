package hl7

import (
	"context"
	"errors"
	"fmt"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labjournal"
)

// Sender sends a message to the laboratory and returns the first answer that accept returns true for. It may send
// the message several times. After an error it is unknown whether the message arrived. An empty answer means that
// the laboratory sends none. Implementations, such as mllp.Client and [Folder], must be safe for concurrent use.
type Sender interface {
	Send(ctx context.Context, message []byte, accept func(answer []byte) bool) ([]byte, error)
}

// Backend is an exchange.LabBackend for a laboratory that speaks HL7 v2. Messages of the laboratory arrive through
// [Backend.Handle] or [Backend.Receive]. It is safe for concurrent use, and any number of processes may share a
// journal.
type Backend struct {
	sender  Sender
	journal labjournal.Journal[dossier]
	opts    Options
}

// New returns a backend that sends orders with s. Its journal in the store is named after [Options].LabSlug, so two
// laboratories that share a store need two slugs.
func New(s Sender, store labjournal.Store, o *Options) *Backend {
	opts := o.withDefaults()
	of := func(d *dossier) orders.OrderID { return d.Order }
	return &Backend{sender: s, journal: labjournal.Journal[dossier]{Store: store, Lab: opts.LabSlug, Order: of}, opts: opts}
}

// Submit implements exchange.LabBackend. A repeated call sends the same message, byte for byte. The sample id is the
// laboratory's order number if its answer contains one that no other order has, otherwise the order number of this
// service. An order is refused if the laboratory refuses all of its tests. It returns
// Invalid for a kit, which laboratories of this kind do not send.
func (b *Backend) Submit(ctx context.Context, s exchange.Submission) (exchange.Accepted, error) {
	if err := ctx.Err(); err != nil {
		return exchange.Accepted{}, err
	}
	if s.Stage != exchange.SubmitRequisition {
		return exchange.Accepted{}, fmt.Errorf("submit order: %w: Submission.Stage: must be %s; a laboratory with an HL7 connection sends no kits", healthlab.Invalid, exchange.SubmitRequisition)
	}
	d, err := b.open(ctx, s)
	switch {
	case err != nil:
		return exchange.Accepted{}, fmt.Errorf("submit order: %w", err)
	case d.Order != s.Order.ID || d.Team != s.Order.TeamID:
		return exchange.Accepted{}, fmt.Errorf("submit order: %w: another order has the same order number; Options.Number must return a unique one", healthlab.Conflict)
	case d.Refused || d.Cancelled:
		return exchange.Accepted{}, fmt.Errorf("submit order: %w: the laboratory has refused the order, or the order was cancelled", healthlab.Invalid)
	case d.Answered:
		return exchange.Accepted{SampleID: d.SampleID}, nil
	}
	v, answer, err := b.exchange(ctx, d.Request)
	if err != nil {
		return exchange.Accepted{}, fmt.Errorf("submit order: %w", err)
	}
	refusal := v.err()
	refused, some := v.refusedTests(d.Tests, &b.opts)
	if (v.code == "AA" || v.code == "CA") && refusal != nil && some {
		refusal = nil
		b.opts.Log.WarnContext(ctx, "laboratory refused tests of an order", "order", d.Order, "tests", len(d.Tests), "found", len(refused), "answer", v.codes())
	}
	if refusal != nil && !errors.Is(refusal, healthlab.Invalid) {
		return exchange.Accepted{}, fmt.Errorf("submit order: %w", refusal)
	}
	if v.code == "AA" && v.sample == "" {
		v.sample = d.Number
	}
	record := b.delivery(digestID([]byte("answer"), d.Request), answer, d.Number)
	sample := sampleRecord + v.sample
	if refusal == nil && v.sample != "" && v.sample != d.Number {
		record.Numbers = append(record.Numbers, sample)
		if _, err := b.journal.Open(ctx, labjournal.Record{Number: sample, Team: d.Team, User: d.User}, &dossier{Number: d.Number}); err != nil {
			return exchange.Accepted{}, fmt.Errorf("submit order: %w", err)
		}
	}
	_, err = b.journal.Take(ctx, record.Delivery, record.Numbers, func(found map[string]*dossier) labjournal.Effect {
		if held := found[d.Number]; held != nil {
			held.Answered, held.Refused = refusal == nil, refusal != nil
			for _, i := range refused {
				held.Tests[i].Refused = true
			}
			if held.SampleID == "" {
				held.SampleID = v.sample
			}
			if first := found[sample]; first != nil && first.Number != d.Number {
				first.Shared, held.SampleID = true, d.Number
			}
		}
		return labjournal.Effect{}
	})
	if err != nil {
		return exchange.Accepted{}, fmt.Errorf("submit order: %w", err)
	}
	if refusal != nil {
		return exchange.Accepted{}, fmt.Errorf("submit order: %w", refusal)
	}
	d, err = b.journal.Get(ctx, d.Number) // another process may have stored the answer first
	if err != nil {
		return exchange.Accepted{}, fmt.Errorf("submit order: %w", err)
	}
	return exchange.Accepted{SampleID: d.SampleID}, nil
}

// open stores an order with its message in the journal, unless the journal has it.
func (b *Backend) open(ctx context.Context, s exchange.Submission) (dossier, error) {
	r := request{Submission: s, control: newOrder, number: b.opts.Number(s.Order), at: b.opts.Now(), opts: &b.opts}
	d, err := b.journal.Get(ctx, r.number)
	if !errors.Is(err, healthlab.NotFound) {
		return d, err
	}
	if id := s.Order.HealthInsuranceID; id != nil && b.opts.Insurance != nil {
		in, err := b.opts.Insurance(ctx, s.Order.TeamID, *id)
		if err != nil {
			return dossier{}, fmt.Errorf("read insurance record: %w", err)
		}
		r.insurance = &in
	}
	r.messageID = "O" + digestID([]byte(r.number), []byte(r.control))
	m, err := r.message()
	if err != nil {
		return dossier{}, err
	}
	made := r.dossier(m)
	return b.journal.Open(ctx, labjournal.Record{Number: made.Number, Team: made.Team, User: made.User}, &made)
}

// exchange sends a message and returns the acknowledgement, parsed and as received. A laboratory that sends no answer
// counts as accepting (CA).
func (b *Backend) exchange(ctx context.Context, message []byte) (acknowledgement, []byte, error) {
	sent, err := er7.Parse(message, nil)
	if err != nil {
		return acknowledgement{}, nil, err
	}
	var reply *er7.Message
	answer, err := b.sender.Send(ctx, message, func(answer []byte) bool {
		m, err := er7.Parse(answer, b.opts.parsing())
		if err != nil || m.Segment("MSA").Field(2).Text() != sent.ControlID() {
			return false
		}
		reply = m
		return true
	})
	switch {
	case err != nil:
		return acknowledgement{}, nil, err
	case len(answer) == 0:
		return acknowledgement{code: "CA"}, nil, nil
	}
	return readAcknowledgement(reply), answer, nil
}

// Cancel implements exchange.LabBackend: it sends an order message that cancels the tests.
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
	message, err := b.cancellation(d)
	if err != nil {
		return fmt.Errorf("cancel order: %w", err)
	}
	v, answer, err := b.exchange(ctx, message)
	if err != nil {
		return fmt.Errorf("cancel order: %w", err)
	}
	switch refusal := v.err(); {
	case refusal == nil, v.hasErrorCode(codeUnknownKey): // the order is unknown there
	case errors.Is(refusal, healthlab.Invalid):
		return fmt.Errorf("cancel order: %w: the laboratory refuses to cancel the order (%s)", healthlab.Precondition, v.codes())
	default:
		return fmt.Errorf("cancel order: %w", refusal)
	}
	record := b.delivery(digestID([]byte("answer"), message), answer, number)
	_, err = b.journal.Take(ctx, record.Delivery, record.Numbers, func(found map[string]*dossier) labjournal.Effect {
		if held := found[number]; held != nil {
			held.Cancelled = true
		}
		return labjournal.Effect{}
	})
	if err != nil {
		return fmt.Errorf("cancel order: %w", err)
	}
	return nil
}

// cancellation returns the message that cancels an order: the header of the order message with a new id, the patient,
// and each test.
func (b *Backend) cancellation(d dossier) ([]byte, error) {
	placed, err := er7.Parse(d.Request, nil)
	if err != nil {
		return nil, err
	}
	out := er7.NewBuilder(placed.Delimiters(), placed.Charset())
	h := placed.Header()
	for _, n := range []int{3, 4, 5, 6, 7, 11, 12} {
		out.Header().Set(n, h.Field(n).Text())
	}
	code, event := placed.Type()
	out.Header().Set(9, code, event, code+"_"+event).Set(10, "O"+digestID([]byte(d.Number), []byte(cancelOrder)))
	n := 0
	for s := range placed.Segments() {
		switch s.Name() {
		case "PID":
			id, name := s.Field(3), s.Field(5).Name()
			out.Add("PID").SetNumber(1, 1).Set(3, id.Component(1).Text(), "", "", id.Component(4).Text(), id.Component(5).Text()).
				Set(5, name.Family, name.Given).Set(7, s.Field(7).Text()).Set(8, s.Field(8).Text())
		case "OBR":
			n++
			c := s.Field(4).Coded().Codes[0]
			out.Add("ORC").Set(1, string(cancelOrder)).Set(2, d.Number, b.opts.Us.Application).Set(3, d.SampleID)
			out.Add("OBR").SetNumber(1, n).Set(2, d.Number, b.opts.Us.Application).Set(3, d.SampleID).Set(4, c.Code, c.Text, c.System)
		}
	}
	m, err := out.Build()
	if err != nil {
		return nil, err
	}
	return m.Bytes(), nil
}

// Updates implements exchange.LabBackend. It reads the feed of messages in the journal.
func (b *Backend) Updates(ctx context.Context, cursor string, n int) (exchange.Batch, error) {
	return b.journal.Updates(ctx, cursor, n)
}

func (b *Backend) delivery(key string, raw []byte, numbers ...string) delivery {
	return delivery{labjournal.Delivery{Key: key, At: b.opts.Now(), Team: b.opts.ReviewTeam, Raw: raw}, numbers}
}
