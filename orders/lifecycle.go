package orders

import (
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab/internal/fsm"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

// Trigger is an event that may change the status of an order.
type Trigger string

// Triggers, in the order of an order's life.
const (
	// LabAccepted: the lab accepted the requisition.
	LabAccepted Trigger = "lab_accepted"
	// Imported: the order was placed outside the service, with its own requisition.
	Imported Trigger = "imported"
	// PatientAwaited: the lab accepted the order, whose kit has no patient yet.
	PatientAwaited Trigger = "patient_awaited"
	// KitRegistered: a patient registered the kit.
	KitRegistered Trigger = "kit_registered"
	// KitShipped: the kit is on its way to the patient.
	KitShipped Trigger = "kit_shipped"
	// KitOutForDelivery: the carrier scanned the kit for its last mile.
	KitOutForDelivery Trigger = "kit_out_for_delivery"
	// KitDelivered: the patient has the kit.
	KitDelivered Trigger = "kit_delivered"
	// KitDelayed: the carrier has a problem with the kit.
	KitDelayed Trigger = "kit_delayed"
	// KitUndeliverable: the carrier gave up on the kit.
	KitUndeliverable Trigger = "kit_undeliverable"
	// SampleSent: the patient sent the sample.
	SampleSent Trigger = "sample_sent"
	// SampleDelayed: the carrier has a problem with the sample.
	SampleDelayed Trigger = "sample_delayed"
	// SampleUndeliverable: the carrier gave up on the sample.
	SampleUndeliverable Trigger = "sample_undeliverable"
	// SampleReceived: the lab has the sample.
	SampleReceived Trigger = "sample_received"
	// ParcelLost: the parcel with the kit or the sample is lost.
	ParcelLost Trigger = "parcel_lost"
	// LabBlocked: the lab needs information; the status detail says which.
	LabBlocked Trigger = "lab_blocked"
	// InformationSupplied: the lab has received the information that it waited for.
	InformationSupplied Trigger = "information_supplied"
	// SampleRejected: the lab cannot use the sample.
	SampleRejected Trigger = "sample_rejected"
	// AppointmentBooked: a visit was booked or requested.
	AppointmentBooked Trigger = "appointment_made"
	// AppointmentConfirmed: the provider confirmed the time of the visit.
	AppointmentConfirmed Trigger = "appointment_confirmed"
	// AppointmentRescheduled: the visit has a new time.
	AppointmentRescheduled Trigger = "appointment_moved"
	// AppointmentCalledOff: the visit will not take place.
	AppointmentCalledOff Trigger = "appointment_dropped"
	// SampleDrawn: the blood was drawn.
	SampleDrawn Trigger = "sample_drawn"
	// PartialResult: the lab reported some of the results.
	PartialResult Trigger = "partial_result"
	// FinalResult: the lab sent its final report.
	FinalResult Trigger = "final_result"
	// CorrectedResult: the lab replaced its final report. If only partial results were received, the final report
	// is implied: the order becomes completed, then corrected.
	CorrectedResult Trigger = "result_corrected"
	// RedrawOffered: the final report lacks results through the lab's fault, and the patient may have a second
	// draw.
	RedrawOffered Trigger = "redraw_offered"
	// CancelRequested: the team cancels the order.
	CancelRequested Trigger = "cancel_asked"
	// Stopped: the service or the lab stops the order.
	Stopped Trigger = "stopped"
)

// Triggers returns all triggers, in the order in which they usually occur.
func Triggers() []Trigger {
	return []Trigger{
		LabAccepted, Imported, PatientAwaited, KitRegistered, KitShipped, KitOutForDelivery, KitDelivered,
		KitDelayed, KitUndeliverable, SampleSent, SampleDelayed, SampleUndeliverable, SampleReceived,
		ParcelLost, LabBlocked, InformationSupplied, SampleRejected, AppointmentBooked, AppointmentConfirmed,
		AppointmentRescheduled, AppointmentCalledOff, SampleDrawn, PartialResult, FinalResult, CorrectedResult,
		RedrawOffered, CancelRequested, Stopped,
	}
}

// Facts are the facts that the transitions of the lifecycle depend on.
type Facts struct {
	// Registrable is true if the order is for a kit that was sent before its patient was known.
	Registrable bool
	// Registered is true if a patient has registered the kit of the order.
	Registered bool
	// Initial is true if the order is the first of its transaction.
	Initial bool
}

// guards are the conditions of transitions, by their names in the lifecycle table and the diagrams.
var guards = map[string]func(Facts) bool{
	"registrable":   registrable,
	"patient known": patientKnown,
	"initial order": initialOrder,
}

func registrable(f Facts) bool { return f.Registrable }

func patientKnown(f Facts) bool {
	// A registrable kit without a patient never gets a result.
	return f.PatientKnown()
}

// PatientKnown reports whether the patient of the order is known; false only for a kit that is not registered.
func (f Facts) PatientKnown() bool { return !f.Registrable || f.Registered }

func initialOrder(f Facts) bool { return f.Initial }

type row = fsm.Row[LowLevel, Trigger, catalogue.CollectionMethod, Facts]

// rows returns a row of the lifecycle table for each status in from. All rows have the same collection methods, guard,
// trigger and target; an empty guard means no condition.
func rows(methods []catalogue.CollectionMethod, guard string, on Trigger, to LowLevel, from ...LowLevel) []row {
	out := make([]row, 0, len(from))
	for _, f := range from {
		out = append(out, row{From: f, On: on, To: to, Variants: methods, Guard: guard})
	}
	return out
}

// lifecycle is the table of all states and transitions. requisition_bypassed has the same transitions as
// requisition_created.
var lifecycle = fsm.Must(fsm.Table[LowLevel, Trigger, catalogue.CollectionMethod, Facts]{
	Initial:  Ordered,
	Variants: catalogue.CollectionMethods(),
	Final: []LowLevel{
		Completed, Corrected, RedrawAvailable, SampleError, FailureToDeliverToCustomer,
		FailureToDeliverToLab, Lost, Cancelled, DoNotProcess,
	},
	Reopen: []LowLevel{Completed, Corrected},
	Rows:   slices.Concat(commonRows(), kitRows(), walkInRows(), atHomeRows(), onSiteRows()),
	Guards: guards,
})

func commonRows() []row {
	const always = ""
	return slices.Concat(
		rows(nil, "patient known", LabAccepted, RequisitionCreated, Ordered),
		rows(nil, always, Imported, RequisitionBypassed, Ordered),
		rows(nil, always, CancelRequested, Cancelled, Ordered, RequisitionCreated, RequisitionBypassed),
		rows(nil, always, CorrectedResult, Corrected, Completed, Corrected),
	)
}

func kitRows() []row {
	kit := []catalogue.CollectionMethod{catalogue.Testkit}
	always := func(on Trigger, to LowLevel, from ...LowLevel) []row { return rows(kit, "", on, to, from...) }
	reg := func(on Trigger, to LowLevel, from ...LowLevel) []row {
		return rows(kit, "registrable", on, to, from...)
	}
	known := func(on Trigger, to LowLevel, from ...LowLevel) []row {
		return rows(kit, "patient known", on, to, from...)
	}
	return slices.Concat(
		// A kit that waits for its patient.
		reg(PatientAwaited, AwaitingRegistration, Ordered),
		reg(CancelRequested, Cancelled, AwaitingRegistration, Registered),
		reg(KitShipped, TransitCustomer, AwaitingRegistration),
		reg(KitRegistered, Registered, AwaitingRegistration, TransitCustomer, OutForDelivery,
			ProblemInTransitCustomer, WithCustomer),
		reg(LabAccepted, RequisitionCreated, Registered),
		reg(SampleSent, TransitLab, RequisitionCreated, RequisitionBypassed),
		reg(KitOutForDelivery, OutForDelivery, RequisitionCreated, RequisitionBypassed),
		reg(KitDelivered, WithCustomer, RequisitionCreated, RequisitionBypassed),
		// The kit is on its way to the patient.
		always(KitShipped, TransitCustomer, RequisitionCreated, RequisitionBypassed, ProblemInTransitCustomer),
		always(KitOutForDelivery, OutForDelivery, TransitCustomer, ProblemInTransitCustomer),
		always(KitDelivered, WithCustomer, TransitCustomer, OutForDelivery, ProblemInTransitCustomer),
		always(KitDelayed, ProblemInTransitCustomer, TransitCustomer, OutForDelivery),
		always(KitUndeliverable, FailureToDeliverToCustomer, TransitCustomer, OutForDelivery,
			ProblemInTransitCustomer),
		// The sample is on its way to the lab.
		always(SampleSent, TransitLab, WithCustomer, ProblemInTransitLab),
		always(SampleDelayed, ProblemInTransitLab, TransitLab),
		always(SampleUndeliverable, FailureToDeliverToLab, TransitLab, ProblemInTransitLab),
		always(SampleReceived, DeliveredToLab, WithCustomer, TransitLab, ProblemInTransitLab),
		always(ParcelLost, Lost, TransitCustomer, OutForDelivery, ProblemInTransitCustomer, TransitLab,
			ProblemInTransitLab, DeliveredToLab, LabProcessingBlocked),
		// The sample is at the lab.
		always(LabBlocked, LabProcessingBlocked, DeliveredToLab),
		always(InformationSupplied, DeliveredToLab, LabProcessingBlocked),
		always(SampleRejected, SampleError, DeliveredToLab, LabProcessingBlocked),
		known(FinalResult, Completed, DeliveredToLab, LabProcessingBlocked),
		always(Stopped, DoNotProcess, Ordered, RequisitionCreated, RequisitionBypassed),
		reg(Stopped, DoNotProcess, AwaitingRegistration, Registered),
	)
}

func walkInRows() []row {
	walkIn := []catalogue.CollectionMethod{catalogue.WalkInTest}
	on := func(on Trigger, to LowLevel, from ...LowLevel) []row { return rows(walkIn, "", on, to, from...) }
	// Appointments are optional: the patient may simply walk in.
	open := []LowLevel{RequisitionCreated, RequisitionBypassed, AppointmentPending, AppointmentScheduled, AppointmentCancelled}
	return slices.Concat(
		on(AppointmentBooked, AppointmentPending, RequisitionCreated, RequisitionBypassed, AppointmentCancelled),
		on(AppointmentConfirmed, AppointmentScheduled, AppointmentPending),
		on(AppointmentRescheduled, AppointmentPending, AppointmentScheduled),
		on(AppointmentCalledOff, AppointmentCancelled, AppointmentPending, AppointmentScheduled),
		on(CancelRequested, Cancelled, AppointmentPending, AppointmentScheduled, AppointmentCancelled),
		on(PartialResult, PartialResults, append(slices.Clone(open), PartialResults)...),
		on(FinalResult, Completed, append(slices.Clone(open), PartialResults)...),
		rows(walkIn, "initial order", RedrawOffered, RedrawAvailable, append(slices.Clone(open), PartialResults)...),
		on(SampleRejected, SampleError, append(slices.Clone(open), PartialResults)...),
	)
}

func atHomeRows() []row {
	on := func(on Trigger, to LowLevel, from ...LowLevel) []row {
		return rows([]catalogue.CollectionMethod{catalogue.AtHomePhlebotomy}, "", on, to, from...)
	}
	return slices.Concat(
		on(AppointmentBooked, AppointmentPending, RequisitionCreated, RequisitionBypassed, AppointmentCancelled),
		on(AppointmentConfirmed, AppointmentScheduled, AppointmentPending, AppointmentCancelled),
		on(AppointmentRescheduled, AppointmentScheduled, AppointmentScheduled),
		on(AppointmentCalledOff, AppointmentCancelled, AppointmentPending, AppointmentScheduled),
		on(CancelRequested, Cancelled, AppointmentPending, AppointmentScheduled, AppointmentCancelled, DrawCompleted),
		on(SampleDrawn, DrawCompleted, AppointmentScheduled),
		// Results may arrive before the notice that the blood was drawn.
		on(PartialResult, PartialResults, AppointmentPending, AppointmentScheduled, DrawCompleted, PartialResults),
		on(FinalResult, Completed, AppointmentPending, AppointmentScheduled, DrawCompleted, PartialResults),
		on(SampleRejected, SampleError, AppointmentScheduled, DrawCompleted, PartialResults),
	)
}

func onSiteRows() []row {
	on := func(on Trigger, to LowLevel, from ...LowLevel) []row {
		return rows([]catalogue.CollectionMethod{catalogue.OnSiteCollection}, "", on, to, from...)
	}
	// Results may arrive without a report of the draw.
	drawn := []LowLevel{RequisitionCreated, RequisitionBypassed, DrawCompleted, PartialResults}
	return slices.Concat(
		on(SampleDrawn, DrawCompleted, RequisitionCreated, RequisitionBypassed),
		on(CancelRequested, Cancelled, DrawCompleted),
		on(PartialResult, PartialResults, drawn...),
		on(FinalResult, Completed, drawn...),
		on(SampleRejected, SampleError, drawn...),
	)
}

// stages maps low-level statuses to stages, if the collection method does not matter.
var stages = map[LowLevel]Stage{
	Ordered:                    StageReceived,
	RequisitionCreated:         StageReceived,
	RequisitionBypassed:        StageReceived,
	AwaitingRegistration:       StageReceived,
	Registered:                 StageReceived,
	TransitCustomer:            StageCollectingSample,
	OutForDelivery:             StageCollectingSample,
	WithCustomer:               StageCollectingSample,
	TransitLab:                 StageCollectingSample,
	ProblemInTransitCustomer:   StageCollectingSample,
	ProblemInTransitLab:        StageCollectingSample,
	AppointmentPending:         StageCollectingSample,
	AppointmentScheduled:       StageCollectingSample,
	AppointmentCancelled:       StageCollectingSample,
	DrawCompleted:              StageCollectingSample,
	RedrawAvailable:            StageCollectingSample,
	DeliveredToLab:             StageSampleWithLab,
	LabProcessingBlocked:       StageSampleWithLab,
	PartialResults:             StageSampleWithLab,
	Completed:                  StageCompleted,
	Corrected:                  StageCompleted,
	SampleError:                StageFailed,
	FailureToDeliverToCustomer: StageFailed,
	FailureToDeliverToLab:      StageFailed,
	Lost:                       StageFailed,
	Cancelled:                  StageCancelled,
	DoNotProcess:               StageCancelled,
}

// StageOf returns the stage of a low-level status under a collection method. The method matters only for DrawCompleted:
// it belongs to StageSampleWithLab with on-site collection, and to StageCollectingSample otherwise.
func StageOf(m catalogue.CollectionMethod, l LowLevel) Stage {
	if m == catalogue.OnSiteCollection && l == DrawCompleted {
		return StageSampleWithLab
	}
	return stages[l]
}

// Next returns the status after a trigger for an order of this method and these facts; false if the trigger is
// not allowed.
func Next(m catalogue.CollectionMethod, from LowLevel, on Trigger, f Facts) (LowLevel, bool) {
	return lifecycle.Next(m, from, on, f)
}

// Diagram returns the lifecycle of a method as a Mermaid state diagram.
func Diagram(m catalogue.CollectionMethod) string { return lifecycle.Mermaid(m) }

// LowLevels returns the low-level statuses of a method's orders, in the order of the lifecycle.
func LowLevels(m catalogue.CollectionMethod) []LowLevel { return lifecycle.States(m) }

// Final reports whether an order may end in this status. Completed and corrected are
// final too, although a correction may follow.
func (l LowLevel) Final() bool { return lifecycle.Final(l) }

// Cancellable reports whether a team may cancel an order with these facts in this
// status. Only the current status counts, not the history.
func Cancellable(m catalogue.CollectionMethod, l LowLevel, f Facts) bool {
	_, ok := Next(m, l, CancelRequested, f)
	return ok
}

// Status is a full order status: <stage>.<collection method>.<low level>.
type Status string

// StatusOf builds a full status.
func StatusOf(m catalogue.CollectionMethod, l LowLevel) Status {
	return Status(string(StageOf(m, l)) + "." + string(m) + "." + string(l))
}

// Statuses returns every full status that an order can have, by method.
func Statuses() []Status {
	var out []Status
	for _, m := range catalogue.CollectionMethods() {
		for _, l := range LowLevels(m) {
			out = append(out, StatusOf(m, l))
		}
	}
	return out
}

// statusAliases are old names of statuses, which are read and never written.
var statusAliases = map[Status]Status{
	"received.testkit.testkit_registered":                 StatusOf(catalogue.Testkit, Registered),
	"collecting_sample.on_site_collection.draw_completed": StatusOf(catalogue.OnSiteCollection, DrawCompleted),
}

// ParseStatus parses a full status of an order, or an old name of one; false for anything else.
func ParseStatus(s string) (Status, bool) {
	if canonical, ok := statusAliases[Status(s)]; ok {
		return canonical, true
	}
	return Status(s), slices.Contains(Statuses(), Status(s))
}

// Stage returns the first of the three parts of a status; empty if s does not have three parts.
func (s Status) Stage() Stage { return Stage(s.part(0)) }

// Method returns the second of the three parts of a status; empty if s does not have three parts.
func (s Status) Method() catalogue.CollectionMethod { return catalogue.CollectionMethod(s.part(1)) }

// LowLevel returns the last of the three parts of a status; empty if s does not have three parts.
func (s Status) LowLevel() LowLevel { return LowLevel(s.part(2)) }

func (s Status) part(i int) string {
	if canonical, ok := statusAliases[s]; ok {
		s = canonical
	}
	parts := strings.Split(string(s), ".")
	if len(parts) != 3 {
		return ""
	}
	return parts[i]
}

// Lifecycle is the lifecycle of the orders of a collection method, for the HTTP API.
type Lifecycle struct {
	Method catalogue.CollectionMethod `json:"method"`
	// Statuses are the statuses of an order, in the order of the lifecycle.
	Statuses    []LifecycleStatus     `json:"statuses"`
	Transitions []LifecycleTransition `json:"transitions"`
}

// LifecycleStatus is a low-level status of a lifecycle.
type LifecycleStatus struct {
	Status LowLevel `json:"status"`
	Stage  Stage    `json:"stage"`
	// Final is true if an order may end in this status.
	Final bool `json:"final"`
}

// LifecycleTransition is a transition: a trigger leads from one status to another.
type LifecycleTransition struct {
	From LowLevel `json:"from"`
	On   Trigger  `json:"on"`
	To   LowLevel `json:"to"`
	// Condition is a further requirement; nil if the trigger suffices.
	Condition *string `json:"condition"`
}

// Lifecycles returns the lifecycle of each collection method.
func Lifecycles() []Lifecycle {
	var list []Lifecycle
	for _, m := range catalogue.CollectionMethods() {
		l := Lifecycle{Method: m}
		statuses := LowLevels(m)
		for _, s := range statuses {
			l.Statuses = append(l.Statuses, LifecycleStatus{Status: s, Stage: StageOf(m, s), Final: s.Final()})
		}
		for _, r := range lifecycle.Rows() {
			if len(r.Variants) > 0 && !slices.Contains(r.Variants, m) || !slices.Contains(statuses, r.From) {
				continue
			}
			t := LifecycleTransition{From: r.From, On: r.On, To: r.To}
			if r.Guard != "" {
				t.Condition = &r.Guard
			}
			l.Transitions = append(l.Transitions, t)
		}
		list = append(list, l)
	}
	return list
}

// Ending describes the consequences of a final status.
type Ending struct {
	// VisitTookPlace is true if the status completes a confirmed appointment that has started. Any other active
	// appointment is cancelled, and its slot freed at its provider.
	VisitTookPlace bool
	// TakeBack asks the laboratory to cancel the order, including a shipment.
	TakeBack bool
	// WithdrawResults hides results that were reported before.
	WithdrawResults bool
	// TakesResult is true if an accepted result under review corrects the order. If false, a new order that
	// replaces this one gets the result.
	TakesResult bool
	// Detail is the status detail if the laboratory or the carrier gives none.
	Detail StatusDetail
}

// endings has every final status of the lifecycle. A final status also ends reminders, which are sent only
// while an order has the status that they are for.
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

// EndingOf returns the consequences of a final status; false for a status that is not final.
func EndingOf(l LowLevel) (Ending, bool) {
	e, ok := endings[l]
	return e, ok
}

// statusDetails lists the possible status details of each low-level status; a status without details is
// missing.
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

// StatusDetails returns the possible status details of a low-level status; nil for most.
func StatusDetails(l LowLevel) []StatusDetail { return slices.Clone(statusDetails[l]) }
