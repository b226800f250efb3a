// Package labhistory is one history of laboratory results a person: from orders, whichever way
// their results came, and from lab reports that a person approved.
//
// The names to know:
//
//   - [Service.List] returns a page of a person's [Result]s, newest first.
//   - [Convert] writes a value in the one unit of its analyte.
//   - [UnitOf] is that unit.
//
// Nothing is kept here: a result is read where it belongs, so a correction replaces what it
// corrects, and what is erased is gone.
//
// # Units
//
// All codes of one analyte have one unit: glucose is in mmol/L, whether a laboratory reports it
// under the code of a mass or of an amount of substance. Masses become amounts by the molar mass
// of the LOINC component, from a table whose sources data/NOTICES.md names. What cannot be
// converted, an unknown code, unit or molar mass, has no value, and stands as it was reported.
package labhistory
