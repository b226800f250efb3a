package hl7

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
	"github.com/healthlab-dev/healthlab/orders/labjournal"
)

// Handle receives a message or a batch and returns the acknowledgement. It implements mllp.Handler. AA or CA means
// that every result is stored, whether or not it belongs to an order. AE means that the message is malformed or
// could not be stored, or that some results are refused. An ERR segment names each refused result; the others are
// stored, and sending the message again changes nothing. AR means that messages of this type are not accepted. The
// answer to a batch (FHS, BHS) is a batch with an acknowledgement of each message, and an AE for each part that
// cannot be read; if nothing can be read, it is a single AE.
func (b *Backend) Handle(ctx context.Context, message []byte, frameErr error) []byte {
	if frameErr != nil {
		return b.opts.answer(nil, rejected, frameErr)
	}
	if er7.IsBatch(message) {
		return b.handleBatch(ctx, message)
	}
	m, err := er7.Parse(message, b.opts.parsing())
	if err != nil {
		b.opts.Log.Warn("HL7 message refused", "error", err.Error())
		return b.opts.answer(b.header(message), refused, err)
	}
	if code, _ := m.Type(); code == "ACK" {
		return nil // an acknowledgement is not acknowledged
	}
	notTaken, err := b.receive(ctx, m)
	var unsupported *unsupportedError
	switch {
	case err == nil && len(notTaken) > 0:
		return b.opts.answer(m, refused, notTaken...)
	case err == nil:
		return b.opts.answer(m, accepted)
	case errors.As(err, &unsupported):
		b.opts.Log.Warn("HL7 message refused", "error", err.Error())
		return b.opts.answer(m, rejected, err)
	default:
		b.opts.Log.Warn("HL7 message not taken in", "error", err.Error())
		return b.opts.answer(m, refused, err)
	}
}

// handleBatch receives the messages of a batch one after another, and returns the batch of acknowledgements.
func (b *Backend) handleBatch(ctx context.Context, raw []byte) []byte {
	batch, err := er7.ParseBatch(raw, b.opts.parsing())
	if err != nil {
		b.opts.Log.Warn("HL7 batch refused", "error", err.Error())
		return b.opts.answer(nil, refused, err)
	}
	head := "BHS|^~\\&|||||" + er7.FormatStamp(b.opts.Now().In(b.opts.Zone)) + "\r"
	out, n := []byte(head), 0
	for _, i := range batch.Items() {
		var answer []byte
		switch {
		case i.Message != nil:
			answer = b.Handle(ctx, i.Message.Bytes(), nil)
		case i.Err != nil:
			b.opts.Log.Warn("HL7 message refused", "error", i.Err.Error())
			answer = b.opts.answer(b.header(i.Raw), refused, i.Err)
		}
		if answer != nil {
			out = append(out, answer...)
			n++
		}
	}
	if n == 0 {
		return nil // the sender wants no answers
	}
	return fmt.Appendf(out, "BTS|%d\r", n)
}

// header parses the header of a malformed message for its acknowledgement; nil if that fails too.
func (b *Backend) header(message []byte) *er7.Message {
	i := strings.IndexAny(string(message), "\r\n")
	if i < 0 {
		i = len(message)
	}
	m, err := er7.Parse(message[:i], b.opts.parsing())
	if err != nil {
		return nil
	}
	return m
}

// Receive receives a message of the laboratory over any transport: results, statuses of orders, late answers.
// Receiving the message again changes nothing. Results that no order matches for certain are held for review
// ([Options].ReviewTeam, [Backend.Review]). It returns Invalid if the message, or a result in it, cannot be read; the
// other results are stored. After any other error the caller should call Receive again with the message.
func (b *Backend) Receive(ctx context.Context, m *er7.Message) error {
	notTaken, err := b.receive(ctx, m)
	return errors.Join(append(notTaken, err)...)
}

// ReceiveAll parses and receives a message or a batch (FHS, BHS). It joins the errors of messages that are malformed or
// refused by [Backend.Receive]. All other messages were received.
func (b *Backend) ReceiveAll(ctx context.Context, raw []byte) error {
	batch, err := er7.ParseBatch(raw, b.opts.parsing())
	if err != nil {
		return err
	}
	err = errors.Join(batch.Errors()...)
	for _, m := range batch.Messages() {
		err = errors.Join(err, b.Receive(ctx, m))
	}
	return err
}

// receive is [Backend.Receive], but returns the errors of the refused results in notTaken. The others are stored.
func (b *Backend) receive(ctx context.Context, m *er7.Message) (notTaken []error, err error) {
	in, err := Read(m, &b.opts)
	if err != nil {
		return nil, err
	}
	of, err := b.orderNumbers(ctx, in)
	if err != nil {
		return nil, fmt.Errorf("receive HL7 message: %w", err)
	}
	numbers := in.numbers()
	for _, t := range in.Tests {
		if n := of[t.Filler]; n != "" && !contains(numbers, n) {
			numbers = append(numbers, n)
		}
	}
	for _, bad := range in.Refused {
		b.opts.Log.Warn("HL7 result refused", "error", bad.Error())
		notTaken = append(notTaken, bad)
	}
	return notTaken, b.storeDelivery(ctx, m, in, of, b.delivery(keyOf(m), m.Bytes(), numbers...))
}

// keyOf returns a key that is equal for repeated messages: they differ only in their headers. A message that changes
// earlier results, such as a correction, may change them back to an earlier state. It is a repetition only if its
// control id (MSH-10) is the same too, or if it has no time (MSH-7).
func keyOf(m *er7.Message) string {
	code, event := m.Type()
	parts := [][]byte{[]byte(code), []byte(event), []byte(m.Header().Field(3).Raw()), []byte(m.Header().Field(4).Raw())}
	changes := false
	for s := range m.Segments() {
		switch s.Name() {
		case "MSH":
			continue
		case "OBR":
			changes = changes || rank(s.Field(25).Text()) > rank("F")
		case "OBX":
			changes = changes || rank(s.Field(11).Text()) > rank("F")
		}
		parts = append(parts, []byte(s.Raw()))
	}
	if sent := m.Header().Field(7); changes && !sent.Empty() {
		parts = append(parts, []byte(cmp.Or(m.ControlID(), sent.Raw())))
	}
	return digestID(parts...)
}

// numbers returns all order numbers of a message.
func (in Incoming) numbers() []string {
	var out []string
	for _, t := range in.Tests {
		for _, n := range t.Numbers {
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// storeDelivery stores a delivery, the changed states of its orders, and the messages that the orders.Service gets. of
// maps the laboratory's order numbers to placer order numbers. Documents are stored first, because storing them twice
// has no effect.
func (b *Backend) storeDelivery(ctx context.Context, m *er7.Message, in Incoming, of map[string]string, d delivery) error {
	if err := b.putDocuments(ctx, in, of, d); err != nil {
		return fmt.Errorf("receive HL7 message: %w", err)
	}
	code, _ := m.Type()
	results := code == "ORU" || code == "OUL"
	fresh, err := b.journal.Take(ctx, d.Delivery, d.Numbers, func(found map[string]*dossier) (out labjournal.Effect) {
		for i, g := range assign(in, found, of, d.Resolves != 0) {
			if g.held == nil {
				m := g.unassigned(d, i, &b.opts)
				if results && m != nil {
					out.Messages = append(out.Messages, *m)
				}
				if !results || m == nil || g.hasDocuments() { // the order of the documents is not decided yet
					out.Review = g.reason()
				}
				continue
			}
			m, review := g.apply(d, results, &b.opts)
			out.Review = cmp.Or(review, out.Review)
			if !results && review == "" {
				out.Messages = append(out.Messages, g.held.statusMessages(g.tests, d, &b.opts)...)
			}
			if m != nil {
				out.Messages = append(out.Messages, *m)
			}
		}
		return out
	})
	if err != nil {
		return fmt.Errorf("receive HL7 message: %w", err)
	}
	if !fresh {
		b.opts.Log.Info("HL7 message came again", "key", d.Key)
	}
	return nil
}

// orderNumbers maps the laboratory's order numbers in a message to placer order numbers. It marks the tests with a
// number that the laboratory gave to several orders.
func (b *Backend) orderNumbers(ctx context.Context, in Incoming) (map[string]string, error) {
	of, shared := map[string]string{}, map[string]bool{}
	for i := range in.Tests {
		t := &in.Tests[i]
		if _, done := of[t.Filler]; done || t.Filler == "" {
			t.shared = shared[t.Filler]
			continue
		}
		held, err := b.journal.Get(ctx, sampleRecord+t.Filler)
		if err != nil && !errors.Is(err, healthlab.NotFound) {
			return nil, err
		}
		if of[t.Filler] = held.Number; held.Shared {
			of[t.Filler], shared[t.Filler], t.shared = "", true, true
		}
	}
	return of, nil
}

func (b *Backend) putDocuments(ctx context.Context, in Incoming, of map[string]string, d delivery) error {
	if b.opts.Documents == nil || !slices.ContainsFunc(in.Tests, func(t TestReport) bool { return len(t.Documents) > 0 }) {
		return nil
	}
	found, err := b.dossiers(ctx, d.Numbers)
	if err != nil {
		return err
	}
	for _, g := range assign(in, found, of, d.Resolves != 0) {
		if g.held == nil || g.isUncertain() {
			continue
		}
		for _, t := range g.tests {
			for _, doc := range t.Documents {
				doc.ID, doc.Team, doc.Order = documentID(g.held.Number, doc), g.held.Team, g.held.Order
				if err := b.opts.Documents.Put(ctx, doc); err != nil {
					return fmt.Errorf("store document: %w", err)
				}
			}
		}
	}
	return nil
}

// dossiers returns the states of the orders that the journal has, by placer order number.
func (b *Backend) dossiers(ctx context.Context, numbers []string) (map[string]*dossier, error) {
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
