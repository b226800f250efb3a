package pdfdoc_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/glucoseprofile"
)

// glucoseOf is an invented profile in a unit, whose values are times factor.
func glucoseOf(unit glucoseprofile.Unit, factor float64) *glucoseprofile.Profile {
	to := healthlab.Date{Year: 2026, Month: 3, Day: 31}
	p := &glucoseprofile.Profile{
		From: to.AddDays(-13), To: to, Unit: unit, DaysWithReadings: 13, Readings: 3700,
		Mean: ptr(8.4 * factor), GMI: ptr(6.93), CV: ptr(34.2), SensorActive: ptr(91.8),
	}
	low := map[glucoseprofile.Unit][]float64{glucoseprofile.Millimoles: {2.9, 3, 3.8, 3.9, 10, 10.1, 13.9, 14}, glucoseprofile.Milligrams: {53, 54, 69, 70, 180, 181, 250, 251}}[unit]
	for i, b := range []aggregate.Band{aggregate.VeryLow, aggregate.Low, aggregate.InTarget, aggregate.High, aggregate.VeryHigh} {
		band := glucoseprofile.Band{Name: b, Percent: ptr([]float64{0.5, 3.5, 71, 20, 5}[i])}
		if i > 0 {
			band.Low = &low[2*i-1]
		}
		if i < 4 {
			band.High = &low[2*i]
		}
		p.Bands = append(p.Bands, band)
	}
	for k := range glucoseprofile.Quarters {
		q := glucoseprofile.Quarter{Minute: 15 * k}
		if k != 40 { // no reading of any day
			v := (7 + 3*float64(k%24)/24) * factor
			q.P5, q.P25, q.P50, q.P75, q.P95 = ptr(v*0.6), ptr(v*0.8), ptr(v), ptr(v*1.3), ptr(v*1.7)
		}
		p.Clock = append(p.Clock, q)
	}
	for d := range 14 {
		day := glucoseprofile.Day{Date: p.From.AddDays(d), Means: make([]*float64, glucoseprofile.Quarters)}
		for k := range day.Means {
			if d != 5 {
				day.Means[k] = ptr((6 + float64((k+d)%16)/3) * factor)
			}
		}
		p.Daily = append(p.Daily, day)
	}
	return p
}

// One page in both units, the same each time, with its numbers as text.
func TestPrintProfile_isOnePageInBothUnits(t *testing.T) {
	for unit, words := range map[glucoseprofile.Unit][]string{
		glucoseprofile.Millimoles: {"Mean glucose 8.4 mmol/L", "In range 3.9 - 10.0", "Very low up to 2.9", "Very high from 14.0", "By the time of day, mmol/L"},
		glucoseprofile.Milligrams: {"Mean glucose 151 mg/dL", "In range 70 - 180", "Very low up to 53", "Very high from 251", "By the time of day, mg/dL"},
	} {
		factor := map[glucoseprofile.Unit]float64{glucoseprofile.Millimoles: 1, glucoseprofile.Milligrams: 18.0182}[unit]
		pdf, err := printer(t).PrintProfile(t.Context(), "member-42", glucoseOf(unit, factor))
		require.NoError(t, err)
		again, err := printer(t).PrintProfile(t.Context(), "member-42", glucoseOf(unit, factor))
		require.NoError(t, err)
		require.Equal(t, pdf, again)
		pages := newReader(t).text(t, pdf)
		require.Len(t, pages, 1)
		for _, w := range append(words, "member-42", "2026-03-18 to 2026-03-31, 14 days, 13 with readings", "6.9 %", "34.2 %", "91.8 %", "71.0 %", "12:00", "Tu 03-31") {
			require.Contains(t, pages[0], w)
		}
	}
}

// A profile without readings says so, and values above the scale stretch it.
func TestPrintProfile_printsEmptyAndExtremeProfiles(t *testing.T) {
	empty := glucoseOf(glucoseprofile.Millimoles, 1)
	empty.Mean, empty.GMI, empty.CV, empty.SensorActive, empty.Readings, empty.DaysWithReadings = nil, nil, nil, nil, 0, 0
	for i := range empty.Bands {
		empty.Bands[i].Percent = nil
	}
	for i := range empty.Clock {
		empty.Clock[i] = glucoseprofile.Quarter{Minute: 15 * i}
	}
	pdf, err := printer(t).PrintProfile(t.Context(), strings.Repeat("a long name ", 30), empty)
	require.NoError(t, err)
	pages := newReader(t).text(t, pdf)
	require.Len(t, pages, 1)
	require.Equal(t, 9, strings.Count(pages[0], "no data"))
	high := glucoseOf(glucoseprofile.Millimoles, 2)
	pdf, err = printer(t).PrintProfile(t.Context(), "", high)
	require.NoError(t, err)
	require.Contains(t, newReader(t).text(t, pdf)[0], "35.0")
	_, err = printer(t).PrintProfile(t.Context(), "", &glucoseprofile.Profile{})
	require.ErrorIs(t, err, healthlab.Invalid)
}
