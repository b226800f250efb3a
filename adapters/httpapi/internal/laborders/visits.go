package laborders

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/idempotency"
	"github.com/healthlab-dev/healthlab/orders/visits"
)

func (a API) visitOperations() []server.Operation {
	open := notConfirmed()
	const home, center = appointment.Phlebotomy, appointment.PatientServiceCenter
	return []server.Operation{
		{ID: "find_phlebotomy_slots", Pattern: "POST /v3/order/phlebotomy/appointment/availability", Bound: server.Public, Team: server.AsJSON(a.findHomeSlots)},
		{ID: "book_phlebotomy_appointment", Pattern: "POST /v3/order/{order_id}/phlebotomy/appointment/book", Bound: a.ofOrder(), Team: a.bookHome, Keyed: true},
		{ID: "request_phlebotomy_appointment", Pattern: "POST /v3/order/{order_id}/phlebotomy/appointment/request", Bound: a.ofOrder(), Team: a.requestVisit, Keyed: true},
		{ID: "reschedule_phlebotomy_appointment", Pattern: "PATCH /v3/order/{order_id}/phlebotomy/appointment/reschedule", Bound: a.ofOrder(), Team: a.reschedule(home), Replies: open},
		{ID: "cancel_phlebotomy_appointment", Pattern: "PATCH /v3/order/{order_id}/phlebotomy/appointment/cancel", Bound: a.ofOrder(), Team: a.cancelHome},
		{ID: "list_phlebotomy_cancellation_reasons", Pattern: "GET /v3/order/phlebotomy/appointment/cancellation-reasons", Bound: server.Public, Team: a.listReasons(home)},
		{ID: "read_phlebotomy_appointment", Pattern: "GET /v3/order/{order_id}/phlebotomy/appointment", Bound: a.ofOrder(), Team: a.readVisit(home)},
		{ID: "find_psc_slots", Pattern: "POST /v3/order/psc/appointment/availability", Bound: server.Public, Team: server.AsJSON(a.findCenterSlots)},
		{ID: "book_psc_appointment", Pattern: "POST /v3/order/{order_id}/psc/appointment/book", Bound: a.ofOrder(), Team: a.bookCenter, Keyed: true},
		{ID: "reschedule_psc_appointment", Pattern: "PATCH /v3/order/{order_id}/psc/appointment/reschedule", Bound: a.ofOrder(), Team: a.reschedule(center), Replies: open},
		{ID: "cancel_psc_appointment", Pattern: "PATCH /v3/order/{order_id}/psc/appointment/cancel", Bound: a.ofOrder(), Team: a.cancelCenter},
		{ID: "list_psc_cancellation_reasons", Pattern: "GET /v3/order/psc/appointment/cancellation-reasons", Bound: server.Public, Team: a.listReasons(center)},
		{ID: "read_psc_appointment", Pattern: "GET /v3/order/{order_id}/psc/appointment", Bound: a.ofOrder(), Team: a.readVisit(center)},
	}
}

func notConfirmed() []server.Reply {
	// If a provider does not confirm a booking in time, a waiting caller gets a server error.
	return []server.Reply{{Rule: visits.BookingNotConfirmed, Status: http.StatusInternalServerError}}
}

func answerVisit(w http.ResponseWriter, v orders.Appointment, err error) error {
	if err != nil {
		return err
	}
	return wire.JSON(w, http.StatusOK, v)
}

func (a API) findHomeSlots(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	start := in.OptDate("start_date")
	var body appointment.AddressInput
	in.Body(&body)
	if err := in.ErrAnd(body.Check); err != nil {
		return nil, err
	}
	return a.Visits.Places().HomeSlots(ctx, team, start, body)
}

func (a API) findCenterSlots(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	req := appointment.CenterSlotsRequest{
		Lab: in.Text("lab", 255), Start: in.OptDate("start_date"), SiteCodes: in.Strings("site_codes"), Zip: in.ShortText("zip_code"),
		AllowStale: in.Bool("allow_stale", false),
	}
	if req.NoRadius = in.Null("radius"); !req.NoRadius {
		req.Radius = radius(in)
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	return a.Visits.Places().CenterSlots(ctx, team, req)
}

func (a API) bookHome(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	id := orderID(in)
	var body visits.BookRequest
	in.Body(&body)
	once := server.OnceFrom(in, team, "book_phlebotomy_appointment "+id.String(), healthlab.UserID{})
	if err := in.ErrAnd(body.Check); err != nil {
		return err
	}
	return server.AnswerOnce(a.Idempotency, w, r, about(once, id), body, server.Answered(func(ctx context.Context) (orders.Appointment, error) {
		return a.Visits.Book(ctx, team, id, appointment.Phlebotomy, body)
	}))
}

func (a API) bookCenter(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	id := orderID(in)
	var body visits.BookRequest
	in.Body(&body)
	once := server.OnceFrom(in, team, "book_psc_appointment "+id.String(), healthlab.UserID{})
	if err := in.ErrAnd(body.Check); err != nil {
		return err
	}
	if err := body.Check(); err != nil {
		return err
	}
	if once != nil {
		if err := a.Visits.CheckBookingIdempotency(r.Context(), team); err != nil {
			return err
		}
	}
	return server.AnswerOnce(a.Idempotency, w, r, about(once, id), body, server.Answered(func(ctx context.Context) (orders.Appointment, error) {
		return a.Visits.Book(ctx, team, id, appointment.PatientServiceCenter, body)
	}))
}

func (a API) requestVisit(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	id := orderID(in)
	var body visits.VisitRequest
	in.Body(&body)
	once := server.OnceFrom(in, team, "request_phlebotomy_appointment "+id.String(), healthlab.UserID{})
	if err := in.Err(); err != nil {
		return err
	}
	return server.AnswerOnce(a.Idempotency, w, r, about(once, id), body, server.Answered(func(ctx context.Context) (orders.Appointment, error) {
		return a.Visits.Request(ctx, team, id, body)
	}))
}

func about(once *idempotency.Request, id orders.OrderID) *idempotency.Request {
	// The stored answer belongs to the order, so that erasing the order erases the answer too. once may be nil.
	if once != nil {
		once.About, once.Keep = id, idempotency.BookingRetention
	}
	return once
}

// rescheduling is the body of a reschedule. Absent notes are not changed.
type rescheduling struct {
	BookingKey       string           `json:"booking_key"`
	AppointmentNotes wire.Opt[string] `json:"appointment_notes,omitzero"`
}

func (a API) reschedule(t appointment.Type) func(http.ResponseWriter, *http.Request, healthlab.TeamID) error {
	return func(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
		in := wire.From(r)
		id := orderID(in)
		var body rescheduling
		in.Body(&body)
		if err := in.Err(); err != nil {
			return err
		}
		v, err := a.Visits.Reschedule(r.Context(), team, id, t, visits.RescheduleRequest{
			BookingKey: body.BookingKey, Notes: body.AppointmentNotes.Ptr(), KeepNotes: !body.AppointmentNotes.Set,
		})
		return answerVisit(w, v, err)
	}
}

// homeCancellation is the body of the cancellation of a visit at home.
type homeCancellation struct {
	CancellationReasonID uuid.UUID `json:"cancellation_reason_id"`
	Notes                *string   `json:"notes"`
}

func (a API) cancelHome(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	id := orderID(in)
	var body homeCancellation
	in.Body(&body)
	if err := in.Err(); err != nil {
		return err
	}
	v, err := a.Visits.Cancel(r.Context(), team, id, appointment.Phlebotomy, body.CancellationReasonID, body.Notes)
	return answerVisit(w, v, err)
}

// centerCancellation is the body that cancels an appointment at a patient service center. Its own field names are
// accepted besides those of the other cancellation bodies.
type centerCancellation struct {
	CancellationReasonID *uuid.UUID `json:"cancellationReasonId"`
	Note                 *string    `json:"note"`
	OtherID              *uuid.UUID `json:"cancellation_reason_id"`
	OtherNotes           *string    `json:"notes"`
}

func (a API) cancelCenter(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	id := orderID(in)
	var body centerCancellation
	in.Body(&body)
	if body.CancellationReasonID == nil {
		body.CancellationReasonID = body.OtherID
	}
	if body.Note == nil {
		body.Note = body.OtherNotes
	}
	var reason uuid.UUID
	if body.CancellationReasonID != nil {
		reason = *body.CancellationReasonID
	} else if in.Err() == nil {
		in.Problem("missing", "is required", "body", "cancellationReasonId")
	}
	if err := in.Err(); err != nil {
		return err
	}
	v, err := a.Visits.Cancel(r.Context(), team, id, appointment.PatientServiceCenter, reason, body.Note)
	return answerVisit(w, v, err)
}

func (a API) listReasons(t appointment.Type) func(http.ResponseWriter, *http.Request, healthlab.TeamID) error {
	return func(w http.ResponseWriter, r *http.Request, _ healthlab.TeamID) error {
		if err := wire.From(r).Err(); err != nil {
			return err
		}
		return wire.JSON(w, http.StatusOK, a.Visits.CancellationReasons(t))
	}
}

func (a API) readVisit(t appointment.Type) func(http.ResponseWriter, *http.Request, healthlab.TeamID) error {
	return func(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
		in := wire.From(r)
		id := orderID(in)
		if err := in.Err(); err != nil {
			return err
		}
		v, err := a.Visits.Get(r.Context(), team, id, t)
		return answerVisit(w, v, err)
	}
}
