package fileimport_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"github.com/healthlab-dev/healthlab/adapters/devices/fileimport"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// A list is read in every encoding that programs save it in and with every line end, and what stands before its header
// is no part of it.
func TestCSV_readsCommonEncodings(t *testing.T) {
	text := strings.Replace(testdata(t, "strava", "activities.csv"), "Race, last leg", "Möve – Straße, 5 €", 1)
	text = strings.ReplaceAll(text, "\u202f", " ")
	encoded := func(e encoding.Encoding) string {
		out, err := encoding.ReplaceUnsupported(e.NewEncoder()).String(text)
		require.NoError(t, err)
		return out
	}
	for name, file := range map[string]string{
		"UTF-8": text, "UTF-8 with a mark": "\xef\xbb\xbf" + text, "blank lines before": "\r\n \n" + text, "a mark and a blank line": "\xef\xbb\xbf\r\n" + text,
		"windows-1252":       encoded(charmap.Windows1252),
		"UTF-16LE":           encoded(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)),
		"UTF-16BE":           encoded(unicode.UTF16(unicode.BigEndian, unicode.UseBOM)),
		"UTF-16LE, no mark":  encoded(unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)),
		"UTF-16BE, no mark":  encoded(unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)),
		"carriage returns":   strings.ReplaceAll(text, "\n", "\r"),
		"separator line":     "sep=,\r\n" + text,
		"windows line feeds": strings.ReplaceAll(text, "\n", "\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			s, _, err := importBytes(t, []byte(file), nil)
			require.NoError(t, err)
			all := summariesOf[*healthdata.Workout](t, s, "workouts")
			require.Len(t, all, 8)
			require.Equal(t, "Möve – Straße, 5 €", *all[0].Title)
		})
	}
	latin := strings.Replace(testdata(t, "strava", "activities.csv"), "Race, last leg", "M\xf6ve", 1)
	s, _, err := importBytes(t, []byte(latin), nil)
	require.NoError(t, err)
	require.Equal(t, "Möve", *summariesOf[*healthdata.Workout](t, s, "workouts")[0].Title, "ISO-8859-1")
}

// A file that was saved by a program for people with decimal commas has semicolons or tabs.
func TestCSV_readsSemicolonsTabsAndDecimalCommas(t *testing.T) {
	const header = "Cycle timezone,Workout start time,Workout end time,Activity name,Energy burned (cal),Max HR (bpm),Average HR (bpm)\n"
	const row = "UTC+02:00,2026-05-01 10:00:00,2026-05-01 11:00:00,Rowing,%s,150,120\n"
	for _, c := range []struct{ separator, number, written string }{
		{",", "412.5", "412.5"}, {",", "412.5", `"412,5"`}, {";", "412.5", "412,5"}, {";", "1.412", "1,412"}, {";", "1234.5", "1.234,5"}, {";", "412.5", "412.5"},
		{"\t", "412.5", "412.5"}, {"\t", "412.5", "412,5"}, {",", "1234.5", `"1,234.5"`},
	} {
		file := strings.ReplaceAll(header+row, ",", c.separator)
		s, rep, err := importBytes(t, fmt.Appendf(nil, file, c.written), nil)
		require.NoError(t, err)
		require.Empty(t, rep.Notes)
		require.Equal(t, c.number, strconv.FormatFloat(*summariesOf[*healthdata.Workout](t, s, "workouts")[0].Calories, 'f', -1, 64), c)
	}
}

// The start of an activity is written as the language settings of the account say.
func TestStravaExport_readsDatesOfEachLanguageSetting(t *testing.T) {
	list := testdata(t, "strava", "activities.csv")
	started := func(written string) (time.Time, bool) {
		s, _, err := importBytes(t, []byte(strings.Replace(list, `"Apr 18, 2026, 6:30:20 AM"`, `"`+written+`"`, 1)), nil)
		require.NoError(t, err)
		for _, w := range summariesOf[*healthdata.Workout](t, s, "workouts") {
			if w.ExternalID == "9001" {
				return w.TimeStart.UTC(), true
			}
		}
		return time.Time{}, false
	}
	for _, written := range []string{
		"Sep 12, 2025, 5:30:12 PM", "Sept 12, 2025, 5:30:12 PM", "September 12, 2025, 5:30:12 PM", "Sep. 12, 2025, 5:30:12 p.m.",
		"Sep 12, 2025, 17:30:12", "12 Sep 2025, 17:30:12", "12 Sept 2025, 17:30:12", "12 Sept. 2025, 5:30:12 pm", "12 September 2025, 5:30:12\u202fPM",
		"12\u00a0Sept 2025, 17:30:12", "sept 12, 2025, 5:30:12 pm",
	} {
		at, ok := started(written)
		require.True(t, ok, written)
		require.Equal(t, time.Date(2025, 9, 12, 17, 30, 12, 0, time.UTC), at, written)
	}
	for month := time.January; month <= time.December; month++ {
		at, ok := started(month.String() + " 2, 2025, 12:00:00 AM")
		require.True(t, ok, month)
		require.Equal(t, time.Date(2025, month, 2, 0, 0, 0, 0, time.UTC), at)
	}
	for _, written := range []string{
		"12.09.2025, 17:30:12", "12. September 2025 um 17:30:12", "12 sept. 2025 à 17:30:12", "12 sept 2025 17:30:12", "12 de setembro de 2025 17:30:12", "12 wrz 2025, 17:30:12",
		"12 set 2025, 5:30:12\u202fp.\u00a0m.", "2025-09-12 17:30:12", "2025-09-12T17:30:12Z", "2025年9月12日 17:30:12",
	} {
		at, ok := started(written)
		require.True(t, ok, written)
		require.Equal(t, time.Date(2025, 9, 12, 17, 30, 12, 0, time.UTC), at, written)
	}
	for _, written := range []string{"12 Smarch 2025, 17:30:12", "31 Sep 2025, 17:30:12", "12 Sep 2025", "Sep 12, 2025, 17:30:12 PM x", "9/12/2025, 17:30:12", "12.13.2025, 17:30:12"} {
		_, ok := started(written)
		require.False(t, ok, written)
	}
}

// A list of a German account has German columns, and dates with dots.
func TestStravaExport_readsAGermanList(t *testing.T) {
	file := "Aktivitäts-ID,Aktivitätsdatum,Name der Aktivität,Aktivitätsart,Verstrichene Zeit,Distanz,Max. Herzfrequenz,Dateiname,Verstrichene Zeit,Bewegungszeit,Distanz,Kalorien\n" +
		"9001,\"01.08.2025, 17:00:00\",Runde,Lauf,600,\"1,20\",171,,600,590,1203.5,80\n"
	s, _, err := importBytes(t, []byte(file), nil)
	require.NoError(t, err)
	w := summariesOf[*healthdata.Workout](t, s, "workouts")[0]
	require.Equal(t, []any{utc("2025-08-01 17:00:00"), utc("2025-08-01 17:10:00"), "running", "Runde", 1203.5, 80.0, int64(171)}, []any{w.TimeStart, w.TimeEnd, w.Sport.Slug, *w.Title, *w.Distance, *w.Calories, *w.MaxHR})
}

// The zone of a row is an offset in each notation, or the name of a zone.
func TestWHOOPExport_readsEachNotationOfAZone(t *testing.T) {
	const file = "Cycle timezone,Workout start time,Workout end time,Activity name\n%s,2026-04-09 17:00:00,2026-04-09 17:48:00,Rowing\n"
	for zone, want := range map[string]int{
		"UTC+05:30": 19800, "UTC+0530": 19800, "UTC+5:30": 19800, "+05:30": 19800, "UTC+2": 7200, "GMT+2": 7200, "UTC\u221204:00": -14400, "Europe/Berlin": 7200, "UTCZ": 0, "UTC": 0, "Z": 0,
	} {
		s, _, err := importBytes(t, fmt.Appendf(nil, file, zone), nil)
		require.NoError(t, err)
		w := summariesOf[*healthdata.Workout](t, s, "workouts")
		require.Len(t, w, 1, zone)
		require.Equal(t, want, *w[0].TimezoneOffset, zone)
		require.Equal(t, time.Date(2026, 4, 9, 17, 0, 0, 0, time.FixedZone("", want)).UTC(), w[0].TimeStart.UTC(), zone)
	}
}

// A second file of one name has a number.
func TestAccountExport_ignoresTheCopySuffixOfAFileName(t *testing.T) {
	const file = "Date,\"Heart rate\",Systolic,Diastolic,Comments\n2026-04-01 07:12:33,61,121,78,\n"
	for _, name := range []string{"bp.csv", "bp (1).csv", "bp(12).csv", "BP copy.csv", "bp copy 2.csv"} {
		var s recordingSink
		_, err := importNamedWith(t, filepath.Join(t.TempDir(), name), file, &s, &fileimport.Options{Zone: time.UTC})
		require.NoError(t, err, name)
		require.Len(t, s.samples["blood_pressure"], 1, name)
		require.Equal(t, 0, *s.samples["blood_pressure"][0].TimezoneOffset, name)
	}
}

// Weighings of an account with pounds keep their unit.
func TestWithingsExport_readsPounds(t *testing.T) {
	const file = "Date,\"Weight (lb)\",\"Fat mass (lb)\",\"Bone mass (lb)\",\"Muscle mass (lb)\",\"Hydration (lb)\",Comments\n2026-04-01 07:12:33,160.5,16.05,0,,,\n"
	s, _, err := importBytes(t, []byte(file), &fileimport.Options{Zone: time.UTC})
	require.NoError(t, err)
	require.Equal(t, []any{160.5, "lb"}, []any{s.samples["weight"][0].Value.Number, s.samples["weight"][0].Unit})
	body := summariesOf[*healthdata.Body](t, s, "body")[0]
	require.InDelta(t, 72.8016, *body.Weight, 1e-4)
	require.InDelta(t, 10, *body.Fat, 1e-9)
	require.Nil(t, body.BoneMassPercentage, "0 is not measured")
}
