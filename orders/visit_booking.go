package orders

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// Bookings makes and changes the appointments of orders. It is safe for concurrent use.
type Bookings struct{ s *Service }

// Bookings returns what books appointments.
func (s *Service) Bookings() Bookings { return Bookings{s} }

// checkScheduling checks that appointments of a type can be made at all.
func (s *Service) checkScheduling(ctx context.Context, team healthlab.TeamID, t appointment.Type) (Settings, error) {
	settings, err := s.opts.Settings(ctx, team)
	if err != nil {
		return settings, fmt.Errorf("team settings: %w", err)
	}
	if s.bookings == nil || s.visits == nil {
		return settings, appointment.NotOffered()
	}
	return settings, s.appointments.Offer(t, settings.appointments())
}

func methodOfVisit(t appointment.Type) catalogue.CollectionMethod {
	if t == appointment.Phlebotomy {
		return catalogue.AtHomePhlebotomy
	}
	return catalogue.WalkInTest
}

// bookable checks that an appointment can be made for an order as it stands. What is
// held longer than its lease is given up for the new one.
func (r *Record) bookable(t appointment.Type, settings Settings, on healthlab.Date) error {
	if r.Method() != methodOfVisit(t) {
		return rules.Broken(OrderNotBookable, "the order's sample is collected in another way")
	}
	switch low := r.LowLevel(); {
	case low == RequisitionCreated, low == RequisitionBypassed, low == AppointmentCancelled:
	case low == Ordered && settings.PreRequisitionBooking:
	case (low == AppointmentPending || low == AppointmentScheduled) && r.activeVisit() >= 0:
	default:
		return rules.Broken(OrderNotBookable, "an order that is "+string(r.LastEvent.Status)+" takes no appointment")
	}
	if t == appointment.Phlebotomy && (r.PatientDetails == nil || people.Age(r.PatientDetails.DOB, on) < 18) {
		return rules.Broken(PatientTooYoung, "the patient is under 18 on the day of the visit")
	}
	i := r.activeVisit()
	if i < 0 {
		return nil
	}
	if r.Visits[i].Status.Published() || r.VisitWork.Lease.After(r.StoreTime) {
		return rules.Broken(AppointmentExists, "the order has an appointment")
	}
	return nil
}

// Book books a slot for an order. Errors beside Invalid: OrderNotFound, and the
// RuleErrors ORDER_NOT_BOOKABLE, PATIENT_TOO_YOUNG, APPOINTMENT_EXISTS,
// BOOKING_KEY_INVALID, SLOT_NOT_AVAILABLE, SLOT_OF_OTHER_PLACE, SITE_UNKNOWN,
// BOOKING_REFUSED.
//
// If the provider does not answer in time, or does not confirm at once, the appointment is
// pending, and is confirmed or cancelled in the background. While another call books with
// the same key, it is IDEMPOTENCY_IN_PROGRESS (Conflict).
func (b Bookings) Book(ctx context.Context, team healthlab.TeamID, id OrderID, t appointment.Type, req BookRequest) (Appointment, error) {
	if err := req.Check(); err != nil {
		return Appointment{}, err
	}
	settings, err := b.s.checkScheduling(ctx, team, t)
	if err != nil {
		return Appointment{}, err
	}
	async := req.AsyncConfirmation && t == appointment.PatientServiceCenter
	if async && !settings.AsyncConfirmation {
		return Appointment{}, rules.NotEnabled("asynchronous confirmation")
	}
	at := b.s.now()
	key, err := b.s.appointments.OpenKey(ctx, team, t, req.BookingKey, at)
	if err != nil {
		return Appointment{}, err
	}
	p, known := b.s.appointments.Provider(t, key.Slot.Provider)
	switch {
	case t == appointment.PatientServiceCenter && !known:
		return Appointment{}, rules.Broken(appointment.SchedulingNotSupported, "the lab takes no appointments")
	case p.PatientManaged && !settings.PatientManagedPSC:
		return Appointment{}, rules.NotEnabled("a patient-managed provider")
	}
	v := Visit{PatientManaged: p.PatientManaged, Slot: key.Slot, Keys: []uuid.UUID{key.ID}, Open: true, Next: at,
		Deadline: at.Add(defaultAsyncTimeout)}
	wait := min(b.s.opts.LabTimeout, defaultSyncTimeout)
	if async {
		v.Deadline = at.Add(millis(req.AsyncConfirmationTimeoutMillisecond, defaultAsyncTimeout))
		wait = min(b.s.opts.LabTimeout, millis(req.SyncConfirmationTimeoutMillisecond, defaultSyncTimeout))
	}
	v.Type, v.Provider, v.AppointmentNotes = t, key.Slot.Provider, req.AppointmentNotes
	if v.Appointment, err = b.s.placeOf(ctx, v.Appointment, key); err != nil {
		return Appointment{}, err
	}
	if t == appointment.Phlebotomy {
		if err := b.s.nearPatient(ctx, team, id, v.Address.ZipCode, "booking_key"); err != nil {
			return Appointment{}, err
		}
	}
	return b.s.book(ctx, team, id, v, key, settings, at, wait)
}

// CheckBookingIdempotency checks that the team's bookings at centers take an idempotency key.
// RuleError FEATURE_NOT_ENABLED (Forbidden).
func (b Bookings) CheckBookingIdempotency(ctx context.Context, team healthlab.TeamID) error {
	settings, err := b.s.opts.Settings(ctx, team)
	if err != nil {
		return fmt.Errorf("team settings: %w", err)
	}
	if !settings.BookingIdempotency {
		return rules.NotEnabled("an idempotency key for bookings")
	}
	return nil
}

// placeOf fills in where and when an appointment with a slot takes place.
func (s *Service) placeOf(ctx context.Context, a Appointment, k appointment.BookingKey) (Appointment, error) {
	start, end := healthlab.At(k.Slot.Start), healthlab.At(k.Slot.End)
	a.StartAt, a.EndAt, a.Location = &start, &end, k.Slot.Location
	zone := k.Slot.Zone
	if k.Type == appointment.PatientServiceCenter {
		center, err := s.appointments.Center(ctx, k.Lab, k.Slot.SiteCode)
		if err != nil {
			return a, err
		}
		a.Address, a.Location, zone = center.Metadata.Address(), center.Location, center.IANATimezone
	} else if k.Address != nil {
		a.Address = *k.Address
	}
	if zone != "" {
		a.IANATimezone = &zone
	}
	return a, nil
}

// book holds the slot, asks the provider, and records what it says.
func (s *Service) book(ctx context.Context, team healthlab.TeamID, id OrderID, v Visit, k appointment.BookingKey, settings Settings, at time.Time, wait time.Duration) (Appointment, error) {
	v.ID, v.Status, v.Events = s.opts.NewID(), appointment.VisitHeld, []AppointmentEvent{}
	v.OrderID = id
	v.ProviderID = v.ID.String()
	day := rules.UTCDay(at)
	if v.StartAt != nil {
		day = appointment.LocalDay(v.StartAt.Time, v.IANATimezone)
	}
	ids := eventIDs{base: s.opts.NewID()}
	var held uuid.UUID
	r, err := s.store.Update(ctx, team, id, func(r *Record) (events []healthlab.Event, err error) {
		following := ids
		if k.Lab != "" && (r.LabTest.Lab == nil || r.LabTest.Lab.Slug != k.Lab) {
			return nil, rules.Broken(SlotOfOtherPlace, "the slot is at another lab's center")
		}
		held, events, err = r.reserveVisit(v, k.ID, settings, day, visitStep{at: at, ids: &following})
		r.VisitWork.Lease = r.StoreTime.Add(s.opts.Lease)
		r.planVisits()
		return events, err
	})
	if err != nil {
		return Appointment{}, s.bookingError(v.Type, err)
	}
	i := r.visit(held)
	call, cancel := context.WithTimeout(ctx, wait)
	booked, callErr := s.bookings.BookVisit(call, r.bookingOf(&r.Visits[i]))
	cancel()
	if ctx.Err() != nil {
		return Appointment{}, ctx.Err() // the lease brings it back
	}
	r, err = s.recordBooking(ctx, team, id, held, r.VisitWork.Lease, booked, callErr)
	if err != nil {
		return Appointment{}, err
	}
	i = r.visit(held)
	switch kind := healthlab.KindOf(callErr); {
	case i >= 0 && r.Visits[i].Status.Published():
		return r.Visits[i].Appointment, nil
	case callErr != nil && kind == healthlab.NotFound:
		return Appointment{}, appointment.SlotGone()
	case callErr != nil && kind == healthlab.Invalid:
		return Appointment{}, rules.Broken(BookingRefused, "the provider does not take the booking")
	default:
		return Appointment{}, notConfirmed()
	}
}

// reserveVisit adds an appointment that is not announced yet, and returns its id; or that of the
// one which was begun with the same booking key. What was begun with another one is
// given up.
func (r *Record) reserveVisit(v Visit, key uuid.UUID, settings Settings, day healthlab.Date, s visitStep) (uuid.UUID, []healthlab.Event, error) {
	i := r.activeVisit()
	same := i >= 0 && r.Visits[i].Status == appointment.VisitHeld && key != uuid.Nil && slices.Contains(r.Visits[i].Keys, key)
	if same && r.VisitWork.Lease.After(r.StoreTime) {
		return uuid.Nil, nil, &healthlab.RuleError{Kind: healthlab.Conflict, Type: IdempotencyInProgress, Msg: "a request with this booking_key is still running; retry in a second"}
	}
	if err := r.bookable(v.Type, settings, day); err != nil {
		return uuid.Nil, nil, err
	}
	if same {
		return r.Visits[i].ID, nil, nil
	}
	if r.usesKey(key) {
		return uuid.Nil, nil, &ReservedError{slotReservation + key.String()}
	}
	var events []healthlab.Event
	if i >= 0 {
		s.on = appointment.VisitRefused
		told, err := r.applyVisit(i, s)
		if err != nil {
			return uuid.Nil, nil, err
		}
		events = told
	}
	journey := r.OrderTransaction.ID
	v.UserID, v.OrderTransactionID = r.UserID, &journey
	if v.Type == appointment.Phlebotomy && v.Address.AccessNotes == nil && r.PatientAddress != nil {
		v.Address.AccessNotes = r.PatientAddress.AccessNotes
	}
	r.Visits = append(slices.Clone(r.Visits), v)
	return v.ID, events, nil
}

func notConfirmed() error {
	return &healthlab.RuleError{Kind: healthlab.Unavailable, Type: BookingNotConfirmed, Msg: "the provider has not confirmed; the outcome is open and will be settled"}
}

// bookingError says why a slot was not held.
func (s *Service) bookingError(t appointment.Type, err error) error {
	var taken *ReservedError
	switch {
	case errors.As(err, &taken) && strings.HasPrefix(taken.Name, VisitReservation):
		return rules.Broken(AppointmentExists, "the patient has an appointment with this provider")
	case errors.As(err, &taken):
		return appointment.SlotGone()
	}
	return fmt.Errorf("book appointment: %w", rules.NotFound(err, OrderNotFound, "the team has no such order"))
}

// bookingOf is what the provider gets of an appointment.
func (r *Record) bookingOf(v *Visit) Booking {
	b := Booking{Appointment: v.ID, Team: r.TeamID, Order: r.ID, Type: v.Type, Provider: v.Provider, Slot: v.Slot, Address: v.Address}
	if p := r.PatientDetails; p != nil {
		b.Patient = people.PatientDetails{FirstName: p.FirstName, LastName: p.LastName, DOB: p.DOB, Gender: p.Gender, PhoneNumber: p.PhoneNumber, Email: p.Email}
		if g := p.MedicalProxy; g != nil {
			b.Patient.MedicalProxy = &people.GuarantorDetails{FirstName: g.FirstName, LastName: g.LastName, Address: g.Address, PhoneNumber: g.PhoneNumber, Email: g.Email}
		}
	}
	notes := v.AppointmentNotes
	if v.Move != nil {
		b.Slot, notes = v.Move.Slot, v.Move.Notes
	}
	if notes != nil {
		b.Notes = *notes
	}
	if r.SampleID != nil {
		b.SampleID = *r.SampleID
	}
	return b
}

// recordBooking records what the provider said to a booking.
func (s *Service) recordBooking(ctx context.Context, team healthlab.TeamID, id OrderID, visit uuid.UUID, lease time.Time, b Booked, callErr error) (Record, error) {
	at, ids := s.now(), eventIDs{base: s.opts.NewID()}
	r, err := s.allOrders.Update(ctx, team, id, func(r *Record) ([]healthlab.Event, error) {
		following := ids
		r.releaseLease(lease)
		i := r.visit(visit)
		if i < 0 {
			return nil, nil
		}
		return r.applyBooking(i, b, callErr, visitStep{at: at, ids: &following}, s.opts.Retry)
	})
	if err != nil {
		return r, fmt.Errorf("record booking: %w", err)
	}
	if callErr != nil {
		s.opts.Log.Warn("provider did not confirm an appointment", "order", id.String(), "appointment", visit.String(), "kind", healthlab.KindOf(callErr).Error(), "cause", work.Cause(callErr))
	}
	return r, nil
}

func (r *Record) releaseLease(lease time.Time) {
	if r.VisitWork.Lease.Equal(lease) {
		r.VisitWork.Lease = time.Time{}
	}
}

// Request asks a provider for a visit at home and lets it find the time. RuleErrors
// as [Bookings.Book], PROVIDER_NOT_AVAILABLE and STREET_NUMBER_MISSING.
func (b Bookings) Request(ctx context.Context, team healthlab.TeamID, id OrderID, req VisitRequest) (Appointment, error) {
	var p healthlab.Problems
	c := rules.Check{Problems: &p}
	req.Address.CheckAt(&p, "address")
	c.Text(req.Provider, "provider", 1, rules.MaxText)
	c.Optional(req.AppointmentNotes, "appointment_notes", rules.MaxNotes)
	if err := p.Err(); err != nil {
		return Appointment{}, err
	}
	settings, err := b.s.checkScheduling(ctx, team, appointment.Phlebotomy)
	if err != nil {
		return Appointment{}, err
	}
	if !appointment.HasStreetNumber(req.Address.FirstLine) {
		return Appointment{}, rules.Broken(appointment.StreetNumberMissing, "the first line of the address must have a street number")
	}
	address := req.Address.Address()
	area, err := b.s.appointments.Served(ctx, address.ZipCode[:5])
	if err != nil {
		return Appointment{}, err
	}
	if !slices.ContainsFunc(area.Providers, func(p appointment.PhlebotomyProvider) bool {
		return p.Name == req.Provider && slices.Contains(p.ServiceTypes, appointment.RequestTier)
	}) {
		return Appointment{}, rules.Broken(ProviderNotAvailable, "the provider takes no requests there")
	}
	at := b.s.now()
	v := Visit{Open: true, Next: at, Deadline: at.Add(defaultAsyncTimeout)}
	v.Type, v.Provider, v.AppointmentNotes, v.Address = appointment.Phlebotomy, req.Provider, req.AppointmentNotes, address
	if b.s.opts.Zips != nil {
		if zip, ok, err := b.s.opts.Zips.FindZip(ctx, address.ZipCode[:5]); err == nil && ok {
			v.Location = zip.Location
		}
	}
	if err := b.s.nearPatient(ctx, team, id, address.ZipCode, "address", "zip_code"); err != nil {
		return Appointment{}, err
	}
	return b.s.book(ctx, team, id, v, appointment.BookingKey{}, settings, at, min(b.s.opts.LabTimeout, defaultSyncTimeout))
}

// maxVisitMiles is how far from the patient's address a visit may take place.
const maxVisitMiles = 100

// nearPatient refuses a visit that is far from the patient's address, where it is known
// how far that is. path leads to the field that names the place.
func (s *Service) nearPatient(ctx context.Context, team healthlab.TeamID, id OrderID, zip string, path ...any) error {
	if s.opts.Zips == nil || len(zip) < 5 {
		return nil
	}
	r, err := s.store.Get(ctx, team, id)
	if err != nil {
		return fmt.Errorf("book appointment: %w", rules.NotFound(err, OrderNotFound, "the team has no such order"))
	}
	if r.PatientAddress == nil || !rules.ZipForm.MatchString(r.PatientAddress.Zip) {
		return nil
	}
	home, known, err := s.opts.Zips.FindZip(ctx, r.PatientAddress.Zip[:5])
	if err != nil || !known {
		return err
	}
	there, known, err := s.opts.Zips.FindZip(ctx, zip[:5])
	if err != nil || !known || home.Location.Miles(there.Location) <= maxVisitMiles {
		return err
	}
	var p healthlab.Problems
	p.Add("too_far", fmt.Sprintf("must be a visit within %d miles of the patient's address", maxVisitMiles), path...)
	return p.Err()
}

// Get returns the active appointment of an order; if none is, the latest. RuleError
// APPOINTMENT_NOT_FOUND if it never had one of this type.
func (b Bookings) Get(ctx context.Context, team healthlab.TeamID, id OrderID, t appointment.Type) (Appointment, error) {
	r, err := b.s.store.Get(ctx, team, id)
	if err != nil {
		return Appointment{}, fmt.Errorf("get appointment: %w", rules.NotFound(err, OrderNotFound, "the team has no such order"))
	}
	i := r.shownVisit(t)
	if i < 0 {
		return Appointment{}, noAppointment()
	}
	return r.Visits[i].Appointment, nil
}

func noAppointment() error { return rules.Missing(AppointmentNotFound, "the order has no appointment") }

// Reschedule gives an order's appointment the time of another slot of the same
// provider; a visit at home stays at its address. RuleErrors APPOINTMENT_NOT_FOUND,
// APPOINTMENT_NOT_RESCHEDULABLE, and as [Bookings.Book]; after BOOKING_NOT_CONFIRMED
// the appointment stays where it was until the outcome is known.
func (b Bookings) Reschedule(ctx context.Context, team healthlab.TeamID, id OrderID, t appointment.Type, req RescheduleRequest) (Appointment, error) {
	check := BookRequest{BookingKey: req.BookingKey, AppointmentNotes: req.Notes}
	if err := check.Check(); err != nil {
		return Appointment{}, err
	}
	if _, err := b.s.checkScheduling(ctx, team, t); err != nil {
		return Appointment{}, err
	}
	at := b.s.now()
	key, err := b.s.appointments.OpenKey(ctx, team, t, req.BookingKey, at)
	if err != nil {
		return Appointment{}, err
	}
	if _, err := b.s.placeOf(ctx, Appointment{}, key); err != nil {
		return Appointment{}, err
	}
	var visit uuid.UUID
	r, err := b.s.store.Update(ctx, team, id, func(r *Record) ([]healthlab.Event, error) {
		i := r.shownVisit(t)
		if i < 0 {
			return nil, noAppointment()
		}
		v := &r.Visits[i]
		visit = v.ID
		switch {
		case !v.CanReschedule:
			return nil, rules.Broken(NotReschedulable, "the appointment cannot get another time now")
		case v.Provider != key.Slot.Provider || t == appointment.Phlebotomy && !samePlace(v.Address, key.Address):
			return nil, rules.Broken(SlotOfOtherPlace, "the slot is another provider's, or at another address")
		case r.VisitWork.Lease.After(r.StoreTime), v.Move != nil && v.Move.Key != key.ID:
			return nil, rules.Broken(NotReschedulable, "the appointment is being changed")
		case r.usesKey(key.ID):
			return nil, &ReservedError{slotReservation + key.ID.String()}
		}
		notes := req.Notes
		if req.KeepNotes {
			notes = v.AppointmentNotes
		}
		v.Move, v.Next, v.Attempts = &VisitMove{Key: key.ID, Slot: key.Slot, Notes: notes}, at, 0
		r.VisitWork.Lease = r.StoreTime.Add(b.s.opts.Lease)
		r.planVisits()
		return nil, nil
	})
	if err != nil {
		return Appointment{}, b.s.bookingError(t, err)
	}
	i := r.visit(visit)
	call, cancel := context.WithTimeout(ctx, b.s.opts.LabTimeout)
	booked, callErr := b.s.bookings.MoveVisit(call, r.bookingOf(&r.Visits[i]))
	cancel()
	if ctx.Err() != nil {
		return Appointment{}, ctx.Err()
	}
	r, err = b.s.recordMove(ctx, team, id, visit, key.ID, r.VisitWork.Lease, booked, callErr)
	if err != nil {
		return Appointment{}, err
	}
	switch kind := healthlab.KindOf(callErr); {
	case callErr == nil:
		return r.Visits[r.visit(visit)].Appointment, nil
	case kind == healthlab.NotFound:
		return Appointment{}, appointment.SlotGone()
	case kind == healthlab.Invalid, kind == healthlab.Precondition:
		return Appointment{}, rules.Broken(NotReschedulable, "the provider does not move the appointment")
	}
	return Appointment{}, notConfirmed()
}

func samePlace(a appointment.Address, b *appointment.Address) bool {
	same := func(a, b *string) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }
	return b != nil && a.FirstLine == b.FirstLine && same(a.SecondLine, b.SecondLine) && a.City == b.City && a.State == b.State &&
		a.ZipCode == b.ZipCode && same(a.Unit, b.Unit)
}

// recordMove records what the provider said to another time.
func (s *Service) recordMove(ctx context.Context, team healthlab.TeamID, id OrderID, visit, key uuid.UUID, lease time.Time, b Booked, callErr error) (Record, error) {
	at, ids := s.now(), eventIDs{base: s.opts.NewID()}
	r, err := s.allOrders.Update(ctx, team, id, func(r *Record) ([]healthlab.Event, error) {
		following := ids
		r.releaseLease(lease)
		i := r.visit(visit)
		if i < 0 || r.Visits[i].Move == nil || r.Visits[i].Move.Key != key {
			r.planVisits()
			return nil, nil
		}
		return r.applyMove(i, b, callErr, visitStep{on: appointment.VisitRescheduled, at: at, ids: &following}, s)
	})
	if err != nil {
		return r, fmt.Errorf("record reschedule: %w", err)
	}
	return r, nil
}

// applyMove records what a provider answered to the call that moves.
func (r *Record) applyMove(i int, b Booked, callErr error, step visitStep, s *Service) ([]healthlab.Event, error) {
	v := &r.Visits[i]
	_, movable := appointment.Next(v.Type, v.Status, appointment.VisitRescheduled, appointment.Facts{Timed: true, Requisition: r.HasRequisition()})
	switch kind := healthlab.KindOf(callErr); {
	case !movable:
		v.Move, v.Attempts = nil, 0 // it has begun meanwhile, as it was
	case callErr == nil:
		m := *v.Move
		v.Move, v.Attempts, v.Slot, v.AppointmentNotes = nil, 0, m.Slot, m.Notes
		v.Keys = append(slices.Clone(v.Keys), m.Key)
		v.setProviderIDs(b.ProviderID, b.ExternalID)
		step.start, step.end = m.Slot.Start, m.Slot.End
		step.data = encodeData(eventData{"origin": "patient", "is_reschedule": true})
		return r.applyVisit(i, step)
	case kind == healthlab.NotFound, kind == healthlab.Invalid, kind == healthlab.Precondition:
		v.Move, v.Attempts = nil, 0
	default:
		v.Attempts++
		v.Next = step.at.Add(s.opts.Retry(v.Attempts))
	}
	r.planVisits()
	return nil, nil
}

// Cancel cancels an order's appointment. The provider is called in the background.
// RuleErrors APPOINTMENT_NOT_FOUND, APPOINTMENT_NOT_CANCELLABLE,
// CANCELLATION_REASON_UNKNOWN.
func (b Bookings) Cancel(ctx context.Context, team healthlab.TeamID, id OrderID, t appointment.Type, reason uuid.UUID, notes *string) (Appointment, error) {
	var p healthlab.Problems
	rules.Check{Problems: &p}.Optional(notes, "notes", rules.MaxNotes)
	if err := p.Err(); err != nil {
		return Appointment{}, err
	}
	reasons := b.s.opts.CancellationReasons(t)
	why := slices.IndexFunc(reasons, func(r appointment.CancellationReason) bool { return r.ID == reason })
	at, ids := b.s.now(), eventIDs{base: b.s.opts.NewID()}
	var visit int
	r, err := b.s.store.Update(ctx, team, id, func(r *Record) ([]healthlab.Event, error) {
		following := ids
		if visit = r.shownVisit(t); visit < 0 {
			return nil, noAppointment()
		}
		v := &r.Visits[visit]
		switch {
		case why < 0:
			return nil, rules.Broken(CancellationReasonUnknown, "is not one of the reasons")
		case v.Status.Final(), v.PatientManaged:
			return nil, rules.Broken(NotCancellable, "the appointment cannot be cancelled now")
		}
		v.Reason = reasons[why].Name
		data := eventData{"origin": "patient", "cancellation_reason_id": reason.String(), "cancellation_reason": v.Reason,
			"is_refundable": reasons[why].IsRefundable && (t != appointment.Phlebotomy || v.StartAt == nil || !at.After(v.StartAt.Add(-refundBefore)))}
		if notes != nil {
			v.Remark, data["notes"] = *notes, *notes
		}
		return r.applyVisit(visit, visitStep{on: appointment.VisitCalledOff, at: at, ids: &following, data: encodeData(data)})
	})
	if err != nil {
		return Appointment{}, fmt.Errorf("cancel appointment: %w", rules.NotFound(err, OrderNotFound, "the team has no such order"))
	}
	return r.Visits[visit].Appointment, nil
}

// CancellationReasons returns why appointments of a type can be cancelled.
func (b Bookings) CancellationReasons(t appointment.Type) []appointment.CancellationReason {
	return slices.Clone(b.s.opts.CancellationReasons(t))
}

// OrderPSCs returns the centers of an order's lab around its patient. The request's
// postal code, lab and account are the order's. RuleErrors as [appointment.Service.PSCs], and
// PATIENT_ADDRESS_MISSING.
func (s *Service) OrderPSCs(ctx context.Context, team healthlab.TeamID, id OrderID, req appointment.CenterRequest) (appointment.PSCInfo, error) {
	r, err := s.store.Get(ctx, team, id)
	if err != nil {
		return appointment.PSCInfo{}, fmt.Errorf("find centers of order: %w", rules.NotFound(err, OrderNotFound, "the team has no such order"))
	}
	if r.PatientAddress == nil || !rules.ZipForm.MatchString(r.PatientAddress.Zip) || r.LabTest.Lab == nil {
		return appointment.PSCInfo{}, rules.Broken(PatientAddressMissing, "the order has no patient address with a postal code")
	}
	req.Zip, req.LabID, req.LabAccountID = r.PatientAddress.Zip[:5], r.LabTest.Lab.ID, nil
	return s.appointments.PSCs(ctx, team, req)
}
