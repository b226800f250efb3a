package orders

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// Step is a trigger of an order with the data that the rules need.
type Step struct {
	On Trigger
	// At is the time of the trigger.
	At time.Time
	// Detail is a finer reason; empty means none.
	Detail StatusDetail
	// EventID is the id of the event about the step.
	EventID uuid.UUID
	// NotifyPartial is true if the team wants events about partial results.
	NotifyPartial bool
	// FormURL is the URL of the requisition; empty for none.
	FormURL string
	// Corrected are the markers that a corrected report changed.
	Corrected []labresult.CorrectedMarker
}

// TransitionError reports that a trigger is not allowed in the present status of an order. It unwraps to
// [healthlab.Precondition].
type TransitionError struct {
	Order OrderID
	From  Status
	On    Trigger
	// To is the status to which the trigger leads from other statuses; empty if there is none.
	To LowLevel
}

// Error returns a text with the order, its status and the trigger.
func (e *TransitionError) Error() string {
	return "order " + e.Order.String() + ": " + e.Unwrap().Error()
}

// Unwrap returns a [healthlab.RuleError] of the type TRANSITION_NOT_ALLOWED.
func (e *TransitionError) Unwrap() error {
	msg := fmt.Sprintf("an order in the status %s does not allow %s", e.From, e.On)
	if e.To != "" {
		msg = fmt.Sprintf("an order in the status %s cannot become %s (%s)", e.From, e.To, e.On)
	}
	return &healthlab.RuleError{Type: TransitionNotAllowed, Msg: msg}
}

// Begin adds the first event, with the status Ordered, to a new order, and returns the events for the team. It changes
// only o. [TransitionError] if o has an event already.
func Begin(o *Order, at time.Time, eventID uuid.UUID) ([]healthlab.Event, error) {
	if len(o.Events) > 0 {
		return nil, &TransitionError{Order: o.ID, From: o.LastEvent.Status, On: "order_placed", To: lifecycle.Initial()}
	}
	o.CreatedAt = healthlab.At(at)
	return appendEvent(o, lifecycle.Initial(), Step{At: at, EventID: eventID})
}

// Apply applies a trigger to o: it changes the status by the lifecycle of o's method, appends to the history, and
// returns the events for the team: one, or none for a partial result without corrections that the team does not want.
// It changes only o. A [TransitionError] if the lifecycle does not allow the trigger, as for a partial result of a kit,
// which has no status; o is then unchanged.
func Apply(o *Order, s Step) ([]healthlab.Event, error) {
	to, ok := lifecycle.Next(o.Method(), o.LowLevel(), s.On, o.Facts())
	if !ok || len(o.Events) == 0 {
		return nil, &TransitionError{Order: o.ID, From: o.LastEvent.Status, On: s.On, To: target(o.Method(), s.On)}
	}
	return appendEvent(o, to, s)
}

// target returns the status to which a trigger leads orders of a method from at least one status; empty if there is
// none.
func target(m catalogue.CollectionMethod, on Trigger) LowLevel {
	for _, r := range lifecycle.Rows() {
		if r.On == on && (len(r.Variants) == 0 || slices.Contains(r.Variants, m)) {
			return r.To
		}
	}
	return ""
}

// appendEvent appends the event of a step to the order's history, and updates the fields that repeat the latest status.
// It returns the events for the team: none for a partial result that the team does not want, unless the result corrects
// an earlier one.
func appendEvent(o *Order, to LowLevel, s Step) ([]healthlab.Event, error) {
	at := healthlab.At(s.At)
	event := OrderEvent{ID: max(o.LastEvent.ID+1, o.NextEventID), CreatedAt: at, Status: StatusOf(o.Method(), to)}
	if detail := s.detail(to); detail != "" {
		event.StatusDetail = &detail
	}
	event.CorrectedMarkers = s.Corrected
	// A new array each time: an append could write into one that the caller shares.
	o.Events = append(append(make([]OrderEvent, 0, len(o.Events)+1), o.Events...), event)
	o.LastEvent, o.Status, o.UpdatedAt = event, event.Status.Stage(), at
	o.NextEventID = event.ID + 1
	if to == RequisitionCreated && s.FormURL != "" {
		o.RequisitionFormURL = &s.FormURL
	}
	o.RefreshTransaction()
	if to == PartialResults && !s.NotifyPartial && len(s.Corrected) == 0 {
		return nil, nil
	}
	name := EventOrderUpdated
	if len(o.Events) == 1 {
		name = EventOrderCreated
	}
	return o.NewEvent(name, s.EventID, at)
}

// NewEvent returns an event with the present state of the order.
func (o *Order) NewEvent(name string, id uuid.UUID, at healthlab.Time) ([]healthlab.Event, error) {
	return event(o, healthlab.Event{
		ID: id, Type: name, Team: o.TeamID, User: o.UserID, Key: o.ID.String(), At: at.Time,
	})
}

// event returns a list of one event: e with the payload as JSON.
func event(payload any, e healthlab.Event) ([]healthlab.Event, error) {
	data, err := json.Marshal(payload)
	if err != nil {
		return nil, fmt.Errorf("encode event: %w", err)
	}
	e.Data = data
	return []healthlab.Event{e}, nil
}

// detail returns the status detail of a step: the reported one, else FulfillmentError for a problem in transit,
// else the default of a final status.
func (s Step) detail(to LowLevel) StatusDetail {
	switch {
	case s.Detail != "":
		return s.Detail
	case to == ProblemInTransitCustomer || to == ProblemInTransitLab:
		return FulfillmentError
	}
	return endings[to].Detail
}

// impliable are the triggers that a later reported trigger implies if they were not reported: a lab that tests
// a sample has accepted the order and received the sample, and a patient who sent a sample had the kit.
var impliable = []Trigger{LabAccepted, KitShipped, KitDelivered, SampleSent, SampleReceived}

// MaxImplied is the highest number of steps that one reported trigger can imply, without the trigger itself.
const MaxImplied = 6

// Refused returns the [TransitionError] of a trigger that the order's present status does not allow.
func (r *Record) Refused(on Trigger) error {
	return &TransitionError{Order: r.ID, From: r.LastEvent.Status, On: on, To: target(r.Method(), on)}
}

// ImpliedPath returns the shortest sequence of triggers that leads from the order's status through implied steps to the
// reported trigger on, which is the last of them. False if there is none.
func (r *Record) ImpliedPath(on Trigger) ([]Trigger, bool) {
	type way struct {
		at   LowLevel
		path []Trigger
	}
	m, f := r.Method(), r.Facts()
	implied := impliable
	if on == CorrectedResult && r.HasResults() {
		implied = append(slices.Clone(impliable), FinalResult) // the correction of a final report that did not come
	}
	// A shipped registrable kit does not imply that the lab has accepted a requisition.
	parcel := f.Registrable && slices.Contains([]Trigger{KitShipped, KitOutForDelivery, KitDelivered, KitDelayed, SampleSent}, on)
	seen := map[LowLevel]bool{r.LowLevel(): true}
	for todo := []way{{at: r.LowLevel()}}; len(todo) > 0; todo = todo[1:] {
		w := todo[0]
		if _, ok := Next(m, w.at, on, f); ok {
			return append(w.path, on), true
		}
		if len(w.path) == MaxImplied {
			continue
		}
		for _, i := range implied {
			if to, ok := Next(m, w.at, i, f); ok && !seen[to] && (i != LabAccepted || !parcel) {
				seen[to] = true
				todo = append(todo, way{to, append(slices.Clone(w.path), i)})
			}
		}
	}
	return nil, false
}

// TakesSilentPartial reports whether the order accepts a partial result without a change of status. True for a kit
// whose patient is known, if the order has not ended.
func (r *Record) TakesSilentPartial() bool {
	return r.Method() == catalogue.Testkit && r.Facts().PatientKnown() && !r.LowLevel().Final()
}
