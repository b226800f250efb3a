package orders

import (
	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/critical"
)

// Names of the events that this package emits.
const (
	EventOrderCreated       = "labtest.order.created"
	EventOrderUpdated       = "labtest.order.updated"
	EventAppointmentCreated = "labtest.appointment.created"
	EventAppointmentUpdated = "labtest.appointment.updated"
	EventMatchReviewCreated = "labtest.match_review.created"
	EventMatchReviewUpdated = "labtest.match_review.updated"
)

// EventTypes lists the events that this package and package critical emit. The events of an order
// have its id as key.
func EventTypes() []healthlab.EventType {
	return append([]healthlab.EventType{
		{Name: EventOrderCreated, Mode: healthlab.Ordered, Data: Order{},
			Doc: "A lab order was placed; its first event is ordered."},
		{Name: EventOrderUpdated, Mode: healthlab.Ordered, Data: Order{},
			Doc: "A lab order got a further event; partial results only for teams that asked for them."},
		{Name: EventAppointmentCreated, Mode: healthlab.Ordered, Data: Appointment{},
			Doc: "An appointment was made for an order."},
		{Name: EventAppointmentUpdated, Mode: healthlab.Ordered, Data: Appointment{},
			Doc: "An appointment changed its status or its time."},
		{Name: EventMatchReviewCreated, Mode: healthlab.Ordered, Data: MatchReviewNotice{},
			Doc: "A result that matches no order for certain waits for the team's decision."},
		{Name: EventMatchReviewUpdated, Mode: healthlab.Ordered, Data: MatchReviewNotice{},
			Doc: "The review of such a result changed its status or its decision."},
	}, critical.EventTypes()...)
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
