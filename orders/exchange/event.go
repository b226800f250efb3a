package exchange

import (
	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
)

// Event types of this package.
const (
	EventMatchReviewCreated = "labtest.match_review.created"
	EventMatchReviewUpdated = "labtest.match_review.updated"
)

// EventTypes lists the event types of this package. The key of their events is the id of the result under
// review.
func EventTypes() []healthlab.EventType {
	return []healthlab.EventType{
		{Name: EventMatchReviewCreated, Mode: healthlab.Ordered, Data: MatchReviewNotice{},
			Doc: "A result that matches no order for certain waits for the team's decision."},
		{Name: EventMatchReviewUpdated, Mode: healthlab.Ordered, Data: MatchReviewNotice{},
			Doc: "The review of such a result changed its status or its decision."},
	}
}

// MatchReviewNotice is the payload of an event about a result under review. The result is not in it; the
// receiver reads it by its id.
type MatchReviewNotice struct {
	// ID is the id of the result under review.
	ID           uuid.UUID `json:"id"`
	Status       string    `json:"status"`
	DecisionCode string    `json:"decision_code"`
	// SubReasonCodes are further reasons; empty if there are none.
	SubReasonCodes []string `json:"sub_reason_codes"`
	// ResolutionAction is set after a decision. ResolvedUserID and ResolvedOrderID are set only if the result was
	// accepted.
	ResolutionAction *string           `json:"resolution_action"`
	ResolvedUserID   *healthlab.UserID `json:"resolved_user_id"`
	ResolvedOrderID  *orders.OrderID   `json:"resolved_order_id"`
}
