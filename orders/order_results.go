package orders

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/critical"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// ReportHead returns the metadata of a report that is dated at: the patient, the birth date and the age on that day,
// the specimen and the laboratory of the order.
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

func (r *Record) noteDraw(on Trigger, at time.Time) {
	if on == SampleDrawn && r.ExpectedResultByDate == nil && r.WorstCaseResultByDate == nil {
		r.NoteCollection(at)
	}
}

// NoteCollection sets the expected dates of the results, counted from the UTC day of the collection. A zero
// time changes nothing.
func (r *Record) NoteCollection(at time.Time) {
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

// criticalReport returns the order's results in the form that package critical uses.
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

// TransactionResults returns the merged results of all orders of a transaction: the results of a later order replace
// those of earlier ones. NotFound if the team has no such transaction, or no order of it has results.
func (s *Service) TransactionResults(ctx context.Context, team healthlab.TeamID, id TransactionID) (OrderResults, error) {
	results, _, err := s.TransactionRecords(ctx, team, id)
	return results, err
}

// TransactionRecords returns the results of a transaction as [Service.TransactionResults] does, and the orders
// with results, oldest first: at least one.
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

// OrderResults has the results of an order.
type OrderResults struct {
	labresult.Report
	// ReportedPatient is the patient of the latest report, as the laboratory wrote it; left out if it wrote
	// none.
	ReportedPatient *ReportedPatient `json:"reported_patient,omitempty"`
	// OrderTransaction is the transaction of the order.
	OrderTransaction *OrderTransaction `json:"order_transaction"`
}

// DecodeResults reads the results of an order from JSON. If results is an object, as in the old form, keyed is that
// object, undecoded, and out.Results is nil; otherwise keyed is nil.
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

// Results returns the results of an order so far, partial ones included. NotFound before the first report.
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
