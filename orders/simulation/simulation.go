package simulation

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// Lab is a simulated laboratory, for [exchange.Options].Simulator. It has no state.
type Lab struct{}

// SuccessPath returns the triggers that lead an order from Ordered to its final result without problems. registrable is
// true for a kit that is sent before its patient is known.
func SuccessPath(m catalogue.CollectionMethod, registrable bool) []orders.Trigger {
	switch {
	case m == catalogue.Testkit && registrable:
		return []orders.Trigger{orders.PatientAwaited, orders.KitShipped, orders.KitOutForDelivery, orders.KitDelivered, orders.KitRegistered,
			orders.LabAccepted, orders.SampleSent, orders.SampleReceived, orders.FinalResult}
	case m == catalogue.Testkit:
		return []orders.Trigger{orders.LabAccepted, orders.KitShipped, orders.KitOutForDelivery, orders.KitDelivered, orders.SampleSent, orders.SampleReceived, orders.FinalResult}
	case m == catalogue.AtHomePhlebotomy:
		return []orders.Trigger{orders.LabAccepted, orders.AppointmentBooked, orders.AppointmentConfirmed, orders.SampleDrawn, orders.FinalResult}
	case m == catalogue.OnSiteCollection:
		return []orders.Trigger{orders.LabAccepted, orders.SampleDrawn, orders.FinalResult}
	default:
		return []orders.Trigger{orders.LabAccepted, orders.FinalResult}
	}
}

// Report returns the lab's message for a trigger of an order. It implements [exchange.Simulator].
func (Lab) Report(o *orders.Order, on orders.Trigger, at time.Time, flags orders.SimulationFlags, expected map[int][]catalogue.ExpectedResult) exchange.Message {
	m := exchange.Message{On: on, At: at, Detail: details[on]}
	if o.SampleID == nil && (on == orders.LabAccepted || on == orders.KitShipped) {
		m.SampleID = "SIM" + strconv.FormatUint(hash(o.ID.String()), 36)
	}
	sample := rules.TextOf(cmp.Or(o.SampleID, &m.SampleID))
	m.Tracking = Tracking(on, sample)
	if on == orders.KitShipped {
		m.ReturnTracking = Tracking(orders.SampleSent, sample)
	}
	if on == orders.PartialResult || on == orders.FinalResult || on == orders.CorrectedResult {
		results := Results(o, expected, flags, on, at)
		m.Results, m.CollectedAt, m.Patient = &results, at, orders.ReportedAs(o.PatientDetails)
	}
	if on == orders.PartialResult {
		m.Awaited = []int{}
		for _, marker := range o.LabTest.Markers {
			if !slices.ContainsFunc(m.Results.Results, func(r labresult.Result) bool {
				return slices.ContainsFunc(r.SourceMarkers, func(s labresult.SourceMarker) bool { return s.MarkerID == marker.ID })
			}) {
				m.Awaited = append(m.Awaited, marker.ID)
			}
		}
	}
	return m
}

// details has the status detail that a simulation reports with a trigger; none for most triggers.
var details = map[orders.Trigger]orders.StatusDetail{orders.LabBlocked: orders.DateOfCollectionUnspecified, orders.SampleRejected: orders.SampleQuantityNotSufficient}

// Tracking returns the tracking data of the simulated parcel that is shipped with a trigger; nil if none is. sample is
// the sample id, from which the tracking number is derived.
func Tracking(on orders.Trigger, sample string) *exchange.Tracking {
	t := exchange.Tracking{Inbound: on == orders.SampleSent, Courier: "sandbox_courier"}
	switch on {
	case orders.KitShipped:
		t.Number = "OUT-" + sample
	case orders.SampleSent:
		t.Number = "IN-" + sample
	default:
		return nil
	}
	t.URL = "https://tracking.example.com/" + t.Number
	return &t
}

// notSimulated are the triggers that a simulation does not use, because they need external input.
var notSimulated = []orders.Trigger{orders.KitRegistered, orders.Imported, orders.RedrawOffered}

// maxSteps is the highest number of steps of one simulation; the longest lifecycle has fewer.
const maxSteps = 20

// Route returns the triggers that lead an order from its present status to target; false if there is no such sequence.
// It prefers the success path, and takes the fewest steps outside of it. It implements [exchange.Simulator].
func (Lab) Route(o *orders.Order, target orders.LowLevel) ([]orders.Trigger, bool) {
	const detour = 100 // cost of a step off the success path; a step on it costs 1
	m, f := o.Method(), o.Facts()
	onPath := map[orders.LowLevel]orders.Trigger{}
	at := orders.Ordered
	for _, on := range SuccessPath(m, f.Registrable) {
		onPath[at] = on
		at, _ = orders.Next(m, at, on, orders.Facts{Registrable: f.Registrable, Registered: true, Initial: f.Initial})
	}
	type way struct {
		at   orders.LowLevel
		path []orders.Trigger
		cost int
	}
	best := map[orders.LowLevel]int{}
	todo := []way{{at: o.LowLevel()}}
	never := notSimulated
	if !f.PatientKnown() {
		// Only the patient can register the kit, and must do so before the sample is sent.
		never = append(slices.Clone(never), orders.SampleSent, orders.SampleReceived)
	}
	for len(todo) > 0 {
		i := 0
		for j, w := range todo {
			if w.cost < todo[i].cost {
				i = j
			}
		}
		w := todo[i]
		todo = slices.Delete(todo, i, i+1)
		if w.at == target && len(w.path) > 0 {
			return w.path, len(w.path) <= maxSteps
		}
		if cost, seen := best[w.at]; seen && cost <= w.cost {
			continue
		}
		if len(w.path) > 0 {
			best[w.at] = w.cost
		}
		for _, on := range orders.Triggers() {
			to, ok := orders.Next(m, w.at, on, f)
			if !ok || slices.Contains(never, on) || len(w.path) == maxSteps {
				continue
			}
			cost := w.cost + detour
			if onPath[w.at] == on {
				cost = w.cost + 1
			}
			todo = append(todo, way{to, append(slices.Clone(w.path), on), cost})
		}
	}
	return nil, false
}
