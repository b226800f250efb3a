package catalogue

import (
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/labreport/refrange"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/internal/textsearch"
)

// StaticCatalogContents is the content of a catalogue, in Go or as a JSON file.
type StaticCatalogContents struct {
	Labs    []Lab            `json:"labs"`
	Markers []MarkerComplete `json:"markers"`
	Tests   []StaticTest     `json:"lab_tests"`
	// Accounts with an allow-list belong to the teams on it. Accounts without one are the platform's, at most
	// one for each lab, and every team may use them.
	Accounts []LabAccount `json:"lab_accounts"`
	// Instructions are the instruction sheets for patients.
	Instructions []InstructionSheet `json:"collection_instructions"`
}

// StaticTest is a lab test of a catalogue. It names its lab and markers by id; lab, markers, turnaround and
// is_active are computed.
type StaticTest struct {
	LabTest
	LabID     int   `json:"lab_id"`
	MarkerIDs []int `json:"marker_ids"`
	// Teams are the teams that may see the test; empty means all.
	Teams []healthlab.TeamID `json:"teams"`
}

// StaticCatalog is a [Source] over fixed contents in memory. It is immutable and safe for concurrent use.
type StaticCatalog struct {
	labs     []Lab
	markers  map[int]MarkerComplete
	byCode   map[string][]int
	tests    map[LabTestID]StaticTest
	made     []LabTestID // ids of the tests, in the order of the contents
	accounts []LabAccount
	sheets   []InstructionSheet

	// Data for the search. searchable are the markers, sorted by id; words is an index of the words in their names and
	// codes.
	searchable []searchableMarker
	words      *textsearch.Index
}

// ReadStaticCatalog reads a catalogue from JSON: an object with labs, markers, lab_tests, lab_accounts and
// collection_instructions, each a list in the form of the HTTP API, except that a lab test has lab_id and
// marker_ids. Invalid as [NewStaticCatalog], or if the JSON has another form.
func ReadStaticCatalog(r io.Reader) (*StaticCatalog, error) {
	c, err := ReadContents(r)
	if err != nil {
		return nil, err
	}
	return NewStaticCatalog(c)
}

// NewStaticCatalog checks the contents and returns a catalogue. Invalid lists every problem: duplicate ids,
// unknown labs and markers, markers of another lab than their test's, collection methods that a lab does not
// accept, several platform accounts at a lab, delegated platform accounts, instructions without steps, tests
// that claim missing instructions, reference ranges that cannot be parsed or have no unit.
func NewStaticCatalog(c StaticCatalogContents) (*StaticCatalog, error) {
	b := &StaticCatalog{
		labs: slices.SortedFunc(slices.Values(c.Labs), func(a, b Lab) int { return cmp.Compare(a.ID, b.ID) }), accounts: slices.Clone(c.Accounts),
		markers: map[int]MarkerComplete{}, byCode: map[string][]int{}, tests: map[LabTestID]StaticTest{},
	}
	var p healthlab.Problems
	labs := map[int]*Lab{}
	slugs := map[string]bool{}
	for i := range b.labs {
		l := &b.labs[i]
		if labs[l.ID] != nil || slugs[l.Slug] {
			p.Add("duplicate", "must have an id and a slug that no other lab has", "labs", i)
		}
		labs[l.ID], slugs[l.Slug] = l, true
		l.CollectionMethods, l.SampleTypes = rules.NonNil(l.CollectionMethods), rules.NonNil(l.SampleTypes)
	}
	for i, m := range c.Markers {
		if _, taken := b.markers[m.ID]; taken {
			p.Add("duplicate", "must have an id that no other marker has", "markers", i)
		}
		if m.LabID == nil || labs[*m.LabID] == nil {
			p.Add("unknown_lab", "must be the id of one of the labs", "markers", i, "lab_id")
		}
		m.ExpectedResults = rules.NonNil(m.ExpectedResults)
		for j, r := range m.ExpectedResults {
			r.checkRange(rules.Check{Problems: &p, At: []any{"markers", i, "expected_results", j}})
		}
		m.fill()
		if m.AOE != nil {
			aoe := AOE{Questions: rules.NonNil(m.AOE.Questions)}
			for j := range aoe.Questions {
				aoe.Questions[j].Answers = rules.NonNil(aoe.Questions[j].Answers)
			}
			m.AOE = &aoe
		}
		b.markers[m.ID] = m
		if m.ProviderID != nil {
			b.byCode[*m.ProviderID] = append(b.byCode[*m.ProviderID], m.ID)
		}
	}
	for i, sheet := range c.Instructions {
		b.checkSheet(rules.Check{Problems: &p, At: []any{"collection_instructions", i}}, sheet, labs[sheet.LabID] != nil)
	}
	b.sheets = rules.DeepCopy(c.Instructions)
	for i, t := range c.Tests {
		b.add(rules.Check{Problems: &p, At: []any{"lab_tests", i}}, t, labs[t.LabID])
	}
	platform := map[string]bool{}
	for i := range b.accounts {
		a := &b.accounts[i]
		a.BusinessUnits, a.TeamIDAllowlist = rules.NonNil(a.BusinessUnits), rules.NonNil(a.TeamIDAllowlist)
		if a.AllowedBilling == nil {
			a.AllowedBilling = map[BillingType][]string{}
		}
		if !slugs[a.Lab] {
			p.Add("unknown_lab", "must be the slug of one of the labs", "lab_accounts", i, "lab")
		}
		if len(a.TeamIDAllowlist) == 0 {
			if platform[a.Lab] {
				p.Add("duplicate", "a lab must have at most one platform account", "lab_accounts", i)
			}
			platform[a.Lab] = true
			if a.DelegatedFlow != "" && a.DelegatedFlow != NotDelegated {
				p.Add("delegated", "must be not_delegated for a platform account", "lab_accounts", i, "delegated_flow")
			}
		}
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	b.buildIndex()
	return b, nil
}

// checkRange adds a problem if the reference range cannot be parsed, and one if it has no unit.
func (r *ExpectedResult) checkRange(c rules.Check) {
	if r.ReferenceRange == nil {
		return
	}
	if r.LOINC == nil || r.LOINC.Unit == nil {
		c.Add("reference_range", "must be left out unless loinc has a unit, which is the unit of the range", "reference_range")
	}
	one, _ := refrange.ParseBeside(*r.ReferenceRange, "")
	if _, ok := refrange.Groups(*r.ReferenceRange, ""); !ok && !one.Any() {
		c.Add("reference_range", "must be a range such as 70-99 or <5, or a list by sex, age, pregnancy or fasting such as Male: 13-17; Female: 12-15", "reference_range")
	}
}

// checkSheet adds the problems of an instruction sheet. known reports whether its lab exists.
func (b *StaticCatalog) checkSheet(c rules.Check, sheet InstructionSheet, known bool) {
	if !known {
		c.Add("unknown_lab", "must be the id of one of the labs", "lab_id")
	}
	if len(sheet.Steps) == 0 {
		c.Add("required", "must have steps", "steps")
	}
	for j, id := range sheet.MarkerIDs {
		if m, ok := b.markers[id]; !ok || m.LabID == nil || *m.LabID != sheet.LabID {
			c.Add("unknown_marker", "must be a marker of the lab", "marker_ids", j)
		}
	}
}

// add checks a lab test, computes its fields that follow from its lab and markers, and adds it to the catalogue. lab is
// the lab of the test; nil if the contents have no such lab.
func (b *StaticCatalog) add(c rules.Check, t StaticTest, lab *Lab) {
	if _, taken := b.tests[t.ID]; taken || t.ID.IsZero() {
		c.Add("duplicate", "must have an id that no other lab test has", "id")
	}
	if lab == nil {
		c.Add("unknown_lab", "must be the id of one of the labs", "lab_id")
	} else if !slices.Contains(lab.CollectionMethods, t.Method) {
		c.Add("method", "must be a collection method that the lab accepts", "method")
	}
	t.Markers = []Marker{}
	for j, id := range t.MarkerIDs {
		m, ok := b.markers[id]
		switch {
		case !ok:
			c.Add("unknown_marker", "must be one of the markers", "marker_ids", j)
		case m.LabID != nil && *m.LabID != t.LabID:
			c.Add("other_lab", "must be a marker of the test's lab", "marker_ids", j)
		}
		t.Markers = append(t.Markers, m.Marker)
	}
	t.Lab, t.IsActive, t.IsDelegated = lab, t.Status == LabTestActive, false
	t.CommonTATDays = SlowestTurnaround(t.Markers, func(m Marker) *int { return m.CommonTATDays })
	t.WorstCaseTATDays = SlowestTurnaround(t.Markers, func(m Marker) *int { return m.WorstCaseTATDays })
	some := len(b.instructions(t.LabTest)) > 0
	switch claimed := t.HasCollectionInstructions; {
	case some:
		t.HasCollectionInstructions = &some
	case claimed != nil && *claimed:
		c.Add("no_instructions", "must be false unless collection_instructions are given", "has_collection_instructions")
	}
	b.tests[t.ID] = t
	b.made = append(b.made, t.ID)
}

// LabTests implements [Source].
func (b *StaticCatalog) LabTests(_ context.Context, team healthlab.TeamID, ids []LabTestID) ([]LabTest, error) {
	var out []LabTest
	for _, id := range ids {
		if t, ok := b.tests[id]; ok && (len(t.Teams) == 0 || slices.Contains(t.Teams, team)) {
			out = append(out, rules.DeepCopy(t.LabTest))
		}
	}
	return out, nil
}

// Markers implements [Source].
func (b *StaticCatalog) Markers(_ context.Context, ids []int, providerIDs []string) ([]Marker, error) {
	var out []Marker
	for _, code := range providerIDs {
		ids = append(slices.Clone(ids), b.byCode[code]...)
	}
	for _, id := range ids {
		if m, ok := b.markers[id]; ok {
			out = append(out, rules.DeepCopy(m.Marker))
		}
	}
	return out, nil
}

// ExpectedResults implements [Source].
func (b *StaticCatalog) ExpectedResults(_ context.Context, markers []int) (map[int][]ExpectedResult, error) {
	out := map[int][]ExpectedResult{}
	for _, id := range markers {
		if m, ok := b.markers[id]; ok && len(m.ExpectedResults) > 0 {
			out[id] = rules.DeepCopy(m.ExpectedResults)
		}
	}
	return out, nil
}

// Instructions implements [InstructionSource].
func (b *StaticCatalog) Instructions(_ context.Context, t LabTest) ([]InstructionSheet, error) {
	return rules.DeepCopy(b.instructions(t)), nil
}

func (b *StaticCatalog) instructions(t LabTest) []InstructionSheet {
	var out []InstructionSheet
	for _, s := range b.sheets {
		switch {
		case t.Lab == nil || t.Lab.ID != s.LabID,
			s.Method != "" && s.Method != t.Method,
			s.SampleType != "" && s.SampleType != t.SampleType,
			len(s.MarkerIDs) > 0 && !slices.ContainsFunc(t.Markers, func(m Marker) bool { return slices.Contains(s.MarkerIDs, m.ID) }):
			continue
		}
		out = append(out, s)
	}
	return out
}

// Labs implements [Source].
func (b *StaticCatalog) Labs(context.Context) ([]Lab, error) { return rules.DeepCopy(b.labs), nil }

// Accounts implements [Source].
func (b *StaticCatalog) Accounts(_ context.Context, team healthlab.TeamID) (Accounts, error) {
	out := Accounts{Platform: map[string]LabAccount{}}
	for _, a := range b.accounts {
		switch {
		case len(a.TeamIDAllowlist) == 0:
			out.Platform[a.Lab] = rules.DeepCopy(a)
		case slices.Contains(a.TeamIDAllowlist, team):
			out.Linked = append(out.Linked, rules.DeepCopy(a))
		}
	}
	return out, nil
}
