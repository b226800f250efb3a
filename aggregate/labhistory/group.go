package labhistory

import (
	"cmp"
	"context"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/labreport/refrange"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// found is a result with what its order or report says of the person.
type found struct {
	Result

	facts Facts
	// bounded: the laboratory gives the ends of the range.
	bounded bool
}

// applyGroup takes the range of the person from a list by group.
func (s *Service) applyGroup(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, r *found) error {
	if r.bounded || r.ReferenceRange == nil {
		return nil
	}
	groups, ok := refrange.Groups(*r.ReferenceRange, r.ReportedValue)
	if !ok {
		return nil
	}
	day := r.Date()
	facts := r.facts
	if s.facts != nil {
		host, err := s.facts(ctx, team, user, day)
		if err != nil {
			return err
		}
		facts = Facts{
			Sex: cmp.Or(facts.Sex, host.Sex), BirthDate: cmp.Or(facts.BirthDate, host.BirthDate),
			Pregnant: cmp.Or(facts.Pregnant, host.Pregnant), Fasting: cmp.Or(facts.Fasting, host.Fasting),
		}
	}
	g, ok := refrange.Choose(groups, refrange.Person{
		Sex: facts.Sex, Born: facts.BirthDate, On: day, Pregnant: facts.Pregnant, Fasting: facts.Fasting,
	})
	if !ok {
		return nil
	}
	r.RangeGroup = &g.Name
	r.rangeOf(textOrNil(g.Range.Low), textOrNil(g.Range.High))
	return nil
}

func textOrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// factsOfOrder are what an order and its results say of the patient.
func factsOfOrder(o *orders.Order, res *orders.OrderResults, sample *labresult.SampleData) (f Facts) {
	if p := o.PatientDetails; p != nil {
		f.Sex, f.BirthDate = sexOf(string(p.Gender)), p.DOB
	}
	if p := res.ReportedPatient; p != nil {
		f.Sex, f.BirthDate = cmp.Or(f.Sex, sexOf(string(p.Gender))), cmp.Or(f.BirthDate, p.DOB)
	}
	f.BirthDate = cmp.Or(f.BirthDate, res.Metadata.BirthDate())
	// False may mean that the laboratory did not ask.
	if c := sample.ClinicalInformation; c != nil && c.Fasting {
		f.Fasting = &c.Fasting
	}
	return f
}

// sexOf returns the sex of a gender that is one.
func sexOf(gender string) refrange.Sex {
	switch people.Gender(gender) {
	case people.Female:
		return refrange.Female
	case people.Male:
		return refrange.Male
	}
	return ""
}
