package healthlab_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
)

func TestParseTime_readsEachFormWithItsOffset(t *testing.T) {
	for _, tt := range []struct {
		name, in, want string
		offset         int // seconds
	}{
		{"zulu", "2026-03-01T07:00:00Z", "2026-03-01T07:00:00+00:00", 0},
		{"small letters", "2026-03-01t07:00:00z", "2026-03-01T07:00:00+00:00", 0},
		{"space between", "2026-03-01 07:00:00Z", "2026-03-01T07:00:00+00:00", 0},
		{"no offset is UTC", "2026-03-01T07:00:00", "2026-03-01T07:00:00+00:00", 0},
		{"east", "2026-03-01T07:00:00+05:45", "2026-03-01T01:15:00+00:00", 5*3600 + 45*60},
		{"west, into the next day", "2026-02-28T20:00:00-09:30", "2026-03-01T05:30:00+00:00", -9*3600 - 30*60},
		{"minus zero", "2026-03-01T07:00:00-00:00", "2026-03-01T07:00:00+00:00", 0},
		{"widest east", "2026-03-01T07:00:00+18:00", "2026-02-28T13:00:00+00:00", 18 * 3600},
		{"widest west", "2026-03-01T07:00:00-18:00", "2026-03-02T01:00:00+00:00", -18 * 3600},
		{"one digit of a second", "2026-03-01T07:00:00.5Z", "2026-03-01T07:00:00.5+00:00", 0},
		{"microsecond", "2026-03-01T07:00:00.000001Z", "2026-03-01T07:00:00.000001+00:00", 0},
		{"zeros at the end go", "2026-03-01T07:00:00.120000Z", "2026-03-01T07:00:00.12+00:00", 0},
		{"nanoseconds are cut, not rounded", "2026-03-01T07:00:00.999999999Z", "2026-03-01T07:00:00.999999+00:00", 0},
		{"less than a microsecond", "2026-03-01T07:00:00.000000999Z", "2026-03-01T07:00:00+00:00", 0},
		{"first", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+00:00", 0},
		{"last", "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999+00:00", 0},
		{"last, from the west", "9999-12-31T05:59:59-18:00", "9999-12-31T23:59:59+00:00", -18 * 3600},
		{"ten digits", "2026-03-01T07:00:00.0123456789Z", "2026-03-01T07:00:00.012345+00:00", 0},
		{"comma", "2026-03-01T07:00:00,5Z", "2026-03-01T07:00:00.5+00:00", 0},
		{"no seconds", "2026-03-01T07:00Z", "2026-03-01T07:00:00+00:00", 0},
		{"no seconds and no offset", "2026-03-01 07:00", "2026-03-01T07:00:00+00:00", 0},
		{"no seconds, west", "2026-03-01T07:00-05", "2026-03-01T12:00:00+00:00", -5 * 3600},
		{"hour of one digit", "2026-03-01 7:00:00+01:00", "2026-03-01T06:00:00+00:00", 3600},
		{"hours alone", "2026-03-01T07:00:00+01", "2026-03-01T06:00:00+00:00", 3600},
		{"no colon", "2026-03-01T07:00:00-0330", "2026-03-01T10:30:00+00:00", -3*3600 - 1800},
		{"space before the offset", "2026-03-01 07:00:00 +0200", "2026-03-01T05:00:00+00:00", 2 * 3600},
		{"leap second", "2016-12-31T23:59:60Z", "2016-12-31T23:59:59.999999+00:00", 0},
		{"leap second with a fraction", "2016-12-31T23:59:60.25Z", "2016-12-31T23:59:59.999999+00:00", 0},
		{"leap second in the west", "1990-12-31T15:59:60-08:00", "1990-12-31T23:59:59.999999+00:00", -8 * 3600},
		{"leap second in the east", "2017-01-01T05:29:60+05:30", "2016-12-31T23:59:59.999999+00:00", 5*3600 + 1800},
		{"end of the day", "2026-03-01T24:00:00Z", "2026-03-02T00:00:00+00:00", 0},
		{"end of the day without seconds", "2026-02-28T24:00", "2026-03-01T00:00:00+00:00", 0},
		{"end of the day in the east", "2026-03-01T24:00:00+02:00", "2026-03-01T22:00:00+00:00", 2 * 3600},
		{"basic", "20240315T081500Z", "2024-03-15T08:15:00+00:00", 0},
		{"basic without seconds", "20240315T0815+0200", "2024-03-15T06:15:00+00:00", 2 * 3600},
		{"basic with a fraction", "20240315T081500,25-05", "2024-03-15T13:15:00.25+00:00", -5 * 3600},
		{"basic with no offset", "20240315t081501", "2024-03-15T08:15:01+00:00", 0},
		{"basic, end of the day", "20240315T2400Z", "2024-03-16T00:00:00+00:00", 0},
		{"basic, leap second", "20161231T235960Z", "2016-12-31T23:59:59.999999+00:00", 0},
		{"date alone basic", "20240315 8:15:00", "2024-03-15T08:15:00+00:00", 0},
		{"time alone basic", "2024-03-15T081500+0100", "2024-03-15T07:15:00+00:00", 3600},
		{"white space around", " 2026-03-01T07:00:00 +01:00\n", "2026-03-01T06:00:00+00:00", 3600},
		{"no-break space before", "\u00a02026-03-01T07:00:00Z", "2026-03-01T07:00:00+00:00", 0},
		{"name of a zone", "2026-03-01T07:00:00+01:00[Europe/Vienna]", "2026-03-01T06:00:00+00:00", 3600},
		{"name of a zone, basic", "20260301T070000-0500[America/New_York]", "2026-03-01T12:00:00+00:00", -5 * 3600},
		{"name of a zone after Z", "2026-03-01T07:00:00Z[UTC]", "2026-03-01T07:00:00+00:00", 0},
		{"name of a zone and a calendar", "2026-03-01T07:00:00+01:00[Europe/Vienna][u-ca=iso8601]", "2026-03-01T06:00:00+00:00", 3600},
		{"leap day", "2024-02-29T12:00:00Z", "2024-02-29T12:00:00+00:00", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, offset, err := healthlab.ParseTimeOffset(tt.in)
			require.NoError(t, err)
			require.Equal(t, tt.want, got.String())
			require.Equal(t, tt.offset, offset)
			require.Equal(t, time.UTC, got.Location())
			again, err := healthlab.ParseTime(got.String())
			require.NoError(t, err)
			require.Equal(t, got, again)
		})
	}
}

func TestParseTime_errorNamesTheExpectedForm(t *testing.T) {
	const shape, none, offset, year = "YYYY-MM-DDTHH:MM:SS", "must exist in the calendar", "18 hours", "0001 to 9999"
	for _, tt := range []struct{ name, in, want string }{
		{"empty", "", shape},
		{"a date alone", "2026-03-01", shape},
		{"letters for digits", "2026-03-01T07:0a:00Z", shape},
		{"sign for a digit", "2026-03-01T07:+1:00Z", shape},
		{"point without digits", "2026-03-01T07:00:00.Z", shape},
		{"cut seconds", "2026-03-01T07:00:0", shape},
		{"colon at the end", "2026-03-01T07:00:", shape},
		{"three digits of an offset", "2026-03-01T07:00:00+010", shape},
		{"two spaces", "2026-03-01T07:00:00  +01:00", shape},
		{"name of a zone and no offset", "2026-03-01T07:00:00[Europe/Vienna]", shape},
		{"name of a zone, basic, and no offset", "20260301T070000[Europe/Vienna]", shape},
		{"name of a zone without an end", "2026-03-01T07:00:00Z[Europe/Vienna", shape},
		{"white space alone", " ", shape},
		{"60 minutes without a colon", "2026-03-01T07:00:00+0160", shape},
		{"60 minutes", "2026-03-01T07:00:00+01:60", shape},
		{"60 seconds of an offset", "2026-03-01T07:00:00+01:00:60", shape},
		{"seconds of an offset without a colon", "2026-03-01T07:00:00+01:0030", shape},
		{"seconds of an offset alone", "2026-03-01T07:00:00+01:00:", shape},
		{"a sign twice", "2026-03-01T07:00:00\u2212-01:00", shape},
		{"an en dash for the sign", "2026-03-01T07:00:00\u201301:00", shape},
		{"too wide by a second", "2026-03-01T07:00:00+18:00:01", offset},
		{"zone name", "2026-03-01T07:00:00 CET", shape},
		{"zone name and Z", "2026-03-01T07:00:00UTCZ", shape},
		{"zone name and no offset", "2026-03-01T07:00:00UTC+", shape},
		{"something after", "2026-03-01T07:00:00Z.", shape},
		{"other digits", "2026-03-01T07:00:0\u0660Z", shape},
		{"too wide, east", "2026-03-01T07:00:00+18:01", offset},
		{"too wide, west", "2026-03-01T07:00:00-18:01", offset},
		{"99 hours", "2026-03-01T07:00:00+99:00", offset},
		{"month 0", "2026-00-01T07:00:00Z", none},
		{"month 13", "2026-13-01T07:00:00Z", none},
		{"day 0", "2026-03-00T07:00:00Z", none},
		{"30 February", "2026-02-30T07:00:00Z", none},
		{"day 32", "2026-01-32T07:00:00Z", none},
		{"after the end of the day", "2026-03-01T24:00:00.000001Z", none},
		{"minute after the end of the day", "2026-03-01T24:01Z", none},
		{"hour 25", "2026-03-01T25:00:00Z", none},
		{"minute 60", "2026-03-01T07:60:00Z", none},
		{"second 60 of another minute", "2016-12-31T23:58:60Z", none},
		{"second 60 of another hour", "2016-12-31T23:59:60+01:00", none},
		{"second 61", "2016-12-31T23:59:61Z", none},
		{"basic date alone", "20240315", shape},
		{"basic without minutes", "20240315T08", shape},
		{"basic with cut seconds", "20240315T08150", shape},
		{"basic, no such day", "20240230T081500Z", none},
		{"end of the last year", "9999-12-31T24:00Z", year},
		{"year 0", "0000-12-31T23:00:00Z", year},
		{"year 0 in UTC", "0001-01-01T00:59:59+01:00", year},
		{"year 10000 in UTC", "9999-12-31T23:30:00-00:30", year},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, offset, err := healthlab.ParseTimeOffset(tt.in)
			require.ErrorIs(t, err, healthlab.Invalid)
			require.ErrorContains(t, err, tt.want)
			require.Zero(t, got)
			require.Zero(t, offset)
		})
	}
}

// An offset that was not written is told from Z, and alone it is read as in a time.
func TestParseTimeZone_distinguishesNoneZAndOffsets(t *testing.T) {
	for text, want := range map[string]*int{"": nil, "Z": new(0), "z": new(0), "+00:00": new(0), "+0545": new(20_700), "-05": new(-18_000), " +0100": new(3600),
		" UTC": new(0), "GMT": new(0), "UTC+2": new(7200), " GMT-3:30": new(-12_600), "\u221205:00": new(-18_000), "\u221205": new(-18_000), "UTC\u22125": new(-18_000),
		"+05:53:28": new(21_208), "-00:25:21": new(-1521), "UTC+05:53:28": new(21_208), "UTC+0530": new(19_800), "UTC-08:00": new(-28_800)} {
		_, offset, err := healthlab.ParseTimeZone("2026-03-01T07:00:00" + text)
		require.NoError(t, err, text)
		require.Equal(t, want, offset, text)
		alone, err := healthlab.ParseOffset(strings.TrimSpace(text))
		require.Equal(t, want == nil, err != nil, text)
		if want != nil {
			require.Equal(t, *want, alone, text)
		}
	}
	_, _, err := healthlab.ParseTimeZone("2026-03-01")
	require.ErrorIs(t, err, healthlab.Invalid)
}

// What time.Parse and ParseTime both accept, they read alike; and what we write,
// both read back.
func FuzzParseTime(f *testing.F) {
	for _, s := range []string{
		"2026-03-01T07:00:00Z", "2026-03-01T07:00:00.123456789+18:00", "0001-01-01T00:00:00-00:01",
		"9999-12-31T23:59:59.999999Z", "2026-02-29T00:00:00Z", "2026-03-01T07:00:00,5Z",
		"2026-03-01 07:00:00", "2026-03-01T07:00:00+23:59", "2016-12-31T23:59:60Z", "",
		"20240315T081500Z", "20240315T0815+0200", "2024-03-15T24:00", "20161231T155960-08",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, offset, err := healthlab.ParseTimeOffset(s)
		want, werr := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			require.ErrorIs(t, err, healthlab.Invalid)
			require.Zero(t, got)
			if werr == nil {
				_, o := want.Zone()
				year := want.UTC().Year()
				// The oracle allows year 0 and wider offsets.
				require.True(t, year < 1 || year > 9999 || want.Year() < 1 || max(o, -o) > 18*3600,
					"only the other accepts %q", s)
			}
			return
		}
		if werr == nil {
			require.Equal(t, want.UTC().Truncate(time.Microsecond), got.Time)
			_, o := want.Zone()
			require.Equal(t, o, offset)
		}
		back, err := time.Parse(time.RFC3339Nano, got.String())
		require.NoError(t, err)
		require.True(t, back.Equal(got.Time))
		again, err := healthlab.ParseTime(got.String())
		require.NoError(t, err)
		require.Equal(t, got, again)
	})
}

// A time has one reading in the extended format, the basic format and the two mixed.
func TestParseTime_readsTheBasicFormatLikeTheExtendedOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(0, 4102444800).Draw(t, "sec"), 0).UTC()
		offset := rapid.SampledFrom([]string{"", "Z", "+02", "-03:30", "+0545"}).Draw(t, "offset")
		clock := rapid.SampledFrom([]string{"15:04", "15:04:05", "15:04:05.000", "15:04:05,000"}).Draw(t, "clock")
		text := at.Format("2006-01-02T"+clock) + offset
		want, seconds, err := healthlab.ParseTimeZone(text)
		require.NoError(t, err)
		date, clock, _ := strings.Cut(at.Format("2006-01-02T"+clock), "T")
		basicDate, basicClock := strings.ReplaceAll(date, "-", ""), strings.ReplaceAll(clock, ":", "")
		for _, form := range []string{basicDate + "T" + basicClock, basicDate + " " + clock, date + "t" + basicClock} {
			got, written, err := healthlab.ParseTimeZone(form + offset)
			require.NoError(t, err, form)
			require.Equal(t, want, got, form)
			require.Equal(t, seconds, written, form)
		}
	})
}

func TestTime_survivesJSONAndTextUnchanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sec := rapid.Int64Range(-62135596800, 253402300799).Draw(t, "sec")
		nano := rapid.Int64Range(0, 999_999_999).Draw(t, "nano")
		zone := time.FixedZone("", rapid.IntRange(-18*60, 18*60).Draw(t, "minutes")*60)
		at := healthlab.At(time.Unix(sec, nano).In(zone))
		require.Equal(t, time.Unix(sec, nano/1000*1000).UTC(), at.Time)

		b, err := json.Marshal(at)
		require.NoError(t, err)
		var back healthlab.Time
		require.NoError(t, json.Unmarshal(b, &back))
		require.Equal(t, at, back)

		text, err := at.MarshalText()
		require.NoError(t, err)
		require.Equal(t, string(b), `"`+string(text)+`"`)
	})
}

func TestTime_encodesAndDecodesAsJSON(t *testing.T) {
	const seven = "2026-03-01T07:00:00+00:00"
	for _, tt := range []struct{ name, in, want string }{
		{"plain", `"2026-03-01T08:00:00+01:00"`, seven},
		{"escaped sign", `"2026-03-01T08:00:00\u002B01:00"`, seven},
		{"null leaves it", `null`, "0001-01-01T00:00:00+00:00"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got healthlab.Time
			require.NoError(t, json.Unmarshal([]byte(tt.in), &got))
			require.Equal(t, tt.want, got.String())
		})
	}
	for _, tt := range []struct{ name, in string }{
		{"number", `1772348400`},
		{"empty", `""`},
		{"object", `{}`},
		{"escape that is none", `"2026-03-01T07:\n00:00"`},
	} {
		t.Run("refuses "+tt.name, func(t *testing.T) {
			got := healthlab.Time{Time: time.Unix(1, 0)}
			require.ErrorIs(t, json.Unmarshal([]byte(tt.in), &got), healthlab.Invalid)
			require.Equal(t, time.Unix(1, 0), got.Time)
		})
	}
	require.ErrorIs(t, new(healthlab.Time).UnmarshalJSON([]byte(`"\x"`)), healthlab.Invalid)
	require.ErrorIs(t, new(healthlab.Time).UnmarshalJSON([]byte(`"`)), healthlab.Invalid)
}

func TestTime_outsideYears1To9999IsRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		at   time.Time
	}{
		{"before", time.Date(0, 12, 31, 23, 59, 59, 0, time.UTC)},
		{"before, in UTC alone", time.Date(1, 1, 1, 0, 0, 0, 0, time.FixedZone("", 3600))},
		{"after", time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := healthlab.At(tt.at).MarshalText()
			require.ErrorIs(t, err, healthlab.Invalid)
			_, err = json.Marshal(healthlab.At(tt.at))
			require.ErrorIs(t, err, healthlab.Invalid)
		})
	}
}

func TestTime_appendAllocatesNothing(t *testing.T) {
	at := healthlab.At(time.Date(2026, 3, 1, 7, 0, 0, 123_000, time.UTC))
	buf := make([]byte, 0, 64)
	require.Zero(t, testing.AllocsPerRun(100, func() { buf = at.Append(buf[:0]) }))
	require.Equal(t, "2026-03-01T07:00:00.000123+00:00", string(buf))
}
