// Package refrange reads reference ranges and results as laboratories write them: "3.5 - 5.1",
// "<= 10", "70-99 mg/dL", "Less than 200", "Desirable: <200", "zwischen 3 und 5".
//
// The names to know:
//
//   - [Parse] reads a reference range whose numbers are written with a point.
//   - [ParseBeside] reads one whose numbers may be written with a comma.
//   - [ParseIn] reads the range of a result in a known unit, and leaves out ranges in other units.
//   - [Value] reads a result: a number, a number with a comparator, an interval.
//   - [Range] is what they return.
//   - [ByGroups] recognizes lists of ranges by sex, age or state.
//   - [Groups] reads such a list, and [Choose] returns the range of one person.
//
// It does not compare a result with a range.
package refrange
