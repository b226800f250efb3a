package hl7

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// Specimen is one sample of a message.
type Specimen struct {
	healthlab.Private

	ID                  string
	Collected, Received *labresult.TimestampWithOffset
	Type, Site          *labresult.Coded
	// TypeModifiers and SiteModifiers modify Type and Site.
	TypeModifiers, SiteModifiers     []labresult.Coded
	CollectionMethod, CollectionSite *labresult.Coded
	Conditions, RejectReasons        []labresult.Coded
	Additives                        []labresult.Coded
	ContainerType                    *labresult.Coded
	// Amount is the collected amount with its unit, and Description the laboratory's description of the sample.
	Amount, Description string
	// Notes are the comments on the sample, in lines.
	Notes string
	// ids lists the ids that orderer and laboratory gave the sample, each with the name of its part of SPM-2.
	ids []string
}

// specimen reads an SPM, which precedes or follows its tests, depending on the message type.
func (r *reader) specimen(s er7.Segment) {
	t := r.test()
	if r.specimenFirst || t == nil {
		if len(r.specimens) > 0 && t != nil && r.specimens[0].segment.Number() < t.Segment {
			r.specimens = nil // they belong to earlier tests
		}
		first := &heldSpecimen{segment: s}
		r.specimens, r.note = append(r.specimens, first), &first.notes
		return
	}
	t.addSpecimen(r.readSpecimen(s))
	r.note = &t.Specimens[len(t.Specimens)-1].Notes
}

// heldSpecimen is a sample (SPM) that precedes its tests, with its notes.
type heldSpecimen struct {
	segment er7.Segment
	notes   string
}

func (r *reader) readSpecimen(s er7.Segment) Specimen {
	placer, filler := s.Field(2).Component(1).Subcomponent(1).Text(), s.Field(2).Component(2).Subcomponent(1).Text()
	var ids []string
	if placer != "" {
		ids = append(ids, "placer "+placer)
	}
	if filler != "" {
		ids = append(ids, "filler "+filler)
	}
	return Specimen{
		ID: cmp.Or(filler, placer), ids: ids, Collected: r.moment(s.Field(17)), Received: r.moment(s.Field(18)), Type: term(s.Field(4)), TypeModifiers: terms(s.Field(5)),
		Site: term(s.Field(8)), SiteModifiers: terms(s.Field(9)), CollectionMethod: term(s.Field(7)), CollectionSite: term(s.Field(10)),
		Conditions: terms(s.Field(24)), RejectReasons: terms(s.Field(21)), Additives: terms(s.Field(6)), ContainerType: term(s.Field(27)),
		Amount: amount(s.Field(12)), Description: lines(s.Field(14)),
	}
}

func amount(p er7.Part) string {
	return strings.TrimSpace(p.Component(1).Text() + " " + p.Component(2).Unit())
}

// lines reads a repeating field as lines of text.
func lines(p er7.Part) string {
	var out []string
	for _, one := range p.Repetitions() {
		if text := strings.TrimSpace(one.Whole()); text != "" {
			out = append(out, text)
		}
	}
	return strings.Join(out, "\n")
}

// addSpecimen adds a sample to a test. A sample without an id gets the laboratory's order number of the test.
// Results are linked to the first sample.
func (t *TestReport) addSpecimen(s Specimen) {
	first := len(t.Specimens) == 0
	switch {
	case s.ID == "" && first:
		s.ID = t.Filler
	case s.ID == "":
		s.ID = fmt.Sprintf("%s-%d", t.Filler, len(t.Specimens)+1)
	}
	if first {
		t.Sample, t.Collected, t.Received = s.ID, cmp.Or(s.Collected, t.Collected), cmp.Or(s.Received, t.Received)
	}
	t.Specimens = append(t.Specimens, s)
}
