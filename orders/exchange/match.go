package exchange

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// judgement is the decision about a reported result.
type judgement struct {
	// to is the order that gets the result at once; zero if a person has to decide.
	to orders.OrderID
	// code, sub and reason say why a person has to decide.
	code   MatchDecision
	sub    []MatchSubReason
	reason string
}

// decideMatch decides to which order a result belongs, or why a person has to decide. numbered are the orders that the
// reported numbers name; sameName are the orders whose patient has the reported name and birth date. decideMatch
// changes nothing. It is the only implementation of this rule: backends must not match results to orders.
//
// A result is assigned to an order without a person's decision only if all of this is true:
//   - A reported number names the order: its id, its number at the laboratory, or its sample id. The number decides
//     between several patients of one name.
//   - The name or the birth date is reported and is the order's.
//   - No reported name, birth date, gender or number contradicts the order ([orders.ReportedPatient.Contradicts]). What
//     is not reported contradicts nothing.
//   - The reported laboratory and account do not contradict the order's.
//   - The order can take a result in its present status.
//
// If [Message.Attached] is set, decideMatch does not compare the patient and the numbers.
func decideMatch(m Message, numbered []orders.Record, sameName []orders.Order) judgement {
	if len(numbered) == 0 {
		return judgeByPatient(m, sameName)
	}
	named := &numbered[0]
	mismatch := func(reason string) judgement { return judgement{code: MatchSampleMismatch, reason: reason} }
	if !m.Attached {
		switch p := m.patient(); {
		case len(numbered) > 1:
			return mismatch("the reported numbers are those of several orders")
		case len(m.ForeignNumbers) > 0:
			return mismatch("a reported number is not the order's")
		case m.SampleID != "" && named.SampleID != nil && *named.SampleID != m.SampleID:
			return mismatch("the order has another specimen than the result")
		case p.Contradicts(named.PatientDetails):
			return mismatch("the number is an order's, and the patient is not the order's")
		case !p.Matches(named.PatientDetails):
			return mismatch("the number is an order's, and neither the patient's name nor the birth date is reported")
		}
	}
	switch {
	case m.Lab != "" && (named.LabTest.Lab == nil || named.LabTest.Lab.Slug != m.Lab):
		return judgement{code: MatchWrongLab, reason: "the order is at another laboratory"}
	case m.AccountNumber != "" && named.LabAccountNumber != "" && m.AccountNumber != named.LabAccountNumber:
		return judgement{code: MatchWrongLab, sub: []MatchSubReason{LabAccountMismatch}, reason: "the order is on another lab account"}
	}
	if _, ok := named.ImpliedPath(m.triggerFor(named)); ok || m.On == orders.PartialResult && named.TakesSilentPartial() {
		return judgement{to: named.ID}
	}
	switch e, _ := orders.EndingOf(named.LowLevel()); {
	case e.TakesResult:
		return judgement{code: MatchCompleted, reason: "the order is completed already"}
	case e.TakeBack:
		return judgement{code: MatchCancelled, reason: "the order was cancelled"}
	default:
		return judgement{code: MatchWrongCollection, reason: "the order is not in a state in which it has results"}
	}
}

// triggerFor returns the trigger of a laboratory's message for an order. A partial or final report corrects an order
// that was completed by attached results, while the laboratory's own report was not final.
func (m Message) triggerFor(r *orders.Record) orders.Trigger {
	e, _ := orders.EndingOf(r.LowLevel())
	a := r.Attached
	if e.TakesResult && a != nil && (a.Lab == nil || a.Lab.Metadata.Status == labresult.Partial) && (m.On == orders.PartialResult || m.On == orders.FinalResult) {
		return orders.CorrectedResult
	}
	return m.On
}

// judgeByPatient returns the judgement of a result whose numbers identify no order: why a person has to decide, by the
// orders of the reported patient. It never assigns the result.
func judgeByPatient(m Message, patientMatches []orders.Order) judgement {
	people := map[healthlab.UserID]bool{}
	for _, o := range patientMatches {
		people[o.UserID] = true
	}
	switch {
	case len(people) == 0:
		return judgement{code: MatchNone, reason: "nothing matches the result"}
	case len(people) > 1:
		return judgement{code: MatchSeveralPeople, reason: "several patients have the reported name and birth date"}
	}
	open := slices.DeleteFunc(slices.Clone(patientMatches), func(o orders.Order) bool { return o.LowLevel().Final() })
	elsewhere := len(open) > 0 && m.Lab != "" && !slices.ContainsFunc(open, func(o orders.Order) bool {
		return o.LabTest.Lab != nil && o.LabTest.Lab.Slug == m.Lab
	})
	if elsewhere {
		return judgement{code: MatchWrongLab, reason: "the patient's open order is at another laboratory"}
	}
	return judgement{code: MatchPatient, reason: "the patient matches, and the order is not certain"}
}

// candidates returns the orders that a result may belong to, at most 20, grouped by patient: the order named first,
// then open orders, then ended ones, each the newest first. named is the order that the message names; nil for none.
func candidates(r *RawResult, named *orders.Record, patientMatches []orders.Order) []CandidateGroup {
	const most = 20
	all := slices.Clone(patientMatches)
	if named != nil && !slices.ContainsFunc(all, func(o orders.Order) bool { return o.ID == named.ID }) {
		all = append(all, named.Order)
	}
	slices.SortStableFunc(all, func(a, b orders.Order) int {
		first := func(o orders.Order) int {
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

// candidate returns the order o as a candidate for the result, with the reasons for and against it. named is the order
// that the message names; nil for none.
func (r *RawResult) candidate(o *orders.Order, named *orders.Record) Candidate {
	low := o.LowLevel()
	ending, _ := orders.EndingOf(low)
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
	patient := r.Message.patient()
	if why(patient.SamePerson(o.PatientDetails), "demographic_match") {
		score += 0.35
	}
	why(patient.Contradicts(o.PatientDetails), "demographic_mismatch")
	why(named != nil && named.ID != o.ID && named.UserID == o.UserID, "same_user")
	why(ending.TakesResult, "matched_completed_order")
	why(ending.TakeBack, "matched_cancelled_order")
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

func resultReady(o *orders.Order) bool {
	_, ok := (&orders.Record{Order: *o}).ImpliedPath(orders.FinalResult)
	return ok
}

// overlap compares the markers of a report with those of an order's lab test. shared is the number of ordered markers
// of which the report has results; reported is the number of markers in the report. Markers are equal if they have the
// same id or the same code of the lab; LOINC slugs are ignored.
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

// patientMatches returns the team's orders whose patient has the reported name and birth date; none unless both are
// reported. It searches only the newest 2,000 orders with the birth date.
func (s *Service) patientMatches(ctx context.Context, team healthlab.TeamID, p orders.ReportedPatient) ([]orders.Order, error) {
	if !p.Identifiable() {
		return nil, nil
	}
	const most = 20 // pages of orders with the birth date; further ones are not searched
	p.Gender = ""   // a different gender does not exclude an order here
	var out []orders.Order
	q := orders.Query{Team: team, Search: p.DOB.String(), Size: catalogue.MaxPageSize, Page: 1,
		Sort: orders.SortCreatedAt, Direction: catalogue.Descending, Today: rules.UTCDay(s.now())}
	for ; q.Page <= most; q.Page++ {
		page, err := s.store.List(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("find patients: %w", err)
		}
		for _, o := range page.Orders {
			if p.SamePerson(o.PatientDetails) {
				out = append(out, o)
			}
		}
		if len(page.Orders) < q.Size {
			break
		}
	}
	return out, nil
}

// numberedOrders returns the orders that the numbers of a message identify, without duplicates: the order with the id
// m.Order (or the order that replaced it and has its specimen) and the order with m.SampleID. If there are none, it
// returns the orders with the sample ids in m.LabNumbers. If no order has the id m.Order, numberedOrders adds the id to
// m.ForeignNumbers.
func (s *Service) numberedOrders(ctx context.Context, m *Message) ([]orders.Record, error) {
	var out []orders.Record
	add := func(r orders.Record, err error) error {
		if err == nil && !slices.ContainsFunc(out, func(o orders.Record) bool { return o.ID == r.ID }) {
			out = append(out, r)
		}
		if errors.Is(err, healthlab.NotFound) {
			return nil
		}
		return err
	}
	if !m.Order.IsZero() {
		r, err := s.store.Get(ctx, m.Team, m.Order)
		if err == nil {
			r, err = s.successor(ctx, *m, r)
		}
		if err := add(r, err); err != nil {
			return nil, err
		}
		if len(out) == 0 {
			m.ForeignNumbers = append(slices.Clone(m.ForeignNumbers), m.Order.String())
		}
	}
	same := len(out) > 0 && out[0].SampleID != nil && *out[0].SampleID == m.SampleID
	if m.SampleID != "" && !same {
		if err := add(s.orderOfSample(ctx, m.Team, m.SampleID)); err != nil {
			return nil, err
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	for _, number := range m.LabNumbers {
		if err := add(s.orderOfSample(ctx, m.Team, number)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// evaluation is the result of matching a message with results to orders.
type evaluation struct {
	judgement
	named          *orders.Record
	patientMatches []orders.Order
}

// subject returns the user of all orders that the result may belong to; zero if there are no such orders, or if they
// are of several users.
func (w evaluation) subject() healthlab.UserID {
	var user healthlab.UserID
	all := w.patientMatches
	if w.named != nil {
		all = append([]orders.Order{w.named.Order}, all...)
	}
	for i, o := range all {
		if i > 0 && o.UserID != user {
			return healthlab.UserID{}
		}
		user = o.UserID
	}
	return user
}

func (w evaluation) labSlug(m Message) string {
	if l := w.orderedTest().Lab; m.Lab == "" && l != nil {
		return l.Slug
	}
	return m.Lab
}

func (w evaluation) orderedTest() catalogue.LabTest {
	if w.named == nil {
		return catalogue.LabTest{}
	}
	return w.named.LabTest
}

// evaluate finds the orders that a message with results may belong to, and judges to which of them it belongs.
func (s *Service) evaluate(ctx context.Context, m Message) (evaluation, error) {
	numbered, err := s.numberedOrders(ctx, &m)
	if err != nil {
		return evaluation{}, err
	}
	w := evaluation{judgement: decideMatch(m, numbered, nil)}
	if len(numbered) > 0 {
		w.named = &numbered[0]
	}
	if !w.to.IsZero() {
		return w, nil // the match is certain, so orders of patients of the name are not needed
	}
	if w.patientMatches, err = s.patientMatches(ctx, m.Team, m.patient()); err != nil {
		return evaluation{}, err
	}
	w.judgement = decideMatch(m, numbered, w.patientMatches)
	return w, nil
}

// successor returns the order that replaced r, if r has no sample id and that order has the message's; else r.
func (s *Service) successor(ctx context.Context, m Message, r orders.Record) (orders.Record, error) {
	if r.SampleID != nil || m.SampleID == "" {
		return r, nil
	}
	next, err := s.orderOfSample(ctx, m.Team, m.SampleID)
	if errors.Is(err, healthlab.NotFound) {
		return r, nil
	}
	if err != nil {
		return orders.Record{}, err
	}
	if next.Origin != orders.OriginRecreation || next.Parent() == nil || *next.Parent() != r.ID {
		return r, nil
	}
	return next, nil
}

// orderOfSample returns the team's order with a sample id. NotFound if there is none, also for text that cannot be a
// sample id.
func (s *Service) orderOfSample(ctx context.Context, team healthlab.TeamID, sample string) (orders.Record, error) {
	r, err := s.allOrders.FindSample(ctx, team, sample)
	if errors.Is(err, healthlab.Invalid) {
		err = healthlab.NotFound
	}
	return r, err
}

// orderOfMessage returns the order that a message is about. NotFound if there is none, if the message has the sample id
// of another order, or if the trigger is one of internalTriggers.
func (s *Service) orderOfMessage(ctx context.Context, m Message) (orders.Record, error) {
	if slices.Contains(internalTriggers, m.On) {
		return orders.Record{}, healthlab.NotFound
	}
	if m.Order.IsZero() && m.SampleID != "" {
		return s.orderOfSample(ctx, m.Team, m.SampleID)
	}
	r, err := s.allOrders.Get(ctx, m.Team, m.Order)
	if err == nil && m.SampleID != "" && r.SampleID != nil && *r.SampleID != m.SampleID {
		// The message names one order and the specimen of another one, so it belongs to neither.
		return orders.Record{}, healthlab.NotFound
	}
	return r, err
}

// internalTriggers are triggers that only the service causes, so a lab must not report them.
var internalTriggers = []orders.Trigger{orders.CancelRequested, orders.KitRegistered, orders.Imported, orders.PatientAwaited, orders.RedrawOffered}

func (m Message) reportsResults() bool {
	return m.Results != nil && !slices.Contains(internalTriggers, m.On)
}

// RawID returns the id of the message's results during and after a review. It contains the lab, because
// messages of two labs may have the same id.
func (m Message) RawID() RawResultID {
	return RawResultID{uuid.NewSHA1(m.Team.UUID, []byte("result "+m.Lab+" "+m.ID))}
}

// patient returns the patient of a message: Patient, else the patient in the metadata of Results. Empty if there is
// none.
func (m Message) patient() orders.ReportedPatient {
	if m.Patient != nil {
		return *m.Patient
	}
	if m.Results == nil {
		return orders.ReportedPatient{}
	}
	head := &m.Results.Metadata
	p := orders.ReportedPatient{DOB: head.BirthDate()}
	if p.DOB.IsZero() {
		p.DOBText = strings.TrimSpace(head.DOB)
	}
	if last, first, ok := strings.Cut(head.Patient, ","); ok {
		p.FirstName, p.LastName = strings.TrimSpace(first), strings.TrimSpace(last)
	} else {
		p.FullName = strings.TrimSpace(head.Patient)
	}
	return p
}
