package fileimport

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReadTime_readsTheFormsThatProgramsWrite(t *testing.T) {
	const same = "2026-04-18 19:07:05" // UTC
	for text, offset := range map[string]any{
		"2026-04-18T19:07:05Z": nil, "2026-04-18 19:07:05 UTC": nil, "1776539225": nil, "1776539225000": nil, "1776539225.0": nil, "20260418190705Z": nil,
		"2026-04-18T19:07:05+00:00": 0, "2026-04-18 21:07:05 +0200": 7200, "20260418210705+0200": 7200, "20260418210705 +0200": 7200,
		"2026-04-18 9:07:05 PM +0200": 7200, "2026-04-18 9:07:05\u202fpm +0200": 7200, "2026-04-18 9:07:05 p.\u00a0m. +0200": 7200, "2026-04-18 09:07:05 nachm. +0200": 7200,
		"2026-04-19 오전 4:07:05 +0900": 9 * 3600, "2026-04-19 3:07:05 上午 +0800": 8 * 3600, "2026-04-18 9:07:05 μ.μ. +0200": 7200, "2026-04-18 9:07:05 du. +0200": 7200,
		"2026-04-18 9:07:05 ÖS +0200": 7200, "٢٠٢٦-٠٤-١٨ ٩:٠٧:٠٥ م +0200": 7200, "2026-04-18 14:07:05 \u22120500": -18000, "2026/4/18 21:7:5 +02": 7200,
		"2026-04-18 21:07:05 Europe/Berlin": 7200, "2026-04-18T21:07:05[Europe/Berlin]": 7200, "2026-04-18T21:07:05+02:00[Europe/Berlin]": 7200, "2026-04-18T19:07:05Z[UTC]": nil,
		"2026年4月18日 21:07:05 +0200": 7200, "2026-04-19 00:37:05 UTC+5:30": 19800, "2026-04-19 12:37:05 am +0530": 19800,
	} {
		at, zoned, ok := readTime(text)
		require.True(t, ok, text)
		require.True(t, zoned, text)
		require.Equal(t, same, at.UTC().Format(time.DateTime), text)
		if offset == nil {
			require.Nil(t, offsetOf(at), text)
		} else {
			require.Equal(t, offset, *offsetOf(at), text)
		}
	}
	for _, text := range []string{"2026-04-18T19:07:05", "2026-04-18 7:07:05 PM", "2026/04/18 19:07:05", "20260418190705"} {
		at, zoned, ok := readTime(text)
		require.True(t, ok, text)
		require.False(t, zoned, text)
		require.Equal(t, same, at.Format(time.DateTime), text)
	}
	for _, text := range []string{
		"", "177653922", "17765392250", "04/18/2026 19:07:05", "18.04.2026 19:07:05", "2026-04-18", "2026-04-31 19:07:05", "2026-04-18 19:07:05 PM", "2026-04-18 0:07:05 am",
		"2026-04-18 7:07:05 xx", "2026-04-18 19:07:05 Mars/Base", "2026-03-29 02:30:00 Europe/Berlin", "2026-10-25 02:30:00 Europe/Berlin", "2026-04-18 25:07:05 +0200", "2026-04-18 19:07:05 Local",
	} {
		_, _, ok := readTime(text)
		require.False(t, ok, text)
	}
}

func FuzzReadTime(f *testing.F) {
	f.Add("2026-04-18 9:07:05\u202fp. m. +0200")
	f.Add("2026年4月18日 21:07:05 [Europe/Berlin]")
	f.Fuzz(func(t *testing.T, text string) {
		at, zoned, ok := readTime(text)
		if !ok {
			return
		}
		again, _, ok := readTime(at.UTC().Format("2006-01-02T15:04:05.999999Z07:00"))
		require.True(t, ok)
		require.True(t, again.Equal(at))
		require.True(t, zoned || at.Location() == time.UTC)
	})
}

// Names in a file and texts of it are shown to people, so nothing in them changes how the text around them is shown.
func TestPrintable_hasNoControlOrBidiOverrideCharacters(t *testing.T) {
	for text, want := range map[string]string{
		"morning.gpx":                      "morning.gpx",
		"na\u00efve \U0001f600.gpx":        "na\u00efve \U0001f600.gpx",
		"nai\u0308ve.gpx":                  "nai\u0308ve.gpx",
		"\U0001f468\u200d\U0001f469.gpx":   "\U0001f468\u200d\U0001f469.gpx",
		"a\x1b[31m\n.gpx":                  "a?[31m?.gpx",
		"a\u0085b\u2028c\u2029.gpx":        "a?b?c?.gpx",
		"r\u202exg\u202c.gpx":              "rxg.gpx",
		"\u2067abc\u2069.gpx":              "abc.gpx",
		"\u05d0\u200f.gpx":                 "\u05d0\u200f.gpx",
		"na\xefve.gpx":                     "na?ve.gpx",
		strings.Repeat("\u00e9", 150):      strings.Repeat("\u00e9", 100),
		"a" + strings.Repeat("\u00e9", 99): "a" + strings.Repeat("\u00e9", 99),
	} {
		require.Equal(t, want, printable(text), "%+q", text)
	}
}
