package orders

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// agreement is how what a lab reports of a patient compares with an order's.
type agreement uint8

const (
	// notComparable: there is too little to compare: no name, or no birth date.
	notComparable agreement = iota
	agrees
	differs
)

// patient returns whom a message is about: what it says, else what can be read from the
// head of its report.
func (m Message) patient() ReportedPatient {
	if m.Patient != nil {
		return *m.Patient
	}
	if m.Results == nil {
		return ReportedPatient{}
	}
	p := ReportedPatient{DOB: m.Results.Metadata.BirthDate()}
	if last, first, ok := strings.Cut(m.Results.Metadata.Patient, ","); ok {
		p.FirstName, p.LastName = strings.TrimSpace(first), strings.TrimSpace(last)
	} else {
		p.LastName = strings.TrimSpace(m.Results.Metadata.Patient) // first and last, in one
	}
	return p
}

// plainName is a name as it is compared: in lower case, with single spaces.
func plainName(parts ...string) string {
	return strings.Join(strings.Fields(strings.ToLower(strings.Join(parts, " "))), " ")
}

// identifiable reports whether there is enough to tell people apart.
func (p ReportedPatient) identifiable() bool {
	return plainName(p.FirstName, p.LastName) != "" && !p.DOB.IsZero()
}

// compareWith compares a patient with what a lab reports. Name and birth date decide; genders
// that contradict each other make two people of one.
func (p ReportedPatient) compareWith(o *people.PatientDetails) agreement {
	if o == nil || !p.identifiable() {
		return notComparable
	}
	name := plainName(p.FirstName, p.LastName)
	known := func(g people.Gender) bool { return g == people.Female || g == people.Male }
	if name != plainName(o.Name()) || p.DOB != o.DOB || known(p.Gender) && known(o.Gender) && p.Gender != o.Gender {
		return differs
	}
	return agrees
}

// judgement is what becomes of a result.
type judgement struct {
	// to is the order that gets it at once; zero if a person has to decide.
	to OrderID
	// code and reason say why not.
	code   MatchDecision
	sub    []MatchSubReason
	reason string
}

// judge decides whether a result belongs to an order for certain. named is the order
// that the message names, by its id or that of its specimen; nil for none. patientMatches
// are the orders of all patients with the reported name and birth date.
//
// A result goes to an order by itself only if nothing contradicts that: the message
// names the order; the patient that the lab reports is the order's, and no other patient of
// the team has the same name and birth date; lab and account are the order's; and the
// order can take a result where it stands. A lab that names both the order's own id and
// its specimen need not report a patient, and may mean one of several patients of that name. It is
// pure.
func judge(m Message, named *Record, patientMatches []Order) judgement {
	p := m.patient()
	people := map[healthlab.UserID]bool{}
	for _, o := range patientMatches {
		people[o.UserID] = true
	}
	if named == nil {
		return unnamed(m, patientMatches, people)
	}
	sure := m.namesOrderAndSample(named)
	switch how := p.compareWith(named.PatientDetails); {
	case m.SampleID != "" && named.SampleID != nil && *named.SampleID != m.SampleID:
		return judgement{code: MatchSampleMismatch, reason: "the order has another specimen than the result"}
	case how == differs, how == notComparable && !sure:
		return judgement{code: MatchSampleMismatch, reason: "the specimen is an order's, and the patient is not known to be the order's"}
	case how == agrees && !sure && len(people) > 1:
		return judgement{code: MatchSeveralPeople, reason: "several patients have the reported name and birth date"}
	case m.Lab != "" && (named.LabTest.Lab == nil || named.LabTest.Lab.Slug != m.Lab):
		return judgement{code: MatchWrongLab, reason: "the order is at another laboratory"}
	case m.AccountNumber != "" && named.LabAccountNumber != "" && m.AccountNumber != named.LabAccountNumber:
		return judgement{code: MatchWrongLab, sub: []MatchSubReason{LabAccountMismatch}, reason: "the order is on another lab account"}
	}
	if _, ok := named.impliedPath(m.On); ok || m.On == PartialResult && named.takesSilentPartial() {
		return judgement{to: named.ID}
	}
	switch low := named.LowLevel(); {
	case endings[low].TakesResult:
		return judgement{code: MatchCompleted, reason: "the order is completed already"}
	case endings[low].TakeBack:
		return judgement{code: MatchCancelled, reason: "the order was cancelled"}
	default:
		return judgement{code: MatchWrongCollection, reason: "the order is not in a state in which it has results"}
	}
}

// namesOrderAndSample reports whether a message names an order by its id and by its specimen.
func (m Message) namesOrderAndSample(o *Record) bool {
	return m.Order == o.ID && o.SampleID != nil && m.SampleID == *o.SampleID
}

// unnamed judges a result that names no order: there is only its patient.
func unnamed(m Message, patientMatches []Order, people map[healthlab.UserID]bool) judgement {
	switch {
	case len(people) == 0:
		return judgement{code: MatchNone, reason: "nothing matches the result"}
	case len(people) > 1:
		return judgement{code: MatchSeveralPeople, reason: "several patients have the reported name and birth date"}
	}
	open := slices.DeleteFunc(slices.Clone(patientMatches), func(o Order) bool { return o.LowLevel().Final() })
	elsewhere := len(open) > 0 && m.Lab != "" && !slices.ContainsFunc(open, func(o Order) bool {
		return o.LabTest.Lab != nil && o.LabTest.Lab.Slug == m.Lab
	})
	if elsewhere {
		return judgement{code: MatchWrongLab, reason: "the patient's open order is at another laboratory"}
	}
	return judgement{code: MatchPatient, reason: "the patient matches, and the order is not certain"}
}

// candidates are the orders that a result may belong to, by patient: the one that the
// message names first, then open ones, then the newest.
func candidates(r *RawResult, named *Record, patientMatches []Order) []CandidateGroup {
	const most = 20
	all := slices.Clone(patientMatches)
	if named != nil && !slices.ContainsFunc(all, func(o Order) bool { return o.ID == named.ID }) {
		all = append(all, named.Order)
	}
	slices.SortStableFunc(all, func(a, b Order) int {
		first := func(o Order) int {
			switch {
			case named != nil && o.ID == named.ID:
				return 0
			case !o.LowLevel().Final():
				return 1
			default:
				return 2
			}
		}
		return cmp.Or(cmp.Compare(first(a), first(b)), b.CreatedAt.Compare(a.CreatedAt.Time))
	})
	groups := []CandidateGroup{}
	for _, o := range all[:min(len(all), most)] {
		i := slices.IndexFunc(groups, func(g CandidateGroup) bool { return *g.UserID == o.UserID })
		if i < 0 {
			user := o.UserID
			groups = append(groups, CandidateGroup{UserID: &user, Candidates: []Candidate{}})
			i = len(groups) - 1
		}
		groups[i].Candidates = append(groups[i].Candidates, r.candidate(&o, named))
	}
	return groups
}

// candidate says why an order may be the one.
func (r *RawResult) candidate(o *Order, named *Record) Candidate {
	low := o.LowLevel()
	id, transaction := o.ID, o.OrderTransaction.ID
	c := Candidate{CandidateType: OrderOption, OrderID: &id, OrderTransactionID: &transaction, LastStatus: &low, Reasons: []CandidateReason{}}
	why := func(ok bool, reason CandidateReason) bool {
		if ok {
			c.Reasons = append(c.Reasons, reason)
		}
		return ok
	}
	score := 0.0
	if named != nil && named.ID == o.ID {
		c.CandidateType = ProvenanceOrder
		score += 0.4
		why(o.SampleID != nil && *o.SampleID == r.Message.SampleID, "sample_id_match")
		why(slices.Contains(r.SubReasonCodes, LabAccountMismatch), "lab_account_mismatch")
	}
	switch r.Message.patient().compareWith(o.PatientDetails) {
	case agrees:
		score += 0.35
		why(true, "demographic_match")
	case differs:
		why(true, "demographic_mismatch")
	case notComparable:
	}
	why(named != nil && named.ID != o.ID && named.UserID == o.UserID, "same_user")
	why(endings[low].TakesResult, "matched_completed_order")
	why(endings[low].TakeBack, "matched_cancelled_order")
	why(!low.Final() && !resultReady(o), "invalid_collection_state")
	if r.Message.Lab != "" && o.LabTest.Lab != nil {
		if why(o.LabTest.Lab.Slug == r.Message.Lab, "same_lab") {
			score += 0.1
		} else {
			why(true, "possible_wrong_lab")
		}
	}
	shared, reported := overlap(r.Message.Results, o.LabTest)
	c.MarkerOverlap = map[string]any{"shared": shared, "reported": reported, "ordered": len(o.LabTest.Markers)}
	switch {
	case shared > 0 && shared == reported && shared == len(o.LabTest.Markers):
		score += 0.15
		why(true, "marker_overlap_exact")
	case shared > 0:
		score += 0.1
		why(true, "marker_overlap_partial")
	default:
		why(true, "marker_overlap_none")
	}
	c.StatusContext = map[string]any{"final": low.Final(), "result_ready": resultReady(o)}
	score = float64(int(score*100+0.5)) / 100
	c.ConfidenceScore = &score
	c.ConfidenceLevel = ConfidenceLow
	if score >= 0.5 {
		c.ConfidenceLevel = ConfidenceMedium
	}
	if score >= 0.8 {
		c.ConfidenceLevel = ConfidenceHigh
	}
	return c
}

// resultReady reports whether an order can take its final result where it stands.
func resultReady(o *Order) bool {
	_, ok := (&Record{Order: *o}).impliedPath(FinalResult)
	return ok
}

// overlap counts the ordered markers that a report has results of, and the markers that
// it has results of at all, by the lab's codes, LOINC slugs aside.
func overlap(results *labresult.Report, t catalogue.LabTest) (shared, reported int) {
	if results == nil {
		return 0, 0
	}
	ids := map[int]bool{}
	codes := map[string]bool{}
	for _, r := range results.Results {
		for _, m := range r.SourceMarkers {
			ids[m.MarkerID] = true
		}
		if len(r.SourceMarkers) == 0 && r.ProviderID != nil {
			codes[*r.ProviderID] = true
		}
	}
	for _, m := range t.Markers {
		if ids[m.ID] || m.ProviderID != nil && codes[*m.ProviderID] {
			shared++
		}
	}
	return shared, len(ids) + len(codes)
}

// patientMatches returns the team's orders whose patient has the reported name and birth
// date.
func (s *Service) patientMatches(ctx context.Context, team healthlab.TeamID, p ReportedPatient) ([]Order, error) {
	if !p.identifiable() {
		return nil, nil
	}
	const most = 20 // pages
	p.Gender = ""   // the name alone counts
	var out []Order
	q := Query{Team: team, PatientName: strings.Join(strings.Fields(p.FirstName+" "+p.LastName), " "), Size: catalogue.MaxPageSize, Page: 1,
		Sort: SortCreatedAt, Direction: catalogue.Descending, Today: rules.UTCDay(s.now())}
	for ; q.Page <= most; q.Page++ {
		page, err := s.store.List(ctx, q)
		if errors.Is(err, healthlab.Invalid) {
			return nil, nil // no patient can have such a name
		}
		if err != nil {
			return nil, fmt.Errorf("find patients: %w", err)
		}
		for _, o := range page.Orders {
			if p.compareWith(o.PatientDetails) == agrees {
				out = append(out, o)
			}
		}
		if len(page.Orders) < q.Size {
			break
		}
	}
	return out, nil
}

// namedOrder returns the order that a message names: by its id, else by its specimen; or the one
// that took its place, and its specimen. Nil if there is none.
func (s *Service) namedOrder(ctx context.Context, m Message) (*Record, error) {
	var r Record
	var err error = healthlab.NotFound
	if !m.Order.IsZero() {
		if r, err = s.store.Get(ctx, m.Team, m.Order); err == nil {
			r, err = s.successor(ctx, m, r)
		}
	}
	if errors.Is(err, healthlab.NotFound) && m.SampleID != "" {
		r, err = s.orderOfSample(ctx, m)
	}
	if errors.Is(err, healthlab.NotFound) {
		return nil, nil
	}
	return &r, err
}

// evaluation holds what the match of a message with results found.
type evaluation struct {
	judgement
	named          *Record
	patientMatches []Order
}

// subject is the only user of all candidates; zero if there are none or several.
func (w evaluation) subject() healthlab.UserID {
	var user healthlab.UserID
	all := w.patientMatches
	if w.named != nil {
		all = append([]Order{w.named.Order}, all...)
	}
	for i, o := range all {
		if i > 0 && o.UserID != user {
			return healthlab.UserID{}
		}
		user = o.UserID
	}
	return user
}

// labSlug is the slug of the lab that a message is from: as it says, else that of the order
// which it names. Empty if nothing says.
func (w evaluation) labSlug(m Message) string {
	if l := w.orderedTest().Lab; m.Lab == "" && l != nil {
		return l.Slug
	}
	return m.Lab
}

// orderedTest is that of the order which a message names; empty without one.
func (w evaluation) orderedTest() catalogue.LabTest {
	if w.named == nil {
		return catalogue.LabTest{}
	}
	return w.named.LabTest
}

// evaluate finds the orders that a message with results may belong to and decides the match.
func (s *Service) evaluate(ctx context.Context, m Message) (evaluation, error) {
	named, err := s.namedOrder(ctx, m)
	if err != nil {
		return evaluation{}, err
	}
	if named != nil && m.namesOrderAndSample(named) {
		if j := judge(m, named, nil); !j.to.IsZero() {
			return evaluation{j, named, nil}, nil
		}
	}
	same, err := s.patientMatches(ctx, m.Team, m.patient())
	if err != nil {
		return evaluation{}, err
	}
	return evaluation{judge(m, named, same), named, same}, nil
}

// successor returns the order that took the place of another one and has the specimen of a
// message since; that other one where there is none.
func (s *Service) successor(ctx context.Context, m Message, r Record) (Record, error) {
	if r.SampleID != nil || m.SampleID == "" {
		return r, nil
	}
	next, err := s.orderOfSample(ctx, m)
	if errors.Is(err, healthlab.NotFound) {
		return r, nil
	}
	if err != nil {
		return Record{}, err
	}
	if next.Origin != OriginRecreation || next.Parent() == nil || *next.Parent() != r.ID {
		return r, nil
	}
	return next, nil
}

// orderOfSample finds the order with the sample id of a message. NotFound also for one that
// no order can have.
func (s *Service) orderOfSample(ctx context.Context, m Message) (Record, error) {
	r, err := s.allOrders.FindSample(ctx, m.Team, m.SampleID)
	if errors.Is(err, healthlab.Invalid) {
		err = healthlab.NotFound
	}
	return r, err
}

// addressee finds the order that a message is about.
func (s *Service) addressee(ctx context.Context, m Message) (Record, error) {
	if slices.Contains(internalTriggers, m.On) {
		return Record{}, healthlab.NotFound
	}
	if m.Order.IsZero() && m.SampleID != "" {
		return s.orderOfSample(ctx, m)
	}
	r, err := s.allOrders.Get(ctx, m.Team, m.Order)
	if err == nil && m.SampleID != "" && r.SampleID != nil && *r.SampleID != m.SampleID {
		// Order and specimen contradict each other: whose result is it?
		return Record{}, healthlab.NotFound
	}
	return r, err
}

// What happens to an order without the lab, so that a lab cannot report it.
var internalTriggers = []Trigger{CancelRequested, KitRegistered, Imported, PatientAwaited, RedrawOffered}

// reportsResults says whether a message is a report of results.
func (m Message) reportsResults() bool {
	return m.Results != nil && !slices.Contains(internalTriggers, m.On)
}

// RawID is what a message with results is called while it is under review, and after. Two
// labs may give their messages the same ids.
func (m Message) RawID() RawResultID {
	return RawResultID{uuid.NewSHA1(m.Team.UUID, []byte("result "+m.Lab+" "+m.ID))}
}
