package orders

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// SimulationFlags says what a simulated lab finds.
type SimulationFlags struct {
	// Interpretation of the order as a whole; normal if empty.
	Interpretation labresult.Interpretation `json:"interpretation"`
	// ResultTypes are taken in turn. If empty, a marker with a known LOINC code has a
	// value with the unit and the reference interval of the marker, or a qualitative
	// result; the others are numeric, comment and range in turn.
	ResultTypes []labresult.Type `json:"result_types"`
	// HasMissingResults: one of the expected results is missing.
	HasMissingResults *bool `json:"has_missing_results"`
}

// SuccessPath returns the triggers that lead an order of a method from its first
// status to its results, if nothing goes wrong.
func SuccessPath(m catalogue.CollectionMethod, registrable bool) []Trigger {
	switch {
	case m == catalogue.Testkit && registrable:
		return []Trigger{PatientAwaited, KitShipped, KitOutForDelivery, KitDelivered, KitRegistered,
			LabAccepted, SampleSent, SampleReceived, FinalResult}
	case m == catalogue.Testkit:
		return []Trigger{LabAccepted, KitShipped, KitOutForDelivery, KitDelivered, SampleSent, SampleReceived, FinalResult}
	case m == catalogue.AtHomePhlebotomy:
		return []Trigger{LabAccepted, AppointmentMade, AppointmentConfirmed, SampleDrawn, FinalResult}
	case m == catalogue.OnSiteCollection:
		return []Trigger{LabAccepted, SampleDrawn, FinalResult}
	default:
		return []Trigger{LabAccepted, FinalResult}
	}
}

// Simulate walks an order to a status, in a sandbox only: along the success path of
// its method as far as that leads there, with all events, and with generated results.
// An empty final status means completed. A kit that is not registered stops where the
// patient has it.
//
// RuleErrors: SANDBOX_ONLY (NotFound) in production, STATUS_OF_OTHER_METHOD,
// STATUS_NOT_REACHABLE.
func (s *Service) Simulate(ctx context.Context, team healthlab.TeamID, id OrderID, final Status, flags SimulationFlags) (Order, error) {
	return s.SimulateSlowly(ctx, team, id, final, flags, 0)
}

// SimulateSlowly is [Service.Simulate] with a time between two steps: the first happens
// at once, the others in the background ([Service.Run]). An order that goes another
// way meanwhile is left alone.
func (s *Service) SimulateSlowly(ctx context.Context, team healthlab.TeamID, id OrderID, final Status, flags SimulationFlags, delay time.Duration) (Order, error) {
	if s.opts.Environment != healthlab.Sandbox {
		return Order{}, rules.Missing(SandboxOnly, "orders are simulated in a sandbox only")
	}
	if err := flags.check(final); err != nil {
		return Order{}, err
	}
	settings, err := s.opts.Settings(ctx, team)
	if err != nil {
		return Order{}, fmt.Errorf("team settings: %w", err)
	}
	kept, err := s.store.Get(ctx, team, id)
	if err != nil {
		return Order{}, fmt.Errorf("simulate order: %w", rules.NotFound(err, OrderNotFound, "the team has no such order"))
	}
	expected, err := s.catalogue.ExpectedResults(ctx, kept.LabTest.MarkerIDs())
	if err != nil {
		return Order{}, fmt.Errorf("find expected results: %w", err)
	}
	at := s.now()
	if again := StatusOf(kept.Method(), RedrawAvailable); final == again && kept.Method() == catalogue.WalkInTest {
		return s.simulateRedraw(ctx, kept, flags, expected, settings, at, delay)
	}
	steps := s.steps(maxSimulated, at, settings)
	s.formURLs(ctx, &kept, steps)
	critical := s.opts.NewID()
	r, err := s.store.Update(ctx, team, id, func(r *Record) ([]healthlab.Event, error) {
		return r.simulate(final, flags, expected, steps, critical, delay)
	})
	if err != nil {
		return Order{}, fmt.Errorf("simulate order: %w", rules.NotFound(err, OrderNotFound, "the team has no such order"))
	}
	return r.Order, nil
}

// simulateRedraw lets the lab of an order lose one of its results by its own fault: the
// order ends with the offer of a redraw, which is an order of its own. Before that, the
// lab has accepted it.
func (s *Service) simulateRedraw(ctx context.Context, r Record, flags SimulationFlags, expected map[int][]catalogue.ExpectedResult, settings Settings, at time.Time, delay time.Duration) (Order, error) {
	unreachable := fmt.Errorf("simulate order: %w", rules.Broken(StatusNotReachable, "the order cannot get there: team, lab or order have no redraws"))
	if !s.redraws(&r, settings) {
		return Order{}, unreachable
	}
	lost := true
	flags.HasMissingResults = &lost
	if _, ok := Next(r.Method(), r.LowLevel(), RedrawOffered, r.Facts()); !ok {
		steps, critical := s.steps(maxSimulated, at, settings), s.opts.NewID()
		s.formURLs(ctx, &r, steps)
		accepted, err := s.store.Update(ctx, r.TeamID, r.ID, func(r *Record) ([]healthlab.Event, error) {
			events, err := r.simulate(StatusOf(r.Method(), RequisitionCreated), flags, expected, steps, critical, 0)
			if err == nil && delay > 0 {
				r.Notifications.Simulation = &Simulation{Final: StatusOf(r.Method(), RedrawAvailable), Flags: flags, Delay: delay, Next: at.Add(delay)}
				r.planNotifications()
			}
			return events, err
		})
		if err != nil || delay > 0 {
			return accepted.Order, err
		}
		r = accepted
	}
	results := Simulated(&r.Order, expected, flags, FinalResult, at)
	m := Message{ID: "simulated " + s.opts.NewID().String(), Team: r.TeamID, Order: r.ID, On: FinalResult, At: at, CollectedAt: at, Results: &results}
	child, ok := s.redraw(&r, m, settings)
	if !ok {
		return Order{}, unreachable
	}
	if err := s.offerRedraw(ctx, r.ID, child, m, s.steps(maxImplied+1, at, settings), s.opts.NewID()); errors.Is(err, errMoved) {
		return Order{}, unreachable
	} else if err != nil {
		return Order{}, fmt.Errorf("simulate order: %w", err)
	}
	return s.Get(ctx, r.TeamID, r.ID)
}

func (f *SimulationFlags) check(final Status) error {
	var p healthlab.Problems
	if final != "" {
		if _, ok := ParseStatus(string(final)); !ok {
			p.Add("enum", "must be <stage>.<collection method>.<low-level status>, such as completed.walk_in_test.completed", "final_status")
		}
	}
	if f.Interpretation != "" {
		rules.OneOf(&p, f.Interpretation, labresult.Interpretations(), "interpretation")
	}
	for i, t := range f.ResultTypes {
		rules.OneOf(&p, t, []labresult.Type{labresult.Numeric, labresult.Range, labresult.Comment, labresult.CodedValue}, "result_types", i)
	}
	return p.Err()
}

// maxSimulated bounds the steps of one simulation; the longest life has fewer.
const maxSimulated = 20

// steps are n steps, all at one time, with an id each for the event that will tell of it.
func (s *Service) steps(n int, at time.Time, settings Settings) []Step {
	steps := make([]Step, n)
	for i := range steps {
		steps[i] = Step{At: at, EventID: s.opts.NewID(), NotifyPartial: settings.PartialWebhooks}
	}
	return steps
}

func (r *Record) simulate(final Status, flags SimulationFlags, expected map[int][]catalogue.ExpectedResult, steps []Step, critical uuid.UUID, delay time.Duration) ([]healthlab.Event, error) {
	target := Completed
	if final != "" {
		final, _ = ParseStatus(string(final))
		if final.Method() != r.Method() {
			return nil, rules.Broken(StatusOfOtherMethod, "the status belongs to another collection method")
		}
		target = final.LowLevel()
	}
	stop := target
	path, ok := r.route(stop)
	if !ok && !patientKnown(r.Facts()) {
		stop = WithCustomer
		path, ok = r.route(stop)
	}
	if !ok {
		return nil, rules.Broken(StatusNotReachable, "the order cannot get there from where it stands")
	}
	r.Notifications.Simulation = nil
	slow := delay > 0 && len(path) > 1
	if slow {
		r.Notifications.Simulation = &Simulation{Final: StatusOf(r.Method(), target), Flags: flags, Delay: delay, Next: steps[0].At.Add(delay)}
	}
	var events []healthlab.Event
	for i := 0; len(path) > 0 && i < len(steps); i++ {
		on, st := path[0], steps[i]
		m := Message{On: on, At: st.At}
		if r.SampleID == nil && (on == LabAccepted || on == KitShipped) {
			m.SampleID = "SIM" + strconv.FormatUint(hash(r.ID.String()), 36)
		}
		m.Tracking = SimulatedTracking(on, rules.TextOf(cmp.Or(r.SampleID, &m.SampleID)))
		m.Detail = simulatedDetails[on]
		if on == PartialResult || on == FinalResult || on == CorrectedResult {
			results := Simulated(&r.Order, expected, flags, on, st.At)
			m.Results, m.CollectedAt = &results, st.At
		}
		more, err := r.receive(m, []Step{st})
		if err != nil {
			return nil, err
		}
		alarm, err := r.alarm(healthlab.At(st.At), healthlab.At(st.At), critical)
		if err != nil {
			return nil, err
		}
		events = append(append(events, more...), alarm...)
		if slow || r.LowLevel() == stop {
			break
		}
		// An appointment may have taken the order further than one step.
		path, _ = r.route(stop)
	}
	// What was simulated needs no lab any more.
	r.Lab.Kit = r.Lab.Kit || r.SampleID != nil
	r.Lab.Requisition = r.Lab.Requisition || r.Reached(RequisitionCreated)
	r.plan(steps[0].At)
	return events, nil
}

// simulatedDetails are the reasons of what goes wrong in a simulation, where the lifecycle
// has several.
var simulatedDetails = map[Trigger]StatusDetail{LabBlocked: DateOfCollectionUnspecified, SampleRejected: SampleQuantityNotSufficient}

// SimulatedTracking is where a simulated parcel can be followed from a step on; nil for a
// step at which no parcel leaves.
func SimulatedTracking(on Trigger, sample string) *Tracking {
	t := Tracking{Inbound: on == SampleSent, Courier: "sandbox_courier"}
	switch on {
	case KitShipped:
		t.Number = "OUT-" + sample
	case SampleSent:
		t.Number = "IN-" + sample
	default:
		return nil
	}
	t.URL = "https://tracking.example.com/" + t.Number
	return &t
}

// Triggers that a simulation does not pull: they need something from outside.
var notSimulated = []Trigger{KitRegistered, Imported, RedrawOffered}

// route returns the triggers from where the order stands to a status: along the
// success path wherever that leads there, and off it for as few steps as possible.
func (r *Record) route(target LowLevel) ([]Trigger, bool) {
	const detour = 100 // steps of the success path that one off it is worth
	m, f := r.Method(), r.Facts()
	onPath := map[LowLevel]Trigger{}
	at := lifecycle.Initial()
	for _, on := range SuccessPath(m, f.Registrable) {
		onPath[at] = on
		at, _ = Next(m, at, on, Facts{Registrable: f.Registrable, Registered: true, Initial: f.Initial})
	}
	type way struct {
		at   LowLevel
		path []Trigger
		cost int
	}
	best := map[LowLevel]int{}
	todo := []way{{at: r.LowLevel()}}
	never := notSimulated
	if !patientKnown(f) {
		// Only its patient can register it, who has to before the sample leaves.
		never = append(slices.Clone(never), SampleSent, SampleReceived)
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
			return w.path, len(w.path) <= maxSimulated
		}
		if cost, seen := best[w.at]; seen && cost <= w.cost {
			continue
		}
		if len(w.path) > 0 {
			best[w.at] = w.cost
		}
		for _, on := range Triggers() {
			to, ok := Next(m, w.at, on, f)
			if !ok || slices.Contains(never, on) || len(w.path) == maxSimulated {
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

// Simulated returns results for an order: those that its markers are expected to
// bring, or one for each marker of which nothing is known. They are made up, and the
// same for the same order, flags and report. A partial report has the first half.
func Simulated(o *Order, expected map[int][]catalogue.ExpectedResult, flags SimulationFlags, on Trigger, at time.Time) labresult.Report {
	due := simulatedDue(o.LabTest, expected)
	lose := on != PartialResult && flags.HasMissingResults != nil && *flags.HasMissingResults
	if lose && len(due) == 1 && flags.Interpretation != "" {
		// The only one is to be read in some way, so it is another one that is missing.
		due = append(due, simulatedOne{missing: labresult.Missing{Name: o.LabTest.Name, Slug: o.LabTest.Slug, SourceMarkers: due[0].missing.SourceMarkers}})
	}
	out := labresult.Report{Metadata: simulatedHead(o, at), Results: []labresult.Result{}}
	if on != PartialResult {
		out.MissingResults = []labresult.Missing{}
	}
	t := healthlab.At(at)
	for i, d := range due {
		if on == PartialResult && i > 0 && i >= (len(due)+1)/2 {
			break
		}
		if lose && i == len(due)-1 {
			d.missing.InferredFailureType = labresult.InternalLabFailure
			out.MissingResults = append(out.MissingResults, d.missing)
			continue
		}
		reading := labresult.Normal
		if flags.Interpretation == labresult.UnknownInterpretation || i == 0 && flags.Interpretation != "" {
			reading = flags.Interpretation // one that is normal would be better than unknown
		}
		seed := hash(o.ID.String(), d.missing.Slug, string(on))
		marker, known := simulatedOf(d.missing.LOINC, d.unit)
		types := flags.ResultTypes
		switch {
		case len(types) > 0:
		case known:
			types = marker.types()
		default:
			types = []labresult.Type{labresult.Numeric, labresult.Comment, labresult.Range}
		}
		r := simulatedResult(types[i%len(types)], reading, seed)
		if known && !marker.qualitative && r.Type == labresult.Numeric {
			r = marker.result(reading, seed)
			d.unit = r.Unit
		}
		r.Name, r.Slug, r.ProviderID, r.SourceMarkers = d.missing.Name, d.missing.Slug, d.missing.ProviderID, d.missing.SourceMarkers
		r.LOINC, r.LOINCSlug, r.Unit = d.missing.LOINC, d.missing.LOINCSlug, d.unit
		r.Timestamp, r.SourceSampleID = &t, o.SampleID
		out.Results = append(out.Results, r)
	}
	out.Metadata.DateCollected, out.Metadata.DateReceived = dayText(at), dayText(at)
	if o.SampleID != nil {
		when := &labresult.TimestampWithOffset{Timestamp: t}
		out.SampleInformation = map[string]labresult.SampleData{*o.SampleID: {SampleID: o.SampleID, DateCollected: when, DateReceived: when, DateReported: when}}
	}
	return out
}

// simulatedOne is a result that is due, told as one that is missing.
type simulatedOne struct {
	missing labresult.Missing
	unit    *string
}

func simulatedDue(t catalogue.LabTest, expected map[int][]catalogue.ExpectedResult) []simulatedOne {
	var due []simulatedOne
	for _, m := range t.Markers {
		source := []labresult.SourceMarker{{MarkerID: m.ID, Name: m.Name, Slug: m.Slug, ProviderID: m.ProviderID}}
		for _, e := range expected[m.ID] {
			d := simulatedOne{labresult.Missing{Name: e.Name, Slug: e.Slug, ProviderID: e.ProviderID, SourceMarkers: source}, m.Unit}
			if e.LOINC != nil {
				d.missing.LOINC, d.missing.LOINCSlug, d.unit = &e.LOINC.Code, &e.LOINC.Slug, e.LOINC.Unit
			}
			due = append(due, d)
		}
		if len(expected[m.ID]) == 0 {
			due = append(due, simulatedOne{labresult.Missing{Name: m.Name, Slug: m.Slug, ProviderID: m.ProviderID, SourceMarkers: source}, m.Unit})
		}
	}
	if len(due) == 0 {
		due = append(due, simulatedOne{missing: labresult.Missing{Name: t.Name, Slug: t.Slug}})
	}
	return due
}

func simulatedHead(o *Order, at time.Time) labresult.Metadata {
	h := labresult.Metadata{DateReported: healthlab.DateOf(at).String(), Patient: o.PatientDetails.Name()}
	if o.PatientDetails != nil {
		h.Age, h.DOB = strconv.Itoa(people.Age(o.PatientDetails.DOB, today(at))), o.PatientDetails.DOB.String()
	}
	if o.SampleID != nil {
		h.SpecimenNumber = *o.SampleID
	}
	if o.LabTest.Lab != nil {
		h.Laboratory = &o.LabTest.Lab.Name
	}
	return h
}

// simulatedResult makes up one result of an unknown marker. Its reference range is 3.0 to
// 7.0.
func simulatedResult(t labresult.Type, reading labresult.Interpretation, seed uint64) labresult.Result {
	tenth := func(n uint64) catalogue.Number { return catalogue.Number{Decimal: decimal.New(int64(n), -1)} }
	low, high, none := tenth(30), tenth(70), catalogue.Number{Decimal: decimal.NewFromInt(-1)}
	span, above, below := "3.0-7.0", false, false
	r := labresult.Result{Type: t, Value: &none, Interpretation: reading, SourceInterpretation: "N"}
	value := tenth(30 + seed%41)
	switch reading {
	case labresult.Abnormal:
		value, above, r.SourceInterpretation = tenth(71+seed%20), true, "H"
	case labresult.Critical:
		value, above, r.SourceInterpretation = tenth(150+seed%20), true, "HH"
	case labresult.UnknownInterpretation:
		r.SourceInterpretation = ""
	default:
	}
	switch t {
	case labresult.Numeric:
		r.Result, r.Value = value.String(), &value
		r.ReferenceRange, r.MinRangeValue, r.MaxRangeValue = &span, &low, &high
		r.IsAboveMaxRange, r.IsBelowMinRange = &above, &below
	case labresult.Range:
		under := "<" + high.String()
		r.Result, r.ReferenceRange, r.MaxRangeValue, r.IsAboveMaxRange = "<"+low.String(), &under, &high, &above
		if above {
			r.Result = ">" + value.String()
		}
		text := r.Result
		r.Notes = &text
	case labresult.CodedValue:
		r.Result = "NOT_DETECTED"
		if above {
			r.Result = "DETECTED"
		}
	default:
		r.Result = "no finding"
		if above {
			r.Result = "finding"
		}
		text := r.Result
		r.Notes = &text
	}
	return r
}

// hash is a number made from texts: the same on every run, and of no other use.
func hash(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		_, _ = h.Write([]byte(p))
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}
