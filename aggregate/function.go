package aggregate

import (
	"strconv"
	"strings"
)

// Func is a function over the values of a group. Nulls are skipped by every function;
// where nothing is left, [Count] is 0 and the others are null.
type Func string

const (
	// Count is the number of values, of any type.
	Count Func = "count"
	// Sum is of the type of its numbers. Decimal numbers are added exactly, others
	// with about twice the digits of a float64.
	Sum Func = "sum"
	// Mean of numbers is a float64; of times and dates a time, which is the mean of
	// the instants and not of the clock.
	Mean Func = "mean"
	// Median is the middle value, or the mean of the two in the middle; types as Mean.
	Median Func = "median"
	// StdDev is the sample deviation, with divisor n-1; null for one value.
	StdDev Func = "stddev"
	// Min is the smallest of numbers, times, dates or strings, the latter by bytes.
	Min Func = "min"
	// Max is the largest, as Min is the smallest.
	Max Func = "max"
	// Oldest is the value of the row with the smallest index.
	Oldest Func = "oldest"
	// Newest is the value of the row with the largest index.
	Newest Func = "newest"

	// TimeInRange is an extension: percent of the time, 0 to 100, during which a value
	// lay between Low and High. A sample holds until the next one of its series, for
	// five times the usual distance at most. It is for values of samples.
	TimeInRange Func = "time_in_range"
	// TimeWeightedMean is an extension: the mean of a value over time, each sample
	// with the weight of the time that it held.
	TimeWeightedMean Func = "time_weighted_mean"

	percentilePrefix = "percentile_"
)

// Percentile returns the function that gives the p-th percentile, 0 to 100: an
// extension. Between two values it is interpolated on a straight line; the 50th is the
// median. On the wire it is percentile_95.
func Percentile(p int) Func { return Func(percentilePrefix + strconv.Itoa(p)) }

// percent returns the number of a percentile.
func (f Func) percent() (p int, ok bool) {
	digits, ok := strings.CutPrefix(string(f), percentilePrefix)
	if !ok || len(digits) > 3 || digits == "" || digits != "0" && digits[0] == '0' {
		return 0, false
	}
	p, err := strconv.Atoi(digits)
	return p, err == nil && p >= 0 && p <= 100
}

// funcNames are the functions that a misspelt one is compared with.
var funcNames = []string{
	string(Count), string(Sum), string(Mean), string(Median), string(StdDev), string(Min), string(Max),
	string(Oldest), string(Newest), string(TimeInRange), string(TimeWeightedMean),
	"percentile_5", "percentile_25", "percentile_75", "percentile_90", "percentile_95",
}

func knownFunc(f Func) bool {
	if _, ok := f.percent(); ok {
		return true
	}
	switch f {
	case Count, Sum, Mean, Median, StdDev, Min, Max, Oldest, Newest, TimeInRange, TimeWeightedMean:
		return true
	}
	return false
}

// result returns the type that f makes of a type, and whether it takes it at all.
func (f Func) result(t Type) (Type, bool) {
	number := t == typeInt || t == typeFloat
	time := t == typeTime || t == typeInstant || t == typeDate
	switch f {
	case Count:
		return typeInt, true
	case Sum:
		return t, number
	case StdDev:
		return typeFloat, number
	case Min, Max:
		return t, number || time || t == typeText
	case Oldest, Newest:
		return t, t != typeList
	case TimeInRange, TimeWeightedMean:
		return typeFloat, t == typeFloat
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

// overTime reports whether f needs to know how long each sample held.
func (f Func) overTime() bool { return f == TimeInRange || f == TimeWeightedMean }

// label is how results call the function with its bounds.
func (a *Aggregate) label() string {
	s := string(a.Func)
	if a.Low != nil {
		s = string(appendFloat([]byte(s+"_from_"), *a.Low))
	}
	if a.High != nil {
		s = string(appendFloat([]byte(s+"_to_"), *a.High))
	}
	return s
}
