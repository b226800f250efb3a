package orders

import (
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/appointment"
)

// Ending is what follows for an order that reaches a status in which it may end.
type Ending struct {
	// VisitTookPlace: an agreed appointment whose time has come is completed. Every other
	// appointment that is not over is cancelled, and its slot freed at its provider.
	VisitTookPlace bool
	// TakeBack: the laboratory is asked to take the order back, shipment included.
	TakeBack bool
	// WithdrawResults: what was reported before can no longer be read.
	WithdrawResults bool
	// TakesResult: a held result that is accepted corrects the order. Otherwise the
	// result goes to a new order that replaces it.
	TakesResult bool
	// Detail is the status detail where the laboratory or the carrier gives none.
	Detail StatusDetail
}

// endings has every final status of the lifecycle. Reminders end with each of them: they
// are sent only while an order stands where it asked for them.
var endings = map[LowLevel]Ending{
	Completed:                  {VisitTookPlace: true, TakesResult: true},
	Corrected:                  {VisitTookPlace: true, TakesResult: true},
	RedrawAvailable:            {VisitTookPlace: true},
	SampleError:                {VisitTookPlace: true, WithdrawResults: true, Detail: ReasonUnspecified},
	FailureToDeliverToCustomer: {Detail: FulfillmentError},
	FailureToDeliverToLab:      {Detail: FulfillmentError},
	Lost:                       {Detail: FulfillmentError},
	Cancelled:                  {TakeBack: true},
	DoNotProcess:               {TakeBack: true, Detail: FulfillmentError},
}

// EndingOf returns what follows for an order that ends in a status; false for a status in
// which no order ends.
func EndingOf(l LowLevel) (Ending, bool) {
	e, ok := endings[l]
	return e, ok
}

// statusDetails are the finer reasons of each status that has any.
var statusDetails = map[LowLevel][]StatusDetail{
	ProblemInTransitCustomer:   {FulfillmentError},
	ProblemInTransitLab:        {FulfillmentError},
	FailureToDeliverToCustomer: {FulfillmentError},
	FailureToDeliverToLab:      {FulfillmentError},
	Lost:                       {FulfillmentError},
	DoNotProcess:               {FulfillmentError},
	LabProcessingBlocked:       {DateOfCollectionUnspecified, DemographicInformationUnspecified, DemographicInformationMismatch},
	SampleError: {SampleQuantityNotSufficient, SampleContaminated, SampleStabilityExceeded, SampleHemolyzed,
		SampleImproperCollection, ReasonUnspecified},
	Cancelled: {OrderRefused},
}

// StatusDetails returns the finer reasons that a status can have; none for most.
func StatusDetails(l LowLevel) []StatusDetail { return slices.Clone(statusDetails[l]) }

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

// endVisit ends the appointment of an order that has ended.
func (r *Record) endVisit(st Step) ([]healthlab.Event, error) {
	i, on := r.activeVisit(), r.endsVisit(r.LowLevel(), st)
	if i < 0 || on == "" {
		return nil, nil
	}
	s := visitStep{on: on, at: st.At, ids: &eventIDs{base: st.EventID}}
	if on != appointment.VisitDone {
		origin := "order_completed"
		switch stages[r.LowLevel()] {
		case StageCancelled:
			origin = "order_cancelled"
		case StageFailed:
			origin = "order_failed"
		}
		s.data = because(said{"origin": origin})
	}
	return r.happen(i, s)
}

// endsVisit returns the trigger that ends the active appointment when its order reaches a
// status; empty if the appointment goes on, or if there is none.
func (r *Record) endsVisit(to LowLevel, st Step) appointment.Trigger {
	i := r.activeVisit()
	if i < 0 {
		return ""
	}
	v := &r.Visits[i]
	e, ends := endings[to]
	switch {
	case st.On == SampleDrawn && v.agreed() && v.Type == appointment.Phlebotomy:
		return appointment.VisitDone
	case !ends:
		return ""
	case !v.Status.Published():
		return appointment.VisitRefused
	case e.VisitTookPlace && v.agreed() && v.StartAt != nil && !v.StartAt.After(st.At):
		return appointment.VisitDone
	}
	return appointment.VisitDropped
}
