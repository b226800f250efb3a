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

// Step is one thing that happens to an order, with all that the rules need to know
// about it.
type Step struct {
	On Trigger
	// At is when it happened.
	At time.Time
	// Detail is a finer reason; empty means none.
	Detail StatusDetail
	// EventID names the event that will tell of it.
	EventID uuid.UUID
	// NotifyPartial: the team wants events of partial results.
	NotifyPartial bool
	// FormURL is where the requisition can be fetched once there is one; empty for
	// nowhere.
	FormURL string
	// Corrected are the markers that a corrected report changed.
	Corrected []labresult.CorrectedMarker
}

// TransitionError says that a trigger makes no sense where an order stands. It
// unwraps to [healthlab.Precondition].
type TransitionError struct {
	Order OrderID
	From  Status
	On    Trigger
	// To is where the trigger leads from other states; empty if nowhere.
	To LowLevel
}

// Error names the order, its status and the trigger.
func (e *TransitionError) Error() string {
	return "order " + e.Order.String() + ": " + e.Unwrap().Error()
}

// Unwrap returns the rule that it breaks.
func (e *TransitionError) Unwrap() error {
	return &healthlab.RuleError{
		Type: TransitionNotAllowed,
		Msg:  fmt.Sprintf("an order in the status %s cannot become %s (%s)", e.From, e.To, e.On),
	}
}

// Begin gives a new order its first event, ordered, and returns what its team is
// told. It is pure apart from o, which must have no event yet.
func Begin(o *Order, at time.Time, eventID uuid.UUID) ([]healthlab.Event, error) {
	if len(o.Events) > 0 {
		return nil, &TransitionError{Order: o.ID, From: o.LastEvent.Status, On: "order_placed", To: lifecycle.Initial()}
	}
	o.CreatedAt = healthlab.At(at)
	return appendEvent(o, lifecycle.Initial(), Step{At: at, EventID: eventID})
}

// Apply moves o along the lifecycle of its method, appends to its history, and
// returns the events for its team: one, or none for a partial result that the
// team did not ask for. A partial result of a kit has no status of its own and is
// refused here like every other transition that is not in the table: with a
// [TransitionError], leaving o as it was.
//
// Apply is pure apart from o.
func Apply(o *Order, s Step) ([]healthlab.Event, error) {
	to, ok := lifecycle.Next(o.Method(), o.LowLevel(), s.On, o.Facts())
	if !ok || len(o.Events) == 0 {
		return nil, &TransitionError{Order: o.ID, From: o.LastEvent.Status, On: s.On, To: target(o.Method(), s.On)}
	}
	return appendEvent(o, to, s)
}

// target returns where a trigger leads orders of a method, from wherever it does.
func target(m catalogue.CollectionMethod, on Trigger) LowLevel {
	for _, r := range lifecycle.Rows() {
		if r.On == on && (len(r.Variants) == 0 || slices.Contains(r.Variants, m)) {
			return r.To
		}
	}
	return ""
}

// appendEvent appends the event of a step, and makes the changes that follow from it.
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

// NewEvent returns an event of the order as it is now.
func (o *Order) NewEvent(name string, id uuid.UUID, at healthlab.Time) ([]healthlab.Event, error) {
	return event(o, healthlab.Event{
		ID: id, Type: name, Team: o.TeamID, User: o.UserID, Key: o.ID.String(), At: at.Time,
	})
}

// event puts a payload into an event.
func event(payload any, e healthlab.Event) ([]healthlab.Event, error) {
	data, err := json.Marshal(payload)
	if err != nil {
		return nil, fmt.Errorf("encode event: %w", err)
	}
	e.Data = data
	return []healthlab.Event{e}, nil
}

// detail is the finer reason of a status that a step leads to: the reported one, else that
// of the ending. A carrier's problem is always one of fulfilment.
func (s Step) detail(to LowLevel) StatusDetail {
	switch {
	case s.Detail != "":
		return s.Detail
	case to == ProblemInTransitCustomer || to == ProblemInTransitLab:
		return FulfillmentError
	}
	return endings[to].Detail
}

// What must have happened before what is reported, if it was not reported: a lab that tests
// a sample has accepted the order and received the sample, and a patient who sent one
// had the kit.
var impliable = []Trigger{LabAccepted, KitShipped, KitDelivered, SampleSent, SampleReceived}

// MaxImplied bounds how many steps a message can imply before its own.
const MaxImplied = 6

// Refused is the error of a trigger that leads the order nowhere.
func (r *Record) Refused(on Trigger) error {
	return &TransitionError{Order: r.ID, From: r.LastEvent.Status, On: on, To: target(r.Method(), on)}
}

// ImpliedPath returns the shortest way from where the order stands to what is reported,
// the report included, over steps that it implies. False if there is none.
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
	// A kit on its way says nothing of the requisition of its patient.
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

// TakesSilentPartial reports whether the order can have a partial result that changes no status: that of a
// kit of a known patient.
func (r *Record) TakesSilentPartial() bool {
	return r.Method() == catalogue.Testkit && r.Facts().PatientKnown() && !r.LowLevel().Final()
}
