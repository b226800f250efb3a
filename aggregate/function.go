package aggregate

import (
	"slices"
	"strconv"
	"strings"
)

// Func is a function over the values of a group. Every function skips nulls; without a value [Count] is 0 and
// the others are null.
type Func string

const (
	// Count is the number of values, of any type.
	Count Func = "count"
	// Sum has the type of its numbers. Decimal numbers are added exactly, others with about twice the digits of
	// a float64.
	Sum Func = "sum"
	// Mean is a float64 for numbers. For times and dates it is a time: the mean of the instants.
	Mean Func = "mean"
	// Median is the middle value, or the mean of the two in the middle, with the type of Mean.
	Median Func = "median"
	// StdDev is the sample deviation, with divisor n-1; null for one value.
	StdDev Func = "stddev"
	// Min is the smallest of numbers, times, dates or strings, the latter by bytes.
	Min Func = "min"
	// Max is the largest value, of the same types as Min.
	Max Func = "max"
	// Oldest is the value of the row with the smallest index.
	Oldest Func = "oldest"
	// Newest is the value of the row with the largest index.
	Newest Func = "newest"

	// TimeInRange is an extension: percent of the time, 0 to 100, during which a sample's value was from Low to High. A
	// sample lasts until the next one of its series, but at most 15 minutes and at most five times the distance from
	// the sample before it. The last sample lasts as long as that distance, or 15 minutes if it is the only one. With a
	// [Band] it is percent of the glucose readings in the band, each reading with the same weight, as in the consensus.
	TimeInRange Func = "time_in_range"
	// TimeWeightedMean is an extension: the mean of a value over time, in which the weight of a sample is its duration.
	// The duration is that of [TimeInRange].
	TimeWeightedMean Func = "time_weighted_mean"
	// CV is an extension: the coefficient of variation, 100 * stddev / mean, in percent. Null
	// for one value, and for a mean that is not positive. It is for numbers.
	CV Func = "cv"

	// The functions below are extensions for the values of the timeseries glucose. Formulas take mg/dL, 18.0182 of
	// which are 1 mmol/L. Functions over time replace readings of one instant by their mean. docs/concepts/glucose.md
	// defines each function in full.

	// GMI is the glucose management indicator in percent: 3.31 + 0.02392 * mean in mg/dL.
	// Bergenstal et al., Diabetes Care 2018;41:2275-2280.
	GMI Func = "gmi"
	// GRI is the glycemia risk index, 0 to 100: 3 * very_low + 2.4 * low + 1.6 * very_high +
	// 0.8 * high, of the percentages of readings in these bands; never more than 100.
	// Klonoff et al., J Diabetes Sci Technol 2023;17:1226-1242.
	GRI Func = "gri"
	// LBGI is the low blood glucose index: the mean over all readings of 10 * f² for f < 0, and of 0 for other
	// readings, where f = 1.509 * (ln(mg/dL)^1.084 - 5.381). Readings up to 1 mg/dL, for which f has no value, are left
	// out. Kovatchev et al., Diabetes Care 1997;20:1655-1658 and 1998;21:1870-1875.
	LBGI Func = "lbgi"
	// HBGI is the high blood glucose index: as LBGI, with 10 * f² for f > 0.
	HBGI Func = "hbgi"
	// MAGE is the mean amplitude of glycemic excursions in mmol/L. It is the mean height of the rises between
	// turning points (of the falls if the first excursion is a fall), where turning points differ by more than
	// one stddev of the group. A gap of more than 3 hours ends an excursion; an excursion that the group's
	// start or end cuts off counts. Null without an excursion. Service et al., Diabetes 1970;19:644-655.
	MAGE Func = "mage"
	// MODD is the mean of daily differences in mmol/L. For each reading, the difference is to the reading
	// nearest to the same clock time a day earlier, at most 7.5 minutes away; of two equally near, the earlier.
	// Both readings are in the group. Null if no reading has such a partner, as in a group of one day. Molnar
	// et al., Diabetologia 1972;8:342-348.
	MODD Func = "modd"
	// SensorActive is the percent of the time from the first to the last reading of the group in which the
	// glucose sensor delivered readings. A gap longer than the usual distance, which is the median distance in
	// whole minutes, counts as inactive. Null for fewer than two readings, and if the usual distance is more
	// than 15 minutes. Danne et al., Diabetes Care 2017;40:1631-1640.
	SensorActive Func = "sensor_active"
	// Episodes is the number of episodes of 15 minutes or more in a band: very_low, below_range, above_range or
	// very_high. An episode begins when readings are in the band for 15 minutes, and ends when they are outside
	// for 15 minutes, or at a gap of more than 15 minutes beyond the usual distance. A reading lasts until the
	// next one, or for the usual distance before a gap. Times are rounded to minutes. Null where SensorActive
	// is. Battelino et al., Diabetes Care 2019;42:1593-1603.
	Episodes Func = "episodes"

	percentilePrefix = "percentile_"
)

// Percentile returns the function of the p-th percentile, 0 to 100: an extension. Between two values it
// interpolates linearly; the 50th is the median. In the HTTP API its name is such as percentile_95.
func Percentile(p int) Func { return Func(percentilePrefix + strconv.Itoa(p)) }

// percent returns the percentage in the name of a percentile; false for other functions.
func (f Func) percent() (p int, ok bool) {
	digits, ok := strings.CutPrefix(string(f), percentilePrefix)
	if !ok || len(digits) > 3 || digits == "" || digits != "0" && digits[0] == '0' {
		return 0, false
	}
	p, err := strconv.Atoi(digits)
	return p, err == nil && p >= 0 && p <= 100
}

// funcs are all functions except percentiles.
var funcs = []Func{
	Count, Sum, Mean, Median, StdDev, Min, Max, Oldest, Newest, TimeInRange, TimeWeightedMean,
	CV, GMI, GRI, LBGI, HBGI, MAGE, MODD, SensorActive, Episodes,
}

// funcNames are the names that an unknown function is compared with, for the hint in the error.
var funcNames = func() []string {
	out := []string{"percentile_5", "percentile_25", "percentile_75", "percentile_90", "percentile_95"}
	for _, f := range funcs {
		out = append(out, string(f))
	}
	return out
}()

func knownFunc(f Func) bool {
	_, ok := f.percent()
	return ok || slices.Contains(funcs, f)
}

// result returns the type of f's result for an argument type; false if f does not accept the type.
func (f Func) result(t Type) (Type, bool) {
	number := t == typeInt || t == typeFloat
	time := t == typeTime || t == typeInstant || t == typeDate
	switch f {
	case Count:
		return typeInt, true
	case Sum:
		return t, number
	case StdDev, CV:
		return typeFloat, number
	case Min, Max:
		return t, number || time || t == typeText
	case Oldest, Newest:
		return t, t != typeList
	case TimeInRange, TimeWeightedMean, GMI, GRI, LBGI, HBGI, MAGE, MODD, SensorActive:
		return typeFloat, t == typeFloat
	case Episodes:
		return typeInt, t == typeFloat
	}
	// Mean, Median and percentiles.
	switch {
	case number:
		return typeFloat, true
	case t == typeDate:
		return typeTime, true
	default:
		return t, time
	}
}

func (f Func) ofSamples() bool { return f == TimeInRange || f == TimeWeightedMean || f.ofGlucose() }

// ofGlucose reports whether f accepts glucose values only.
func (f Func) ofGlucose() bool {
	switch f {
	case GMI, GRI, LBGI, HBGI, MAGE, MODD, SensorActive, Episodes:
		return true
	}
	return false
}

// label returns the column name of the function with its bounds.
func (a *Aggregate) label() string {
	s := string(a.Func)
	if a.Band != "" {
		s += "_" + string(a.Band)
	}
	if a.Low != nil {
		s = string(appendFloat([]byte(s+"_from_"), *a.Low))
	}
	if a.High != nil {
		s = string(appendFloat([]byte(s+"_to_"), *a.High))
	}
	return s
}
