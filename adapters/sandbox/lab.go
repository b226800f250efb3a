package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/simulation"
	"github.com/healthlab-dev/healthlab/orders/visits"
)

// LabOptions adjusts a Lab. The zero value, and nil, mean the defaults.
type LabOptions struct {
	// Now is the lab's clock. Default time.Now.
	Now func() time.Time
	// Step is the time between two status changes of an order. Default 24 h.
	Step time.Duration
	// Catalogue returns the results that each marker of an order has. Nil: each marker has one result.
	Catalogue catalogue.Source
	// Outcome decides the outcome of a new order. Default: [OutcomeFromPassthrough].
	Outcome func(orders.Order) Outcome
	// PatientManaged lists the slugs of labs that make appointments directly with the patient and confirm them later.
	PatientManaged []string
	// VisitOutcome decides the outcome of an appointment, and of a call that moves it. Default:
	// [VisitOutcomeFromNotes].
	VisitOutcome func(visits.Booking) VisitOutcome
}

// Lab is a simulated laboratory with the carrier of its kits. It takes orders, sends kits, receives samples and reports
// results, one step after another by its clock. It implements [exchange.LabBackend], and fails as its options say. It
// is deterministic: the same orders at the same times cause the same messages.
//
// It keeps its orders in memory. It is safe for concurrent use.
type Lab struct {
	opts LabOptions
	boot string // start time, which distinguishes cursors of this Lab from those of an earlier process

	mu     sync.Mutex
	orders map[orders.OrderID]*labOrder
	due    work.Due[source]             // time of the next step of each source
	early  map[orders.OrderID]*labOrder // states of orders of which so far only an appointment has arrived
	visits map[uuid.UUID]*labVisit
	taken  map[string]int // number of bookings of each slot, by its key
	sent   []exchange.Message
}

// source is an order or appointment with scheduled steps.
type source interface {
	// next returns the time of the next step, and whether there is one.
	next(l *Lab) (time.Time, bool)
	// message executes the next step, at the instant at, and returns the message that reports it.
	message(l *Lab, at time.Time) exchange.Message
	// repeats returns how many more times each message is sent.
	repeats() int
}

// labOrder is one order at the lab.
type labOrder struct {
	order     orders.Order
	outcome   Outcome
	expected  map[int][]catalogue.ExpectedResult
	sample    string
	tries     int
	kit       time.Time // when the kit was requested; zero if it was not
	request   time.Time // when the lab was asked to test the sample; zero if not yet
	cancelled bool
	told      int       // number of steps of the plan that were reported
	count     int       // number of all messages; it is part of a message's id
	visited   bool      // an appointment was booked, which reports the steps of the visit
	drawn     time.Time // end of the booked appointment; zero before
}

// NewLab returns a laboratory without orders.
func NewLab(opts *LabOptions) *Lab {
	l := &Lab{orders: map[orders.OrderID]*labOrder{}, visits: map[uuid.UUID]*labVisit{}, taken: map[string]int{}, early: map[orders.OrderID]*labOrder{}}
	if opts != nil {
		l.opts = *opts
	}
	if l.opts.Now == nil {
		l.opts.Now = time.Now
	}
	if l.opts.Step <= 0 {
		l.opts.Step = 24 * time.Hour
	}
	if l.opts.Outcome == nil {
		l.opts.Outcome = OutcomeFromPassthrough
	}
	if l.opts.VisitOutcome == nil {
		l.opts.VisitOutcome = func(b visits.Booking) VisitOutcome { return VisitOutcomeFromNotes(b.Notes) }
	}
	l.boot = strconv.FormatInt(l.opts.Now().UnixNano(), 36)
	return l
}

// Submit implements [exchange.LabBackend].
func (l *Lab) Submit(ctx context.Context, s exchange.Submission) (exchange.Accepted, error) {
	if err := ctx.Err(); err != nil {
		return exchange.Accepted{}, err
	}
	var expected map[int][]catalogue.ExpectedResult
	if l.opts.Catalogue != nil {
		var err error
		if expected, err = l.opts.Catalogue.ExpectedResults(ctx, s.Order.LabTest.MarkerIDs()); err != nil {
			return exchange.Accepted{}, fmt.Errorf("expected results: %w", err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.opts.Now()
	o := l.orders[s.Order.ID]
	if o == nil {
		o = &labOrder{outcome: l.opts.Outcome(s.Order), sample: sampleID(s.Order.ID), expected: expected}
		if early := l.early[s.Order.ID]; early != nil {
			o.visited, o.drawn = early.visited, early.drawn
			delete(l.early, s.Order.ID)
		}
	}
	o.tries++
	switch {
	case o.outcome.Refused:
		return exchange.Accepted{}, fmt.Errorf("%w: the lab refuses the order, because LabOptions.Outcome says so", healthlab.Invalid)
	case o.tries <= o.outcome.Down:
		l.orders[s.Order.ID] = o
		return exchange.Accepted{}, fmt.Errorf("%w: the lab does not answer, because LabOptions.Outcome says so", healthlab.Unavailable)
	case o.cancelled:
		return exchange.Accepted{}, fmt.Errorf("%w: the order was cancelled", healthlab.Invalid)
	}
	l.orders[s.Order.ID] = o
	o.order = s.Order
	switch {
	case s.Stage == exchange.SubmitKit && o.kit.IsZero():
		o.kit = now
	case s.Stage == exchange.SubmitRequisition && o.request.IsZero():
		o.request = now
	}
	l.schedule(o)
	if o.tries <= o.outcome.Down+o.outcome.Silent {
		// The lab has stored the order, but the answer does not arrive.
		return exchange.Accepted{}, context.DeadlineExceeded
	}
	if o.outcome.Slow {
		return exchange.Accepted{}, nil
	}
	return exchange.Accepted{SampleID: o.sample, Notice: o.notice()}, nil
}

// notice returns a notice that the insurance will probably not pay for the tests; nil unless the outcome says so.
func (o *labOrder) notice() *orders.CoverageNotice {
	if !o.outcome.Uncovered {
		return nil
	}
	const each = 2900 // cents
	n := &orders.CoverageNotice{}
	for _, m := range o.order.LabTest.Markers {
		n.Items = append(n.Items, orders.CoverageItem{Name: m.Name, Reason: "Insurers pay for this test only with certain diagnoses.", CostMinor: each})
	}
	return n
}

// Cancel implements [exchange.LabBackend].
func (l *Lab) Cancel(ctx context.Context, _ healthlab.TeamID, id orders.OrderID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance(l.opts.Now())
	switch o := l.orders[id]; {
	case o == nil:
		return nil
	case o.outcome.TooLateToCancel && !o.cancelled:
		return fmt.Errorf("%w: it is too late to cancel the order, because LabOptions.Outcome says so", healthlab.Precondition)
	default:
		o.cancelled = true
		l.schedule(o)
		return nil
	}
}

// Updates implements [exchange.LabBackend]. A cursor of another Lab, or of an earlier process, starts from the first
// message.
func (l *Lab) Updates(ctx context.Context, cursor string, n int) (exchange.Batch, error) {
	if err := ctx.Err(); err != nil {
		return exchange.Batch{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance(l.opts.Now())
	first := 0
	if boot, place, ok := strings.Cut(cursor, ":"); ok && boot == l.boot {
		if i, err := strconv.Atoi(place); err == nil && i >= 0 && i <= len(l.sent) {
			first = i
		}
	}
	last := min(first+max(n, 0), len(l.sent))
	return exchange.Batch{
		Messages: slices.Clone(l.sent[first:last]),
		Cursor:   l.boot + ":" + strconv.Itoa(last),
	}, nil
}

// schedule stores when the next step of a source is due.
func (l *Lab) schedule(s source) {
	at, ok := s.next(l)
	if !ok {
		at = time.Time{}
	}
	l.due.Set(s, at)
}

// advance executes all due steps, oldest first.
func (l *Lab) advance(now time.Time) {
	for {
		next, at, ok := l.due.First()
		if !ok || at.After(now) {
			return
		}
		m := next.message(l, at)
		l.schedule(next)
		for range 1 + next.repeats() {
			l.sent = append(l.sent, m)
		}
	}
}

// next implements [source].
func (o *labOrder) next(l *Lab) (time.Time, bool) {
	step := l.opts.Step
	if o.cancelled {
		return time.Time{}, false
	}
	plan := o.plan()
	if o.told == len(plan) {
		return time.Time{}, false
	}
	// A kit is shipped without its patient, and no other step precedes the requisition.
	parcel := 0
	if !o.kit.IsZero() {
		for parcel < len(plan) && plan[parcel].parcel {
			parcel++
		}
	}
	if o.told < parcel {
		return o.kit.Add(time.Duration(o.told+1) * step), true
	}
	if o.request.IsZero() {
		return time.Time{}, false
	}
	start := o.request
	if o.visited && o.order.Method() == catalogue.AtHomePhlebotomy && plan[o.told].on != orders.LabAccepted {
		if start = o.drawn; start.IsZero() {
			return time.Time{}, false
		}
		parcel = 0
		if o.outcome.Slow {
			parcel = 1 // the lab accepts the order before the visit
		}
	}
	if at := o.kit.Add(time.Duration(parcel) * step); !o.kit.IsZero() && at.After(start) {
		start = at
	}
	return start.Add(time.Duration(o.told-parcel+1) * step), true
}

// markVisited marks that an appointment was booked, which reports the steps of the visit. It removes them from the
// plan.
func (o *labOrder) markVisited() {
	if o.visited {
		return
	}
	told := map[orders.Trigger]bool{}
	if o.told > 0 {
		for _, does := range o.plan()[:o.told] {
			told[does.on] = true
		}
	}
	o.visited = true
	if len(told) > 0 {
		plan := o.plan()
		for o.told = 0; o.told < len(plan) && told[plan[o.told].on]; o.told++ {
		}
	}
}

func (o *labOrder) repeats() int { return o.outcome.Repeats }

// message implements [source].
func (o *labOrder) message(_ *Lab, at time.Time) exchange.Message {
	does := o.plan()[o.told]
	o.told++
	o.count++
	m := exchange.Message{
		ID: uuid.NewSHA1(o.order.ID.UUID, []byte(strconv.Itoa(o.count))).String(), Team: o.order.TeamID, Order: o.order.ID,
		SampleID: o.sample, On: does.on, At: at, Detail: does.detail, Tracking: simulation.Tracking(does.on, o.sample),
	}
	if does.on == orders.KitShipped {
		m.ReturnTracking = simulation.Tracking(orders.SampleSent, o.sample)
	}
	if does.on == orders.LabAccepted {
		m.Notice = o.notice()
	}
	if does.on == orders.SampleReceived || does.on == orders.SampleDrawn {
		m.CollectedAt = at
	}
	if does.flags != nil {
		o.order.SampleID = &o.sample
		m.Results = new(simulation.Results(&o.order, o.expected, *does.flags, does.on, at))
		m.Patient = orders.ReportedAs(o.order.PatientDetails)
	}
	return m
}

func sampleID(id orders.OrderID) string {
	return "SBX" + strings.ToUpper(strings.ReplaceAll(uuid.NewSHA1(uuid.Nil, id.UUID[:]).String(), "-", "")[:12])
}
