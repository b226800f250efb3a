package hl7

import (
	"cmp"
	"fmt"

	"github.com/healthlab-dev/healthlab/adapters/hl7/er7"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// Specimen is what a message says of one sample.
type Specimen struct {
	ID                  string
	Collected, Received *labresult.TimestampWithOffset
	Type, Site          *labresult.Coded
	// TypeModifiers and SiteModifiers are those of Type and Site.
	TypeModifiers, SiteModifiers     []labresult.Coded
	CollectionMethod, CollectionSite *labresult.Coded
	Conditions, RejectReasons        []labresult.Coded
}

// specimen reads an SPM, which stands before its tests in some messages and after its test in
// others.
func (r *reader) specimen(s er7.Segment) {
	t := r.test()
	if r.specimenFirst || t == nil {
		if len(r.specimens) > 0 && t != nil && r.specimens[0].Number() < t.Segment {
			r.specimens = nil // those of the tests before
		}
		r.specimens, r.note = append(r.specimens, s), &r.orderNotes
		return
	}
	t.addSpecimen(r.readSpecimen(s))
	r.note = &t.Notes
}

func (r *reader) readSpecimen(s er7.Segment) Specimen {
	id := s.Field(2).Component(2).Subcomponent(1).Text()
	if id == "" {
		id = s.Field(2).Component(1).Subcomponent(1).Text()
	}
	return Specimen{
		ID: id, Collected: r.moment(s.Field(17)), Received: r.moment(s.Field(18)), Type: term(s.Field(4)), TypeModifiers: terms(s.Field(5)),
		Site: term(s.Field(8)), SiteModifiers: terms(s.Field(9)), CollectionMethod: term(s.Field(7)), CollectionSite: term(s.Field(10)),
		Conditions: terms(s.Field(24)), RejectReasons: terms(s.Field(21)),
	}
}

// addSpecimen adds a sample. Its id defaults to the laboratory's number of the test. The first
// sample is that of the results.
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
