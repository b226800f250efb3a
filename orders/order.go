package orders

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/critical"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// OrderID identifies an order. The service creates it (UUID version 7).
type OrderID struct{ uuid.UUID }

// IsZero reports whether the id is the zero value.
func (id OrderID) IsZero() bool { return id.UUID == uuid.Nil }

// TransactionID identifies a transaction: an order with its redraw and replacements.
type TransactionID struct{ uuid.UUID }

// Order is a lab order in the HTTP API and in events. In JSON every field is present; unknown values are null.
//
// An Order is a plain value, not safe for concurrent use. Printing or logging it shows its id and status, and
// no patient data.
type Order struct {
	healthlab.Private

	// UserID is the patient. The user of a registrable kit can change when the kit
	// is registered.
	UserID healthlab.UserID `json:"user_id"`
	ID     OrderID          `json:"id"`
	TeamID healthlab.TeamID `json:"team_id"`
	// PatientDetails is null until a registrable kit is registered.
	PatientDetails *people.PatientDetails `json:"patient_details"`
	// PatientAddress is null until a registrable kit is registered.
	PatientAddress *people.PatientAddress `json:"patient_address"`
	// LabTest is the ordered lab test, as it was when the order was placed.
	LabTest catalogue.LabTest `json:"lab_test"`
	// Details is the data that depends on the collection method of the order.
	Details Details `json:"details"`
	// SampleID is the lab's id of order and specimen; for a registrable kit, the id printed on the kit. Null
	// until it is known.
	SampleID *string `json:"sample_id"`
	// Notes is free text about the order.
	Notes *string `json:"notes"`
	// ClinicalNotes is the submitted comment on the requisition.
	ClinicalNotes *string        `json:"clinical_notes"`
	CreatedAt     healthlab.Time `json:"created_at"`
	// UpdatedAt is the time of the last change of status, activation date or registration.
	UpdatedAt healthlab.Time `json:"updated_at"`
	// Events is the history, ascending by id. Events are only appended.
	Events []OrderEvent `json:"events"`
	// Status is the first part of the latest event's status, for old clients.
	Status Stage `json:"status"`
	// LastEvent equals the last of Events.
	LastEvent OrderEvent `json:"last_event"`
	// Physician is the ordering physician; null if a physician of the service's own network ordered.
	Physician *people.Physician `json:"physician"`
	// HealthInsuranceID is the insurance record used for billing, or null.
	HealthInsuranceID *uuid.UUID `json:"health_insurance_id"`
	// RequisitionFormURL is deprecated: a signed URL of the requisition, valid for 7 days. Null before there is
	// a requisition, and if no URLs are configured.
	RequisitionFormURL *string `json:"requisition_form_url"`
	// Priority asks the lab for urgent processing, which some labs support.
	Priority bool `json:"priority"`
	// ShippingDetails is the address for a registrable kit; null for other orders.
	ShippingDetails *people.ShippingDetails `json:"shipping_details"`
	// ActivateBy is the day on which a scheduled order is submitted to the lab; null means at once.
	ActivateBy *healthlab.Date `json:"activate_by"`
	// Passthrough is the team's own text, returned unchanged.
	Passthrough *string               `json:"passthrough"`
	BillingType catalogue.BillingType `json:"billing_type"`
	// ICDCodes are diagnosis codes; null if none were given.
	ICDCodes []string `json:"icd_codes" wire:"nullable"`
	// HasABN is true if the order has an advance beneficiary notice.
	HasABN bool `json:"has_abn"`
	// Interpretation is the worst interpretation of the results; null without results.
	Interpretation *labresult.Interpretation `json:"interpretation"`
	// HasMissingResults is true if an expected result is missing; null without results.
	HasMissingResults *bool `json:"has_missing_results"`
	// ExpectedResultByDate is the day by which 95 % of the orders of this lab test have results, counted from the
	// collection; null before the collection, or if unknown.
	ExpectedResultByDate *healthlab.Date `json:"expected_result_by_date"`
	// WorstCaseResultByDate is the day by which 99 % of the orders of this lab test have results, counted from the
	// collection; null before the collection, or if unknown.
	WorstCaseResultByDate *healthlab.Date `json:"worst_case_result_by_date"`
	Origin                Origin          `json:"origin"`
	// OrderTransaction is the transaction of the order, with all its orders.
	OrderTransaction OrderTransaction `json:"order_transaction"`
	// CriticalHistory is the history of the order's critical results, oldest first; left out if there is none.
	// The store computes it when the order is read.
	CriticalHistory []critical.OrderEntry `json:"critical_history,omitempty"`

	// NextEventID is the lowest id that the next event may get; zero means one more than the id of the last event.
	// It is not in the JSON. A Store sets it, unique within the team, before it runs a [Change].
	NextEventID int64 `json:"-"`
}

// OrderEvent is one entry in an order's history: the order reached a status.
type OrderEvent struct {
	// ID grows with every event of an order, and is unique within a team.
	ID int64 `json:"id"`
	// CreatedAt is the time at which the order reached the status.
	CreatedAt healthlab.Time `json:"created_at"`
	Status    Status         `json:"status"`
	// StatusDetail is a finer reason; null for most events.
	StatusDetail *StatusDetail `json:"status_detail"`
	// CorrectedMarkers are the markers that a corrected report changed; left out of other events.
	CorrectedMarkers []labresult.CorrectedMarker `json:"corrected_markers,omitempty"`
}

// Method returns the collection method of the order.
func (o Order) Method() catalogue.CollectionMethod { return o.Details.Type }

// LowLevel returns the order's present low-level status; empty without an event.
func (o Order) LowLevel() LowLevel { return o.LastEvent.Status.LowLevel() }

// Facts returns the facts that the transitions of the lifecycle depend on.
func (o Order) Facts() Facts {
	return Facts{
		Registrable: o.ShippingDetails != nil,
		Registered:  o.Reached(Registered),
		Initial:     o.Origin == OriginInitial,
	}
}

// Cancellable reports whether the team may cancel the order in its present status.
func (o Order) Cancellable() bool { return Cancellable(o.Method(), o.LowLevel(), o.Facts()) }

// Reached reports whether the history contains a status.
func (o Order) Reached(l LowLevel) bool {
	return slices.ContainsFunc(o.Events, func(e OrderEvent) bool { return e.Status.LowLevel() == l })
}

func (o Order) activation(today healthlab.Date) ActivationType {
	if o.ActivateBy != nil && o.ActivateBy.After(today) {
		return ActivationScheduled
	}
	return ActivationCurrent
}

// recipient returns the recipient of the kit: the name in the shipping address, else in the patient's address;
// empty if there is none.
func (o Order) recipient() string {
	switch {
	case o.ShippingDetails != nil:
		return o.ShippingDetails.ReceiverName
	case o.PatientAddress != nil:
		return o.PatientAddress.ReceiverName
	}
	return ""
}

// LogValue logs the ids and the status, and no patient data.
func (o Order) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("id", o.ID.String()),
		slog.String("team", o.TeamID.String()),
		slog.String("status", string(o.LastEvent.Status)),
	)
}

// OrderTransaction is one transaction: the first order with its redraw and replacements.
type OrderTransaction struct {
	ID     TransactionID     `json:"id"`
	Status TransactionStatus `json:"status"`
	// Orders are the orders, ascending by creation time.
	Orders []TransactionMember `json:"orders"`
}

// TransactionMember is one order of a transaction.
type TransactionMember struct {
	ID OrderID `json:"id"`
	// LowLevelStatus is the order's present low-level status; null without an event.
	LowLevelStatus *LowLevel `json:"low_level_status"`
	// LowLevelStatusCreatedAt is the time at which the order reached LowLevelStatus; null without an event.
	LowLevelStatusCreatedAt *healthlab.Time `json:"low_level_status_created_at"`
	Origin                  Origin          `json:"origin"`
	// ParentID is the order from which this one follows; null for the first.
	ParentID  *OrderID       `json:"parent_id"`
	CreatedAt healthlab.Time `json:"created_at"`
	UpdatedAt healthlab.Time `json:"updated_at"`
}

// NewTransaction returns a transaction of members, with the status that follows from the members' statuses. It
// sorts members in place, by creation time, then by id, and the result shares the slice.
func NewTransaction(id TransactionID, members []TransactionMember) OrderTransaction {
	slices.SortFunc(members, func(a, b TransactionMember) int {
		if c := a.CreatedAt.Compare(b.CreatedAt.Time); c != 0 {
			return c
		}
		return bytes.Compare(a.ID.UUID[:], b.ID.UUID[:])
	})
	return OrderTransaction{ID: id, Status: transactionStatus(members), Orders: members}
}

// transactionStatus returns active while an order is in progress; else completed if one of the orders has a
// final report; else cancelled.
func transactionStatus(members []TransactionMember) TransactionStatus {
	status := TransactionCancelled
	for _, m := range members {
		if m.LowLevelStatus == nil || !m.LowLevelStatus.Final() {
			return TransactionActive
		}
		switch *m.LowLevelStatus {
		case Completed, Corrected, RedrawAvailable:
			status = TransactionCompleted
		}
	}
	return status
}

// Member returns the order as a member of its transaction.
func (o Order) Member() TransactionMember {
	m := TransactionMember{
		ID: o.ID, Origin: o.Origin, ParentID: o.Parent(), CreatedAt: o.CreatedAt, UpdatedAt: o.UpdatedAt,
	}
	if len(o.Events) > 0 {
		low, at := o.LowLevel(), o.LastEvent.CreatedAt
		m.LowLevelStatus, m.LowLevelStatusCreatedAt = &low, &at
	}
	return m
}

// Parent returns the order from which this one follows, according to its transaction; nil for the first.
func (o Order) Parent() *OrderID {
	for _, m := range o.OrderTransaction.Orders {
		if m.ID == o.ID {
			return m.ParentID
		}
	}
	return nil
}

// RefreshTransaction updates the order's own entry in its transaction.
func (o *Order) RefreshTransaction() {
	me := o.Member()
	members := slices.Clone(o.OrderTransaction.Orders)
	if i := slices.IndexFunc(members, func(m TransactionMember) bool { return m.ID == o.ID }); i >= 0 {
		members[i] = me
	} else {
		members = append(members, me)
	}
	o.OrderTransaction = NewTransaction(o.OrderTransaction.ID, members)
}

// TransactionDetail is a transaction as the HTTP API returns it.
type TransactionDetail struct {
	ID     TransactionID             `json:"id"`
	TeamID healthlab.TeamID          `json:"team_id"`
	Status TransactionStatus         `json:"status"`
	Orders []TransactionDetailMember `json:"orders"`
}

// TransactionDetailMember is an order of a transaction, with its status as low_level_status and as last_status.
type TransactionDetailMember struct {
	TransactionMember
	// LastStatus equals LowLevelStatus.
	LastStatus *LowLevel `json:"last_status"`
	// LastStatusCreatedAt equals LowLevelStatusCreatedAt.
	LastStatusCreatedAt *healthlab.Time `json:"last_status_created_at"`
}

// UnmarshalJSON reads the order. If the JSON has only one of low_level_status and last_status, both fields get its
// value; the times of the status likewise.
func (m *TransactionDetailMember) UnmarshalJSON(b []byte) error {
	type plain TransactionDetailMember
	if err := json.Unmarshal(b, (*plain)(m)); err != nil {
		return err
	}
	m.LowLevelStatus, m.LastStatus = cmp.Or(m.LowLevelStatus, m.LastStatus), cmp.Or(m.LastStatus, m.LowLevelStatus)
	m.LowLevelStatusCreatedAt = cmp.Or(m.LowLevelStatusCreatedAt, m.LastStatusCreatedAt)
	m.LastStatusCreatedAt = cmp.Or(m.LastStatusCreatedAt, m.LowLevelStatusCreatedAt)
	return nil
}

// detail returns the transaction in the form of the HTTP API.
func (t OrderTransaction) detail(team healthlab.TeamID) TransactionDetail {
	d := TransactionDetail{ID: t.ID, TeamID: team, Status: t.Status, Orders: []TransactionDetailMember{}}
	for _, m := range t.Orders {
		d.Orders = append(d.Orders, TransactionDetailMember{m, m.LowLevelStatus, m.LowLevelStatusCreatedAt})
	}
	return d
}

// IsZero reports whether the id is the zero value.
func (id TransactionID) IsZero() bool { return id.UUID == uuid.Nil }

// Details is the data of an order that depends on its collection method. In JSON it is {"type": …, "data": …}.
// Of the other fields, only the one for Type is set.
type Details struct {
	// Type is the collection method of the order.
	Type    catalogue.CollectionMethod
	Testkit *TestkitDetails
	WalkIn  *VisitDetails
	AtHome  *VisitDetails
	OnSite  *OnSiteDetails
	// Raw is the data of an unknown type.
	Raw json.RawMessage
}

// TestkitDetails is the data of a testkit order.
type TestkitDetails struct {
	// ID is the id of this record, not of the order.
	ID uuid.UUID `json:"id"`
	// Shipment has the tracking data of the kit. A new order has a Shipment without tracking data.
	Shipment  *Shipment      `json:"shipment"`
	CreatedAt healthlab.Time `json:"created_at"`
	UpdatedAt healthlab.Time `json:"updated_at"`
}

// VisitDetails is the data of a walk-in or at-home order.
type VisitDetails struct {
	// ID is the id of this record, not of the order.
	ID uuid.UUID `json:"id"`
	// AppointmentID is the active appointment, or null.
	AppointmentID *uuid.UUID     `json:"appointment_id"`
	CreatedAt     healthlab.Time `json:"created_at"`
	UpdatedAt     healthlab.Time `json:"updated_at"`
}

// OnSiteDetails is the data of an order whose sample the team draws itself.
type OnSiteDetails struct {
	// ID is the id of this record, not of the order.
	ID        uuid.UUID      `json:"id"`
	CreatedAt healthlab.Time `json:"created_at"`
	UpdatedAt healthlab.Time `json:"updated_at"`
}

// Shipment is the tracking data of a kit's two parcels: outbound, the kit to the patient, and inbound, the sample to
// the lab. All tracking data is null until the lab reports it. The lab reports the inbound data when it ships the kit,
// because the kit contains the return label.
type Shipment struct {
	ID                     uuid.UUID      `json:"id"`
	OutboundTrackingNumber *string        `json:"outbound_tracking_number"`
	OutboundTrackingURL    *string        `json:"outbound_tracking_url"`
	InboundTrackingNumber  *string        `json:"inbound_tracking_number"`
	InboundTrackingURL     *string        `json:"inbound_tracking_url"`
	OutboundCourier        *string        `json:"outbound_courier"`
	InboundCourier         *string        `json:"inbound_courier"`
	Notes                  *string        `json:"notes"`
	CreatedAt              healthlab.Time `json:"created_at"`
	UpdatedAt              healthlab.Time `json:"updated_at"`
}

// NewDetails returns the details of a new order of a collection method, created at the time at. id is the id of the
// details; shipment is the id of the shipment without tracking data that the details of a kit include.
func NewDetails(m catalogue.CollectionMethod, id, shipment uuid.UUID, at healthlab.Time) Details {
	d := Details{Type: m}
	switch m {
	case catalogue.Testkit:
		d.Testkit = &TestkitDetails{
			ID: id, Shipment: &Shipment{ID: shipment, CreatedAt: at, UpdatedAt: at}, CreatedAt: at, UpdatedAt: at,
		}
	case catalogue.WalkInTest:
		d.WalkIn = &VisitDetails{ID: id, CreatedAt: at, UpdatedAt: at}
	case catalogue.AtHomePhlebotomy:
		d.AtHome = &VisitDetails{ID: id, CreatedAt: at, UpdatedAt: at}
	case catalogue.OnSiteCollection:
		d.OnSite = &OnSiteDetails{ID: id, CreatedAt: at, UpdatedAt: at}
	}
	return d
}

// MarshalJSON writes the type and its data.
func (d Details) MarshalJSON() ([]byte, error) {
	var data any
	switch d.Type {
	case catalogue.Testkit:
		data = d.Testkit
	case catalogue.WalkInTest:
		data = d.WalkIn
	case catalogue.AtHomePhlebotomy:
		data = d.AtHome
	case catalogue.OnSiteCollection:
		data = d.OnSite
	default:
		if len(d.Raw) > 0 {
			data = d.Raw
		}
	}
	return json.Marshal(struct {
		Type catalogue.CollectionMethod `json:"type"`
		Data any                        `json:"data"`
	}{d.Type, data})
}

// UnmarshalJSON reads the type and its data. It stores data of an unknown type in Raw.
func (d *Details) UnmarshalJSON(b []byte) error {
	var raw struct {
		Type catalogue.CollectionMethod `json:"type"`
		Data json.RawMessage            `json:"data"`
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	*d = Details{Type: raw.Type}
	var err error
	switch raw.Type {
	case catalogue.Testkit:
		err = unmarshalPart(raw.Data, &d.Testkit)
	case catalogue.WalkInTest:
		err = unmarshalPart(raw.Data, &d.WalkIn)
	case catalogue.AtHomePhlebotomy:
		err = unmarshalPart(raw.Data, &d.AtHome)
	case catalogue.OnSiteCollection:
		err = unmarshalPart(raw.Data, &d.OnSite)
	default:
		d.Raw = raw.Data
	}
	if err != nil {
		return fmt.Errorf("details: %w", err)
	}
	return nil
}

func unmarshalPart(b []byte, into any) error {
	if len(b) == 0 {
		return nil
	}
	return json.Unmarshal(b, into)
}
