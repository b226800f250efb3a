// Package labhistory returns one history of laboratory results for a person: results of orders
// and of lab reports that a person approved.
//
// The names to know:
//
//   - [Service.List] returns a page of a person's [Result]s, newest first.
//   - [Convert] writes a value in the one unit of its analyte.
//   - [UnitOf] is that unit.
//
// The package stores nothing: it reads each result from its order or report, so that corrections
// and erasures take effect at once.
//
// # Units
//
// All codes of one analyte have one unit: glucose is in mmol/L, whether a laboratory reports it
// under the code of a mass or of an amount of substance. Masses become amounts by the molar mass
// of the LOINC component, from a table whose sources data/NOTICES.md names. What cannot be
// converted, because its code, unit or molar mass is unknown, has only the reported value.
package labhistory
