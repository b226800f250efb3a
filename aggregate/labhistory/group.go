package labhistory

import (
	"cmp"
	"context"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/labreport/refrange"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// found is a result with the patient facts of its order or report.
type found struct {
	Result

	facts Facts
	// bounded is true if the laboratory gives the limits of the range as numbers.
	bounded bool
	// catalogued is the reference range of the lab catalogue with its unit, for a result without a range of its
	// own.
	catalogued, catalogueUnit *string
}

// addCatalogueRanges adds the reference ranges of the ordered markers to results of an order that have none.
func (s *Service) addCatalogueRanges(ctx context.Context, markers []int, results []found) error {
	if s.ranges == nil || len(markers) == 0 || !slices.ContainsFunc(results, func(r found) bool { return r.RangeSource == nil && r.LOINC != nil }) {
		return nil
	}
	expected, err := s.ranges.ExpectedResults(ctx, markers)
	if err != nil {
		return err
	}
	byCode := map[string]catalogue.ExpectedResult{}
	contradicted := map[string]bool{}
	for _, list := range expected {
		for _, e := range list {
			if e.ReferenceRange == nil || e.LOINC == nil || e.LOINC.Unit == nil {
				continue
			}
			other, twice := byCode[e.LOINC.Code]
			if twice && (*other.ReferenceRange != *e.ReferenceRange || *other.LOINC.Unit != *e.LOINC.Unit) {
				contradicted[e.LOINC.Code] = true
			}
			byCode[e.LOINC.Code] = e
		}
	}
	for i := range results {
		r := &results[i]
		if r.RangeSource != nil || r.LOINC == nil || contradicted[*r.LOINC] {
			continue
		}
		if e, ok := byCode[*r.LOINC]; ok {
			r.catalogued, r.catalogueUnit = e.ReferenceRange, e.LOINC.Unit
		}
	}
	return nil
}

// applyRange sets the limits of the range for the person's group: from the laboratory's list of ranges by
// group, or from the lab catalogue if the laboratory gives no range.
func (s *Service) applyRange(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, r *found) error {
	text, unit, value := r.ReferenceRange, r.ReportedUnit, r.ReportedValue
	if r.catalogued != nil {
		text, unit, value = r.catalogued, r.catalogueUnit, ""
	}
	if r.bounded || text == nil {
		return nil
	}
	groups, ok := refrange.Groups(*text, value)
	switch {
	case ok:
		g, ok, err := s.chooseGroup(ctx, team, user, r, groups)
		if !ok || err != nil {
			return err
		}
		r.RangeGroup = &g.Name
		r.rangeOf(textOrNil(g.Range.Low), textOrNil(g.Range.High), cmp.Or(textOrNil(g.Range.Unit), unit))
	case r.catalogued != nil:
		one, _ := refrange.ParseBeside(*text, "")
		r.rangeOf(textOrNil(one.Low), textOrNil(one.High), cmp.Or(textOrNil(one.Unit), unit))
	}
	switch {
	case r.catalogued == nil:
	case r.RangeLow != nil || r.RangeHigh != nil:
		r.RangeSource = new(rangeOfCatalogue)
	default:
		r.RangeGroup = nil
	}
	return nil
}

// chooseGroup returns the group (sex, age, pregnancy, fasting) of the person on the day of a result; false if
// no single group is certain.
func (s *Service) chooseGroup(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, r *found, groups []refrange.Group) (refrange.Group, bool, error) {
	day := r.Date()
	facts := r.facts
	if s.facts != nil {
		host, err := s.facts(ctx, team, user, day)
		if err != nil {
			return refrange.Group{}, false, err
		}
		facts = Facts{
			Sex: cmp.Or(facts.Sex, host.Sex), BirthDate: cmp.Or(facts.BirthDate, host.BirthDate),
			Pregnant: cmp.Or(facts.Pregnant, host.Pregnant), Fasting: cmp.Or(facts.Fasting, host.Fasting),
		}
	}
	g, ok := refrange.Choose(groups, refrange.Person{
		Sex: facts.Sex, Born: facts.BirthDate, On: day, Pregnant: facts.Pregnant, Fasting: facts.Fasting,
	})
	return g, ok, nil
}

func textOrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// factsOfOrder returns the patient facts in an order and its results.
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

// sexOf returns the sex of a gender; empty for genders other than male and female.
func sexOf(gender string) refrange.Sex {
	switch people.Gender(gender) {
	case people.Female:
		return refrange.Female
	case people.Male:
		return refrange.Male
	}
	return ""
}
