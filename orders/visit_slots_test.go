package orders_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/appointment"
)

func TestHomeSlots_areListedByDayForAServedAddress(t *testing.T) {
	d := newVisits(t)
	slots, err := d.visits.Places().HomeSlots(t.Context(), d.team, nil, homeAddress())
	require.NoError(t, err)
	require.Equal(t, "America/Phoenix", *slots.Timezone)
	require.Len(t, slots.Slots, appointment.AvailabilityDays)
	for i, day := range slots.Slots {
		require.Equal(t, healthlab.Date{Year: 2026, Month: 3, Day: 2}.AddDays(i), day.Date)
		require.Nil(t, day.Location)
		for _, s := range day.Slots {
			require.Equal(t, day.Date, healthlab.DateOf(s.Start.In(zone(t, "America/Phoenix"))))
			require.Equal(t, 2, s.NumAppointmentsAvailable)
			require.NotNil(t, s.BookingKey)
			require.False(t, s.ExpiresAt.After(s.Start.Time))
		}
	}
	other := homeAddress()
	other.FirstLine = "1 Other Street"
	slots, err = d.visits.Places().HomeSlots(t.Context(), d.team, nil, other)
	require.NoError(t, err)
	require.Len(t, slots.Slots, appointment.AvailabilityDays)
	require.Len(t, keysOf(slots), 4*appointment.AvailabilityDays, "any address of the area is served")
	start := healthlab.Date{Year: 2026, Month: 5, Day: 1}
	slots, err = d.visits.Places().HomeSlots(t.Context(), d.team, &start, homeAddress())
	require.NoError(t, err)
	require.Equal(t, start, slots.Slots[0].Date)
	require.Equal(t, start.AddDays(13), slots.Slots[13].Date)
	require.Len(t, keysOf(slots), 14*4)

	refused := func(edit func(*appointment.AddressInput), start *healthlab.Date, rule string) {
		t.Helper()
		a := homeAddress()
		edit(&a)
		_, err := d.visits.Places().HomeSlots(t.Context(), d.team, start, a)
		requireRule(t, err, rule, healthlab.Precondition)
	}
	same := func(*appointment.AddressInput) {}
	refused(func(a *appointment.AddressInput) { a.FirstLine = "Example Avenue" }, nil, appointment.StreetNumberMissing)
	refused(func(a *appointment.AddressInput) { a.State, a.ZipCode = "NY", "10001" }, nil, appointment.AreaNotServed)
	refused(func(a *appointment.AddressInput) { a.State, a.ZipCode = "WI", "54650" }, nil, appointment.AreaNotServed)
	refused(same, &healthlab.Date{Year: 2026, Month: 3, Day: 1}, appointment.StartDateInPast)
	d.at = time.Date(2026, 3, 3, 5, 0, 0, 0, time.UTC) // the evening of the second in Phoenix
	yesterday := healthlab.Date{Year: 2026, Month: 3, Day: 2}
	slots, err = d.visits.Places().HomeSlots(t.Context(), d.team, &yesterday, homeAddress())
	require.NoError(t, err, "it is still today there")
	require.Equal(t, yesterday, slots.Slots[0].Date)
	d.at = time.Date(2026, 3, 3, 8, 0, 0, 0, time.UTC)
	refused(same, &yesterday, appointment.StartDateInPast)
	_, err = d.visits.Places().HomeSlots(t.Context(), d.team, nil, appointment.AddressInput{ZipCode: "1", Zip: ptr("2")})
	require.ErrorIs(t, err, healthlab.Invalid)
}

func TestCenterSlots_areThoseOfCentersInTheRadius(t *testing.T) {
	d := newVisits(t)
	ask := func(edit func(*appointment.CenterSlotsRequest)) (appointment.AvailabilitySlots, error) {
		req := appointment.CenterSlotsRequest{Lab: "northlab", Zip: "85201"}
		edit(&req)
		return d.visits.Places().CenterSlots(t.Context(), d.team, req)
	}
	slots, err := ask(func(*appointment.CenterSlotsRequest) {})
	require.NoError(t, err)
	require.Nil(t, slots.Timezone)
	require.Len(t, slots.Slots, 2*appointment.AvailabilityDays, "two of the centers can be booked")
	require.Equal(t, "THERE", slots.Slots[0].Location.Code)
	require.Equal(t, 10, *slots.Slots[0].Location.Distance)
	require.Equal(t, "FAR", slots.Slots[14].Location.Code)
	require.Len(t, slots.Slots[0].Slots, 10*3, "from seven to five")
	require.Len(t, slots.Slots[1].Slots, 5*3, "from seven to twelve")
	slots, err = ask(func(r *appointment.CenterSlotsRequest) { r.SiteCodes, r.Zip = []string{"FAR", "THERE"}, "10001" })
	require.NoError(t, err)
	require.Len(t, slots.Slots, 2*appointment.AvailabilityDays)
	require.Nil(t, slots.Slots[0].Location.Distance)
	for _, tc := range []struct {
		edit func(*appointment.CenterSlotsRequest)
		rule string
		kind healthlab.ErrorKind
	}{
		{func(r *appointment.CenterSlotsRequest) { r.Zip = "" }, appointment.PlaceMissing, healthlab.Precondition},
		{func(r *appointment.CenterSlotsRequest) { r.SiteCodes = []string{"a", "b", "c", "d"} }, appointment.TooManySites, healthlab.Precondition},
		{func(r *appointment.CenterSlotsRequest) { r.SiteCodes = []string{"NOWHERE"} }, appointment.SiteUnknown, healthlab.Precondition},
		{func(r *appointment.CenterSlotsRequest) { r.SiteCodes = []string{"CLOSED"} }, appointment.SiteUnknown, healthlab.Precondition},
		{func(r *appointment.CenterSlotsRequest) { r.SiteCodes = []string{"HERE"} }, appointment.NoSlots, healthlab.NotFound},
		{func(r *appointment.CenterSlotsRequest) { r.Zip = "10001" }, appointment.NoSlots, healthlab.NotFound},
		{func(r *appointment.CenterSlotsRequest) { r.Zip = "00000" }, appointment.ZipCodeUnknown, healthlab.Precondition},
		{func(r *appointment.CenterSlotsRequest) { r.Start = &healthlab.Date{Year: 2026, Month: 3, Day: 1} }, appointment.StartDateInPast, healthlab.Precondition},
	} {
		_, err := ask(tc.edit)
		requireRule(t, err, tc.rule, tc.kind)
	}
	_, err = ask(func(r *appointment.CenterSlotsRequest) { r.Lab, r.Radius = "southlab", 7 })
	var invalid *healthlab.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Len(t, invalid.Problems, 2)
}

// A day on which clocks change has its slots at the same local times, and none that
// clocks do not show.
func TestSlots_keepLocalTimesWhenClocksChange(t *testing.T) {
	for _, tc := range []struct {
		zone        string
		day         healthlab.Date
		before, now time.Time
	}{
		{"America/New_York", healthlab.Date{Year: 2026, Month: 3, Day: 8}, time.Time{}, time.Date(2026, 3, 6, 12, 0, 0, 0, time.UTC)},
		{"America/New_York", healthlab.Date{Year: 2026, Month: 11, Day: 1}, time.Time{}, time.Date(2026, 10, 30, 12, 0, 0, 0, time.UTC)},
		// At half past one in the night the clocks are about to change.
		{"America/New_York", healthlab.Date{Year: 2026, Month: 3, Day: 8}, time.Time{}, time.Date(2026, 3, 8, 6, 30, 0, 0, time.UTC)},
		{"America/New_York", healthlab.Date{Year: 2026, Month: 11, Day: 1}, time.Time{}, time.Date(2026, 11, 1, 4, 30, 0, 0, time.UTC)},
		{"Australia/Lord_Howe", healthlab.Date{Year: 2026, Month: 10, Day: 4}, time.Time{}, time.Date(2026, 10, 3, 12, 0, 0, 0, time.UTC)},
	} {
		c := centerAt(1, "C", mesa.Lng, mesa.Lat, appointment.PSCSchedulingViaService)
		c.IANATimezone = tc.zone
		d := newVisits(t, func(o *options) { o.Centers = atlas(t, c) })
		d.at = tc.now
		slots, err := d.visits.Places().CenterSlots(t.Context(), d.team, appointment.CenterSlotsRequest{Lab: "northlab", SiteCodes: []string{"C"}})
		require.NoError(t, err)
		loc := zone(t, tc.zone)
		seen := map[time.Time]bool{}
		for _, day := range slots.Slots {
			for i, s := range day.Slots {
				local := s.Start.In(loc)
				require.Equal(t, day.Date, healthlab.DateOf(local))
				back, err := appointment.WallTime(day.Date, local.Hour(), local.Minute(), loc)
				require.NoError(t, err, "clocks show it")
				require.True(t, back.Equal(s.Start.Time) || s.Start.Sub(back) == time.Hour || s.Start.Sub(back) == 30*time.Minute, "the first or the second time")
				require.Equal(t, 20*time.Minute, s.End.Sub(s.Start.Time))
				require.False(t, seen[s.Start.Time])
				seen[s.Start.Time] = true
				if i == 0 && day.Date != healthlab.DateOf(tc.now.In(loc)) {
					require.Equal(t, "07:00", local.Format("15:04"))
				}
			}
		}
		require.True(t, slices.ContainsFunc(slots.Slots, func(s appointment.DaySlots) bool { return s.Date == tc.day && len(s.Slots) > 0 }))
	}
}

// Slots lie within the opening hours of their center, in every week of a year.
func TestSlots_areWithinOpeningHours(t *testing.T) {
	for _, name := range []string{"America/New_York", "America/Phoenix", "Europe/Berlin", "America/Havana", "Australia/Lord_Howe"} {
		for hours, open := range map[string]map[time.Weekday][2]string{
			`{"mon-fri": "07:40-11:10"}`: {1: {"07:40", "11:10"}, 2: {"07:40", "11:10"}, 3: {"07:40", "11:10"}, 4: {"07:40", "11:10"}, 5: {"07:40", "11:10"}},
			`{"Sat, Sun": ["9 AM - 10:00 am"], "weekdays": "closed", "tue": null, "wed": "8-24"}`: {6: {"09:00", "10:00"}, 0: {"09:00", "10:00"}, 3: {"08:00", "23:59"}},
		} {
			c := centerAt(1, "C", mesa.Lng, mesa.Lat, appointment.PSCSchedulingViaService)
			c.IANATimezone, c.Metadata.Hours = name, []byte(hours)
			d := newVisits(t, func(o *options) { o.Centers = atlas(t, c) })
			loc := zone(t, name)
			for week := range 53 {
				d.at = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).AddDate(0, 0, 7*week)
				slots, err := d.visits.Places().CenterSlots(t.Context(), d.team, appointment.CenterSlotsRequest{Lab: "northlab", SiteCodes: []string{"C"}})
				require.NoError(t, err)
				for _, day := range slots.Slots {
					span, opens := open[day.Date.At(time.UTC).Weekday()]
					if !opens {
						require.Empty(t, day.Slots, "%s on %s", hours, day.Date)
						continue
					}
					if day.Date != healthlab.DateOf(d.at.In(loc)) {
						require.NotEmpty(t, day.Slots, "%s on %s", hours, day.Date)
					}
					for _, s := range day.Slots {
						require.GreaterOrEqual(t, s.Start.In(loc).Format("15:04"), span[0])
						require.LessOrEqual(t, s.End.In(loc).Format("15:04"), span[1])
					}
				}
			}
		}
	}
	// Hours in words restrict nothing.
	for _, hours := range []string{`"by appointment"`, `{"mon": "by appointment"}`, `{"holidays": "9-12"}`, `{"mon": "17:00-07:00"}`, `{"mon": 7}`, `{}`, `[]`, `null`} {
		c := centerAt(1, "C", mesa.Lng, mesa.Lat, appointment.PSCSchedulingViaService)
		c.Metadata.Hours = []byte(hours)
		d := newVisits(t, func(o *options) { o.Centers = atlas(t, c) })
		slots, err := d.visits.Places().CenterSlots(t.Context(), d.team, appointment.CenterSlotsRequest{Lab: "northlab", SiteCodes: []string{"C"}})
		require.NoError(t, err, hours)
		require.Len(t, keysOf(slots), 30+13*15, hours)
	}
}

func TestCancel_eventSaysWhetherTheVisitIsRefundable(t *testing.T) {
	for _, tc := range []struct {
		before time.Duration
		want   string
	}{{24 * time.Hour, "true"}, {24*time.Hour - time.Second, "false"}} {
		d := newVisits(t)
		o := d.placed("at home")
		d.work()
		a := d.booked(o, home)
		d.at = a.StartAt.Add(-tc.before)
		gone, err := d.visits.Cancel(t.Context(), d.team, o.ID, home, d.visits.CancellationReasons(home)[0].ID, nil)
		require.NoError(t, err)
		require.Contains(t, string(gone.EventData), `"is_refundable":`+tc.want)
	}
}
