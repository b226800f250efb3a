package healthlab_test

import (
	"encoding/json"
	"testing"
	"time"
	_ "time/tzdata" // the zones below, on machines that have none

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
)

func TestParseDate_readsWhatStringWrites(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     healthlab.Date
	}{
		{"plain", "2026-03-01", healthlab.Date{Year: 2026, Month: time.March, Day: 1}},
		{"first", "0001-01-01", healthlab.Date{Year: 1, Month: time.January, Day: 1}},
		{"last", "9999-12-31", healthlab.Date{Year: 9999, Month: time.December, Day: 31}},
		{"leap day", "2000-02-29", healthlab.Date{Year: 2000, Month: time.February, Day: 29}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := healthlab.ParseDate(tt.in)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.in, got.String())
		})
	}
}

func TestParseDate_refusesOtherFormsAndImpossibleDates(t *testing.T) {
	for _, tt := range []struct{ name, in string }{
		{"empty", ""},
		{"year 0", "0000-01-01"},
		{"no leap year", "1900-02-29"},
		{"month 13", "2026-13-01"},
		{"day 0", "2026-01-00"},
		{"one digit", "2026-1-001"},
		{"slashes", "2026/01/01"},
		{"space", " 2026-01-1"},
		{"time", "2026-01-01T00:00:00Z"},
		{"sign", "-026-01-01"},
		{"five digits", "12026-01-01"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := healthlab.ParseDate(tt.in)
			require.ErrorIs(t, err, healthlab.Invalid)
			require.Zero(t, got)
			if tt.in != "" {
				require.NotContains(t, err.Error(), tt.in)
			}
		})
	}
}

func TestDate_comparesByCalendarOrder(t *testing.T) {
	days := []healthlab.Date{
		{},
		{Year: 1, Month: 1, Day: 1},
		{Year: 2025, Month: 12, Day: 31},
		{Year: 2026, Month: 1, Day: 30},
		{Year: 2026, Month: 2, Day: 1},
		{Year: 2026, Month: 2, Day: 2},
	}
	for i, d := range days {
		for j, e := range days {
			want := max(-1, min(1, i-j))
			require.Equal(t, want, d.Compare(e))
			require.Equal(t, want < 0, d.Before(e))
			require.Equal(t, want > 0, d.After(e))
		}
	}
}

func TestDateAddDays_isUndoneByTheNegativeNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := healthlab.Date{Year: 2000, Month: time.January, Day: 1}.AddDays(rapid.IntRange(-700_000, 2_900_000).Draw(t, "day"))
		n := rapid.IntRange(0, 20_000).Draw(t, "n")
		require.Equal(t, d, d.AddDays(n).AddDays(-n))
		require.Equal(t, n > 0, d.AddDays(n).After(d))
		back, err := healthlab.ParseDate(d.String())
		require.NoError(t, err)
		require.Equal(t, d, back)
	})
}

func TestDateAt_isTheFirstInstantOfTheDayInTheZone(t *testing.T) {
	for _, tt := range []struct {
		name, zone, day string
		want            string // in UTC
	}{
		{"utc", "UTC", "2026-03-01", "2026-03-01T00:00:00+00:00"},
		{"west", "America/New_York", "2026-03-01", "2026-03-01T05:00:00+00:00"},
		{"east of the date line", "Pacific/Kiritimati", "2026-03-01", "2026-02-28T10:00:00+00:00"},
		{"clocks change later that day", "Europe/Berlin", "2026-03-29", "2026-03-28T23:00:00+00:00"},
		{"midnight is skipped", "America/Sao_Paulo", "2018-11-04", "2018-11-04T03:00:00+00:00"},
		{"midnight comes twice, west", "America/Havana", "2025-11-02", "2025-11-02T04:00:00+00:00"},
		{"midnight comes twice, east", "Asia/Amman", "2021-10-29", "2021-10-28T21:00:00+00:00"},
		{"the hour before midnight comes twice", "America/Sao_Paulo", "2018-02-18", "2018-02-18T03:00:00+00:00"},
		{"a day left out", "Pacific/Apia", "2011-12-30", "2011-12-30T10:00:00+00:00"},
		{"the day after it", "Pacific/Apia", "2011-12-31", "2011-12-30T10:00:00+00:00"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			loc, err := time.LoadLocation(tt.zone)
			require.NoError(t, err)
			d, err := healthlab.ParseDate(tt.day)
			require.NoError(t, err)
			got := d.At(loc)
			require.Equal(t, tt.want, healthlab.At(got).String())
			require.Equal(t, loc, got.Location())
		})
	}
}

// The first instant of a day is in the day, or after it if the zone left it out, and
// the instant before is earlier.
func TestDateAt_noEarlierInstantBelongsToTheDay(t *testing.T) {
	zones := []string{"UTC", "America/Sao_Paulo", "Asia/Amman", "Asia/Tehran", "Europe/London",
		"America/Havana", "Asia/Gaza", "Africa/Casablanca", "Australia/Lord_Howe", "Pacific/Apia"}
	first := healthlab.Date{Year: 1975, Month: time.January, Day: 1}
	for _, zone := range zones {
		loc, err := time.LoadLocation(zone)
		require.NoError(t, err)
		for n := range 365 * 65 {
			d := first.AddDays(n)
			at := d.At(loc)
			if healthlab.DateOf(at).Before(d) || !healthlab.DateOf(at.Add(-time.Nanosecond)).Before(d) {
				t.Fatalf("%s in %s starts at %s", d, zone, at)
			}
		}
	}
}

func TestDate_encodesAndDecodesAsJSON(t *testing.T) {
	type person struct {
		Born *healthlab.Date `json:"born"`
	}
	var p person
	require.NoError(t, json.Unmarshal([]byte(`{"born":"1990-02-28"}`), &p))
	require.Equal(t, &healthlab.Date{Year: 1990, Month: time.February, Day: 28}, p.Born)
	out, err := json.Marshal(map[healthlab.Date]person{*p.Born: p, {Year: 1, Month: 1, Day: 1}: {}})
	require.NoError(t, err)
	require.Equal(t, `{"0001-01-01":{"born":null},"1990-02-28":{"born":"1990-02-28"}}`, string(out))

	require.ErrorIs(t, json.Unmarshal([]byte(`{"born":"1990-02-30"}`), &p), healthlab.Invalid)

	for _, d := range []healthlab.Date{{}, {Year: 10_000, Month: 1, Day: 1}, {Year: 0, Month: 1, Day: 1}} {
		_, err := d.MarshalText()
		require.ErrorIs(t, err, healthlab.Invalid)
	}
	require.Empty(t, healthlab.Date{}.String())
	require.True(t, healthlab.Date{}.IsZero())
	require.False(t, p.Born.IsZero())
}
