package httpapi_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/visits"
)

const atHomeTest = "5ab0c1d2-0000-4000-8000-000000000003"

// mesaOnly knows one postal code.
type mesaOnly struct{}

func (mesaOnly) FindZip(_ context.Context, code string) (appointment.Zip, bool, error) {
	return appointment.Zip{Location: appointment.LngLat{Lng: -111.83, Lat: 33.42}, State: "AZ"}, code == "85201", nil
}

func somePlaces(t testing.TB) *appointment.CenterIndex {
	t.Helper()
	a, err := appointment.ReadCenterIndex(strings.NewReader(
		"lab_id,site_code,name,first_line,city,state,zip_code,hours,lng,lat,iana_timezone,capabilities\n" +
			"1,MESA-1,Mesa East,7 Elm Rd,Mesa,AZ,85201,\"{\"\"daily\"\":\"\"0-24\"\"}\",-111.83,33.42,America/Phoenix,appointment_scheduling_via_service\n" +
			"1,MESA-2,Mesa West,9 Elm Rd,Mesa,AZ,85201,,-111.95,33.42,America/Phoenix,stat\n"))
	require.NoError(t, err)
	return a
}

// busyLab is an idle laboratory that makes appointments: each day at noon UTC, one.
type busyLab struct {
	idleLab
	mu     sync.Mutex
	taken  map[string]uuid.UUID
	failed map[uuid.UUID]bool
	asked  int // for free slots
}

func newBusyLab() *busyLab {
	return &busyLab{taken: map[string]uuid.UUID{}, failed: map[uuid.UUID]bool{}}
}

func (*busyLab) ServedAt(_ context.Context, zip string) ([]appointment.Served, error) {
	if zip != "85201" {
		return nil, nil
	}
	return []appointment.Served{{Provider: "phleb", Tiers: []appointment.ServiceTier{appointment.ReadyTier, appointment.RequestTier}}}, nil
}

func (l *busyLab) FreeSlots(_ context.Context, q appointment.SlotQuery) ([]appointment.Slot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	sites := []string{""}
	if q.Type == appointment.PatientServiceCenter {
		sites = nil
		for _, c := range q.Sites {
			sites = append(sites, c.SiteCode)
		}
	}
	var out []appointment.Slot
	for _, site := range sites {
		for at := fixtureNow.Add(24 * time.Hour); at.Before(q.To); at = at.Add(24 * time.Hour) {
			slot := appointment.Slot{Provider: "phleb", Zone: "America/Phoenix", Start: at, End: at.Add(time.Hour), Places: 1, Price: 1500}
			if site != "" {
				slot = appointment.Slot{Provider: q.Lab, SiteCode: site, Start: at, End: at.Add(time.Hour), Places: 1}
			}
			slot.Key = fmt.Sprint(slot.Provider, site, at.Unix())
			if _, taken := l.taken[slot.Key]; !taken {
				out = append(out, slot)
			}
		}
	}
	return out, nil
}

func (l *busyLab) asks() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked
}

func (l *busyLab) BookVisit(_ context.Context, b visits.Booking) (visits.Booked, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b.Notes == "not now" && !l.failed[b.Appointment] {
		l.failed[b.Appointment] = true
		return visits.Booked{}, healthlab.Unavailable
	}
	if by, taken := l.taken[b.Slot.Key]; b.Slot.Key != "" && taken && by != b.Appointment {
		return visits.Booked{}, healthlab.NotFound
	}
	l.taken[b.Slot.Key] = b.Appointment
	return visits.Booked{Confirmed: b.Slot.Key != "" && b.Notes != "later", ExternalID: "EXT"}, nil
}

func (l *busyLab) MoveVisit(ctx context.Context, b visits.Booking) (visits.Booked, error) {
	return l.BookVisit(ctx, b)
}

func (*busyLab) CancelVisit(context.Context, visits.Cancellation) error { return nil }

func TestServiceCenters_areFoundNearAZipCode(t *testing.T) {
	c := newFixture(t, nil)
	var info appointment.PSCInfo
	c.get("/v3/order/psc/info?zip_code=85201&lab_id=1", 200).JSON(t, &info)
	require.Equal(t, "northlab", info.Slug)
	require.Len(t, info.PatientServiceCenters, 2)
	require.Equal(t, "0", info.PatientServiceCenters[0].Distance)
	require.Equal(t, "7", info.PatientServiceCenters[1].Distance)
	require.JSONEq(t, `{"daily":"0-24"}`, string(info.PatientServiceCenters[0].Metadata.Hours))
	c.get("/v3/order/psc/info?zip_code=85201&lab_id=1&radius=10&capabilities=stat", 200).JSON(t, &info)
	require.Len(t, info.PatientServiceCenters, 1)
	var area appointment.AreaInfo
	c.get("/v3/order/area/info?zip_code=85201&labs=northlab", 200).JSON(t, &area)
	require.True(t, area.Phlebotomy.IsServed)
	require.Equal(t, 2, area.CentralLabs["northlab"].PatientServiceCenters.WithinRadius)
	c.get("/v3/order/area/info?zip_code=85201&lab=northlab&radius=50", 200)
	require.Equal(t, appointment.ZipCodeUnknown, c.get("/v3/order/psc/info?zip_code=00001&lab_id=1", 400).ErrorType(t))
	require.Equal(t, []string{"query.zip_code", "query.radius", "query.lab_id"}, c.get("/v3/order/psc/info?radius=30", 422).Locs(t))
	require.Equal(t, []string{"query.zip_code"}, c.get("/v3/order/area/info?zip_code=8520", 422).Locs(t))
	require.Equal(t, []string{"query.labs.0"}, c.get("/v3/order/area/info?zip_code=85201&labs=x", 422).Locs(t))
	o := c.placed()
	require.Equal(t, appointment.ZipCodeUnknown, c.get("/v3/order/"+o.ID.String()+"/psc/info", 400).ErrorType(t), "nobody knows where its patient lives")
	c.get("/v3/order/"+absent+"/psc/info", 404)
}

// slotKeys returns the booking keys of an answer.
func slotKeys(t testing.TB, r *contract.Reply) []string {
	t.Helper()
	var a appointment.AvailabilitySlots
	r.JSON(t, &a)
	require.GreaterOrEqual(t, len(a.Slots), appointment.AvailabilityDays)
	var out []string
	for _, d := range a.Slots {
		for _, s := range d.Slots {
			out = append(out, *s.BookingKey)
		}
	}
	return out
}

func TestHomeVisit_isBookedRescheduledAndCancelled(t *testing.T) {
	c := newFixture(t, nil)
	address := object{"first_line": "7 Elm Rd", "city": "Mesa", "state": "AZ", "zip_code": "85201"}
	keys := slotKeys(t, c.post("/v3/order/phlebotomy/appointment/availability", address, 200))
	require.Len(t, keys, 13)
	keys = slotKeys(t, c.post("/v3/order/phlebotomy/appointment/availability?start_date=2026-04-01", address, 200))
	require.Len(t, keys, 14)
	require.Equal(t, appointment.StartDateInPast, c.post("/v3/order/phlebotomy/appointment/availability?start_date=2026-03-01", address, 400).ErrorType(t))
	o := c.order("POST", "/v3/order", c.request(atHomeTest, nil))
	path := "/v3/order/" + o.ID.String() + "/phlebotomy/appointment"
	c.get(path, 404)
	var a orders.Appointment
	c.post(path+"/book", object{"booking_key": keys[0], "appointment_notes": "ring twice", "async_confirmation": true}, 200).JSON(t, &a)
	require.Equal(t, appointment.VisitReserved, a.Status)
	require.Equal(t, appointment.EventStatus("reserved"), a.EventStatus)
	c.get(path, 200).JSON(t, &a)
	require.Equal(t, "ring twice", *a.AppointmentNotes)
	c.Send(t, "PATCH", path+"/reschedule", object{"booking_key": keys[1]}).Want(t, 200).JSON(t, &a)
	require.Equal(t, "ring twice", *a.AppointmentNotes)
	c.Send(t, "PATCH", path+"/reschedule", object{"booking_key": keys[2], "appointment_notes": nil}).Want(t, 200).JSON(t, &a)
	require.Nil(t, a.AppointmentNotes)
	require.Equal(t, visits.AppointmentExists, c.post(path+"/book", object{"booking_key": keys[3]}, 400).ErrorType(t))
	var reasons []appointment.CancellationReason
	c.get("/v3/order/phlebotomy/appointment/cancellation-reasons", 200).JSON(t, &reasons)
	require.NotEmpty(t, reasons)
	c.Send(t, "PATCH", path+"/cancel", object{"cancellation_reason_id": absent}).Want(t, 400)
	c.Send(t, "PATCH", path+"/cancel", object{"cancellation_reason_id": reasons[0].ID.String(), "notes": "away"}).Want(t, 200).JSON(t, &a)
	require.Equal(t, appointment.VisitCancelled, a.Status)
	require.Equal(t, visits.NotCancellable, c.Send(t, "PATCH", path+"/cancel", object{"cancellation_reason_id": reasons[0].ID.String()}).Want(t, 400).ErrorType(t))

	c.post(path+"/request", object{"address": address, "provider": "phleb"}, 200).JSON(t, &a)
	require.Nil(t, a.StartAt)
	require.Equal(t, visits.NotReschedulable, c.Send(t, "PATCH", path+"/reschedule", object{"booking_key": keys[4]}).Want(t, 400).ErrorType(t))
	require.Equal(t, []string{"body.booking_key", "body.async_confirmation_timeout_millisecond"},
		c.post(path+"/book", object{"booking_key": "", "async_confirmation_timeout_millisecond": 5}, 422).Locs(t))
}

func TestCenterAppointment_isBookedRescheduledAndCancelled(t *testing.T) {
	c := newFixture(t, nil)
	keys := slotKeys(t, c.post("/v3/order/psc/appointment/availability?lab=northlab&zip_code=85201", nil, 200))
	require.Len(t, keys, 13)
	keys = slotKeys(t, c.post("/v3/order/psc/appointment/availability?lab=northlab&site_codes=MESA-1&allow_stale=true", nil, 200))
	require.Equal(t, appointment.NoSlots, c.post("/v3/order/psc/appointment/availability?lab=northlab&site_codes=MESA-2", nil, 404).ErrorType(t))
	require.Equal(t, []string{"query.lab"}, c.post("/v3/order/psc/appointment/availability?lab=nolab&zip_code=85201", nil, 422).Locs(t))
	o, other := c.placed(), c.placed()
	path := "/v3/order/" + o.ID.String() + "/psc/appointment"
	var a orders.Appointment
	c.post(path+"/book", object{"booking_key": keys[0]}, 200).JSON(t, &a)
	require.Equal(t, appointment.VisitReserved, a.Status)
	require.Equal(t, appointment.SlotNotAvailable, c.post("/v3/order/"+other.ID.String()+"/psc/appointment/book", object{"booking_key": keys[0]}, 409).ErrorType(t))
	require.Equal(t, appointment.BookingKeyInvalid, c.post(path+"/book", object{"booking_key": "SECRET"}, 400).ErrorType(t))
	c.Send(t, "PATCH", path+"/reschedule", object{"booking_key": keys[1]}).Want(t, 200)
	c.get(path, 200)
	var reasons []appointment.CancellationReason
	c.get("/v3/order/psc/appointment/cancellation-reasons", 200).JSON(t, &reasons)
	require.Equal(t, []string{"body.cancellationReasonId"}, c.Send(t, "PATCH", path+"/cancel", object{}).Want(t, 422).Locs(t))
	c.Send(t, "PATCH", path+"/cancel", object{"cancellationReasonId": reasons[0].ID.String(), "note": "x"}).Want(t, 200)
	c.post(path+"/book", object{"booking_key": keys[2]}, 200)
	c.Send(t, "PATCH", path+"/cancel", object{"cancellation_reason_id": reasons[0].ID.String(), "notes": "x"}).Want(t, 200)
}

// A key repeats the answer of a booking byte for byte, whatever became of the appointment.
// An answer of 5xx is not stored.
func TestIdempotencyKey_repeatsTheAnswerOfABooking(t *testing.T) {
	c := newFixture(t, nil)
	keys := slotKeys(t, c.post("/v3/order/psc/appointment/availability?lab=northlab&zip_code=85201", nil, 200))
	o := c.placed()
	path := "/v3/order/" + o.ID.String() + "/psc/appointment"
	keyed := c.With("x-idempotency-key", "k1")
	body := object{"booking_key": keys[0], "appointment_notes": "later", "async_confirmation": true}
	first := keyed.Send(t, "POST", path+"/book", body).Want(t, 200)
	require.Contains(t, string(first.Body), `"status":"pending"`)
	var reasons []appointment.CancellationReason
	c.get("/v3/order/psc/appointment/cancellation-reasons", 200).JSON(t, &reasons)
	c.Send(t, "PATCH", path+"/cancel", object{"cancellationReasonId": reasons[0].ID.String()}).Want(t, 200)
	again := keyed.Send(t, "POST", path+"/book", body).Want(t, 200)
	require.Equal(t, string(first.Body), string(again.Body))
	keyed.Send(t, "POST", path+"/book", object{"booking_key": keys[1]}).Want(t, 409)

	// The provider does not confirm in time: the appointment is pending, and confirmed later.
	o = c.placed()
	path = "/v3/order/" + o.ID.String() + "/psc/appointment"
	body = object{"booking_key": keys[2], "appointment_notes": "not now"}
	first = keyed.Send(t, "POST", path+"/book", body).Want(t, 200)
	require.Contains(t, string(first.Body), `"status":"pending"`)
	require.Contains(t, string(c.get(path, 200).Body), `"status":"pending"`)
	require.Equal(t, string(first.Body), string(keyed.Send(t, "POST", path+"/book", body).Want(t, 200).Body))

	// A lost race is not stored.
	other := c.placed()
	path = "/v3/order/" + other.ID.String() + "/psc/appointment/book"
	for range 2 {
		require.Equal(t, appointment.SlotNotAvailable, keyed.Send(t, "POST", path, object{"booking_key": keys[2]}).Want(t, 409).ErrorType(t))
	}
	keyed.Send(t, "POST", path, object{"booking_key": keys[4]}).Want(t, 200)
	fresh := c.With("x-idempotency-key", "k2").With("x-idempotency-error", "no-cache")
	fresh.Send(t, "POST", path, object{"booking_key": keys[2]}).Want(t, 400)
}
