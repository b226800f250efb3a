package orders

import (
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab/internal/fsm"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

// Trigger is something that happens to an order and may move it along.
type Trigger string

// The triggers, in the order of an order's life.
const (
	// LabAccepted: the lab took the requisition.
	LabAccepted Trigger = "lab_accepted"
	// Imported: the order was placed outside, with its own requisition.
	Imported Trigger = "imported"
	// PatientAwaited: the order was accepted, and its kit has no patient yet.
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
	// ParcelLost: kit or sample is gone.
	ParcelLost Trigger = "parcel_lost"
	// LabBlocked: the lab cannot go on without something; the detail says what.
	LabBlocked Trigger = "lab_blocked"
	// InformationSupplied: what the lab was waiting for has come.
	InformationSupplied Trigger = "information_supplied"
	// SampleRejected: the lab cannot use the sample.
	SampleRejected Trigger = "sample_rejected"
	// AppointmentBooked: a visit was booked or asked for.
	AppointmentBooked Trigger = "appointment_made"
	// AppointmentConfirmed: the visit has its time.
	AppointmentConfirmed Trigger = "appointment_confirmed"
	// AppointmentRescheduled: the visit gets another time.
	AppointmentRescheduled Trigger = "appointment_moved"
	// AppointmentCalledOff: the visit will not take place.
	AppointmentCalledOff Trigger = "appointment_dropped"
	// SampleDrawn: the blood was drawn.
	SampleDrawn Trigger = "sample_drawn"
	// PartialResult: the lab reported some of the results.
	PartialResult Trigger = "partial_result"
	// FinalResult: the lab reported all there will be.
	FinalResult Trigger = "final_result"
	// CorrectedResult: the lab replaced its final report. After partial results alone, the final
	// report is implied, and the order is completed and corrected.
	CorrectedResult Trigger = "result_corrected"
	// RedrawOffered: the lab reported all there will be, lost some of it by its own
	// fault, and the patient may come again.
	RedrawOffered Trigger = "redraw_offered"
	// CancelRequested: the team cancels the order.
	CancelRequested Trigger = "cancel_asked"
	// Stopped: the service or the lab stops the order.
	Stopped Trigger = "stopped"
)

// Triggers returns every trigger, in the order of an order's life.
func Triggers() []Trigger {
	return []Trigger{
		LabAccepted, Imported, PatientAwaited, KitRegistered, KitShipped, KitOutForDelivery, KitDelivered,
		KitDelayed, KitUndeliverable, SampleSent, SampleDelayed, SampleUndeliverable, SampleReceived,
		ParcelLost, LabBlocked, InformationSupplied, SampleRejected, AppointmentBooked, AppointmentConfirmed,
		AppointmentRescheduled, AppointmentCalledOff, SampleDrawn, PartialResult, FinalResult, CorrectedResult,
		RedrawOffered, CancelRequested, Stopped,
	}
}

// Facts is what the guards of the lifecycle look at.
type Facts struct {
	// Registrable: the order is for a kit that was sent before its patient was
	// known.
	Registrable bool
	// Registered: a patient has registered that kit.
	Registered bool
	// Initial: the order is the first of its transaction.
	Initial bool
}

// Guards of the lifecycle, by the name that the table and the diagrams show.
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

// PatientKnown reports whether the patient of the order is known: always, but for a kit that
// was not registered.
func (f Facts) PatientKnown() bool { return !f.Registrable || f.Registered }

func initialOrder(f Facts) bool { return f.Initial }

type row = fsm.Row[LowLevel, Trigger, catalogue.CollectionMethod, Facts]

// rows spells out a transition that starts in several states.
func rows(methods []catalogue.CollectionMethod, guard string, on Trigger, to LowLevel, from ...LowLevel) []row {
	out := make([]row, 0, len(from))
	for _, f := range from {
		out = append(out, row{From: f, On: on, To: to, Variants: methods, Guard: guard})
	}
	return out
}

// lifecycle is the whole automaton. A requisition that was bypassed has exactly the
// exits of one that was created.
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
		// To the patient.
		always(KitShipped, TransitCustomer, RequisitionCreated, RequisitionBypassed, ProblemInTransitCustomer),
		always(KitOutForDelivery, OutForDelivery, TransitCustomer, ProblemInTransitCustomer),
		always(KitDelivered, WithCustomer, TransitCustomer, OutForDelivery, ProblemInTransitCustomer),
		always(KitDelayed, ProblemInTransitCustomer, TransitCustomer, OutForDelivery),
		always(KitUndeliverable, FailureToDeliverToCustomer, TransitCustomer, OutForDelivery,
			ProblemInTransitCustomer),
		// To the lab.
		always(SampleSent, TransitLab, WithCustomer, ProblemInTransitLab),
		always(SampleDelayed, ProblemInTransitLab, TransitLab),
		always(SampleUndeliverable, FailureToDeliverToLab, TransitLab, ProblemInTransitLab),
		always(SampleReceived, DeliveredToLab, WithCustomer, TransitLab, ProblemInTransitLab),
		always(ParcelLost, Lost, TransitCustomer, OutForDelivery, ProblemInTransitCustomer, TransitLab,
			ProblemInTransitLab, DeliveredToLab, LabProcessingBlocked),
		// At the lab.
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

// stages gives the top level of each low-level status, where the method does not
// matter.
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

// StageOf returns the top level that a low-level status has under a method. It is a
// function of both: a draw on site puts the sample into the lab's hands at once.
func StageOf(m catalogue.CollectionMethod, l LowLevel) Stage {
	if m == catalogue.OnSiteCollection && l == DrawCompleted {
		return StageSampleWithLab
	}
	return stages[l]
}

// Next returns where a trigger leads an order of this method and these facts, and
// whether it leads anywhere.
func Next(m catalogue.CollectionMethod, from LowLevel, on Trigger, f Facts) (LowLevel, bool) {
	return lifecycle.Next(m, from, on, f)
}

// Diagram draws the lifecycle of a method as a Mermaid state diagram.
func Diagram(m catalogue.CollectionMethod) string { return lifecycle.Mermaid(m) }

// LowLevels returns the low-level statuses that orders of a method can have, from the
// first on.
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

// StatusOf puts a full status together.
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

// statusAliases are names that were in use before. We read them and never write them.
var statusAliases = map[Status]Status{
	"received.testkit.testkit_registered":                 StatusOf(catalogue.Testkit, Registered),
	"collecting_sample.on_site_collection.draw_completed": StatusOf(catalogue.OnSiteCollection, DrawCompleted),
}

// ParseStatus reads a full status that an order can have, or an old name of one. It
// reports false for anything else.
func ParseStatus(s string) (Status, bool) {
	if canonical, ok := statusAliases[Status(s)]; ok {
		return canonical, true
	}
	return Status(s), slices.Contains(Statuses(), Status(s))
}

// Stage returns the first part; empty if s is not of three parts.
func (s Status) Stage() Stage { return Stage(s.part(0)) }

// Method returns the second part; empty if s is not of three parts.
func (s Status) Method() catalogue.CollectionMethod { return catalogue.CollectionMethod(s.part(1)) }

// LowLevel returns the last part; empty if s is not of three parts.
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

// Lifecycle is the published lifecycle of the orders of a collection method.
type Lifecycle struct {
	Method catalogue.CollectionMethod `json:"method"`
	// Statuses are the statuses that an order can have, from the first on.
	Statuses    []LifecycleStatus     `json:"statuses"`
	Transitions []LifecycleTransition `json:"transitions"`
}

// LifecycleStatus is a low-level status of a lifecycle.
type LifecycleStatus struct {
	Status LowLevel `json:"status"`
	Stage  Stage    `json:"stage"`
	// Final says that an order may end in this status.
	Final bool `json:"final"`
}

// LifecycleTransition says that a trigger leads from one status to another.
type LifecycleTransition struct {
	From LowLevel `json:"from"`
	On   Trigger  `json:"on"`
	To   LowLevel `json:"to"`
	// Condition must hold, too; nil if the trigger suffices.
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
