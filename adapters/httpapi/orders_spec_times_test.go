package httpapi_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// timed is a fixture whose clock stands at now.
func timed(t *testing.T, now *time.Time, edits ...func(*shop)) *fixture {
	t.Helper()
	return remade(t, func(x *shop) {
		x.options.Now = func() time.Time { return *now }
		for _, edit := range edits {
			edit(x)
		}
	})
}

// A visit at home that is cancelled at least 24 hours before it is refunded, for reasons that
// allow a refund; for a center the reason alone decides.
func TestCancellation_refundsByReasonAndNotice(t *testing.T) {
	reason := func(c *fixture, kind string, refundable bool) string {
		var reasons []appointment.CancellationReason
		c.get("/v3/order/"+kind+"/appointment/cancellation-reasons", 200).JSON(t, &reasons)
		for _, r := range reasons {
			if r.IsRefundable == refundable {
				return r.ID.String()
			}
		}
		t.Fatal("there is no such reason")
		return ""
	}
	for _, row := range []struct {
		kind, test string
		refundable bool // by its reason
		before     time.Duration
		want       string
	}{
		{"phlebotomy", atHomeTest, true, 24 * time.Hour, "true"},
		{"phlebotomy", atHomeTest, true, 24*time.Hour - time.Second, "false"},
		{"phlebotomy", atHomeTest, false, 40 * time.Hour, "false"},
		{"psc", walkInTest, true, time.Minute, "true"},
	} {
		now := fixtureNow
		c := timed(t, &now)
		keys, o := c.keys(row.kind), c.accepted(row.test, nil)
		visit := "/v3/order/" + o.ID.String() + "/" + row.kind + "/appointment"
		var a orders.Appointment
		c.post(visit+"/book", object{"booking_key": keys[1]}, 200).JSON(t, &a)
		now = a.StartAt.Add(-row.before)
		c.Send(t, "PATCH", visit+"/cancel", object{"cancellation_reason_id": reason(c, row.kind, row.refundable)}).Want(t, 200).JSON(t, &a)
		require.Equal(t, appointment.VisitCancelled, a.Status)
		require.Contains(t, string(a.EventData), `"is_refundable":`+row.want, "%+v", row)
	}
}

// Cached availability is returned until it is 15 minutes old, to callers that ask for cached
// answers, and only if every requested place is cached.
func TestCachedSlots_areReturnedUpTo15MinutesOldIfAsked(t *testing.T) {
	now := fixtureNow
	lab := newBusyLab()
	c := timed(t, &now, func(x *shop) { x.lab = lab })
	free := func(query string) int {
		return len(slotKeys(t, c.post("/v3/order/psc/appointment/availability?lab=northlab&start_date=2026-03-05&site_codes=MESA-1"+query, nil, 200)))
	}
	asked, err := c.config.Visits.Places().RefreshSlots(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, asked)
	before := free("&allow_stale=true")
	o := c.accepted(walkInTest, nil)
	c.post("/v3/order/"+o.ID.String()+"/psc/appointment/book", object{"booking_key": c.keys("psc")[3]}, 200)
	for _, row := range []struct {
		age   time.Duration
		query string
		want  int
	}{
		{0, "&allow_stale=true", before}, {0, "", before - 1}, {0, "&allow_stale=false", before - 1},
		{15*time.Minute - time.Second, "&allow_stale=true", before},
		{15 * time.Minute, "&allow_stale=true", before - 1},
	} {
		now = fixtureNow.Add(row.age)
		require.Equal(t, row.want, free(row.query), "%+v", row)
	}
	// Refreshed, it is what there is.
	_, err = c.config.Visits.Places().RefreshSlots(t.Context())
	require.NoError(t, err)
	require.Equal(t, before-1, free("&allow_stale=true"))
	// Three weeks ahead is as far as the cache goes.
	asks := lab.asks()
	c.post("/v3/order/psc/appointment/availability?lab=northlab&start_date=2026-03-11&site_codes=MESA-1&allow_stale=true", nil, 200)
	require.Equal(t, asks, lab.asks())
	c.post("/v3/order/psc/appointment/availability?lab=northlab&start_date=2026-03-12&site_codes=MESA-1&allow_stale=true", nil, 200)
	require.Equal(t, asks+1, lab.asks())
}

// A booking that its provider does not confirm stays pending until the deadline, and is then
// cancelled.
func TestBooking_unconfirmedIsCancelledAtTheDeadline(t *testing.T) {
	const milli = "async_confirmation_timeout_millisecond"
	for name, row := range map[string]struct {
		body  object
		until time.Duration
	}{
		"quarter of an hour": {object{}, 15 * time.Minute},
		"a minute":           {object{milli: 60_000, "sync_confirmation_timeout_millisecond": 1000}, time.Minute},
		"two days":           {object{milli: 172_800_000}, 48 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			now := fixtureNow
			c := timed(t, &now)
			keys, o := c.keys("psc"), c.accepted(walkInTest, nil)
			visit := "/v3/order/" + o.ID.String() + "/psc/appointment"
			row.body["booking_key"], row.body["appointment_notes"], row.body["async_confirmation"] = keys[5], "later", true
			var a orders.Appointment
			c.post(visit+"/book", row.body, 200).JSON(t, &a)
			require.Equal(t, appointment.VisitPending, a.Status)
			pass := func(to time.Duration) {
				now = fixtureNow.Add(to)
				_, err := c.config.Visits.ProcessDue(t.Context())
				require.NoError(t, err)
				c.get(visit, 200).JSON(t, &a)
			}
			pass(row.until - time.Second)
			require.Equal(t, appointment.VisitPending, a.Status)
			pass(row.until)
			require.Equal(t, appointment.VisitCancelled, a.Status)
			require.JSONEq(t, `{"origin":"service","reason":"not_confirmed"}`, string(a.EventData))
			require.Equal(t, []orders.LowLevel{orders.Ordered, orders.RequisitionCreated, orders.AppointmentPending, orders.AppointmentCancelled}, c.lows(o))
			c.post(visit+"/book", object{"booking_key": keys[6]}, 200)
		})
	}
	c := newFixture(t, nil)
	o := c.accepted(walkInTest, nil)
	for field, bad := range map[string][]int{milli: {59_999, 172_800_001}, "sync_confirmation_timeout_millisecond": {999, 10_001}} {
		for _, n := range bad {
			require.Equal(t, []string{"body." + field}, c.post("/v3/order/"+o.ID.String()+"/psc/appointment/book",
				object{"booking_key": c.keys("psc")[0], "async_confirmation": true, field: n}, 422).Locs(t))
		}
	}
	// Without asynchronous confirmation, the times are passed over.
	c.post("/v3/order/"+o.ID.String()+"/psc/appointment/book", object{"booking_key": c.keys("psc")[0], milli: 60_000}, 200)
}

// An order keeps the insurance that it was placed with, and so does the day of its draw,
// whatever the patient's newest is.
func TestOrder_keepsTheInsuranceItWasPlacedWith(t *testing.T) {
	now := fixtureNow
	c := timed(t, &now)
	c.Send(t, "PATCH", c.about("info"), anInfo(nil)).Want(t, 200)
	insured := object{"billing_type": "commercial_insurance", "icd_codes": []string{"E11.9"}}
	c.refused("POST", "/v3/order", c.request(walkInTest, insured), 400, orders.InsuranceMissing)
	c.post(c.about("insurance"), anInsurance(nil), 200)
	now = now.Add(time.Hour)
	first := c.order("POST", "/v3/order", c.request(walkInTest, insured))
	drawn := now
	now = now.Add(24 * time.Hour)
	c.post(c.about("insurance"), anInsurance(object{"member_id": "M-2"}), 200)
	c.post(c.about("insurance"), anInsurance(object{"member_id": "M-3", "is_primary": false}), 200)
	second := c.order("POST", "/v3/order", c.request(walkInTest, insured))
	require.NotEqual(t, *first.HealthInsuranceID, *second.HealthInsuranceID)
	for query, member := range map[string]string{"": "M-2", "?is_primary=true": "M-2", "?is_primary=false": "M-3"} {
		var latest people.InsuranceRecord
		c.get(c.about("insurance/latest"+query), 200).JSON(t, &latest)
		require.Equal(t, member, latest.MemberID)
	}
	for at, member := range map[string]string{
		drawn.Format(time.RFC3339): "M-1", drawn.Format(time.DateOnly): "M-1", now.Format(time.DateOnly): "M-2", now.Format(time.RFC3339): "M-2", "2099-01-01": "M-2",
	} {
		var then people.InsuranceRecord
		c.get(c.about("insurance/latest?at="+at), 200).JSON(t, &then)
		require.Equal(t, member, then.MemberID, at)
	}
	c.refused("GET", c.about("insurance/latest?at=2020-01-01"), nil, 404, people.InsuranceNotFound)
	c.refused("GET", c.about("insurance/latest?is_primary=false&at="+drawn.Format(time.DateOnly)), nil, 404, people.InsuranceNotFound)
	c.get(c.about("insurance/latest?at=yesterday"), 422)
	var again orders.Order
	c.get("/v3/order/"+first.ID.String(), 200).JSON(t, &again)
	require.Equal(t, first.HealthInsuranceID, again.HealthInsuranceID)
	for at, o := range map[time.Time]orders.Order{drawn: first, now: second} {
		of, err := c.config.Orders.People().InsuranceAt(t.Context(), team, c.user, true, at)
		require.NoError(t, err)
		require.Equal(t, *o.HealthInsuranceID, of.ID)
	}
}
