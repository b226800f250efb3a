package httpapi_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/visits"
)

func (c *fixture) accepted(test string, edits object) orders.Order {
	c.t.Helper()
	o := c.order("POST", "/v3/order", c.request(test, edits))
	c.post("/v3/order/"+o.ID.String()+"/test?final_status=received."+string(o.Method())+".requisition_created", nil, 200)
	return o
}

// lows are the steps of an order's life.
func (c *fixture) lows(o orders.Order) (out []orders.LowLevel) {
	c.t.Helper()
	c.get("/v3/order/"+o.ID.String(), 200).JSON(c.t, &o)
	for _, e := range o.Events {
		out = append(out, e.Status.LowLevel())
	}
	return out
}

// keys are the booking keys of a provider's next days.
func (c *fixture) keys(kind string) []string {
	c.t.Helper()
	if kind == "psc" {
		return slotKeys(c.t, c.post("/v3/order/psc/appointment/availability?lab=northlab&zip_code=85201", nil, 200))
	}
	return slotKeys(c.t, c.post("/v3/order/phlebotomy/appointment/availability", homeAddress(nil), 200))
}

// Each step of an appointment moves its order, as documented.
func TestAppointment_eachStepMovesItsOrder(t *testing.T) {
	c := newFixture(t, nil)
	for _, row := range []struct {
		kind, test string
		moved      []orders.LowLevel
	}{
		{"phlebotomy", atHomeTest, []orders.LowLevel{orders.AppointmentScheduled}},
		{"psc", walkInTest, []orders.LowLevel{orders.AppointmentPending, orders.AppointmentScheduled}},
	} {
		keys := c.keys(row.kind)
		o := c.accepted(row.test, object{"patient_address": object{"first_line": "7 Elm Rd", "city": "Mesa", "state": "AZ", "zip": "85201", "country": "US", "access_notes": "gate 7"}})
		path := "/v3/order/" + o.ID.String()
		visit := path + "/" + row.kind + "/appointment"
		var a orders.Appointment
		c.post(visit+"/book", object{"booking_key": keys[0]}, 200).JSON(t, &a)
		require.Equal(t, appointment.VisitConfirmed, a.Status)
		require.Equal(t, appointment.EventStatus("scheduled"), a.EventStatus)
		require.True(t, a.CanReschedule)
		require.Equal(t, o.OrderTransaction.ID, *a.OrderTransactionID)
		if row.kind == "phlebotomy" {
			require.Equal(t, "gate 7", *a.Address.AccessNotes)
		}
		want := []orders.LowLevel{orders.Ordered, orders.RequisitionCreated, orders.AppointmentPending, orders.AppointmentScheduled}
		require.Equal(t, want, c.lows(o))
		c.get(path, 200).JSON(t, &o)
		shown := o.Details.AtHome
		if row.kind == "psc" {
			shown = o.Details.WalkIn
		}
		require.Equal(t, a.ID, *shown.AppointmentID)

		c.Send(t, "PATCH", visit+"/reschedule", object{"booking_key": keys[1]}).Want(t, 200).JSON(t, &a)
		require.JSONEq(t, `{"origin":"patient","is_reschedule":true}`, string(a.EventData))
		want = append(want, row.moved...)
		require.Equal(t, want, c.lows(o))

		c.order("POST", path+"/cancel", nil)
		c.get(visit, 200).JSON(t, &a)
		require.Equal(t, appointment.VisitCancelled, a.Status, "an appointment is cancelled with its order")
		require.Equal(t, append(want, orders.Cancelled), c.lows(o))
	}
}

// What the answer of a change says of an appointment is what a later read says.
func TestAppointment_changeReturnsWhatALaterReadReturns(t *testing.T) {
	for _, managed := range []bool{false, true} {
		c := remade(t, func(x *shop) {
			x.visits.Providers[0].PatientManaged = managed
			x.settings.PatientManagedPSC = true
		})
		for kind, test := range map[string]string{"phlebotomy": atHomeTest, "psc": walkInTest} {
			keys, o := c.keys(kind), c.accepted(test, nil)
			visit := "/v3/order/" + o.ID.String() + "/" + kind + "/appointment"
			changed := 0
			for _, change := range []struct {
				method, path string
				body         object
			}{
				{"POST", "/book", object{"booking_key": keys[0], "appointment_notes": "left arm"}},
				{"PATCH", "/reschedule", object{"booking_key": keys[1]}},
				{"PATCH", "/cancel", object{"cancellation_reason_id": c.reason(kind)}},
				{"POST", "/book", object{"booking_key": keys[2], "async_confirmation": true}},
				{"POST", "/book", object{"booking_key": keys[3]}},
			} {
				reply := c.Send(t, change.method, visit+change.path, change.body)
				if reply.Status != 200 {
					continue
				}
				changed++
				require.JSONEq(t, string(c.get(visit, 200).Body), string(reply.Body), "%s %s", kind, change.path)
			}
			require.Positive(t, changed)
		}
	}
}

func (c *fixture) reason(kind string) string {
	c.t.Helper()
	var reasons []appointment.CancellationReason
	c.get("/v3/order/"+kind+"/appointment/cancellation-reasons", 200).JSON(c.t, &reasons)
	return reasons[0].ID.String()
}

// An appointment that is cancelled leaves an order that can be booked again.
func TestAppointment_cancelledCanBeBookedAgain(t *testing.T) {
	c := newFixture(t, nil)
	for kind, test := range map[string]string{"phlebotomy": atHomeTest, "psc": walkInTest} {
		keys, o := c.keys(kind), c.accepted(test, nil)
		visit := "/v3/order/" + o.ID.String() + "/" + kind + "/appointment"
		c.refused("PATCH", visit+"/reschedule", object{"booking_key": keys[0]}, 404, orders.AppointmentNotFound)
		c.refused("PATCH", visit+"/cancel", object{"cancellation_reason_id": c.reason(kind)}, 404, orders.AppointmentNotFound)
		var first, second orders.Appointment
		c.post(visit+"/book", object{"booking_key": keys[0]}, 200).JSON(t, &first)
		c.Send(t, "PATCH", visit+"/cancel", object{"cancellation_reason_id": c.reason(kind)}).Want(t, 200)
		c.refused("PATCH", visit+"/cancel", object{"cancellation_reason_id": c.reason(kind)}, 400, visits.NotCancellable)
		c.get(visit, 200).JSON(t, &second)
		require.Equal(t, first.ID, second.ID, "the most recent one")
		c.post(visit+"/book", object{"booking_key": keys[1]}, 200).JSON(t, &second)
		require.NotEqual(t, first.ID, second.ID)
		c.get(visit, 200).JSON(t, &first)
		require.Equal(t, second.ID, first.ID)
		require.Equal(t, []orders.LowLevel{orders.Ordered, orders.RequisitionCreated, orders.AppointmentPending, orders.AppointmentScheduled,
			orders.AppointmentCancelled, orders.AppointmentPending, orders.AppointmentScheduled}, c.lows(o))
	}
}

func TestBooking_slotCanBeBookedOnlyOnce(t *testing.T) {
	c := newFixture(t, nil)
	keys := c.keys("phlebotomy")
	one, two := c.accepted(atHomeTest, nil), c.accepted(atHomeTest, nil)
	book := func(o orders.Order) string { return "/v3/order/" + o.ID.String() + "/phlebotomy/appointment/book" }
	c.post(book(one), object{"booking_key": keys[0]}, 200)
	c.refused("POST", book(two), object{"booking_key": keys[1]}, 400, visits.AppointmentExists)
	u, err := c.health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "patient-78"})
	require.NoError(t, err)
	other := c.accepted(atHomeTest, object{"user_id": u.ID.String()})
	c.post(book(other), object{"booking_key": keys[1]}, 200)
	c.refused("POST", book(c.accepted(atHomeTest, nil)), object{"booking_key": keys[0]}, 409, appointment.SlotNotAvailable)
}

// A slot that is gone is one error, wherever it was; a key can be used until it expires.
func TestBooking_takenOrExpiredSlotAnswersConflict(t *testing.T) {
	for _, env := range []healthlab.Environment{healthlab.Production, healthlab.Sandbox} {
		now := fixtureNow
		c := remade(t, func(x *shop) {
			x.options.Environment = env
			x.options.Now = func() time.Time { return now }
		})
		for kind, test := range map[string]string{"phlebotomy": atHomeTest, "psc": walkInTest} {
			keys := c.keys(kind)
			one, two := c.order("POST", "/v3/order", c.request(test, nil)), c.order("POST", "/v3/order", c.request(test, nil))
			path := func(o orders.Order) string { return "/v3/order/" + o.ID.String() + "/" + kind + "/appointment/book" }
			if kind == "phlebotomy" {
				u, err := c.health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "patient-" + string(env)})
				require.NoError(t, err)
				two = c.order("POST", "/v3/order", c.request(test, object{"user_id": u.ID.String()}))
			}
			c.post(path(one), object{"booking_key": keys[0]}, 200)
			c.refused("POST", path(two), object{"booking_key": keys[0]}, 409, appointment.SlotNotAvailable)
			now = now.Add(20 * 24 * time.Hour)
			c.refused("POST", path(two), object{"booking_key": keys[3]}, 409, appointment.SlotNotAvailable)
			now = fixtureNow
		}
	}
}

// Operations on appointments that the team has not enabled are forbidden.
func TestAppointments_disabledOperationIsForbidden(t *testing.T) {
	managed := func(x *shop) { x.visits.Providers[0].PatientManaged = true }
	for name, row := range map[string]struct {
		shop func(*shop)
		send func(c *fixture, book string) int
	}{
		"a patient-managed provider": {managed, func(c *fixture, _ string) int {
			return c.Send(c.t, "POST", "/v3/order/psc/appointment/availability?lab=northlab&zip_code=85201", nil).Status
		}},
		"cached slots": {func(x *shop) { x.settings.CachedAvailability = false }, func(c *fixture, _ string) int {
			return c.Send(c.t, "POST", "/v3/order/psc/appointment/availability?lab=northlab&zip_code=85201&allow_stale=true", nil).Status
		}},
		"asynchronous confirmation": {func(x *shop) { x.settings.AsyncConfirmation = false }, func(c *fixture, book string) int {
			return c.Send(c.t, "POST", book, object{"booking_key": c.keys("psc")[0], "async_confirmation": true}).Status
		}},
		"idempotency keys": {func(x *shop) { x.settings.BookingIdempotency = false }, func(c *fixture, book string) int {
			return c.With("x-idempotency-key", "k").Send(c.t, "POST", book, object{"booking_key": c.keys("psc")[0]}).Status
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := remade(t, row.shop)
			o := c.placed()
			require.Equal(t, 403, row.send(c, "/v3/order/"+o.ID.String()+"/psc/appointment/book"))
		})
	}
	c := remade(t, func(x *shop) { managed(x); x.settings.PatientManagedPSC = true })
	o := c.accepted(walkInTest, nil)
	visit := "/v3/order/" + o.ID.String() + "/psc/appointment"
	keys := c.keys("psc")
	var a orders.Appointment
	c.post(visit+"/book", object{"booking_key": keys[0], "appointment_notes": "later"}, 200).JSON(t, &a)
	require.Equal(t, appointment.VisitReserved, a.Status)
	require.False(t, a.CanReschedule)
	require.Equal(t, orders.RequisitionCreated, slices.Max(c.lows(o)), "its order does not move")
	c.refused("PATCH", visit+"/reschedule", object{"booking_key": keys[1]}, 400, visits.NotReschedulable)
	c.refused("PATCH", visit+"/cancel", object{"cancellationReasonId": c.reason("psc")}, 400, visits.NotCancellable)
}

// The patient of each method is told at the moments of the documentation, on its channels.
func TestPatientMessages_areSentAtTheDocumentedStatuses(t *testing.T) {
	for test, want := range map[string]string{
		kitTest: "sms ordered, sms transit_customer, sms out_for_delivery, sms delivered_to_lab, sms completed",
		walkInTest: "sms ordered, email ordered, sms requisition_created, email requisition_created, sms appointment_scheduled, " +
			"sms appointment_scheduled, sms appointment_cancelled, sms cancelled, email cancelled",
		atHomeTest: "sms ordered, email ordered, sms requisition_created, email requisition_created, email appointment_pending, " +
			"email appointment_scheduled, email appointment_scheduled, email appointment_cancelled, sms cancelled, email cancelled",
		onSiteTest: "sms ordered, email ordered, sms requisition_created, email requisition_created, sms draw_completed, email draw_completed, " +
			"sms completed, email completed",
	} {
		out := &postbox{}
		c := remade(t, func(x *shop) { x.options.Messenger = out })
		o := c.order("POST", "/v3/order", c.request(test, nil))
		path := "/v3/order/" + o.ID.String()
		work := func() {
			_, err := c.config.Orders.PatientMessages().SendDue(t.Context())
			require.NoError(t, err)
		}
		kind := map[string]string{walkInTest: "psc", atHomeTest: "phlebotomy"}[test]
		if kind == "" {
			c.post(path+"/test", nil, 200)
			work()
		} else {
			c.post(path+"/test?final_status=received."+string(o.Method())+".requisition_created", nil, 200)
			keys := c.keys(kind)
			c.post(path+"/"+kind+"/appointment/book", object{"booking_key": keys[0]}, 200)
			c.Send(t, "PATCH", path+"/"+kind+"/appointment/reschedule", object{"booking_key": keys[1]}).Want(t, 200)
			c.Send(t, "PATCH", path+"/"+kind+"/appointment/cancel", object{"cancellation_reason_id": c.reason(kind)}).Want(t, 200)
			c.order("POST", path+"/cancel", nil)
			work()
		}
		var got []string
		for _, m := range out.sent {
			got = append(got, string(m.Channel)+" "+string(m.Moment))
		}
		require.Equal(t, want, strings.Join(got, ", "))
		c.Send(t, "PATCH", path+"/communication_settings", object{"sms_enabled": false}).Want(t, 200)
	}
	// Of an import, later events are told.
	out := &postbox{}
	c := remade(t, func(x *shop) { x.options.Messenger = out })
	o := c.order("POST", "/v3/order/import", c.anImport(walkInTest, "REQ-1"))
	c.post("/v3/order/"+o.ID.String()+"/test", nil, 200)
	_, err := c.config.Orders.PatientMessages().SendDue(t.Context())
	require.NoError(t, err)
	require.Len(t, out.sent, 2)
	require.Equal(t, orders.Moment("completed"), out.sent[0].Moment)
}

// The country in the address of a visit is optional.
func TestHomeVisit_countryIsOptional(t *testing.T) {
	c := newFixture(t, nil)
	o := c.accepted(atHomeTest, nil)
	path := "/v3/order/" + o.ID.String() + "/phlebotomy/appointment/request"
	for _, country := range []any{"US", "USA", nil} {
		c.post("/v3/order/phlebotomy/appointment/availability", homeAddress(object{"country": country}), 200)
	}
	long := object{"provider": "phleb", "address": homeAddress(object{"country": strings.Repeat("x", 1001)})}
	require.Equal(t, []string{"body.address.country"}, c.post(path, long, 422).Locs(t))
	reply := c.Send(t, "POST", path, object{"provider": "phleb", "address": homeAddress(object{"country": "US"})})
	require.NotEqual(t, 422, reply.Status, string(reply.Body))
}
