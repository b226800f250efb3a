package orders

import (
	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// Names of the events that this package emits.
const (
	EventOrderCreated       = "labtest.order.created"
	EventOrderUpdated       = "labtest.order.updated"
	EventAppointmentCreated = "labtest.appointment.created"
	EventAppointmentUpdated = "labtest.appointment.updated"
	EventCriticalResult     = "labtest.result.critical"
	EventMatchReviewCreated = "labtest.match_review.created"
	EventMatchReviewUpdated = "labtest.match_review.updated"
)

// EventTypes lists the events that this package emits. The events of an order have
// its id as key.
func EventTypes() []healthlab.EventType {
	return []healthlab.EventType{
		{Name: EventOrderCreated, Mode: healthlab.Ordered, Data: Order{},
			Doc: "A lab order was placed; its first event is ordered."},
		{Name: EventOrderUpdated, Mode: healthlab.Ordered, Data: Order{},
			Doc: "A lab order got a further event; partial results only for teams that asked for them."},
		{Name: EventAppointmentCreated, Mode: healthlab.Ordered, Data: Appointment{},
			Doc: "An appointment was made for an order."},
		{Name: EventAppointmentUpdated, Mode: healthlab.Ordered, Data: Appointment{},
			Doc: "An appointment changed its status or its time."},
		{Name: EventCriticalResult, Mode: healthlab.Independent, Data: CriticalResult{},
			Doc: "A result, partial or final, is critical; sent after the lab has informed the physician."},
		{Name: EventMatchReviewCreated, Mode: healthlab.Ordered, Data: MatchReviewNotice{},
			Doc: "A result that matches no order for certain waits for the team's decision."},
		{Name: EventMatchReviewUpdated, Mode: healthlab.Ordered, Data: MatchReviewNotice{},
			Doc: "The review of such a result changed its status or its decision."},
	}
}

// CriticalResult is a notice that an order has a critical result. The result itself
// is read through the API.
type CriticalResult struct {
	OrderID OrderID          `json:"order_id"`
	TeamID  healthlab.TeamID `json:"team_id"`
	UserID  healthlab.UserID `json:"user_id"`
	// SampleID is the lab's id of the specimen.
	SampleID       string                   `json:"sample_id"`
	Status         labresult.Status         `json:"status"`
	Interpretation labresult.Interpretation `json:"interpretation"`
	// CreatedAt is when the result first came from the lab, UpdatedAt when it last
	// did.
	CreatedAt healthlab.Time `json:"created_at"`
	UpdatedAt healthlab.Time `json:"updated_at"`
}

// MatchReviewNotice is a notice about a result under review. The item itself is read
// by its id.
type MatchReviewNotice struct {
	// ID is that of the raw result.
	ID           uuid.UUID `json:"id"`
	Status       string    `json:"status"`
	DecisionCode string    `json:"decision_code"`
	// SubReasonCodes are further reasons; empty if there are none.
	SubReasonCodes []string `json:"sub_reason_codes"`
	// ResolutionAction is set after a decision, the last two after a result was
	// accepted.
	ResolutionAction *string           `json:"resolution_action"`
	ResolvedUserID   *healthlab.UserID `json:"resolved_user_id"`
	ResolvedOrderID  *OrderID          `json:"resolved_order_id"`
}
