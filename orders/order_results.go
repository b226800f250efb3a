package orders

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/critical"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// complete returns a message whose report was completed for a test; the same one, where
// it has no report.
func (s *Service) complete(ctx context.Context, m Message, t catalogue.LabTest) (Message, error) {
	if m.Results == nil {
		return m, nil
	}
	expected, err := s.catalogue.ExpectedResults(ctx, t.MarkerIDs())
	if err != nil {
		return m, fmt.Errorf("find expected results: %w", err)
	}
	results := labresult.Complete(*m.Results, t, expected, m.On != PartialResult)
	m.Results = &results
	return m, nil
}

// dayText is the day of an instant in UTC; nil for no instant.
func dayText(at time.Time) *string {
	if at.IsZero() {
		return nil
	}
	day := rules.UTCDay(at).String()
	return &day
}

// ReportHead returns the head of a report as far as the order says it: patient, age at a
// moment, specimen and laboratory.
func (o *Order) ReportHead(at time.Time) labresult.Metadata {
	h := labresult.Metadata{DateReported: healthlab.DateOf(at).String(), Patient: o.PatientDetails.Name()}
	if o.PatientDetails != nil {
		h.Age, h.DOB = strconv.Itoa(people.Age(o.PatientDetails.DOB, rules.UTCDay(at))), o.PatientDetails.DOB.String()
	}
	if o.SampleID != nil {
		h.SpecimenNumber = *o.SampleID
	}
	if o.LabTest.Lab != nil {
		h.Laboratory = &o.LabTest.Lab.Name
	}
	return h
}

// fillHead fills in what the head of a report leaves out, from the order that it belongs to.
func (r *Record) fillHead(h *labresult.Metadata, m Message) {
	at := m.At
	if at.IsZero() {
		at = r.LastEvent.CreatedAt.Time
	}
	own := r.ReportHead(at)
	for to, from := range map[*string]string{&h.Age: own.Age, &h.DOB: own.DOB, &h.Patient: own.Patient, &h.SpecimenNumber: own.SpecimenNumber, &h.DateReported: own.DateReported} {
		*to = cmp.Or(*to, from)
	}
	h.Laboratory = cmp.Or(h.Laboratory, own.Laboratory)
	h.DateCollected = cmp.Or(h.DateCollected, dayText(m.CollectedAt), dayText(r.ReachedAt(DrawCompleted)), dayText(r.ReachedAt(TransitLab)))
	h.DateReceived = cmp.Or(h.DateReceived, dayText(r.ReachedAt(DeliveredToLab)))
	if h.AccountID == nil && r.LabAccountNumber != "" {
		account := r.LabAccountNumber
		h.AccountID = &account
	}
	if h.Provider == nil && r.Physician != nil {
		name := r.Physician.FirstName + " " + r.Physician.LastName
		h.Provider = &name
	}
}

func (r *Record) noteDraw(on Trigger, at time.Time) {
	if on == SampleDrawn && r.ExpectedResultByDate == nil && r.WorstCaseResultByDate == nil {
		r.noteCollection(at)
	}
}

// noteCollection notes when the sample was taken, and by when results are to be expected.
func (r *Record) noteCollection(at time.Time) {
	if at.IsZero() {
		return
	}
	day := rules.UTCDay(at)
	by := func(days *int) *healthlab.Date {
		if days == nil {
			return nil
		}
		d := day.AddDays(*days)
		return &d
	}
	r.ExpectedResultByDate, r.WorstCaseResultByDate = by(r.LabTest.CommonTATDays), by(r.LabTest.WorstCaseTATDays)
}

// setResults sets the results that the lab reported, received at an instant, and returns the
// markers whose results the report corrected.
func (r *Record) setResults(m Message, at time.Time) (corrected []labresult.CorrectedMarker) {
	results := *m.Results
	results.Results = rules.NonNil(results.Results)
	results.Metadata.Status = labresult.Final
	switch {
	case m.On == PartialResult:
		results.Metadata.Status = labresult.Partial
	case m.On == CorrectedResult && r.Results != nil:
		results.Metadata.Status = labresult.Corrected
		results.Results, corrected = labresult.MarkCorrected(r.Results.Results, results.Results, healthlab.At(at))
	}
	if m.On != CorrectedResult && r.Results != nil {
		results.Results, corrected = labresult.MarkChanged(r.Results.Results, results.Results, healthlab.At(at))
	}
	results.Metadata.SpecimenNumber = cmp.Or(results.Metadata.SpecimenNumber, m.SampleID)
	r.fillHead(&results.Metadata, m)
	worst := labresult.Worst(results.Results)
	results.Metadata.Interpretation = &worst
	missing := len(results.MissingResults) > 0
	r.CriticalSent = r.CriticalSent && r.Results != nil && labresult.AllCriticalIn(*r.Results, results)
	r.Results, r.Interpretation, r.HasMissingResults = &results, &worst, &missing
	r.ReportFile = m.ReportFile
	r.ReportedPatient = nil
	if p := m.patient(); p != (ReportedPatient{}) {
		r.ReportedPatient = &p
	}
	if r.ReportedAt.IsZero() {
		r.ReportedAt = at
	}
	r.LatestReportAt = at
	return corrected
}

// planCriticalMessage plans the message to the team about a critical result, if one came that it has
// no message about.
func (r *Record) planCriticalMessage(at time.Time) {
	if r.CriticalSent || r.Interpretation == nil || *r.Interpretation != labresult.Critical {
		return
	}
	r.CriticalSent, r.Notifications.Alarmed = true, healthlab.At(at).Time
	r.planMessages()
}

// criticalReport returns what package critical reads of the results.
func (r *Record) criticalReport() critical.Report {
	rep := critical.Report{
		Team: r.TeamID, User: r.UserID, Order: r.ID.UUID, SampleID: r.SampleID,
		FirstReported: healthlab.At(r.ReportedAt), Reported: healthlab.At(r.LatestReportAt), At: r.UpdatedAt,
	}
	if r.Results != nil {
		rep.Status, rep.Results = r.Results.Metadata.Status, r.Results.Results
	}
	return rep
}

// TransactionResults returns the results of a whole testing journey: what a later
// order found replaces what an earlier one did. NotFound before any result.
func (s *Service) TransactionResults(ctx context.Context, team healthlab.TeamID, id TransactionID) (OrderResults, error) {
	results, _, err := s.TransactionRecords(ctx, team, id)
	return results, err
}

// TransactionRecords returns the results of a transaction as [Service.TransactionResults] does, and
// the orders that have any, oldest first: at least one.
func (s *Service) TransactionRecords(ctx context.Context, team healthlab.TeamID, id TransactionID) (OrderResults, []Record, error) {
	t, err := s.Transaction(ctx, team, id)
	if err != nil {
		return OrderResults{}, nil, err
	}
	var parts []labresult.Report
	var of []Record
	transaction := OrderTransaction{ID: t.ID, Status: t.Status}
	for _, m := range t.Orders {
		transaction.Orders = append(transaction.Orders, m.TransactionMember)
		r, err := s.store.Get(ctx, team, m.ID)
		if err != nil {
			return OrderResults{}, nil, fmt.Errorf("get transaction results: %w", err)
		}
		if r.HasResults() {
			parts, of = append(parts, *r.Results), append(of, r)
		}
	}
	if len(parts) == 0 {
		return OrderResults{}, nil, rules.Missing(ResultNotFound, "the order transaction has no result yet")
	}
	status := labresult.Partial
	if transaction.Status == TransactionCompleted {
		status = labresult.Final
	}
	return OrderResults{Report: labresult.Merge(status, parts), ReportedPatient: of[len(of)-1].ReportedPatient, OrderTransaction: &transaction}, of, nil
}

// OrderResults is what came out of an order.
type OrderResults struct {
	labresult.Report
	// ReportedPatient is whom the latest report is about, as the laboratory wrote it; left
	// out if it wrote nothing.
	ReportedPatient *ReportedPatient `json:"reported_patient,omitempty"`
	// OrderTransaction is the journey of the order.
	OrderTransaction *OrderTransaction `json:"order_transaction"`
}

// DecodeResults reads what came out of an order, for readers that may meet the old form in
// which the results are an object: that is returned as it is, and Results is nil.
func DecodeResults(b []byte) (out OrderResults, keyed json.RawMessage, err error) {
	type plain OrderResults
	in := struct {
		*plain
		Results json.RawMessage `json:"results"`
	}{plain: (*plain)(&out)}
	if err := json.Unmarshal(b, &in); err != nil {
		return OrderResults{}, nil, err
	}
	if bytes.HasPrefix(in.Results, []byte("{")) {
		return out, in.Results, nil
	}
	if len(in.Results) > 0 {
		err = json.Unmarshal(in.Results, &out.Results)
	}
	return out, nil, err
}

// Results returns what came out of an order so far, partial results included.
// NotFound before the first report.
func (s *Service) Results(ctx context.Context, team healthlab.TeamID, id OrderID) (OrderResults, error) {
	r, err := s.store.Get(ctx, team, id)
	if err != nil {
		return OrderResults{}, fmt.Errorf("get results: %w", rules.NotFound(err, OrderNotFound, "the team has no such order"))
	}
	if !r.HasResults() {
		return OrderResults{}, rules.Missing(ResultNotFound, "the order has no result yet")
	}
	t := r.OrderTransaction
	return OrderResults{Report: *r.Results, ReportedPatient: r.ReportedPatient, OrderTransaction: &t}, nil
}
