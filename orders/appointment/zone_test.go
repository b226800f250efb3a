package appointment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/appointment"
)

func TestWallTime_followsClockChangesAndRefusesSkippedTimes(t *testing.T) {
	newYork, spring, autumn := zone(t, "America/New_York"), healthlab.Date{Year: 2026, Month: 3, Day: 8}, healthlab.Date{Year: 2026, Month: 11, Day: 1}
	for _, tc := range []struct {
		day          healthlab.Date
		hour, minute int
		loc          *time.Location
		want         string
	}{
		{spring, 1, 59, newYork, "2026-03-08T06:59:00Z"}, {spring, 3, 0, newYork, "2026-03-08T07:00:00Z"},
		{autumn, 1, 30, newYork, "2026-11-01T05:30:00Z"}, {autumn, 2, 0, newYork, "2026-11-01T07:00:00Z"}, {autumn, 0, 30, newYork, "2026-11-01T04:30:00Z"},
		{healthlab.Date{Year: 2026, Month: 4, Day: 5}, 1, 45, zone(t, "Australia/Lord_Howe"), "2026-04-04T14:45:00Z"},
	} {
		got, err := appointment.WallTime(tc.day, tc.hour, tc.minute, tc.loc)
		require.NoError(t, err)
		require.Equal(t, tc.want, got.Format(time.RFC3339))
	}
	for _, tc := range []struct {
		day          healthlab.Date
		hour, minute int
		loc          *time.Location
	}{{spring, 2, 0, newYork}, {spring, 2, 59, newYork}, {healthlab.Date{Year: 2026, Month: 10, Day: 4}, 2, 15, zone(t, "Australia/Lord_Howe")},
		{spring, 24, 0, newYork}, {spring, -1, 0, newYork}, {healthlab.Date{Year: 2026, Month: 2, Day: 30}, 12, 0, time.UTC}} {
		_, err := appointment.WallTime(tc.day, tc.hour, tc.minute, tc.loc)
		require.ErrorIs(t, err, healthlab.Invalid)
	}
}

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	require.NoError(t, err)
	return loc
}
