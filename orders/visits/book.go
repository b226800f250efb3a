package visits

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// checkScheduling returns the team's settings. RuleErrors as [appointment.Service.Offer] if appointments of the type
// are not available to the team.
func (s *Service) checkScheduling(ctx context.Context, team healthlab.TeamID, t appointment.Type) (orders.Settings, error) {
	settings, err := s.orders.Settings(ctx, team)
	if err != nil {
		return settings, err
	}
	if !s.canBook() {
		return settings, appointment.NotOffered()
	}
	return settings, s.places.Offer(t, placeSettings(settings))
}

func methodOfVisit(t appointment.Type) catalogue.CollectionMethod {
	if t == appointment.Phlebotomy {
		return catalogue.AtHomePhlebotomy
	}
	return catalogue.WalkInTest
}

// bookable returns an error unless an appointment of the type t can be booked for the order in its present state. on is
// the day of the visit, for the patient's age. An active appointment that the team does not see does not prevent a
// booking once its lease has ended.
func bookable(r *orders.Record, t appointment.Type, settings orders.Settings, on healthlab.Date) error {
	if r.Method() != methodOfVisit(t) {
		return rules.Broken(OrderNotBookable, "the order's collection_method must be the one of the appointment's kind")
	}
	switch low := r.LowLevel(); {
	case low == orders.RequisitionCreated, low == orders.RequisitionBypassed, low == orders.AppointmentCancelled:
	case low == orders.Ordered && settings.PreRequisitionBooking:
	case (low == orders.AppointmentPending || low == orders.AppointmentScheduled) && r.ActiveVisit() >= 0:
	default:
		return rules.Broken(OrderNotBookable, "no appointment can be booked for an order in the status "+string(r.LastEvent.Status))
	}
	if t == appointment.Phlebotomy && (r.PatientDetails == nil || people.Age(r.PatientDetails.DOB, on) < 18) {
		return rules.Broken(PatientTooYoung, "the patient must be 18 or older on the day of the visit")
	}
	i := r.ActiveVisit()
	if i < 0 {
		return nil
	}
	if r.Visits[i].Status.Published() || r.VisitWork.Lease.After(r.StoreTime) {
		return rules.Broken(AppointmentExists, "the order must not have an appointment already; cancel or reschedule it")
	}
	return nil
}

// Book books a slot for an order. Invalid for an invalid request, and for a home visit too far from the patient's
// address; else the RuleErrors ORDER_NOT_FOUND, ORDER_NOT_BOOKABLE, PATIENT_TOO_YOUNG, APPOINTMENT_EXISTS,
// BOOKING_KEY_INVALID, SLOT_NOT_AVAILABLE, SLOT_OF_OTHER_PLACE, SITE_UNKNOWN, BOOKING_REFUSED, BOOKING_NOT_CONFIRMED,
// LAB_SCHEDULING_NOT_SUPPORTED, FEATURE_NOT_ENABLED, and those of [appointment.Service.Offer].
//
// If the provider does not answer in time, or does not confirm at once, the appointment is pending, and background work
// confirms or cancels it. While another call books with the same key, the error is IDEMPOTENCY_IN_PROGRESS (Conflict).
func (s *Service) Book(ctx context.Context, team healthlab.TeamID, id orders.OrderID, t appointment.Type, req BookRequest) (orders.Appointment, error) {
	if err := req.Check(); err != nil {
		return orders.Appointment{}, err
	}
	settings, err := s.checkScheduling(ctx, team, t)
	if err != nil {
		return orders.Appointment{}, err
	}
	async := req.AsyncConfirmation && t == appointment.PatientServiceCenter
	if async && !settings.AsyncConfirmation {
		return orders.Appointment{}, rules.NotEnabled("asynchronous confirmation")
	}
	at := s.now()
	key, err := s.places.OpenKey(ctx, team, t, req.BookingKey, at)
	if err != nil {
		return orders.Appointment{}, err
	}
	p, known := s.places.Provider(t, key.Slot.Provider)
	switch {
	case t == appointment.PatientServiceCenter && !known:
		return orders.Appointment{}, rules.Broken(appointment.SchedulingNotSupported, "the lab does not support appointments")
	case p.PatientManaged && !settings.PatientManagedPSC:
		return orders.Appointment{}, rules.NotEnabled("a lab with patient-managed appointments")
	}
	v := orders.Visit{PatientManaged: p.PatientManaged, Slot: key.Slot, Keys: []uuid.UUID{key.ID}, Open: true, Next: at,
		Deadline: at.Add(defaultAsyncTimeout)}
	wait := min(s.shared.LabTimeout, defaultSyncTimeout)
	if async {
		v.Deadline = at.Add(millis(req.AsyncConfirmationTimeoutMillisecond, defaultAsyncTimeout))
		wait = min(s.shared.LabTimeout, millis(req.SyncConfirmationTimeoutMillisecond, defaultSyncTimeout))
	}
	v.Type, v.Provider, v.AppointmentNotes = t, key.Slot.Provider, req.AppointmentNotes
	if v.Appointment, err = s.withPlace(ctx, v.Appointment, key); err != nil {
		return orders.Appointment{}, err
	}
	if t == appointment.Phlebotomy {
		if err := s.nearPatient(ctx, team, id, v.Address.ZipCode, "booking_key"); err != nil {
			return orders.Appointment{}, err
		}
	}
	return s.book(ctx, team, id, v, key, settings, at, wait)
}

// CheckBookingIdempotency returns an error unless the team's bookings at centers may have an idempotency key.
// RuleError FEATURE_NOT_ENABLED (Forbidden).
func (s *Service) CheckBookingIdempotency(ctx context.Context, team healthlab.TeamID) error {
	settings, err := s.orders.Settings(ctx, team)
	if err != nil {
		return err
	}
	if !settings.BookingIdempotency {
		return rules.NotEnabled("an idempotency key for bookings")
	}
	return nil
}

// withPlace returns the appointment with the address, position, time zone and time of the slot in a booking key.
func (s *Service) withPlace(ctx context.Context, a orders.Appointment, k appointment.BookingKey) (orders.Appointment, error) {
	start, end := healthlab.At(k.Slot.Start), healthlab.At(k.Slot.End)
	a.StartAt, a.EndAt, a.Location = &start, &end, k.Slot.Location
	zone := k.Slot.Zone
	if k.Type == appointment.PatientServiceCenter {
		center, err := s.places.Center(ctx, k.Lab, k.Slot.SiteCode)
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

// book reserves the appointment v in the order, calls the provider, and stores the answer. It waits at most wait for
// the provider. k is the booking key; zero for a requested visit.
func (s *Service) book(ctx context.Context, team healthlab.TeamID, id orders.OrderID, v orders.Visit, k appointment.BookingKey, settings orders.Settings, at time.Time, wait time.Duration) (orders.Appointment, error) {
	v.ID, v.Status, v.Events = s.shared.NewID(), appointment.VisitHeld, []orders.AppointmentEvent{}
	v.OrderID = id
	v.ProviderID = v.ID.String()
	day := rules.UTCDay(at)
	if v.StartAt != nil {
		day = appointment.LocalDay(v.StartAt.Time, v.IANATimezone)
	}
	event := s.shared.NewID()
	var held uuid.UUID
	r, err := s.store.Update(ctx, team, id, func(r *orders.Record) (events []healthlab.Event, err error) {
		if k.Lab != "" && (r.LabTest.Lab == nil || r.LabTest.Lab.Slug != k.Lab) {
			return nil, rules.Broken(SlotOfOtherPlace, "booking_key: must be of a slot at a center of the order's lab")
		}
		held, events, err = reserveVisit(r, v, k.ID, settings, day, orders.NewVisitStep("", at, event))
		r.VisitWork.Lease = r.StoreTime.Add(s.shared.Lease)
		r.PlanVisits()
		return events, err
	})
	if err != nil {
		return orders.Appointment{}, s.bookingError(v.Type, err)
	}
	i := r.VisitIndex(held)
	call, cancel := context.WithTimeout(ctx, wait)
	booked, callErr := s.opts.Bookings.BookVisit(call, bookingOf(&r, &r.Visits[i]))
	cancel()
	if ctx.Err() != nil {
		return orders.Appointment{}, ctx.Err() // the booking call is repeated in the background after the lease
	}
	r, err = s.recordBooking(ctx, team, id, held, r.VisitWork.Lease, booked, callErr)
	if err != nil {
		return orders.Appointment{}, err
	}
	i = r.VisitIndex(held)
	switch kind := healthlab.KindOf(callErr); {
	case i >= 0 && r.Visits[i].Status.Published():
		return r.Visits[i].Appointment, nil
	case callErr != nil && kind == healthlab.NotFound:
		return orders.Appointment{}, appointment.SlotGone()
	case callErr != nil && kind == healthlab.Invalid:
		return orders.Appointment{}, rules.Broken(BookingRefused, "the provider refused the booking; choose another slot")
	default:
		return orders.Appointment{}, notConfirmed()
	}
}

// reserveVisit adds the appointment v, which the team does not see yet, to the order, and returns the appointment's id.
// If an unfinished booking with the same booking key exists, it returns the id of that booking's appointment. It ends
// an unfinished booking with another key, once the lease of that booking has ended. It returns IdempotencyInProgress
// while a request with this key is running, a ReservedError for the key of a finished booking, and the errors of
// bookable.
func reserveVisit(r *orders.Record, v orders.Visit, key uuid.UUID, settings orders.Settings, day healthlab.Date, s orders.VisitStep) (uuid.UUID, []healthlab.Event, error) {
	i := r.ActiveVisit()
	same := i >= 0 && r.Visits[i].Status == appointment.VisitHeld && key != uuid.Nil && slices.Contains(r.Visits[i].Keys, key)
	if same && r.VisitWork.Lease.After(r.StoreTime) {
		return uuid.Nil, nil, &healthlab.RuleError{Kind: healthlab.Conflict, Type: orders.IdempotencyInProgress, Msg: "a request with this booking_key is still running; retry in a second"}
	}
	if err := bookable(r, v.Type, settings, day); err != nil {
		return uuid.Nil, nil, err
	}
	if same {
		return r.Visits[i].ID, nil, nil
	}
	if r.UsesKey(key) {
		return uuid.Nil, nil, &orders.ReservedError{Name: orders.SlotReservation + key.String()}
	}
	var events []healthlab.Event
	if i >= 0 {
		s.On = appointment.VisitRefused
		told, err := r.ApplyVisit(i, s)
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
	return &healthlab.RuleError{Kind: healthlab.Unavailable, Type: BookingNotConfirmed, Msg: "the provider has not confirmed yet; read the appointment again later to see the outcome"}
}

// bookingError converts the error of reserving a slot to the error for the caller: APPOINTMENT_EXISTS or
// SLOT_NOT_AVAILABLE for a [orders.ReservedError].
func (s *Service) bookingError(t appointment.Type, err error) error {
	var taken *orders.ReservedError
	switch {
	case errors.As(err, &taken) && strings.HasPrefix(taken.Name, orders.VisitReservation):
		return rules.Broken(AppointmentExists, "the patient has an appointment with this provider")
	case errors.As(err, &taken):
		return appointment.SlotGone()
	}
	return fmt.Errorf("book appointment: %w", rules.NotFound(err, orders.OrderNotFound, "the team has no such order"))
}

// bookingOf returns the content of the call that books the appointment v, or moves it if v has a Move.
func bookingOf(r *orders.Record, v *orders.Visit) Booking {
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

// Request requests a visit at home, whose time the provider chooses. RuleErrors as [Service.Book],
// PROVIDER_NOT_AVAILABLE and STREET_NUMBER_MISSING.
func (s *Service) Request(ctx context.Context, team healthlab.TeamID, id orders.OrderID, req VisitRequest) (orders.Appointment, error) {
	var p healthlab.Problems
	c := rules.Check{Problems: &p}
	req.Address.CheckAt(&p, "address")
	c.Text(req.Provider, "provider", 1, rules.MaxText)
	c.Optional(req.AppointmentNotes, "appointment_notes", rules.MaxNotes)
	if err := p.Err(); err != nil {
		return orders.Appointment{}, err
	}
	settings, err := s.checkScheduling(ctx, team, appointment.Phlebotomy)
	if err != nil {
		return orders.Appointment{}, err
	}
	if !appointment.HasStreetNumber(req.Address.FirstLine) {
		return orders.Appointment{}, rules.Broken(appointment.StreetNumberMissing, "address.first_line: must have a street number")
	}
	address := req.Address.Address()
	area, err := s.places.Served(ctx, address.ZipCode[:5])
	if err != nil {
		return orders.Appointment{}, err
	}
	if !slices.ContainsFunc(area.Providers, func(p appointment.PhlebotomyProvider) bool {
		return p.Name == req.Provider && slices.Contains(p.ServiceTypes, appointment.RequestTier)
	}) {
		return orders.Appointment{}, rules.Broken(ProviderNotAvailable, "the provider accepts no appointment requests at this address")
	}
	at := s.now()
	v := orders.Visit{Open: true, Next: at, Deadline: at.Add(defaultAsyncTimeout)}
	v.Type, v.Provider, v.AppointmentNotes, v.Address = appointment.Phlebotomy, req.Provider, req.AppointmentNotes, address
	if s.opts.Zips != nil {
		if zip, ok, err := s.opts.Zips.FindZip(ctx, address.ZipCode[:5]); err == nil && ok {
			v.Location = zip.Location
		}
	}
	if err := s.nearPatient(ctx, team, id, address.ZipCode, "address", "zip_code"); err != nil {
		return orders.Appointment{}, err
	}
	return s.book(ctx, team, id, v, appointment.BookingKey{}, settings, at, min(s.shared.LabTimeout, defaultSyncTimeout))
}

// maxVisitMiles is the longest allowed distance of a visit from the patient's address, in statute miles.
const maxVisitMiles = 100

// nearPatient returns Invalid if the postal code zip of a visit is more than maxVisitMiles from that of the patient's
// address; nil if the distance is unknown. path is the path of the request's field in the error.
func (s *Service) nearPatient(ctx context.Context, team healthlab.TeamID, id orders.OrderID, zip string, path ...any) error {
	if s.opts.Zips == nil || len(zip) < 5 {
		return nil
	}
	r, err := s.store.Get(ctx, team, id)
	if err != nil {
		return fmt.Errorf("book appointment: %w", rules.NotFound(err, orders.OrderNotFound, "the team has no such order"))
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

// Get returns the active appointment of an order, else the latest. RuleError APPOINTMENT_NOT_FOUND if the order
// never had one of this type.
func (s *Service) Get(ctx context.Context, team healthlab.TeamID, id orders.OrderID, t appointment.Type) (orders.Appointment, error) {
	r, err := s.store.Get(ctx, team, id)
	if err != nil {
		return orders.Appointment{}, fmt.Errorf("get appointment: %w", rules.NotFound(err, orders.OrderNotFound, "the team has no such order"))
	}
	i := r.ShownVisit(t)
	if i < 0 {
		return orders.Appointment{}, noAppointment()
	}
	return r.Visits[i].Appointment, nil
}

func noAppointment() error {
	return rules.Missing(orders.AppointmentNotFound, "the order has no appointment")
}
