package exchange

import (
	"cmp"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// dayText returns the UTC day of at as YYYY-MM-DD; nil if at is zero.
func dayText(at time.Time) *string {
	if at.IsZero() {
		return nil
	}
	day := rules.UTCDay(at).String()
	return &day
}

// fillMetadata sets the metadata that a report lacks, from its order and its message.
func fillMetadata(r *orders.Record, h *labresult.Metadata, m Message) {
	at := m.At
	if at.IsZero() {
		at = r.LastEvent.CreatedAt.Time
	}
	own := r.ReportHead(at)
	for to, from := range map[*string]string{&h.Age: own.Age, &h.DOB: own.DOB, &h.Patient: own.Patient, &h.SpecimenNumber: own.SpecimenNumber, &h.DateReported: own.DateReported} {
		*to = cmp.Or(*to, from)
	}
	h.Laboratory = cmp.Or(h.Laboratory, own.Laboratory)
	h.DateCollected = cmp.Or(h.DateCollected, dayText(m.CollectedAt), dayText(r.ReachedAt(orders.DrawCompleted)), dayText(r.ReachedAt(orders.TransitLab)))
	h.DateReceived = cmp.Or(h.DateReceived, dayText(r.ReachedAt(orders.DeliveredToLab)))
	if h.AccountID == nil && r.LabAccountNumber != "" {
		account := r.LabAccountNumber
		h.AccountID = &account
	}
	if h.Provider == nil && r.Physician != nil {
		name := r.Physician.FirstName + " " + r.Physician.LastName
		h.Provider = &name
	}
}

// setResults stores the results of a message in its order, with their receipt at the time at. It returns the markers
// whose earlier results the report corrected.
func setResults(r *orders.Record, m Message, at time.Time) (corrected []labresult.CorrectedMarker) {
	results := *m.Results
	results.Results = rules.NonNil(results.Results)
	results.Metadata.Status = labresult.Final
	switch {
	case m.On == orders.PartialResult:
		results.Metadata.Status = labresult.Partial
	case m.On == orders.CorrectedResult && r.Results != nil:
		results.Metadata.Status = labresult.Corrected
		results.Results, corrected = labresult.MarkCorrected(r.Results.Results, results.Results, healthlab.At(at))
	}
	if m.On != orders.CorrectedResult && r.Results != nil {
		results.Results, corrected = labresult.MarkChanged(r.Results.Results, results.Results, healthlab.At(at))
	}
	results.Metadata.SpecimenNumber = cmp.Or(results.Metadata.SpecimenNumber, m.SampleID)
	fillMetadata(r, &results.Metadata, m)
	worst := labresult.Worst(results.Results)
	results.Metadata.Interpretation = &worst
	missing := len(results.MissingResults) > 0
	r.CriticalSent = r.CriticalSent && r.Results != nil && labresult.AllCriticalIn(*r.Results, results)
	r.Results, r.Interpretation, r.HasMissingResults = &results, &worst, &missing
	r.ReportFile = m.ReportFile
	r.ReportedPatient = nil
	if p := m.patient(); p != (orders.ReportedPatient{}) {
		r.ReportedPatient = &p
	}
	if r.ReportedAt.IsZero() {
		r.ReportedAt = at
	}
	r.LatestReportAt = at
	return corrected
}

// planCriticalMessage plans the message to the team about a critical result. It is a no-op if the order has no critical
// result, or if the message about all of them is planned or sent.
func planCriticalMessage(r *orders.Record, at time.Time) {
	if r.CriticalSent || r.Interpretation == nil || *r.Interpretation != labresult.Critical {
		return
	}
	r.CriticalSent, r.Notifications.Alarmed = true, healthlab.At(at).Time
	r.PlanMessages()
}
