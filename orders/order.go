package orders

import (
	"log/slog"
	"slices"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// OrderID names an order. It is issued by the service (UUID version 7).
type OrderID struct{ uuid.UUID }

// IsZero reports whether the id is the zero value.
func (id OrderID) IsZero() bool { return id.UUID == uuid.Nil }

// TransactionID names a testing journey: an order and those that came out of it.
type TransactionID struct{ uuid.UUID }

// Order is a lab order as it is published: the answer of the API and the payload of
// its events. In JSON every field is present; what is not known is null.
//
// An Order is a plain value, not safe for concurrent use. Printing or logging one
// shows its id and status, nothing of the patient.
type Order struct {
	// UserID is the patient. The user of a registrable kit can change when the kit
	// is registered.
	UserID healthlab.UserID `json:"user_id"`
	ID     OrderID          `json:"id"`
	TeamID healthlab.TeamID `json:"team_id"`
	// PatientDetails is null until a registrable kit is registered.
	PatientDetails *people.PatientDetails `json:"patient_details"`
	// PatientAddress is null until a registrable kit is registered.
	PatientAddress *people.PatientAddress `json:"patient_address"`
	// LabTest is what was ordered, as it was when it was ordered.
	LabTest catalogue.LabTest `json:"lab_test"`
	// Details is what only orders of this collection method have.
	Details Details `json:"details"`
	// SampleID is the lab's id of order and specimen; for a registrable kit, the id
	// printed on it. Null until there is one.
	SampleID *string `json:"sample_id"`
	// Notes is free text about the order.
	Notes *string `json:"notes"`
	// ClinicalNotes is the comment on the requisition, as it was submitted.
	ClinicalNotes *string        `json:"clinical_notes"`
	CreatedAt     healthlab.Time `json:"created_at"`
	// UpdatedAt is the last change of status, activation date or registration.
	UpdatedAt healthlab.Time `json:"updated_at"`
	// Events is the history, ascending by id; only ever appended to.
	Events []OrderEvent `json:"events"`
	// Status is the first part of the latest event's status. Kept for old clients.
	Status Stage `json:"status"`
	// LastEvent equals the last of Events.
	LastEvent OrderEvent `json:"last_event"`
	// Physician who ordered; null when the service's own network did.
	Physician *people.Physician `json:"physician"`
	// HealthInsuranceID is the insurance record used for billing, or null.
	HealthInsuranceID *uuid.UUID `json:"health_insurance_id"`
	// RequisitionFormURL is deprecated: a signed URL of the requisition, valid for 7 days
	// from when there was one. Null before, and where no such URLs are made.
	RequisitionFormURL *string `json:"requisition_form_url"`
	// Priority asks some labs to do it at once.
	Priority bool `json:"priority"`
	// ShippingDetails is where a registrable kit goes; null for every other order.
	ShippingDetails *people.ShippingDetails `json:"shipping_details"`
	// ActivateBy is the day on which a scheduled order goes to the lab; null means
	// at once.
	ActivateBy *healthlab.Date `json:"activate_by"`
	// Passthrough is the team's own text, returned unchanged.
	Passthrough *string               `json:"passthrough"`
	BillingType catalogue.BillingType `json:"billing_type"`
	// ICDCodes are diagnosis codes; null where none were given.
	ICDCodes []string `json:"icd_codes" wire:"nullable"`
	// HasABN: an advance beneficiary notice exists.
	HasABN bool `json:"has_abn"`
	// Interpretation is the worst of the results; null before there are any.
	Interpretation *labresult.Interpretation `json:"interpretation"`
	// HasMissingResults: an expected result is not there; null before there are any.
	HasMissingResults *bool `json:"has_missing_results"`
	// ExpectedResultByDate is the day by which 95 % of such orders are finished;
	// null until the sample was collected, or when it is not known.
	ExpectedResultByDate *healthlab.Date `json:"expected_result_by_date"`
	// WorstCaseResultByDate is the same for 99 %.
	WorstCaseResultByDate *healthlab.Date `json:"worst_case_result_by_date"`
	Origin                Origin          `json:"origin"`
	// OrderTransaction is the journey that the order belongs to, with all its
	// members.
	OrderTransaction OrderTransaction `json:"order_transaction"`

	// NextEventID is the id that the next event gets, if it is greater than the
	// last one's. It is not published. A Store draws it, unique within the team,
	// before it lets a change run; left at zero, ids count up from the last.
	NextEventID int64 `json:"-"`
}

// OrderEvent is one step of an order's life.
type OrderEvent struct {
	// ID grows with every event of an order, and is unique within a team.
	ID int64 `json:"id"`
	// CreatedAt is when the status was reached.
	CreatedAt healthlab.Time `json:"created_at"`
	Status    Status         `json:"status"`
	// StatusDetail is a finer reason; null for most events.
	StatusDetail *StatusDetail `json:"status_detail"`
	// CorrectedMarkers are those that a corrected report changed; left out of other events.
	CorrectedMarkers []labresult.CorrectedMarker `json:"corrected_markers,omitempty"`
}

// Method returns how the order's sample is collected.
func (o Order) Method() catalogue.CollectionMethod { return o.Details.Type }

// LowLevel returns the order's current state; empty for one that has no event yet.
func (o Order) LowLevel() LowLevel { return o.LastEvent.Status.LowLevel() }

// Facts returns what the guards of the lifecycle look at.
func (o Order) Facts() Facts {
	return Facts{
		Registrable: o.ShippingDetails != nil,
		Registered:  o.Reached(Registered),
		Initial:     o.Origin == OriginInitial,
	}
}

// Cancellable reports whether the team may cancel the order as it stands.
func (o Order) Cancellable() bool { return Cancellable(o.Method(), o.LowLevel(), o.Facts()) }

// Reached reports whether the history holds a status.
func (o Order) Reached(l LowLevel) bool {
	return slices.ContainsFunc(o.Events, func(e OrderEvent) bool { return e.Status.LowLevel() == l })
}

// Activation says whether the order waits for a day after today.
func (o Order) Activation(today healthlab.Date) ActivationType {
	if o.ActivateBy != nil && o.ActivateBy.After(today) {
		return ActivationScheduled
	}
	return ActivationCurrent
}

// Recipient returns who receives the kit: the name on the shipping address, else the
// one on the patient's address; empty if there is none.
func (o Order) Recipient() string {
	switch {
	case o.ShippingDetails != nil:
		return o.ShippingDetails.ReceiverName
	case o.PatientAddress != nil:
		return o.PatientAddress.ReceiverName
	}
	return ""
}

// String shows the id and the status, and nothing of the patient.
func (o Order) String() string {
	return "order " + o.ID.String() + " (" + string(o.LastEvent.Status) + ")"
}

// GoString is [Order.String].
func (o Order) GoString() string { return o.String() }

// LogValue shows the ids and the status, and nothing of the patient.
func (o Order) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("id", o.ID.String()),
		slog.String("team", o.TeamID.String()),
		slog.String("status", string(o.LastEvent.Status)),
	)
}
