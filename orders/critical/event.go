package critical

import (
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// Event types of this package.
const (
	EventCritical       = "labtest.result.critical"
	EventAcknowledged   = "labtest.result.critical.acknowledged"
	EventUnacknowledged = "labtest.result.critical.unacknowledged"
)

// EventTypes lists the event types of this package. The key of the events is the id of the order.
func EventTypes() []healthlab.EventType {
	return []healthlab.EventType{
		{Name: EventCritical, Mode: healthlab.Ordered, Data: Notice{},
			Doc: "A result, partial or final, is critical, and a person is to acknowledge it; sent when it is stored, and again if a correction changes it and it is still critical."},
		{Name: EventAcknowledged, Mode: healthlab.Ordered, Data: AcknowledgedNotice{},
			Doc: "A person acknowledged a critical result and repeated its value."},
		{Name: EventUnacknowledged, Mode: healthlab.Ordered, Data: UnacknowledgedNotice{},
			Doc: "A deadline passed, and no person has acknowledged a critical result; sent once for each step of the team's ladder."},
	}
}

// Notice is the payload of the event that an order has a critical result. The receiver reads the result itself through
// the API.
type Notice struct {
	ID       LoopID           `json:"critical_result_id"`
	Revision int              `json:"revision"`
	OrderID  uuid.UUID        `json:"order_id"`
	TeamID   healthlab.TeamID `json:"team_id"`
	UserID   healthlab.UserID `json:"user_id"`
	// SampleID is the laboratory's id of the specimen.
	SampleID       string                   `json:"sample_id"`
	Status         labresult.Status         `json:"status"`
	Interpretation labresult.Interpretation `json:"interpretation"`
	// CreatedAt is the time at which the first report of the order was received. UpdatedAt is the time at which the
	// report with this result was received.
	CreatedAt healthlab.Time `json:"created_at"`
	UpdatedAt healthlab.Time `json:"updated_at"`
}

// AcknowledgedNotice is the payload of the event that a person has acknowledged a critical result.
type AcknowledgedNotice struct {
	ID             LoopID           `json:"critical_result_id"`
	Revision       int              `json:"revision"`
	OrderID        uuid.UUID        `json:"order_id"`
	TeamID         healthlab.TeamID `json:"team_id"`
	UserID         healthlab.UserID `json:"user_id"`
	OpenedAt       healthlab.Time   `json:"opened_at"`
	AcknowledgedAt healthlab.Time   `json:"acknowledged_at"`
	AcknowledgedBy string           `json:"acknowledged_by"`
}

// UnacknowledgedNotice is the payload of the event that an escalation step passed without an acknowledgement.
type UnacknowledgedNotice struct {
	ID       LoopID           `json:"critical_result_id"`
	Revision int              `json:"revision"`
	OrderID  uuid.UUID        `json:"order_id"`
	TeamID   healthlab.TeamID `json:"team_id"`
	UserID   healthlab.UserID `json:"user_id"`
	OpenedAt healthlab.Time   `json:"opened_at"`
	// Step is the number of the passed step, from 1; Steps is the number of all steps.
	Step  int `json:"step"`
	Steps int `json:"steps"`
	// To is the role or the recipient of the step.
	To    string         `json:"to"`
	DueAt healthlab.Time `json:"due_at"`
}

// eventsFrom returns an event for each history entry from index n on, except withdrawals. The id of an event is derived
// from the id of the loop and the index.
func (r *Record) eventsFrom(n int) ([]healthlab.Event, error) {
	var out []healthlab.Event
	for i := n; i < len(r.History); i++ {
		h := &r.History[i]
		e := healthlab.Event{
			ID: uuid.NewSHA1(r.ID.UUID, fmt.Appendf(nil, "event %d", i+1)), Team: r.Team, User: r.UserID, Key: r.OrderID.String(), At: h.At.Time,
		}
		var data any
		switch h.Event {
		case Announced, Corrected:
			e.Type = EventCritical
			data = Notice{
				ID: r.ID, Revision: h.Revision, OrderID: r.OrderID, TeamID: r.Team, UserID: r.UserID, SampleID: rules.TextOf(r.SampleID),
				Status: r.ReportStatus, Interpretation: labresult.Critical, CreatedAt: r.FirstReported, UpdatedAt: r.Reported,
			}
		case StepPassed:
			e.Type = EventUnacknowledged
			data = UnacknowledgedNotice{
				ID: r.ID, Revision: h.Revision, OrderID: r.OrderID, TeamID: r.Team, UserID: r.UserID, OpenedAt: r.OpenedAt,
				Step: h.Step, Steps: len(r.Escalation), To: h.To, DueAt: r.Escalation[h.Step-1].DueAt,
			}
		case WasAcknowledged:
			e.Type = EventAcknowledged
			data = AcknowledgedNotice{
				ID: r.ID, Revision: h.Revision, OrderID: r.OrderID, TeamID: r.Team, UserID: r.UserID, OpenedAt: r.OpenedAt,
				AcknowledgedAt: h.At, AcknowledgedBy: h.By,
			}
		default: // a withdrawal: package orders sends an event for the corrected report
			continue
		}
		var err error
		if e.Data, err = json.Marshal(data); err != nil {
			return nil, fmt.Errorf("encode event: %w", err)
		}
		out = append(out, e)
	}
	return out, nil
}
