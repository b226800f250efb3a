package sandbox

import (
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/simulation"
)

// Outcome is how an order goes at the lab. With the zero value nothing fails.
type Outcome struct {
	// Refused means that the lab refuses the order permanently.
	Refused bool
	// Down is the number of first calls that fail before the lab answers.
	Down int
	// Silent is the number of calls, after those of Down, that the lab accepts without an answer, so that the caller
	// times out.
	Silent int
	// Slow means that the lab accepts the order, and sends the requisition number later.
	Slow bool
	// TooLateToCancel means that the lab refuses a cancellation.
	TooLateToCancel bool
	// Uncovered means that the lab sends a notice that the insurance will probably not pay.
	Uncovered bool
	// Repeats is how many times every message is sent again.
	Repeats int
	// Story is the incident that happens to the order; empty means none.
	Story Story
}

// Story names an incident that changes the steps of an order.
type Story string

// Stories of an order.
const (
	// Undeliverable means that the carrier cannot deliver the kit and returns it.
	Undeliverable Story = "undeliverable"
	// LostOutbound means that the kit is lost on the way to the patient.
	LostOutbound Story = "lost_outbound"
	// Delayed means that the carrier delays the kit and the sample, and then delivers them.
	Delayed Story = "delayed"
	// ReturnFailed means that the carrier cannot deliver the sample to the lab.
	ReturnFailed Story = "return_failed"
	// LostInbound means that the sample is lost on the way to the lab.
	LostInbound Story = "lost_inbound"
	// MissingScans means that for a kit the lab reports only the result: no shipping, and no arrival of the sample.
	MissingScans Story = "missing_scans"
	// Blocked means that the lab of a kit waits for missing documents, receives them and continues.
	Blocked Story = "blocked"
	// Expired means that the lab of a kit waits for missing documents until the sample is too old.
	Expired Story = "expired"
	// Rejected means that the lab cannot use the sample.
	Rejected Story = "rejected"
	// Partial means that the lab first sends a partial report with half of the results.
	Partial Story = "partial"
	// Missing means that the report says of one result that the lab could not determine it.
	Missing Story = "missing"
	// AbnormalResult and CriticalResult mean that a result is abnormal or critical.
	AbnormalResult Story = "abnormal"
	CriticalResult Story = "critical"
	// CorrectedReport means that the lab sends a corrected report after the final one.
	CorrectedReport Story = "corrected"
	// Stopped means that the lab cancels the order of a kit after it accepted it.
	Stopped Story = "stopped"
	// NeverAgain means that the lab accepts the order and then sends no message about it.
	NeverAgain Story = "never_again"
)

// Stories returns all incidents.
func Stories() []Story {
	return []Story{
		Undeliverable, LostOutbound, Delayed, ReturnFailed, LostInbound, MissingScans, Blocked, Expired, Rejected,
		Partial, Missing, AbnormalResult, CriticalResult, CorrectedReport, Stopped, NeverAgain,
	}
}

// OutcomeFromPassthrough returns the outcome that a team's passthrough text selects: "sandbox:" followed by stories or
// failures, separated by commas. Failures are refused, down (once), silent (once), slow, too_late_to_cancel, uncovered
// and repeats. Any other text means success.
func OutcomeFromPassthrough(o orders.Order) Outcome {
	var f Outcome
	if o.Passthrough == nil {
		return f
	}
	names, ok := strings.CutPrefix(*o.Passthrough, "sandbox:")
	if !ok {
		return f
	}
	for _, name := range strings.Split(names, ",") {
		switch name = strings.TrimSpace(name); name {
		case "refused":
			f.Refused = true
		case "down":
			f.Down = 1
		case "silent":
			f.Silent = 1
		case "slow":
			f.Slow = true
		case "too_late_to_cancel":
			f.TooLateToCancel = true
		case "uncovered":
			f.Uncovered = true
		case "repeats":
			f.Repeats = 1
		default:
			if slices.Contains(Stories(), Story(name)) {
				f.Story = Story(name)
			}
		}
	}
	return f
}

// happening is one step of an order that the lab will report.
type happening struct {
	on     orders.Trigger
	detail orders.StatusDetail
	flags  *orders.SimulationFlags // flags of the results that the step reports; nil without results
	parcel bool                    // the step is part of the kit's shipment to the patient
}

// plan returns all steps of the order after its acceptance.
func (o *labOrder) plan() []happening {
	var steps []happening
	if o.outcome.Slow && o.kit.IsZero() {
		steps = append(steps, happening{on: orders.LabAccepted})
	}
	yes := true
	flags := &orders.SimulationFlags{}
	switch o.outcome.Story {
	case Missing:
		flags.HasMissingResults = &yes
	case AbnormalResult:
		flags.Interpretation = labresult.Abnormal
	case CriticalResult:
		flags.Interpretation = labresult.Critical
	}
	for _, on := range simulation.SuccessPath(o.order.Method(), !o.kit.IsZero()) {
		if on == orders.LabAccepted || on == orders.PatientAwaited || on == orders.KitRegistered {
			continue // reported by others, or already in the answer to the order
		}
		if o.visited && (on == orders.AppointmentBooked || on == orders.AppointmentConfirmed || on == orders.SampleDrawn) {
			continue // the appointment reports it
		}
		h := happening{on: on}
		h.parcel = on == orders.KitShipped || on == orders.KitOutForDelivery || on == orders.KitDelivered
		if on == orders.FinalResult {
			h.flags = flags
		}
		steps = append(steps, h)
	}
	return o.outcome.Story.applyTo(steps, o.order.Method() == catalogue.Testkit)
}

// applyTo returns a plan without incidents, changed by the incident s. Incidents of shipping, and Blocked, Expired and
// Stopped, change only the plans of kits.
func (s Story) applyTo(plan []happening, kit bool) []happening {
	at := func(on orders.Trigger) int {
		return slices.IndexFunc(plan, func(h happening) bool { return h.on == on })
	}
	// before inserts steps before a step of the plan; instead replaces the rest of the plan by them.
	before := func(on orders.Trigger, steps ...happening) []happening { return slices.Insert(plan, at(on), steps...) }
	instead := func(on orders.Trigger, steps ...happening) []happening {
		return append(plan[:at(on)], steps...)
	}
	shipping := func(on orders.Trigger, detail orders.StatusDetail) happening {
		return happening{on: on, detail: detail, parcel: true}
	}
	fault := orders.FulfillmentError
	switch {
	case s == NeverAgain:
		return nil
	case s == Partial:
		return before(orders.FinalResult, happening{on: orders.PartialResult, flags: &orders.SimulationFlags{}})
	case s == CorrectedReport:
		return append(plan, happening{on: orders.CorrectedResult, flags: &orders.SimulationFlags{}})
	case s == Rejected:
		return instead(orders.FinalResult, happening{on: orders.SampleRejected, detail: orders.SampleHemolyzed})
	case !kit:
		return plan
	}
	switch s {
	case MissingScans:
		return slices.DeleteFunc(plan, func(h happening) bool { return h.on != orders.FinalResult && h.on != orders.LabAccepted })
	case Undeliverable:
		return instead(orders.KitDelivered, shipping(orders.KitUndeliverable, fault))
	case LostOutbound:
		return instead(orders.KitDelivered, shipping(orders.ParcelLost, ""))
	case Delayed:
		plan = before(orders.KitOutForDelivery, shipping(orders.KitDelayed, fault))
		return before(orders.SampleReceived, happening{on: orders.SampleDelayed, detail: fault})
	case ReturnFailed:
		return instead(orders.SampleReceived, happening{on: orders.SampleUndeliverable, detail: fault})
	case LostInbound:
		return instead(orders.SampleReceived, happening{on: orders.ParcelLost})
	case Blocked:
		return before(orders.FinalResult, happening{on: orders.LabBlocked, detail: orders.DemographicInformationMismatch},
			happening{on: orders.InformationSupplied})
	case Expired:
		return instead(orders.FinalResult, happening{on: orders.LabBlocked, detail: orders.DateOfCollectionUnspecified},
			happening{on: orders.SampleRejected, detail: orders.SampleStabilityExceeded})
	case Stopped:
		return append(plan[:0:0], happening{on: orders.Stopped, detail: fault, parcel: true})
	}
	return plan
}
