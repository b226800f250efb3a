package healthlab_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
)

func TestParseNumber_readsPointsAndCommasAndRefusesAmbiguity(t *testing.T) {
	for text, want := range map[string]float64{
		"0": 0, "12": 12, "-12.5": -12.5, "+3": 3, " 7 ": 7, "\u22123.5": -3.5, ".5": 0.5, "5.": 5, "1e3": 1000, "1.5E-2": 0.015,
		"12,5": 12.5, "0,123": 0.123, "-0,5": -0.5, "1234,567": 1234.567, "12,3456": 12.3456, "12,5e1": 125,
		"1,234.5": 1234.5, "1.234,5": 1234.5, "1,234,567": 1234567, "12,345,678.25": 12345678.25, "1.234.567,5": 1234567.5, "1.234": 1.234,
		"1 234": 1234, "1 234,5": 1234.5, "12 345.25": 12345.25, "1 234 567": 1234567, "-1 234,567": -1234.567, "\u22121 234": -1234,
		"1'234": 1234, "1'234.5": 1234.5, "1\u2019234\u2019567,5": 1234567.5, "1\u00a0234": 1234, "1\u202f234,5": 1234.5, "1\u2009234": 1234,
		"1.234.567": 1234567, "-12.345.678": -12345678, "1 234e2": 123400,
	} {
		got, ok := healthlab.ParseNumber(text)
		require.True(t, ok, text)
		require.InDelta(t, want, got, 1e-9, text)
	}
	for _, text := range []string{
		"", " ", "x", "NaN", "Inf", "0x10", "1_000", "1e999", "--1", "1-2", ",", ".", ",5", "1,234", "-123,456", "1,23,456", "1,2.3,4", "1.2.3", "12.34,5", "1,2345.6",
		"1 00", "1 0000", "1  000", "1 000'000", "12 34,5", "120 80", "1 234,5,6", "1 234.5.6", "1.5 000", "1.23.456", "1.234.567.", "' 123", "+ 123", "- 5", "5 e3",
	} {
		_, ok := healthlab.ParseNumber(text)
		require.False(t, ok, text)
	}
}

// Every number is read as it is written with a point, and with a comma unless that is ambiguous.
func TestParseNumber_readsEveryWrittenNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float64().Filter(func(v float64) bool { return !math.IsInf(v, 0) && !math.IsNaN(v) }).Draw(t, "v")
		for _, form := range []byte("fge") {
			got, ok := healthlab.ParseNumber(strconv.FormatFloat(v, form, -1, 64))
			require.True(t, ok)
			require.Equal(t, v, got)
		}
	})
}
