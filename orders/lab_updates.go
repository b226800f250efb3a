package orders

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

// maxMessages bounds how many ids of messages an order remembers.
const maxMessages = 200

// feedPause says when a feed that failed is read again: after a second, then twice as long
// each time, at most a minute. So an outage of the lab is a line in the log each minute.
// Safe for concurrent use.
type feedPause struct {
	mu       sync.Mutex
	failures int
	until    time.Time
}

// over reports whether the feed may be read.
func (p *feedPause) over(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !now.Before(p.until)
}

// read notes how a reading ended.
func (p *feedPause) read(now time.Time, err error) {
	const first, doublings, longest = time.Second, 6, time.Minute
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.failures, p.until = 0, time.Time{}
		return
	}
	p.until = now.Add(min(first<<min(p.failures, doublings), longest))
	p.failures++
}

// runUpdates takes in what the lab reports, until ctx ends. The feed is one process's at a
// time.
func (s *Service) runUpdates(ctx context.Context) error {
	type feed struct {
		cursor string
		until  time.Time
	}
	var pause feedPause
	loop := &work.Loop[feed]{
		Name: "lab updates",
		Claim: func(ctx context.Context, _ int) ([]feed, error) {
			if !pause.over(s.now()) {
				return nil, nil
			}
			cursor, until, err := s.store.ClaimFeed(ctx, s.opts.LabName, s.opts.Lease)
			if err != nil || until.IsZero() {
				return nil, err
			}
			return []feed{{cursor, until}}, nil
		},
		Do: func(ctx context.Context, f feed) error {
			_, err := s.pull(ctx, f.cursor, f.until)
			pause.read(s.now(), err)
			return err
		},
		// One would do; with two, a claim that got the feed still waits before the next.
		Workers: 2, Idle: s.opts.Idle, Log: s.opts.Log,
	}
	return loop.Run(ctx)
}

// TakeUpdates takes in what the lab has to report now, and returns how many messages
// that were: for hosts that bring their own scheduler. Zero also means that another
// process is at it.
func (s *Service) TakeUpdates(ctx context.Context) (int, error) {
	cursor, until, err := s.store.ClaimFeed(ctx, s.opts.LabName, s.opts.Lease)
	if err != nil || until.IsZero() {
		return 0, err
	}
	return s.pull(ctx, cursor, until)
}

// pull reads the feed to its end, or until the claim, which is of this moment, is about to
// end. The cursor is kept afterwards, so a message is taken in at least once; its id makes
// that exactly once.
func (s *Service) pull(ctx context.Context, cursor string, until time.Time) (int, error) {
	const batch = 100
	taken, stop := 0, s.now().Add(s.opts.Lease-s.opts.LabTimeout)
	for {
		call, cancel := context.WithTimeout(ctx, s.opts.LabTimeout)
		b, err := s.lab.Updates(call, cursor, batch)
		cancel()
		if err == nil {
			for _, m := range b.Messages {
				if err = s.Receive(ctx, m); err != nil {
					break
				}
				taken++
			}
		}
		if err != nil {
			return taken, errors.Join(fmt.Errorf("lab updates: %w", err), s.store.MoveFeed(ctx, s.opts.LabName, until, cursor))
		}
		cursor = b.Cursor
		if len(b.Messages) < batch || !s.now().Before(stop) {
			return taken, s.store.MoveFeed(ctx, s.opts.LabName, until, cursor)
		}
	}
}

// Receive handles one message of a lab. A message changes nothing and is no error, so that the
// lab's feed continues, if it was received before, is about an unknown order, names an order and
// the specimen of another one, or does not fit the order's status. Results of such messages are
// held for review ([Options.Reviews]). After an error the caller must pass the message again.
func (s *Service) Receive(ctx context.Context, m Message) error {
	if m.reports() {
		return s.receiveResults(ctx, m)
	}
	return s.receive(ctx, m)
}

// reports says whether a message is a report of results.
func (m Message) reports() bool { return m.Results != nil && !slices.Contains(notTheLabs, m.On) }

// receiveResults takes in results: by themselves where they belong to an order for
// certain, else they are held for review.
func (s *Service) receiveResults(ctx context.Context, m Message) error {
	if held, err := s.isHeld(ctx, m); held || err != nil {
		return err
	}
	const tries = 4 // an order may change between the judgement and its effect
	contradicted := false
	for range tries {
		w, err := s.evaluate(ctx, m)
		if err != nil {
			return fmt.Errorf("evaluate lab results: %w", err)
		}
		if contradicted {
			w.judgement = judgement{code: MatchSampleMismatch, reason: "the order cannot have the specimen of the result"}
		}
		if w.tied != nil && slices.Contains(w.tied.Messages, m.ID) {
			return nil
		}
		if w.to.IsZero() {
			if s.opts.Reviews == nil {
				s.opts.Log.Warn("lab results match no order for certain", "message", m.ID, "decision", string(w.code))
				s.dropReport(ctx, m)
				return nil
			}
			settings, err := s.opts.Settings(ctx, m.Team)
			if err != nil {
				return fmt.Errorf("team settings: %w", err)
			}
			if err := s.opts.Accessed(ctx, m.Team, healthlab.UserID{}); err != nil {
				return fmt.Errorf("record access: %w", err)
			}
			return s.hold(ctx, m, w, settings)
		}
		// The order that was judged is named from here on.
		m.Order = w.to
		err = s.receive(ctx, m)
		contradicted = errors.Is(err, errOthers)
		if !contradicted && !errors.Is(err, errMoved) {
			return err
		}
	}
	return fmt.Errorf("take in lab results: %w", healthlab.Unavailable)
}

var (
	// errMoved says that an order is not what it was when a result was given to it.
	errMoved = errors.New("the order has changed since the results were evaluated")
	// errOthers says that another order has the specimen of a result.
	errOthers = errors.New("another order has the specimen")
)

func (s *Service) receive(ctx context.Context, m Message) error {
	r, err := s.addressee(ctx, m)
	if errors.Is(err, healthlab.NotFound) && m.reports() {
		return errMoved
	}
	if errors.Is(err, healthlab.NotFound) {
		s.opts.Log.Warn("lab message matches no order", "message", m.ID, "on", string(m.On))
		return nil
	}
	if err != nil {
		return fmt.Errorf("find order of lab message: %w", err)
	}
	if err := s.opts.Accessed(ctx, m.Team, r.UserID); err != nil {
		return fmt.Errorf("record access: %w", err)
	}
	if m, err = s.complete(ctx, m, r.LabTest); err != nil {
		return err
	}
	settings, err := s.opts.Settings(ctx, m.Team)
	if err != nil {
		return fmt.Errorf("team settings: %w", err)
	}
	at := s.now()
	ids := s.steps(maxImplied+1, at, settings)
	if m.On != "" {
		s.formURLs(ctx, &r, ids)
	}
	critical := s.opts.NewID()
	if child, ok := s.redraw(&r, m, settings); ok && !r.UserDeleted {
		return s.offerRedraw(ctx, r.ID, child, m, ids, critical)
	}
	var refused error
	_, err = s.allOrders.Update(ctx, m.Team, r.ID, func(r *Record) ([]healthlab.Event, error) {
		refused = nil
		if err := r.once(m); err != nil {
			return nil, err
		}
		if m.Results != nil && m.patient().of(r.PatientDetails) == differs {
			return nil, errMoved
		}
		events, err := r.receive(m, ids)
		var transition *TransitionError
		var rule *healthlab.RuleError
		if errors.As(err, &transition) && m.reports() {
			return nil, errMoved
		}
		if errors.As(err, &transition) || m.Visit != nil && errors.As(err, &rule) {
			refused = err
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		more, err := r.alarm(healthlab.At(at), healthlab.At(at), critical)
		return append(events, more...), err
	})
	switch {
	case errors.Is(err, errTaken):
		return nil
	case errors.Is(err, healthlab.Conflict) && m.reports():
		return errOthers
	case errors.Is(err, healthlab.Conflict), errors.Is(err, healthlab.Invalid):
		s.unkept(m, err)
	case errors.Is(err, errMoved):
		return err
	case err != nil:
		return fmt.Errorf("take in lab message: %w", err)
	case refused != nil:
		s.opts.Log.Warn("lab message makes no sense", "message", m.ID, "fault", refused.Error())
	}
	return nil
}

// unkept notes a message with another order's sample id, with text that cannot be kept, or
// of a person who was erased. Handing it in again will not help, and the feed must go on.
func (s *Service) unkept(m Message, err error) {
	s.opts.Log.Warn("lab message cannot be taken in", "message", m.ID, "kind", healthlab.KindOf(err).Error())
}

// offerRedraw takes in a final report with results missing through the lab's fault:
// the order ends with the offer, after the steps that it implies, and the patient's
// second try begins.
func (s *Service) offerRedraw(ctx context.Context, id OrderID, child Record, m Message, steps []Step, critical uuid.UUID) error {
	first := s.opts.NewID()
	_, _, err := s.store.InsertAfter(ctx, id, child, func(p, c *Record) ([]healthlab.Event, error) {
		if err := p.once(m); err != nil {
			return nil, err
		}
		if m.patient().of(p.PatientDetails) == differs {
			return nil, errMoved
		}
		path, ok := p.implied(RedrawOffered)
		if !ok {
			return nil, errMoved
		}
		last := len(path) - 1
		at := steps[last].At
		p.specimen(m)
		p.collected(m.CollectedAt)
		p.result(m, at)
		events, err := p.reach(path[:last], m, steps)
		if err != nil {
			return nil, err
		}
		offered, err := addChild(p, c, steps[last], RedrawOffered, first)
		if err != nil {
			return nil, err
		}
		alarm, err := p.alarm(healthlab.At(at), healthlab.At(at), critical)
		return slices.Concat(events, offered, alarm), err
	})
	switch {
	case errors.Is(err, errTaken):
		return nil
	case errors.Is(err, healthlab.Conflict):
		return errOthers
	case errors.Is(err, healthlab.Invalid):
		s.unkept(m, err)
	case err != nil:
		return fmt.Errorf("offer redraw: %w", err)
	}
	return nil
}

// once notes that a message was taken in; errTaken if it was before.
func (r *Record) once(m Message) error {
	if slices.Contains(r.Messages, m.ID) {
		return errTaken
	}
	r.Messages = append(slices.Clone(r.Messages), m.ID)
	if n := len(r.Messages) - maxMessages; n > 0 {
		r.Messages = r.Messages[n:]
	}
	return nil
}

// errTaken ends an update that has nothing to do.
var errTaken = errors.New("message was taken in before")

// ofSample finds the order with the sample id of a message. NotFound also for one that
// no order can have.
func (s *Service) ofSample(ctx context.Context, m Message) (Record, error) {
	r, err := s.allOrders.FindSample(ctx, m.Team, m.SampleID)
	if errors.Is(err, healthlab.Invalid) {
		err = healthlab.NotFound
	}
	return r, err
}

// addressee finds the order that a message is about.
func (s *Service) addressee(ctx context.Context, m Message) (Record, error) {
	if slices.Contains(notTheLabs, m.On) {
		return Record{}, healthlab.NotFound
	}
	if m.Order.IsZero() && m.SampleID != "" {
		return s.ofSample(ctx, m)
	}
	r, err := s.allOrders.Get(ctx, m.Team, m.Order)
	if err == nil && m.SampleID != "" && r.SampleID != nil && *r.SampleID != m.SampleID {
		// Order and specimen contradict each other: whose result is it?
		return Record{}, healthlab.NotFound
	}
	return r, err
}

// What happens to an order without the lab, so that a lab cannot report it.
var notTheLabs = []Trigger{CancelAsked, KitRegistered, Imported, PatientAwaited, RedrawOffered}

// receive lets a message happen to an order. It is pure apart from r.
func (r *Record) receive(m Message, steps []Step) ([]healthlab.Event, error) {
	if m.Visit != nil {
		return r.hear(m.Visit, steps[0].At, steps[0].EventID)
	}
	path, ok := r.implied(m.On)
	// A partial result of a kit has no status, and can be read all the same.
	silent := !ok && m.On == PartialResult && r.silentPartial()
	if !ok && !silent {
		return nil, &TransitionError{Order: r.ID, From: r.LastEvent.Status, On: m.On, To: target(r.Method(), m.On)}
	}
	at := steps[0].At
	r.specimen(m)
	if m.On == LabAccepted {
		r.warn(m.Notice)
	}
	r.track(m.Tracking, healthlab.At(at))
	r.collected(m.CollectedAt)
	if m.Results != nil {
		corrected := r.result(m, at)
		steps = slices.Clone(steps)
		steps[min(max(len(path)-1, 0), len(steps)-1)].Corrected = corrected
	}
	if silent {
		r.UpdatedAt = healthlab.At(at)
		r.rejoin()
		return nil, nil
	}
	return r.reach(path, m, steps)
}

// reach lets the steps of a path happen, of which there are as many as one can be long. It
// is pure apart from r.
func (r *Record) reach(path []Trigger, m Message, steps []Step) (events []healthlab.Event, err error) {
	for i, on := range path {
		st := steps[min(i, len(steps)-1)]
		st.On = on
		if on == m.On {
			st.Detail = m.Detail
		}
		more, err := r.apply(st)
		if err != nil {
			return nil, err
		}
		events = append(events, more...)
		if on == LabAccepted {
			r.Lab.Requisition = true // it has it, whatever became of our call
			r.plan(st.At)
		}
	}
	return events, nil
}

// silentPartial reports whether a partial result can be read although the order has no
// status for it, as with kits.
func (r *Record) silentPartial() bool {
	return r.Method() == catalogue.Testkit && patientKnown(r.Facts()) && !r.LowLevel().Final()
}

// What must have happened before what is reported, if it was not reported: a lab that tests
// a sample has accepted the order and received the sample, and a patient who sent one
// had the kit.
var impliable = []Trigger{LabAccepted, KitShipped, KitDelivered, SampleSent, SampleReceived}

// maxImplied bounds how many steps a message can imply before its own.
const maxImplied = 5

// implied returns the shortest way from where the order stands to what is reported,
// the report included, over steps that it implies. False if there is none.
func (r *Record) implied(on Trigger) ([]Trigger, bool) {
	type way struct {
		at   LowLevel
		path []Trigger
	}
	m, f := r.Method(), r.Facts()
	// A kit on its way says nothing of the requisition of its patient.
	parcel := f.Registrable && slices.Contains([]Trigger{KitShipped, KitOutForDelivery, KitDelivered, KitDelayed, SampleSent}, on)
	seen := map[LowLevel]bool{r.LowLevel(): true}
	for todo := []way{{at: r.LowLevel()}}; len(todo) > 0; todo = todo[1:] {
		w := todo[0]
		if _, ok := Next(m, w.at, on, f); ok {
			return append(w.path, on), true
		}
		if len(w.path) == maxImplied {
			continue
		}
		for _, i := range impliable {
			if to, ok := Next(m, w.at, i, f); ok && !seen[to] && (i != LabAccepted || !parcel) {
				seen[to] = true
				todo = append(todo, way{to, append(slices.Clone(w.path), i)})
			}
		}
	}
	return nil, false
}

// specimen notes the lab's id of the specimen, if none is known.
func (r *Record) specimen(m Message) {
	if m.SampleID != "" && r.SampleID == nil {
		r.SampleID = &m.SampleID
	}
}

// track notes news of the parcel.
func (r *Record) track(t *Tracking, at healthlab.Time) {
	if t == nil || r.Details.Testkit == nil || r.Details.Testkit.Shipment == nil {
		return
	}
	kit, ship := *r.Details.Testkit, *r.Details.Testkit.Shipment
	number, url, courier := &ship.OutboundTrackingNumber, &ship.OutboundTrackingURL, &ship.OutboundCourier
	if t.Inbound {
		number, url, courier = &ship.InboundTrackingNumber, &ship.InboundTrackingURL, &ship.InboundCourier
	}
	for _, n := range []struct {
		field **string
		news  string
	}{{number, t.Number}, {url, t.URL}, {courier, t.Courier}} {
		if n.news != "" {
			*n.field = &n.news
		}
	}
	ship.UpdatedAt, kit.UpdatedAt = at, at
	kit.Shipment = &ship
	r.Details.Testkit = &kit
}
